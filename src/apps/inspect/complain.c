/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/complain.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"

static const char *advice(enum gs_code code)
{
    switch (code) {
    case GS_EAUTH:
        return "the credentials were refused or have expired: log in again, or renew the token "
               "of this context";
    case GS_EDENIED:
        return "ask an administrator for the right to list nodes and pods (ClusterRole in "
               "docs/inspect.md)";
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

int complain_usage(const char *command, const char *what)
{
    fprintf(stderr, "%s: %s\n", command, what);
    return 2;
}
