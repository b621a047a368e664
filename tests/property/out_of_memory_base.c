/* SPDX-License-Identifier: Apache-2.0 */
/* Base and model with every n-th allocation failing. */
#include "alloc_fail.h"
#include "rows.h"

#include "gpushare/base/arena.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/base/index.h"
#include "gpushare/base/log.h"
#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

static void a_buffer_keeps_what_it_had_and_says_so(void **state)
{
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(100000);
        size_t whole = 0;
        alloc_fail_begin(n);
        for (int i = 0; i < 1000; i++) {
            gs_buf_puts(&buf, "0123456789");
            whole += gs_buf_failed(&buf) ? 0 : 10;
        }
        bool failed = alloc_fail_end();
        assert_int_equal(gs_buf_failed(&buf), failed ? GS_ENOMEM : 0);
        assert_int_equal(buf.len, whole);
        assert_int_equal(buf.data ? strlen(buf.data) : 0, whole);
        _cleanup_free_ char *stolen = gs_buf_steal(&buf);
        assert_int_equal(stolen == NULL, failed);
        if (!failed) {
            assert_true(n > 5);
            return;
        }
    }
}

static void an_arena_stays_as_it_was(void **state)
{
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        char *texts[200] = {0};
        int refused = 0;
        alloc_fail_begin(n);
        for (int i = 0; i < 200; i++) {
            char text[40];
            snprintf(text, sizeof(text), "text number %d of some length", i);
            texts[i] = gs_arena_strndup(&arena, text, strlen(text));
            refused += !texts[i];
        }
        bool failed = alloc_fail_end();
        assert_int_equal(refused, failed ? 1 : 0);
        for (int i = 0; i < 200; i++) {
            char text[40];
            snprintf(text, sizeof(text), "text number %d of some length", i);
            assert_true(!texts[i] || strcmp(texts[i], text) == 0);
        }
        if (!failed) {
            assert_true(n > 2);
            return;
        }
    }
}

static bool same(const void *ctx, uint32_t slot)
{
    return *(const uint32_t *)ctx == slot;
}

static void an_index_keeps_its_entries(void **state)
{
    for (unsigned n = 1;; n++) {
        struct gs_index index = {0};
        uint32_t refused = 0;
        alloc_fail_begin(n);
        for (uint32_t i = 0; i < 500; i++) {
            if (gs_index_reserve(&index) < 0)
                refused++;
            else
                gs_index_insert(&index, gs_hash_bytes(&i, sizeof(i)), i);
        }
        bool failed = alloc_fail_end();
        assert_int_equal(refused, failed ? 1 : 0);
        assert_int_equal(index.count, 500 - refused);
        uint32_t found = 0;
        for (uint32_t i = 0; i < 500; i++)
            found += gs_index_find(&index, gs_hash_bytes(&i, sizeof(i)), same, &i) == i;
        assert_int_equal(found, 500 - refused);
        gs_index_release(&index);
        if (!failed) {
            assert_true(n > 3);
            return;
        }
    }
}

static void a_node_without_memory_keeps_no_gpus(void **state)
{
    _cleanup_(gs_node_release) struct gs_node node = {0};
    gs_node_reset(&node);
    node.capacity_units = 64;
    node.capacity_count = 4;
    alloc_fail_begin(1);
    assert_int_equal(gs_node_divide_capacity(&node), -1);
    assert_true(alloc_fail_end());
    assert_int_equal(node.gpu_count, 0);
    assert_null(node.gpus);
    assert_int_equal(gs_node_divide_capacity(&node), 0);
    assert_int_equal(node.gpu_count, 4);
}

static void a_pod_that_cannot_be_copied_is_empty(void **state)
{
    char long_name[900];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    struct gs_container containers[] = {{.gpu_units = 1}, {.gpu_units = 2}};
    _cleanup_(gs_pod_release) struct gs_pod from = {0};
    gs_pod_reset(&from);
    from.uid = from.ns = from.name = long_name;
    from.containers = containers;
    from.container_count = 2;
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_pod_release) struct gs_pod to = {0};
        alloc_fail_begin(n);
        int rc = gs_pod_copy(&to, &from);
        bool failed = alloc_fail_end();
        assert_int_equal(rc, failed ? -1 : 0);
        assert_string_equal(to.uid, failed ? "" : long_name);
        assert_int_equal(to.container_count, failed ? 0 : 2);
        if (!failed) {
            assert_true(n > 2);
            return;
        }
    }
}

static void a_line_of_the_log_is_lost_at_worst(void **state)
{
    int saved = dup(STDERR_FILENO);
    FILE *null = freopen("/dev/null", "w", stderr);
    for (unsigned n = 1;; n++) {
        alloc_fail_begin(n);
        gs_log(GS_LOG_ERROR, "some words", GS_STR("key", "a value of some length, in quotes"));
        if (!alloc_fail_end())
            break;
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_non_null(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_keeps_what_it_had_and_says_so),
        cmocka_unit_test(an_arena_stays_as_it_was),
        cmocka_unit_test(an_index_keeps_its_entries),
        cmocka_unit_test(a_node_without_memory_keeps_no_gpus),
        cmocka_unit_test(a_pod_that_cannot_be_copied_is_empty),
        cmocka_unit_test(a_line_of_the_log_is_lost_at_worst),
    };
    return GS_RUN(tests);
}
