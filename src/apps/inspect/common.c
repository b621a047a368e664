/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/common.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/formats.h"
#include "inspect/terminal.h"

int common_connect(struct common *common, const struct app *app, struct source *ret,
                   struct gs_error *err)
{
    const struct connection connection = {.kubeconfig = common->kubeconfig,
                                          .context = common->context,
                                          .ns = common->ns,
                                          .timeout_ns = common->timeout_ns,
                                          .names = &common->names};
    if (gs_names_init(&common->names, common->domain, err) < 0)
        exit(complain_usage(PROGRAM, err->msg)); /* as any other bad option */
    return app->connect(&connection, ret, err);
}

bool format_parse(void *to, const char *text)
{
    static const char *const words[] = {"text", "json", "yaml"};
    for (int i = FORMAT_TEXT; i <= FORMAT_YAML; i++) {
        if (strcmp(words[i], text) == 0) {
            *(enum format *)to = (enum format)i;
            return true;
        }
    }
    return false;
}
