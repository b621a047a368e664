/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_COMMON_H
#define GPUSHARE_APPS_INSPECT_COMMON_H

#include "common/options.h"
#include "gpushare/model/names.h"
#include "inspect/app.h"

/* The options that every subcommand has, and what follows from them. */
struct common {
    const char *kubeconfig;
    const char *context;
    const char *ns;
    const char *domain;
    int64_t timeout_ns;
    struct gs_names names;
};

#define COMMON_DEFAULTS                                                                            \
    {                                                                                              \
        .domain = "aliyun.com", .timeout_ns = 30 * GS_NS_PER_S                                     \
    }

/* Rows of an option table; c: struct common *. */
#define COMMON_OPTIONS(c, ns_doc)                                                                  \
    {"kubeconfig",                                                                                 \
     GS_OPT_STRING,                                                                                \
     &(c)->kubeconfig,                                                                             \
     "FILE",                                                                                       \
     "kubeconfig; else $KUBECONFIG, ~/.kube/config, then in-cluster",                              \
     NULL,                                                                                         \
     0,                                                                                            \
     NULL},                                                                                        \
        {"context", GS_OPT_STRING, &(c)->context, "NAME", "context of the kubeconfig", NULL,       \
         0,         NULL},                                                                         \
        {"namespace", GS_OPT_STRING, &(c)->ns, "NAME", ns_doc, NULL, 'n', NULL},                   \
        {"domain",                                                                                 \
         GS_OPT_STRING,                                                                            \
         &(c)->domain,                                                                             \
         "DOMAIN",                                                                                 \
         "domain of resources and annotations (aliyun.com)",                                       \
         NULL,                                                                                     \
         0,                                                                                        \
         NULL},                                                                                    \
    {                                                                                              \
        "request-timeout", GS_OPT_DURATION, &(c)->timeout_ns, "TIME",                              \
            "how long one answer of the API server may take (30s)", NULL, 0, NULL                  \
    }

/* Names from the domain, then app->connect(). A bad domain is bad usage and exits. */
int common_connect(struct common *common, const struct app *app, struct source *ret,
                   struct gs_error *err);

#endif
