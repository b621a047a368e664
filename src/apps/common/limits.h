/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_LIMITS_H
#define GPUSHARE_APPS_COMMON_LIMITS_H

/* Allows as many open files as the administrator does: the soft limit, often 1,024, is there for
 * programs that use select(2), and a server does not. Before the first server. */
void limits_raise_files(void);

/* No core file, and no look into the memory by other processes of the same user: it holds tokens
 * and keys. A debugger that starts the program sees all the same. First of all in main(). */
void limits_keep_secrets(void);

#endif
