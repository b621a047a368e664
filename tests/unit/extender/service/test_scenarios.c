/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of this folder's scenarios mean. A service stands on a scripted cluster port
 * (service_rig.h); pods are remembered by their names, and a word changes what was said of one
 * before.
 */
#include "service_rig.h"

#include "rows.h"
#include "scenario.h"

struct pod {
    char name[32], uid[32], node[32], idx[24], phase[16], nominated[32];
    char labels[256], notes[512], spec[512], created[64];
    long units, cores, priority, cpu;
    enum gs_code shown; /* what asking the API for it answers */
    bool deleting, gone;
    uint64_t revision;
};

static struct rig rig;
static struct gs_election *election; /* of a replica, else NULL */
static char *answer;
static struct pod pods[64];      /* by name, up to one without */
static struct scenario *running; /* for the port's hooks */

/* A pod that was spoken of, or a new one. */
static struct pod *pod_named(struct scenario *s, const char *name)
{
    struct pod *pod = pods;
    while (pod->name[0] && strcmp(pod->name, name) != 0)
        pod++;
    if (pod == &pods[GS_COUNT_OF(pods) - 1])
        scenario_fail(s, "too many pods");
    if (!pod->name[0]) {
        *pod = (struct pod){.phase = "Pending"};
        snprintf(pod->name, sizeof(pod->name), "%s", name);
        snprintf(pod->uid, sizeof(pod->uid), "u-%s", name);
    }
    return pod;
}

/* What the API answers: the next word, if it is one of these. */
static enum gs_code code_named(struct scenario *s)
{
    static const struct {
        const char *word;
        enum gs_code code;
    } codes[] = {{"gone", GS_ENOENT},     {"denied", GS_EDENIED}, {"invalid", GS_EINVAL},
                 {"throttled", GS_EBUSY}, {"login", GS_EAUTH},    {"conflict", GS_ECONFLICT},
                 {"lost", GS_ETIMEOUT},   {"cut", GS_EIO},        {"garbled", GS_EPROTO},
                 {"failed", GS_EIO}}; /* the API server itself says so */
    GS_FOR_EACH_ROW (code, codes) {
        if (scenario_has(s, code->word))
            return code->code;
    }
    return GS_OK;
}

/* --- objects --- */

/* Words that are told as they are: which of a pod's texts or numbers they are, and what else stands
 * there. "none" is nothing. */
static bool read_plainly(struct scenario *s, struct pod *pod)
{
    const struct {
        const char *word;
        char *to;
        size_t size;
        const char *before, *after;
    } texts[] = {
        {"uid", pod->uid, sizeof(pod->uid), "", ""},
        {"index", pod->idx, sizeof(pod->idx), "", ""},
        {"nominated", pod->nominated, sizeof(pod->nominated), "", ""},
        {"labels", pod->labels, sizeof(pod->labels), "", ""},
        {"notes", pod->notes, sizeof(pod->notes), "", ""},
        {"spec", pod->spec, sizeof(pod->spec), "", ""},
        {"count", pod->labels, sizeof(pod->labels), "'aliyun.com/gpu-count':'", "'"},
        {"group", pod->labels, sizeof(pod->labels), "'scheduling.x-k8s.io/pod-group':'", "'"},
        {"created", pod->created, sizeof(pod->created), ",'creationTimestamp':'1970-01-01T00:00:0",
         "Z'"},
        {"mark", pod->notes, sizeof(pod->notes), "'aliyun.com/gpu-nominated':'", "'"},
    };
    const struct {
        const char *word;
        long *to;
    } numbers[] = {{"priority", &pod->priority}, {"cores", &pod->cores}, {"cpu", &pod->cpu}};
    GS_FOR_EACH_ROW (text, texts) {
        if (!scenario_has(s, text->word))
            continue;
        const bool none = scenario_has(s, "none");
        snprintf(text->to, text->size, "%s%s%s", text->before, none ? "" : scenario_word(s),
                 text->after);
        return true;
    }
    GS_FOR_EACH_ROW (number, numbers) {
        if (!scenario_has(s, number->word))
            continue;
        *number->to = scenario_number(s);
        return true;
    }
    return false;
}

static bool read_phase(struct scenario *s, struct pod *pod)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    GS_FOR_EACH_ROW (phase, phases) {
        if (scenario_has(s, *phase)) {
            snprintf(pod->phase, sizeof(pod->phase), "%s", *phase);
            return true;
        }
    }
    return false;
}

/* The rest of a step about a pod. */
static void read_pod(struct scenario *s, struct pod *pod)
{
    const unsigned first = s->at;
    while (scenario_peek(s) && strcmp(scenario_peek(s), "of") != 0 &&
           strcmp(scenario_peek(s), "=") != 0) {
        if (read_phase(s, pod) || read_plainly(s, pod))
            continue;
        if (scenario_has(s, "term")) {
            snprintf(pod->notes, sizeof(pod->notes), "'gpushare/leader-term':'%s'",
                     rig.patched_value);
        } else if (scenario_has(s, "on")) {
            const char *word = scenario_word(s), *idx = strchr(word, ':');
            snprintf(pod->node, sizeof(pod->node), "%.*s", (int)strcspn(word, ":"), word);
            snprintf(pod->idx, sizeof(pod->idx), "%s", idx ? idx + 1 : "");
            if (strcmp(pod->phase, "Pending") == 0)
                snprintf(pod->phase, sizeof(pod->phase), "Running");
        } else if (scenario_has(s, "unnominated")) {
            pod->nominated[0] = pod->notes[0] = '\0';
        } else if (scenario_has(s, "revision")) {
            rig.revision = (uint64_t)scenario_number(s) - 1;
        } else if (scenario_has(s, "deleting")) {
            pod->deleting = true;
        } else {
            pod->units = scenario_number(s);
        }
    }
    if (s->at > first)
        pod->revision = ++rig.revision;
}

static const char *pod_json(const struct pod *pod)
{
    static char json[4096];
    char idx[64] = "", mem[64] = "", cores[64] = "", cpu[64] = "";
    const char *slash = strchr(pod->name, '/'); /* of another namespace */
    if (pod->idx[0])
        snprintf(idx, sizeof(idx), "'ALIYUN_COM_GPU_MEM_IDX':'%s'%s", pod->idx,
                 pod->notes[0] ? "," : "");
    if (pod->units >= 0)
        snprintf(mem, sizeof(mem), "'aliyun.com/gpu-mem':'%ld'", pod->units);
    if (pod->cores)
        snprintf(cores, sizeof(cores), "%s'aliyun.com/gpu-core.percentage':'%ld'",
                 mem[0] ? "," : "", pod->cores);
    if (pod->cpu)
        snprintf(cpu, sizeof(cpu), "'requests':{'cpu':'%ld'},", pod->cpu);
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','namespace':'%.*s','uid':'%s','resourceVersion':'%llu'%s%s,"
             "'labels':{%s},'annotations':{%s%s}},'spec':{'nodeName':'%s','priority':%ld,%s%s"
             "'containers':[{'name':'c','resources':{%s'limits':{%s%s}}}]},"
             "'status':{'phase':'%s','nominatedNodeName':'%s'}}",
             slash ? slash + 1 : pod->name, slash ? (int)(slash - pod->name) : 7,
             slash ? pod->name : "default", pod->uid, (unsigned long long)pod->revision,
             pod->created, pod->deleting ? ",'deletionTimestamp':'2026-01-01T00:00:00Z'" : "",
             pod->labels, idx, pod->notes, pod->node, pod->priority, pod->spec,
             pod->spec[0] ? "," : "", cpu, mem, cores, pod->phase, pod->nominated);
    rig_quote(json);
    return json;
}

/* pod NAME …: the watch shows it so. */
static void verb_pod(struct scenario *s)
{
    struct pod *pod = pod_named(s, scenario_word(s));
    const uint64_t newest = pod->revision;
    read_pod(s, pod);
    if (pod->revision == newest)
        pod->revision = ++rig.revision;
    pod->shown = GS_OK;
    pod->gone = false;
    rig_feed(&rig, pod_json(pod), false);
}

static void verb_gone(struct scenario *s)
{
    struct pod *pod = pod_named(s, scenario_word(s));
    pod->revision = ++rig.revision;
    rig_feed(&rig, pod_json(pod), true);
    pod->gone = true;
    pod->shown = GS_ENOENT;
    pod->node[0] = pod->idx[0] = '\0';
    snprintf(pod->phase, sizeof(pod->phase), "Pending");
}

static void patch_under_way(struct rig *r, const struct gs_meta_patch *patch)
{
    scenario_now(running, "patch");
}

/* api NAME …: the API has it so, of which the watch tells nothing yet; it is gone there, or no
 * answer comes (away). api takes 2s */
static void verb_api(struct scenario *s)
{
    if (scenario_has(s, "takes")) {
        rig.get_ns = scenario_time(s);
        return;
    }
    if (scenario_has(s, "nominates")) {
        rig.webhook = scenario_has(s, "webhook");
        rig.nominate_code = code_named(s);
        return;
    }
    if (scenario_has(s, "patches")) {
        rig.patch_ns = scenario_has(s, "in") ? scenario_time(s) : 0;
        rig.patch_code = code_named(s);
        return;
    }
    struct pod *pod = pod_named(s, scenario_word(s));
    pod->shown = GS_OK;
    if (scenario_has(s, "gone"))
        pod->shown = GS_ENOENT;
    else if (scenario_has(s, "away"))
        pod->shown = GS_EIO;
    else
        read_pod(s, pod);
}

static void shown_now(struct rig *r)
{
    static char json[4096];
    for (const struct pod *pod = pods; pod->name[0]; pod++) {
        const char *slash = strchr(pod->name, '/');
        if (strcmp(slash ? slash + 1 : pod->name, r->got) != 0)
            continue;
        snprintf(json, sizeof(json), "%s", pod_json(pod));
        r->get_json = json;
        r->get_code = pod->shown;
    }
    scenario_now(running, "get");
}

/* "16+24", then moved POD:GPUS… (or moved none, of a plugin that tells), and what is unusual; bare:
 * there is no inventory. */
static void read_node(struct scenario *s, const char *name, char *json, size_t size)
{
    const char *sizes = scenario_word(s);
    char gpus[2048] = "", moved[256] = "", extra[4][512] = {"", "", "", ""}, list[300] = "";
    long cpu = 64, total = 0;
    unsigned count = 0;
    if (scenario_has(s, "moved")) {
        while (scenario_peek(s) && !scenario_has(s, "none")) {
            const char *word = scenario_word(s), *at = strchr(word, ':');
            char pod[32];
            size_t len = strlen(moved);
            if (!at)
                scenario_fail(s, "%s is not POD:GPUS", word);
            snprintf(pod, sizeof(pod), "%.*s", (int)(at - word), word);
            snprintf(moved + len, sizeof(moved) - len, "%s\\'%s\\':[%s]", len ? "," : "",
                     pod_named(s, pod)->uid, at + 1);
        }
        snprintf(list, sizeof(list), "'aliyun.com/gpu-reassigned':'{%s}',", moved);
    }
    for (int i = 0; i < 4; i++) {
        static const char *const words[] = {"labels", "spec", "gpu", "status"};
        if (scenario_has(s, words[i]))
            snprintf(extra[i], sizeof(extra[i]), "%s", scenario_word(s));
    }
    const bool bare = scenario_has(s, "bare");
    for (const char *at = sizes; *at >= '0' && *at <= '9'; at += *at == '+') {
        unsigned mem = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            mem = mem * 10 + (unsigned)(*at - '0');
        size_t len = strlen(gpus);
        snprintf(gpus + len, sizeof(gpus) - len, "%s{\\'idx\\':%u,\\'mem\\':%u,\\'healthy\\':%s%s}",
                 count ? "," : "", count, mem, *at == '!' ? "false" : "true", extra[2]);
        at += *at == '!';
        count++;
        total += mem;
    }
    if (scenario_has(s, "cpu"))
        cpu = scenario_number(s);
    snprintf(json, size,
             "{'metadata':{'name':'%s','labels':{%s},'annotations':{%s'aliyun.com/%s':"
             "'{\\'v\\':1,%s\\'unit\\':\\'GiB\\',\\'gpus\\':[%s]}'}},'spec':{%s},'status':{"
             "'capacity':{'aliyun.com/gpu-mem':'%ld','aliyun.com/gpu-count':'%u'},"
             "'allocatable':{'cpu':'%ld','aliyun.com/gpu-mem':'%ld'},"
             "'conditions':[{'type':'Ready','status':'True'}]%s%s}}",
             name, extra[0], list, bare ? "x" : "gpu-inventory",
             list[0] ? "\\'reassignments\\':true," : "", gpus, extra[1], total, count, cpu, total,
             extra[3][0] ? "," : "", extra[3]);
}

static void verb_node(struct scenario *s)
{
    const char *name = scenario_word(s);
    struct gs_node node = {.name = name, .uid = "", .resource_version = ""};
    struct gs_error err = {0};
    char json[4096];
    if (scenario_has(s, "gone")) {
        rig.sink.node_gone(rig.sink.ctx, &node);
        return;
    }
    read_node(s, name, json, sizeof(json));
    rig_quote(json);
    if (gs_codec_node(&rig.names, gs_slice_of(json), &node, &err) < 0)
        scenario_fail(s, "%s in %s", err.msg, json);
    assert_int_equal(rig.sink.node(rig.sink.ctx, &node), 0);
    gs_node_release(&node);
}

/* list begins, list ends, list of nobody; of nodes with "nodes" behind. */
static void verb_list(struct scenario *s)
{
    const bool nobody = scenario_has(s, "nobody"), begins = nobody || scenario_has(s, "begins");
    const bool ends = nobody || (!begins && scenario_has(s, "ends"));
    const enum gs_kind kind = scenario_has(s, "nodes") ? GS_KIND_NODE : GS_KIND_POD;
    if (begins)
        rig.sink.list_begin(rig.sink.ctx, kind);
    if (ends)
        rig.sink.list_end(rig.sink.ctx, kind);
}

static void verb_watch(struct scenario *s)
{
    rig.sink.live(rig.sink.ctx, GS_KIND_POD, scenario_has(s, "stands") || !scenario_has(s, "ends"),
                  "cut");
}

/* --- time --- */

/* tick 1s; tick 60s by 0.1s */
static void verb_tick(struct scenario *s)
{
    int64_t all_ns = scenario_time(s), each_ns = scenario_has(s, "by") ? scenario_time(s) : all_ns;
    for (int64_t ns = 0; ns < all_ns || ns == 0; ns += each_ns ? each_ns : 1)
        rig_tick(&rig, each_ns);
}

/* So long passes, and nothing happens. */
static void verb_wait(struct scenario *s)
{
    rig.now_ns += scenario_time(s);
}

/* patch within 5s, no patch within 60s: looked at ten times a second. */
static bool patched_within(int64_t ns)
{
    int before = rig.patches;
    for (int64_t end = rig.now_ns + ns; rig.now_ns < end && rig.patches == before;)
        rig_tick(&rig, GS_NS_PER_S / 10);
    return rig.patches > before;
}

static void verb_no(struct scenario *s)
{
    if (!scenario_has(s, "patch") || !scenario_has(s, "within"))
        scenario_fail(s, "no what?");
    if (patched_within(scenario_time(s)))
        scenario_fail(s, "there was a patch: %s, nominated %s", rig.patched, rig.nominated);
    s->checked++;
}

static void verb_patch(struct scenario *s)
{
    if (!scenario_has(s, "within") || !patched_within(scenario_time(s)))
        scenario_fail(s, "there was no patch");
    s->checked++;
}

/* offered NAME NODE within 1s: and the API server shows it. */
static void verb_offered(struct scenario *s)
{
    struct pod *pod = pod_named(s, scenario_word(s));
    const char *node = scenario_word(s);
    verb_patch(s);
    scenario_is_text(s, "the nomination", rig.nominated, node);
    scenario_is_text(s, "the mark", rig.marked, node);
    snprintf(pod->nominated, sizeof(pod->nominated), "%s", node);
    snprintf(pod->notes, sizeof(pod->notes), "'aliyun.com/gpu-nominated':'%s'", node);
    pod->revision = ++rig.revision;
    rig_feed(&rig, pod_json(pod), false);
}

/* taken back within 1s: of p, and not shown yet. */
static void verb_taken(struct scenario *s)
{
    if (!scenario_has(s, "back"))
        scenario_fail(s, "taken where?");
    verb_patch(s);
    scenario_is_text(s, "the nomination", rig.nominated, "");
    scenario_is_text(s, "the mark", rig.marked, "");
    scenario_is_text(s, "the patch", rig.patched, "default/p aliyun.com/gpu-nominated");
}

/* --- questions --- */

static void expect_answer(struct scenario *s)
{
    while (scenario_peek(s)) {
        char part[512];
        snprintf(part, sizeof(part), "%s", scenario_word(s));
        if (part[0] == '\'') /* JSON */
            rig_quote(part);
        scenario_has_text(s, answer, part);
    }
}

static void ask(rig_verb *verb, const char *body)
{
    free(answer);
    answer = NULL;
    answer = rig_ask(&rig, verb, body);
}

/* filter NAME … of NODES = NODES (or none, or nothing of them) "part of the answer"… */
static void verb_filter(struct scenario *s)
{
    char body[8192], names[512] = "", kept[512] = "\"NodeNames\":[";
    const bool unseen = scenario_has(s, "unseen"); /* the watch is behind */
    struct pod *pod = pod_named(s, scenario_word(s));
    read_pod(s, pod);
    if (!unseen && !pod->gone &&
        (strstr(pod->labels, "pod-group") || strstr(pod->spec, "schedulingGroup"))) {
        pod->revision = ++rig.revision;
        pod->shown = GS_OK;
        rig_feed(&rig, pod_json(pod), false);
    }
    if (scenario_has(s, "of")) {
        while (scenario_peek(s) && strcmp(scenario_peek(s), "=") != 0)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\"%s\"",
                     names[0] ? "," : "", scenario_word(s));
    }
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[%s]}", pod_json(pod),
             names);
    ask(gs_service_filter, body);
    if (!scenario_has(s, "="))
        return;
    const bool named = scenario_peek(s) && !strchr(scenario_peek(s), ' ');
    for (bool first = true; scenario_peek(s) && !strchr(scenario_peek(s), ' '); first = false) {
        if (!scenario_has(s, "none"))
            snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%s\"%s\"", first ? "" : ",",
                     scenario_word(s));
    }
    snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "]");
    if (named)
        scenario_has_text(s, answer, kept);
    expect_answer(s);
}

/* prioritize NAME … of NODES = "SCORES" */
static void verb_prioritize(struct scenario *s)
{
    char body[8192], names[512] = "", scores[512];
    struct pod *pod = pod_named(s, scenario_word(s));
    read_pod(s, pod);
    for (scenario_has(s, "of"); !scenario_has(s, "=");)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\"%s\"",
                 names[0] ? "," : "", scenario_word(s));
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[%s]}", pod_json(pod), names);
    ask(gs_service_prioritize, body);
    snprintf(scores, sizeof(scores), "%s", scenario_word(s));
    rig_quote(scores);
    scenario_is_text(s, "the answer", answer, scores);
}

/* preempt NAME of NODE:VICTIM… = NODE:VICTIM… (or none) */
static void verb_preempt(struct scenario *s)
{
    char body[8192], text[2][1024] = {"", ""};
    const struct pod *pod = pod_named(s, scenario_word(s));
    if (!scenario_has(s, "of"))
        scenario_fail(s, "of what?");
    for (int side = 0; side < 2; side++) {
        char *to = text[side];
        while (scenario_peek(s) && !scenario_has(s, "=") && !scenario_has(s, "none")) {
            const char *word = scenario_word(s), *victim = strchr(word, ':');
            const bool some = victim && victim[1];
            snprintf(to + strlen(to), sizeof(text[0]) - strlen(to),
                     "%s\"%.*s\":{\"Pods\":[%s%s%s]%s}", to[0] ? "," : "", (int)strcspn(word, ":"),
                     word, some ? "{\"UID\":\"u-" : "", some ? victim + 1 : "", some ? "\"}" : "",
                     side ? ",\"NumPDBViolations\":0" : "");
        }
    }
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNameToMetaVictims\":{%s}}", pod_json(pod),
             text[0]);
    ask(gs_service_preempt, body);
    snprintf(body, sizeof(body), "{\"NodeNameToMetaVictims\":{%s}}", text[1]);
    scenario_is_text(s, "the answer", answer, body);
}

static char *binding_of(const char *ns, const char *name, const char *uid, const char *node)
{
    static char body[512];
    const char *slash = strchr(name, '/'); /* of another namespace */
    snprintf(body, sizeof(body), "{'PodName':'%s','PodNamespace':'%.*s','PodUID':'%s','Node':'%s'}",
             slash ? slash + 1 : name, slash ? (int)(slash - name) : 99, slash ? name : ns, uid,
             node);
    rig_quote(body);
    return body;
}

/* arrives NAME NODE, uid UID, named NAME, in NAMESPACE: a bind is read, and its turn comes later.
 */
static void verb_arrives(struct scenario *s)
{
    const struct pod *pod = pod_named(s, scenario_word(s));
    const char *node = scenario_word(s);
    const char *uid = scenario_has(s, "uid") ? scenario_word(s) : pod->uid;
    const char *name = scenario_has(s, "named") ? scenario_word(s) : pod->name;
    const char *ns = scenario_has(s, "in") ? scenario_word(s) : "default";
    const char *body = binding_of(ns, name, uid, node);
    service_try(rig.service, GS_VERB_BIND, body, strlen(body), NULL);
}

static void bind_under_way(struct rig *r)
{
    scenario_now(running, "bind");
}

/* bind NAME NODE, uid UID, named NAME, in NAMESPACE, what the API answers, if that is no Yes: = ok,
 * or "part of the error" */
static void verb_bind(struct scenario *s)
{
    const struct pod *pod = pod_named(s, scenario_word(s));
    const char *node = scenario_word(s);
    char uid[32];
    snprintf(uid, sizeof(uid), "%s", scenario_has(s, "uid") ? scenario_word(s) : pod->uid);
    const char *name = scenario_has(s, "named") ? scenario_word(s) : pod->name;
    const char *ns = scenario_has(s, "in") ? scenario_word(s) : "default";
    rig.bind_answered = scenario_peek(s) && strcmp(scenario_peek(s), "failed") == 0;
    rig.bind_code = code_named(s);
    char *said = rig_ask(&rig, service_bind, binding_of(ns, name, uid, node));
    free(answer); /* of a bind meanwhile */
    answer = said;
    if (!scenario_has(s, "="))
        return;
    if (scenario_has(s, "ok"))
        scenario_is_text(s, "the answer", answer, "{\"Error\":\"\"}");
    expect_answer(s);
}

/* inspect n1 = "part of the answer"…; inspect all, inspect reservations = …: of all nodes. */
static void verb_inspect(struct scenario *s)
{
    struct gs_buf page = GS_BUF(1 << 20);
    const int result =
        scenario_has(s, "reservations")
            ? gs_service_reservations(rig.service, &page, NULL)
            : gs_service_inspect(rig.service, scenario_has(s, "all") ? NULL : scenario_word(s),
                                 &page, NULL);
    assert_int_equal(result, 0);
    free(answer);
    answer = gs_buf_steal(&page);
    scenario_has(s, "=");
    expect_answer(s);
}

/* during bind STEP, during get STEP: while that call is under way. */
static void verb_during(struct scenario *s)
{
    const char *until = scenario_word(s);
    if (strcmp(until, "bind") != 0 && strcmp(until, "get") != 0 && strcmp(until, "patch") != 0)
        scenario_fail(s, "during what?");
    scenario_put_off(s, until);
}

/* --- expectations --- */

static void expect_used(struct scenario *s)
{
    const char *node = scenario_word(s);
    for (unsigned gpu = 0; scenario_peek(s); gpu++) {
        char what[64];
        snprintf(what, sizeof(what), "GPU %u of %s", gpu, node);
        scenario_is(s, what, rig_used(&rig, node, gpu));
    }
}

static void expect_metric(struct scenario *s, const char *name)
{
    struct gs_buf page = GS_BUF(1 << 20);
    char key[128];
    gs_service_metrics(rig.service, &page);
    gs_buf_putc(&page, '\0');
    snprintf(key, sizeof(key), "\n%s ", name);
    const char *at = strstr(page.data, key);
    long value = -1;
    for (at = at ? at + strlen(key) : NULL; at && *at >= '0' && *at <= '9'; at++)
        value = (value < 0 ? 0 : value * 10) + (*at - '0');
    gs_buf_release(&page);
    scenario_is(s, name, value);
}

static void expect_unknown(struct scenario *s, const char *node)
{
    struct gs_buf page = GS_BUF(1 << 20);
    struct gs_error err = {0};
    const int result = gs_service_inspect(rig.service, node, &page, &err);
    gs_buf_release(&page);
    if (result == 0 || err.code != GS_ENOENT)
        scenario_fail(s, "%s is known", node);
    s->checked++;
}

static void verb_expect(struct scenario *s)
{
    const struct {
        const char *word;
        long found;
    } numbers[] = {{"binds", rig.binds},
                   {"gets", rig.gets},
                   {"patches", rig.patches},
                   {"events", rig.events},
                   {"list-wanted", atomic_load(gs_service_list_wanted(rig.service))},
                   {"watch-wakes", rig.watch_wakes},
                   {"leads", election && gs_election_leads(election)},
                   {"open", gs_service_unresolved_binds(rig.service)},
                   {"offers", gs_service_nominations(rig.service)},
                   {"milliseconds-left", (rig.deadline_ns - rig.now_ns) / GS_NS_PER_MS}};
    const struct {
        const char *word, *found;
    } texts[] = {
        {"patched", rig.patched}, {"nominated", rig.nominated},     {"marked", rig.marked},
        {"event", rig.event},     {"annotations", rig.annotations}, {"bound", rig.bound_node},
        {"uid", rig.bound_uid},   {"version", rig.expected},        {"label", rig.patched_label}};
    GS_FOR_EACH_ROW (number, numbers) {
        if (scenario_has(s, number->word)) {
            scenario_is(s, number->word, number->found);
            return;
        }
    }
    GS_FOR_EACH_ROW (text, texts) {
        if (scenario_has(s, text->word)) {
            const char *word = scenario_word(s);
            scenario_is_text(s, text->word, text->found, strcmp(word, "none") ? word : "");
            return;
        }
    }
    if (scenario_has(s, "used"))
        expect_used(s);
    else if (scenario_has(s, "metric"))
        expect_metric(s, scenario_word(s));
    else if (scenario_has(s, "promised"))
        expect_metric(s, "gpushare_reserved_pods");
    else if (scenario_has(s, "unknown"))
        expect_unknown(s, scenario_word(s));
    else if (scenario_has(s, "written"))
        while (scenario_peek(s))
            scenario_has_text(s, rig.annotations, scenario_word(s));
    else
        scenario_fail(s, "%s is nothing to expect", scenario_word(s));
}

/* --- a scenario --- */

static void end(void)
{
    free(answer);
    answer = NULL;
    rig_stop(&rig);
    gs_election_free(election);
    election = NULL;
}

static void start(struct gs_service_config config, bool unlisted)
{
    memset(pods, 0, sizeof(pods));
    rig_start_as(&rig, config);
    rig.during_bind = bind_under_way;
    rig.during_get = shown_now;
    rig.during_patch = patch_under_way;
    if (!unlisted)
        rig_lists(&rig);
}

static void begin(struct scenario *s)
{
    running = s;
    start((struct gs_service_config){0}, false);
}

/* start nominates one unlisted schedulers a,b elected nameless unlabelled: anew, before anything
 * else. A replica that stands by until it renews its lease has a pod, kube/own, with the leader's
 * label. */
static void verb_start(struct scenario *s)
{
    static char schedulers[64];
    struct gs_service_config config = {.nominates = scenario_has(s, "nominates"),
                                       .names_one = scenario_has(s, "one")};
    const bool unlisted = scenario_has(s, "unlisted");
    if (scenario_has(s, "schedulers")) {
        snprintf(schedulers, sizeof(schedulers), "%s", scenario_word(s));
        config.scheduler_name = schedulers;
    }
    end();
    if (scenario_has(s, "elected")) {
        election = rig_election(&rig);
        config.election = election;
        config.pod_ns = scenario_has(s, "nameless") ? NULL : "kube";
        config.pod_name = config.pod_ns ? "own" : NULL;
        config.labels_leader = config.pod_ns && !scenario_has(s, "unlabelled");
    }
    start(config, unlisted);
}

/* --- terms --- */

/* renew 1s: so long later, with the lease. */
static void verb_renew(struct scenario *s)
{
    rig.now_ns += scenario_time(s);
    gs_election_step(election, NULL);
    gs_service_tick_part(rig.service, GS_TICK_TERM);
}

/* A look at the term, and nothing else. */
static void verb_term(struct scenario *s)
{
    gs_service_tick_part(rig.service, GS_TICK_TERM);
}

static void verb_resign(struct scenario *s)
{
    gs_election_resign(election, true);
}

/* mark: the watch shows our own pod as it was patched last; of NS NAME TEXT: that one, marked so.
 */
static void verb_mark(struct scenario *s)
{
    const bool other = scenario_has(s, "of");
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.uid = "uo";
    pod.ns = other ? scenario_word(s) : "kube";
    pod.name = other ? scenario_word(s) : "own";
    pod.term = other && scenario_peek(s) ? scenario_word(s) : rig.patched_value;
    assert_int_equal(rig.sink.pod(rig.sink.ctx, &pod), 0);
}

/* version N: some pod, at this version of history. */
static void verb_version(struct scenario *s)
{
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.uid = "uo";
    pod.ns = "d";
    pod.name = "other";
    pod.resource_version = scenario_word(s);
    assert_int_equal(rig.sink.pod(rig.sink.ctx, &pod), 0);
}

/* The watch took the order to list anew. */
static void verb_ordered(struct scenario *s)
{
    atomic_store(gs_service_list_wanted(rig.service), false);
}

static void verb_withdraw(struct scenario *s)
{
    gs_service_withdraw(rig.service);
}

static const struct scenario_verb verbs[] = {
    {"start", verb_start},
    {"node", verb_node},
    {"pod", verb_pod},
    {"gone", verb_gone},
    {"api", verb_api},
    {"list", verb_list},
    {"watch", verb_watch},
    {"tick", verb_tick},
    {"wait", verb_wait},
    {"no", verb_no},
    {"patch", verb_patch},
    {"filter", verb_filter},
    {"prioritize", verb_prioritize},
    {"preempt", verb_preempt},
    {"bind", verb_bind},
    {"during", verb_during},
    {"arrives", verb_arrives},
    {"expect", verb_expect},
    {"offered", verb_offered},
    {"taken", verb_taken},
    {"withdraw", verb_withdraw},
    {"renew", verb_renew},
    {"term", verb_term},
    {"resign", verb_resign},
    {"mark", verb_mark},
    {"version", verb_version},
    {"inspect", verb_inspect},
    {"ordered", verb_ordered},
    {NULL, NULL},
};

static const struct scenario_layer layer = {.verbs = verbs, .begin = begin, .end = end};

/* --- the interpreter itself --- */

static void what_is_not_so_fails_and_is_named(void **state)
{
    static const struct scenario_mistake rows[] = {
        {"it is so", "given node n1 16\na\n pod p 8 on n1:0 · expect used n1 8\n", NULL},
        {"another number", "given node n1 16\n\na\n pod p 8 on n1:0\n expect used n1 9\n",
         "text:5: a: \"expect used n1 9\": GPU 0 of n1 is 8 instead of 9"},
        {"above a range", "a\n expect binds 1..2\n", "binds is 0 instead of 1..2"},
        {"another text", "a\n expect patched x\n", "patched is \"\" instead of \"x\""},
        {"a filter that passes", "a\n node n1 16 · filter p 8 of n1 = none\n", "\"n1\"]"},
        {"a filter that refuses", "a\n node n1 16 · filter p 17 of n1 = n1\n", "is not in"},
        {"other words", "a\n node n1 16 · filter p 17 of n1 = none \"no room\"\n", "is not in"},
        {"a bind that fails", "a\n node n1 16 · pod p 17 · bind p n1 = ok\n",
         "no GPU large enough"},
        {"a bind that does not", "a\n node n1 16 · pod p 8 · bind p n1 = \"no room\"\n", "no room"},
        {"victims", "a\n node n1 16 · preempt p of n1: = n1:x\n", "the answer is"},
        {"a patch", "a\n patch within 1s\n", "there was no patch"},
        {"an unknown word", "a\n expect open 0 · expects 3\n", "expects is no word"},
        {"an unknown thing", "a\n expect miracles 3\n", "miracles is nothing to expect"},
        {"a word too many", "a\n expect open 0 1\n", "1 has no meaning here"},
        {"a word too few", "a\n expect open\n", "a word is missing"},
        {"no number", "a\n expect open zero\n", "zero is no number"},
        {"no time", "a\n expect open 0 · tick 5\n", "5 is no time"},
        {"nothing is expected", "a\n node n1 16\n", "it expects nothing"},
        {"not even a step", "a\nb\n expect open 0\n", "it expects nothing"},
        {"no scenario", "# a\n", "there is no scenario"},
        {"a step that never came", "a\n expect open 0 · during bind expect open 7\n",
         "bind never came: expect open 7"},
        {"a column that nobody uses", "a\n expect open <n>\n | n | m\n | 0 | 1\n", "column m"},
        {"a column that is not there", "a\n expect open <k>\n | n\n | 0\n", "no <k>"},
        {"the second row", "a\n expect open <n>\n | case | n\n | x | 0\n | y | 1\n",
         "open is 0 instead of 1"},
        {"the second scenario", "a\n expect open 0\nb\n expect open 1\n", "text:4: b:"},
    };
    scenario_mistakes_are_seen(&layer, rows, GS_COUNT_OF(rows));
}

int main(void)
{
    static const char *const files[] = {"tests/unit/extender/service/binds.scenarios",
                                        "tests/unit/extender/service/filter.scenarios",
                                        "tests/unit/extender/service/ledger.scenarios",
                                        "tests/unit/extender/service/metrics.scenarios",
                                        "tests/unit/extender/service/offers.scenarios",
                                        "tests/unit/extender/service/promises.scenarios",
                                        "tests/unit/extender/service/terms.scenarios",
                                        "tests/unit/extender/service/wakes.scenarios",
                                        NULL};
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_so_fails_and_is_named)};
    return scenario_main(&layer, files, tests, GS_COUNT_OF(tests));
}
