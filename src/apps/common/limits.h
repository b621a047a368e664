/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_LIMITS_H
#define GPUSHARE_APPS_COMMON_LIMITS_H

/* Allows as many open files as the administrator does: the soft limit, often 1,024, is there for
 * programs that use select(2), and a server does not. Before the first server. */
void limits_raise_files(void);

#endif
