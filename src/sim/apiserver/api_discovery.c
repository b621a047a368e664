/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api_internal.h"

/*
 * Health, and what kubectl asks before it does anything: which groups, versions and resources there
 * are, and whether the server validates fields (a PATCH operation in /openapi/v3 that takes the
 * argument fieldValidation: k8s.io/kubectl/pkg/util/openapi, query_param_verifier_v3.go). The kinds
 * are those of object.c, so that the documents are constant.
 */

#define VERBS  "\"verbs\":[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]"
#define STATUS "\"verbs\":[\"get\",\"patch\",\"update\"]"

#define LEASES_GROUP                                                                               \
    "\"name\":\"coordination.k8s.io\",\"versions\":[{\"groupVersion\":\"coordination.k8s.io/v1\"," \
    "\"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"coordination.k8s.io/v1\","      \
    "\"version\":\"v1\"}}"

#define OPENAPI                                                                                    \
    "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"gpushare-sim\",\"version\":\"v1\"},\"paths\":{"
#define PATCH(path, group, kind)                                                                   \
    "\"" path "/{name}\":{\"patch\":{\"parameters\":[{\"name\":\"fieldValidation\","               \
    "\"in\":\"query\",\"schema\":{\"type\":\"string\"}}],\"responses\":{},"                        \
    "\"x-kubernetes-group-version-kind\":{\"group\":\"" group "\",\"version\":\"v1\","             \
    "\"kind\":\"" kind "\"}}}"

static const struct {
    const char *path, *text;
} documents[] = {
    {"/healthz", "ok"},
    {"/readyz", "ok"},
    {"/livez", "ok"},
    {"/version",
     "{\"major\":\"1\",\"minor\":\"32\",\"gitVersion\":\"v1.32.0-gpushare-sim." GS_VERSION
     "\",\"platform\":\"linux/amd64\"}"},
    {"/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}"},
    {"/api/v1",
     "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"v1\",\"resources\":["
     "{\"name\":\"nodes\",\"singularName\":\"node\",\"namespaced\":false,\"kind\":\"Node\"," VERBS
     ",\"shortNames\":[\"no\"]},"
     "{\"name\":\"nodes/"
     "status\",\"singularName\":\"\",\"namespaced\":false,\"kind\":\"Node\"," STATUS "},"
     "{\"name\":\"pods\",\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\"," VERBS
     ",\"shortNames\":[\"po\"]},"
     "{\"name\":\"pods/status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Pod\"," STATUS
     "},"
     "{\"name\":\"pods/binding\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Binding\","
     "\"verbs\":[\"create\"]},"
     "{\"name\":\"events\",\"singularName\":\"event\",\"namespaced\":true,\"kind\":\"Event\"," VERBS
     ",\"shortNames\":[\"ev\"]}]}"},
    {"/apis", "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{" LEASES_GROUP "]}"},
    {"/apis/coordination.k8s.io", "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," LEASES_GROUP},
    {"/apis/coordination.k8s.io/v1",
     "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":"
     "\"coordination.k8s.io/v1\",\"resources\":[{\"name\":\"leases\",\"singularName\":\"lease\","
     "\"namespaced\":true,\"kind\":\"Lease\"," VERBS "}]}"},
    {"/openapi/v3", "{\"paths\":{\"api/v1\":{\"serverRelativeURL\":\"/openapi/v3/api/v1\"},"
                    "\"apis/coordination.k8s.io/v1\":{\"serverRelativeURL\":"
                    "\"/openapi/v3/apis/coordination.k8s.io/v1\"}}}"},
    {"/openapi/v3/api/v1",
     OPENAPI PATCH("/api/v1/nodes", "", "Node") "," PATCH(
         "/api/v1/namespaces/{namespace}/pods", "",
         "Pod") "," PATCH("/api/v1/namespaces/{namespace}/events", "", "Event") "}}"},
    {"/openapi/v3/apis/coordination.k8s.io/v1",
     OPENAPI PATCH("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
                   "coordination.k8s.io", "Lease") "}}"},
};

bool gs_sim_discovery(const char *path, struct gs_sim_reply *ret)
{
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        if (strcmp(documents[i].path, path) != 0)
            continue;
        gs_buf_puts(&ret->body, documents[i].text);
        return true;
    }
    return false;
}
