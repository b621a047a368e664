/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_AMOUNT_H
#define GPUSHARE_APPS_INSPECT_AMOUNT_H

#include <stdint.h>

/* Long figures for people; programs get plain digits. Both return `to`. */
enum { AMOUNT_TEXT_BYTES = 64 };

/* "1,788,560" */
const char *amount_text(uint64_t number, char to[AMOUNT_TEXT_BYTES]);

/* "7,740 GiB", above six digits "1,788,560 GiB (1,746.6 TiB)"; unit: a word such as view.unit. */
const char *amount_of_memory(uint64_t units, const char *unit, char to[AMOUNT_TEXT_BYTES]);

#endif
