/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small device plugin for tests, which does what the device ids and its standard input say, and
 * tells on standard output what happens to it, a line each.
 *
 *   grpc_peer DIR                serves DIR/peer.sock as resource test/units, registers
 *   devices N HEALTHY            N devices of 20 characters, the first HEALTHY ones healthy
 *   quit
 *
 * Allocate: "fail" fails with an odd text; "slow" is answered by a thread after 100 ms; "late" is
 * answered only when nobody waits any more; anything else comes back as the environment IDS.
 * PreStartContainer: "fail" and "late" likewise.
 */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/num.h"
#include "gpushare/grpc/kubelet_link.h"

#define MAX_DEVICES 200000
#define MAX_IDS     ((size_t)2 << 20)

struct peer {
    bool quit;
    struct gs_loop *loop;
    struct gs_dp *dp;
    struct gs_loop_fd input;
    char line[512];
    size_t line_len;
    struct gs_dp_call *held;
};

static void say(const char *word, const char *more)
{
    printf("%s%s%s\n", word, *more ? " " : "", more);
    fflush(stdout);
}

/* ---- answers ---- */

static bool asks_for(const struct gs_dp_ids *ids, const char *id)
{
    return ids->count > 0 && strcmp(ids->ids[0], id) == 0;
}

static void fail_oddly(struct gs_dp_call *call)
{
    struct gs_error why = {0};
    gs_fail(&why, GS_ECONFLICT,
            "GPU 3 is at 100%% of its M\xC3\xA4"
            "chtigkeit %%41 \xFF");
    gs_dp_call_fail(call, &why);
}

static void answer_with_ids(struct gs_dp_call *call, const struct gs_dp_ids *wanted, size_t count)
{
    struct gs_buf text = GS_BUF(MAX_IDS);
    for (size_t i = 0; i < wanted->count; i++)
        gs_buf_printf(&text, "%s%s", i > 0 ? "," : "", wanted->ids[i]);
    const struct gs_dp_pair envs[] = {{"IDS", text.data ? text.data : ""}, {"EMPTY", ""}};
    const struct gs_dp_pair annotations[] = {{"test/annotation", "yes"}};
    const struct gs_dp_path mount = {"/on/host", "/in/container"};
    const struct gs_dp_path device = {"/dev/host", "/dev/container"};
    const char *const names[] = {"example.com/gpu=0"};
    const struct gs_dp_container answer = {
        .envs = envs,
        .env_count = 2,
        .mounts = &mount,
        .mount_count = 1,
        .devices = &device,
        .device_count = 1,
        .annotations = annotations,
        .annotation_count = 1,
        .cdi_devices = names,
        .cdi_device_count = 1,
    };
    gs_dp_allocate_reply(call, &answer, count);
    gs_buf_release(&text);
}

struct job {
    struct gs_loop *loop;
    struct gs_dp_call *call;
    struct gs_loop_task task;
};

static void finish_job(void *ctx)
{
    struct job *job = ctx;
    const struct gs_dp_container nothing = {0};
    gs_dp_allocate_reply(job->call, &nothing, 1);
    free(job);
}

static void *work_slowly(void *ctx)
{
    struct job *job = ctx;
    usleep(100000);
    job->task = (struct gs_loop_task){.fn = finish_job, .ctx = job};
    gs_loop_post(job->loop, &job->task);
    return NULL;
}

static void start_job(struct peer *peer, struct gs_dp_call *call)
{
    struct job *job = calloc(1, sizeof(*job));
    pthread_t thread;
    job->loop = peer->loop;
    job->call = call;
    pthread_create(&thread, NULL, work_slowly, job);
    pthread_detach(thread);
}

static void hold(struct peer *peer, struct gs_dp_call *call, const char *method)
{
    peer->held = call;
    say("held", method);
}

static void on_allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                        size_t count)
{
    if (asks_for(wanted, "fail"))
        fail_oddly(call);
    else if (asks_for(wanted, "slow"))
        start_job(ctx, call);
    else if (asks_for(wanted, "late"))
        hold(ctx, call, "allocate");
    else
        answer_with_ids(call, wanted, count);
}

static void on_pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    if (asks_for(ids, "fail"))
        fail_oddly(call);
    else if (asks_for(ids, "late"))
        hold(ctx, call, "pre_start");
    else
        gs_dp_pre_start_reply(call);
}

/* ---- events ---- */

static void on_link(void *ctx, enum gs_kubelet_link_event event, const struct gs_error *failure)
{
    static const char *const words[] = {"registered", "lost", "failed"};
    say(words[event], failure ? failure->msg : "");
}

/* ---- commands ---- */

static void set_devices(struct peer *peer, size_t count, size_t healthy)
{
    struct gs_error err = {0};
    struct gs_dp_device *devices = calloc(count + 1, sizeof(*devices));
    char(*ids)[32] = calloc(count + 1, sizeof(*ids));
    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "unit-%07zu-abcdefg", i % 10000000);
        devices[i] = (struct gs_dp_device){ids[i], i < healthy};
    }
    if (gs_dp_set_devices(peer->dp, devices, count, &err) < 0)
        say("devices-failed", err.msg);
    else
        say("devices", "");
    free(devices);
    free(ids);
}

static void on_command(struct peer *peer, const char *line)
{
    if (strcmp(line, "quit") == 0) {
        peer->quit = true;
    } else if (strcmp(line, "answer") == 0) {
        gs_dp_pre_start_reply(peer->held); /* nobody waits any more: it must be dropped */
        say("answered", "");
    } else if (strncmp(line, "devices ", 8) == 0) {
        const char *space = strchr(line + 8, ' ');
        uint32_t count, healthy;
        if (space && gs_parse_u32(line + 8, (size_t)(space - line - 8), &count) &&
            gs_parse_u32(space + 1, strlen(space + 1), &healthy) && count <= MAX_DEVICES)
            set_devices(peer, count, healthy);
    } else {
        say("unknown", line);
    }
}

static void on_input(void *ctx, short revents)
{
    struct peer *peer = ctx;
    ssize_t got =
        read(STDIN_FILENO, peer->line + peer->line_len, sizeof(peer->line) - peer->line_len - 1);
    if (got <= 0) {
        peer->quit = true;
        return;
    }
    peer->line_len += (size_t)got;
    peer->line[peer->line_len] = '\0';
    char *end;
    while ((end = strchr(peer->line, '\n')) != NULL) {
        *end = '\0';
        on_command(peer, peer->line);
        peer->line_len -= (size_t)(end + 1 - peer->line);
        memmove(peer->line, end + 1, peer->line_len + 1);
    }
}

static int serve(struct peer *peer, const char *dir, struct gs_error *err)
{
    static const struct gs_dp_ops ops = {on_allocate, on_pre_start};
    const struct gs_kubelet_link_options options = {
        .dir = dir,
        .endpoint = "peer.sock",
        .resource_name = "test/units",
        .event = on_link,
        .ctx = peer,
    };
    struct gs_kubelet_link *link = NULL;
    if (gs_dp_new(peer->loop, &ops, peer, &peer->dp, err) < 0)
        return -1;
    set_devices(peer, 10, 10);
    int result = gs_kubelet_link_new(peer->loop, peer->dp, &options, &link, err);
    if (result == 0) {
        say("listening", "");
        while (result == 0 && !peer->quit)
            result = gs_loop_step(peer->loop, INT64_MAX, err);
        gs_kubelet_link_free(link);
    }
    gs_dp_free(peer->dp);
    return result;
}

int main(int argc, char **argv)
{
    struct gs_error err = {0};
    struct peer peer = {.input = {.fn = on_input, .ctx = &peer}};
    if (argc != 2) {
        fprintf(stderr, "usage: grpc_peer DIR\n");
        return 2;
    }
    /* A fixed threshold: glibc would raise it at the first long list, and keep the memory of every
     * later one in its heap. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    if (gs_loop_new(gs_clock_system(), &peer.loop, &err) < 0 ||
        gs_loop_fd_add(peer.loop, &peer.input, STDIN_FILENO, POLLIN, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    int result = serve(&peer, argv[1], &err);
    if (result < 0)
        say("stopped", err.msg);
    gs_loop_fd_remove(peer.loop, &peer.input);
    gs_loop_free(peer.loop);
    return result < 0 ? 1 : 0;
}
