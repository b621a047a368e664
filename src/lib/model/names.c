/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DOMAIN_MAX_BYTES = 63 };

static bool is_domain(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > DOMAIN_MAX_BYTES || !isalnum((unsigned char)text[0]) ||
        !isalnum((unsigned char)text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!islower(c) && !isdigit(c) && c != '-' && c != '.')
            return false;
        if (c == '.' &&
            !(isalnum((unsigned char)text[i - 1]) && isalnum((unsigned char)text[i + 1])))
            return false;
    }
    return true;
}

static void shout(char *out, const char *domain)
{
    for (; *domain; domain++)
        *out++ = isalnum((unsigned char)*domain) ? (char)toupper((unsigned char)*domain) : '_';
    *out = '\0';
}

int gs_names_init(struct gs_names *names, const char *domain, struct gs_error *err)
{
    if (!is_domain(domain))
        return gs_fail(err, GS_EINVAL,
                       "domain %.80s is not a lower-case DNS name of at most %d bytes", domain,
                       DOMAIN_MAX_BYTES);
    struct gs_names out = {0};
    char loud[DOMAIN_MAX_BYTES + 1];
    shout(loud, domain);
    const struct {
        char *to;
        const char *rest; /* behind the domain, or "_" and behind it in capitals */
    } parts[] = {
        {out.domain, ""},
        {out.gpu_mem, "/gpu-mem"},
        {out.gpu_cores, "/gpu-core.percentage"},
        {out.gpu_count, "/gpu-count"},
        {out.inventory, "/gpu-inventory"},
        {out.moved, "/gpu-reassigned"},
        {out.cordon, "/gpu-cordon"},
        {out.driver_upgrade, "/gpu-driver-upgrade"},
        {out.mps, "/gpu-mps"},
        {out.idx, "_GPU_MEM_IDX"},
        {out.dev, "_GPU_MEM_DEV"},
        {out.pod, "_GPU_MEM_POD"},
        {out.container, "_GPU_MEM_CONTAINER"},
        {out.gpus, "_GPU_MEM_GPUS"},
        {out.assigned, "_GPU_MEM_ASSIGNED"},
        {out.assume_time, "_GPU_MEM_ASSUME_TIME"},
        {out.placement, "/gpu-placement"},
        {out.model, "/gpu-model"},
        {out.model_deny, "/gpu-model-deny"},
        {out.uuid, "/gpu-uuid"},
        {out.uuid_deny, "/gpu-uuid-deny"},
        {out.enforce, "/gpu-enforce"},
        {out.enforced, "/gpu-enforced"},
        {out.wake, "/gpu-requeue"},
        {out.offer, "/gpu-nominated"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        snprintf(parts[i].to, GS_NAME_BYTES, "%s%s", parts[i].rest[0] == '_' ? loud : domain,
                 parts[i].rest);
    *names = out;
    return 0;
}
