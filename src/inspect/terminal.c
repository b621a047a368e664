/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpushare/base/utf8.h"

struct terminal terminal_find(void)
{
    struct terminal terminal = {.screen = isatty(STDOUT_FILENO)};
    struct winsize size;
    if (terminal.screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        terminal.width = size.ws_col;
    return terminal;
}

/* ---- what went wrong ---- */

static const char *advice(enum gs_code code)
{
    switch (code) {
    case GS_EAUTH:
        return "the credentials were rejected or have expired: log in again, or renew the token of "
               "this context";
    case GS_EDENIED:
        return "ask an administrator for the right to list nodes and pods (ClusterRole in "
               "docs/cli.md)";
    case GS_EIO:
        return "check that the API server is running and that --context is right";
    case GS_ETIMEOUT:
        return "retry, or raise --request-timeout";
    case GS_EBUSY:
        return "the API server is overloaded: retry later";
    case GS_EPROTO:
        return "check that this is the address of a Kubernetes API server";
    default:
        return "";
    }
}

int complain(const struct gs_error *err)
{
    /* the client's own words about connections and certificates say it already, as kubectl's do */
    const bool told = strchr(err->msg, '?') || strncmp(err->msg, "kubectl: ", 9) == 0;
    const char *what_to_do = told ? "" : advice(err->code);
    char what[sizeof(err->msg)]; /* often a server's own words */
    snprintf(what, sizeof(what), "%s", err->msg);
    gs_utf8_calm(what);
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, what_to_do[0] ? "; " : "", what_to_do);
    return 1;
}

int fail_output(struct gs_error *err)
{
    return gs_fail(err, GS_EINTERNAL, "cannot write the output");
}

int complain_usage(const char *command, const char *what)
{
    fprintf(stderr, "%s: %s\n", command, what);
    return 2;
}
