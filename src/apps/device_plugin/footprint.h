/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_FOOTPRINT_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_FOOTPRINT_H

/* Before the first thread: one heap for all threads, which gives free memory back. */
void footprint_limit(void);

/* Once the start is over: lets go of free memory. */
void footprint_trim(void);

#endif
