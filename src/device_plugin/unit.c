/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/unit.h"

static bool can_be(const struct unit_note *note, enum gs_unit unit)
{
    return !note->original || unit == GS_UNIT_GIB || unit == GS_UNIT_MIB;
}

/* As many of this unit were kept of it for pods. */
static bool is_offered(const struct unit_note *note, enum gs_unit unit, const struct gs_gpu *gpus,
                       uint32_t count)
{
    bool offered = false;
    for (uint32_t i = 0; i < count; i++)
        offered |= strcmp(gpus[i].uuid, note->uuid) == 0 && gpus[i].mem_units == note->units;
    return offered && can_be(note, unit);
}

static enum gs_unit nearest(const struct unit_note *note)
{
    enum gs_unit best = GS_UNIT_GIB;
    double least = 0;
    for (int unit = GS_UNIT_GIB; unit >= GS_UNIT_MIB; unit--) {
        if (!can_be(note, (enum gs_unit)unit))
            continue;
        double ratio = (double)note->units * gs_unit_mib((enum gs_unit)unit) / note->mib;
        double distance = ratio < 1 ? 1 / ratio : ratio;
        if (unit == GS_UNIT_GIB || distance < least) {
            best = (enum gs_unit)unit;
            least = distance;
        }
    }
    return best;
}

enum gs_unit unit_noted(const struct unit_note *note, const struct gs_inventory *record,
                        const struct gs_gpu_set *set, enum gs_unit wanted)
{
    if (record && record->unit && is_offered(note, record->unit, record->gpus, record->gpu_count))
        return record->unit;
    return is_offered(note, wanted, set->gpus, set->count) ? wanted : nearest(note);
}

struct unit_choice unit_choose(const struct unit_facts *facts)
{
    struct unit_choice choice = {facts->wanted, UNIT_UNREAD};
    if (facts->recorded)
        choice.unit = facts->recorded;
    if (!facts->read)
        return choice;
    if (!facts->held)
        return (struct unit_choice){facts->wanted, UNIT_FREE};
    bool recorded = facts->recorded && (!facts->noted || facts->noted == facts->recorded);
    if (!recorded && facts->noted)
        choice.unit = facts->noted;
    bool doubted = recorded ? facts->doubted : facts->noted != GS_UNIT_UNKNOWN;
    choice.state = doubted && choice.unit != facts->wanted ? UNIT_DOUBTED : UNIT_HELD;
    return choice;
}
