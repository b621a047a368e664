/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/codec/manifest.h"

/* What came out: "Kind-number:json" one after the other, a newline between. */
struct collected {
    char text[4096];
    int count;
};

static int collect(void *ctx, const char *version, const char *kind, struct gs_slice json,
                   struct gs_error *err)
{
    struct collected *got = ctx;
    got->count++;
    size_t len = strlen(got->text);
    snprintf(got->text + len, sizeof(got->text) - len, "%s%s:%.*s", len ? "\n" : "", kind,
             (int)json.len, json.at);
    return 0;
}

static int parse(const char *text, struct collected *got, struct gs_error *err)
{
    *got = (struct collected){0};
    return gs_manifest_parse(gs_slice_of(text), "f.yaml", collect, got, err);
}

#define POD_YAML "apiVersion: v1\nkind: Pod\n"
#define POD_JSON "\"apiVersion\":\"v1\",\"kind\":\"Pod\""

static void documents_become_objects(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        const char *objects;
    } rows[] = {
        {"nothing", "", ""},
        {"only a comment", "# hello\n", ""},
        {"one", POD_YAML "metadata: {name: p}\n",
         "Pod:{" POD_JSON ",\"metadata\":{\"name\":\"p\"}}"},
        {"two and an empty one", POD_YAML "---\n---\n# none\n---\napiVersion: v1\nkind: Node\n",
         "Pod:{" POD_JSON "}\nNode:{\"apiVersion\":\"v1\",\"kind\":\"Node\"}"},
        {"another group", "apiVersion: coordination.k8s.io/v1\nkind: Lease\n",
         "Lease:{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\"}"},
        {"a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n",
         "Pod:{" POD_JSON "}"},
        {"a list of one kind", "apiVersion: v1\nkind: PodList\nitems: [{a: 1}, {kind: Node}]\n",
         "Pod:{\"a\":1,\"kind\":\"Pod\"}\nNode:{\"kind\":\"Node\"}"},
        {"JSON", "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\"}", "Pod:{" POD_JSON "}"},
        {"an alias", POD_YAML "a: &x {b: 1}\nc: *x\n",
         "Pod:{" POD_JSON ",\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"merge keys", POD_YAML "a: &x {b: 1, d: 2}\nc: {<<: [*x, {e: 4, b: 5}], b: 3}\n",
         "Pod:{" POD_JSON ",\"a\":{\"b\":1,\"d\":2},\"c\":{\"b\":3,\"d\":2,\"e\":4}}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct collected got;
        struct gs_error err = {0};
        row_equal(r->row, parse(r->text, &got, &err), 0);
        row_text(r->row, got.text, r->objects);
    }
}

static void scalars_are_read_as_kubectl_reads_them(void **state)
{
    static const struct {
        const char *row;
        const char *yaml;
        const char *json;
    } rows[] = {
        {"a number", "8", "8"},
        {"a quoted number", "\"8\"", "\"8\""},
        {"a fraction", "0.5", "0.5"},
        {"a quantity", "16Gi", "\"16Gi\""},
        {"a date", "2026-01-01", "\"2026-01-01\""},
        {"true", "true", "true"},
        {"on", "on", "true"},
        {"No", "No", "false"},
        {"nothing", "", "null"},
        {"tilde", "~", "null"},
        {"null", "null", "null"},
        {"a quoted nothing", "\"\"", "\"\""},
        {"text", "hello world", "\"hello world\""},
        {"a block", "|\n  a\n  b\n", "\"a\\nb\\n\""},
        {"leading zeros are text", "007", "\"007\""},
        {"beyond 64 bits is text", "99999999999999999999", "\"99999999999999999999\""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[256], expected[256];
        struct collected got;
        struct gs_error err = {0};
        snprintf(text, sizeof(text), POD_YAML "v: %s\n", r->yaml);
        snprintf(expected, sizeof(expected), "Pod:{" POD_JSON ",\"v\":%s}", r->json);
        row_equal(r->row, parse(text, &got, &err), 0);
        row_text(r->row, got.text, expected);
    }
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        enum gs_code code;
        const char *words;
    } rows[] = {
        {"broken YAML", POD_YAML "a: [1\n", GS_EINVAL, "f.yaml:"},
        {"a tab", POD_YAML "a:\n\t- 1\n", GS_EINVAL, "f.yaml:4"},
        {"a scalar", "hello", GS_EINVAL, "f.yaml:1: not an object"},
        {"a list as key", POD_YAML "? [a]\n: b\n", GS_EINVAL, "a key must be a string"},
        {"a merge key of a text", POD_YAML "<<: a\n", GS_EINVAL, "a merge key needs a mapping"},
        {"an unknown alias", POD_YAML "a: *nowhere\n", GS_EINVAL, "f.yaml:3"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct collected got;
        struct gs_error err = {0};
        row_equal(r->row, parse(r->text, &got, &err), -1);
        row_equal(r->row, err.code, r->code);
        if (!strstr(err.msg, r->words))
            row_text(r->row, err.msg, r->words);
    }
}

static void nesting_has_a_ceiling(void **state)
{
    char text[1024] = POD_YAML "a: ";
    struct collected got;
    struct gs_error err = {0};
    memset(text + strlen(text), '[', GS_MANIFEST_DEPTH_MAX + 1);
    memset(text + strlen(text), ']', GS_MANIFEST_DEPTH_MAX + 1);
    assert_int_equal(parse(text, &got, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
}

static void aliases_do_not_multiply_without_end(void **state)
{
    /* Five levels of nine: 66,000 values from a third of a kilobyte. */
    char text[1024] = POD_YAML "l0: &l0 [x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 5; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len,
                 "l%d: &l%d [*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d]\n", i, i, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    struct collected got;
    struct gs_error err = {0};
    assert_int_equal(parse(text, &got, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
}

static void a_file_is_read_or_told_missing(void **state)
{
    struct collected got = {0};
    struct gs_error err = {0};
    assert_int_equal(
        gs_manifest_read(GS_SOURCE_DIR "/examples/demo/pods.yaml", collect, &got, &err), 0);
    assert_int_equal(got.count, 21);
    assert_int_equal(gs_manifest_read("/nowhere/at/all", collect, &got, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_objects),
        cmocka_unit_test(scalars_are_read_as_kubectl_reads_them),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(nesting_has_a_ceiling),
        cmocka_unit_test(aliases_do_not_multiply_without_end),
        cmocka_unit_test(a_file_is_read_or_told_missing),
    };
    return GS_RUN(tests);
}
