/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One annotation or label. value NULL in a patch: remove it. */
struct gs_kv {
    const char *key;
    const char *value;
};
