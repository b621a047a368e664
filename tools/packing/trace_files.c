/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_files.h"

#include <errno.h>

#include "gpushare/base/file.h"

enum { FILE_BYTES_MAX = 512 << 20 };

static int read_file(const char *path, struct gs_buf *text, struct gs_error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "%.160s", path);
    int failed = gs_buf_read_stream(text, file) ? 0 : errno;
    fclose(file);
    if (failed)
        return gs_fail_errno(err, GS_EIO, failed, "%.160s", path);
    if (gs_buf_failed(text))
        return gs_fail(err, (enum gs_code)gs_buf_failed(text), "%.160s is too large", path);
    return 0;
}

static struct gs_slice text_of(const struct gs_buf *buf)
{
    return (struct gs_slice){buf->data ? buf->data : "", buf->len};
}

int trace_files_read(const char *nodes_path, const char *pods_path, struct gs_trace *ret,
                     struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_BYTES_MAX);
    if (read_file(nodes_path, &text, err) < 0)
        return -1;
    if (gs_trace_read_nodes(ret, text_of(&text), err) < 0)
        return gs_error_prefix(err, "%.120s", nodes_path);
    gs_buf_reset(&text);
    if (read_file(pods_path, &text, err) < 0)
        return -1;
    if (gs_trace_read_pods(ret, text_of(&text), err) < 0)
        return gs_error_prefix(err, "%.120s", pods_path);
    return 0;
}

int trace_files_read_sequence(const char *path, const struct gs_trace *trace,
                              struct gs_trace_sequence *ret, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_BYTES_MAX);
    if (read_file(path, &text, err) < 0)
        return -1;
    if (gs_trace_read_sequence(ret, trace, text_of(&text), err) < 0)
        return gs_error_prefix(err, "%.120s", path);
    return 0;
}

int trace_files_write(const char *path, struct gs_slice text, struct gs_error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", path);
    bool wrote = fwrite(text.at, 1, text.len, file) == text.len;
    if (fclose(file) != 0 || !wrote)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", path);
    return 0;
}
