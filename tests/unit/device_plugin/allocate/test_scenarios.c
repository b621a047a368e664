/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of this folder's scenarios mean: an allocator of a node with a GPU 0 of 16 units
 * and a GPU 1 of 24 (allocate_rig.h). Calls for memory are numbered from 0. What the kubelet's
 * checkpoint has is a pod's UID, its units, and the calls that it has the answers of, with the GPUs
 * of the answer unless others are told: "p=8@0", "p=8@0,1", "p=8@0:1"; "none": it is empty.
 */
#include "allocate_rig.h"
#include "rows.h"
#include "scenario.h"

enum { CALLS = 16, LISTED = 8, IDS = 64 };

struct listed {
    struct gs_given given[2 * LISTED];
    size_t count, pods;
    char uids[LISTED][48];
};

static struct rig rig;
static uint64_t keys[CALLS];       /* of the calls so far */
static gs_gpu_mask answers[CALLS]; /* what they were given */
static uint64_t under_way[4];      /* writes without an answer yet */

static void begin(struct scenario *s)
{
    memset(keys, 0, sizeof(keys));
    memset(answers, 0, sizeof(answers));
    memset(under_way, 0, sizeof(under_way));
    rig_up(&rig);
}

static void end(void)
{
    gs_allocator_free(rig.alloc);
}

/* --- words --- */

static uint64_t key_of(unsigned call, uint32_t units)
{
    char texts[IDS][24];
    const char *ids[IDS];
    if (call < CALLS && keys[call])
        return keys[call];
    make_ids((int)call, units, texts, ids);
    return gs_allocate_key(ids, units);
}

static unsigned digits(const char **at)
{
    unsigned value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        value = value * 10 + (unsigned)(**at - '0');
    return value;
}

/* "0,1"; "none" */
static gs_gpu_mask gpus_of(struct scenario *s, const char *text)
{
    const char *at = text;
    gs_gpu_mask gpus = 0;
    while (*at >= '0' && *at <= '9') {
        gpus |= GS_GPU_BIT(digits(&at));
        at += *at == ',';
    }
    if (*at && strcmp(text, "none") != 0)
        scenario_fail(s, "%s are no GPUs", text);
    return gpus;
}

/* UID=UNITS@CALL,CALL:GPUS */
static void read_listed(struct scenario *s, struct listed *ret)
{
    const char *word = scenario_word(s), *at = word + strcspn(word, "=");
    const size_t first = ret->count;
    if (strcmp(word, "none") == 0)
        return;
    if (ret->pods == LISTED)
        scenario_fail(s, "too many pods");
    char *uid = ret->uids[ret->pods++];
    snprintf(uid, sizeof(ret->uids[0]), "%.*s", (int)(at - word), word);
    at += *at == '=';
    const uint32_t units = digits(&at);
    while ((*at == '@' || *at == ',') && ret->count < GS_COUNT_OF(ret->given)) {
        at++;
        const unsigned call = digits(&at);
        ret->given[ret->count++] = (struct gs_given){.uid = uid,
                                                     .key = key_of(call, units),
                                                     .units = units,
                                                     .gpus = call < CALLS ? answers[call] : 0};
    }
    if (*at && *at != ':')
        scenario_fail(s, "%s is not what a kubelet has", word);
    for (size_t i = first; *at && i < ret->count; i++)
        ret->given[i].gpus = gpus_of(s, at + 1);
}

/* of POD… up to a word that is none. false: the checkpoint was not read. */
static bool read_observed(struct scenario *s, bool at_allocate)
{
    static const char *const ends[] = {"=", "old", "api", "patient", "listed", "tried", "unasked"};
    struct listed listed = {0};
    bool more = true;
    if (!scenario_has(s, "of"))
        return false;
    while (more && scenario_peek(s)) {
        GS_FOR_EACH_ROW (word, ends)
            more = more && strcmp(scenario_peek(s), *word) != 0;
        if (more)
            read_listed(s, &listed);
    }
    gs_allocator_observe(rig.alloc, listed.given, listed.count, at_allocate);
    return true;
}

/* --- pods --- */

static void read_amounts(struct scenario *s, uint32_t to[3])
{
    const char *word = scenario_word(s), *at = word;
    for (int i = 0; i < 3 && *at >= '0' && *at <= '9'; i++) {
        to[i] = digits(&at);
        at += *at == '+';
    }
    if (*at)
        scenario_fail(s, "%s are no amounts", word);
}

/* pod NAME 4+8 on GPUS …: it is shown so. */
static void verb_pod(struct scenario *s)
{
    struct given_pod given = {.name = scenario_word(s), .gpu = -1};
    const struct {
        const char *word;
        bool *to;
    } flags[] = {{"assigned", &given.assigned},
                 {"overrides", &given.overrides},
                 {"deleting", &given.deleting},
                 {"sets-mps", &given.sets_mps}};
    const struct {
        const char *word;
        uint32_t *to;
    } numbers[] = {{"inits", &given.inits},
                   {"sidecars", &given.sidecars},
                   {"count", &given.gpu_count},
                   {"created", &given.created_s}};
    const struct {
        const char *word;
        enum gs_pod_phase phase;
    } phases[] = {{"Pending", GS_PHASE_PENDING},
                  {"Running", GS_PHASE_RUNNING},
                  {"Succeeded", GS_PHASE_SUCCEEDED}};
    read_amounts(s, given.units);
    while (scenario_peek(s)) {
        const unsigned at = s->at;
        GS_FOR_EACH_ROW (flag, flags)
            *flag->to |= scenario_has(s, flag->word);
        GS_FOR_EACH_ROW (number, numbers)
            *number->to =
                scenario_has(s, number->word) ? (uint32_t)scenario_number(s) : *number->to;
        GS_FOR_EACH_ROW (phase, phases)
            given.phase = scenario_has(s, phase->word) ? phase->phase : given.phase;
        if (scenario_has(s, "on")) {
            given.gpus = gpus_of(s, scenario_word(s));
            given.gpu = __builtin_ctzll(given.gpus);
        } else if (scenario_has(s, "json"))
            given.allocation = gpus_of(s, scenario_word(s));
        else if (scenario_has(s, "cores"))
            read_amounts(s, given.cores_pct);
        else if (scenario_has(s, "uid"))
            given.uid = scenario_word(s);
        else if (scenario_has(s, "node"))
            given.node = scenario_word(s);
        else if (scenario_has(s, "static"))
            given.static_uid = scenario_word(s);
        else if (scenario_has(s, "revision"))
            given.revision = (uint64_t)scenario_number(s);
        if (s->at == at)
            return;
    }
    give_pod(&rig, &given);
}

/* By its UID, which is its name unless it was given one. */
static void verb_gone(struct scenario *s)
{
    gs_allocator_pod_gone(rig.alloc, scenario_word(s));
}

static void verb_list(struct scenario *s)
{
    if (scenario_has(s, "begins"))
        gs_allocator_list_begin(rig.alloc);
    else if (scenario_has(s, "ends"))
        gs_allocator_list_end(rig.alloc);
}

static void verb_quick(struct scenario *s)
{
    if (scenario_has(s, "begins"))
        gs_allocator_quick_begin(rig.alloc);
    else if (scenario_has(s, "pods"))
        gs_allocator_quick_pods(rig.alloc);
    else if (scenario_has(s, "ends"))
        gs_allocator_list_end(rig.alloc);
}

/* gpu sick, cordoned, gone: GPU 0 now. */
static void verb_gpu(struct scenario *s)
{
    const bool sick = scenario_has(s, "sick"), cordoned = scenario_has(s, "cordoned");
    const bool gone = scenario_has(s, "gone");
    give_gpus(&rig, !sick && !gone, !cordoned, gone);
}

/* --- the plugin --- */

static void verb_restart(struct scenario *s)
{
    const int calls = rig.calls;
    const bool mps = scenario_has(s, "mps");
    gs_allocator_free(rig.alloc);
    rig_up(&rig);
    rig.calls = calls;
    if (!mps)
        return;
    gs_allocator_free(rig.alloc);
    rig.alloc = gs_allocator_new(&(struct gs_allocator_config){
        .names = &rig.names, .node = "n1", .clock = &rig.clock, .mps = true});
    give_gpus(&rig, true, true, 0);
}

/* told p:0 …, told, untold: what gpu-reassigned was when the plugin came. */
static void tell(struct scenario *s, bool told)
{
    struct gs_moved moved[LISTED];
    char uids[LISTED][48];
    uint32_t count = 0;
    while (scenario_peek(s) && count < LISTED) {
        const char *word = scenario_word(s);
        const size_t len = strcspn(word, ":");
        snprintf(uids[count], sizeof(uids[0]), "%.*s", (int)len, word);
        moved[count] = (struct gs_moved){uids[count], gpus_of(s, word + len + 1)};
        count++;
    }
    assert_int_equal(gs_allocator_moved_earlier(rig.alloc, count ? moved : NULL, count, told, NULL),
                     0);
}

static void verb_told(struct scenario *s)
{
    tell(s, true);
}

static void verb_untold(struct scenario *s)
{
    tell(s, false);
}

static void verb_observe(struct scenario *s)
{
    struct listed listed = {0};
    while (scenario_peek(s))
        read_listed(s, &listed);
    gs_allocator_observe(rig.alloc, listed.given, listed.count, false);
}

static void expect_why(struct scenario *s, const struct gs_error *err)
{
    while (scenario_peek(s))
        scenario_has_text(s, err->msg, scenario_word(s));
}

/* call UNITS (again: with the ids of the last, same N: of call N) of PODS old (a kubelet up
 * to 1.27) api away, or unasked, patient = GPU (or none, or list-first) cores N "part of the
 * error"; without "of", the checkpoint was not read
 */
static void verb_call(struct scenario *s)
{
    char texts[IDS][24], given[16];
    const char *ids[IDS];
    struct gs_allocate_answer answer = {0};
    struct gs_error err = {0};
    const uint32_t units = (uint32_t)scenario_number(s);
    rig.calls -= scenario_has(s, "again");
    const int same = scenario_has(s, "same") ? (int)scenario_number(s) : rig.calls;
    make_ids(same, units, texts, ids);
    const int call = rig.calls++;
    if (call < CALLS)
        keys[call] = gs_allocate_key(ids, units);
    const bool read = read_observed(s, true);
    const bool old = scenario_has(s, "old");
    const bool away = scenario_has(s, "api") && scenario_has(s, "away");
    const bool unasked = scenario_has(s, "unasked");
    const struct gs_allocate_request request = {.ids = ids,
                                                .id_count = units,
                                                .told = read,
                                                .skips_running = !old,
                                                .api = away      ? GS_API_TIMEOUT
                                                       : unasked ? GS_API_NOT_ASKED
                                                                 : GS_API_ANSWERED,
                                                .patient = scenario_has(s, "patient")};
    const enum gs_allocate_result result =
        gs_allocator_allocate(rig.alloc, &request, &answer, &err);
    snprintf(given, sizeof(given), "%s", result == GS_ALLOCATE_LIST_FIRST ? "list-first" : "none");
    if (result == GS_ALLOCATE_DONE)
        snprintf(given, sizeof(given), "%d", __builtin_ctzll(answer.gpus));
    if (call < CALLS)
        answers[call] = answer.gpus;
    if (!scenario_has(s, "="))
        return;
    scenario_is_text(s, "the GPU", given, scenario_word(s));
    if (scenario_has(s, "cores"))
        scenario_is(s, "compute", answer.cores_pct);
    expect_why(s, &err);
}

/* start CALL UNITS of PODS listed tried = ok, held, list-first, write-first "part of the error" */
static void verb_start(struct scenario *s)
{
    static const char *const results[] = {[GS_START_OK] = "ok",
                                          [GS_START_LIST_FIRST] = "list-first",
                                          [GS_START_WRITE_FIRST] = "write-first",
                                          [GS_START_HELD] = "held"};
    char texts[IDS][24];
    const char *ids[IDS];
    struct gs_error err = {0};
    const int call = (int)scenario_number(s);
    const uint32_t units = (uint32_t)scenario_number(s);
    make_ids(call, units, texts, ids);
    read_observed(s, false);
    const struct gs_start_request request = {.ids = ids,
                                             .id_count = units,
                                             .listed = scenario_has(s, "listed"),
                                             .write_tried = scenario_has(s, "tried")};
    const enum gs_start_result result = gs_allocator_start(rig.alloc, &request, &err);
    if (scenario_has(s, "="))
        scenario_is_text(s, "the start", results[result], scenario_word(s));
    expect_why(s, &err);
}

/* --- what is written --- */

/* moved {"p":[1]}, moved: that is what gpu-reassigned says, and it is written now. */
static void verb_moved(struct scenario *s)
{
    struct gs_buf now = GS_BUF(4096);
    char text[1024];
    const uint64_t state = gs_allocator_moved_print(rig.alloc, &now);
    snprintf(text, sizeof(text), "%.*s", (int)now.len, now.data);
    gs_buf_release(&now);
    gs_allocator_moved_written(rig.alloc, state);
    gs_allocator_moved_written(rig.alloc, state / 2); /* an older write is answered late */
    if (scenario_peek(s))
        scenario_is_text(s, "gpu-reassigned", text, scenario_word(s));
    if (gs_allocator_moved_due(rig.alloc))
        scenario_fail(s, "it is due again");
}

static const char *value_of(const struct gs_allocator_write *write, const char *key)
{
    for (size_t i = 0; i < write->annotation_count; i++) {
        if (strcmp(write->annotations[i].key, key) == 0)
            return write->annotations[i].value;
    }
    return "none";
}

/* write NAME idx I assigned BOOL event REASON "part of the message": the next one, which is done
 * then; refused, or (held) still under way. */
static void verb_write(struct scenario *s)
{
    struct gs_allocator_write write;
    if (!gs_allocator_next_write(rig.alloc, false, &write))
        scenario_fail(s, "nothing is to be written");
    scenario_is_text(s, "its pod", write.name, scenario_word(s));
    if (scenario_has(s, "idx"))
        scenario_is_text(s, "the index", value_of(&write, rig.names.idx), scenario_word(s));
    if (scenario_has(s, "assigned"))
        scenario_is_text(s, "assigned", value_of(&write, rig.names.assigned), scenario_word(s));
    if (scenario_has(s, "event") || scenario_has(s, "warning")) {
        const bool warning = strcmp(s->words[s->at - 1], "warning") == 0;
        if (!write.event || write.warning != warning)
            scenario_fail(s, "it is %s", write.event ? "another kind of event" : "no event");
        scenario_is_text(s, "the event", write.reason, scenario_word(s));
    }
    const bool refused = scenario_has(s, "refused"), held = scenario_has(s, "held");
    while (scenario_peek(s))
        scenario_has_text(s, write.message, scenario_word(s));
    for (size_t i = 0; held && i < GS_COUNT_OF(under_way); i++) {
        if (!under_way[i]) {
            under_way[i] = write.number;
            return;
        }
    }
    gs_allocator_write_done(rig.alloc, write.number, !refused);
}

/* writes done: those that were held; writes: all that are due, whatever they are */
static void verb_writes(struct scenario *s)
{
    struct gs_allocator_write write;
    if (scenario_has(s, "done")) {
        GS_FOR_EACH_ROW (number, under_way)
            gs_allocator_write_done(rig.alloc, *number, true);
        return;
    }
    while (gs_allocator_next_write(rig.alloc, false, &write))
        gs_allocator_write_done(rig.alloc, write.number, true);
}

static void verb_no(struct scenario *s)
{
    struct gs_allocator_write write;
    if (!scenario_has(s, "write"))
        scenario_fail(s, "no what?");
    if (gs_allocator_next_write(rig.alloc, false, &write))
        scenario_fail(s, "%s of %s is to be written", write.event ? write.reason : "the record",
                      write.name);
    s->checked++;
}

static void verb_wait(struct scenario *s)
{
    rig.now_ns += scenario_time(s);
}

/* Records that their owners changed. */
static void verb_put(struct scenario *s)
{
    if (scenario_has(s, "right"))
        gs_allocator_put_right(rig.alloc);
}

/* Units on one GPU of the largest pod that runs. */
static void find_largest(void *ctx, const struct gs_placed *pod)
{
    uint32_t *largest = ctx;
    if (pod->runs && pod->units > *largest)
        *largest = pod->units;
}

static void verb_expect(struct scenario *s)
{
    uint32_t largest = 0;
    struct gs_allocator_stats stats;
    gs_allocator_stats(rig.alloc, &stats);
    gs_allocator_each_placed(rig.alloc, find_largest, &largest);
    const int64_t due_ns = gs_allocator_write_due_ns(rig.alloc);
    const struct {
        const char *word;
        uint64_t found;
    } numbers[] = {{"pods", stats.pods},
                   {"waiting", stats.waiting},
                   {"no-room", stats.no_room},
                   {"largest", largest},
                   {"queued", stats.writes_queued},
                   {"untried", stats.writes_untried},
                   {"due", gs_allocator_moved_due(rig.alloc)},
                   {"due-ms", due_ns == INT64_MAX ? 0 : (uint64_t)(due_ns - rig.now_ns) / 1000000}};
    if (scenario_has(s, "used")) {
        scenario_is(s, "GPU 0", (long)stats.used_units[0]);
        scenario_is(s, "GPU 1", (long)stats.used_units[1]);
        return;
    }
    GS_FOR_EACH_ROW (number, numbers) {
        if (scenario_has(s, number->word)) {
            scenario_is(s, number->word, (long)number->found);
            return;
        }
    }
    scenario_fail(s, "%s is nothing to expect", scenario_word(s));
}

static const struct scenario_verb verbs[] = {
    {"pod", verb_pod},     {"gone", verb_gone},     {"list", verb_list},
    {"quick", verb_quick}, {"gpu", verb_gpu},       {"restart", verb_restart},
    {"told", verb_told},   {"untold", verb_untold}, {"observe", verb_observe},
    {"call", verb_call},   {"start", verb_start},   {"moved", verb_moved},
    {"write", verb_write}, {"writes", verb_writes}, {"no", verb_no},
    {"wait", verb_wait},   {"put", verb_put},       {"expect", verb_expect},
    {NULL, NULL},
};

static const struct scenario_layer layer = {.verbs = verbs, .begin = begin, .end = end};

int main(void)
{
    static const char *const files[] = {"tests/unit/device_plugin/allocate/allocator.scenarios",
                                        "tests/unit/device_plugin/allocate/removed.scenarios",
                                        "tests/unit/device_plugin/allocate/restart.scenarios",
                                        NULL};
    return scenario_main(&layer, files, NULL, 0);
}
