/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "inspect/doctor.h"
#include "inspect/lookup.h"

/* kube-scheduler's configuration: the extender's entry, and whether it is complete. */

enum { CONFIG_BYTES_MAX = 1 << 20 };

static const yaml_node_t *member(yaml_document_t *document, const yaml_node_t *node,
                                 const char *name)
{
    if (!node || node->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        if (key->type == YAML_SCALAR_NODE && strcmp((char *)key->data.scalar.value, name) == 0)
            return yaml_document_get_node(document, pair->value);
    }
    return NULL;
}

static const char *text_of(yaml_document_t *document, const yaml_node_t *node, const char *name)
{
    const yaml_node_t *value = member(document, node, name);
    return value && value->type == YAML_SCALAR_NODE ? (const char *)value->data.scalar.value : "";
}

/* The entry of extenders that is ours; NULL without one. */
static const yaml_node_t *our_extender(yaml_document_t *document)
{
    const yaml_node_t *list = member(document, yaml_document_get_root_node(document), "extenders");
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return NULL;
    for (yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        const yaml_node_t *entry = yaml_document_get_node(document, *item);
        if (strstr(text_of(document, entry, "urlPrefix"), "/gpushare-scheduler"))
            return entry;
    }
    return NULL;
}

static bool manages(yaml_document_t *document, const yaml_node_t *entry, const char *resource)
{
    const yaml_node_t *list = member(document, entry, "managedResources");
    if (!list)
        return true; /* asked about every pod */
    for (yaml_node_item_t *item = list->data.sequence.items.start;
         list->type == YAML_SEQUENCE_NODE && item < list->data.sequence.items.top; item++) {
        const yaml_node_t *resource_node = yaml_document_get_node(document, *item);
        if (strcmp(text_of(document, resource_node, "name"), resource) == 0)
            return true;
    }
    return false;
}

/* A verb without which pods are placed wrongly, or not at all. */
static const struct {
    const char *key;
    const char *value;
    const char *without; /* what happens */
    enum finding finding;
} wanted[] = {
    {"filterVerb", "filter", "pods land on nodes without a GPU that fits", FINDING_FAIL},
    {"bindVerb", "bind", "pods are bound without a GPU", FINDING_FAIL},
    {"prioritizeVerb", "prioritize", "nodes are chosen without regard to GPU memory", FINDING_WARN},
    {"preemptVerb", "preempt", "pods of high priority do not make room", FINDING_WARN},
    {"nodeCacheCapable", "true", "whole Node objects travel with every request", FINDING_WARN},
};

static void judge(struct doctor *doctor, yaml_document_t *document, const char *where)
{
    const yaml_node_t *entry = our_extender(document);
    const char *resource = doctor->common.names.gpu_mem;
    uint32_t wrong = 0;
    if (!entry) {
        doctor_say(doctor, FINDING_FAIL, "scheduler config",
                   "%s has no extender whose urlPrefix ends in /gpushare-scheduler; take the entry "
                   "from config/kube-scheduler-config-v1.yaml",
                   where);
        return;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (strcmp(text_of(document, entry, wanted[i].key), wanted[i].value) == 0)
            continue;
        wrong++;
        doctor_say(doctor, wanted[i].finding, "scheduler config", "%s: add %s: %s; without it %s",
                   where, wanted[i].key, wanted[i].value, wanted[i].without);
    }
    if (strcmp(text_of(document, entry, "ignorable"), "true") == 0 && ++wrong)
        doctor_say(doctor, FINDING_WARN, "scheduler config",
                   "%s: set ignorable: false; while the extender is away pods land on full GPUs",
                   where);
    if (!manages(document, entry, resource) && ++wrong)
        doctor_say(doctor, FINDING_FAIL, "scheduler config",
                   "%s: managedResources lacks %s: the extender is never asked", where, resource);
    if (!wrong)
        doctor_say(doctor, FINDING_OK, "scheduler config", "%s is complete", where);
}

static void parse(struct doctor *doctor, const char *text, size_t len, const char *where)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &document)) {
        judge(doctor, &document, where);
        yaml_document_delete(&document);
    } else {
        doctor_say(doctor, FINDING_FAIL, "scheduler config", "%s:%zu: %s", where,
                   parser.problem_mark.line + 1, parser.problem ? parser.problem : "no YAML");
    }
    yaml_parser_delete(&parser);
}

static void read_file(struct doctor *doctor, const char *path)
{
    _cleanup_free_ char *text = malloc(CONFIG_BYTES_MAX);
    FILE *file = fopen(path, "re");
    if (!file || !text) {
        doctor_say(doctor, FINDING_FAIL, "scheduler config", "%s: %s", path, strerror(errno));
        if (file)
            fclose(file);
        return;
    }
    size_t len = fread(text, 1, CONFIG_BYTES_MAX, file);
    fclose(file);
    parse(doctor, text, len, path);
}

/* The second scheduler's ConfigMap (manifests/overlays/second-scheduler). */
static void read_config_map(struct doctor *doctor)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct gs_error err = {0};
    gs_buf_puts(&path, "/api/v1/namespaces/");
    source_escape(&path, doctor->system_ns);
    gs_buf_puts(&path, "/configmaps/gpushare-scheduler");
    json_auto_t *map =
        gs_buf_failed(&path) ? NULL : lookup_json(&doctor->source, path.data, NULL, &err);
    const char *text = lookup_text(map, "data", "config.yaml", NULL);
    if (text[0])
        parse(doctor, text, strlen(text), "ConfigMap gpushare-scheduler");
    else
        doctor_say(doctor, FINDING_SKIP, "scheduler config",
                   "not readable from here (%s); give --scheduler-config FILE where kube-scheduler "
                   "runs",
                   err.msg[0] ? err.msg : "no config.yaml in the ConfigMap");
}

void doctor_check_scheduler(struct doctor *doctor)
{
    if (doctor->scheduler_config)
        read_file(doctor, doctor->scheduler_config);
    else
        read_config_map(doctor);
}
