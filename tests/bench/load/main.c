/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "load.h"

/* bench_load: as many requests as an extender answers, or at a fixed rate. */

static bool set_verb(bool *verbs, const char *at, size_t len)
{
    for (enum load_verb v = 0; v < LOAD_VERBS; v++) {
        if (strlen(load_verb_name(v)) == len && memcmp(load_verb_name(v), at, len) == 0) {
            verbs[v] = true;
            return true;
        }
    }
    return false;
}

static bool set_verbs(void *to, const char *text)
{
    bool verbs[LOAD_VERBS] = {0};
    for (const char *at = text;;) {
        size_t len = strcspn(at, ",");
        if (!set_verb(verbs, at, len))
            return false;
        if (!at[len])
            break;
        at += len + 1;
    }
    memcpy(to, verbs, sizeof(verbs));
    return true;
}

static void read_settings(struct load_settings *set, int argc, char **argv)
{
    *set = (struct load_settings){.extender = "127.0.0.1:29999",
                                  .api = "http://127.0.0.1:8001",
                                  .verbs = {[LOAD_FILTER] = true},
                                  .clients = 1,
                                  .names = 1000,
                                  .classes = 1,
                                  .duration_ns = 5 * GS_NS_PER_S,
                                  .warmup = 20};
    const struct gs_option table[] = {
        OPT_STRING("extender", &set->extender, "ADDR:PORT", "whom to ask (127.0.0.1:29999)"),
        OPT_STRING("api", &set->api, "URL",
                   "API server of bind, direct, event and create (http://127.0.0.1:8001)"),
        OPT_CUSTOM("verb", set->verbs, set_verbs, "VERB,...",
                   "filter, prioritize, bind (pods that wait at the API server), direct (the same "
                   "without an extender), event (patches of pods), create (pods that wait)"),
        OPT_U32("clients", &set->clients, "NUMBER", "keep-alive connections (1)"),
        OPT_U32("rate", &set->rate, "NUMBER",
                "requests per second of all clients together, timed from when they were due; "
                "without it the next one follows the answer"),
        OPT_DURATION("duration", &set->duration_ns, "TIME", "(5s); 0: until --requests"),
        OPT_U32("requests", &set->requests, "NUMBER", "end after so many"),
        OPT_U32("warmup", &set->warmup, "NUMBER", "first requests of a client, not counted (20)"),
        OPT_U32("names", &set->names, "NUMBER", "nodes in a request: node-00000 ... (1000)"),
        OPT_U32("node-bytes", &set->node_bytes, "NUMBER",
                "send Node objects of this size instead of names"),
        OPT_U32("classes", &set->classes, "NUMBER", "kinds of pods asked about (1)"),
    };
    const struct gs_command command = {
        .name = "bench_load",
        .doc = "Requests to an extender over kept connections, and how long the answers took, as "
               "JSON.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

static const char *wrong_settings(const struct load_settings *set)
{
    if (!set->clients || set->clients > 256)
        return "--clients is 1 to 256";
    if (!set->names || set->names > 100000 || !set->classes || set->classes > 1000)
        return "--names is 1 to 100000, --classes 1 to 1000";
    if (!set->duration_ns && !set->requests)
        return "--duration 0 needs --requests";
    if (strncmp(set->api, "http://", 7) != 0)
        return "--api is http://ADDR:PORT";
    return NULL;
}

/* ---- the report ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In ms. The samples are sorted, and there is one. */
static double quantile_ms(const struct load_samples *samples, unsigned permille)
{
    size_t at = samples->count * permille / 1000;
    return (double)samples->ns[at < samples->count ? at : samples->count - 1] / 1e6;
}

static void print_verb(struct load_result *result, enum load_verb verb, double seconds, bool first)
{
    struct load_samples *samples = &result->samples[verb];
    qsort(samples->ns, samples->count, sizeof(*samples->ns), by_time);
    printf("%s\"%s\":{\"count\":%zu,\"per_s\":%.1f,\"p50_ms\":%.4f,\"p99_ms\":%.4f,"
           "\"max_ms\":%.4f,\"errors\":%" PRIu64 "}",
           first ? "" : ",", load_verb_name(verb), samples->count, (double)samples->count / seconds,
           quantile_ms(samples, 500), quantile_ms(samples, 990), quantile_ms(samples, 1000),
           result->errors[verb]);
}

/* True when every answer was good, and there were some. */
static bool report(struct load_result *result)
{
    double seconds = (double)(result->end_ns - result->begin_ns) / 1e9;
    size_t count = 0;
    uint64_t errors = 0;
    printf("{\"verbs\":{");
    for (int v = 0; v < LOAD_VERBS; v++) {
        errors += result->errors[v];
        if (result->samples[v].count)
            print_verb(result, (enum load_verb)v, seconds, count == 0);
        count += result->samples[v].count;
    }
    printf("},\"per_s\":%.1f,\"errors\":%" PRIu64 "}\n", (double)count / seconds, errors);
    if (errors)
        fprintf(stderr, "bench_load: %s\n", result->first_error);
    return count && !errors;
}

int main(int argc, char **argv)
{
    struct load_settings set;
    struct load_set sets[LOAD_VERBS] = {0};
    struct load_result result = {0};
    struct gs_error err = {0};
    read_settings(&set, argc, argv);
    const char *wrong = wrong_settings(&set);
    if (wrong) {
        fprintf(stderr, "bench_load: %s\n", wrong);
        return 2;
    }
    int failed =
        load_requests_make(&set, sets, &err) < 0 || load_run(&set, sets, &result, &err) < 0;
    if (failed)
        fprintf(stderr, "bench_load: %s\n", err.msg);
    else
        failed = !report(&result);
    load_result_release(&result);
    for (int v = 0; v < LOAD_VERBS; v++)
        load_set_release(&sets[v]);
    return failed ? 1 : 0;
}
