/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_APP_H
#define GPUSHARE_APPS_INSPECT_APP_H

#include <stdint.h>

#include "gpushare/base/clock.h"
#include "inspect/source.h"
#include "inspect/terminal.h"

/* What the options say about the connection; everything borrowed. */
struct connection {
    const char *kubeconfig;
    const char *context;
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
    const char *like; /* the command that was meant by a first word that is none; NULL: none */
    int (*connect)(const struct connection *connection, struct source *ret, struct gs_error *err);
};

/* app.connect for an API server: credentials as kubectl finds them. Nothing is sent yet. */
int connect_kube(const struct connection *connection, struct source *ret, struct gs_error *err);

static inline int64_t clock_unix_s(const struct gs_clock *clock)
{
    return clock->wall_ns(clock->ctx) / GS_NS_PER_S;
}

/* Runs the subcommand that the command line names, `show` when it names none. */
int run_command(const struct app *app, int argc, char **argv);

int cmd_show(const struct app *app, int argc, char **argv);
int cmd_map(const struct app *app, int argc, char **argv);
int cmd_stranded(const struct app *app, int argc, char **argv);
int cmd_limits(const struct app *app, int argc, char **argv);
int cmd_why(const struct app *app, int argc, char **argv);
int cmd_what_if(const struct app *app, int argc, char **argv);
int cmd_snapshot(const struct app *app, int argc, char **argv);
int cmd_usage(const struct app *app, int argc, char **argv);
int cmd_web(const struct app *app, int argc, char **argv);
int cmd_doctor(const struct app *app, int argc, char **argv);
int cmd_nodeoverlay(const struct app *app, int argc, char **argv);
int cmd_defrag(const struct app *app, int argc, char **argv);

#endif
