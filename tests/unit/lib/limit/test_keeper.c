/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

#include "gpushare/limit/keeper.h"

#define POD "/kubepods/burstable/poda"

static const char *const addresses[] = {"0000:41:00.0", "0000:c1:00.0"};

struct fixture {
    struct cgroup_tree tree;
    struct gs_limiter *limiter;
    struct gs_keeper *keeper;
};

static void look(struct fixture *f)
{
    struct gs_region gpus[2];
    enum gs_enforced host = gs_limiter_look(f->limiter, addresses, 2, gpus);
    gs_keeper_gpus(f->keeper, host, gpus, 2);
}

static void open_keeper(struct fixture *f, enum gs_enforce mode, bool deny_foreign)
{
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, "/kubepods/burstable/other", true);
    const struct gs_limiter_options options = {f->tree.mount, &f->tree.host};
    assert_int_equal(gs_limiter_new(&options, &f->limiter, NULL), 0);
    const struct gs_keeper_options rules = {f->limiter, mode, deny_foreign};
    f->keeper = gs_keeper_new(&rules);
    assert_non_null(f->keeper);
    look(f);
}

static void close_keeper(struct fixture *f)
{
    gs_keeper_free(f->keeper);
    gs_limiter_free(f->limiter);
    tree_rmdir(&f->tree, "");
}

static void make_pod(struct fixture *f, uint64_t used)
{
    char text[256];
    tree_mkdir(&f->tree, POD);
    snprintf(text, sizeof(text), REGION_0 " %llu\n" REGION_1 " 0\n", (unsigned long long)used);
    tree_put(&f->tree, POD, "dmem.current", text);
}

static void make_pod_use_less(struct fixture *f)
{
    tree_put(&f->tree, POD, "dmem.current", REGION_0 " 4096\n" REGION_1 " 0\n");
}

static const struct gs_share four = {"a", 1, 4 * GIB};

static struct gs_kept kept(struct fixture *f)
{
    struct gs_kept pod = {0};
    assert_true(gs_keeper_find(f->keeper, "a", &pod));
    return pod;
}

static bool limited(struct fixture *f)
{
    return strstr(tree_get(&f->tree, POD, "dmem.max"), REGION_0 " 4294967296\n") != NULL;
}

static void modes_have_names(void **state)
{
    static const char *const rows[] = {"off", "observe", "preferred", "required"};
    for (int mode = GS_ENFORCE_OFF; mode <= GS_ENFORCE_REQUIRED; mode++)
        row_text(rows[mode], gs_enforce_name((enum gs_enforce)mode), rows[mode]);
}

#define NOT_ON "memory limits are not enabled (--enforce)"

/* A pod is given 4 GiB, its cgroup appears, one of its containers is about to start. */
static void a_pod_is_held_told_or_stopped_by_the_mode(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        bool insists; /* the pod */
        uint64_t used;
        int put_error;
        bool lies;
        bool may_start, held, limited;
        const char *reason;
    } rows[] = {
        {"off", GS_ENFORCE_OFF, false, 0, 0, false, true, false, false, "not started"},
        {"off, whatever the pod says", GS_ENFORCE_OFF, true, 0, 0, false, true, false, false,
         "not started"},
        {"observe", GS_ENFORCE_OBSERVE, false, 0, 0, false, true, false, false, NOT_ON},
        {"observe, above its share", GS_ENFORCE_OBSERVE, false, 5 * GIB, 0, false, true, false,
         false, NOT_ON},
        {"observe, a pod that insists", GS_ENFORCE_OBSERVE, true, 0, 0, false, true, true, true,
         ""},
        {"observe, a pod that insists cannot be limited", GS_ENFORCE_OBSERVE, true, 0, EROFS, false,
         false, false, false, "the host's cgroup file system is mounted read-only"},
        {"preferred", GS_ENFORCE_PREFERRED, false, 0, 0, false, true, true, true, ""},
        {"preferred, read-only", GS_ENFORCE_PREFERRED, false, 0, EROFS, false, true, false, false,
         "the host's cgroup file system is mounted read-only"},
        {"preferred, a first container was quicker", GS_ENFORCE_PREFERRED, false, 5 * GIB, 0, false,
         true, false, true, "the pod used more before it was limited"},
        {"required", GS_ENFORCE_REQUIRED, false, 4 * GIB, 0, false, true, true, true, ""},
        {"required, not permitted", GS_ENFORCE_REQUIRED, false, 0, EACCES, false, false, false,
         false, "writing to the pod's cgroup is not permitted"},
        {"required, a write that changes nothing", GS_ENFORCE_REQUIRED, false, 5 * GIB, 0, true,
         false, false, false, "the pod used more before it was limited"},
        {"required, a first container was quicker", GS_ENFORCE_REQUIRED, false, 5 * GIB, 0, false,
         false, false, true, "the pod used more before it was limited"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        const char *reason = NULL;
        struct gs_share share = four;
        share.required = r->insists;
        open_keeper(&f, r->mode, false);
        row_equal(r->row, gs_keeper_share(f.keeper, &share, NULL), 0);
        f.tree.put_error = r->put_error;
        f.tree.put_errors = -1;
        f.tree.lies = r->lies;
        make_pod(&f, r->used);
        gs_keeper_appeared(f.keeper, "a");
        row_equal(r->row, limited(&f), r->limited); /* before anybody asks for a start */
        row_equal(r->row, gs_keeper_may_start(f.keeper, "a", &reason), r->may_start);
        row_equal(r->row, kept(&f).held, r->held);
        row_text(r->row, kept(&f).reason, r->reason);
        row_text(r->row, reason, r->mode == GS_ENFORCE_OFF ? "" : r->reason);
        struct gs_keeper_stats stats;
        gs_keeper_stats(f.keeper, &stats);
        row_equal(r->row, stats.over, r->mode != GS_ENFORCE_OFF && r->used > 4 * GIB);
        row_equal(r->row, stats.held, r->held);
        row_equal(r->row, stats.writes, r->limited);
        close_keeper(&f);
    }
}

static void a_share_that_is_told_late_limits_at_once(void **state)
{
    struct fixture f;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    make_pod(&f, 0);
    gs_keeper_appeared(f.keeper, "a"); /* nobody knows it yet */
    assert_false(limited(&f));
    assert_int_equal(gs_keeper_share(f.keeper, &four, NULL), 0);
    assert_true(limited(&f) && kept(&f).held);
    int writes = f.tree.writes;
    assert_int_equal(gs_keeper_share(f.keeper, &four, NULL), 0);
    assert_int_equal(f.tree.writes, writes);
    close_keeper(&f);
}

static void a_pod_that_asks_for_its_limit_later_gets_it_then(void **state)
{
    struct gs_share share = four;
    struct fixture f;
    open_keeper(&f, GS_ENFORCE_OBSERVE, false);
    make_pod(&f, 0);
    for (int required = 0; required < 2; required++) {
        share.required = required;
        assert_int_equal(gs_keeper_share(f.keeper, &share, NULL), 0);
        assert_int_equal(limited(&f), required);
    }
    close_keeper(&f);
}

static void a_start_is_decided_by_what_is_read_then(void **state)
{
    struct fixture f;
    const char *reason = NULL;
    open_keeper(&f, GS_ENFORCE_REQUIRED, false);
    gs_keeper_share(f.keeper, &four, NULL);
    make_pod(&f, 0);
    gs_keeper_appeared(f.keeper, "a");
    assert_true(kept(&f).held);
    tree_put(&f.tree, POD, "dmem.max", REGION_1 " max\n" REGION_0 " max\n");
    f.tree.put_error = EROFS;
    f.tree.put_errors = 1;
    assert_false(gs_keeper_may_start(f.keeper, "a", &reason));
    assert_string_equal(reason, "the host's cgroup file system is mounted read-only");
    assert_true(gs_keeper_may_start(f.keeper, "a", &reason) && limited(&f));
    close_keeper(&f);
}

static bool has_limit(struct fixture *f, uint64_t bytes)
{
    char line[96];
    snprintf(line, sizeof(line), REGION_0 " %llu\n", (unsigned long long)bytes);
    return strstr(tree_get(&f->tree, POD, "dmem.max"), line) != NULL;
}

static void use(struct fixture *f, uint64_t bytes)
{
    char text[256];
    snprintf(text, sizeof(text), REGION_0 " %llu\n" REGION_1 " 0\n", (unsigned long long)bytes);
    tree_put(&f->tree, POD, "dmem.current", text);
}

/* Nothing is taken from it, and it gets no more. */
static void a_pod_that_runs_already_keeps_what_it_has(void **state)
{
    static const struct {
        const char *row;
        uint64_t used, limit;
        bool starts; /* another container of it, where limits are required */
    } rows[] = {
        {"uses nothing", 0, 4 * GIB, true},
        {"less than its share", 4 * GIB - 1, 4 * GIB, true},
        {"its share", 4 * GIB, 4 * GIB, true},
        {"a byte more", 4 * GIB + 1, 4 * GIB + 1, false},
        {"above its share", 9 * GIB, 9 * GIB, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        for (enum gs_enforce mode = GS_ENFORCE_PREFERRED; mode <= GS_ENFORCE_REQUIRED; mode++) {
            struct fixture f;
            struct gs_share share = four;
            const char *reason;
            share.runs = true;
            open_keeper(&f, mode, false);
            make_pod(&f, r->used);
            gs_keeper_share(f.keeper, &share, NULL);
            row_true(r->row, has_limit(&f, r->limit));
            row_text(r->row, kept(&f).reason,
                     r->starts ? "" : "the pod used more before it was limited");
            row_equal(r->row, gs_keeper_may_start(f.keeper, "a", &reason),
                      r->starts || mode == GS_ENFORCE_PREFERRED);
            row_equal(r->row, gs_keeper_enforces(f.keeper, 0), GS_ENFORCED_DMEM);
            make_pod_use_less(&f);
            gs_keeper_pass(f.keeper);
            row_true(r->row, limited(&f) && kept(&f).held);
            use(&f, r->used); /* it had it once: that is no right to it */
            gs_keeper_pass(f.keeper);
            row_true(r->row, limited(&f));
            close_keeper(&f);
        }
    }
}

static void what_a_pod_has_above_its_share_only_shrinks(void **state)
{
    static const struct {
        uint64_t used, limit;
    } steps[] = {{9, 9}, {9, 9}, {7, 7}, {8, 7}, {5, 5}, {6, 5}, {3, 4}, {9, 4}};
    struct fixture f;
    struct gs_share share = four;
    share.runs = true;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    make_pod(&f, 9 * GIB);
    gs_keeper_share(f.keeper, &share, NULL);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        use(&f, steps[i].used * GIB);
        gs_keeper_pass(f.keeper);
        assert_true(has_limit(&f, steps[i].limit * GIB));
        assert_int_equal(kept(&f).held, steps[i].used <= 4);
    }
    close_keeper(&f);
}

/* Before 7.3 a limit below what is in use is accepted and ignored: it grew between look and write.
 */
static void a_kernel_that_ignored_a_limit_is_asked_for_what_is_in_use_then(void **state)
{
    struct fixture f;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    gs_keeper_share(f.keeper, &four, NULL);
    make_pod(&f, 5 * GIB);
    f.tree.lies = true;
    gs_keeper_appeared(f.keeper, "a");
    assert_true(has_limit(&f, UINT64_MAX) || !limited(&f));
    f.tree.lies = false;
    use(&f, 6 * GIB);
    gs_keeper_pass(f.keeper);
    assert_true(has_limit(&f, 6 * GIB));
    tree_put(&f.tree, POD, "dmem.max", REGION_1 " max\n" REGION_0 " max\n"); /* lost, and it grew */
    f.tree.lies = true;
    use(&f, 7 * GIB);
    gs_keeper_pass(f.keeper);
    f.tree.lies = false;
    gs_keeper_pass(f.keeper);
    assert_true(has_limit(&f, 7 * GIB));
    close_keeper(&f);
}

/* A start, or a container that runs, and no cgroup; or several; or writes that are refused. */
static void where_nothing_holds_a_pod_it_is_told(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        bool runs, asks, region; /* of the pod; whether its GPU's memory is counted */
        const char *folders[2];
        int put_error;
        bool starts, told;
        enum gs_enforced word;
        enum gs_limit_outcome outcome;
    } rows[] = {
        {"it does not start yet",
         GS_ENFORCE_PREFERRED,
         false,
         false,
         true,
         {NULL},
         0,
         true,
         false,
         GS_ENFORCED_DMEM,
         GS_LIMIT_NO_POD},
        {"not found",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         true,
         {NULL},
         0,
         true,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_NO_POD},
        {"not found, required",
         GS_ENFORCE_REQUIRED,
         false,
         true,
         true,
         {NULL},
         0,
         false,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_NO_POD},
        {"not found, observed",
         GS_ENFORCE_OBSERVE,
         false,
         true,
         true,
         {NULL},
         0,
         true,
         false,
         GS_ENFORCED_NOT_ON,
         GS_LIMIT_NO_POD},
        {"not found, and it runs",
         GS_ENFORCE_PREFERRED,
         true,
         false,
         true,
         {NULL},
         0,
         true,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_NO_POD},
        {"not found, no region",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         false,
         {NULL},
         0,
         true,
         false,
         GS_ENFORCED_ABSENT,
         GS_LIMIT_NO_POD},
        {"another class",
         GS_ENFORCE_REQUIRED,
         false,
         true,
         true,
         {"/kubepods/poda"},
         0,
         true,
         false,
         GS_ENFORCED_DMEM,
         GS_LIMIT_HELD},
        {"another tree",
         GS_ENFORCE_REQUIRED,
         false,
         true,
         true,
         {"/kubepods.slice/kubepods-poda.slice"},
         0,
         true,
         false,
         GS_ENFORCED_DMEM,
         GS_LIMIT_HELD},
        {"two trees",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         true,
         {POD, "/kubepods.slice/kubepods-poda.slice"},
         0,
         true,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_TWICE},
        {"two trees, required",
         GS_ENFORCE_REQUIRED,
         true,
         true,
         true,
         {POD, "/kubepods.slice/kubepods-poda.slice"},
         0,
         false,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_TWICE},
        {"refused",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         true,
         {POD},
         EACCES,
         true,
         true,
         GS_ENFORCED_DENIED,
         GS_LIMIT_DENIED},
        {"read-only",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         true,
         {POD},
         EROFS,
         true,
         true,
         GS_ENFORCED_READ_ONLY,
         GS_LIMIT_READ_ONLY},
        {"the disk",
         GS_ENFORCE_PREFERRED,
         false,
         true,
         true,
         {POD},
         EIO,
         true,
         true,
         GS_ENFORCED_NOT_HELD,
         GS_LIMIT_FAILED},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        struct gs_share share = four;
        struct gs_kept news;
        struct gs_keeper_stats stats;
        enum gs_verdict verdict;
        const char *reason = "";
        share.runs = r->runs;
        open_keeper(&f, r->mode, false);
        if (!r->region)
            tree_put(&f.tree, "", "dmem.capacity", REGION_1 " 17179869184\n");
        tree_mkdirs(&f.tree, "/kubepods.slice/x", true);
        look(&f);
        f.tree.put_error = r->put_error;
        f.tree.put_errors = -1;
        for (size_t i = 0; i < 2 && r->folders[i]; i++)
            tree_mkdir(&f.tree, r->folders[i]);
        gs_keeper_share(f.keeper, &share, NULL);
        if (r->asks)
            row_equal(r->row, gs_keeper_may_start(f.keeper, "a", &reason), r->starts);
        gs_keeper_pass(f.keeper);
        row_equal(r->row, kept(&f).outcome, r->outcome);
        row_equal(r->row, gs_keeper_next_news(f.keeper, &news, &verdict), r->told);
        gs_keeper_stats(f.keeper, &stats);
        row_equal(r->row, stats.unheld, r->told);
        row_equal(r->row, stats.held, r->outcome == GS_LIMIT_HELD);
        row_equal(r->row, gs_keeper_enforces(f.keeper, 0), r->word);
        row_equal(r->row, gs_keeper_enforces(f.keeper, 1),
                  r->mode == GS_ENFORCE_OBSERVE ? GS_ENFORCED_NOT_ON : GS_ENFORCED_DMEM);
        /* what was in the way goes, and the word is true again */
        f.tree.put_error = 0;
        tree_rmdir(&f.tree, "/kubepods.slice");
        look(&f);
        if (!tree_has(&f.tree, POD, NULL) && !tree_has(&f.tree, "/kubepods/poda", NULL))
            tree_mkdir(&f.tree, POD);
        gs_keeper_pass(f.keeper);
        row_equal(r->row, kept(&f).held, r->mode != GS_ENFORCE_OBSERVE && r->region);
        if (r->region && r->mode != GS_ENFORCE_OBSERVE)
            row_equal(r->row, gs_keeper_enforces(f.keeper, 0), GS_ENFORCED_DMEM);
        /* the pod ends: that its cgroup is gone is no news */
        tree_rmdir(&f.tree, tree_has(&f.tree, POD, NULL) ? POD : "/kubepods/poda");
        gs_keeper_pass(f.keeper);
        gs_keeper_stats(f.keeper, &stats);
        row_equal(r->row, stats.unheld, 0);
        close_keeper(&f);
    }
}

static void a_limit_of_an_earlier_run_is_recognised(void **state)
{
    struct fixture f;
    struct gs_share share = four;
    share.runs = true;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    make_pod(&f, 4 * GIB);
    tree_put(&f.tree, POD, "dmem.max", REGION_0 " 4294967296\n" REGION_1 " max\n");
    gs_keeper_share(f.keeper, &share, NULL);
    assert_true(kept(&f).held);
    assert_int_equal(f.tree.writes, 0);
    /* from here on it is like any other: what is lost is repaired */
    tree_put(&f.tree, POD, "dmem.max", REGION_1 " max\n" REGION_0 " max\n");
    gs_keeper_pass(f.keeper);
    assert_true(kept(&f).held && limited(&f));
    close_keeper(&f);
}

static void a_pass_repairs_what_was_lost_and_counts_it(void **state)
{
    struct fixture f;
    struct gs_keeper_stats stats;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    gs_keeper_share(f.keeper, &four, NULL);
    gs_keeper_pass(f.keeper);
    gs_keeper_stats(f.keeper, &stats);
    assert_true(stats.held == 0 && stats.unheld == 0);
    make_pod(&f, 0);
    gs_keeper_appeared(f.keeper, "a");
    tree_put(&f.tree, POD, "dmem.max", REGION_1 " max\n" REGION_0 " max\n");
    gs_keeper_pass(f.keeper);
    gs_keeper_pass(f.keeper);
    gs_keeper_stats(f.keeper, &stats);
    assert_true(limited(&f) && stats.held == 1 && stats.writes == 1 && stats.repairs == 1);
    /* a cgroup made again is a first limit, no repair */
    tree_rmdir(&f.tree, POD);
    gs_keeper_pass(f.keeper);
    gs_keeper_stats(f.keeper, &stats);
    assert_true(stats.held == 0);
    make_pod(&f, 0);
    gs_keeper_appeared(f.keeper, "a");
    gs_keeper_stats(f.keeper, &stats);
    assert_true(limited(&f) && stats.writes == 2 && stats.repairs == 1 && stats.unheld == 0);
    /* the driver lets go of the GPU */
    tree_put(&f.tree, POD, "dmem.max", REGION_1 " max\n");
    gs_keeper_pass(f.keeper);
    gs_keeper_stats(f.keeper, &stats);
    assert_true(stats.held == 0 && stats.unheld == 1);
    close_keeper(&f);
}

/* Four GiB are its share. */
static void people_are_told_once_of_each_trouble(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        bool insists;
        int check_error, put_error;
        uint64_t used;
        enum gs_verdict verdict;
        const char *reason;
    } rows[] = {
        {"observed, below its share", GS_ENFORCE_OBSERVE, false, 0, 0, GIB, GS_VERDICT_FINE, ""},
        {"observed, above it", GS_ENFORCE_OBSERVE, false, 0, 0, 5 * GIB,
         GS_VERDICT_WOULD_BE_REFUSED, NOT_ON},
        {"off", GS_ENFORCE_OFF, false, 0, 0, 5 * GIB, GS_VERDICT_FINE, ""},
        {"held", GS_ENFORCE_PREFERRED, false, 0, 0, GIB, GS_VERDICT_FINE, ""},
        {"not held", GS_ENFORCE_PREFERRED, false, 0, EACCES, GIB, GS_VERDICT_NOT_HELD,
         "writing to the pod's cgroup is not permitted"},
        {"a host that cannot says so once for all", GS_ENFORCE_PREFERRED, false, EMEDIUMTYPE, 0,
         GIB, GS_VERDICT_FINE, ""},
        {"but a pod that insists is told", GS_ENFORCE_PREFERRED, true, EMEDIUMTYPE, 0, GIB,
         GS_VERDICT_NOT_HELD, "the host uses cgroup v1, or v1 and v2 together (hybrid)"},
        {"required, used before", GS_ENFORCE_REQUIRED, false, 0, 0, 5 * GIB, GS_VERDICT_NOT_HELD,
         "the pod used more before it was limited"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        struct gs_kept pod = {.reason = ""};
        enum gs_verdict verdict = GS_VERDICT_FINE;
        struct gs_share share = four;
        share.required = r->insists;
        open_keeper(&f, r->mode, false);
        f.tree.check_error = r->check_error;
        look(&f);
        f.tree.put_error = r->put_error;
        f.tree.put_errors = -1;
        make_pod(&f, r->used);
        gs_keeper_share(f.keeper, &share, NULL);
        row_equal(r->row, gs_keeper_next_news(f.keeper, &pod, &verdict),
                  r->verdict != GS_VERDICT_FINE);
        row_equal(r->row, verdict, r->verdict);
        row_text(r->row, pod.reason, r->reason);
        gs_keeper_pass(f.keeper);
        row_true(r->row, !gs_keeper_next_news(f.keeper, &pod, &verdict));
        close_keeper(&f);
    }
}

static void use_has_a_peak(void **state)
{
    struct fixture f;
    open_keeper(&f, GS_ENFORCE_OBSERVE, false);
    make_pod(&f, 3 * GIB);
    gs_keeper_share(f.keeper, &four, NULL);
    assert_true(kept(&f).used_bytes == 3 * GIB);
    make_pod_use_less(&f);
    gs_keeper_pass(f.keeper);
    assert_true(kept(&f).used_bytes == 4096 && kept(&f).peak_on[0] == 3 * GIB);
    assert_int_equal(f.tree.writes, 0);
    close_keeper(&f);
}

static void the_kernel_remembers_a_better_peak_than_looks_find(void **state)
{
    struct fixture f;
    open_keeper(&f, GS_ENFORCE_OBSERVE, false);
    make_pod(&f, 3 * GIB);
    tree_put(&f.tree, POD, "dmem.peak", REGION_0 " 5368709120\n" REGION_1 " 0\n");
    gs_keeper_share(f.keeper, &four, NULL);
    assert_true(kept(&f).used_bytes == 3 * GIB && kept(&f).peak_on[0] == 5 * GIB);
    tree_put(&f.tree, POD, "dmem.peak", REGION_0 " 0\n" REGION_1 " 0\n"); /* registered anew */
    gs_keeper_pass(f.keeper);
    assert_true(kept(&f).peak_on[0] == 5 * GIB);
    close_keeper(&f);
}

static void use_is_known_of_each_gpu_that_the_kernel_counts(void **state)
{
    const struct gs_share both = {"a", 7, 4 * GIB};
    struct fixture f;
    struct gs_kept pod;
    open_keeper(&f, GS_ENFORCE_OBSERVE, false);
    gs_keeper_share(f.keeper, &both, NULL);
    assert_int_equal(kept(&f).counted, 0); /* no cgroup yet */
    make_pod(&f, 3 * GIB);
    tree_put(&f.tree, POD, "dmem.current", REGION_0 " 4096\n" REGION_1 " 3221225472\n");
    gs_keeper_pass(f.keeper);
    assert_true(gs_keeper_find(f.keeper, "a", &pod));
    assert_int_equal(pod.counted, 3); /* the third has no region */
    assert_true(pod.used_on[0] == 4096 && pod.used_on[1] == 3 * GIB);
    assert_true(pod.peak_on[0] == 4096 && pod.used_bytes == 3 * GIB);
    tree_put(&f.tree, POD, "dmem.current", REGION_0 " 2147483648\n" REGION_1 " 4096\n");
    gs_keeper_pass(f.keeper);
    assert_true(kept(&f).used_bytes == 2 * GIB); /* the most, whichever comes last */
    tree_put(&f.tree, POD, "dmem.current", "what\n");
    gs_keeper_pass(f.keeper);
    assert_int_equal(kept(&f).counted, 0);
    assert_false(gs_keeper_find(f.keeper, "b", &pod));
    close_keeper(&f);
}

static void foreign_gpus_are_denied_where_asked(void **state)
{
    static const struct {
        const char *row;
        bool deny;
        const char *max;
    } rows[] = {
        {"left alone", false, REGION_0 " 4294967296\n" REGION_1 " max\n"},
        {"denied", true, REGION_0 " 4294967296\n" REGION_1 " 0\n"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        open_keeper(&f, GS_ENFORCE_REQUIRED, r->deny);
        make_pod(&f, 0);
        gs_keeper_share(f.keeper, &four, NULL);
        row_text(r->row, tree_get(&f.tree, POD, "dmem.max"), r->max);
        row_equal(r->row, gs_keeper_enforces(f.keeper, 2), GS_ENFORCED_ABSENT); /* no such GPU */
        close_keeper(&f);
    }
}

static void the_only_user_of_a_gpu_is_shown_the_limit(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        bool one_user;
        uint64_t used;
        bool shown;
    } rows[] = {
        {"one", GS_ENFORCE_PREFERRED, true, 0, true},
        {"several share it", GS_ENFORCE_PREFERRED, false, 0, false},
        {"nothing is limited", GS_ENFORCE_OBSERVE, true, 0, false},
        {"off", GS_ENFORCE_OFF, true, 0, false},
        {"its pod is above the limit", GS_ENFORCE_REQUIRED, true, 5 * GIB, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_share share = four;
        struct fixture f;
        open_keeper(&f, r->mode, false);
        make_pod(&f, r->used);
        share.one_user = r->one_user;
        gs_keeper_share(f.keeper, &share, NULL);
        tree_mkdir(&f.tree, POD "/c");
        gs_keeper_appeared(f.keeper, "a");
        const char *max = tree_get(&f.tree, POD "/c", "dmem.max");
        row_equal(r->row, strstr(max, REGION_0 " 4294967296\n") != NULL, r->shown);
        close_keeper(&f);
    }
}

static bool is_shown(struct fixture *f)
{
    const char *max = tree_get(&f->tree, POD "/c/container", "dmem.max");
    return strstr(max, REGION_0 " 4294967296\n") != NULL;
}

/* How often it was looked until the last time. */
static int look_until(struct fixture *f, bool shown)
{
    int ticks = 0;
    while (ticks < 1000 && is_shown(f) == !shown && gs_keeper_show_again(f->keeper))
        ticks++;
    return ticks;
}

/* As crun has it, whose first process is in the way for a moment. */
static void a_cgroup_that_is_made_later_is_shown_the_limit(void **state)
{
    struct gs_share share = four;
    struct fixture f;
    const char *reason;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    make_pod(&f, 0);
    share.one_user = true;
    gs_keeper_share(f.keeper, &share, NULL);
    gs_keeper_appeared(f.keeper, "a");
    assert_false(gs_keeper_show_again(f.keeper)); /* nothing starts */
    assert_true(gs_keeper_may_start(f.keeper, "a", &reason));
    for (int i = 0; i < 100; i++)
        assert_true(gs_keeper_show_again(f.keeper));
    tree_mkdir(&f.tree, POD "/c");
    gs_keeper_appeared(f.keeper, "a"); /* after a while: from the beginning */
    tree_put(&f.tree, POD "/c", "cgroup.procs", "7\n");
    tree_mkdir(&f.tree, POD "/c/container");
    int before = f.tree.enablings;
    for (int i = 0; i < 10; i++)
        assert_true(gs_keeper_show_again(f.keeper));
    assert_int_equal(f.tree.enablings - before, 4); /* the 1st, 2nd, 4th, 8th time */
    assert_false(is_shown(&f));
    tree_put(&f.tree, POD "/c", "cgroup.procs", "");
    assert_int_equal(look_until(&f, true), 16 - 10);
    assert_true(is_shown(&f));
    assert_int_equal(look_until(&f, false), 128 - 16 - 1);
    assert_false(gs_keeper_show_again(f.keeper));
    close_keeper(&f);
}

static void only_who_is_shown_the_limit_is_looked_at_again(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        bool one_user, again;
    } rows[] = {
        {"one user", GS_ENFORCE_PREFERRED, true, true},
        {"several", GS_ENFORCE_PREFERRED, false, false},
        {"off", GS_ENFORCE_OFF, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_share share = four;
        struct fixture f;
        const char *reason;
        open_keeper(&f, r->mode, false);
        make_pod(&f, 0);
        share.one_user = r->one_user;
        gs_keeper_share(f.keeper, &share, NULL);
        gs_keeper_may_start(f.keeper, "a", &reason);
        row_equal(r->row, gs_keeper_show_again(f.keeper), r->again);
        close_keeper(&f);
    }
}

static void a_gpu_that_cannot_be_limited_has_its_reason(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        int check_error;
        const char *capacity;
        bool enforces, may_start;
        const char *reason;
    } rows[] = {
        {"it can", GS_ENFORCE_REQUIRED, 0, REGION_0 " 1\n", true, true, ""},
        {"not switched on", GS_ENFORCE_OBSERVE, 0, REGION_0 " 1\n", false, true, NOT_ON},
        {"cgroup v1", GS_ENFORCE_REQUIRED, EMEDIUMTYPE, REGION_0 " 1\n", false, false,
         "the host uses cgroup v1, or v1 and v2 together (hybrid)"},
        {"cgroup v1, observed", GS_ENFORCE_OBSERVE, EMEDIUMTYPE, REGION_0 " 1\n", false, true,
         "the host uses cgroup v1, or v1 and v2 together (hybrid)"},
        {"no region", GS_ENFORCE_REQUIRED, 0, REGION_1 " 1\n", false, false,
         "the GPU's driver does not report its memory to the dmem controller"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        const char *reason = NULL;
        open_keeper(&f, r->mode, false);
        f.tree.check_error = r->check_error;
        tree_put(&f.tree, "", "dmem.capacity", r->capacity);
        look(&f);
        enum gs_enforced enforced = gs_keeper_enforces(f.keeper, 0);
        row_equal(r->row, enforced == GS_ENFORCED_DMEM, r->enforces);
        row_text(r->row, gs_enforced_reason(enforced), r->reason);
        make_pod(&f, 0);
        gs_keeper_share(f.keeper, &four, NULL);
        row_equal(r->row, gs_keeper_may_start(f.keeper, "a", &reason), r->may_start);
        row_text(r->row, reason, r->reason);
        close_keeper(&f);
    }
}

static void pods_come_and_go_up_to_a_ceiling(void **state)
{
    struct fixture f;
    struct gs_kept pod;
    const char *reason;
    char uid[32];
    open_keeper(&f, GS_ENFORCE_REQUIRED, false);
    for (int i = 0; i <= GS_KEEPER_PODS_MAX; i++) {
        snprintf(uid, sizeof(uid), "p%d", i);
        const struct gs_share share = {uid, 1, GIB};
        assert_int_equal(gs_keeper_share(f.keeper, &share, NULL),
                         0); /* for the last, one that never ran goes */
    }
    gs_keeper_list_begin(f.keeper);
    for (int i = 1; i < GS_KEEPER_PODS_MAX; i++) {
        snprintf(uid, sizeof(uid), "p%d", i);
        const struct gs_share share = {uid, 1, GIB};
        assert_int_equal(gs_keeper_share(f.keeper, &share, NULL), 0);
    }
    gs_keeper_list_end(f.keeper);
    assert_false(gs_keeper_find(f.keeper, "p0", &pod));
    assert_true(gs_keeper_may_start(f.keeper, "p0", &reason)); /* not ours */
    assert_false(gs_keeper_may_start(f.keeper, "p1", &reason));
    assert_string_equal(reason, "the pod has no cgroup on this node");
    struct gs_error err = {0};
    const struct gs_share wrong = {"../x", 1, GIB};
    assert_int_equal(gs_keeper_share(f.keeper, &wrong, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    close_keeper(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(a_pod_is_held_told_or_stopped_by_the_mode),
        cmocka_unit_test(a_share_that_is_told_late_limits_at_once),
        cmocka_unit_test(a_pod_that_asks_for_its_limit_later_gets_it_then),
        cmocka_unit_test(a_start_is_decided_by_what_is_read_then),
        cmocka_unit_test(a_pod_that_runs_already_keeps_what_it_has),
        cmocka_unit_test(what_a_pod_has_above_its_share_only_shrinks),
        cmocka_unit_test(a_kernel_that_ignored_a_limit_is_asked_for_what_is_in_use_then),
        cmocka_unit_test(where_nothing_holds_a_pod_it_is_told),
        cmocka_unit_test(a_limit_of_an_earlier_run_is_recognised),
        cmocka_unit_test(a_pass_repairs_what_was_lost_and_counts_it),
        cmocka_unit_test(people_are_told_once_of_each_trouble),
        cmocka_unit_test(use_has_a_peak),
        cmocka_unit_test(the_kernel_remembers_a_better_peak_than_looks_find),
        cmocka_unit_test(use_is_known_of_each_gpu_that_the_kernel_counts),
        cmocka_unit_test(foreign_gpus_are_denied_where_asked),
        cmocka_unit_test(the_only_user_of_a_gpu_is_shown_the_limit),
        cmocka_unit_test(a_cgroup_that_is_made_later_is_shown_the_limit),
        cmocka_unit_test(only_who_is_shown_the_limit_is_looked_at_again),
        cmocka_unit_test(a_gpu_that_cannot_be_limited_has_its_reason),
        cmocka_unit_test(pods_come_and_go_up_to_a_ceiling),
    };
    return GS_RUN(tests);
}
