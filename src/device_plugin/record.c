/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/record.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/base/log.h"

enum { FILE_BYTES_MAX = 256 << 10 };

/* In an arena of its own; the old one goes. */
static int take_text(struct record *record, struct gs_slice text, struct gs_error *err)
{
    struct gs_arena arena = {0};
    struct gs_inventory found;
    const char *copy = gs_arena_strndup(&arena, text.at, text.len);
    int result = copy ? gs_codec_inventory_decode(text, &arena, &found, err) : gs_fail_nomem(err);
    if (result == 0 && (!found.node || strcmp(found.node, record->node) != 0))
        result = gs_fail(err, GS_EPROTO, "it is of another node");
    if (result < 0) {
        gs_arena_release(&arena);
        return -1;
    }
    gs_arena_release(&record->arena);
    record->arena = arena;
    record->now = found;
    record->text = (struct gs_slice){copy, text.len};
    return 0;
}

static int read_file(struct record *record, struct gs_error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    if (gs_file_read(record->path, FILE_BYTES_MAX, &text, &len, err) < 0)
        return -1;
    if (take_text(record, (struct gs_slice){text, len}, err) < 0)
        return -1;
    if (record->now.gpu_count || record->now.other_count)
        return 0;
    gs_arena_release(&record->arena);
    record->now = (struct gs_inventory){0};
    record->text = (struct gs_slice){0};
    return gs_fail(err, GS_EPROTO, "it has no GPUs");
}

void record_open(struct record *record, const char *dir, const char *domain, const char *node)
{
    struct gs_error err = {0};
    *record = (struct record){.node = node};
    snprintf(record->folder, sizeof(record->folder), "%.320s/gpushare-%.160s", dir, domain);
    snprintf(record->path, sizeof(record->path), "%s/record.json", record->folder);
    record->on_host = read_file(record, &err) == 0;
    if (!record->on_host && err.code != GS_ENOENT)
        gs_log(GS_LOG_WARN, "the node's record on the host is ignored",
               GS_STR("file", record->path), GS_STR("error", err.msg));
}

void record_release(struct record *record)
{
    gs_arena_release(&record->arena);
}

/* False: out of memory. */
static bool print(const struct record *record, struct gs_inventory inventory, struct gs_buf *out)
{
    inventory.node = record->node;
    inventory.others = record->now.others;
    inventory.other_count = record->now.other_count;
    gs_buf_reset(out);
    gs_codec_inventory_encode(out, &inventory);
    gs_buf_putc(out, '\n');
    return !gs_buf_failed(out);
}

void record_take_node(struct record *record, const struct gs_node *node)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_BYTES_MAX);
    const struct gs_inventory found = {.unit = node->unit,
                                       .gpus = node->gpus,
                                       .gpu_count = node->inventory ? node->gpu_count : 0,
                                       .unit_doubted = node->unit_doubted,
                                       .rev = node->inventory_rev,
                                       .mps = record->now.mps};
    bool newer = found.unit && (!found.rev || found.rev >= record->now.rev);
    if (newer && print(record, found, &text)) /* without memory the next reading brings it */
        record->on_host &= take_text(record, (struct gs_slice){text.data, text.len}, NULL) < 0;
}

bool record_set_others(struct record *record, const char *const *uuids, uint32_t count)
{
    bool same = count == record->now.other_count;
    for (uint32_t i = 0; same && i < count; i++)
        same = strcmp(record->now.others[i], uuids[i]) == 0;
    const char **others = same ? NULL : gs_arena_calloc(&record->arena, count + 1, sizeof(*others));
    bool whole = others != NULL;
    for (uint32_t i = 0; whole && i < count; i++)
        whole = (others[i] = gs_arena_strdup(&record->arena, uuids[i])) != NULL;
    if (!whole)
        return false;
    record->now.others = others;
    record->now.other_count = count;
    return true;
}

/* The whole of it or nothing, also when the power goes. */
static int write_file(const struct record *record, struct gs_error *err)
{
    if (mkdir(record->folder, 0700) < 0 && errno != EEXIST)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", record->folder);
    return gs_file_replace(record->path, record->text.at, record->text.len, 0600, true, err);
}

/* Of what is so now, or of the same with a larger rev. False: it is recorded. */
static bool is_news(const struct record *record, struct gs_inventory now, struct gs_buf *text)
{
    now.rev = record->now.rev;
    if (print(record, now, text) && now.rev &&
        gs_slice_eq(record->text, (struct gs_slice){text->data, text->len}))
        return false;
    now.rev = now.rev < INT64_MAX ? now.rev + 1 : INT64_MAX;
    return print(record, now, text);
}

int64_t record_keep(struct record *record, const struct gs_inventory *now)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_BYTES_MAX);
    struct gs_error err = {0};
    bool news = is_news(record, *now, &text);
    if (news ? take_text(record, (struct gs_slice){text.data, text.len}, &err) < 0
             : record->on_host || !record->text.len)
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
