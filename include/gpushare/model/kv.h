/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_MODEL_KV_H
#define GPUSHARE_MODEL_KV_H

/* One annotation or label. value NULL in a patch: remove it. */
struct gs_kv {
    const char *key;
    const char *value;
};

#endif
