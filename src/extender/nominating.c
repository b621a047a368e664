/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/nominating.h"

#include <jansson.h>

#include "extender/service/service.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/extender.h"

enum { ANSWER_BYTES_MAX = 1 << 16 };

/* {"major":"1","minor":"36+"} */
bool nominating_may(struct gs_slice version)
{
    json_auto_t *release = json_loadb(version.at, version.len, 0, NULL);
    const char *minor = json_string_value(json_object_get(release, "minor"));
    uint32_t number;
    return minor && gs_parse_u32(minor, strspn(minor, "0123456789"), &number) &&
           number >= GS_NOMINATES_SINCE_MINOR;
}

int nominating_ask(struct gs_kube_client *client, bool *ret_may, struct gs_error *err)
{
    const struct gs_kube_request request = {.method = "GET", .path = "/version"};
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(ANSWER_BYTES_MAX);
    int status = 0;
    if (gs_kube_request(client, &request, &status, &body, err) < 0)
        return -1;
    if (status == 403 || status == 404) /* what it does not know, or answers to others only */
        gs_buf_reset(&body);
    else if (status / 100 != 2)
        return gs_kube_fail_status(status, body.data, body.len, err);
    *ret_may = nominating_may((struct gs_slice){body.data, body.len});
    return 0;
}
