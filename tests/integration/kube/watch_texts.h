/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an API server says about pods, in its own words. */

#define POD(name, rv)                                                                              \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\",\"uid\":\"u-" name  \
    "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":"  \
    "{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]},\"status\":{\"phase\":\"Pending\"}}"
#define LIST(rv, token, items)                                                                     \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" token     \
    "\"},\"items\":[" items "]}"
#define ADDED(name, rv)   "{\"type\":\"ADDED\",\"object\":" POD(name, rv) "}\n"
#define DELETED(name, rv) "{\"type\":\"DELETED\",\"object\":" POD(name, rv) "}\n"
#define BOOKMARK(rv)                                                                               \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" rv  \
    "\"}}}\n"
#define ERROR(code)                                                                                \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code                           \
    ",\"message\":\"told so\"}}\n"

#define IS_LIST  "GET /api/v1/pods?limit="
#define IS_WATCH "GET /api/v1/pods?watch=true"
