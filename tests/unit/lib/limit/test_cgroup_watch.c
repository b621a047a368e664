/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

#include <poll.h>

#include "gpushare/limit/cgroup_watch.h"

struct fixture {
    struct cgroup_tree tree;
    struct gs_pod_tree roots;
    struct gs_cgroup_watch *watch;
    char told[4096]; /* "g:uid " for each */
};

static void note(void *ctx, const char *uid, enum gs_qos qos)
{
    struct fixture *f = ctx;
    size_t len = strlen(f->told);
    snprintf(f->told + len, sizeof(f->told) - len, "%c:%s ", "gbe"[qos], uid);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    tree_make(&f->tree);
    *state = f;
    return gs_cgroup_watch_new(note, f, &f->watch, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gs_cgroup_watch_free(f->watch);
    tree_rmdir(&f->tree, "");
    free(f);
    return 0;
}

static void follow(struct fixture *f)
{
    assert_int_equal(gs_pod_tree_learn(f->tree.mount, &f->roots, NULL), 0);
    gs_cgroup_watch_follow(f->watch, &f->roots);
}

/* What was told since the last time; inotify's events are there at once. */
static const char *news(struct fixture *f)
{
    static char told[4096];
    struct pollfd fd = {gs_cgroup_watch_fd(f->watch), POLLIN, 0};
    if (poll(&fd, 1, 0) == 1)
        gs_cgroup_watch_read(f->watch);
    memcpy(told, f->told, sizeof(told));
    f->told[0] = '\0';
    return told;
}

static void pods_are_told_as_their_cgroups_appear(void **state)
{
    static const struct {
        const char *row, *pods, *guaranteed, *burstable, *best_effort;
    } rows[] = {
        {"systemd", "/kubepods.slice", "/kubepods-poda_1.slice",
         "/kubepods-burstable.slice/kubepods-burstable-podb_2.slice",
         "/kubepods-besteffort.slice/kubepods-besteffort-podc_3.slice"},
        {"cgroupfs", "/kubepods", "/poda-1", "/burstable/podb-2", "/besteffort/podc-3"},
        {"kind", "/kubelet.slice/kubelet-kubepods.slice", "/kubelet-kubepods-poda_1.slice",
         "/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podb_2.slice",
         "/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-podc_3.slice"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        void *own = NULL;
        char path[512];
        setup(&own);
        struct fixture *f = own;
        snprintf(path, sizeof(path), "%s%s", r->pods, r->guaranteed);
        tree_mkdirs(&f->tree, path, true); /* before it is followed */
        follow(f);
        row_text(r->row, news(f), "g:a-1 ");
        row_text(r->row, news(f), "");
        /* with the folder of their class: its pods are not missed */
        snprintf(path, sizeof(path), "%s%s", r->pods, r->burstable);
        tree_mkdirs(&f->tree, path, true);
        row_text(r->row, news(f), "b:b-2 ");
        *strrchr(path, '/') = '\0';
        snprintf(path + strlen(path), 64, "/cri-containerd-x.scope");
        tree_mkdir(&f->tree, path);
        row_text(r->row, news(f), "");
        snprintf(path, sizeof(path), "%s%s", r->pods, r->best_effort);
        tree_mkdirs(&f->tree, path, true);
        row_text(r->row, news(f), "e:c-3 ");
        tree_rmdir(&f->tree, path);
        tree_mkdir(&f->tree, path); /* made again: it has no limit any more */
        row_text(r->row, news(f), "e:c-3 ");
        teardown(&own);
    }
}

static void a_class_folder_made_anew_is_followed_again(void **state)
{
    struct fixture *f = *state;
    tree_mkdirs(&f->tree, "/kubepods/burstable/poda", true);
    follow(f);
    assert_string_equal(news(f), "b:a ");
    tree_rmdir(&f->tree, "/kubepods/burstable");
    assert_string_equal(news(f), "");
    tree_mkdirs(&f->tree, "/kubepods/burstable/podb", true);
    assert_string_equal(news(f), "b:b ");
    tree_mkdirs(&f->tree, "/kubepods/burstable/podc", true);
    assert_string_equal(news(f), "b:c ");
}

static void following_again_lets_go_of_what_was_followed(void **state)
{
    struct fixture *f = *state;
    tree_mkdirs(&f->tree, "/kubepods/poda", true);
    follow(f);
    assert_string_equal(news(f), "g:a ");
    follow(f);
    assert_string_equal(news(f), "g:a ");
    tree_rmdir(&f->tree, "/kubepods");
    tree_mkdirs(&f->tree, "/kubepods.slice/kubepods-podb.slice", true);
    follow(f);
    assert_string_equal(news(f), "g:b ");
    tree_mkdirs(&f->tree, "/kubepods", true); /* beside it */
    follow(f);
    news(f);
    tree_mkdir(&f->tree, "/kubepods/podc");
    assert_string_equal(news(f), "g:c ");
    tree_mkdir(&f->tree, "/kubepods.slice/kubepods-podd.slice");
    assert_string_equal(news(f), "g:d ");
}

static void containers_of_some_pods_are_told(void **state)
{
    struct fixture *f = *state;
    tree_mkdirs(&f->tree, "/kubepods/burstable/poda", true);
    tree_mkdirs(&f->tree, "/kubepods/burstable/podb", true);
    follow(f);
    news(f);
    gs_cgroup_watch_containers(f->watch, "a", GS_QOS_BURSTABLE);
    gs_cgroup_watch_containers(f->watch, "a", GS_QOS_BURSTABLE); /* once is enough */
    gs_cgroup_watch_containers(f->watch, "gone", GS_QOS_BURSTABLE);
    tree_mkdir(&f->tree, "/kubepods/burstable/poda/x");
    assert_string_equal(news(f), "b:a ");
    tree_mkdir(&f->tree, "/kubepods/burstable/podb/x");
    assert_string_equal(news(f), "");
    tree_put(&f->tree, "/kubepods/burstable/poda", "file", "");
    assert_string_equal(news(f), "");
    tree_rmdir(&f->tree, "/kubepods/burstable/poda");
    tree_mkdir(&f->tree, "/kubepods/burstable/poda"); /* another of that name */
    assert_string_equal(news(f), "b:a ");
    tree_mkdir(&f->tree, "/kubepods/burstable/poda/x");
    assert_string_equal(news(f), "");
    gs_cgroup_watch_containers(f->watch, "a", GS_QOS_BURSTABLE);
    tree_mkdir(&f->tree, "/kubepods/burstable/poda/y");
    assert_string_equal(news(f), "b:a ");
}

/* Pods come and go: no more watches than pods that are there. A cgroup's watch does not end with it
 * in every kernel: one that moved away stands for that. */
static void move_pod_away(struct fixture *f, int i)
{
    char path[64], from[256], to[256];
    snprintf(path, sizeof(path), "/kubepods/burstable/podp%d", i);
    tree_path(&f->tree, path, NULL, from, sizeof(from));
    tree_path(&f->tree, strrchr(path, '/'), NULL, to, sizeof(to));
    assert_int_equal(rename(from, to), 0);
}

static void pods_that_are_gone_are_waited_for_no_more(void **state)
{
    struct fixture *f = *state;
    tree_mkdirs(&f->tree, "/kubepods/burstable", true);
    follow(f);
    for (int i = 0; i <= GS_CGROUP_WATCH_PODS_MAX; i++) {
        char path[64], name[16];
        for (int gone = 0; i == GS_CGROUP_WATCH_PODS_MAX && gone < i; gone++)
            move_pod_away(f, gone);
        snprintf(name, sizeof(name), "p%d", i);
        snprintf(path, sizeof(path), "/kubepods/burstable/pod%s", name);
        tree_mkdir(&f->tree, path);
        gs_cgroup_watch_containers(f->watch, name, GS_QOS_BURSTABLE);
        news(f);
        strcat(path, "/x");
        tree_mkdir(&f->tree, path);
        if (!strstr(news(f), name))
            fail_msg("%s was not told", name);
    }
    struct pollfd fd = {gs_cgroup_watch_fd(f->watch), POLLIN, 0};
    gs_cgroup_watch_containers(f->watch, "b", GS_QOS_BURSTABLE);
    news(f);
    tree_mkdir(&f->tree, "/podp0/y");
    assert_int_equal(poll(&fd, 1, 0), 0);
}

/* More events than the kernel keeps (fs.inotify.max_queued_events): the folders are read again. */
static void what_the_kernel_dropped_is_found_by_reading(void **state)
{
    struct fixture *f = *state;
    char limit[32] = "16384", path[256], other[256];
    get_text("/proc/sys/fs/inotify/max_queued_events", limit, sizeof(limit));
    long most = strtol(limit, NULL, 10);
    if (most > 40000)
        skip();
    tree_mkdirs(&f->tree, "/kubepods/besteffort", true);
    follow(f);
    /* two files in turn: equal events that follow each other are one to the kernel */
    tree_path(&f->tree, "/kubepods/besteffort", "x", path, sizeof(path));
    tree_path(&f->tree, "/kubepods/besteffort", "y", other, sizeof(other));
    for (long i = 0; i <= most; i++) {
        put_text(i % 2 ? path : other, "");
        unlink(i % 2 ? path : other);
    }
    tree_mkdirs(&f->tree, "/kubepods/besteffort/podlate", true);
    assert_string_equal(news(f), "e:late ");
}

#define in_tree(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_told_as_their_cgroups_appear),
        in_tree(a_class_folder_made_anew_is_followed_again),
        in_tree(following_again_lets_go_of_what_was_followed),
        in_tree(containers_of_some_pods_are_told),
        in_tree(pods_that_are_gone_are_waited_for_no_more),
        in_tree(what_the_kernel_dropped_is_found_by_reading),
    };
    return GS_RUN(tests);
}
