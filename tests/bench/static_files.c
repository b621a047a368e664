/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A static file server that cannot be beaten on loopback: sendfile() of regular files in the
 * working directory, one connection after the other. curl's download from it is what "start to
 * ready" is compared with.
 *
 *   cd DIR && static_files PORT
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"

static void send_file(int conn, const char *name)
{
    _cleanup_close_ int file = strchr(name, '/') ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    struct stat about;
    char head[200];
    if (file < 0 || fstat(file, &about) < 0 || !S_ISREG(about.st_mode)) {
        static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        send(conn, missing, sizeof(missing) - 1, MSG_NOSIGNAL);
        return;
    }
    int len = snprintf(head, sizeof(head),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Connection: close\r\nContent-Length: %lld\r\n\r\n",
                       (long long)about.st_size);
    send(conn, head, (size_t)len, MSG_NOSIGNAL | MSG_MORE);
    off_t at = 0;
    while (at < about.st_size && sendfile(conn, file, &at, (size_t)(about.st_size - at)) > 0)
        ;
}

/* GET /NAME; a request's head comes in one piece from curl. */
static void serve(int conn)
{
    char head[4096];
    ssize_t got = recv(conn, head, sizeof(head) - 1, 0);
    if (got <= 0)
        return;
    head[got] = 0;
    if (strncmp(head, "GET /", 5) != 0)
        return;
    head[5 + strcspn(head + 5, " ?\r\n")] = 0;
    send_file(conn, head + 5);
}

int main(int argc, char **argv)
{
    uint32_t port;
    int one = 1;
    if (argc != 2 || !gs_parse_u32(argv[1], strlen(argv[1]), &port) || port > 65535) {
        fputs("usage: static_files PORT\n", stderr);
        return 2;
    }
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 16) < 0) {
        perror("static_files");
        return 1;
    }
    for (;;) {
        _cleanup_close_ int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (conn >= 0)
            serve(conn);
    }
}
