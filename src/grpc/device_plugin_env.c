/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device_plugin.pb-c.h"
#include "gpushare/grpc/device_plugin.h"
#include "pb.h"

/* A variable of an answer that was given before, as kubelets keep it. */

int gs_dp_answer_env(struct gs_arena *arena, const void *bytes, size_t len, const char *name,
                     const char **ret, struct gs_error *err)
{
    ProtobufCMessage *message = NULL;
    if (gs_pb_unpack(arena, &v1beta1__container_allocate_response__descriptor, bytes, len, &message,
                     err) < 0)
        return -1;
    const V1beta1__ContainerAllocateResponse *answer = (const void *)message;
    const char *value = NULL;
    for (size_t i = 0; i < answer->n_envs; i++) {
        if (strcmp(answer->envs[i]->key, name) == 0)
            value = answer->envs[i]->value; /* the last one counts */
    }
    *ret = value;
    return 0;
}
