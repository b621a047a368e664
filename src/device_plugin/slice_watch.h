/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"

/*
 * The ResourceSlices of this node, for ownership_take_slices(): listed, then watched, and listed
 * anew at every sign of news. A thread waits for the API server; the rest is of the loop thread.
 *
 *   state     what is known                 leaves by
 *   asking    what was before (the record)  an answer: watching. None, or no right: paused
 *   watching  what was listed last          news, or five minutes are over: asking, a second later
 *   paused    what was before               ten seconds; a minute where the API server has no
 * slices or tells nobody of them: asking
 */
struct plugin;
struct slice_watch;

/* Nothing where the GPUs are shared with others all the same. GS_ENOMEM. */
int slice_watch_start(struct plugin *plugin, struct gs_error *err);
void slice_watch_round(struct plugin *plugin);
/* Once requests are canceled: waits for the one that runs. Its answer may still come to the loop.
 */
void slice_watch_stop(struct plugin *plugin);
void slice_watch_free(struct slice_watch *watch);
