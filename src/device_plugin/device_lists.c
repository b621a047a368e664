/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/device_lists.h"

#include <string.h>

static unsigned word(const char *text, size_t len)
{
    static const struct {
        const char *word;
        enum device_list list;
    } words[] = {
        {"envvar", DEVICE_LIST_ENVVAR},
        {"volume-mounts", DEVICE_LIST_VOLUME_MOUNTS},
        {"cdi-annotations", DEVICE_LIST_CDI_ANNOTATIONS},
        {"cdi-cri", DEVICE_LIST_CDI_CRI},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == len && memcmp(words[i].word, text, len) == 0)
            return words[i].list;
    }
    return 0;
}

bool device_lists_parse(const char *text, unsigned *ret)
{
    unsigned lists = 0;
    for (;; text++) {
        size_t len = strcspn(text, ",");
        unsigned one = word(text, len);
        if (!one)
            return false;
        lists |= one;
        text += len;
        if (!*text)
            break;
    }
    *ret = lists;
    return true;
}
