/* SPDX-License-Identifier: Apache-2.0 */
#include "auth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/file.h"
#include "gpushare/base/slice.h"

enum { FILE_BYTES_MAX = 4 << 20 };

enum { TOKEN, CA, CERT, KEY, FILES };

/* A credential: its configuration, and the file's content when last read. */
struct followed {
    const char *path;  /* NULL: no file */
    const char *fixed; /* a token is used until its file was read; NULL: none */
    size_t fixed_len;
    struct gs_file_mark mark;
    char *text;
    size_t len;
};

struct gs_auth {
    const struct gs_kube_config *config;
    const struct gs_clock *clock;
    pthread_mutex_t lock; /* guards all below */
    struct followed files[FILES];
    int64_t looked_ns; /* when the files were last looked at */
    uint64_t version;  /* generation of the contents, from 1 */
};

/* Reads it when it changed. */
static int follow(struct gs_auth *auth, struct followed *file, struct gs_error *err)
{
    struct gs_file_mark mark = {0};
    if (!file->path)
        return 0;
    if (gs_file_mark(file->path, &mark) && gs_file_mark_eq(&mark, &file->mark))
        return 0;
    char *text;
    size_t len;
    if (gs_file_read(file->path, FILE_BYTES_MAX, &text, &len, err) < 0)
        return -1;
    if (len == 0) {
        free(text);
        return gs_fail(err, GS_EAUTH, "%s is empty", file->path);
    }
    file->mark = mark;
    if (file->text && len == file->len && memcmp(text, file->text, len) == 0) {
        gs_secret_free(text, len);
        return 0;
    }
    gs_secret_free(file->text, file->len);
    file->text = text;
    file->len = len;
    auth->version++;
    return 0;
}

/* If the file cannot be read, the last content stays: a secret that is being replaced may be
 * missing for a moment. */
static void look_at_files(struct gs_auth *auth)
{
    for (size_t i = 0; i < FILES; i++)
        (void)follow(auth, &auth->files[i], NULL);
    auth->looked_ns = gs_clock_now_ns(auth->clock);
}

/* As client-go: tokenFile if it can be read, else token. */
static struct gs_slice text_of(const struct followed *file)
{
    return file->text ? (struct gs_slice){file->text, file->len}
                      : (struct gs_slice){file->fixed, file->fixed_len};
}

/* White space around a token in a file is removed; a line break inside would split the header. */
static int append_token(const struct gs_auth *auth, struct gs_buf *out, struct gs_error *err)
{
    static const char space[] = " \t\r\n";
    struct gs_slice token = text_of(&auth->files[TOKEN]);
    if (!token.at)
        return 0;
    while (token.len > 0 && memchr(space, token.at[token.len - 1], sizeof(space) - 1))
        token.len--;
    for (; token.len > 0 && memchr(space, token.at[0], sizeof(space) - 1); token.len--)
        token.at++;
    if (token.len == 0)
        return gs_fail(err, GS_EAUTH, "the token is empty");
    for (size_t i = 0; i < token.len; i++)
        if ((unsigned char)token.at[i] <= ' ' || token.at[i] == 0x7f)
            return gs_fail(err, GS_EAUTH, "the token contains whitespace or control characters");
    gs_buf_append(out, token.at, token.len);
    return gs_buf_failed(out) ? gs_fail_nomem(err) : 0;
}

/* libcurl cannot prompt for a pass phrase. An encrypted PEM block has "ENCRYPTED" in its name or
 * its Proc-Type. */
static int check_certificates(const struct gs_auth *auth, struct gs_error *err)
{
    const char *cert = text_of(&auth->files[CERT]).at, *key = text_of(&auth->files[KEY]).at;
    if ((cert && strstr(cert, "ENCRYPTED")) || (key && strstr(key, "ENCRYPTED")))
        return gs_fail(err, GS_EAUTH,
                       "%s: the client key or certificate is encrypted: use one without a pass "
                       "phrase",
                       auth->config->source);
    return 0;
}

/* curl compares certificates before it reuses a connection, so new ones cause a new connection. */
static int set_certificates(const struct gs_auth *auth, CURL *easy, struct gs_error *err)
{
    static const CURLoption options[FILES] = {
        [CA] = CURLOPT_CAINFO_BLOB, [CERT] = CURLOPT_SSLCERT_BLOB, [KEY] = CURLOPT_SSLKEY_BLOB};
    for (size_t i = CA; i < FILES; i++) {
        const struct gs_slice text = text_of(&auth->files[i]);
        struct curl_blob blob = {(char *)text.at, text.len, CURL_BLOB_COPY};
        if (curl_easy_setopt(easy, options[i], text.at ? &blob : NULL) != CURLE_OK)
            return gs_fail_nomem(err);
    }
    /* else libcurl also trusts /etc/ssl/certs */
    if (text_of(&auth->files[CA]).at && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) != CURLE_OK)
        return gs_fail_nomem(err);
    return 0;
}

int gs_auth_show(struct gs_auth *auth, CURL *easy, uint64_t *shown, struct gs_buf *token,
                 struct gs_error *err)
{
    pthread_mutex_lock(&auth->lock);
    if (gs_clock_now_ns(auth->clock) - auth->looked_ns >= GS_NS_PER_S)
        look_at_files(auth);
    int result = append_token(auth, token, err);
    if (result == 0 && *shown != auth->version) {
        result = check_certificates(auth, err);
        if (result == 0)
            result = set_certificates(auth, easy, err);
        if (result == 0)
            *shown = auth->version;
    }
    pthread_mutex_unlock(&auth->lock);
    return result;
}

bool gs_auth_refused(struct gs_auth *auth, uint64_t shown)
{
    pthread_mutex_lock(&auth->lock);
    bool renewable = auth->files[TOKEN].path || auth->files[CERT].path;
    /* Another thread may have re-read the files after the same 401. */
    if (renewable && auth->version == shown) {
        for (size_t i = 0; i < FILES; i++)
            auth->files[i].mark = (struct gs_file_mark){0}; /* in any case */
        look_at_files(auth);
    }
    pthread_mutex_unlock(&auth->lock);
    return renewable;
}

static struct followed follow_pem(const struct gs_kube_pem *pem)
{
    return (struct followed){
        .path = pem->data ? NULL : pem->file, .fixed = pem->data, .fixed_len = pem->len};
}

int gs_auth_new(const struct gs_kube_config *config, const struct gs_clock *clock,
                struct gs_auth **ret_auth, struct gs_error *err)
{
    _cleanup_(gs_auth_freep) struct gs_auth *auth = calloc(1, sizeof(*auth));
    if (!auth)
        return gs_fail_nomem(err);
    auth->config = config;
    auth->clock = clock;
    auth->version = 1;
    pthread_mutex_init(&auth->lock, NULL);
    auth->files[TOKEN] = (struct followed){.path = config->token_file,
                                           .fixed = config->token,
                                           .fixed_len = config->token ? strlen(config->token) : 0};
    auth->files[CA] = follow_pem(&config->ca);
    auth->files[CERT] = follow_pem(&config->client_cert);
    auth->files[KEY] = follow_pem(&config->client_key);
    for (size_t i = 0; i < FILES; i++) {
        struct gs_error why = {0};
        if (follow(auth, &auth->files[i], &why) < 0 && !auth->files[i].fixed)
            return gs_fail(err, why.code, "%s", why.msg);
    }
    auth->looked_ns = gs_clock_now_ns(clock);
    _cleanup_(gs_buf_wipe) struct gs_buf token = GS_BUF(FILE_BYTES_MAX);
    if (append_token(auth, &token, err) < 0 || check_certificates(auth, err) < 0)
        return -1;
    *ret_auth = gs_steal(&auth);
    return 0;
}

void gs_auth_free(struct gs_auth *auth)
{
    for (size_t i = 0; i < FILES; i++)
        gs_secret_free(auth->files[i].text, auth->files[i].len);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}
