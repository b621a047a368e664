/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_ADVERTISE_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_ADVERTISE_H

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/service/gpu_source.h"

/*
 * GPUs as the kubelet and the API see them: one device id per unit of memory, and the inventory.
 * An id is "xxxxxxxx-n": a hash of the GPU's UUID and the unit's number, at most 15 bytes, so that
 * a list of all units stays below the kubelet's 4 MiB and ids survive a restart.
 */
enum { ADVERTISE_ID_BYTES = 20, ADVERTISE_MAX_DEVICES = 107000 };

/* Divides every GPU's MiB by the unit, floored, into mem_units. */
void advertise_divide(struct gs_gpu_set *set, enum gs_unit unit);

/*
 * The devices of the set. A GPU that is gone has Unhealthy units; one that is only sick keeps its
 * units healthy (flipping them endangers its pods at the next kubelet restart): placement reads the
 * inventory. GS_ETOOBIG: the list would not fit the kubelet's limit even in the worst case (all
 * unhealthy, with NUMA nodes); the message names the smallest unit that fits.
 * *ret_devices: *caller frees* with one free().
 */
int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      struct gs_dp_device **ret_devices, size_t *ret_count, struct gs_error *err);

/* The inventory annotation's text. */
void advertise_inventory(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out);

/* What --print-inventory prints: one line per GPU and what would be advertised. */
void advertise_print(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out);

#endif
