/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes RFC 4648 base64 with padding; line ends between characters are passed over, as Go's
 * encoding/base64 does (kubeconfig's *-data). *ret: *caller frees*, NUL-terminated, the NUL is not
 * counted. False: not base64, or out of memory; outputs untouched.
 */
bool gs_base64_decode(const char *text, size_t len, char **ret, size_t *ret_len);
