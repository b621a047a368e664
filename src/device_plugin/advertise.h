/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/ids_in_use.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/port/gpu_source.h"

/*
 * GPUs as the kubelet and the API see them: one device id per unit of memory, and the inventory.
 * An id is "xxxxxxxx-n": a hash of the GPU's UUID and the unit's number, at most 15 bytes, so that
 * a list of all units stays below the kubelet's 4 MiB and ids survive a restart.
 */
enum { ADVERTISE_ID_BYTES = 20, ADVERTISE_MAX_DEVICES = 107000 };

/* Divides every GPU's MiB, less what is reserved, by the unit, floored, into mem_units. */
void advertise_divide(struct gs_gpu_set *set, enum gs_unit unit);

/* GS_EINVAL: what is reserved of each GPU leaves no unit of one present. GS_ETOOBIG: one id per
 * unit does not fit the kubelet's limit in the worst case; the message names the smallest unit that
 * fits. */
int advertise_check(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_error *err);

struct advertised {
    const char **ids; /* *caller frees* with one free(); those in use are *borrowed* from in_use */
    size_t count;
    size_t
        foreign; /* of these, ids in use that are not ours: another plugin's, or another unit's */
    size_t dropped; /* free units that are not listed, so that those in use fit the limit */
};

/*
 * The devices of the set, as many as there are units. Ids that pods hold are listed in any case,
 * foreign ones in place of as many free ones of ours, so that capacity stays what it is; only when
 * pods hold more than there is, it is more.
 *
 * All are Healthy, those of a GPU that is sick or gone as well. A unit says how much memory there
 * is, not where: the kubelet draws ids at random, and a pod on one GPU holds ids made for another;
 * newer kubelets fail a pod that they have to start anew when one of its ids is Unhealthy. What is
 * not to be used the inventory says, which placement reads, here and in the extender.
 *
 * Errors as advertise_check(), and GS_ENOMEM.
 */
int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      const struct ids_in_use *in_use, struct advertised *ret,
                      struct gs_error *err);

/* What --print-inventory prints: one line per GPU and what would be advertised. */
void advertise_print(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out);
