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
        const char *prefix;
        const char *joint;
        const char *rest;
    } parts[] = {
        {out.domain, domain, "", ""},
        {out.gpu_mem, domain, "/", "gpu-mem"},
        {out.gpu_cores, domain, "/", "gpu-core.percentage"},
        {out.gpu_count, domain, "/", "gpu-count"},
        {out.inventory, domain, "/", "gpu-inventory"},
        {out.moved, domain, "/", "gpu-reassigned"},
        {out.cordon, domain, "/", "gpu-cordon"},
        {out.driver_upgrade, domain, "/", "gpu-driver-upgrade"},
        {out.mps, domain, "/", "gpu-mps"},
        {out.idx, loud, "_", "GPU_MEM_IDX"},
        {out.dev, loud, "_", "GPU_MEM_DEV"},
        {out.pod, loud, "_", "GPU_MEM_POD"},
        {out.container, loud, "_", "GPU_MEM_CONTAINER"},
        {out.gpus, loud, "_", "GPU_MEM_GPUS"},
        {out.assigned, loud, "_", "GPU_MEM_ASSIGNED"},
        {out.assume_time, loud, "_", "GPU_MEM_ASSUME_TIME"},
        {out.placement, domain, "/", "gpu-placement"},
        {out.model, domain, "/", "gpu-model"},
        {out.model_deny, domain, "/", "gpu-model-deny"},
        {out.uuid, domain, "/", "gpu-uuid"},
        {out.uuid_deny, domain, "/", "gpu-uuid-deny"},
        {out.enforce, domain, "/", "gpu-enforce"},
        {out.enforced, domain, "/", "gpu-enforced"},
        {out.wake, domain, "/", "gpu-requeue"},
        {out.offer, domain, "/", "gpu-nominated"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        snprintf(parts[i].to, GS_NAME_BYTES, "%s%s%s", parts[i].prefix, parts[i].joint,
                 parts[i].rest);
    *names = out;
    return 0;
}
