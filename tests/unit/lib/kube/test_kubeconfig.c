/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/kube/kubeconfig.h"
#include "kube/url.h"
#include "scratch.h"

/* One text: what is read out of it, and what is wrong with it. */

#define HEAD                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
#define CTX                 "contexts:\n- name: c\n  context: {cluster: k, user: u}\n"
#define USER                "users:\n- name: u\n  user: {token: secret}\n"
#define CLUST               "clusters:\n- name: k\n  cluster:\n    server: https://a:6443\n"
#define WITH_CLUSTER(lines) HEAD CTX USER CLUST lines
#define WITH_USER(lines)    HEAD CTX CLUST "users:\n- name: u\n  user:\n" lines

static int parse(const char *text, struct gs_kube_config *config, struct gs_error *err)
{
    return gs_kube_config_parse(text, strlen(text), "FILE", config, err);
}

static void everything_a_kubeconfig_says_is_read(void **state)
{
    static const char text[] = "apiVersion: v1\n"
                               "current-context: c\n"
                               "contexts:\n"
                               "- name: other\n"
                               "  context: {cluster: other}\n"
                               "- context: {cluster: k, namespace: team, user: u}\n"
                               "  name: c\n"
                               "clusters:\n"
                               "- name: k\n"
                               "  cluster:\n"
                               "    server: https://api.example:6443/prefix//\n"
                               "    certificate-authority-data: Q0E=\n"
                               "    tls-server-name: name.example\n"
                               "    proxy-url: null\n"
                               "    disable-compression: true\n"
                               "    extensions: [{name: x, extension: {y: 1}}]\n"
                               "users:\n"
                               "- name: u\n"
                               "  user:\n"
                               "    tokenFile: tok\n"
                               "    token: secret\n"
                               "    client-certificate: /abs/crt\n"
                               "    client-key: rel/key\n";
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(parse(text, &config, &err), 0);
    assert_string_equal(config.source, "FILE");
    assert_string_equal(config.server, "https://api.example:6443/prefix");
    assert_string_equal(config.ca.data, "CA");
    assert_int_equal(config.ca.len, 2);
    assert_null(config.ca.file);
    assert_string_equal(config.tls_server_name, "name.example");
    assert_string_equal(config.token, "secret");
    assert_string_equal(config.token_file, "tok");
    assert_string_equal(config.client_cert.file, "/abs/crt");
    assert_string_equal(config.client_key.file, "rel/key");
    assert_false(config.insecure);
    gs_kube_config_release(&config);
    assert_null(config.server);
}

static void json_is_yaml_too(void **state)
{
    static const char text[] =
        "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}]"
        ",\n"
        "\t\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"http:\\/\\/h:1\","
        "\"insecure-skip-tls-verify\":false}}]}";
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    if (parse(text, &config, &err) < 0)
        fail_msg("%s", err.msg);
    assert_string_equal(config.server, "http://h:1");
    gs_kube_config_release(&config);
}

static const struct server_row {
    const char *row;
    const char *cluster;
    const char *server; /* NULL: refused */
} servers[] = {
    {"https", "server: https://a:6443", "https://a:6443"},
    {"http", "server: http://a", "http://a"},
    {"slashes at the end", "server: https://a///", "https://a"},
    {"a prefix", "server: https://a/k8s/clusters/c-1", "https://a/k8s/clusters/c-1"},
    {"an IPv6 address", "server: \"https://[::1]:6443\"", "https://[::1]:6443"},
    {"no scheme", "server: a:8080", NULL},
    {"the last of two counts", "{server: \"https://a\", server: \"https://b\"}", "https://b"},
    {"another scheme", "server: ftp://a", NULL},
    {"a user in it", "server: https://u:p@a", NULL},
    {"a fragment in it", "server: https://a/#x", NULL},
    {"port zero", "server: https://a:0", NULL},
    {"a port that is none", "server: https://a:70000", NULL},
    {"empty", "server: \"\"", NULL},
    {"null", "server: null", NULL},
    {"a list", "server: [https://a]", NULL},
};

static void servers_are_checked_and_completed(void **state)
{
    GS_FOR_EACH_ROW (r, servers) {
        char text[1024];
        snprintf(text, sizeof(text), "%s%s%sclusters:\n- name: k\n  cluster:\n    %s\n", HEAD, CTX,
                 USER, r->cluster);
        struct gs_kube_config config = {0};
        struct gs_error err = {0};
        row_equal(r->row, parse(text, &config, &err), r->server ? 0 : -1);
        row_text(r->row, config.server, r->server);
        if (!r->server)
            row_text(r->row, gs_code_name(err.code), "EINVAL");
        gs_kube_config_release(&config);
    }
}

/* Where credentials may go in the clear. */
static void loopback_is_known(void **state)
{
    static const struct {
        const char *url;
        bool loopback;
    } rows[] = {
        {"http://127.0.0.1", true},    {"http://127.255.0.9:1/x", true},
        {"http://128.0.0.1", false},   {"http://[::1]:8080", true},
        {"http://[::]", false},        {"http://LocalHost", true},
        {"http://localhost.a", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_url url = {0};
        row_equal(r->url, gs_url_parse(r->url, &url, NULL), 0);
        row_equal(r->url, url.loopback, r->loopback);
    }
}

static const struct error_row {
    const char *row;
    const char *text;
    enum gs_code code;
    const char *words; /* beginning of the message */
} errors[] = {
    {"empty", "", GS_ENOENT, "FILE: current-context is not set"},
    {"a list", "\n- a\n", GS_EINVAL, "FILE: current-context must be in a mapping"},
    {"no YAML", "a: [1\nb: 2\n", GS_EINVAL, "FILE:"},
    {"no UTF-8", "a: \xff\n", GS_EINVAL, "FILE:1: not YAML"},
    {"an empty current-context", "current-context: \"\"\n" CTX CLUST, GS_ENOENT,
     "FILE: current-context is not set"},
    {"a context that does not exist", HEAD USER CLUST, GS_ENOENT,
     "FILE: context \"c\" does not exist"},
    {"a cluster that does not exist", HEAD CTX USER, GS_ENOENT,
     "FILE: cluster \"k\" does not exist"},
    {"a user that does not exist", HEAD CTX CLUST, GS_ENOENT, "FILE: user \"u\" does not exist"},
    {"a context without anything", HEAD "contexts:\n- name: c\n", GS_ENOENT,
     "FILE: cluster \"\" does not exist"},
    {"contexts that are no list", HEAD "contexts: {c: 1}\n", GS_EINVAL,
     "FILE: contexts must be a list"},
    {"a user's name that is a list",
     HEAD CLUST "contexts:\n- name: c\n"
                "  context: {cluster: k, user: [u]}\n",
     GS_EINVAL, "FILE: user must be a string"},
    {"a name twice", HEAD CTX "- name: c\n  context: {cluster: z}\n", GS_EINVAL,
     "FILE: contexts: duplicate name \"c\""},
    {"an empty cluster", HEAD CTX USER "clusters:\n- name: k\n", GS_EINVAL,
     "FILE: the cluster has no server"},
    {"an authority twice",
     WITH_CLUSTER("    certificate-authority: x\n    certificate-authority-data: Q0E=\n"),
     GS_EINVAL, "FILE: certificate-authority cannot be used with the -data key of the same name"},
    {"an authority that is no base64", WITH_CLUSTER("    certificate-authority-data: \"*\"\n"),
     GS_EINVAL, "FILE: certificate-authority-data is not valid base64"},
    {"an authority that is a list", WITH_CLUSTER("    certificate-authority: [x]\n"), GS_EINVAL,
     "FILE: certificate-authority must be a string"},
    {"insecure with an authority",
     WITH_CLUSTER("    certificate-authority: x\n    insecure-skip-tls-verify: true\n"), GS_EINVAL,
     "FILE: insecure-skip-tls-verify and certificate-authority are mutually exclusive"},
    {"insecure that is no truth", WITH_CLUSTER("    insecure-skip-tls-verify: maybe\n"), GS_EINVAL,
     "FILE: insecure-skip-tls-verify must be true or false"},
    {"a proxy", WITH_CLUSTER("    proxy-url: socks5://p\n"), GS_EINVAL,
     "FILE: proxy-url is not supported"},
    {"a token that is a list", WITH_USER("    token: [a]\n"), GS_EINVAL,
     "FILE: token must be a string"},
    {"a token with a NUL", WITH_USER("    token: \"a\\0b\"\n"), GS_EINVAL,
     "FILE:14: a value contains a NUL byte"},
    {"a token's file that is a list", WITH_USER("    tokenFile: [a]\n"), GS_EINVAL,
     "FILE: tokenFile must be a string"},
    {"certificate without key", WITH_USER("    client-certificate: c\n"), GS_EINVAL,
     "FILE: client-key is missing"},
    {"key without certificate", WITH_USER("    client-key-data: a2V5\n"), GS_EINVAL,
     "FILE: client-certificate is missing"},
    {"a credential plugin", WITH_USER("    exec: {command: a}\n"), GS_EINVAL,
     "FILE: exec is not supported"},
    {"another account", WITH_USER("    token: t\n    as: x\n"), GS_EINVAL,
     "FILE: as is not supported"},
    {"a word of tomorrow", WITH_USER("    token: t\n    ticket: x\n"), GS_EINVAL,
     "FILE: ticket is not supported"},
    {"a key that is a list", WITH_USER("    ? [a]\n    : b\n"), GS_EINVAL,
     "FILE:14: a key must be a string"},
    {"nested too deeply",
     "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", GS_ETOOBIG,
     "FILE:1: nested too deeply or too large"},
    {"a merge key",
     HEAD CTX CLUST "users:\n- {name: b, user: &b {token: t}}\n"
                    "- name: u\n  user:\n    <<: *b\n",
     GS_EINVAL, "FILE:15: the merge key \"<<\" is not supported"},
};

static void every_mistake_is_reported_with_its_place(void **state)
{
    GS_FOR_EACH_ROW (r, errors) {
        struct gs_kube_config config = {0};
        struct gs_error err = {0};
        row_equal(r->row, parse(r->text, &config, &err), -1);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        if (strncmp(err.msg, r->words, strlen(r->words)) != 0)
            row_text(r->row, err.msg, r->words);
        row_true(r->row, config.server == NULL && config.token == NULL); /* untouched */
    }
}

static void a_server_alone_is_a_configuration(void **state)
{
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_kube_config_plain("http://127.0.0.1:8001/", &config, &err), 0);
    assert_string_equal(config.server, "http://127.0.0.1:8001");
    gs_kube_config_release(&config);
    assert_int_equal(gs_kube_config_plain("nonsense://x", &config, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_null(config.server);
}

/* ---- files ---- */

static int enter(void **state)
{
    scratch_enter();
    return 0;
}

static int leave(void **state)
{
    scratch_leave();
    return 0;
}

static void relative_paths_belong_to_the_files_folder(void **state)
{
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    char *want, *file;
    scratch_text("kc", HEAD CTX CLUST "users:\n- name: u\n  user: {tokenFile: tok}\n");
    assert_int_equal(gs_kube_config_load("kc", &config, &err), 0);
    assert_string_equal(config.token_file, "tok");
    assert_string_equal(config.source, "kc");
    gs_kube_config_release(&config);
    assert_true(asprintf(&file, "%s/kc", scratch_path()) > 0);
    assert_true(asprintf(&want, "%s/tok", scratch_path()) > 0);
    assert_int_equal(gs_kube_config_load(file, &config, &err), 0);
    assert_string_equal(config.token_file, want);
    gs_kube_config_release(&config);
    assert_int_equal(gs_kube_config_load("/nowhere", &config, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    free(file);
    free(want);
}

static void a_pod_uses_its_service_account(void **state)
{
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(gs_kube_config_load(NULL, &config, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    gs_error_clear(&err);

    scratch_text("token", "sa-token\n");
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(gs_kube_config_in_cluster(".", &config, &err), 0);
    assert_string_equal(config.source, "in-cluster");
    assert_string_equal(config.server, "https://10.0.0.1:443");
    assert_string_equal(config.ns, "default");
    assert_null(config.ca.file); /* then the system's authorities count */
    gs_kube_config_release(&config);

    scratch_text("ca.crt", "CA");
    scratch_text("namespace", "sa-ns\n");
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    assert_int_equal(gs_kube_config_in_cluster(".", &config, &err), 0);
    assert_string_equal(config.token_file, "./token");
    assert_string_equal(config.ca.file, "./ca.crt");
    assert_string_equal(config.server, "https://[fd00::1]:443");
    assert_string_equal(config.ns, "sa-ns");
    gs_kube_config_release(&config);

    assert_int_equal(gs_kube_config_in_cluster("/nowhere", &config, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    assert_non_null(strstr(err.msg, "/nowhere/token"));
    assert_null(config.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_a_kubeconfig_says_is_read),
        cmocka_unit_test(json_is_yaml_too),
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(servers_are_checked_and_completed),
        cmocka_unit_test(every_mistake_is_reported_with_its_place),
        cmocka_unit_test(a_server_alone_is_a_configuration),
        cmocka_unit_test_setup_teardown(relative_paths_belong_to_the_files_folder, enter, leave),
        cmocka_unit_test_setup_teardown(a_pod_uses_its_service_account, enter, leave),
    };
    return GS_RUN(tests);
}
