/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/patch.h"

#include "json_writer.h"

void gs_codec_binding(struct gs_buf *out, const struct gs_binding *binding)
{
    gs_buf_puts(out, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{");
    gs_write_string(out, "name", binding->name);
    gs_write_string(out, "namespace", binding->ns);
    gs_write_optional(out, "uid", binding->uid);
    gs_write_map(out, "annotations", binding->annotations, binding->annotation_count);
    gs_buf_puts(out, "},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\"");
    gs_write_string(out, "name", binding->node);
    gs_buf_puts(out, "}}");
}

void gs_codec_meta_patch(struct gs_buf *out, const struct gs_meta_patch *patch)
{
    gs_buf_puts(out, "{\"metadata\":{");
    gs_write_optional(out, "uid", patch->uid);
    gs_write_optional(out, "resourceVersion", patch->resource_version);
    gs_write_map(out, "labels", patch->labels, patch->label_count);
    gs_write_map(out, "annotations", patch->annotations, patch->annotation_count);
    gs_buf_putc(out, '}');
    if (patch->nominated_node) {
        gs_buf_puts(out, ",\"status\":{");
        gs_write_string(out, "nominatedNodeName",
                        patch->nominated_node[0] ? patch->nominated_node : NULL);
        gs_buf_putc(out, '}');
    }
    gs_buf_putc(out, '}');
}

void gs_codec_node_status_patch(struct gs_buf *out, const struct gs_node_status_patch *patch)
{
    gs_buf_puts(out, "{\"status\":{");
    gs_write_map(out, "capacity", patch->capacity, patch->capacity_count);
    gs_write_map(out, "allocatable", patch->capacity, patch->capacity_count);
    gs_buf_puts(out, "}}");
}
