/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_files.h"

#include <errno.h>
#include <stdio.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"

enum { FILE_BYTES_MAX = 512 << 20 };

static int read_file(const char *path, char **ret, struct gs_slice *ret_text, struct gs_error *err)
{
    free(*ret);
    *ret = NULL;
    if (gs_file_read(path, FILE_BYTES_MAX, ret, &ret_text->len, err) < 0)
        return -1;
    ret_text->at = *ret;
    return 0;
}

int trace_files_read(const char *nodes_path, const char *pods_path, struct gs_trace *ret,
                     struct gs_error *err)
{
    _cleanup_free_ char *kept = NULL;
    struct gs_slice text;
    if (read_file(nodes_path, &kept, &text, err) < 0)
        return -1;
    if (gs_trace_read_nodes(ret, text, err) < 0)
        return gs_error_prefix(err, "%.120s", nodes_path);
    if (read_file(pods_path, &kept, &text, err) < 0)
        return -1;
    if (gs_trace_read_pods(ret, text, err) < 0)
        return gs_error_prefix(err, "%.120s", pods_path);
    return 0;
}

int trace_files_read_sequence(const char *path, const struct gs_trace *trace,
                              struct gs_trace_sequence *ret, struct gs_error *err)
{
    _cleanup_free_ char *kept = NULL;
    struct gs_slice text;
    if (read_file(path, &kept, &text, err) < 0)
        return -1;
    if (gs_trace_read_sequence(ret, trace, text, err) < 0)
        return gs_error_prefix(err, "%.120s", path);
    return 0;
}
