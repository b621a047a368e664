/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/base/log.h"

enum { PATH_BYTES = 512, FILE_BYTES_MAX = 256 << 10 };

struct record {
    char folder[PATH_BYTES], path[PATH_BYTES + 16];
    const char *node;
    struct gs_arena arena; /* of what follows */
    struct gs_inventory now;
    bool on_host;
    bool write_failed; /* said once */
};

static int read_file(struct record *record, struct gs_inventory *ret, struct gs_error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    if (gs_file_read(record->path, FILE_BYTES_MAX, &text, &len, err) < 0)
        return -1;
    struct gs_inventory found;
    if (gs_codec_inventory_decode((struct gs_slice){text, len}, &record->arena, &found, err) < 0)
        return -1;
    if (!found.node || strcmp(found.node, record->node) != 0)
        return gs_fail(err, GS_EPROTO, "it is of another node");
    if (found.gpu_count == 0)
        return gs_fail(err, GS_EPROTO, "it has no GPUs");
    *ret = found;
    return 0;
}

struct record *record_open(const char *dir, const char *domain, const char *node)
{
    struct record *record = calloc(1, sizeof(*record));
    struct gs_error err = {0};
    if (!record)
        return NULL;
    record->node = node;
    snprintf(record->folder, sizeof(record->folder), "%.320s/gpushare-%.160s", dir, domain);
    snprintf(record->path, sizeof(record->path), "%s/record.json", record->folder);
    record->on_host = read_file(record, &record->now, &err) == 0;
    if (!record->on_host && err.code != GS_ENOENT)
        gs_log(GS_LOG_WARN, "the node's record on the host is ignored",
               GS_STR("file", record->path), GS_STR("error", err.msg));
    return record;
}

void record_free(struct record *record)
{
    if (!record)
        return;
    gs_arena_release(&record->arena);
    free(record);
}

bool record_on_host(const struct record *record)
{
    return record && record->on_host;
}

const struct gs_inventory *record_now(const struct record *record)
{
    return &record->now;
}

/* Texts and GPUs in an arena of their own; the old ones go. */
static bool copy(struct record *record, const struct gs_inventory *from)
{
    struct gs_arena arena = {0};
    struct gs_inventory now = *from;
    struct gs_gpu *gpus = gs_arena_calloc(&arena, from->gpu_count + 1, sizeof(*gpus));
    const char **others = gs_arena_calloc(&arena, from->other_count + 1, sizeof(*others));
    bool whole = gpus && others;
    if (gpus && from->gpu_count)
        memcpy(gpus, from->gpus, from->gpu_count * sizeof(*gpus));
    for (uint32_t i = 0; whole && i < from->other_count; i++) {
        others[i] = gs_arena_strdup(&arena, from->others[i]);
        whole = others[i] != NULL;
    }
    if (!whole) {
        gs_arena_release(&arena);
        return false;
    }
    now.gpus = gpus;
    now.others = others;
    now.node = record->node;
    gs_arena_release(&record->arena);
    record->arena = arena;
    record->now = now;
    return true;
}

void record_take_node(struct record *record, const struct gs_node *node)
{
    const struct gs_inventory found = {.unit = node->unit,
                                       .gpus = node->gpus,
                                       .gpu_count = node->inventory ? node->gpu_count : 0,
                                       .unit_doubted = node->unit_doubted,
                                       .rev = node->inventory_rev,
                                       .mps = record->now.mps,
                                       .others = record->now.others,
                                       .other_count = record->now.other_count};
    bool newer = found.unit && (!found.rev || found.rev >= record->now.rev);
    if (!record->on_host || newer)
        copy(record, &found); /* without memory the next reading brings it */
}

static bool same_gpus(const struct gs_inventory *a, const struct gs_inventory *b)
{
    for (uint32_t i = 0; i < a->gpu_count; i++) {
        const struct gs_gpu *left = &a->gpus[i], *right = &b->gpus[i];
        if (left->idx != right->idx || left->mem_units != right->mem_units ||
            strcmp(left->uuid, right->uuid) != 0 || left->xid != right->xid)
            return false;
    }
    return true;
}

static bool same(const struct gs_inventory *a, const struct gs_inventory *b)
{
    if (a->unit != b->unit || a->mps != b->mps || a->unit_doubted != b->unit_doubted ||
        a->gpu_count != b->gpu_count || a->other_count != b->other_count || !same_gpus(a, b))
        return false;
    for (uint32_t i = 0; i < a->other_count; i++) {
        if (strcmp(a->others[i], b->others[i]) != 0)
            return false;
    }
    return true;
}

/* The whole of it or nothing, also when the power goes. */
static int write_file(const struct record *record, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_BYTES_MAX);
    gs_codec_inventory_encode(&text, &record->now);
    gs_buf_putc(&text, '\n');
    if (gs_buf_failed(&text))
        return gs_fail_nomem(err);
    if (mkdir(record->folder, 0700) < 0 && errno != EEXIST)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", record->folder);
    return gs_file_replace(record->path, text.data, text.len, 0600, true, err);
}

int64_t record_keep(struct record *record, const struct gs_inventory *now)
{
    struct gs_inventory next = *now;
    struct gs_error err = {0};
    bool changed = !record->now.rev || !same(&record->now, now);
    next.rev = record->now.rev < INT64_MAX ? record->now.rev + 1 : INT64_MAX;
    if ((changed && !copy(record, &next)) || (!changed && record->on_host))
        return record->now.rev;
    record->on_host = write_file(record, &err) == 0;
    if (!record->on_host && !record->write_failed)
        gs_log(GS_LOG_ERROR,
               "cannot write the node's record to the host: the next start has to wait for the API "
               "server",
               GS_STR("error", err.msg));
    record->write_failed = !record->on_host;
    return record->now.rev;
}
