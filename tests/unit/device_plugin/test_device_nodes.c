/* SPDX-License-Identifier: Apache-2.0 */
/* Which device nodes go with a container's GPUs. Plain files stand in for them, below a folder. */
#include "device_plugin/device_nodes.h"

#include <sys/stat.h>
#include <unistd.h>

#include "remove_tree.h"

enum { FILES = 4, PASSED = 6 };

/* GPUs 0, 2 and 3; the last is an instance of a card, the one before has no known number. Those
 * numbers are above what a machine that runs this has cards. */
static struct gs_gpu_set set = {.gpus = {{.idx = 0, .node = 78, .uuid = "GPU-0"},
                                         {.idx = 1, .node = 80, .uuid = "GPU-1"},
                                         {.idx = 2, .uuid = "GPU-2"},
                                         {.idx = 3, .node = 78, .uuid = "MIG-3"}},
                                .count = 4};

static const struct {
    const char *row;
    const char *files[FILES]; /* that there are */
    gs_gpu_mask given;
    const char *passed[PASSED]; /* of GPUs, and of those that are shared what is among files */
    const char *vendor;         /* NULL: nvidia */
} rows[] = {
    {"nothing there", {NULL}, 1, {NULL}},
    {"one", {"/dev/nvidia77"}, 1, {"/dev/nvidia77"}},
    {"another's", {"/dev/nvidia77"}, 2, {NULL}},
    {"of two GPUs", {"/dev/nvidia77", "/dev/nvidia79"}, 3, {"/dev/nvidia77", "/dev/nvidia79"}},
    {"one of two is missing", {"/dev/nvidia79"}, 3, {"/dev/nvidia79"}},
    {"with those that all share",
     {"/dev/nvidia77", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset"},
     1,
     {"/dev/nvidia77", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset"}},
    {"the shared ones alone are none", {"/dev/nvidiactl", "/dev/nvidia-uvm"}, 1, {NULL}},
    {"a number that is not known", {"/dev/nvidia77", "/dev/nvidiactl"}, 4, {NULL}},
    {"an instance of a card", {"/dev/nvidia77", "/dev/nvidiactl"}, 8, {NULL}},
    {"a GPU that nobody knows", {"/dev/nvidia77", "/dev/nvidiactl"}, 16, {NULL}},
    {"another vendor's",
     {"/dev/simgpu77", "/dev/simgpuctl", "/dev/nvidiactl", "/dev/nvidia77"},
     1,
     {"/dev/simgpu77", "/dev/simgpuctl"},
     "simulated"},
};

static void folder_up(char dir[64], const char *const files[FILES])
{
    char path[200];
    strcpy(dir, "/tmp/gpushare-nodes-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/dev", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < FILES && files[i]; i++) {
        snprintf(path, sizeof(path), "%s%s", dir, files[i]);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        fclose(file);
    }
}

/* Where this machine has a driver of its own its shared nodes are passed too. */
static bool is_machines_own(const char *path)
{
    return access(path, F_OK) == 0;
}

static void expect(size_t row, const char *dir, const struct gs_dp_container *container)
{
    size_t at = 0;
    for (size_t i = 0; i < container->device_count; i++) {
        const struct gs_dp_path *node = &container->devices[i];
        char host[200];
        snprintf(host, sizeof(host), "%s%s", dir, node->container);
        row_text(rows[row].row, node->host, host);
        if (at < PASSED && rows[row].passed[at] &&
            strcmp(node->container, rows[row].passed[at]) == 0)
            at++;
        else
            row_true(rows[row].row, is_machines_own(node->container));
    }
    row_true(rows[row].row, at == PASSED || !rows[row].passed[at]);
}

static void a_container_is_passed_the_nodes_that_there_are(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_dp_container container = {.env_count = 7};
        struct gs_arena arena = {0};
        char dir[64], root[80];
        folder_up(dir, r->files);
        snprintf(root, sizeof(root), "%s/", dir); /* a slash at the end is none too many */
        set.vendor = gs_vendor_find(r->vendor ? r->vendor : "nvidia");
        row_equal(r->row, device_nodes_add(root, &set, r->given, &arena, &container), 0);
        expect((size_t)(r - rows), dir, &container);
        row_equal(r->row, container.env_count, 7);
        gs_arena_release(&arena);
        remove_tree(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_passed_the_nodes_that_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
