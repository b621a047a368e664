/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "inspect/source.h"
#include "inspect/web_page.h"

/* Words of others in a page and in a link. */

const struct web_sort web_sorts[SORT_PODS + 1] = {
    [SORT_NAME] = {"name", "by name"},          [SORT_FREE] = {"free", "most free"},
    [SORT_USED] = {"used", "most used"},        [SORT_LARGEST] = {"largest", "largest free piece"},
    [SORT_STRANDED] = {"stranded", "stranded"}, [SORT_PODS] = {"pods", "most pods"},
};

void web_escape(struct gs_buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            gs_buf_puts(out, "&lt;");
            break;
        case '>':
            gs_buf_puts(out, "&gt;");
            break;
        case '&':
            gs_buf_puts(out, "&amp;");
            break;
        case '"':
            gs_buf_puts(out, "&quot;");
            break;
        case '\'':
            gs_buf_puts(out, "&#39;");
            break;
        default:
            gs_buf_putc(out, *text);
        }
    }
}

static void put_argument(struct gs_buf *out, const char *name, const char *value)
{
    if (!value[0])
        return;
    gs_buf_printf(out, "%s=", name);
    gs_url_escape(out, value);
    gs_buf_puts(out, "&amp;");
}

void web_query_text(const struct web_query *query, uint32_t page, struct gs_buf *out)
{
    put_argument(out, "q", query->text);
    put_argument(out, "ns", query->ns);
    put_argument(out, "model", query->model);
    if (query->sort != SORT_NAME)
        put_argument(out, "sort", web_sorts[query->sort].value);
    gs_buf_printf(out, "page=%" PRIu32, page + 1);
}

void web_put_width(struct gs_buf *out, uint64_t thousandths)
{
    gs_buf_printf(out, "t%" PRIu64 " u%" PRIu64 " d%" PRIu64, thousandths / 100,
                  thousandths / 10 % 10, thousandths % 10);
}

uint64_t web_share(uint64_t part, uint64_t whole)
{
    if (!whole)
        return 0;
    return part >= whole ? 1000 : (part * 1000 + whole / 2) / whole;
}
