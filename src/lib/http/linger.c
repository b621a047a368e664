/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

/* A request that is refused by its head is answered while its body arrives. Closing a socket with
 * unread bytes sends a reset, which makes the client's kernel discard the answer. So a copy of the
 * descriptor stays open for a moment, and what arrives is discarded (RFC 9112, section 9.6). */

enum { BUDGET_BYTES = 16 << 20, READ_BYTES = 16 << 10 };
#define LINGER_NS (2 * GS_NS_PER_S)

static void release(struct gs_linger *linger, unsigned slot)
{
    close(linger->slots[slot].fd); /* closing the last copy removes it from epoll */
    linger->slots[slot].until_ns = 0;
}

static unsigned free_slot(const struct gs_linger *linger)
{
    unsigned slot = 0;
    while (slot < GS_LINGER_MAX && linger->slots[slot].until_ns)
        slot++;
    return slot;
}

void gs_linger_add(struct gs_http_server *server, int fd)
{
    struct gs_linger *linger = &server->linger;
    pthread_mutex_lock(&linger->lock);
    unsigned slot = free_slot(linger);
    int copy = slot < GS_LINGER_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy >= 0) {
        linger->slots[slot].fd = copy;
        linger->slots[slot].until_ns = gs_now_ns() + LINGER_NS;
        linger->slots[slot].budget_bytes = BUDGET_BYTES;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
        shutdown(copy, SHUT_WR);
        if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, copy, &event) < 0)
            release(linger, slot);
    }
    pthread_mutex_unlock(&linger->lock);
}

/* False: the peer has closed, or has sent more than the budget. */
static bool read_some(struct gs_linger *linger, unsigned slot)
{
    char scratch[READ_BYTES];
    ssize_t got = recv(linger->slots[slot].fd, scratch, sizeof(scratch), MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0 || (size_t)got > linger->slots[slot].budget_bytes)
        return false;
    linger->slots[slot].budget_bytes -= (size_t)got;
    return true;
}

void gs_linger_event(struct gs_linger *linger, unsigned slot)
{
    pthread_mutex_lock(&linger->lock);
    if (linger->slots[slot].until_ns && !read_some(linger, slot))
        release(linger, slot);
    pthread_mutex_unlock(&linger->lock);
}

void gs_linger_sweep(struct gs_linger *linger, int64_t now_ns)
{
    pthread_mutex_lock(&linger->lock);
    for (unsigned i = 0; i < GS_LINGER_MAX; i++) {
        if (linger->slots[i].until_ns && linger->slots[i].until_ns <= now_ns)
            release(linger, i);
    }
    pthread_mutex_unlock(&linger->lock);
}
