/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "gpushare/base/num.h"
#include "internal.h"

/* Family and port are at the same place in all three. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int parse(const char *spec, union address *ret, struct gs_error *err)
{
    char host[INET6_ADDRSTRLEN + sizeof("[]")];
    const char *colon = strrchr(spec, ':');
    size_t len = colon ? (size_t)(colon - spec) : sizeof(host);
    union address addr = {0};
    uint32_t port;
    if (len >= sizeof(host) || !gs_parse_u32(colon + 1, strlen(colon + 1), &port) ||
        port > UINT16_MAX)
        return gs_fail(err, GS_EINVAL, "\"%s\" is not ADDR:PORT", spec);
    memcpy(host, spec, len);
    host[len] = '\0';
    bool brackets = len >= 2 && host[0] == '[' && host[len - 1] == ']';
    if (brackets)
        host[len - 1] = '\0';
    if (len == 0 || (brackets && inet_pton(AF_INET6, host + 1, &addr.v6.sin6_addr) == 1))
        addr.any.sa_family = AF_INET6; /* all zero: every address */
    else if (inet_pton(AF_INET, host, &addr.v4.sin_addr) == 1)
        addr.any.sa_family = AF_INET;
    else
        return gs_fail(err, GS_EINVAL,
                       "\"%s\" is not ADDR:PORT with a numeric address (IPv6 in brackets)", spec);
    addr.v4.sin_port = htons((uint16_t)port);
    *ret = addr;
    return 0;
}

int gs_http_check_address(const char *listen, struct gs_error *err)
{
    union address addr;
    return parse(listen, &addr, err);
}

bool gs_http_is_loopback(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0;
}

/* Inherited by every connection: no delay for small answers; keepalive detects a dead peer within
 * two minutes. */
static int set_options(int fd, int family)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_REUSEADDR, 1}, {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPCNT, 4}, {IPPROTO_TCP, TCP_KEEPINTVL, 15},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) < 0)
            return -1;
    }
    int off = 0;
    return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) : 0;
}

static int listen_on(const union address *addr, const char *spec, int *ret_fd, uint16_t *ret_port,
                     struct gs_error *err)
{
    int family = addr->any.sa_family;
    _cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    union address bound;
    socklen_t len = sizeof(bound);
    if (fd < 0 || set_options(fd, family) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot create a socket for %s", spec);
    if (bind(fd, &addr->any, family == AF_INET6 ? sizeof(addr->v6) : sizeof(addr->v4)) < 0 ||
        listen(fd, SOMAXCONN) < 0) {
        int why = errno;
        enum gs_code code = why == EADDRINUSE               ? GS_EEXIST
                            : why == EACCES || why == EPERM ? GS_EDENIED
                                                            : GS_EIO;
        return gs_fail_errno(err, code, why, "cannot listen on %s", spec);
    }
    if (getsockname(fd, &bound.any, &len) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot listen on %s", spec);
    *ret_port = ntohs(bound.v4.sin_port);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int gs_listen_open(const char *spec, int *ret_fd, uint16_t *ret_port, struct gs_error *err)
{
    union address addr;
    if (parse(spec, &addr, err) < 0)
        return -1;
    struct gs_error first = {0};
    if (listen_on(&addr, spec, ret_fd, ret_port, &first) == 0)
        return 0;
    /* ":PORT" on a kernel without IPv6 */
    if (spec[0] == ':' && first.code == GS_EIO) {
        addr.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = addr.v4.sin_port};
        return listen_on(&addr, spec, ret_fd, ret_port, err);
    }
    return gs_fail(err, first.code, "%s", first.msg);
}
