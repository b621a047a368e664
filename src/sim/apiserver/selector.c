/* SPDX-License-Identifier: Apache-2.0 */
#include "selector.h"

#include <string.h>

#include "tree.h"

/* ---- parsing ---- */

struct scan {
    struct gs_arena *arena;
    const char *at;
};

/* Passes over the sign when it comes next, and over blanks. */
static bool take(struct scan *scan, const char *sign)
{
    size_t len = strlen(sign);
    scan->at += strspn(scan->at, " ");
    if (strncmp(scan->at, sign, len) != 0)
        return false;
    scan->at += len;
    scan->at += strspn(scan->at, " ");
    return true;
}

/* The word up to one of stop's characters or a blank; NULL: out of memory. */
static const char *take_word(struct scan *scan, const char *stop)
{
    size_t len = strcspn(scan->at, stop);
    const char *word = gs_arena_strndup(scan->arena, scan->at, len);
    scan->at += len;
    take(scan, "");
    return word;
}

/* "a", or of a set "a, b)" after its bracket. */
static bool take_values(struct scan *scan, bool set, struct gs_sim_term *term)
{
    size_t count = 1, at = 0;
    for (const char *c = scan->at; set && *c && *c != ')'; c++)
        count += *c == ',';
    term->values = gs_arena_calloc(scan->arena, count + 1, sizeof(*term->values));
    if (!term->values)
        return false;
    do {
        term->values[at] = take_word(scan, set ? " ,)" : " ,");
    } while (term->values[at] && ++at < count && take(scan, ","));
    return at == count && (!set || take(scan, ")"));
}

/* Field selectors know "=", "==" and "!=" only. */
static bool take_term(struct scan *scan, bool label, struct gs_sim_term *term)
{
    term->label = label;
    term->negated = label && take(scan, "!");
    term->key = take_word(scan, " =!,()");
    if (!term->key || !term->key[0])
        return false;
    bool ends = !*scan->at || *scan->at == ',';
    if (ends || term->negated)
        return label && ends;
    term->negated = take(scan, "!=");
    if (term->negated || take(scan, "==") || take(scan, "="))
        return take_values(scan, false, term);
    term->negated = take(scan, "notin");
    return label && (term->negated || take(scan, "in")) && take(scan, "(") &&
           take_values(scan, true, term);
}

static int parse_terms(struct gs_sim_selector *selector, const char *text, bool label,
                       struct gs_error *err)
{
    struct scan scan = {.arena = &selector->arena, .at = text ? text : ""};
    for (bool more = !take(&scan, "") || *scan.at; more;) {
        struct gs_sim_term *term = gs_arena_calloc(&selector->arena, 1, sizeof(*term));
        if (!term || !take_term(&scan, label, term))
            return gs_fail(err, GS_EPROTO, "unable to parse the %s selector near \"%.60s\"",
                           label ? "label" : "field", scan.at);
        term->next = selector->terms;
        selector->terms = term;
        more = take(&scan, ",");
    }
    return *scan.at ? gs_fail(err, GS_EPROTO, "unable to parse the selector at \"%.60s\"", scan.at)
                    : 0;
}

int gs_sim_selector_parse(const struct gs_sim_query *query, struct gs_sim_selector *ret,
                          struct gs_error *err)
{
    const char *ns = query->ns ? query->ns : "";
    *ret = (struct gs_sim_selector){0};
    int rc = parse_terms(ret, query->field_selector, false, err);
    if (rc == 0)
        rc = parse_terms(ret, query->label_selector, true, err);
    if (rc == 0 && !(ret->ns = gs_arena_strdup(&ret->arena, ns)))
        rc = gs_fail_nomem(err);
    if (rc < 0)
        gs_sim_selector_release(ret);
    return rc;
}

void gs_sim_selector_release(struct gs_sim_selector *selector)
{
    gs_arena_release(&selector->arena);
    *selector = (struct gs_sim_selector){0};
}

/* ---- matching ---- */

static bool passes(const struct gs_sim_term *term, const char *value)
{
    bool among = !term->values && value;
    for (size_t i = 0; value && term->values && term->values[i]; i++)
        among |= strcmp(term->values[i], value) == 0;
    return among != term->negated;
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
static const char *deep_field(const json_t *tree, const char *path)
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
    if (json_is_boolean(tree))
        return json_is_true(tree) ? "true" : "false";
    return json_is_string(tree) ? json_string_value(tree) : "";
}

/* A label's value has no characters that JSON escapes: one that does not stand in the text is not
 * the object's. So a few are found among many without reading all. */
static bool may_pass(const struct gs_sim_term *term, const struct gs_sim_object *object)
{
    bool among = !term->label || term->negated || !term->values;
    for (size_t i = 0; !among && term->values[i]; i++)
        among = strstr(object->json, term->values[i]) != NULL;
    return among;
}

bool gs_sim_selector_matches(const struct gs_sim_selector *selector,
                             const struct gs_sim_object *object)
{
    if (selector->ns && selector->ns[0] && strcmp(selector->ns, object->ns) != 0)
        return false;
    json_auto_t *tree = NULL;
    for (const struct gs_sim_term *term = selector->terms; term; term = term->next) {
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
                                : deep_field(tree, term->key);
        }
        if (!passes(term, value))
            return false;
    }
    return true;
}
