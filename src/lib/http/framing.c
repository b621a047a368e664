/* SPDX-License-Identifier: Apache-2.0 */
/* Checks where a request ends. If this server and a proxy before it disagree, part of one client's
 * body becomes another client's request (request smuggling), and libmicrohttpd 0.9.75 is lenient.
 * Refused: what llhttp, Node's parser, refuses (RFC 9112, sections 2.2, 5.1, 6.3), a second Host,
 * and chunked bodies, because libmicrohttpd accepts chunk sizes that end with a bare LF.
 * kube-scheduler, kubectl and curl send Content-Length (RFC 9110, 15.5.12). */
#include <string.h>
#include <strings.h>

#include "gpushare/base/num.h"
#include "internal.h"

enum { LINE_END = 2 /* CR LF, which libmicrohttpd has overwritten with NULs */ };

struct head {
    uintptr_t next; /* where the next line begins */
    bool broken;
    unsigned lengths, codings, hosts;
    const char *length;
};

/* RFC 9110, section 5.6.2 */
static bool is_token(const char *text, size_t len)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return len > 0 && strspn(text, allowed) >= len;
}

static bool is_value(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Header lines are adjacent in memory, as received. A gap is text that libmicrohttpd skipped after
 * a NUL, a bare CR or LF, or in a folded line, and that another parser would read. */
static enum MHD_Result look_at(void *cls, enum MHD_ValueKind kind, const char *name,
                               size_t name_len, const char *value, size_t value_len)
{
    struct head *head = cls;
    value = value ? value : "";
    if ((uintptr_t)name != head->next || !is_token(name, name_len) || !is_value(value, value_len))
        head->broken = true;
    head->next = (uintptr_t)value + value_len + LINE_END;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        head->lengths++;
        head->length = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        head->codings++;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        head->hosts++;
    }
    return MHD_YES;
}

/* Returns the status; *ret_why receives the reason. */
static unsigned refuse(unsigned status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return status;
}

unsigned gs_framing_read(struct MHD_Connection *mhd, const char *method, const char *version,
                         uint64_t *ret_length, const char **ret_why)
{
    struct head head = {.next = (uintptr_t)version + strlen(version) + LINE_END};
    bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    const size_t *size =
        (const size_t *)MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    *ret_length = 0;
    if (!old && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        return refuse(400, "unsupported HTTP version: use HTTP/1.1 or HTTP/1.0", ret_why);
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, look_at, &head);
    if (head.broken || !size || (uintptr_t)method + *size != head.next + LINE_END)
        return refuse(400, "malformed header", ret_why);
    if (head.hosts > 1)
        return refuse(400, "more than one Host header", ret_why);
    if (head.lengths + head.codings > 1 || (head.codings && old) ||
        (head.lengths && !gs_parse_u64(head.length, strlen(head.length), ret_length)))
        return refuse(400, "ambiguous request length (Content-Length, Transfer-Encoding)", ret_why);
    if (head.codings)
        return refuse(411, "missing Content-Length", ret_why);
    return 0;
}
