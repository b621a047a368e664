/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/base/slice.h"

enum { ANSWER_BYTES_MAX = 256 << 20 };

/* What all clients of a run share; constant while they run, but for sets[].next, next_place and
 * stop. */
struct run {
    const struct load_settings *set;
    struct load_set *sets;
    struct sockaddr_in extender, api;
    uint8_t pattern[LOAD_VERBS]; /* verbs in turn */
    uint32_t pattern_len;
    int64_t begin_ns;
    atomic_uint_fast64_t next_place; /* in the open loop's one row of requests */
    atomic_bool stop;                /* somebody ran out of things to send */
};

struct client {
    struct run *run;
    uint32_t number;
    pthread_t thread;
    int fds[2]; /* extender, API server; -1: not connected */
    struct gs_buf answer;
    struct load_result seen;
};

int load_address(const char *text, struct sockaddr_in *ret, struct gs_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";
    uint32_t port = 0;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (colon && (size_t)(colon - text) < sizeof(host))
        memcpy(host, text, (size_t)(colon - text));
    if (!colon || !gs_parse_u32(colon + 1, strlen(colon + 1), &port) || !port || port > 65535 ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return gs_fail(err, GS_EINVAL, "\"%.100s\" is no ADDR:PORT", text);
    address.sin_port = htons((uint16_t)port);
    *ret = address;
    return 0;
}

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* ---- one request ---- */

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    struct timeval patience = {.tv_sec = 60};
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool receive_more(int fd, struct gs_buf *to)
{
    size_t room = to->cap - to->len > 65536 ? to->cap - to->len - 1 : 65536;
    char *at = gs_buf_reserve(to, room);
    if (!at)
        return false;
    for (;;) {
        ssize_t got = recv(fd, at, room, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        gs_buf_advance(to, (size_t)got);
        return true;
    }
}

/* The length that the head at `text` announces; false when it does not. */
static bool content_length(const char *text, size_t len, size_t *ret)
{
    static const char key[] = "\r\ncontent-length:";
    for (const char *at = text; at + sizeof(key) < text + len; at++) {
        if (strncasecmp(at, key, sizeof(key) - 1) != 0)
            continue;
        at += sizeof(key) - 1;
        at += strspn(at, " ");
        uint64_t value;
        if (!gs_parse_u64(at, strspn(at, "0123456789"), &value) || value > ANSWER_BYTES_MAX)
            return false;
        *ret = (size_t)value;
        return true;
    }
    return false;
}

/* Head and body of one answer into `to`; *ret_head is the head's length. */
static bool receive(int fd, struct gs_buf *to, size_t *ret_head)
{
    const char *end = NULL;
    size_t body;
    gs_buf_reset(to);
    while (!end) {
        if (!receive_more(fd, to))
            return false;
        end = memmem(to->data, to->len, "\r\n\r\n", 4);
    }
    size_t head = (size_t)(end - to->data) + 4;
    if (!content_length(to->data, head, &body))
        return false;
    while (to->len < head + body) {
        if (!receive_more(fd, to))
            return false;
    }
    *ret_head = head;
    return true;
}

static bool good(const struct gs_buf *answer, size_t head, const char *tail)
{
    if (head < 12 || answer->data[9] != '2')
        return false;
    size_t len = tail ? strlen(tail) : 0;
    return answer->len - head >= len &&
           (!len || memcmp(answer->data + answer->len - len, tail, len) == 0);
}

static void note_error(struct client *client, enum load_verb verb, const char *what)
{
    struct load_result *seen = &client->seen;
    seen->errors[verb]++;
    if (seen->first_error[0])
        return;
    size_t len = client->answer.len < 150 ? client->answer.len : 150;
    snprintf(seen->first_error, sizeof(seen->first_error), "%s: %s%.*s", load_verb_name(verb), what,
             (int)len, len ? client->answer.data + client->answer.len - len : "");
}

static bool keep_sample(struct load_samples *samples, int64_t ns)
{
    if (samples->count == samples->room) {
        size_t room = samples->room ? samples->room * 2 : 4096;
        int64_t *wider = reallocarray(samples->ns, room, sizeof(*wider));
        if (!wider)
            return false;
        samples->ns = wider;
        samples->room = room;
    }
    samples->ns[samples->count++] = ns;
    return true;
}

/* False: the connection is of no use any more. */
static bool exchange(struct client *client, const struct load_set *set, uint32_t item,
                     enum load_verb verb)
{
    int *fd = &client->fds[set->at_api];
    size_t begin = item ? set->ends[item - 1] : 0, head;
    if (*fd < 0)
        *fd = connect_to(set->at_api ? &client->run->api : &client->run->extender);
    gs_buf_reset(&client->answer);
    if (*fd < 0 || !send_all(*fd, set->text.data + begin, set->ends[item] - begin) ||
        !receive(*fd, &client->answer, &head)) {
        note_error(client, verb, "no answer ");
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return false;
    }
    if (!good(&client->answer, head, set->tail))
        note_error(client, verb, "answer ends in ");
    return true;
}

/* ---- a client ---- */

struct turn {
    uint64_t place;   /* in the pattern of verbs */
    int64_t begin_ns; /* of the request's time */
};

/* The client's n-th request. In an open loop a client that is free takes the row's next request,
 * whose time begins when it was due: one that finds all clients waiting for answers is late, and
 * that is what its sender would feel. Else clients begin at different places of the pattern, or all
 * would bind at once. False: there is none. */
static bool next_turn(const struct client *client, uint64_t n, struct turn *ret)
{
    struct run *run = client->run;
    const struct load_settings *set = run->set;
    if (!set->rate) {
        uint64_t share =
            set->requests / set->clients + (client->number < set->requests % set->clients);
        *ret = (struct turn){n + client->number, now_ns()};
        return !set->requests || n < share;
    }
    uint64_t place = atomic_fetch_add_explicit(&run->next_place, 1, memory_order_relaxed);
    int64_t due = run->begin_ns + (int64_t)(place * (uint64_t)GS_NS_PER_S / set->rate);
    *ret = (struct turn){place, due};
    if (set->requests && place >= set->requests)
        return false;
    const struct timespec at = gs_clock_wait_until(due);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
    return true;
}

/* False when the verb has nothing left. */
static bool pick_item(struct client *client, struct load_set *set, uint64_t n, uint32_t *ret)
{
    if (!set->once && client->run->set->clients == 1) {
        *ret = (uint32_t)(n % set->count);
        return true;
    }
    uint32_t item = atomic_fetch_add_explicit(&set->next, 1, memory_order_relaxed);
    if (set->once && item >= set->count)
        return false;
    *ret = item % set->count;
    return true;
}

static void *client_main(void *arg)
{
    struct client *client = arg;
    struct run *run = client->run;
    const struct load_settings *set = run->set;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    for (uint64_t n = 0; !atomic_load_explicit(&run->stop, memory_order_relaxed); n++) {
        struct turn turn;
        if (!next_turn(client, n, &turn) ||
            (set->duration_ns && turn.begin_ns - run->begin_ns > set->duration_ns))
            break;
        enum load_verb verb = run->pattern[turn.place % run->pattern_len];
        uint32_t item;
        if (!pick_item(client, &run->sets[verb], n, &item)) {
            atomic_store(&run->stop, true);
            break;
        }
        if (!exchange(client, &run->sets[verb], item, verb))
            continue;
        if (n >= set->warmup && !keep_sample(&client->seen.samples[verb], now_ns() - turn.begin_ns))
            note_error(client, verb, "out of memory ");
    }
    client->seen.end_ns = now_ns();
    return NULL;
}

/* ---- a run ---- */

static bool merge(struct load_result *to, const struct load_result *from)
{
    for (int v = 0; v < LOAD_VERBS; v++) {
        to->errors[v] += from->errors[v];
        for (size_t i = 0; i < from->samples[v].count; i++) {
            if (!keep_sample(&to->samples[v], from->samples[v].ns[i]))
                return false;
        }
    }
    if (!to->first_error[0])
        memcpy(to->first_error, from->first_error, sizeof(to->first_error));
    if (from->end_ns > to->end_ns)
        to->end_ns = from->end_ns;
    return true;
}

void load_result_release(struct load_result *result)
{
    for (int v = 0; v < LOAD_VERBS; v++)
        free(result->samples[v].ns);
    *result = (struct load_result){0};
}

static void client_release(struct client *client)
{
    for (int i = 0; i < 2; i++) {
        if (client->fds[i] >= 0)
            close(client->fds[i]);
    }
    gs_buf_release(&client->answer);
    load_result_release(&client->seen);
}

static int run_clients(struct run *run, struct client *clients, struct gs_error *err)
{
    uint32_t started = 0, count = run->set->clients;
    run->begin_ns = now_ns();
    for (; started < count; started++) {
        clients[started] = (struct client){
            .run = run, .number = started, .fds = {-1, -1}, .answer = GS_BUF(ANSWER_BYTES_MAX)};
        if (pthread_create(&clients[started].thread, NULL, client_main, &clients[started]) != 0)
            break;
    }
    if (started < count)
        atomic_store(&run->stop, true);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(clients[i].thread, NULL);
    return started == count ? 0 : gs_fail(err, GS_EIO, "cannot start %u threads", count);
}

int load_run(const struct load_settings *set, struct load_set *sets, struct load_result *ret,
             struct gs_error *err)
{
    struct run run = {.set = set, .sets = sets};
    struct load_result all = {0};
    if (load_address(set->extender, &run.extender, err) < 0 ||
        load_address(set->api + strlen("http://"), &run.api, err) < 0)
        return -1;
    struct client *clients = calloc(set->clients, sizeof(*clients));
    if (!clients)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < set->clients; i++)
        clients[i].fds[0] = clients[i].fds[1] = -1;
    for (uint8_t v = 0; v < LOAD_VERBS; v++) {
        if (set->verbs[v])
            run.pattern[run.pattern_len++] = v;
    }
    int result = run_clients(&run, clients, err);
    for (uint32_t i = 0; i < set->clients; i++) {
        if (result == 0 && !merge(&all, &clients[i].seen))
            result = gs_fail_nomem(err);
        client_release(&clients[i]);
    }
    free(clients);
    if (result < 0) {
        load_result_release(&all);
        return -1;
    }
    all.begin_ns = run.begin_ns;
    *ret = all;
    return 0;
}
