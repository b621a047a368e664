/* SPDX-License-Identifier: Apache-2.0 */
/* crowd SOCKET COUNT: so many connections to a socket, on which nothing is ever said. Those that
 * its queue does not take at once, or that are closed on the other side, are tried again until this
 * process is ended. A line whenever it changes: "connected=N closed=N". */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { COUNT_MAX = 1000, AGAIN_MS = 100 };

static int connect_to(const struct sockaddr_un *at)
{
    static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int fd = socket(AF_UNIX, kinds[i] | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
            return fd;
        int error = errno;
        close(fd);
        if (error != EPROTOTYPE)
            break;
    }
    return -1;
}

int main(int argc, char **argv)
{
    static struct pollfd all[COUNT_MAX];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    long connected = 0, closed = 0;
    if (count < 1 || count > COUNT_MAX || strlen(argv[1]) >= sizeof(at.sun_path)) {
        fputs("usage: crowd SOCKET COUNT\n", stderr);
        return 2;
    }
    memcpy(at.sun_path, argv[1], strlen(argv[1]));
    for (long i = 0; i < count; i++)
        all[i] = (struct pollfd){-1, POLLIN, 0};
    for (;;) {
        long before = connected + closed;
        for (long i = 0; i < count; i++) {
            if (all[i].fd >= 0 && all[i].revents) {
                close(all[i].fd);
                all[i].fd = -1;
                connected--;
                closed++;
            }
            if (all[i].fd < 0)
                connected += (all[i].fd = connect_to(&at)) >= 0;
            all[i].revents = 0;
        }
        if (connected + closed != before) {
            printf("connected=%ld closed=%ld\n", connected, closed);
            fflush(stdout);
        }
        poll(all, (nfds_t)count, AGAIN_MS);
    }
}
