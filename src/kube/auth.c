/* SPDX-License-Identifier: Apache-2.0 */
#include "auth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec_credential.h"
#include "gpushare/base/file.h"

enum { TOKEN_BYTES_MAX = 64 << 10, PEM_BYTES_MAX = 4 << 20 };

/* A plugin is run again a little before what it gave expires. */
#define EXPIRY_LEEWAY_NS (5 * GS_NS_PER_S)

/* A file and what was read from it last. */
struct followed {
    const char *path; /* NULL: nothing to follow */
    size_t max;
    struct gs_file_mark mark;
    char *text;
    size_t len;
};

enum { TOKEN, CA, CERT, KEY, FILES };

struct gs_auth {
    const struct gs_kube_config *config;
    const struct gs_clock *clock;
    int64_t exec_timeout_ns;
    pthread_mutex_t lock; /* guards all below */
    struct followed files[FILES];
    int64_t looked_ns; /* when the files were last looked at */
    bool plugin_due;   /* the plugin has not run yet, or what it gave was refused */
    struct gs_exec_credential plugin;
    struct gs_creds *current; /* NULL: to be put together anew */
};

void gs_creds_unref(struct gs_creds *creds)
{
    if (atomic_fetch_sub_explicit(&creds->refs, 1, memory_order_acq_rel) != 1)
        return;
    gs_secret_free(creds->token, creds->token ? strlen(creds->token) : 0);
    gs_secret_free(creds->key, creds->key_len);
    free(creds->ca);
    free(creds->cert);
    free(creds);
}

/* Reads it when it changed, or in any case; *ret_changed is only ever set. */
static int follow(struct followed *file, bool always, bool *ret_changed, struct gs_error *err)
{
    struct gs_file_mark mark = {0};
    if (!file->path)
        return 0;
    if (gs_file_mark(file->path, &mark) && !always && gs_file_mark_eq(&mark, &file->mark))
        return 0;
    char *text;
    size_t len;
    if (gs_file_read(file->path, file->max, &text, &len, err) < 0)
        return -1;
    file->mark = mark;
    if (file->text && len == file->len && memcmp(text, file->text, len) == 0) {
        gs_secret_free(text, len);
        return 0;
    }
    gs_secret_free(file->text, file->len);
    file->text = text;
    file->len = len;
    *ret_changed = true;
    return 0;
}

/* What cannot be read keeps its last text: a secret that is being replaced may be missing for a
 * moment. */
static void look_at_files(struct gs_auth *auth, bool always)
{
    bool changed = false;
    for (size_t i = 0; i < FILES; i++)
        (void)follow(&auth->files[i], always, &changed, NULL);
    auth->looked_ns = gs_clock_now_ns(auth->clock);
    if (changed && auth->current)
        gs_creds_unref(gs_steal(&auth->current));
}

static int copy_bytes(const char *bytes, size_t len, char **ret, size_t *ret_len,
                      struct gs_error *err)
{
    if (!bytes || len == 0)
        return 0;
    char *copy = malloc(len + 1);
    if (!copy)
        return gs_fail_nomem(err);
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    *ret = copy;
    *ret_len = len;
    return 0;
}

/* White space around a token in a file is not part of it; a line end inside would break the
 * header in two. */
static int copy_token(const char *text, size_t len, char **ret, struct gs_error *err)
{
    static const char space[] = " \t\r\n";
    size_t ignored;
    while (len > 0 && memchr(space, text[len - 1], sizeof(space) - 1))
        len--;
    while (len > 0 && memchr(space, text[0], sizeof(space) - 1)) {
        text++;
        len--;
    }
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return gs_fail(err, GS_EAUTH, "the token contains white space or control characters");
    return copy_bytes(text, len, ret, &ignored, err);
}

/* The order is client-go's: what a plugin says wins, then the file, then the words themselves. */
static int fill_token(const struct gs_auth *auth, struct gs_creds *creds, struct gs_error *err)
{
    const struct followed *file = &auth->files[TOKEN];
    if (auth->plugin.token)
        return copy_token(auth->plugin.token, strlen(auth->plugin.token), &creds->token, err);
    if (file->text && file->len > 0)
        return copy_token(file->text, file->len, &creds->token, err);
    if (auth->config->token)
        return copy_token(auth->config->token, strlen(auth->config->token), &creds->token, err);
    return 0;
}

static int fill_pem(const struct gs_kube_pem *pem, const struct followed *file, char **ret,
                    size_t *ret_len, struct gs_error *err)
{
    if (pem->data)
        return copy_bytes(pem->data, pem->len, ret, ret_len, err);
    return copy_bytes(file->text, file->len, ret, ret_len, err);
}

static int fill(const struct gs_auth *auth, struct gs_creds *creds, struct gs_error *err)
{
    const struct gs_kube_config *config = auth->config;
    const struct gs_exec_credential *plugin = &auth->plugin;
    if (fill_token(auth, creds, err) < 0 ||
        fill_pem(&config->ca, &auth->files[CA], &creds->ca, &creds->ca_len, err) < 0)
        return -1;
    if (plugin->client_cert)
        return copy_bytes(plugin->client_cert, strlen(plugin->client_cert), &creds->cert,
                          &creds->cert_len, err) < 0 ||
                       copy_bytes(plugin->client_key, strlen(plugin->client_key), &creds->key,
                                  &creds->key_len, err) < 0
                   ? -1
                   : 0;
    return fill_pem(&config->client_cert, &auth->files[CERT], &creds->cert, &creds->cert_len, err) <
                       0 ||
                   fill_pem(&config->client_key, &auth->files[KEY], &creds->key, &creds->key_len,
                            err) < 0
               ? -1
               : 0;
}

static int put_together(struct gs_auth *auth, struct gs_error *err)
{
    struct gs_creds *creds = calloc(1, sizeof(*creds));
    if (!creds)
        return gs_fail_nomem(err);
    atomic_init(&creds->refs, 1);
    if (fill(auth, creds, err) < 0) {
        gs_creds_unref(creds);
        return -1;
    }
    auth->current = creds;
    return 0;
}

static bool plugin_expired(const struct gs_auth *auth)
{
    int64_t expires_ns = auth->plugin.expires_ns;
    return auth->plugin_due || (expires_ns != INT64_MAX && auth->clock->wall_ns(auth->clock->ctx) >=
                                                               expires_ns - EXPIRY_LEEWAY_NS);
}

static int run_plugin(struct gs_auth *auth, struct gs_error *err)
{
    const struct gs_kube_pem *ca = &auth->config->ca;
    const struct followed *file = &auth->files[CA];
    struct gs_exec_credential fresh = {0};
    if (gs_exec_credential_run(auth->config, ca->data ? ca->data : file->text,
                               ca->data ? ca->len : file->len, auth->clock, auth->exec_timeout_ns,
                               &fresh, err) < 0)
        return -1;
    gs_exec_credential_release(&auth->plugin);
    auth->plugin = fresh;
    auth->plugin_due = false;
    if (auth->current)
        gs_creds_unref(gs_steal(&auth->current));
    return 0;
}

static int get_locked(struct gs_auth *auth, struct gs_creds **ret, struct gs_error *err)
{
    if (gs_clock_now_ns(auth->clock) - auth->looked_ns >= GS_NS_PER_S)
        look_at_files(auth, false);
    if (auth->config->exec && plugin_expired(auth) && run_plugin(auth, err) < 0)
        return -1;
    if (!auth->current && put_together(auth, err) < 0)
        return -1;
    atomic_fetch_add_explicit(&auth->current->refs, 1, memory_order_relaxed);
    *ret = auth->current;
    return 0;
}

int gs_auth_get(struct gs_auth *auth, struct gs_creds **ret, struct gs_error *err)
{
    pthread_mutex_lock(&auth->lock);
    int result = get_locked(auth, ret, err);
    pthread_mutex_unlock(&auth->lock);
    return result;
}

bool gs_auth_refused(struct gs_auth *auth, const struct gs_creds *creds)
{
    pthread_mutex_lock(&auth->lock);
    bool renewable = auth->config->exec || auth->files[TOKEN].path || auth->files[CERT].path;
    /* Another thread may have been here with the same ones. */
    if (renewable && auth->current == creds) {
        look_at_files(auth, true);
        auth->plugin_due = auth->config->exec != NULL;
    }
    pthread_mutex_unlock(&auth->lock);
    return renewable;
}

int gs_auth_new(const struct gs_kube_config *config, const struct gs_clock *clock,
                int64_t exec_timeout_ns, struct gs_auth **ret_auth, struct gs_error *err)
{
    _cleanup_(gs_auth_freep) struct gs_auth *auth = calloc(1, sizeof(*auth));
    if (!auth)
        return gs_fail_nomem(err);
    auth->config = config;
    auth->clock = clock;
    auth->exec_timeout_ns = exec_timeout_ns;
    auth->plugin_due = true;
    auth->plugin.expires_ns = INT64_MAX;
    pthread_mutex_init(&auth->lock, NULL);
    auth->files[TOKEN] = (struct followed){.path = config->token_file, .max = TOKEN_BYTES_MAX};
    auth->files[CA] = (struct followed){.path = config->ca.file, .max = PEM_BYTES_MAX};
    auth->files[CERT] = (struct followed){.path = config->client_cert.file, .max = PEM_BYTES_MAX};
    auth->files[KEY] = (struct followed){.path = config->client_key.file, .max = PEM_BYTES_MAX};
    for (size_t i = 0; i < FILES; i++) {
        bool changed = false;
        if (follow(&auth->files[i], false, &changed, err) < 0)
            return -1;
    }
    auth->looked_ns = gs_clock_now_ns(clock);
    *ret_auth = gs_steal(&auth);
    return 0;
}

void gs_auth_free(struct gs_auth *auth)
{
    for (size_t i = 0; i < FILES; i++)
        gs_secret_free(auth->files[i].text, auth->files[i].len);
    gs_exec_credential_release(&auth->plugin);
    if (auth->current)
        gs_creds_unref(auth->current);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}
