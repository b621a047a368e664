/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file server that cannot be beaten on loopback: sendfile() of regular files in the working
 * directory. "Start to ready" is measured with it on both sides, so that the same bytes come from
 * the same server:
 *
 *   GET /pods                                   the file, as curl downloads it
 *   GET /api/v1/pods?limit=500&continue=1000    a page of it, as an API server would cut it
 *   GET /api/v1/pods?watch=true&…               a watch that tells nothing
 *
 *   cd DIR && static_files PORT
 *
 * DIR holds lists called "nodes" and "pods", indexed before the port is opened. A thread serves
 * each connection.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/list.h"

/* Where a list's items lie in its file. */
struct list {
    const char *name;
    int file;
    const char *bytes;
    size_t len;
    struct item {
        off_t begin, end;
    } * items;
    size_t count, room;
    struct gs_list_meta meta;
};

static struct list lists[] = {{.name = "nodes"}, {.name = "pods"}};

static int add_item(void *ctx, struct gs_scan *scan)
{
    struct list *list = ctx;
    struct gs_slice item;
    if (!gs_scan_raw(scan, &item))
        return 0;
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 1024;
        list->items = realloc(list->items, list->room * sizeof(*list->items));
        if (!list->items)
            return -1;
    }
    const off_t begin = item.at - list->bytes;
    list->items[list->count++] = (struct item){begin, begin + (off_t)item.len};
    return 0;
}

static bool index_list(struct list *list)
{
    struct gs_error err = {0};
    struct stat about;
    list->file = open(list->name, O_RDONLY | O_CLOEXEC);
    if (list->file < 0 || fstat(list->file, &about) < 0 || about.st_size == 0)
        return false;
    list->len = (size_t)about.st_size;
    void *bytes = mmap(NULL, list->len, PROT_READ, MAP_PRIVATE, list->file, 0);
    if (bytes == MAP_FAILED)
        return false;
    list->bytes = bytes;
    int result =
        gs_codec_list_items((struct gs_slice){bytes, list->len}, add_item, list, &list->meta, &err);
    munmap(bytes, list->len);
    return result == 0;
}

static bool say(int conn, const char *text, bool more)
{
    const size_t len = strlen(text);
    return send(conn, text, len, MSG_NOSIGNAL | (more ? MSG_MORE : 0)) == (ssize_t)len;
}

static bool say_head(int conn, int status, size_t len, bool more)
{
    char head[200];
    snprintf(head, sizeof(head),
             "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             status, status == 200 ? "OK" : "Not Found", len);
    return say(conn, head, more);
}

static bool send_part(int conn, int file, off_t begin, off_t end)
{
    while (begin < end) {
        if (sendfile(conn, file, &begin, (size_t)(end - begin)) <= 0)
            return false;
    }
    return true;
}

static size_t argument(const char *query, const char *name, size_t otherwise)
{
    const char *found = strstr(query, name);
    uint32_t value;
    if (!found)
        return otherwise;
    found += strlen(name);
    return gs_parse_u32(found, strspn(found, "0123456789"), &value) ? value : otherwise;
}

static bool send_page(int conn, const struct list *list, const char *query)
{
    static const char tail[] = "]}";
    size_t first = argument(query, "continue=", 0);
    size_t limit = argument(query, "limit=", list->count);
    char head[400];
    if (first > list->count)
        first = list->count;
    size_t left = list->count - first;
    size_t count = limit < left ? limit : left;
    off_t begin = count ? list->items[first].begin : 0;
    off_t end = count ? list->items[first + count - 1].end : 0;
    int len = snprintf(head, sizeof(head),
                       "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":"
                       "{\"resourceVersion\":\"%s\"",
                       list->meta.resource_version);
    if (count < left)
        len += snprintf(head + len, sizeof(head) - (size_t)len,
                        ",\"continue\":\"%zu\",\"remainingItemCount\":%zu", first + count,
                        left - count);
    len += snprintf(head + len, sizeof(head) - (size_t)len, "},\"items\":[");
    return say_head(conn, 200, (size_t)len + (size_t)(end - begin) + sizeof(tail) - 1, true) &&
           say(conn, head, true) && send_part(conn, list->file, begin, end) &&
           say(conn, tail, false);
}

/* Until the client goes away. */
static bool be_quiet(int conn)
{
    char byte;
    return say(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false) &&
           recv(conn, &byte, 1, 0) > 0;
}

/* target: "/pods", "/api/v1/pods?…" */
static bool answer(int conn, char *target)
{
    static const char api[] = "/api/v1";
    bool paged = strncmp(target, api, sizeof(api) - 1) == 0;
    char *name = target + (paged ? sizeof(api) : 1);
    char *query = strchr(name, '?');
    if (query)
        *query++ = '\0';
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct list *list = &lists[i];
        if (strcmp(name, list->name) != 0)
            continue;
        if (paged && query && strstr(query, "watch=true"))
            return be_quiet(conn);
        if (paged)
            return send_page(conn, list, query ? query : "");
        return say_head(conn, 200, list->len, true) &&
               send_part(conn, list->file, 0, (off_t)list->len);
    }
    return say_head(conn, 404, 0, false);
}

/* A request's head comes in one piece from curl, and nothing after it before its answer. */
static void *serve(void *arg)
{
    _cleanup_close_ int conn = (int)(intptr_t)arg;
    char head[8192];
    for (;;) {
        ssize_t got = recv(conn, head, sizeof(head) - 1, 0);
        if (got <= 0)
            return NULL;
        head[got] = '\0';
        if (strncmp(head, "GET /", 5) != 0)
            return NULL;
        head[4 + strcspn(head + 4, " \r\n")] = '\0';
        if (!answer(conn, head + 4))
            return NULL;
    }
}

static int listen_on(uint16_t port)
{
    int one = 1;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listener >= 0 && (bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
                          listen(listener, 16) < 0)) {
        close(listener);
        return -1;
    }
    return listener;
}

int main(int argc, char **argv)
{
    uint32_t port;
    pthread_attr_t detached;
    if (argc != 2 || !gs_parse_u32(argv[1], strlen(argv[1]), &port) || port > 65535) {
        fputs("usage: static_files PORT\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (!index_list(&lists[i])) {
            fprintf(stderr, "static_files: %s is no list\n", lists[i].name);
            return 1;
        }
    }
    signal(SIGPIPE, SIG_IGN);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int listener = listen_on((uint16_t)port);
    if (listener < 0) {
        perror("static_files");
        return 1;
    }
    for (;;) {
        pthread_t thread;
        int one = 1, conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (conn < 0)
            continue;
        setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (pthread_create(&thread, &detached, serve, (void *)(intptr_t)conn) != 0)
            close(conn);
    }
}
