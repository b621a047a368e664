/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_credential.h"
#include "gpushare/base/file.h"

#include <jansson.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/rfc3339.h"
#include "gpushare/kube/base64.h"

static void secret_release(char *text)
{
    gs_secret_free(text, text ? strlen(text) : 0);
}

void gs_exec_credential_release(struct gs_exec_credential *credential)
{
    secret_release(credential->token);
    free(credential->client_cert);
    secret_release(credential->client_key);
    *credential = (struct gs_exec_credential){0};
}

/* A copy of a member that is a non-empty string, NULL when it is absent. */
static int copy_string(const json_t *object, const char *key, char **ret, struct gs_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return gs_fail(err, GS_EPROTO, "status.%s is no string", key);
    if (json_string_length(value) == 0)
        return 0;
    if (strlen(json_string_value(value)) != json_string_length(value))
        return gs_fail(err, GS_EPROTO, "status.%s contains a NUL character", key);
    *ret = strdup(json_string_value(value));
    return *ret ? 0 : gs_fail_nomem(err);
}

static int read_expiry(const json_t *status, int64_t *ret_ns, struct gs_error *err)
{
    const json_t *value = json_object_get(status, "expirationTimestamp");
    *ret_ns = INT64_MAX;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) ||
        !gs_rfc3339_parse((struct gs_slice){json_string_value(value), json_string_length(value)},
                          ret_ns))
        return gs_fail(err, GS_EPROTO, "status.expirationTimestamp is no RFC 3339 time");
    return 0;
}

static int read_status(const json_t *status, struct gs_exec_credential *credential,
                       struct gs_error *err)
{
    if (!json_is_object(status))
        return gs_fail(err, GS_EPROTO, "the ExecCredential has no status");
    if (copy_string(status, "token", &credential->token, err) < 0 ||
        copy_string(status, "clientCertificateData", &credential->client_cert, err) < 0 ||
        copy_string(status, "clientKeyData", &credential->client_key, err) < 0 ||
        read_expiry(status, &credential->expires_ns, err) < 0)
        return -1;
    if (!credential->client_cert != !credential->client_key)
        return gs_fail(err, GS_EPROTO, "a client certificate and its key must come together");
    if (!credential->token && !credential->client_cert)
        return gs_fail(err, GS_EPROTO, "neither a token nor a client certificate");
    /* A header must not be broken in two by what a program prints. */
    if (credential->token && strpbrk(credential->token, "\r\n"))
        return gs_fail(err, GS_EPROTO, "status.token contains a line end");
    return 0;
}

int gs_exec_credential_parse(const char *text, size_t len, const char *api_version,
                             struct gs_exec_credential *ret, struct gs_error *err)
{
    json_error_t why;
    json_auto_t *root = json_loadb(text, len, 0, &why);
    if (!root)
        return gs_fail(err, GS_EPROTO, "its output is no JSON (line %d)", why.line);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *version = json_string_value(json_object_get(root, "apiVersion"));
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return gs_fail(err, GS_EPROTO, "its output is no ExecCredential");
    if (!version || strcmp(version, api_version) != 0)
        return gs_fail(err, GS_EPROTO, "its output is of apiVersion \"%.60s\", not %s",
                       version ? version : "", api_version);
    struct gs_exec_credential credential = {0};
    if (read_status(json_object_get(root, "status"), &credential, err) < 0) {
        gs_exec_credential_release(&credential);
        return -1;
    }
    *ret = credential;
    return 0;
}

static void put_member(struct gs_buf *buf, const char *key, const char *value)
{
    if (!value)
        return;
    gs_buf_printf(buf, ",\"%s\":", key);
    gs_buf_json_string(buf, value, strlen(value));
}

void gs_exec_credential_input(const struct gs_kube_config *config, bool interactive, const char *ca,
                              size_t ca_len, struct gs_buf *buf)
{
    gs_buf_puts(buf, "{\"kind\":\"ExecCredential\",\"apiVersion\":");
    gs_buf_json_string(buf, config->exec->api_version, strlen(config->exec->api_version));
    gs_buf_printf(buf, ",\"spec\":{\"interactive\":%s", interactive ? "true" : "false");
    if (config->exec->provide_cluster_info) {
        gs_buf_puts(buf, ",\"cluster\":{\"server\":");
        gs_buf_json_string(buf, config->server, strlen(config->server));
        put_member(buf, "tls-server-name", config->tls_server_name);
        if (config->insecure)
            gs_buf_puts(buf, ",\"insecure-skip-tls-verify\":true");
        if (ca) {
            gs_buf_puts(buf, ",\"certificate-authority-data\":\"");
            gs_base64_encode(ca, ca_len, buf);
            gs_buf_putc(buf, '"');
        }
        put_member(buf, "proxy-url", config->proxy_url);
        if (config->exec->cluster_config) {
            gs_buf_puts(buf, ",\"config\":");
            gs_buf_puts(buf, config->exec->cluster_config);
        }
        gs_buf_putc(buf, '}');
    }
    gs_buf_puts(buf, "}}");
}
