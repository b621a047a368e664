/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/kube/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any output of a plugin: something to show the server, in one line, or a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_exec_credential credential = {0};
    struct gs_error err = {0};
    if (gs_exec_credential_parse((const char *)data, size, "client.authentication.k8s.io/v1",
                                 &credential, &err) < 0) {
        if (err.code == GS_OK || credential.token || credential.client_key)
            abort();
        return 0;
    }
    if (!credential.token && !(credential.client_cert && credential.client_key))
        abort();
    if (credential.token && strpbrk(credential.token, "\r\n"))
        abort();
    gs_exec_credential_release(&credential);
    return 0;
}
