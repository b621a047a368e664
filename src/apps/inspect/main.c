/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process.h"
#include "inspect/app.h"

int main(int argc, char **argv)
{
    process_keep_secrets();
    const struct app app = {
        .terminal = terminal_find(), .clock = gs_clock_system(), .connect = connect_kube};
    return run_command(&app, argc, argv);
}
