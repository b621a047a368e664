/* SPDX-License-Identifier: Apache-2.0 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/file.h"
#include "internal.h"

/* libmicrohttpd reads its certificate once, at start, and does not verify clients' certificates. So
 * each session is given our credentials before its handshake: the current files, and verification
 * of the client. A client without a valid certificate fails in the handshake, before HTTP. */

enum { FILE_MAX_BYTES = 1 << 20, FILES = 3 };

struct gs_tls_creds {
    atomic_uint refs;
    gnutls_certificate_credentials_t gnutls;
    int64_t expires_s;
};

struct gs_tls {
    const char *paths[FILES]; /* certificate, key, client CA (may be NULL) */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct gs_tls_creds *creds;       /* the newest that could be read */
    struct gs_file_mark marks[FILES]; /* of the files that were read last */
    bool stale;                       /* they could not be used */
};

static int fail_gnutls(struct gs_error *err, int code, const char *what)
{
    return gs_fail(err, code == GNUTLS_E_MEMORY_ERROR ? GS_ENOMEM : GS_EINVAL, "%s: %s", what,
                   gnutls_strerror(code));
}

static int read_pem(const char *path, gnutls_datum_t *ret, struct gs_error *err)
{
    char *text;
    size_t len;
    if (gs_file_read(path, FILE_MAX_BYTES, &text, &len, err) < 0)
        return -1;
    *ret = (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)len};
    return 0;
}

static void free_pem(gnutls_datum_t *pem)
{
    gs_secret_free((char *)pem->data, pem->size);
}

static void unref_creds(struct gs_tls_creds *creds)
{
    if (atomic_fetch_sub(&creds->refs, 1) > 1)
        return;
    gnutls_certificate_free_credentials(creds->gnutls);
    free(creds);
}

/* Checks that the chain is complete, and returns when the server's certificate expires. GnuTLS's
 * function that loads certificate and key together leaks memory if the file is half written. */
static int check_chain(const char *path, const gnutls_datum_t *pem, int64_t *ret_expires_s,
                       struct gs_error *err)
{
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;
    int code = gnutls_x509_crt_list_import2(&chain, &count, pem, GNUTLS_X509_FMT_PEM, 0);
    if (code < 0)
        return fail_gnutls(err, code, path);
    *ret_expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(chain[0]);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    return 0;
}

static int set_key(const struct gs_tls *tls, struct gs_tls_creds *creds, struct gs_error *err)
{
    _cleanup_(free_pem) gnutls_datum_t cert = {0};
    _cleanup_(free_pem) gnutls_datum_t key = {0};
    if (read_pem(tls->paths[0], &cert, err) < 0 || read_pem(tls->paths[1], &key, err) < 0 ||
        check_chain(tls->paths[0], &cert, &creds->expires_s, err) < 0)
        return -1;
    int code = gnutls_certificate_set_x509_key_mem2(creds->gnutls, &cert, &key, GNUTLS_X509_FMT_PEM,
                                                    NULL, 0);
    return code < 0 ? fail_gnutls(err, code, tls->paths[0]) : 0;
}

static int set_client_ca(const struct gs_tls *tls, struct gs_tls_creds *creds, struct gs_error *err)
{
    _cleanup_(free_pem) gnutls_datum_t ca = {0};
    if (!tls->paths[2])
        return 0;
    if (read_pem(tls->paths[2], &ca, err) < 0)
        return -1;
    int count = gnutls_certificate_set_x509_trust_mem(creds->gnutls, &ca, GNUTLS_X509_FMT_PEM);
    if (count < 0)
        return fail_gnutls(err, count, tls->paths[2]);
    return count == 0 ? gs_fail(err, GS_EINVAL, "%s contains no certificate", tls->paths[2]) : 0;
}

static int load(const struct gs_tls *tls, struct gs_tls_creds **ret, struct gs_error *err)
{
    gnutls_certificate_credentials_t gnutls;
    int code = gnutls_certificate_allocate_credentials(&gnutls);
    if (code < 0)
        return fail_gnutls(err, code, "TLS");
    struct gs_tls_creds *creds = calloc(1, sizeof(*creds));
    if (!creds) {
        gnutls_certificate_free_credentials(gnutls);
        return gs_fail_nomem(err);
    }
    atomic_init(&creds->refs, 1);
    creds->gnutls = gnutls;
    if (set_key(tls, creds, err) < 0 || set_client_ca(tls, creds, err) < 0) {
        unref_creds(creds);
        return -1;
    }
    *ret = creds;
    return 0;
}

/* True if the files have changed since the last call. */
static bool changed(struct gs_tls *tls)
{
    bool differs = false;
    for (int i = 0; i < FILES; i++) {
        struct gs_file_mark now = {0};
        if (tls->paths[i])
            gs_file_mark(tls->paths[i], &now);
        differs |= !gs_file_mark_eq(&now, &tls->marks[i]);
        tls->marks[i] = now;
    }
    return differs;
}

int gs_tls_new(const struct gs_http_config *config, struct gs_tls **ret, struct gs_error *err)
{
    if (!config->tls_cert && !config->tls_key && !config->tls_client_ca)
        return 0;
    if (!config->tls_cert || !config->tls_key)
        return gs_fail(err, GS_EINVAL, "TLS needs a certificate and its key");
    struct gs_tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return gs_fail_nomem(err);
    tls->paths[0] = config->tls_cert;
    tls->paths[1] = config->tls_key;
    tls->paths[2] = config->tls_client_ca;
    pthread_mutex_init(&tls->lock, NULL);
    changed(tls);
    if (load(tls, &tls->creds, err) < 0) {
        gs_tls_free(tls);
        return -1;
    }
    *ret = tls;
    return 0;
}

void gs_tls_free(struct gs_tls *tls)
{
    if (!tls)
        return;
    if (tls->creds)
        unref_creds(tls->creds);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

/* Under lock. If the new files cannot be used, the old ones stay in use. */
static void reload(struct gs_http_server *server, bool retry)
{
    struct gs_tls *tls = server->tls;
    struct gs_tls_creds *fresh = NULL;
    struct gs_error err = {0};
    bool news = changed(tls);
    if (!news && !(retry && tls->stale))
        return;
    bool failed = load(tls, &fresh, &err) < 0;
    if (!failed) {
        unref_creds(tls->creds);
        tls->creds = fresh;
    } else if (news) {
        gs_count(&server->stats.tls_reload_failures);
    }
    news = news || failed != tls->stale;
    tls->stale = failed;
    if (news && server->config.on_tls_files)
        server->config.on_tls_files(server->config.ctx, failed ? err.msg : NULL);
}

void gs_tls_poll(struct gs_http_server *server)
{
    pthread_mutex_lock(&server->tls->lock);
    reload(server, true); /* a file may change without its timestamp */
    pthread_mutex_unlock(&server->tls->lock);
}

void gs_tls_status(struct gs_tls *tls, bool *ret_stale, int64_t *ret_expires_s)
{
    pthread_mutex_lock(&tls->lock);
    *ret_stale = tls->stale;
    *ret_expires_s = tls->creds->expires_s;
    pthread_mutex_unlock(&tls->lock);
}

/* The credentials of new connections. */
static struct gs_tls_creds *current(struct gs_http_server *server)
{
    struct gs_tls *tls = server->tls;
    pthread_mutex_lock(&tls->lock);
    reload(server, false);
    struct gs_tls_creds *creds = tls->creds;
    atomic_fetch_add(&creds->refs, 1);
    pthread_mutex_unlock(&tls->lock);
    return creds;
}

static struct gs_http_conn *conn_of_session(gnutls_session_t session)
{
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session); /* libmicrohttpd sets it */
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* The subject's common name, or a DNS name. False: absent, cut, or with a NUL in it. */
static bool common_name(gnutls_x509_crt_t cert, char *out)
{
    size_t size = GS_TLS_NAME_BYTES;
    return gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out, &size) ==
               0 &&
           strlen(out) == size;
}

static bool dns_name(gnutls_x509_crt_t cert, unsigned i, char *out)
{
    size_t size = GS_TLS_NAME_BYTES - 1;
    memset(out, 0, GS_TLS_NAME_BYTES);
    return gnutls_x509_crt_get_subject_alt_name(cert, i, out, &size, NULL) == GNUTLS_SAN_DNSNAME &&
           strlen(out) == size;
}

static bool is_among(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at && len; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

enum { SAN_MAX = 64 };

/* Writes a name that is in the list, or without a list the common name. */
static bool choose_name(gnutls_x509_crt_t cert, const char *allowed, char *out)
{
    bool named = common_name(cert, out);
    if (!allowed || (named && is_among(allowed, out)))
        return named;
    for (unsigned i = 0; i < SAN_MAX; i++) {
        if (dns_name(cert, i, out) && is_among(allowed, out))
            return true;
    }
    return false;
}

static bool read_name(gnutls_session_t session, const char *allowed, char *out)
{
    unsigned count;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    gnutls_x509_crt_t cert;
    if (!chain || count == 0 || gnutls_x509_crt_init(&cert) < 0)
        return false;
    bool ok = gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
              choose_name(cert, allowed, out);
    gnutls_x509_crt_deinit(cert);
    return ok;
}

/* Verifies chain, dates and purpose during the handshake. Not 0: the handshake fails. */
static int verify_client(gnutls_session_t session)
{
    const struct gs_http_conn *conn = conn_of_session(session);
    const char *allowed = conn->loop->server->config.tls_allowed_names;
    struct gs_tls_conn *tls = conn->tls;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
                                     .size = 0};
    unsigned status = 0;
    if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status != 0)
        return GNUTLS_E_CERTIFICATE_ERROR;
    if (!read_name(session, allowed, tls->name)) {
        tls->name[0] = '\0';
        if (allowed)
            return GNUTLS_E_CERTIFICATE_ERROR;
    }
    tls->named = true;
    return 0;
}

/* The client's last message of the handshake was accepted: what comes now is a request. */
static int finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                    const gnutls_datum_t *message)
{
    struct gs_http_conn *conn = conn_of_session(session);
    if (incoming) {
        conn->tls->complete = true;
        gs_conn_set_state(conn, GS_CONN_IDLE);
    }
    return 0;
}

int gs_tls_no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **certs, unsigned *count, gnutls_ocsp_data_st **ocsp,
                          unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags)
{
    return -1;
}

struct gs_tls_conn *gs_tls_conn_new(struct gs_http_server *server, struct MHD_Connection *mhd)
{
    struct gs_tls_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        return NULL;
    gnutls_session_t session =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
    conn->creds = current(server);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, conn->creds->gnutls);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       finished);
    if (server->tls->paths[2]) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_function(session, verify_client);
    }
    return conn;
}

bool gs_tls_conn_outdated(const struct gs_http_server *server, const struct gs_tls_conn *conn)
{
    struct gs_tls *tls = server->tls;
    pthread_mutex_lock(&tls->lock);
    bool outdated = tls->creds != conn->creds;
    pthread_mutex_unlock(&tls->lock);
    return outdated;
}

bool gs_tls_conn_free(struct gs_tls_conn *conn)
{
    bool complete = conn->complete;
    unref_creds(conn->creds);
    free(conn);
    return complete;
}
