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

static bool copy_part(const char *text, size_t len, char ret[GS_URL_PART_BYTES])
{
    if (len >= GS_URL_PART_BYTES)
        return false;
    memcpy(ret, text, len);
    ret[len] = '\0';
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
    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (!scheme)
        return gs_fail_nomem(err);
    struct gs_url parsed = {.tls = strcmp(scheme, "https") == 0};
    if (!parsed.tls && strcmp(scheme, "http") != 0)
        return gs_fail(err, GS_EINVAL, "server \"%.100s\" is neither http nor https", text);
    curl_url_get(url, CURLUPART_HOST, &host, 0);
    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    curl_url_get(url, CURLUPART_PATH, &path, 0);
    if (!host || !port || !path)
        return gs_fail_nomem(err);
    if (strpbrk(text, "@?#"))
        return gs_fail(err, GS_EINVAL,
                       "the server URL must not have a user, a query or a fragment");
    const bool brackets = host[0] == '['; /* "[::1]" → "::1" */
    size_t path_len = strlen(path);
    while (path_len > 0 && path[path_len - 1] == '/')
        path_len--;
    uint32_t number;
    if (!gs_parse_u32(port, strlen(port), &number) || number == 0 || number > UINT16_MAX ||
        !copy_part(host + brackets, strlen(host) - 2 * brackets, parsed.host) ||
        !copy_part(path, path_len, parsed.prefix))
        return gs_fail(err, GS_EINVAL, "server \"%.100s\": invalid host, port or path", text);
    parsed.port = (uint16_t)number;
    parsed.loopback = is_loopback(parsed.host);
    *ret = parsed;
    return 0;
}

void gs_url_escape(struct gs_buf *buf, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || gs_is_digit((char)c) ||
            strchr("-._~", c))
            gs_buf_putc(buf, (char)c);
        else
            gs_buf_printf(buf, "%%%02X", c);
    }
}
