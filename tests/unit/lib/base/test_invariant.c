/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/invariant.h"

#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"

/* How a process ends that breaks one: 0, it lives; else the signal. */
static int end_of(bool program, const char *wish)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        unsetenv("GPUSHARE_INVARIANTS");
        if (wish)
            setenv("GPUSHARE_INVARIANTS", wish, 1);
        if (program)
            gs_invariants_survive();
        const bool held = GS_INVARIANT(1 + 1 == 3, "one and one is three");
        _exit(!held && gs_invariants_broken() == 1 && GS_INVARIANT(true, "true") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_broken_one_ends_everything_but_a_program_that_serves(void **state)
{
    static const struct {
        const char *row;
        bool program;
        const char *wish;
        int end;
    } rows[] = {
        {"a test", false, NULL, SIGABRT},
        {"a program", true, NULL, 0},
        {"a program that a test starts", true, "fatal", SIGABRT},
        {"a word that is none", true, "x", 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
#ifdef GS_FATAL_INVARIANTS /* a sanitizer's build */
        row_equal(r->row, end_of(r->program, r->wish), SIGABRT);
#else
        row_equal(r->row, end_of(r->program, r->wish), r->end);
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_one_ends_everything_but_a_program_that_serves),
    };
    return GS_RUN(tests);
}
