/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/show.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/process.h"
#include "gpushare/base/clock.h"
#include "inspect/stranded.h"
#include "inspect/terminal.h"
#include "inspect/watcher.h"

/* Nothing to show is said on standard error, as kubectl says it. */
static void say_empty(const struct show *show, const struct view *view)
{
    if (show->format == SHOW_WAITS && !view->waits.count)
        fputs("No pod waits for GPU memory.\n", stderr);
    if (show->format == SHOW_WAITS || view->node_count > 0)
        return;
    if (show->fetch.node && !show->view.ns)
        fprintf(stderr, "Node %s has no GPU memory (%s).\n", show->fetch.node,
                show->fetch.common->names.gpu_mem);
    else if (show->view.ns)
        fprintf(stderr, "No pod of namespace %s has GPU memory (%s) here.\n", show->view.ns,
                show->fetch.common->names.gpu_mem);
    else
        fprintf(stderr, "No node%s has GPU memory (%s).\n",
                show->fetch.selector ? " that matches the selector" : " of this cluster",
                show->fetch.common->names.gpu_mem);
}

static int print(const struct show *show, const struct view *view)
{
    switch (show->format) {
    case SHOW_JSON:
    case SHOW_YAML:
        return print_document(view, show->format == SHOW_YAML);
    case SHOW_TABLE:
    case SHOW_WIDE:
    case SHOW_MAP:
    case SHOW_WAITS:
    case SHOW_STRANDED:
    case SHOW_LIMITS:
        break;
    }
    const struct terminal *terminal = &show->fetch.common->app->terminal;
    if (show->format == SHOW_WAITS)
        return waits_print(&view->waits, terminal, view->now_s);
    if (view->node_count == 0)
        return 0;
    if (view->mixed_units)
        fputs(PROGRAM ": nodes count in different units, sums mean little (see doctor)\n", stderr);
    if (show->format == SHOW_MAP)
        return print_map(view, terminal);
    if (show->format == SHOW_STRANDED)
        return print_stranded(view, show->bound, terminal);
    if (show->format == SHOW_LIMITS)
        return print_limits(view, terminal);
    if (show->details)
        return print_details(view, terminal);
    return print_summary(view, terminal, show->format == SHOW_WIDE);
}

static bool shows_use(const struct show *show)
{
    return show->format == SHOW_TABLE ? show->details
                                      : show->format < SHOW_MAP || show->format == SHOW_LIMITS;
}

int show_once(const struct show *show, struct snapshot *snapshot, struct gs_error *err)
{
    struct view view;
    struct usage usage = {0};
    struct view_options options = show->view;
    const struct usage_query query = common_usage(show->fetch.common, show->fetch.node);
    options.waits = show->format != SHOW_TABLE && show->format != SHOW_LIMITS;
    options.now_s = common_now_s(show->fetch.common);
    options.some = show->fetch.node || show->fetch.selector;
    if (shows_use(show))
        usage_fetch(&query, &usage);
    options.usage = &usage;
    int result = view_build(snapshot, &options, &view, err);
    if (result == 0) {
        say_empty(show, &view);
        if (print(show, &view) < 0 || fflush(stdout) != 0)
            result = fail_output(err);
        if (usage.answered) /* else it shows nothing of it */
            usage_say_missing(&usage);
        else if (show->format == SHOW_LIMITS)
            fprintf(stderr, PROGRAM ": no device plugin told its mode%s%s\n",
                    usage.why.code == GS_OK ? "" : ": ", usage.why.msg);
    }
    view_release(&view);
    usage_release(&usage);
    return result;
}

/* ---- --watch ---- */

/* Prints what the watcher's threads keep when it changed, at most once a second. */
#define PAUSE_NS     GS_NS_PER_S
#define SELECT_NS    (10 * GS_NS_PER_S)
#define STOP_TICK_NS (100 * GS_NS_PER_MS)

/* The screen is wiped; what scrolled out of it before stays where it is. */
static void begin_screen(const struct gs_clock *clock)
{
    char text[32];
    time_t now_s = (time_t)clock_unix_s(clock);
    struct tm now;
    strftime(text, sizeof(text), "%F %T", localtime_r(&now_s, &now));
    printf("\033[H\033[2J"
           "as of %s\n",
           text);
}

static int print_again(const struct show *show, struct watcher *watcher, struct gs_error *err)
{
    const struct app *app = show->fetch.common->app;
    bool tables = show->format != SHOW_JSON && show->format != SHOW_YAML;
    if (tables && app->terminal.screen)
        begin_screen(app->clock);
    int result = show_once(show, &watcher->snapshot, err);
    if (tables && !app->terminal.screen)
        putchar('\n');
    if (result == 0 && watcher->lost[0])
        fprintf(stderr, PROGRAM ": not up to date: %s\n", watcher->lost);
    fflush(stdout);
    watcher->changed = false;
    return result;
}

/* Labels are not part of the snapshot: which nodes are meant is asked again when nodes changed. */
static bool selection_due(const struct watcher *watcher, int64_t due_ns)
{
    return watcher->fetch->selector && watcher->nodes_changed &&
           gs_clock_now_ns(gs_clock_system()) >= due_ns;
}

static int refresh_selection(struct watcher *watcher, int64_t *due_ns, struct gs_error *err)
{
    if (!selection_due(watcher, *due_ns))
        return 0;
    *due_ns = gs_clock_now_ns(gs_clock_system()) + SELECT_NS;
    watcher->nodes_changed = false;
    return fetch_selected(watcher->fetch, &watcher->snapshot, err);
}

/* Waits; true when SIGINT or SIGTERM came. */
static bool pause_or_stop(int64_t ns)
{
    const struct timespec time = {ns / GS_NS_PER_S, ns % GS_NS_PER_S};
    const sigset_t set = process_stop_signals();
    int number;
    do
        number = sigtimedwait(&set, NULL, &time);
    while (number < 0 && errno == EINTR);
    return number > 0;
}

static int one_round(const struct show *show, struct watcher *watcher, int64_t *select_due_ns,
                     bool *ret_printed, struct gs_error *err)
{
    int result = 0;
    pthread_mutex_lock(&watcher->lock);
    *ret_printed =
        watcher_listed(watcher) && (watcher->changed || selection_due(watcher, *select_due_ns));
    if (*ret_printed) {
        result = refresh_selection(watcher, select_due_ns, err);
        if (result == 0)
            result = print_again(show, watcher, err);
    }
    pthread_mutex_unlock(&watcher->lock);
    return result;
}

static int loop(const struct show *show, struct watcher *watcher, struct gs_error *err)
{
    int64_t select_due_ns = 0;
    bool printed = false;
    do {
        if (one_round(show, watcher, &select_due_ns, &printed, err) < 0)
            return -1;
    } while (!pause_or_stop(printed ? PAUSE_NS : STOP_TICK_NS));
    return 0;
}

int show_watch(const struct show *show, struct gs_error *err)
{
    struct watcher watcher;
    int result = watcher_start(&watcher, &show->fetch, err);
    if (result == 0)
        result = loop(show, &watcher, err);
    watcher_stop(&watcher);
    return result;
}
