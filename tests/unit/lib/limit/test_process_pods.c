/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/process_pods.h"

#include <sys/prctl.h>

#include "fake_proc.h"
#include "gpushare/base/clock.h"
#include "rows.h"

#define A     "aaaaaaaa-0000-4000-8000-00000000000a"
#define B     "bbbbbbbb-0000-4000-8000-00000000000b"
#define IN(x) "0::/kubepods/burstable/pod" x "/c\n"

/* A /proc of plain files. Lists are made from second 100 on, each a second after the last: the
 * first at tick 10,000 where a second has 100. */
#define LIST_NS (100 * GS_NS_PER_S)

struct proc {
    char dir[64];
    int lists;
    struct gs_process_pods *pods;
};

static void make(struct proc *proc)
{
    *proc = (struct proc){.dir = "/tmp/gs-proc-XXXXXX"};
    assert_non_null(mkdtemp(proc->dir));
    proc->pods = gs_process_pods_new(proc->dir);
    assert_non_null(proc->pods);
}

static void clear(struct proc *proc)
{
    gs_process_pods_free(proc->pods);
    remove_tree(proc->dir);
}

/* As the kernel has it: the name is the process' own. */
static void run(const struct proc *proc, uint32_t pid, const char *name, unsigned long long began,
                const char *cgroup)
{
    char text[512];
    snprintf(
        text, sizeof(text),
        "%u (%s) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %llu 4096 1 18446744073709551615",
        pid, name, began);
    fake_proc_put(proc->dir, pid, "stat", text, strlen(text));
    fake_proc_put(proc->dir, pid, "cgroup", cgroup, strlen(cgroup));
}

/* In place of its cgroup, what cannot be read. */
static void hide(const struct proc *proc, uint32_t pid, unsigned long long began)
{
    char path[128];
    run(proc, pid, "x", began, "");
    snprintf(path, sizeof(path), "%s/%u/cgroup", proc->dir, pid);
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void end(const struct proc *proc, uint32_t pid)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%u", proc->dir, pid);
    remove_tree(path);
}

/* One PID in a list of its own. "": nobody's. */
static const char *ask(struct proc *proc, uint32_t pid)
{
    static char uid[GS_POD_UID_BYTES];
    uid[0] = '\0';
    gs_process_pods_begin(proc->pods);
    gs_process_pods_find(proc->pods, 0, LIST_NS + proc->lists++ * GS_NS_PER_S, pid, uid);
    gs_process_pods_end(proc->pods);
    return uid;
}

static void a_process_is_its_pods(void **state)
{
    static const struct {
        const char *row, *name, *cgroup, *uid;
    } rows[] = {
        {"v2 without a newline", "python", "0::/kubepods/pod" A "/c", A},
        {"v1", "python",
         "12:memory:/kubepods/burstable/pod" A "/c\n11:cpu,cpuacct:/kubepods/burstable/pod" A
         "/c\n1:name=systemd:/kubepods/burstable/pod" A "/c\n",
         A},
        {"both", "python", "1:memory:/kubepods/pod" A "/c\n0::/system.slice/containerd.service\n",
         A},
        {"a namespace of one's own", "python", "0::/../../pod" A "/c\n", A},
        {"a name with brackets", "a) R 1 (b", IN(A), A},
        {"a name of brackets alone", ")))", IN(A), A},
        {"a name with a newline", "a\n0::/kubepods/pod" B, IN(A), A},
        {"a name like the field", "x) 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 0", IN(A), A},
        {"colons in its path", "python", "0::/kubepods/pod" A "/c:d:e\n", A},
        {"two hierarchies, two pods", "python",
         "2:cpu:/kubepods/pod" A "/c\n1:memory:/kubepods/pod" B "/c\n", ""},
        {"the host's", "python", "0::/system.slice/ssh.service\n", ""},
        {"lines that are none", "python", "kubepods\n:\n::\n0:\n", ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct proc proc;
        make(&proc);
        run(&proc, 7, r->name, 500, r->cgroup);
        row_text(r->row, ask(&proc, 7), r->uid);
        row_text(r->row, ask(&proc, 7), r->uid);
        clear(&proc);
    }
}

static void what_cannot_be_read_is_nobodys(void **state)
{
    static const struct {
        const char *row, *stat, *cgroup; /* NULL: no such file */
    } rows[] = {
        {"no stat", NULL, IN(A)},
        {"no cgroup", "7 (x) S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 500 1\n", NULL},
        {"no name", "7 x S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 500 1", IN(A)},
        {"it ends early", "7 (x) S 1 1 1 0", IN(A)},
        {"no number", "7 (x) S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 -500 1", IN(A)},
        {"too large a number",
         "7 (x) S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 18446744073709551616 1", IN(A)},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct proc proc;
        make(&proc);
        if (r->stat)
            fake_proc_put(proc.dir, 7, "stat", r->stat, strlen(r->stat));
        if (r->cgroup)
            fake_proc_put(proc.dir, 7, "cgroup", r->cgroup, strlen(r->cgroup));
        row_text(r->row, ask(&proc, 7), "");
        clear(&proc);
    }
}

/* What becomes of PID 7 from one list of the driver's to the next. */
static void a_pid_that_others_have_is_nobodys(void **state)
{
    enum { NOBODY, FIRST, SECOND, YOUNG, LATE, HIDDEN }; /* whose process it is */
    static const struct {
        const char *row;
        struct {
            bool listed;
            int has;
            const char *uid;
        } lists[4];
    } rows[] = {
        {"it stays", {{true, FIRST, A}, {true, FIRST, A}, {true, FIRST, A}, {true, FIRST, A}}},
        {"it ends", {{true, FIRST, A}, {true, NOBODY, ""}, {false, NOBODY, ""}, {false}}},
        {"taken by another", {{true, FIRST, A}, {true, SECOND, ""}, {true, SECOND, ""}, {false}}},
        {"taken a list later",
         {{true, FIRST, A}, {true, NOBODY, ""}, {true, SECOND, ""}, {true, SECOND, ""}}},
        {"never seen, then taken",
         {{true, NOBODY, ""}, {true, SECOND, ""}, {true, SECOND, ""}, {true, SECOND, ""}}},
        {"taken after it had left the list",
         {{true, FIRST, A}, {false, NOBODY, ""}, {true, SECOND, B}, {true, SECOND, B}}},
        {"taken after the list was made",
         {{true, LATE, ""}, {true, LATE, ""}, {false, LATE, ""}, {true, SECOND, B}}},
        {"begun while the list was made",
         {{true, YOUNG, ""}, {true, YOUNG, B}, {true, SECOND, ""}, {false}}},
        {"its cgroup cannot be read for a while",
         {{true, HIDDEN, ""}, {true, FIRST, A}, {true, HIDDEN, ""}, {true, FIRST, A}}},
        {"taken while its cgroup could not be read",
         {{true, HIDDEN, ""}, {true, SECOND, ""}, {true, SECOND, ""}, {true, SECOND, ""}}},
    };
    static const unsigned long long began[] = {[SECOND] = 600, [YOUNG] = 10050, [LATE] = 100000000};
    GS_FOR_EACH_ROW (r, rows) {
        struct proc proc;
        make(&proc);
        for (size_t i = 0; i < 4; i++) {
            end(&proc, 7);
            if (r->lists[i].has == FIRST)
                run(&proc, 7, "x", 500, IN(A));
            else if (r->lists[i].has == HIDDEN)
                hide(&proc, 7, 500);
            else if (r->lists[i].has != NOBODY)
                run(&proc, 7, "x", began[r->lists[i].has], IN(B));
            if (r->lists[i].listed)
                row_text(r->row, ask(&proc, 7), r->lists[i].uid);
            else
                row_text(r->row, ask(&proc, 8), "");
        }
        clear(&proc);
    }
}

/* As when a process uses two GPUs. */
static void a_list_has_one_answer_for_a_pid(void **state)
{
    struct proc proc;
    char uid[GS_POD_UID_BYTES] = "";
    make(&proc);
    run(&proc, 7, "x", 500, IN(A));
    gs_process_pods_begin(proc.pods);
    assert_true(gs_process_pods_find(proc.pods, 0, LIST_NS, 7, uid));
    end(&proc, 7);
    run(&proc, 7, "x", 600, IN(B));
    assert_true(gs_process_pods_find(proc.pods, 1, LIST_NS, 7, uid));
    assert_string_equal(uid, A);
    gs_process_pods_end(proc.pods);
    assert_string_equal(ask(&proc, 7), "");
    clear(&proc);
}

/* PID 7 was a's on GPUs 0 and 1, and b's has it by now. */
static void a_refused_list_is_none_without_it(void **state)
{
    enum { TIMES = 3 };
    static const struct {
        const char *row;
        gs_gpu_mask refused[TIMES];
        const char *uid;
    } rows[] = {
        {"lists without it", {0, 0, 0}, B},    {"one refuses, once", {1, 0, 0}, B},
        {"one refuses", {1, 1, 1}, ""},        {"the other refuses", {2, 2, 2}, ""},
        {"both refuse", {3, 3, 3}, ""},        {"it left the one, then the other", {1, 2, 0}, B},
        {"another GPU refuses", {4, 4, 4}, B},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct proc proc;
        char uid[GS_POD_UID_BYTES] = "";
        make(&proc);
        run(&proc, 7, "x", 500, IN(A));
        gs_process_pods_begin(proc.pods);
        assert_true(gs_process_pods_find(proc.pods, 0, LIST_NS, 7, uid));
        assert_true(gs_process_pods_find(proc.pods, 1, LIST_NS, 7, uid));
        gs_process_pods_end(proc.pods);
        end(&proc, 7);
        run(&proc, 7, "x", 600, IN(B));
        for (size_t i = 0; i < TIMES; i++) {
            gs_process_pods_begin(proc.pods);
            for (uint32_t gpu = 0; gpu < TIMES; gpu++)
                if (r->refused[i] & GS_GPU_BIT(gpu))
                    gs_process_pods_refused(proc.pods, gpu);
            gs_process_pods_end(proc.pods);
        }
        row_text(r->row, ask(&proc, 7), r->uid);
        clear(&proc);
    }
}

static void pids_have_a_ceiling_and_are_forgotten(void **state)
{
    struct proc proc;
    char uid[GS_POD_UID_BYTES] = "untouched";
    make(&proc);
    run(&proc, 5000, "x", 500, IN(A));
    for (int round = 0; round < 2; round++) {
        gs_process_pods_begin(proc.pods);
        for (uint32_t pid = 1; pid <= GS_PROCESS_PODS_MAX; pid++)
            assert_false(gs_process_pods_find(proc.pods, 0, LIST_NS, pid, uid));
        assert_false(gs_process_pods_find(proc.pods, 0, LIST_NS, 5000, uid));
        assert_string_equal(uid, "untouched");
        gs_process_pods_end(proc.pods);
    }
    assert_string_equal(ask(&proc, 5000), ""); /* the others are forgotten at its end */
    assert_string_equal(ask(&proc, 5000), A);
    clear(&proc);
}

/* This process, by the kernel's own file, under a name that it gave itself. */
static void the_kernels_own_file_is_understood(void **state)
{
    const int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    static const struct {
        const char *row, *uid;
        int64_t ago_s;
    } rows[] = {{"a list of now", A, 0}, {"a list of the boot", "", INT32_MAX}};
    assert_int_equal(prctl(PR_SET_NAME, ") R 1 1 (x"), 0);
    GS_FOR_EACH_ROW (r, rows) {
        struct proc proc;
        char text[1024], uid[GS_POD_UID_BYTES] = "";
        make(&proc);
        FILE *file = fopen("/proc/self/stat", "re");
        assert_non_null(file);
        size_t len = fread(text, 1, sizeof(text), file);
        fclose(file);
        fake_proc_put(proc.dir, 7, "stat", text, len);
        fake_proc_put(proc.dir, 7, "cgroup", IN(A), strlen(IN(A)));
        gs_process_pods_begin(proc.pods);
        gs_process_pods_find(proc.pods, 0, now_ns - r->ago_s * GS_NS_PER_S, 7, uid);
        row_text(r->row, uid, r->uid);
        clear(&proc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_its_pods),
        cmocka_unit_test(what_cannot_be_read_is_nobodys),
        cmocka_unit_test(a_pid_that_others_have_is_nobodys),
        cmocka_unit_test(a_list_has_one_answer_for_a_pid),
        cmocka_unit_test(a_refused_list_is_none_without_it),
        cmocka_unit_test(pids_have_a_ceiling_and_are_forgotten),
        cmocka_unit_test(the_kernels_own_file_is_understood),
    };
    return GS_RUN(tests);
}
