/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "trace.h"

/* Trace files by name; failures name the file. What was read is released by the caller. */
int trace_files_read(const char *nodes_path, const char *pods_path, struct gs_trace *ret,
                     struct gs_error *err);
int trace_files_read_sequence(const char *path, const struct gs_trace *trace,
                              struct gs_trace_sequence *ret, struct gs_error *err);
