/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/device_lists.h"

#include "gpushare/base/slice.h"

static unsigned list_of(struct gs_slice word)
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
        if (gs_slice_eq(gs_slice_of(words[i].word), word))
            return words[i].list;
    }
    return 0;
}

bool device_lists_parse(const char *text, unsigned *ret)
{
    struct gs_slice rest = gs_slice_of(text);
    unsigned lists = 0;
    do {
        unsigned one = list_of(gs_slice_cut(&rest, ','));
        if (!one)
            return false;
        lists |= one;
    } while (rest.at);
    *ret = lists;
    return true;
}
