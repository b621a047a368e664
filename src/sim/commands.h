/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Subcommands of gpushare-sim: each is a file cmd_NAME.c and a row in main.c. argv[0] is the
 * subcommand as usage shows it ("gpushare-sim serve"); the return value is the exit code: 0 fine,
 * 1 failed, 2 bad usage.
 */
#define DEFAULT_API "http://127.0.0.1:8001" /* where serve serves */

int cmd_serve(int argc, char **argv);
int cmd_schedule(int argc, char **argv);
int cmd_demo(int argc, char **argv);
