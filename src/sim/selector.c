/* SPDX-License-Identifier: Apache-2.0 */
#include "selector.h"

#include <stdio.h>
#include <string.h>

#include "tree.h"

/* ---- parsing ---- */

struct scan {
    struct gs_sim_selector *selector;
    const char *at;
    bool label;
    struct gs_error *err;
};

static int fail_parse(const struct scan *scan)
{
    return gs_fail(scan->err, GS_EPROTO, "unable to parse the %s selector near \"%.60s\"",
                   scan->label ? "label" : "field", scan->at);
}

static void skip_blanks(struct scan *scan)
{
    scan->at += strspn(scan->at, " \t");
}

/* The word up to one of stop's characters or a blank. */
static char *take_word(struct scan *scan, const char *stop)
{
    skip_blanks(scan);
    size_t len = 0;
    while (scan->at[len] && !strchr(stop, scan->at[len]) && scan->at[len] != ' ')
        len++;
    char *word = gs_arena_strndup(&scan->selector->arena, scan->at, len);
    scan->at += len;
    skip_blanks(scan);
    return word;
}

/* "(a, b)" after "in" or "notin". */
static int take_set(struct scan *scan, struct gs_sim_term *term)
{
    if (*scan->at != '(')
        return fail_parse(scan);
    size_t count = 1;
    for (const char *c = scan->at; *c && *c != ')'; c++)
        count += *c == ',';
    const char **values = gs_arena_calloc(&scan->selector->arena, count + 1, sizeof(*values));
    if (!values)
        return gs_fail_nomem(scan->err);
    for (size_t i = 0; i < count; i++) {
        scan->at++; /* '(' or ',' */
        values[i] = take_word(scan, ",)");
        if (!values[i])
            return gs_fail_nomem(scan->err);
        if (*scan->at != (i + 1 < count ? ',' : ')'))
            return fail_parse(scan);
    }
    scan->at++;
    skip_blanks(scan);
    term->values = values;
    return 0;
}

static int take_value(struct scan *scan, struct gs_sim_term *term)
{
    const char **values = gs_arena_calloc(&scan->selector->arena, 2, sizeof(*values));
    if (!values || !(values[0] = take_word(scan, ",")))
        return gs_fail_nomem(scan->err);
    term->values = values;
    return 0;
}

/* What follows the key; field selectors know "=", "==" and "!=" only. */
static int take_test(struct scan *scan, struct gs_sim_term *term, bool negated)
{
    static const struct {
        const char *sign;
        enum gs_sim_test test;
    } signs[] = {{"!=", GS_SIM_DIFFERS}, {"==", GS_SIM_EQUALS}, {"=", GS_SIM_EQUALS}};
    for (size_t i = 0; !negated && i < sizeof(signs) / sizeof(signs[0]); i++) {
        size_t len = strlen(signs[i].sign);
        if (strncmp(scan->at, signs[i].sign, len) == 0) {
            scan->at += len;
            term->test = signs[i].test;
            return take_value(scan, term);
        }
    }
    if (!scan->label)
        return fail_parse(scan);
    if (*scan->at == 0 || *scan->at == ',') {
        term->test = negated ? GS_SIM_LACKS : GS_SIM_HAS;
        return 0;
    }
    bool in = strncmp(scan->at, "in", 2) == 0, not_in = strncmp(scan->at, "notin", 5) == 0;
    if (negated || (!in && !not_in))
        return fail_parse(scan);
    term->test = in ? GS_SIM_IN : GS_SIM_NOT_IN;
    scan->at += in ? 2 : 5;
    skip_blanks(scan);
    return take_set(scan, term);
}

static int take_term(struct scan *scan)
{
    struct gs_sim_term *term = gs_arena_calloc(&scan->selector->arena, 1, sizeof(*term));
    if (!term)
        return gs_fail_nomem(scan->err);
    skip_blanks(scan);
    bool negated = scan->label && *scan->at == '!';
    scan->at += negated;
    term->label = scan->label;
    term->key = take_word(scan, "=!,()");
    if (!term->key)
        return gs_fail_nomem(scan->err);
    if (!term->key[0] || take_test(scan, term, negated) < 0)
        return scan->err && scan->err->code ? -1 : fail_parse(scan);
    if (*scan->at && *scan->at != ',')
        return fail_parse(scan);
    term->next = scan->selector->terms;
    scan->selector->terms = term;
    return 0;
}

static int parse_terms(struct gs_sim_selector *selector, const char *text, bool label,
                       struct gs_error *err)
{
    struct scan scan = {.selector = selector, .at = text ? text : "", .label = label, .err = err};
    skip_blanks(&scan);
    while (*scan.at) {
        if (take_term(&scan) < 0)
            return -1;
        if (*scan.at == ',' && *++scan.at == 0)
            return fail_parse(&scan);
    }
    return 0;
}

int gs_sim_selector_parse(const struct gs_sim_query *query, struct gs_sim_selector *ret,
                          struct gs_error *err)
{
    struct gs_error own = {0};
    struct gs_sim_selector selector = {.ns = ""};
    int rc = parse_terms(&selector, query->field_selector, false, &own);
    if (rc == 0)
        rc = parse_terms(&selector, query->label_selector, true, &own);
    if (rc == 0 && query->ns && query->ns[0]) {
        selector.ns = gs_arena_strndup(&selector.arena, query->ns, strlen(query->ns));
        if (!selector.ns)
            rc = gs_fail_nomem(&own);
    }
    if (rc < 0) {
        gs_sim_selector_release(&selector);
        return gs_fail(err, own.code, "%s", own.msg);
    }
    *ret = selector;
    return 0;
}

void gs_sim_selector_release(struct gs_sim_selector *selector)
{
    gs_arena_release(&selector->arena);
    *selector = (struct gs_sim_selector){0};
}

/* ---- matching ---- */

static bool passes(const struct gs_sim_term *term, const char *value)
{
    bool among = false;
    for (size_t i = 0; value && term->values && term->values[i]; i++)
        among |= strcmp(term->values[i], value) == 0;
    switch (term->test) {
    case GS_SIM_EQUALS:
    case GS_SIM_IN:
        return among;
    case GS_SIM_DIFFERS:
    case GS_SIM_NOT_IN:
        return !among;
    case GS_SIM_HAS:
        return value != NULL;
    case GS_SIM_LACKS:
        return value == NULL;
    }
    return false;
}

/* The fields kept beside the text; NULL: look into it. */
static const char *kept_field(const struct gs_sim_object *object, const char *path)
{
    if (strcmp(path, "metadata.name") == 0)
        return object->name;
    if (strcmp(path, "metadata.namespace") == 0)
        return object->ns;
    if (object->kind == GS_SIM_PODS && strcmp(path, "spec.nodeName") == 0)
        return object->node;
    if (object->kind == GS_SIM_PODS && strcmp(path, "status.phase") == 0)
        return object->phase;
    return NULL;
}

/* An absent field equals "", as in the field sets of pkg/registry/core. */
static const char *deep_field(const json_t *tree, const char *path, char number[24])
{
    char key[64];
    while (*path) {
        size_t len = strcspn(path, ".");
        if (len >= sizeof(key))
            return "";
        memcpy(key, path, len);
        key[len] = 0;
        tree = json_object_get(tree, key);
        path += len + (path[len] == '.');
    }
    if (json_is_string(tree))
        return json_string_value(tree);
    if (json_is_boolean(tree))
        return json_is_true(tree) ? "true" : "false";
    if (!json_is_integer(tree))
        return "";
    snprintf(number, 24, "%lld", (long long)json_integer_value(tree));
    return number;
}

/* A label's value has no characters that JSON escapes: one that does not stand in the text is not
 * the object's. So a few are found among many without reading all. */
static bool may_pass(const struct gs_sim_term *term, const struct gs_sim_object *object)
{
    bool among = !term->label || (term->test != GS_SIM_EQUALS && term->test != GS_SIM_IN);
    for (size_t i = 0; !among && term->values && term->values[i]; i++)
        among = strstr(object->json, term->values[i]) != NULL;
    return among;
}

bool gs_sim_selector_matches(const struct gs_sim_selector *selector,
                             const struct gs_sim_object *object)
{
    if (selector->ns[0] && strcmp(selector->ns, object->ns) != 0)
        return false;
    json_auto_t *tree = NULL;
    for (const struct gs_sim_term *term = selector->terms; term; term = term->next) {
        char number[24];
        if (!may_pass(term, object))
            return false;
        const char *value = term->label ? NULL : kept_field(object, term->key);
        if (!value) {
            if (!tree)
                tree = gs_sim_tree_of(object);
            if (!tree)
                return false;
            const json_t *labels =
                gs_sim_tree_object(gs_sim_tree_object(tree, "metadata"), "labels");
            value = term->label ? json_string_value(json_object_get(labels, term->key))
                                : deep_field(tree, term->key, number);
        }
        if (!passes(term, value))
            return false;
    }
    return true;
}
