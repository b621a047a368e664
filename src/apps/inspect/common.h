/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_COMMON_H
#define GPUSHARE_APPS_INSPECT_COMMON_H

#include "common/options.h"
#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"
#include "inspect/app.h"
#include "inspect/usage.h"

/* The options that every subcommand has, and what follows from them: the cluster to ask. */
struct common {
    const char *kubeconfig;
    const char *context;
    const char *ns;
    bool all_namespaces;
    const char *domain;
    int64_t timeout_ns;
    const char *system_ns;
    int64_t usage_ns;
    struct gs_names names;
    /* from common_connect() on, which is why it is not to be moved: */
    const struct app *app;
    struct source source; /* source_close() */
};

#define COMMON_DEFAULTS                                                                            \
    {                                                                                              \
        .domain = "aliyun.com", .timeout_ns = 30 * GS_NS_PER_S, .system_ns = "gpushare-system",    \
        .usage_ns = USAGE_TIME_NS                                                                  \
    }

/* Rows of an option table; c: struct common *. */
#define COMMON_OPTIONS(c, ns_doc)                                                                  \
    OPT_STRING("kubeconfig", &(c)->kubeconfig, "FILE",                                             \
               "kubeconfig; else $KUBECONFIG, ~/.kube/config, then in-cluster"),                   \
        OPT_STRING("context", &(c)->context, "NAME", "context of the kubeconfig"),                 \
        OPT_STRING("namespace", &(c)->ns, "NAME", ns_doc, .key = 'n'),                             \
        OPT_STRING("domain", &(c)->domain, "DOMAIN",                                               \
                   "domain of resources and annotations (aliyun.com)"),                            \
        OPT_DURATION("request-timeout", &(c)->timeout_ns, "TIME",                                  \
                     "how long one answer of the API server may take (30s)")

/* Where the programs of the installation run. */
#define SYSTEM_NAMESPACE_OPTION(c)                                                                 \
    OPT_STRING("system-namespace", &(c)->system_ns, "NAME",                                        \
               "where the extender and the device plugin run (gpushare-system)")

/* Who asks the device plugins of many nodes what is used. */
#define USAGE_OPTIONS(c)                                                                           \
    SYSTEM_NAMESPACE_OPTION(c),                                                                    \
        OPT_DURATION("timeout", &(c)->usage_ns, "TIME",                                            \
                     "how long all device plugins together may take to say what is used (5s)")

/* -o of the commands that tell in words. */
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_YAML };

#define OPT_FORMAT(to)                                                                             \
    OPT_CUSTOM("output", OPT_IS(enum format, to), format_parse, "text|json|yaml",                  \
               "form of the output (text)", .key = 'o')
#define OPT_POLICY(to)                                                                             \
    OPT_CUSTOM("policy", OPT_IS(enum gs_placement, to), policy_parse,                              \
               "binpack|spread|fgd|rollout", "the extender's --policy (rollout)")

/* For OPT_CUSTOM. */
bool format_parse(void *to, const char *text);
bool policy_parse(void *to, const char *text);
/* to: an enum whose values are the places of its words, of which the last is NULL. */
bool word_parse(const char *const *words, void *to, const char *text);

/* Names from the domain, then app->connect(). A bad domain is bad usage and exits. */
int common_connect(struct common *common, const struct app *app, struct gs_error *err);

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

#endif
