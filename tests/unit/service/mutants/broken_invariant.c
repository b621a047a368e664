/* SPDX-License-Identifier: Apache-2.0 */
/* Linked to each mutant: one that breaks an invariant is found as well, and ctest wants an exit
 * code of it (a process that a signal ends has failed for good). */
#include <signal.h>
#include <unistd.h>

static void found(int signal)
{
    _exit(1);
}

__attribute__((constructor)) static void expect_it(void)
{
    signal(SIGABRT, found);
}
