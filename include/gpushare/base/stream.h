/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_BASE_STREAM_H
#define GPUSHARE_BASE_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "gpushare/base/buf.h"

/* Appends what the stream still has; it stays open, and its place is undefined once the buffer has
 * failed (its ceiling, or memory: see gs_buf_failed()). False: the stream cannot be read. */
bool gs_buf_read_stream(struct gs_buf *buf, FILE *file);

#endif
