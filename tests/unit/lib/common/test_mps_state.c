/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/mps_state.h"
#include "gpushare/base/clock.h"

#define NOW    (1000 * GS_NS_PER_S)
#define TORN   "the state file of gpushare-mps is invalid"
#define NOBODY "gpushare-mps is no longer running on this node"

static void only_a_fresh_and_whole_line_is_believed(void **state)
{
    static const struct {
        const char *row, *line, *why; /* NULL: ready */
    } rows[] = {
        {"ready", "ready 1000\n", NULL},
        {"ready a while ago", "ready 970\n", NULL},
        {"ready too long ago", "ready 969\n", NOBODY},
        {"of another boot", "ready 5000\n", NOBODY},
        {"away", "away 1000 it hangs\n", "it hangs"},
        {"away too long ago", "away 900 it hangs\n", NOBODY},
        {"away for nothing", "away 1000\n", ""},
        {"ready with more", "ready 1000 more\n", NULL},
        {"no line", "", TORN},
        {"another word", "steady 1000\n", TORN},
        {"more than a word", "readyy 1000\n", TORN},
        {"no number", "ready soon\n", TORN},
        {"beyond numbers", "ready 99999999999999999999\n", TORN},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct mps_state got = {.ready = true, .why = "left over"};
        mps_state_parse(r->line, strlen(r->line), NOW, &got);
        row_equal(r->row, got.ready, r->why == NULL);
        if (r->why)
            row_text(r->row, got.why, r->why);
    }
}

static void what_is_written_is_read(void **state)
{
    static const struct mps_state states[] = {
        {.ready = true}, {.why = "it hangs"}, {.why = "the MPS server has failed"}};
    char root[] = "/tmp/gpushare-mps.XXXXXX", path[MPS_PATH_BYTES];
    struct mps_state got;
    assert_non_null(mkdtemp(root));
    mps_state_read(root, "GPU-1", NOW, &got);
    assert_false(got.ready);
    assert_non_null(strstr(got.why, "does not manage this GPU"));
    assert_true(mps_path(root, "GPU-1", "", path));
    assert_int_equal(mkdir(path, 0700), 0);
    GS_FOR_EACH_ROW (r, states) {
        assert_true(mps_state_write(root, "GPU-1", r, NOW));
        mps_state_read(root, "GPU-1", NOW, &got);
        assert_int_equal(got.ready, r->ready);
        assert_string_equal(got.why, r->why);
    }
    assert_true(mps_path(root, "GPU-1", "state", path));
    unlink(path);
    assert_true(mps_path(root, "GPU-1", "", path));
    rmdir(path);
    rmdir(root);
}

static void no_uuid_leads_out_of_the_folder(void **state)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", "/etc"};
    char path[MPS_PATH_BYTES], root[MPS_PATH_BYTES];
    for (size_t i = 0; i < GS_COUNT_OF(bad); i++)
        row_true(bad[i], !mps_path("/run", bad[i], "pipe", path));
    assert_true(mps_path("/run", "GPU-1", "pipe", path));
    assert_string_equal(path, "/run/GPU-1/pipe");
    assert_true(mps_path("/run", NULL, "shm", path));
    assert_string_equal(path, "/run/shm");
    memset(root, 'r', sizeof(root));
    root[MPS_PATH_BYTES - 1] = '\0';
    assert_false(mps_path(root, "GPU-1", "pipe", path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_fresh_and_whole_line_is_believed),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_uuid_leads_out_of_the_folder),
    };
    return GS_RUN(tests);
}
