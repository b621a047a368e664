/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the node's object, beside what is there already. */
#include "device_plugin/node_object.h"

#include "rows.h"

enum wrote { COUNTS = 1, INVENTORY = 2, LABEL = 4 };

static struct api {
    struct gs_gpu gpus[2];
    struct gs_node node;
    unsigned wrote, refuses; /* of enum wrote */
    bool open;               /* the inventory that was written lets pods in */
    char label[16], count[16];
} api;

static int get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    *ret = api.node;
    return 0;
}

static int answer(enum wrote what, struct gs_error *err)
{
    api.wrote |= what;
    return api.refuses & what ? gs_fail(err, GS_EDENIED, "refused") : 0;
}

static int patch_node(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    if (patch->annotation_count) {
        api.open = strstr(patch->annotations[0].value, "\"schedulable\":false") == NULL;
        return answer(INVENTORY, err);
    }
    snprintf(api.label, sizeof(api.label), "%s", patch->labels->value ? patch->labels->value : "");
    return answer(LABEL, err);
}

static int patch_status(void *ctx, const struct gs_node_status_patch *patch, struct gs_error *err)
{
    assert_int_equal(api.wrote & INVENTORY, 0); /* who sees the inventory sees the counts */
    snprintf(api.count, sizeof(api.count), "%s", patch->capacity[0].value);
    return answer(COUNTS, err);
}

static const struct gs_kube_ops ops = {
    .get_node = get_node, .patch_node = patch_node, .patch_node_status = patch_status};

/* Two GPUs that are limited, and a node's object that says so. */
static void set_up(struct gs_gpu_set *set, struct node_object *desired)
{
    *set = (struct gs_gpu_set){.count = 2};
    for (uint32_t i = 0; i < 2; i++)
        set->gpus[i] = (struct gs_gpu){.idx = i,
                                       .uuid = {'a', (char)('0' + i)},
                                       .mem_units = 16,
                                       .healthy = true,
                                       .schedulable = true,
                                       .enforced = GS_ENFORCED_DMEM};
    memset(&api, 0, sizeof(api));
    memcpy(api.gpus, set->gpus, sizeof(api.gpus));
    api.node = (struct gs_node){.name = "n",
                                .enforced = "dmem",
                                .capacity_count = 2,
                                .capacity_cores_pct = 200,
                                .unit = GS_UNIT_GIB,
                                .inventory = true,
                                .tells_moved = true,
                                .inventory_rev = 7,
                                .moved_error = "",
                                .gpus = api.gpus,
                                .gpu_count = 2};
    *desired = (struct node_object){
        .set = set, .unit = GS_UNIT_GIB, .written = true, .rev = 7, .moved = "{}"};
}

enum change {
    NOTHING,
    SICK,
    GONE,
    NOT_LIMITED,
    ONE_LIMITED,
    LEAVING,
    UPGRADING,
    DOUBTED,
    UNIT,
    REVISION,
    UNTOLD,
    XID,
    MOVED,
    FIRST_WRITE,
    OTHER_LABEL,
    OTHER_COUNT,
    OTHER_CORES,
    BY_DRIVER
};

static void change(enum change what, struct gs_gpu_set *set, struct node_object *desired)
{
    struct gs_gpu *gpu = &set->gpus[1];
    gpu->healthy = what != SICK && what != GONE;
    set->gone = what == GONE ? 2 : 0;
    gpu->enforced =
        what == NOT_LIMITED || what == ONE_LIMITED ? GS_ENFORCED_READ_ONLY : gpu->enforced;
    set->gpus[0].enforced = what == NOT_LIMITED ? GS_ENFORCED_READ_ONLY : set->gpus[0].enforced;
    if (what == BY_DRIVER)
        gpu->enforced = set->gpus[0].enforced = GS_ENFORCED_DRIVER;
    gpu->xid = what == XID ? 79 : 0;
    desired->leaving = what == LEAVING;
    desired->upgrading = what == UPGRADING;
    desired->unit_doubted = what == DOUBTED;
    desired->unit = what == UNIT ? GS_UNIT_MIB : desired->unit;
    desired->rev += what == REVISION;
    api.node.tells_moved = what != UNTOLD;
    desired->written = what != FIRST_WRITE;
    desired->moved = what == MOVED ? "{\"u\":[1]}" : desired->moved;
    api.node.enforced = what == OTHER_LABEL ? "mps" : "dmem";
    api.node.capacity_count += what == OTHER_COUNT;
    api.node.capacity_cores_pct += what == OTHER_CORES;
}

static void only_what_differs_is_written(void **state)
{
    static const struct {
        const char *row;
        enum change what;
        unsigned wrote;
        bool closed;
        const char *label, *count;
    } rows[] = {
        {"nothing", NOTHING, 0, true, "", ""},
        {"the first write of this process", FIRST_WRITE, INVENTORY, false, "", ""},
        {"a GPU falls sick", SICK, INVENTORY, false, "", ""},
        {"a GPU is gone, and its compute stays", GONE, INVENTORY | COUNTS, false, "", "1"},
        {"nothing is limited any more", NOT_LIMITED, INVENTORY | LABEL, false, "", ""},
        {"the driver limits them", BY_DRIVER, INVENTORY | LABEL, false, "driver", ""},
        {"one GPU is not limited", ONE_LIMITED, INVENTORY | LABEL, false, "", ""},
        {"an Xid", XID, INVENTORY, false, "", ""},
        {"another unit", UNIT, INVENTORY, false, "", ""},
        {"a newer record", REVISION, INVENTORY, false, "", ""},
        {"an inventory that says nothing of moved pods", UNTOLD, INVENTORY, false, "", ""},
        {"the unit is in doubt", DOUBTED, INVENTORY, true, "", ""},
        {"a pod moved", MOVED, INVENTORY, false, "", ""},
        {"the plugin leaves", LEAVING, INVENTORY | LABEL, true, "", ""},
        {"the driver is replaced", UPGRADING, INVENTORY | LABEL, true, "", ""},
        {"somebody changed the label", OTHER_LABEL, LABEL, true, "dmem", ""},
        {"the node's number of GPUs is another", OTHER_COUNT, COUNTS, true, "", "2"},
        {"its compute is", OTHER_CORES, COUNTS, true, "", "2"},
    };
    static const struct gs_kube kube = {.ops = &ops};
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set set;
        struct node_object desired;
        struct gs_node node = {0};
        bool changed = false;
        set_up(&set, &desired);
        change(r->what, &set, &desired);
        row_equal(r->row, node_object_write(&kube, &names, "n", &desired, &changed, &node, NULL),
                  0);
        row_equal(r->row, api.wrote, r->wrote);
        row_equal(r->row, changed, r->wrote != 0);
        row_equal(r->row, api.open, !r->closed);
        row_text(r->row, api.label, r->label);
        row_text(r->row, api.count, r->count);
        row_equal(r->row, node.gpu_count, 2);
        for (unsigned part = COUNTS; part <= LABEL; part *= 2) {
            api.wrote = 0;
            api.refuses = part;
            row_equal(r->row,
                      node_object_write(&kube, &names, "n", &desired, &changed, &node, NULL),
                      r->wrote & part ? -1 : 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_differs_is_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
