/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/common.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/terminal.h"

int common_connect(struct common *common, const struct app *app, struct gs_error *err)
{
    const struct connection connection = {.kubeconfig = common->kubeconfig,
                                          .context = common->context,
                                          .ns = common->ns,
                                          .timeout_ns = common->timeout_ns,
                                          .names = &common->names};
    common->app = app;
    if (gs_names_init(&common->names, common->domain, err) < 0)
        exit(complain_usage(PROGRAM, err->msg)); /* as any other bad option */
    return app->connect(&connection, &common->source, err);
}

bool word_parse(const char *const *words, void *to, const char *text)
{
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *(unsigned *)to = i;
            return true;
        }
    }
    return false;
}

bool format_parse(void *to, const char *text)
{
    static const char *const words[] = {"text", "json", "yaml", NULL};
    return word_parse(words, to, text);
}

bool policy_parse(void *to, const char *text)
{
    return gs_placement_parse(text, strlen(text), to);
}
