/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "gpushare/base/clock.h"

static struct gs_sim_list list_of(struct gs_sim_cluster *cluster, const char *fields,
                                  const char *labels, uint64_t limit, const char *next)
{
    struct gs_sim_query query = {
        .kind = GS_SIM_PODS, .field_selector = fields, .label_selector = labels};
    struct gs_sim_list list;
    struct gs_error err = {0};
    if (gs_sim_list(cluster, &query, limit, next, &list, &err) < 0)
        fail_msg("%s", err.msg);
    return list;
}

static void selectors_pick_what_they_say(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "a", ",\"labels\":{\"app\":\"x\",\"tier\":\"1\"}");
    add_pod(cluster, "b", ",\"labels\":{\"app\":\"y\"}");
    add_pod(cluster, "c", "");
    assert_int_equal(bind_pod(cluster, "b", "{\"target\":{\"name\":\"n1\"}}", NULL), 0);
    static const struct {
        const char *row;
        const char *fields;
        const char *labels;
        const char *names; /* one letter each */
    } rows[] = {
        {"none", NULL, NULL, "abc"},
        {"empty", "", "", "abc"},
        {"node", "spec.nodeName=n1", NULL, "b"},
        {"node, two signs", "spec.nodeName==n1", NULL, "b"},
        {"no node", "spec.nodeName=", NULL, "ac"},
        {"not that node", "spec.nodeName!=n1", NULL, "ac"},
        {"name", "metadata.name=a", NULL, "a"},
        {"phases", "status.phase!=Failed,status.phase!=Succeeded", NULL, "abc"},
        {"phase", "status.phase=Running", NULL, ""},
        {"two that agree", "metadata.name=b,spec.nodeName=n1", NULL, "b"},
        {"two that do not", "metadata.name=a,spec.nodeName=n1", NULL, ""},
        {"a field deep inside", "spec.schedulerName=default-scheduler", NULL, "abc"},
        {"a field that is not there", "spec.none.at.all=x", NULL, ""},
        {"label", NULL, "app=x", "a"},
        {"label differs, or is not there", NULL, "app!=x", "bc"},
        {"label is there", NULL, "app", "ab"},
        {"label is not there", NULL, "!app", "c"},
        {"set", NULL, "app in (x, y)", "ab"},
        {"not in set", NULL, "app notin (x,z)", "bc"},
        {"label and label", NULL, "app=x,tier=1", "a"},
        {"label and field", "spec.nodeName=n1", "app=y", "b"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_list list = list_of(cluster, r->fields, r->labels, 0, NULL);
        char names[8] = "";
        for (size_t i = 0; i < list.count && i < 7; i++)
            names[i] = list.items[i]->name[0];
        row_text(r->row, names, r->names);
        gs_sim_list_release(&list);
    }
}

static void pages_are_one_snapshot(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    for (char c = 'a'; c <= 'g'; c++)
        add_pod(cluster, (char[]){c, 0}, "");
    struct gs_sim_list page = list_of(cluster, NULL, NULL, 3, NULL);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.remaining, 4);
    uint64_t version = page.version;
    char next[48];
    memcpy(next, page.next, sizeof(next));
    gs_sim_list_release(&page);
    /* Neither of these is seen by the pages to come. */
    add_pod(cluster, "dd", "");
    gs_sim_delete(cluster, GS_SIM_PODS, "default", "e", (struct gs_slice){0}, NULL, NULL);
    char names[8] = "";
    size_t at = 0;
    while (next[0]) {
        page = list_of(cluster, NULL, NULL, 3, next);
        assert_true(page.version == version);
        for (size_t i = 0; i < page.count; i++)
            names[at++] = page.items[i]->name[0];
        memcpy(next, page.next, sizeof(next));
        gs_sim_list_release(&page);
    }
    assert_string_equal(names, "defg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_cluster(selectors_pick_what_they_say),
        test_with_cluster(pages_are_one_snapshot),
    };
    return GS_RUN(tests);
}
