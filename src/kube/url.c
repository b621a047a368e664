/* SPDX-License-Identifier: Apache-2.0 */
#include "url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "gpushare/kube/client.h"

GS_DEFINE_CLEANUP(CURLU *, curl_url_cleanup)

static void curl_strfree(char *text)
{
    curl_free(text);
}
GS_DEFINE_CLEANUP(char *, curl_strfree)

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

/* A part that is absent leaves *ret NULL; *ok is cleared when memory is out. */
static void get_part(CURLU *url, CURLUPart part, unsigned flags, char **ret, bool *ok)
{
    if (curl_url_get(url, part, ret, flags) == CURLUE_OUT_OF_MEMORY)
        *ok = false;
}

static bool has_part(CURLU *url, CURLUPart part, bool *ok)
{
    _cleanup_(curl_strfreep) char *text = NULL;
    get_part(url, part, 0, &text, ok);
    return text && text[0];
}

/* "[::1]" → "::1" */
static bool copy_host(const char *text, struct gs_url *url)
{
    size_t len = strlen(text);
    if (len >= 2 && text[0] == '[') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof(url->host))
        return false;
    memcpy(url->host, text, len);
    url->host[len] = '\0';
    return true;
}

static bool copy_prefix(const char *text, struct gs_url *url)
{
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/')
        len--;
    if (len >= sizeof(url->prefix))
        return false;
    memcpy(url->prefix, text, len);
    url->prefix[len] = '\0';
    return true;
}

int gs_url_parse(const char *text, struct gs_url *ret, struct gs_error *err)
{
    _cleanup_(curl_url_cleanupp) CURLU *url = curl_url();
    _cleanup_(curl_strfreep) char *scheme = NULL;
    _cleanup_(curl_strfreep) char *host = NULL;
    _cleanup_(curl_strfreep) char *port = NULL;
    _cleanup_(curl_strfreep) char *path = NULL;
    if (!url)
        return gs_fail_nomem(err);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text, 0);
    if (code != CURLUE_OK)
        return gs_fail(err, code == CURLUE_OUT_OF_MEMORY ? GS_ENOMEM : GS_EINVAL,
                       "server \"%.100s\": %s", text, curl_url_strerror(code));
    bool ok = true;
    get_part(url, CURLUPART_SCHEME, 0, &scheme, &ok);
    get_part(url, CURLUPART_HOST, 0, &host, &ok);
    get_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port, &ok);
    get_part(url, CURLUPART_PATH, 0, &path, &ok);
    bool more = has_part(url, CURLUPART_USER, &ok) || has_part(url, CURLUPART_QUERY, &ok) ||
                has_part(url, CURLUPART_FRAGMENT, &ok);
    if (!ok)
        return gs_fail_nomem(err);
    if (!scheme || !host || !port || !path)
        return gs_fail(err, GS_EINVAL, "server \"%.100s\" is no http or https address", text);
    struct gs_url parsed = {.tls = strcmp(scheme, "https") == 0};
    uint32_t number;
    if (!parsed.tls && strcmp(scheme, "http") != 0)
        return gs_fail(err, GS_EINVAL, "server \"%.100s\" is neither http nor https", text);
    if (more)
        return gs_fail(err, GS_EINVAL, "server address with a user, a query or a fragment");
    if (!gs_parse_u32(port, strlen(port), &number) || number == 0 || number > UINT16_MAX ||
        !copy_host(host, &parsed) || !copy_prefix(path, &parsed))
        return gs_fail(err, GS_EINVAL, "server \"%.100s\": bad host, port or path", text);
    parsed.port = (uint16_t)number;
    parsed.loopback = is_loopback(parsed.host);
    *ret = parsed;
    return 0;
}

void gs_url_escape(struct gs_buf *buf, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~", c))
            gs_buf_putc(buf, (char)c);
        else
            gs_buf_printf(buf, "%%%02X", c);
    }
}
