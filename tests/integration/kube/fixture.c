/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"

struct gs_kube_options fixture_options(const struct fixture *f)
{
    int64_t patience_ns = f->patience_ns ? f->patience_ns : 2 * GS_NS_PER_S;
    return (struct gs_kube_options){
        .program = "test",
        .names = &f->names,
        .connect_timeout_ns = patience_ns,
        .request_timeout_ns = patience_ns,
        .list_timeout_ns = f->patience_ns ? f->patience_ns : 3 * GS_NS_PER_S,
        .retry_after_max_ns = f->retry_after_max_ns ? f->retry_after_max_ns : 400 * GS_NS_PER_MS,
        .object_max_bytes = 64 << 10,
        .page_limit = 100,
        .clock = f->clock,
        .backoff_min_ns = f->backoff_ns ? f->backoff_ns : 20 * GS_NS_PER_MS,
        .backoff_max_ns = f->backoff_ns ? f->backoff_ns : 200 * GS_NS_PER_MS,
        .stall_timeout_ns = f->stall_ns ? f->stall_ns : 60 * GS_NS_PER_S,
        .qps = f->qps,
        .burst = f->burst,
    };
}

void fixture_start_with(struct fixture *f, const struct fake_rule *rules, size_t count,
                        struct gs_kube_config *config)
{
    struct gs_error err = {0};
    assert_int_equal(gs_names_init(&f->names, "aliyun.com", &err), 0);
    f->api = fake_api_start(rules, count);
    if (!config->server)
        config->server = strdup(fake_api_url(f->api));
    if (!config->source)
        config->source = strdup("test");
    struct gs_kube_options options = fixture_options(f);
    if (gs_kube_client_new(config, &options, &f->client, &err) < 0)
        fail_msg("%s", err.msg);
    f->kube = gs_kube_client_port(f->client);
}

void fixture_start(struct fixture *f, const struct fake_rule *rules, size_t count)
{
    fixture_start_with(f, rules, count, &(struct gs_kube_config){0});
}

void fixture_stop(struct fixture *f)
{
    gs_kube_client_free(f->client);
    fake_api_stop(f->api);
}

void fixture_bind_runs_out(struct fixture *f)
{
    struct gs_error err = {0};
    const struct gs_binding binding = {.ns = "d",
                                       .name = "p",
                                       .uid = "u",
                                       .node = "n",
                                       .deadline_ns =
                                           gs_clock_now_ns(gs_clock_system()) + 200 * GS_NS_PER_MS};
    assert_int_equal(f->kube.ops->bind(f->kube.ctx, &binding, &err), -1);
    assert_int_equal(err.code, GS_EBUSY);
}

int fixture_get(struct fixture *f, const char *path, struct gs_buf *body, struct gs_error *err)
{
    struct gs_kube_request request = {.method = "GET", .path = path};
    _cleanup_(gs_buf_release) struct gs_buf own = GS_BUF(64 << 10);
    int status = 0;
    gs_error_clear(err);
    return gs_kube_request(f->client, &request, &status, body ? body : &own, err) < 0 ? 0 : status;
}

void folder_make(struct folder *folder)
{
    snprintf(folder->path, sizeof(folder->path), "/tmp/gpushare-kube-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

void folder_remove(struct folder *folder)
{
    DIR *dir = opendir(folder->path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder->path);
}

char *folder_write(const struct folder *folder, const char *name, const char *text, int mode)
{
    char *path, *fresh;
    assert_true(asprintf(&path, "%s/%s", folder->path, name) > 0);
    assert_true(asprintf(&fresh, "%s.new", path) > 0);
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(fresh, (mode_t)mode), 0);
    assert_int_equal(rename(fresh, path), 0);
    free(fresh);
    return path;
}
