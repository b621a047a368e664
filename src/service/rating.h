/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_RATING_H
#define GPUSHARE_SERVICE_RATING_H

#include <stdint.h>

struct gs_service;
struct gs_ask;
struct gs_scratch;

/* Sets fits[] and losses[] of the candidates of scratch->args (core/policy.h); verdicts, when it is
 * not NULL, is the filter's verdict on each, and those that it refused are not looked at. With the
 * store locked for reading. */
void gs_rate(struct gs_service *service, const struct gs_ask *ask, struct gs_scratch *scratch,
             const uint8_t *verdicts);

#endif
