/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "inspect/terminal.h"

static bool screen;

int __wrap_isatty(int fd);

int __wrap_isatty(int fd)
{
    return screen;
}

static void colours_go_by_the_screen_and_the_environment(void **state)
{
    static const struct {
        const char *row, *no_color, *term; /* NULL: not set */
        bool screen, colour;
    } rows[] = {
        {"a screen", NULL, "xterm", true, true},
        {"of no kind", NULL, NULL, true, true},
        {"a file", NULL, "xterm", false, false},
        {"a dumb one", NULL, "dumb", true, false},
        {"none are wanted", "1", "xterm", true, false},
        {"an empty word says nothing", "", "xterm", true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        unsetenv("NO_COLOR");
        unsetenv("TERM");
        if (r->no_color)
            setenv("NO_COLOR", r->no_color, 1);
        if (r->term)
            setenv("TERM", r->term, 1);
        screen = r->screen;
        const struct terminal terminal = terminal_find();
        row_equal(r->row, terminal.screen, r->screen);
        row_equal(r->row, terminal.colour, r->colour);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_go_by_the_screen_and_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
