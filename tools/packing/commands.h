/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Subcommands of gpushare-packing, as those of gpushare-sim: each is a file cmd_NAME.c and a row in
 * main.c; the return value is the exit code: 0 fine, 1 failed, 2 bad usage. */
int cmd_replay(int argc, char **argv);
int cmd_generate(int argc, char **argv);
