/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/unit.h"

static bool fits_a_gpu(uint32_t share, const struct gs_gpu_set *set, enum gs_unit unit)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (share <= gs_gpu_set_units(set, i, unit))
            return true;
    }
    return false;
}

enum gs_unit unit_in_force(const struct unit_facts *facts, const struct gs_gpu_set *set)
{
    if (!facts->in_use || !facts->node_read || !set->count)
        return facts->wanted;
    enum gs_unit unit = facts->inventory ? facts->inventory : GS_UNIT_GIB;
    /* An inventory may be older than a time under the original's plugin, which left it alone. */
    return fits_a_gpu(facts->largest_share, set, unit) ? unit : GS_UNIT_MIB;
}
