/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to scan.c and scan_text.c. */

/* Four hexadecimal digits; -1: there are none. */
int gs_scan_hex4(const char *at, const char *end);

/*
 * The end of the object or array that begins at `at`, found by following strings
 * and brackets only, 64 bytes at a time; NULL when the text ends before. In JSON it is the end that
 * the grammar says; in what is no JSON it is somewhere inside the text.
 */
const char *gs_scan_pass(const char *at, const char *end);
