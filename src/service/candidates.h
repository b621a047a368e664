/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_CANDIDATES_H
#define GPUSHARE_SERVICE_CANDIDATES_H

#include <stdint.h>

struct gs_service;
struct gs_ask;
struct gs_scratch;

/*
 * Of the nodes that fit, filter names the best only (config.candidates of them, --candidates): the
 * others would be encoded, decoded and scored for a pod that does not go there. It is as when
 * kube-scheduler itself looks at a sample of a large cluster, but that these are the best and not
 * the first it came across. Spread evenly over the zones of those that fit, as its sample is, so
 * that the default spreading of a Service's or ReplicaSet's pods still has all zones to choose
 * from. Where nodes are equally good they take turns.
 *
 * All are named when somebody said something about nodes that kube-scheduler weighs and this
 * program does not (preferences.h), for a nominated pod, and when whole Node objects were asked
 * about.
 */
/* Makes those of scratch->verdicts that fit and are not named GS_VERDICT_LEFT_OUT; `fitting` is how
 * many fit. Takes the store's lock, and
 * matches the ask anew. Returns how many are named. */
uint32_t gs_candidates_choose(struct gs_service *service, struct gs_ask *ask,
                              struct gs_scratch *scratch, uint32_t fitting);

#endif
