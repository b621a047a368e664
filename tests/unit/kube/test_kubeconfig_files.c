/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/kube/kubeconfig.h"

/* Where the configuration is looked for, and how several files become one. */

static char folder[] = "/tmp/gpushare-kubeconfig-XXXXXX";

/* The environment of a test: "NAME=value", NULL-terminated. */
static const char *const *environment;

static const char *getenv_of_test(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; environment[i]; i++)
        if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=')
            return environment[i] + len + 1;
    return NULL;
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define ONE(context, cluster, server, user, token)                                                 \
    "contexts:\n- name: " context "\n  context: {cluster: " cluster ", user: " user "}\n"          \
    "clusters:\n- name: " cluster "\n  cluster: {server: \"" server                                \
    "\", certificate-authority: ca}\n"                                                             \
    "users:\n- name: " user "\n  user: {token: " token "}\n"

static int make_files(void **state)
{
    char path[256];
    assert_non_null(mkdtemp(folder));
    static const char *const dirs[] = {"a", "b", "home", "home/.kube", "sa", "bare"};
    for (size_t i = 0; i < GS_COUNT_OF(dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    write_file("a/one", ONE("c1", "k", "https://first", "u", "t1"));
    write_file("b/two",
               "current-context: c2\n" ONE("c2", "k2", "https://second", "u2",
                                           "t2") "- name: u\n  user: {username: n, password: p}\n");
    write_file("b/three", "current-context: c1\n" ONE("c1", "k", "https://third", "u", "t3"));
    write_file("home/.kube/config",
               "current-context: h\n" ONE("h", "k", "https://home", "u", "th"));
    write_file("broken", "a: [\n");
    write_file("empty", "");
    write_file("sa/token", "sa-token\n");
    write_file("sa/ca.crt", "CA");
    write_file("sa/namespace", "sa-ns\n");
    write_file("bare/token", "sa-token\n");
    return 0;
}

static int remove_files(void **state)
{
    static const char *const names[] = {"a/one",
                                        "b/two",
                                        "b/three",
                                        "home/.kube/config",
                                        "broken",
                                        "empty",
                                        "sa/token",
                                        "sa/ca.crt",
                                        "sa/namespace",
                                        "bare/token",
                                        "a",
                                        "b",
                                        "home/.kube",
                                        "home",
                                        "sa",
                                        "bare",
                                        ""};
    for (size_t i = 0; i < GS_COUNT_OF(names); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        remove(path);
    }
    return 0;
}

/* In words of a row "@" stands for the test's folder. */
static char *expand(const char *text)
{
    char *out = calloc(1, 2048);
    assert_non_null(out);
    for (size_t len = 0; *text; text++)
        len += *text == '@' ? (size_t)snprintf(out + len, 2048 - len, "%s", folder)
                            : (size_t)snprintf(out + len, 2048 - len, "%c", *text);
    return out;
}

static const struct row {
    const char *row;
    const char *path;    /* --kubeconfig */
    const char *context; /* --context */
    const char *env[4];
    const char *server; /* NULL: an error */
    const char *token;
    const char *ca;
    const char *words; /* of the error */
    enum gs_code code;
} rows[] = {
    {.row = "a file by name",
     .path = "@/b/two",
     .env = {"KUBECONFIG=@/a/one"},
     .server = "https://second",
     .token = "t2",
     .ca = "@/b/ca"},
    {.row = "a file by name that does not exist",
     .path = "@/none",
     .env = {"HOME=@/home"},
     .words = "@/none",
     .code = GS_ENOENT},
    {.row = "a folder", .path = "@/a", .words = "@/a", .code = GS_EIO},
    {.row = "an empty file",
     .path = "@/empty",
     .words = "no current-context in @/empty",
     .code = GS_ENOENT},
    {.row = "a broken file",
     .path = "@/broken",
     .words = "@/broken:2: not YAML",
     .code = GS_EINVAL},
    {.row = "a context of choice",
     .path = "@/a/one",
     .context = "c1",
     .server = "https://first",
     .token = "t1",
     .ca = "@/a/ca"},
    {.row = "the environment's file",
     .env = {"KUBECONFIG=@/b/three", "HOME=@/home"},
     .server = "https://third",
     .token = "t3",
     .ca = "@/b/ca"},
    {.row = "the first file that has an entry wins, and the first current-context",
     .env = {"KUBECONFIG=@/a/one:@/b/three"},
     .server = "https://first",
     .token = "t1",
     .ca = "@/a/ca"},
    {.row = "the other way round",
     .env = {"KUBECONFIG=@/b/three:@/a/one"},
     .server = "https://third",
     .token = "t3",
     .ca = "@/b/ca"},
    {.row = "entries are not mixed",
     .env = {"KUBECONFIG=@/a/one:@/b/two"},
     .context = "c1",
     .server = "https://first",
     .token = "t1",
     .ca = "@/a/ca"},
    {.row = "files that do not exist are passed over",
     .env = {"KUBECONFIG=@/none::@/b/two:@/b/two"},
     .server = "https://second",
     .token = "t2",
     .ca = "@/b/ca"},
    {.row = "a broken file among others",
     .env = {"KUBECONFIG=@/b/two:@/broken"},
     .words = "@/broken:2",
     .code = GS_EINVAL},
    {.row = "the home folder",
     .env = {"HOME=@/home"},
     .server = "https://home",
     .token = "th",
     .ca = "@/home/.kube/ca"},
    {.row = "an empty KUBECONFIG is none",
     .env = {"KUBECONFIG=", "HOME=@/home"},
     .server = "https://home",
     .token = "th",
     .ca = "@/home/.kube/ca"},
    {.row = "only files that do not exist",
     .env = {"KUBECONFIG=@/none", "HOME=@/home"},
     .words = "no cluster configured",
     .code = GS_ENOENT},
    {.row = "nothing anywhere", .words = "no cluster configured", .code = GS_ENOENT},
    {.row = "nothing anywhere, but a context asked for",
     .context = "c",
     .words = "context \"c\" does not exist",
     .code = GS_ENOENT},
    {.row = "a pod",
     .env = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443"},
     .server = "https://10.0.0.1:443",
     .ca = "@/sa/ca.crt"},
    {.row = "a pod with IPv6",
     .env = {"KUBERNETES_SERVICE_HOST=fd00::1", "KUBERNETES_SERVICE_PORT=443"},
     .server = "https://[fd00::1]:443",
     .ca = "@/sa/ca.crt"},
    {.row = "a pod with a home folder",
     .env = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443", "HOME=@/home"},
     .server = "https://home",
     .token = "th",
     .ca = "@/home/.kube/ca"},
    {.row = "a pod without a port",
     .env = {"KUBERNETES_SERVICE_HOST=10.0.0.1"},
     .words = "no cluster configured",
     .code = GS_ENOENT},
};

static void the_configuration_is_found_as_kubectl_finds_it(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        char *env[5] = {0};
        for (size_t i = 0; i < 4 && r->env[i]; i++)
            env[i] = expand(r->env[i]);
        environment = (const char *const *)env;
        _cleanup_free_ char *path = r->path ? expand(r->path) : NULL;
        _cleanup_free_ char *account = expand("@/sa");
        _cleanup_free_ char *ca = r->ca ? expand(r->ca) : NULL;
        _cleanup_free_ char *words = r->words ? expand(r->words) : NULL;
        struct gs_kubeconfig_source source = {
            .path = path, .context = r->context, .env = getenv_of_test, .service_account = account};
        struct gs_kube_config config = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_kube_config_load(&source, &config, &err), r->server ? 0 : -1);
        row_text(r->row, config.server, r->server);
        row_text(r->row, config.token, r->token);
        row_text(r->row, config.ca.file, ca);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        if (words && !strstr(err.msg, words))
            row_text(r->row, err.msg, words);
        gs_kube_config_release(&config);
        for (size_t i = 0; i < 4; i++)
            free(env[i]);
    }
}

static void a_pod_uses_its_service_account(void **state)
{
    static const char *const env[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1",
                                      "KUBERNETES_SERVICE_PORT=443", NULL};
    static const char *const with_namespace[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1",
                                                 "KUBERNETES_SERVICE_PORT=443",
                                                 "POD_NAMESPACE=mine", NULL};
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    _cleanup_free_ char *account = expand("@/sa");
    _cleanup_free_ char *bare = expand("@/bare");
    _cleanup_free_ char *token = expand("@/sa/token");
    struct gs_kubeconfig_source source = {.env = getenv_of_test, .service_account = account};
    environment = env;
    assert_int_equal(gs_kube_config_in_cluster(&source, &config, &err), 0);
    assert_string_equal(config.source, "in-cluster");
    assert_string_equal(config.token_file, token);
    assert_string_equal(config.ns, "sa-ns");
    assert_null(config.context);
    gs_kube_config_release(&config);

    environment = with_namespace;
    source.service_account = bare; /* neither authority nor namespace */
    assert_int_equal(gs_kube_config_in_cluster(&source, &config, &err), 0);
    assert_string_equal(config.ns, "mine");
    assert_null(config.ca.file);
    gs_kube_config_release(&config);

    source.service_account = "/nowhere";
    assert_int_equal(gs_kube_config_in_cluster(&source, &config, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    assert_non_null(strstr(err.msg, "/nowhere/token"));
    assert_null(config.server);
}

static void a_namespace_of_choice_wins(void **state)
{
    static const char *const env[] = {NULL};
    environment = env;
    write_file("empty", "current-context: c\ncontexts:\n"
                        "- {name: c, context: {cluster: k, namespace: its}}\n"
                        "clusters:\n- {name: k, cluster: {server: \"https://a\"}}\n");
    _cleanup_free_ char *path = expand("@/empty");
    struct gs_kubeconfig_source source = {.path = path, .ns = "chosen", .env = getenv_of_test};
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_kube_config_load(&source, &config, &err), 0);
    assert_string_equal(config.ns, "chosen");
    gs_kube_config_release(&config);
}

static const struct proxy_row {
    const char *row;
    const char *server;
    const char *env[3];
    const char *proxy;
    const char *except;
} proxies[] = {
    {"none", "https://a", {NULL}, NULL, NULL},
    {"by scheme", "https://a", {"HTTPS_PROXY=http://p:1", "HTTP_PROXY=http://q"}, "http://p:1", ""},
    {"lower case", "https://a", {"https_proxy=p:1", "no_proxy=b,c"}, "p:1", "b,c"},
    {"upper case wins", "https://a", {"https_proxy=low", "HTTPS_PROXY=up"}, "up", ""},
    {"http", "http://a", {"HTTPS_PROXY=http://p", "HTTP_PROXY=http://q"}, "http://q", ""},
    {"never for localhost", "https://localhost:6443", {"HTTPS_PROXY=http://p"}, NULL, NULL},
    {"never for 127.0.0.1", "https://127.0.0.1:6443", {"HTTPS_PROXY=http://p"}, NULL, NULL},
    {"never for 127.8.9.1", "http://127.8.9.1", {"HTTP_PROXY=http://p"}, NULL, NULL},
    {"never for ::1", "https://[::1]:6443", {"HTTPS_PROXY=http://p"}, NULL, NULL},
    {"but for 128.0.0.1", "https://128.0.0.1", {"HTTPS_PROXY=http://p"}, "http://p", ""},
    {"empty is none", "https://a", {"HTTPS_PROXY="}, NULL, NULL},
    {"empty hides nothing", "https://a", {"HTTPS_PROXY=", "https_proxy=low"}, "low", ""},
};

static void the_environment_names_the_proxy(void **state)
{
    GS_FOR_EACH_ROW (r, proxies) {
        char text[512];
        snprintf(text, sizeof(text),
                 "current-context: c\ncontexts:\n- {name: c, context: {cluster: k}}\n"
                 "clusters:\n- name: k\n  cluster: {server: \"%s\"}\n",
                 r->server);
        write_file("empty", text);
        environment = r->env;
        _cleanup_free_ char *path = expand("@/empty");
        struct gs_kubeconfig_source source = {.path = path, .env = getenv_of_test};
        struct gs_kube_config config = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_kube_config_load(&source, &config, &err), 0);
        row_text(r->row, config.proxy_url, r->proxy);
        row_text(r->row, config.no_proxy, r->except);
        gs_kube_config_release(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_is_found_as_kubectl_finds_it),
        cmocka_unit_test(a_pod_uses_its_service_account),
        cmocka_unit_test(a_namespace_of_choice_wins),
        cmocka_unit_test(the_environment_names_the_proxy),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
