/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/options.h"
#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"
#include "inspect/app.h"
#include "inspect/usage.h"

/* The options that every subcommand has, and what follows from them: the cluster to ask. */
struct common {
    struct connection connection; /* as the options say */
    struct as_groups as_groups;
    const char *from_file;
    const char *live; /* what no file has: "doctor"; NULL: nothing */
    const char *ns;
    bool all_namespaces;
    const char *domain;
    const char *system_ns;
    int64_t usage_ns;
    struct gs_names names;
    /* from common_connect() on, which is why it is not to be moved: */
    const struct app *app;
    struct source source; /* source_close() */
};

#define COMMON_DEFAULTS                                                                            \
    {                                                                                              \
        .connection.timeout_ns = 30 * GS_NS_PER_S, .domain = "aliyun.com",                         \
        .system_ns = "gpushare-system", .usage_ns = USAGE_TIME_NS                                  \
    }

/* Rows of an option table; c: struct common *. Those from kubeconfig to as-uid are kubectl's. */
#define COMMON_OPTIONS(c)                                                                          \
    OPT_STRING("kubeconfig", &(c)->connection.kubeconfig, "FILE",                                  \
               "kubeconfig file, as for kubectl"),                                                 \
        OPT_STRING("context", &(c)->connection.context, "NAME", "context of the kubeconfig"),      \
        OPT_STRING("cluster", &(c)->connection.cluster, "NAME", "cluster of the kubeconfig"),      \
        OPT_STRING("user", &(c)->connection.user, "NAME", "user of the kubeconfig"),               \
        OPT_STRING("as", &(c)->connection.as, "NAME", "user to impersonate"),                      \
        OPT_CUSTOM("as-group", OPT_IS(struct as_groups, &(c)->as_groups), as_group_add, "NAME",    \
                   "group to impersonate; may be given up to 5 times", .repeats = true),           \
        OPT_STRING("as-uid", &(c)->connection.as_uid, "UID", "UID to impersonate"),                \
        OPT_STRING("server", &(c)->connection.server, "URL",                                       \
                   "plain HTTP URL on loopback, such as kubectl proxy's, not the kubeconfig's"),   \
        OPT_STRING("from-file", &(c)->from_file, "FILE",                                           \
                   "read nodes and pods from this file instead of an API server; snapshot or "     \
                   "`kubectl get nodes,pods -A -o json` writes such files"),                       \
        OPT_STRING("domain", &(c)->domain, "DOMAIN",                                               \
                   "domain of resource names, labels and annotations (default aliyun.com)"),       \
        OPT_DURATION("request-timeout", &(c)->connection.timeout_ns, "TIME",                       \
                     "timeout of one request to the API server (default 30s)")

#define NAMESPACE_OPTION(c, doc) OPT_STRING("namespace", &(c)->ns, "NAME", doc, .key = 'n')

/* Where the programs of the installation run. */
#define SYSTEM_NAMESPACE_OPTION(c)                                                                 \
    OPT_STRING("system-namespace", &(c)->system_ns, "NAME",                                        \
               "namespace of the extender and the device plugin (default gpushare-system)")

/* Who asks the device plugins of many nodes what is used. */
#define USAGE_OPTIONS(c)                                                                           \
    SYSTEM_NAMESPACE_OPTION(c),                                                                    \
        OPT_DURATION("timeout", &(c)->usage_ns, "TIME",                                            \
                     "time limit for reading from all device plugins what pods use (default 5s)")

enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_CSV };

/* -o of the commands that tell in words: OUTPUT_TABLE is text. */
#define OPT_FORMAT(to)                                                                             \
    OPT_CUSTOM("output", OPT_IS(enum output_format, to), format_parse, "text|json|yaml",           \
               "output format (default text)", .key = 'o')
#define OPT_POLICY(to)                                                                             \
    OPT_CUSTOM("policy", OPT_IS(enum gs_placement, to), policy_parse, "binpack|spread|rollout",    \
               "policy of the extender, which is not read from it (default rollout)")

/* For OPT_CUSTOM. */
bool as_group_add(void *to, const char *text);
bool format_parse(void *to, const char *text);
bool policy_parse(void *to, const char *text);
/* to: an enum whose values are the places of its words, of which the last is NULL. */
bool word_parse(const char *const *words, void *to, const char *text);

/* Reads a subcommand's options. operand: "FILE", "[NODE]" may be left out, NULL: there is none.
 * Returns it, or NULL. */
const char *common_parse(int argc, char **argv, const char *operand, const char *doc,
                         const struct gs_option *table, size_t count);

/* Names from the domain, then app->connect(), or connect_file(). A bad domain, and a file where
 * common->live needs more, is bad usage and exits. */
int common_connect(struct common *common, const struct app *app, struct gs_error *err);

/* Closes the source. The exit code; result below 0: *err is told. */
int common_end(struct common *common, int result, const struct gs_error *err);

static inline int64_t common_now_s(const struct common *common)
{
    return clock_unix_s(common->app->clock);
}

/* What the device plugin of that node (NULL: of all) says is used. */
static inline struct usage_query common_usage(const struct common *common, const char *node)
{
    return (struct usage_query){&common->source, common->app->clock, node, common->system_ns,
                                common->usage_ns};
}
