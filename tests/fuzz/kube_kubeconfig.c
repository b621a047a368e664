/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "gpushare/kube/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any text: a configuration with a usable server, or a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    if (gs_kube_config_parse((const char *)data, size, "/d/f", &config, &err) < 0) {
        if (err.code == GS_OK || !err.msg[0] || config.server)
            abort();
        return 0;
    }
    if (!config.source || strncasecmp(config.server, "http", 4) != 0)
        abort();
    if (config.ca.data && (config.ca.file || config.ca.data[config.ca.len] != '\0'))
        abort();
    gs_kube_config_release(&config);
    return 0;
}
