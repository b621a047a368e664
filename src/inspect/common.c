/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/terminal.h"

const char *common_parse(int argc, char **argv, const char *operand, const char *doc,
                         const struct gs_option *table, size_t count)
{
    const struct gs_command command = {
        .name = argv[0],
        .doc = doc,
        .operands = operand,
        .options = table,
        .option_count = count,
        .min_operands = operand && operand[0] != '[',
        .max_operands = operand != NULL,
        .quiet = true,
    };
    int first = gs_options_parse(&command, argc, argv);
    return first < argc ? argv[first] : NULL;
}

static bool is_loopback_http(const char *url)
{
    static const char *const begins[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        size_t len = strlen(begins[i]);
        if (strncmp(url, begins[i], len) == 0 && strchr(":/", url[len]))
            return true;
    }
    return false;
}

int common_connect(struct common *common, const struct app *app, struct gs_error *err)
{
    struct connection connection = common->connection;
    connection.as_groups = &common->as_groups;
    connection.ns = common->ns;
    connection.names = &common->names;
    char wrong[128];
    common->app = app;
    if (gs_names_init(&common->names, common->domain, err) < 0)
        exit(complain_usage(PROGRAM, err->msg)); /* as any other bad option */
    if (connection.server && !is_loopback_http(connection.server))
        exit(complain_usage(PROGRAM, "--server must be plain HTTP on loopback, such as "
                                     "http://127.0.0.1:8001; use a kubeconfig for other servers"));
    if ((connection.server || common->from_file) && connection_names_account(&connection))
        exit(complain_usage(PROGRAM, "--server and --from-file use no credentials: leave out "
                                     "--kubeconfig, --context, --cluster, --user and --as"));
    if (!common->from_file)
        return app->connect(&connection, &common->source, err);
    snprintf(wrong, sizeof(wrong), "%s requires an API server: leave out --from-file",
             common->live ? common->live : "");
    if (common->live)
        exit(complain_usage(PROGRAM, wrong));
    return connect_file(common->from_file, &connection, &common->source, err);
}

int common_end(struct common *common, int result, const struct gs_error *err)
{
    source_close(&common->source);
    return result == 0 ? 0 : complain(err);
}

bool as_group_add(void *to, const char *text)
{
    struct as_groups *groups = to;
    if (groups->count == AS_GROUPS_MAX)
        return false;
    groups->names[groups->count++] = text;
    return true;
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
    static const char *const words[] = {"text", "text", "json", "yaml", NULL};
    return word_parse(words, to, text);
}

bool policy_parse(void *to, const char *text)
{
    return gs_placement_parse(text, strlen(text), to);
}
