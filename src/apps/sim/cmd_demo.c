/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "gpushare/base/log.h"
#include "sim/commands.h"
#include "sim/demo_state.h"

/*
 * gpushare-sim demo: draws every GPU with what lies on it and says why the rest waits, then checks
 * the picture against what the pods' authors expected and against the extender's own account.
 */

enum { BAR_MAX = 40 };

struct demo_settings {
    const char *api;
    const char *kubeconfig;
    const char *extender;
    const char *domain;
};

static void read_settings(struct demo_settings *set, int argc, char **argv)
{
    *set = (struct demo_settings){.domain = "aliyun.com"};
    const struct gs_option table[] = {
        OPT_STRING("api", &set->api, "URL", "of the API server"),
        OPT_STRING("kubeconfig", &set->kubeconfig, "FILE", "instead of --api"),
        OPT_STRING("extender", &set->extender, "URL", "compare with its inspect too"),
        OPT_STRING("domain", &set->domain, "DOMAIN", "of the GPU resources"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim demo",
        .doc = "Print which pod got which GPU and why others wait; fail when it is not as the "
               "pods' annotations demo.gpushare/expect (\"bound\" or \"pending\") and "
               "demo.gpushare/expect-reason say, or a GPU holds more than it has.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- the picture ---- */

/* One letter per unit, or per few units of a large GPU: a letter for each pod, a dot for what is
 * free. */
static void draw_bar(const struct demo_state *state, const struct demo_node *node, uint32_t idx)
{
    uint32_t size = node->gpus[idx].mem_units;
    uint32_t step = (size + BAR_MAX - 1) / BAR_MAX, drawn = 0;
    putchar('[');
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct demo_pod *pod = &state->pods[i];
        if (pod->node != node || !(pod->gpus & GS_GPU_BIT(node->gpus[idx].idx)))
            continue;
        for (uint32_t k = 0; k < (pod->units + step - 1) / step; k++, drawn++)
            putchar(pod->letter);
    }
    for (; drawn < size / step; drawn++)
        putchar('.');
    putchar(']');
}

static void name_pods(const struct demo_state *state, const struct demo_node *node, uint32_t idx)
{
    const char *between = "";
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct demo_pod *pod = &state->pods[i];
        if (pod->node != node || !(pod->gpus & GS_GPU_BIT(node->gpus[idx].idx)))
            continue;
        printf("%s%c=%s %u", between, pod->letter, pod->name, pod->units);
        between = ", ";
    }
    putchar('\n');
}

static void print_nodes(const struct demo_state *state)
{
    for (size_t n = 0; n < state->node_count; n++) {
        const struct demo_node *node = &state->nodes[n];
        uint64_t used = 0, total = 0;
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            used += node->used[i];
            total += node->gpus[i].mem_units;
        }
        printf("\n%s: %llu of %llu %s in use\n", node->name, (unsigned long long)used,
               (unsigned long long)total, node->unit);
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            printf("  GPU %u %3llu/%-3u ", node->gpus[i].idx, (unsigned long long)node->used[i],
                   node->gpus[i].mem_units);
            draw_bar(state, node, i);
            putchar(' ');
            name_pods(state, node, i);
        }
    }
}

static void print_bound(const struct demo_state *state)
{
    printf("\n%-18s %-26s %-10s %s\n", "POD", "ASKS FOR", "NODE", "GPU");
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct demo_pod *pod = &state->pods[i];
        if (pod->node)
            printf("%-18s %-26s %-10s %s\n", pod->name, pod->asks, pod->node->name, pod->idx);
    }
}

static void print_waiting(const struct demo_state *state)
{
    puts("\nwaiting, and why:");
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct demo_pod *pod = &state->pods[i];
        if (!pod->node)
            printf("  %s (%s)\n    %s\n", pod->name, pod->asks,
                   pod->message[0] ? pod->message : "nobody tried to schedule it");
    }
}

/* ---- the checks ---- */

static size_t complain(const char *who, const char *what, const char *detail)
{
    fprintf(stderr, "wrong: %s: %s%s%s\n", who, what, detail[0] ? ": " : "", detail);
    return 1;
}

static size_t check_pods(const struct demo_state *state)
{
    size_t wrong = 0;
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct demo_pod *pod = &state->pods[i];
        bool wants_bound = strcmp(pod->expect, "bound") == 0;
        if (pod->expect[0] && wants_bound != (pod->node != NULL))
            wrong += complain(pod->name, "expected to be", pod->expect);
        if (pod->expect_reason[0] && !strstr(pod->message, pod->expect_reason))
            wrong += complain(pod->name, "waits for another reason than", pod->expect_reason);
        if (pod->node && pod->units && gs_gpu_mask_count(pod->gpus) != pod->gpu_count)
            wrong += complain(pod->name, "has the wrong number of GPUs", pod->idx);
    }
    return wrong;
}

static size_t check_gpus(const struct demo_state *state)
{
    size_t wrong = 0;
    for (size_t n = 0; n < state->node_count; n++) {
        const struct demo_node *node = &state->nodes[n];
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            if (node->used[i] > node->gpus[i].mem_units)
                wrong += complain(node->name, "a GPU holds more than it has", "");
            if (state->inspected && node->inspect_used[i] != node->used[i])
                wrong += complain(node->name, "the extender's inspect says otherwise", "");
        }
        if (node->misplaced)
            wrong += complain(node->name, "a pod is on a GPU that the node does not have", "");
    }
    return wrong;
}

int cmd_demo(int argc, char **argv)
{
    struct demo_settings set;
    struct demo_state state = {0};
    struct gs_error err = {0};
    read_settings(&set, argc, argv);
    if (!set.api == !set.kubeconfig) {
        fputs("gpushare-sim demo: one of --api and --kubeconfig is needed\n", stderr);
        return 2;
    }
    int rc = demo_state_read(set.api, set.kubeconfig, set.extender, set.domain, &state, &err);
    size_t wrong = 0;
    if (rc == 0) {
        print_nodes(&state);
        print_bound(&state);
        print_waiting(&state);
        wrong = check_pods(&state) + check_gpus(&state);
        printf("\n%zu pods placed, %zu waiting", state.bound, state.waiting);
        if (wrong > 0)
            printf("; %zu things are wrong\n", wrong);
        else
            printf("; no GPU over its size%s\n",
                   state.inspected ? ", and the extender's inspect agrees with the API" : "");
    } else {
        gs_log(GS_LOG_ERROR, "demo failed", GS_STR("why", err.msg));
    }
    demo_state_release(&state);
    return rc == 0 && wrong == 0 ? 0 : 1;
}
