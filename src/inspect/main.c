/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "common/process.h"
#include "inspect/app.h"

int main(int argc, char **argv)
{
    process_keep_secrets();
    for (int fd = 0; fd <= STDERR_FILENO; fd++) /* a closed one would become another file */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_RDWR) < 0)
            return 1;
    const struct app app = {
        .terminal = terminal_find(), .clock = gs_clock_system(), .connect = connect_kube};
    return run_command(&app, argc, argv);
}
