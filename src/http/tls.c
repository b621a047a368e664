/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

/*
 * libmicrohttpd reads its certificate once, at start, and only asks for a client's certificate
 * without looking at it. So each session gets credentials of ours before its handshake: the ones
 * that the files hold now, and with them the demand for a certificate that verifies. A client that
 * has none fails in the handshake, before a byte of HTTP.
 */

enum { FILE_MAX_BYTES = 1 << 20, NAME_BYTES = 128, FILES = 3 };

struct creds {
    atomic_uint refs;
    gnutls_certificate_credentials_t gnutls;
    int64_t expires_s;
};

struct file_stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
};

struct gs_tls {
    const char *paths[FILES]; /* certificate, key, client CA (may be NULL) */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct creds *creds;             /* the newest that could be read */
    struct file_stamp stamps[FILES]; /* of the files last tried */
    bool stale;                      /* they could not be used */
};

struct gs_tls_conn {
    struct creds *creds;
    const char *allowed; /* gs_http_config.tls_allowed_names */
    bool complete;       /* the handshake */
    bool named;
    char name[NAME_BYTES];
};

static int fail_gnutls(struct gs_error *err, int code, const char *what)
{
    return gs_fail(err, code == GNUTLS_E_MEMORY_ERROR ? GS_ENOMEM : GS_EINVAL, "%s: %s", what,
                   gnutls_strerror(code));
}

static int read_all(int fd, const char *path, struct gs_buf *out, struct gs_error *err)
{
    ssize_t got;
    do {
        char *to = gs_buf_reserve(out, 4096);
        if (!to)
            return gs_fail(err, (enum gs_code)gs_buf_failed(out), "%s is too large", path);
        got = read(fd, to, 4096);
        if (got > 0)
            gs_buf_advance(out, (size_t)got);
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? gs_fail_errno(err, GS_EIO, errno, "cannot read %s", path) : 0;
}

static int read_file(const char *path, struct gs_buf *out, struct gs_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0)
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "cannot open %s",
                             path);
    /* All at once: growing would leave copies of the key behind. */
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size < FILE_MAX_BYTES)
        gs_buf_reserve(out, (size_t)info.st_size + 4096);
    return read_all(fd, path, out, err);
}

static void unref_creds(struct creds *creds)
{
    if (atomic_fetch_sub_explicit(&creds->refs, 1, memory_order_acq_rel) > 1)
        return;
    gnutls_certificate_free_credentials(creds->gnutls);
    free(creds);
}
GS_DEFINE_CLEANUP(struct creds *, unref_creds)

static gnutls_datum_t as_datum(struct gs_buf *buf)
{
    gs_buf_append(buf, "", 0);
    return (gnutls_datum_t){.data = (unsigned char *)buf->data, .size = (unsigned)buf->len};
}

/* Whether the chain is whole, and when the server's own certificate ends. GnuTLS's function that
 * takes certificate and key together leaks the half of a certificate that is being written. */
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

static int set_key(const struct gs_tls *tls, struct creds *creds, struct gs_error *err)
{
    _cleanup_(gs_buf_wipe) struct gs_buf cert = GS_BUF(FILE_MAX_BYTES);
    _cleanup_(gs_buf_wipe) struct gs_buf key = GS_BUF(FILE_MAX_BYTES);
    if (read_file(tls->paths[0], &cert, err) < 0 || read_file(tls->paths[1], &key, err) < 0)
        return -1;
    gnutls_datum_t cert_datum = as_datum(&cert), key_datum = as_datum(&key);
    if (check_chain(tls->paths[0], &cert_datum, &creds->expires_s, err) < 0)
        return -1;
    int code = gnutls_certificate_set_x509_key_mem2(creds->gnutls, &cert_datum, &key_datum,
                                                    GNUTLS_X509_FMT_PEM, NULL, 0);
    return code < 0 ? fail_gnutls(err, code, tls->paths[0]) : 0;
}

static int set_client_ca(const struct gs_tls *tls, struct creds *creds, struct gs_error *err)
{
    _cleanup_(gs_buf_wipe) struct gs_buf ca = GS_BUF(FILE_MAX_BYTES);
    if (!tls->paths[2])
        return 0;
    if (read_file(tls->paths[2], &ca, err) < 0)
        return -1;
    gnutls_datum_t datum = as_datum(&ca);
    int count = gnutls_certificate_set_x509_trust_mem(creds->gnutls, &datum, GNUTLS_X509_FMT_PEM);
    if (count < 0)
        return fail_gnutls(err, count, tls->paths[2]);
    return count == 0 ? gs_fail(err, GS_EINVAL, "%s holds no certificate", tls->paths[2]) : 0;
}

static int load(const struct gs_tls *tls, struct creds **ret, struct gs_error *err)
{
    gnutls_certificate_credentials_t gnutls;
    int code = gnutls_certificate_allocate_credentials(&gnutls);
    if (code < 0)
        return fail_gnutls(err, code, "TLS");
    struct creds *fresh = calloc(1, sizeof(*fresh));
    if (!fresh) {
        gnutls_certificate_free_credentials(gnutls);
        return gs_fail_nomem(err);
    }
    _cleanup_(unref_credsp) struct creds *creds = fresh;
    atomic_init(&creds->refs, 1);
    creds->gnutls = gnutls;
    if (set_key(tls, creds, err) < 0 || set_client_ca(tls, creds, err) < 0)
        return -1;
    *ret = gs_steal(&creds);
    return 0;
}

/* True when the files are not those of the last call. */
static bool changed(struct gs_tls *tls)
{
    struct file_stamp now[FILES] = {0};
    for (int i = 0; i < FILES; i++) {
        struct stat info;
        if (!tls->paths[i] || stat(tls->paths[i], &info) < 0)
            continue;
        now[i].dev = info.st_dev;
        now[i].ino = info.st_ino;
        now[i].size = info.st_size;
        now[i].changed = info.st_mtim;
    }
    bool differs = memcmp(now, tls->stamps, sizeof(now)) != 0;
    memcpy(tls->stamps, now, sizeof(now));
    return differs;
}

int gs_tls_new(const struct gs_http_config *config, struct gs_tls **ret, struct gs_error *err)
{
    if (!config->tls_cert && !config->tls_key && !config->tls_client_ca)
        return 0;
    if (!config->tls_cert || !config->tls_key)
        return gs_fail(err, GS_EINVAL, "TLS needs a certificate and its key");
    if (config->tls_allowed_names && !config->tls_client_ca)
        return gs_fail(err, GS_EINVAL, "names of clients need the CA that signed them");
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

/* Under lock. Files that do not fit together (yet) leave the old ones in force. */
static void reload(struct gs_http_server *server, bool retry)
{
    struct gs_tls *tls = server->tls;
    struct creds *fresh = NULL;
    struct gs_error err = {0};
    bool news = changed(tls);
    if (!news && !(retry && tls->stale))
        return;
    bool failed = load(tls, &fresh, &err) < 0;
    if (!failed) {
        unref_creds(tls->creds);
        tls->creds = fresh;
    } else if (news) {
        gs_count(&server->counters.tls_reload_failures);
    }
    news = news || failed != tls->stale;
    tls->stale = failed;
    if (news && server->config.on_tls_files)
        server->config.on_tls_files(server->config.ctx, failed ? err.msg : NULL);
}

void gs_tls_poll(struct gs_http_server *server)
{
    pthread_mutex_lock(&server->tls->lock);
    reload(server, true); /* a file may be written without its stamp changing */
    pthread_mutex_unlock(&server->tls->lock);
}

void gs_tls_status(struct gs_tls *tls, bool *ret_stale, int64_t *ret_expires_s)
{
    pthread_mutex_lock(&tls->lock);
    *ret_stale = tls->stale;
    *ret_expires_s = tls->creds->expires_s;
    pthread_mutex_unlock(&tls->lock);
}

/* What new connections use. */
static struct creds *current(struct gs_http_server *server)
{
    struct gs_tls *tls = server->tls;
    pthread_mutex_lock(&tls->lock);
    reload(server, false);
    struct creds *creds = tls->creds;
    atomic_fetch_add_explicit(&creds->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&tls->lock);
    return creds;
}

static struct gs_tls_conn *conn_of_session(gnutls_session_t session)
{
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session); /* libmicrohttpd sets it */
    const struct gs_http_conn *conn =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    return conn->tls;
}

/* The subject's common name, or a DNS name, where it is a name: no NUL inside, not cut. False: the
 * certificate has no such one. */
static bool common_name(gnutls_x509_crt_t cert, char *out)
{
    size_t size = NAME_BYTES;
    return gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out, &size) ==
               0 &&
           strlen(out) == size;
}

static bool dns_name(gnutls_x509_crt_t cert, unsigned i, char *out)
{
    size_t size = NAME_BYTES - 1;
    memset(out, 0, NAME_BYTES);
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

/* Writes the name that counts: the one of the list, the common name where there is no list. */
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

/* Chain, dates and purpose; called inside the handshake. Not 0 ends it. */
static int verify_client(gnutls_session_t session)
{
    struct gs_tls_conn *tls = conn_of_session(session);
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
                                     .size = 0};
    unsigned status = 0;
    if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status != 0)
        return GNUTLS_E_CERTIFICATE_ERROR;
    if (!read_name(session, tls->allowed, tls->name)) {
        tls->name[0] = '\0';
        if (tls->allowed)
            return GNUTLS_E_CERTIFICATE_ERROR;
    }
    tls->named = true;
    return 0;
}

/* The client's last message of the handshake has been accepted. */
static int finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                    const gnutls_datum_t *message)
{
    if (incoming)
        conn_of_session(session)->complete = true;
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
    conn->allowed = server->config.tls_allowed_names;
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, conn->creds->gnutls);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       finished);
    if (server->tls->paths[2]) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_function(session, verify_client);
    }
    return conn;
}

bool gs_tls_conn_free(struct gs_tls_conn *conn)
{
    bool complete = conn->complete;
    unref_creds(conn->creds);
    free(conn);
    return complete;
}

bool gs_tls_conn_allowed(const struct gs_http_server *server, const struct gs_tls_conn *conn)
{
    return conn->complete && (conn->named || !server->tls->paths[2]);
}

const char *gs_tls_conn_name(const struct gs_tls_conn *conn)
{
    return conn && conn->named ? conn->name : NULL;
}
