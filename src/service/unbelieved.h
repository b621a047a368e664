/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_UNBELIEVED_H
#define GPUSHARE_SERVICE_UNBELIEVED_H

#include <stdint.h>

struct gs_service;

/*
 * Bound pods whose recorded GPU index is missing, out of range or contradicts the node get one
 * Warning Event each, so that their owner learns why a whole node looks full. About 4,096 pods are
 * remembered as told; a few are told per round. Of the thread that ticks.
 */
void gs_unbelieved_tick(struct gs_service *service, int64_t now_ns);

#endif
