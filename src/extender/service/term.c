/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

void gs_term_init(struct gs_term *term)
{
    pthread_mutex_init(&term->turn, NULL);
    pthread_mutex_init(&term->lock, NULL);
    term->labelled = -1;
    atomic_init(&term->looked_ns, -GS_TERM_FALL_NS);
    atomic_init(&term->listed_ns, INT64_MIN);
    atomic_init(&term->asked_ns, INT64_MIN);
}

void gs_term_release(struct gs_term *term)
{
    pthread_mutex_destroy(&term->turn);
    pthread_mutex_destroy(&term->lock);
}

bool gs_term_caught_up(const struct gs_service *service)
{
    const struct gs_election *election = service->config.election;
    return !atomic_load(&service->term.fell_ns) &&
           (!election || atomic_load(&service->term.caught_up) == gs_election_terms(election));
}

/* ---- what the watch shows ---- */

static void forget_next(struct gs_term *term)
{
    term->next = term->last;
    term->last = (struct gs_term_bind){0};
    atomic_store(&term->awaits, term->next.uid != 0);
}

void gs_term_bound(struct gs_service *service, const char *uid)
{
    struct gs_term *term = &service->term;
    const struct gs_term_bind bind = {gs_hash_text(uid), gs_service_now(service)};
    pthread_mutex_lock(&term->lock);
    if (term->next.uid)
        term->last = bind;
    else
        term->next = bind;
    atomic_store(&term->awaits, true);
    pthread_mutex_unlock(&term->lock);
}

static bool is_own(const struct gs_service *service, const struct gs_pod *pod)
{
    const struct gs_service_config *config = &service->config;
    return config->pod_name && strcmp(pod->name, config->pod_name) == 0 &&
           strcmp(pod->ns, config->pod_ns) == 0;
}

/* An API server that is behind another says so for a moment, too: once in a while is enough, and
 * what comes in between is answered then. */
static void went_back(struct gs_service *service)
{
    struct gs_term *term = &service->term;
    long long now = gs_service_now(service), last = atomic_load(&term->looked_ns);
    bool due = now - last >= GS_TERM_FALL_NS &&
               atomic_compare_exchange_strong(&term->looked_ns, &last, now);
    atomic_store(&term->owes_list, !due);
    if (due)
        atomic_store(&term->fell_ns, now);
}

/* The events of one watch come in the order of their versions, and a watch goes on where the one
 * before ended; objects of a list come in no order. */
static void note_version(struct gs_service *service, uint64_t version)
{
    struct gs_term *term = &service->term;
    uint64_t highest = atomic_load(&term->version);
    bool fell = version && version < highest && !atomic_load(&term->listing_ns);
    if (fell)
        went_back(service);
    if (fell || version > highest)
        atomic_store(&term->version, version);
}

void gs_term_shown(struct gs_service *service, const struct gs_pod *pod, bool gone)
{
    struct gs_term *term = &service->term;
    note_version(service, gs_pod_revision(pod));
    const bool own = pod->term[0] && !atomic_load(&term->listing_ns) && is_own(service, pod);
    const bool bound = atomic_load(&term->awaits) && (gone || pod->node_name[0]);
    if (!own && !bound)
        return;
    const uint64_t uid = bound ? gs_hash_text(pod->uid) : 0;
    pthread_mutex_lock(&term->lock);
    if (own && strcmp(pod->term, term->mark) == 0)
        atomic_store(&term->mark_shown, true);
    if (bound && term->last.uid == uid)
        term->last = (struct gs_term_bind){0};
    if (bound && term->next.uid == uid)
        forget_next(term);
    pthread_mutex_unlock(&term->lock);
}

uint64_t gs_term_list_begins(struct gs_service *service)
{
    atomic_store(&service->term.listing_ns, gs_service_now(service));
    return atomic_exchange(&service->term.version, 0);
}

void gs_term_list_ends(struct gs_service *service)
{
    struct gs_term *term = &service->term;
    int64_t begun_ns = atomic_exchange(&term->listing_ns, 0);
    atomic_store(&term->listed_ns, begun_ns);
    if (atomic_load(&term->fell_ns) <= begun_ns)
        atomic_store(&term->fell_ns, 0);
    pthread_mutex_lock(&term->lock);
    if (term->last.uid && term->last.done_ns < begun_ns)
        term->last = (struct gs_term_bind){0};
    if (term->next.uid && term->next.done_ns < begun_ns)
        forget_next(term);
    term->next.done_ns = term->last.done_ns = gs_service_now(service); /* the watch begins now */
    pthread_mutex_unlock(&term->lock);
}

/* ---- what a term does ---- */

void gs_term_want_list(struct gs_service *service, int64_t since_ns, const char *why)
{
    struct gs_term *term = &service->term;
    const struct gs_kube *kube = &service->config.kube;
    if (atomic_load(&term->asked_ns) > since_ns || atomic_load(&term->listing_ns) > since_ns)
        return;
    if (why)
        gs_log(GS_LOG_WARN, "listing pods again", GS_STR("reason", why));
    atomic_store(&term->asked_ns, gs_service_now(service));
    atomic_store(&term->list_wanted, true);
    kube->ops->wake(kube->ctx);
}

/* Of our own pod: the mark of a term that begins, or the label by which a Service finds the
 * leader. */
static int patch_own_pod(struct gs_service *service, struct gs_meta_patch *patch,
                         struct gs_error *err)
{
    const struct gs_service_config *config = &service->config;
    struct gs_term *term = &service->term;
    patch->ns = config->pod_ns;
    patch->name = config->pod_name;
    patch->deadline_ns = gs_service_now(service) + GS_TERM_MARK_NS;
    int result = config->kube.ops->patch_pod(config->kube.ctx, patch, err);
    if (result < 0 && term->failure != (int)err->code) /* once, not every second */
        gs_log(GS_LOG_WARN, "cannot patch own pod", GS_STR("pod", config->pod_name),
               GS_STR("error", err->msg));
    term->failure = (int)err->code;
    return result;
}

static void put_label(struct gs_service *service, bool leads)
{
    struct gs_term *term = &service->term;
    const struct gs_kv label = {GS_LEADER_LABEL, leads ? "true" : NULL};
    struct gs_meta_patch patch = {.labels = &label, .label_count = 1};
    struct gs_error err = {0};
    if (!service->config.labels_leader || !service->config.pod_name ||
        term->labelled == (int)leads || gs_service_now(service) < term->next_label_ns)
        return;
    const bool written = patch_own_pod(service, &patch, &err) == 0;
    term->labelled = written ? leads : -1;
    if (!written)
        term->next_label_ns = gs_service_now(service) + GS_TERM_LABEL_NS;
}

static void begin(struct gs_service *service, uint64_t number)
{
    struct gs_term *term = &service->term;
    const struct gs_clock *clock = service->config.clock;
    struct gs_error err = {0};
    const struct gs_kv mark = {GS_TERM_KEY, term->mark};
    struct gs_meta_patch patch = {.annotations = &mark, .annotation_count = 1};
    term->number = number;
    term->begun_ns = gs_service_now(service);
    pthread_mutex_lock(&term->lock);
    snprintf(term->mark, sizeof(term->mark), "%lld-%llu", (long long)clock->wall_ns(clock->ctx),
             (unsigned long long)number);
    atomic_store(&term->mark_shown, false);
    pthread_mutex_unlock(&term->lock);
    term->marked = false;
    if (!service->config.pod_name)
        gs_term_want_list(service, term->begun_ns, "leadership begins, and --pod-name is not set");
    else if (patch_own_pod(service, &patch, &err) < 0)
        gs_term_want_list(service, term->begun_ns, err.msg);
    else
        term->marked = true;
}

static void catch_up(struct gs_service *service)
{
    struct gs_term *term = &service->term;
    if (atomic_load(&term->caught_up) == term->number)
        return;
    bool marked = term->marked && atomic_load(&term->mark_shown);
    if (marked || atomic_load(&term->listed_ns) > term->begun_ns) {
        atomic_store(&term->caught_up, term->number);
        gs_log(GS_LOG_INFO, "ledger includes the binds of earlier leaders",
               GS_STR("source", marked ? "watch" : "list"));
    } else if (gs_service_now(service) - term->begun_ns >= GS_TERM_MARK_NS) {
        gs_term_want_list(service, term->begun_ns,
                          "the watch does not show the start of this leadership");
    }
}

static void await_binds(struct gs_service *service)
{
    struct gs_term *term = &service->term;
    pthread_mutex_lock(&term->lock);
    struct gs_term_bind next = term->next;
    pthread_mutex_unlock(&term->lock);
    if (next.uid && !atomic_load(&term->listing_ns) &&
        gs_service_now(service) - next.done_ns >= GS_TERM_BIND_NS)
        gs_term_want_list(service, next.done_ns, "the watch does not show a bind of this replica");
}

void gs_term_tick(struct gs_service *service)
{
    struct gs_term *term = &service->term;
    const struct gs_election *election = service->config.election;
    pthread_mutex_lock(&term->turn);
    if (election) {
        bool leads = gs_election_leads(election);
        uint64_t number = gs_election_terms(election);
        if (leads && number != term->number)
            begin(service, number);
        if (leads)
            catch_up(service);
        put_label(service, leads);
    }
    await_binds(service);
    if (election && term->falls != gs_election_falls(election)) {
        term->falls = gs_election_falls(election);
        went_back(service);
    }
    if (atomic_load(&term->owes_list))
        went_back(service);
    int64_t fell_ns = atomic_load(&term->fell_ns);
    if (fell_ns)
        gs_term_want_list(service, fell_ns - 1, "the API server returned an older resourceVersion");
    pthread_mutex_unlock(&term->turn);
}
