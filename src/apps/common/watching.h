/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_WATCHING_H
#define GPUSHARE_APPS_COMMON_WATCHING_H

#include <stdatomic.h>

#include "gpushare/port/cluster.h"

/* The body of a watch's thread: gs_kube_ops.watch, begun again each second when it cannot begin
 * (out of memory), until *stop. A program whose watch ended would be alive and blind. */
void watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                         const struct gs_watch_sink *sink, const atomic_bool *stop);

#endif
