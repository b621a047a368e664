/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/clock.h"
#include "inspect/source.h"
#include "inspect/terminal.h"

enum { AS_GROUPS_MAX = 5 };

/* --as-group, as often as it was given. */
struct as_groups {
    const char *names[AS_GROUPS_MAX];
    size_t count;
};

/* What the options say about the connection; everything borrowed. */
struct connection {
    const char *server; /* plain HTTP on loopback; else kubectl is asked, with what follows */
    const char *kubeconfig;
    const char *context;
    const char *cluster;
    const char *user;
    const char *as;
    const char *as_uid;
    const struct as_groups *as_groups;
    const char *ns;
    int64_t timeout_ns;
    const struct gs_names *names; /* for the source's life */
};

/*
 * What a subcommand is given instead of finding it out by itself, so that tests can bring their
 * own: the terminal, the time, and how to reach a cluster.
 *
 * Subcommands are a file cmd_NAME.c and a row in commands.c. argv[0] is the subcommand as usage
 * shows it; the return value is the exit code: 0 fine, 1 failed, 2 bad usage.
 */
struct app {
    struct terminal terminal;
    const struct gs_clock *clock;
    int (*connect)(const struct connection *connection, struct source *ret, struct gs_error *err);
};

/* Its options name a kubeconfig, cluster, user or impersonation, which only kubectl can apply. */
bool connection_names_account(const struct connection *connection);

/* app.connect for an API server: through kubectl, in the cluster it runs in, or --server. */
int connect_kube(const struct connection *connection, struct source *ret, struct gs_error *err);

/* A v1.List of nodes and pods in JSON, at most GS_MANIFEST_BYTES_MAX (codec/manifest.h), in place
 * of an API server. Its ask knows no selector; its kube.ops is NULL: nothing there ever changes.
 * GS_EINVAL, naming the file; GS_ENOMEM. */
int connect_file(const char *path, const struct connection *connection, struct source *ret,
                 struct gs_error *err);

static inline int64_t clock_unix_s(const struct gs_clock *clock)
{
    return clock->wall_ns(clock->ctx) / GS_NS_PER_S;
}

/* Runs the subcommand that the command line names, `show` when it names none. */
int run_command(const struct app *app, int argc, char **argv);

int cmd_show(const struct app *app, int argc, char **argv);
int cmd_map(const struct app *app, int argc, char **argv);
int cmd_pods(const struct app *app, int argc, char **argv);
int cmd_why(const struct app *app, int argc, char **argv);
int cmd_what_if(const struct app *app, int argc, char **argv);
int cmd_snapshot(const struct app *app, int argc, char **argv);
int cmd_web(const struct app *app, int argc, char **argv);
int cmd_doctor(const struct app *app, int argc, char **argv);
int cmd_defrag(const struct app *app, int argc, char **argv);
