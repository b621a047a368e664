/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "../../../src/kube/exec_credential.h"

#define V1             "client.authentication.k8s.io/v1"
#define ANSWER(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"," status "}"
#define WITH(status)   ANSWER("\"status\":{" status "}")

static const struct row {
    const char *row;
    const char *text;
    const char *token, *cert, *key; /* NULL: absent */
    int64_t expires_ns;
    bool ok;
} rows[] = {
    {"a token", WITH("\"token\":\"t\""), "t", NULL, NULL, INT64_MAX, true},
    {"a time", WITH("\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T00:00:01Z\""), "t", NULL,
     NULL, 1000000000, true},
    {"a time that is null", WITH("\"token\":\"t\",\"expirationTimestamp\":null"), "t", NULL, NULL,
     INT64_MAX, true},
    {"a certificate", WITH("\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\""), NULL, "c",
     "k", INT64_MAX, true},
    {"both", WITH("\"token\":\"t\",\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\""), "t",
     "c", "k", INT64_MAX, true},
    {"what is not known", WITH("\"token\":\"t\",\"x\":[1]"), "t", NULL, NULL, INT64_MAX, true},
    {"empty", "", .ok = false},
    {"no JSON", "token", .ok = false},
    {"an array", "[]", .ok = false},
    {"another kind", "{\"kind\":\"Pod\",\"apiVersion\":\"" V1 "\"}", .ok = false},
    {"another version",
     "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
     "\"status\":{\"token\":\"t\"}}",
     .ok = false},
    {"no version", "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}", .ok = false},
    {"no status", ANSWER("\"spec\":{}"), .ok = false},
    {"a status that is text", ANSWER("\"status\":\"t\""), .ok = false},
    {"an empty status", WITH(""), .ok = false},
    {"an empty token", WITH("\"token\":\"\""), .ok = false},
    {"a token that is a number", WITH("\"token\":1"), .ok = false},
    {"a token with a line end", WITH("\"token\":\"a\\r\\nb\""), .ok = false},
    {"a token with a NUL", WITH("\"token\":\"a\\u0000b\""), .ok = false},
    {"a certificate without key", WITH("\"clientCertificateData\":\"c\""), .ok = false},
    {"a key without certificate", WITH("\"token\":\"t\",\"clientKeyData\":\"k\""), .ok = false},
    {"a time that is none", WITH("\"token\":\"t\",\"expirationTimestamp\":\"soon\""), .ok = false},
    {"a time that is a number", WITH("\"token\":\"t\",\"expirationTimestamp\":1"), .ok = false},
    {"something behind it", WITH("\"token\":\"t\"") "x", .ok = false},
};

static void answers_are_read_or_refused_whole(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_exec_credential credential = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_exec_credential_parse(r->text, strlen(r->text), V1, &credential, &err),
                  r->ok ? 0 : -1);
        row_equal(r->row, err.code, r->ok ? GS_OK : GS_EPROTO);
        row_text(r->row, credential.token, r->token);
        row_text(r->row, credential.client_cert, r->cert);
        row_text(r->row, credential.client_key, r->key);
        row_true(r->row, credential.expires_ns == r->expires_ns);
        gs_exec_credential_release(&credential);
        row_true(r->row, credential.token == NULL);
    }
}

static void the_plugin_is_told_what_it_may_know(void **state)
{
    char version[] = V1, server[] = "https://a:6443", name[] = "n\"1", proxy[] = "http://p";
    char settings[] = "{\"a\":1}";
    struct gs_kube_exec exec = {.api_version = version};
    struct gs_kube_config config = {.server = server,
                                    .exec = &exec,
                                    .tls_server_name = name,
                                    .proxy_url = proxy,
                                    .insecure = true};
    struct gs_buf buf = GS_BUF(4096);
    gs_exec_credential_input(&config, true, "ca", 2, &buf);
    assert_string_equal(buf.data, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                  "\",\"spec\":{\"interactive\":true}}");
    gs_buf_reset(&buf);
    exec.provide_cluster_info = true;
    exec.cluster_config = settings;
    gs_exec_credential_input(&config, false, "ca", 2, &buf);
    assert_string_equal(
        buf.data, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                  "\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://a:6443\","
                  "\"tls-server-name\":\"n\\\"1\",\"insecure-skip-tls-verify\":true,"
                  "\"certificate-authority-data\":\"Y2E=\",\"proxy-url\":\"http://p\","
                  "\"config\":{\"a\":1}}}}");
    gs_buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read_or_refused_whole),
        cmocka_unit_test(the_plugin_is_told_what_it_may_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
