/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "inspect/app.h"

struct terminal terminal_find(void)
{
    struct terminal terminal = {.screen = isatty(STDOUT_FILENO), .progress = isatty(STDERR_FILENO)};
    const char *no_color = getenv("NO_COLOR"), *kind = getenv("TERM");
    struct winsize size;
    /* https://no-color.org: set and not empty */
    terminal.colour =
        terminal.screen && !(no_color && no_color[0]) && !(kind && strcmp(kind, "dumb") == 0);
    if (terminal.screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        terminal.width = size.ws_col;
    return terminal;
}
