/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/utf8.h"

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

/* ---- what went wrong ---- */

static const char *advice(enum gs_code code)
{
    switch (code) {
    case GS_EAUTH:
        return "the credentials were refused or have expired: log in again, or renew the token "
               "of this context";
    case GS_EDENIED:
        return "ask an administrator for the right to list nodes and pods (ClusterRole in "
               "docs/cli.md)";
    case GS_EIO:
        return "is the API server running, and is this the right --context?";
    case GS_ETIMEOUT:
        return "try again, or give it more with --request-timeout";
    case GS_EBUSY:
        return "the API server is overloaded: try again later";
    case GS_EPROTO:
        return "is this address really a Kubernetes API server?";
    default:
        return NULL;
    }
}

int complain(const struct gs_error *err)
{
    /* the client's own words about connections and certificates say it already */
    const char *what_to_do = strchr(err->msg, '?') ? NULL : advice(err->code);
    char what[sizeof(err->msg)]; /* often a server's own words */
    snprintf(what, sizeof(what), "%s", err->msg);
    gs_utf8_calm(what);
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, what_to_do ? "; " : "",
            what_to_do ? what_to_do : "");
    return 1;
}

int fail_output(struct gs_error *err)
{
    return gs_fail(err, GS_EINTERNAL, "the output cannot be written");
}

int complain_usage(const char *command, const char *what)
{
    fprintf(stderr, "%s: %s\n", command, what);
    return 2;
}

/* ---- how far it is ---- */

#define QUIET_NS      GS_NS_PER_S
#define TELL_EVERY_NS (200 * GS_NS_PER_MS)

void progress_begin(struct progress *progress, bool on)
{
    *progress = (struct progress){.on = on, .begun_ns = gs_clock_now_ns(gs_clock_system())};
}

void progress_tell(struct progress *progress, uint64_t done, uint64_t total, const char *what)
{
    int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    if (!progress->on || now_ns - progress->begun_ns < QUIET_NS ||
        now_ns - progress->told_ns < TELL_EVERY_NS)
        return;
    progress->told_ns = now_ns;
    fprintf(stderr, "\r" PROGRAM ": %" PRIu64, done);
    if (total)
        fprintf(stderr, " of %" PRIu64, total);
    fprintf(stderr, " %s\033[K", what);
}

void progress_end(const struct progress *progress)
{
    if (progress->told_ns)
        fputs("\r\033[K", stderr);
}
