/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/kube/kubeconfig.h"

/* One text: what is read out of it, and what is wrong with it. */

#define HEAD                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
#define CTX                 "contexts:\n- name: c\n  context: {cluster: k, user: u}\n"
#define USER                "users:\n- name: u\n  user: {token: secret}\n"
#define CLUST               "clusters:\n- name: k\n  cluster:\n    server: https://a:6443\n"
#define WITH_CLUSTER(lines) HEAD CTX USER CLUST lines
#define WITH_USER(lines)    HEAD CTX CLUST "users:\n- name: u\n  user:\n" lines

static int parse(const char *text, const char *context, struct gs_kube_config *config,
                 struct gs_error *err)
{
    return gs_kube_config_parse(text, strlen(text), "FILE", "/dir", context, config, err);
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
                               "    proxy-url: socks5://p:1080\n"
                               "users:\n"
                               "- name: u\n"
                               "  user:\n"
                               "    tokenFile: tok\n"
                               "    token: secret\n"
                               "    client-certificate: /abs/crt\n"
                               "    client-key: rel/key\n";
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(parse(text, NULL, &config, &err), 0);
    assert_string_equal(config.source, "FILE");
    assert_string_equal(config.context, "c");
    assert_string_equal(config.server, "https://api.example:6443/prefix");
    assert_string_equal(config.ns, "team");
    assert_string_equal(config.ca.data, "CA");
    assert_int_equal(config.ca.len, 2);
    assert_null(config.ca.file);
    assert_string_equal(config.tls_server_name, "name.example");
    assert_string_equal(config.proxy_url, "socks5://p:1080");
    assert_string_equal(config.token, "secret");
    assert_string_equal(config.token_file, "/dir/tok");
    assert_string_equal(config.client_cert.file, "/abs/crt");
    assert_string_equal(config.client_key.file, "/dir/rel/key");
    assert_null(config.exec);
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
    if (parse(text, NULL, &config, &err) < 0)
        fail_msg("%s", err.msg);
    assert_string_equal(config.server, "http://h:1");
    assert_string_equal(config.ns, "default");
    gs_kube_config_release(&config);
}

static void an_exec_plugin_is_read(void **state)
{
    static const char text[] =
        HEAD CTX "clusters:\n"
                 "- name: k\n"
                 "  cluster:\n"
                 "    server: https://a\n"
                 "    extensions:\n"
                 "    - name: other\n"
                 "      extension: {no: 1}\n"
                 "    - name: client.authentication.k8s.io/exec\n"
                 "      extension: {audience: x, list: [1, 2.5, \"3\", true, null], 007: z}\n"
                 "users:\n"
                 "- name: u\n"
                 "  user:\n"
                 "    exec:\n"
                 "      apiVersion: client.authentication.k8s.io/v1beta1\n"
                 "      command: ./bin/login\n"
                 "      args: [get-token, --id, 5]\n"
                 "      env:\n"
                 "      - {name: PROFILE, value: dev}\n"
                 "      - {name: EMPTY}\n"
                 "      installHint: brew install it\n"
                 "      provideClusterInfo: true\n";
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    if (parse(text, NULL, &config, &err) < 0)
        fail_msg("%s", err.msg);
    const struct gs_kube_exec *exec = config.exec;
    assert_non_null(exec);
    assert_string_equal(exec->command, "/dir/./bin/login");
    assert_string_equal(exec->args[0], "get-token");
    assert_string_equal(exec->args[2], "5");
    assert_null(exec->args[3]);
    assert_string_equal(exec->env[0], "PROFILE=dev");
    assert_string_equal(exec->env[1], "EMPTY=");
    assert_null(exec->env[2]);
    assert_string_equal(exec->install_hint, "brew install it");
    assert_true(exec->provide_cluster_info);
    assert_int_equal(exec->interactive, GS_KUBE_INTERACTIVE_IF_AVAILABLE);
    assert_string_equal(exec->cluster_config,
                        "{\"audience\":\"x\",\"list\":[1,2.5,\"3\",true,null],\"007\":\"z\"}");
    gs_kube_config_release(&config);
}

static void a_command_without_a_slash_is_looked_up_in_path(void **state)
{
    static const char text[] =
        WITH_USER("    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, "
                  "interactiveMode: Never}\n");
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(parse(text, NULL, &config, &err), 0);
    assert_string_equal(config.exec->command, "aws");
    assert_string_equal(config.exec->install_hint, "");
    assert_null(config.exec->args[0]);
    assert_int_equal(config.exec->interactive, GS_KUBE_INTERACTIVE_NEVER);
    assert_null(config.exec->cluster_config);
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
    {"no scheme", "server: a:8080", "http://a:8080"},
    {"no scheme, with an authority", "{server: \"a:6443\", certificate-authority: x}",
     "https://a:6443"},
    {"no scheme, insecure", "{server: \"a:6443\", insecure-skip-tls-verify: true}",
     "https://a:6443"},
    {"quoted", "server: 'https://a'", "https://a"},
    {"the last of two counts", "{server: \"https://a\", server: \"https://b\"}", "https://b"},
    {"another scheme", "server: ftp://a", NULL},
    {"a user in it", "server: https://u:p@a", NULL},
    {"a query in it", "server: https://a/?x=1", NULL},
    {"a fragment in it", "server: https://a/#x", NULL},
    {"port zero", "server: https://a:0", NULL},
    {"a port that is none", "server: https://a:70000", NULL},
    {"spaces", "server: https://a b", NULL},
    {"empty", "server: \"\"", NULL},
    {"null", "server: null", NULL},
    {"absent", "{}", NULL},
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
        row_equal(r->row, parse(text, NULL, &config, &err), r->server ? 0 : -1);
        row_text(r->row, config.server, r->server);
        if (!r->server)
            row_text(r->row, gs_code_name(err.code), "EINVAL");
        gs_kube_config_release(&config);
    }
}

static const struct error_row {
    const char *row;
    const char *text;
    const char *context;
    enum gs_code code;
    const char *words; /* beginning of the message */
} errors[] = {
    {"empty", "", NULL, GS_ENOENT, "no current-context in FILE"},
    {"null", "null\n", NULL, GS_ENOENT, "no current-context in FILE"},
    {"text", "hello\n", NULL, GS_EINVAL, "FILE:1: must be a mapping"},
    {"a list", "\n- a\n", NULL, GS_EINVAL, "FILE:2: must be a mapping"},
    {"no YAML", "a: [1\nb: 2\n", NULL, GS_EINVAL, "FILE:"},
    {"a tab", "a:\n\tb: 1\n", NULL, GS_EINVAL, "FILE:2: not YAML"},
    {"no UTF-8", "a: \xff\n", NULL, GS_EINVAL, "FILE:1: not YAML"},
    {"no current-context", CTX USER CLUST, NULL, GS_ENOENT, "no current-context in FILE"},
    {"an empty current-context", "current-context: \"\"\n" CTX CLUST, NULL, GS_ENOENT,
     "no current-context in FILE"},
    {"a context that does not exist", HEAD CTX USER CLUST, "x", GS_ENOENT,
     "context \"x\" does not exist in FILE"},
    {"a cluster that does not exist", HEAD CTX USER, NULL, GS_EINVAL,
     "FILE:6: cluster \"k\" does not exist"},
    {"a user that does not exist", HEAD CTX CLUST, NULL, GS_EINVAL,
     "FILE:6: user \"u\" does not exist"},
    {"a context without cluster", HEAD "contexts:\n- name: c\n  context: {user: u}\n", NULL,
     GS_EINVAL, "FILE: context \"c\" names no cluster"},
    {"a context without anything", HEAD "contexts:\n- name: c\n", NULL, GS_EINVAL,
     "FILE: context \"c\" names no cluster"},
    {"contexts that are no list", HEAD "contexts: {c: 1}\n", NULL, GS_EINVAL,
     "FILE:4: contexts must be a list"},
    {"a context that is text", HEAD "contexts:\n- c\n", NULL, GS_EINVAL,
     "FILE:5: must be a mapping"},
    {"a name twice", HEAD CTX "- name: c\n  context: {cluster: z}\n", NULL, GS_EINVAL,
     "FILE:7: contexts names \"c\" twice"},
    {"an empty cluster", HEAD CTX USER "clusters:\n- name: k\n", NULL, GS_EINVAL,
     "FILE: the cluster is empty"},
    {"a cluster without server", HEAD CTX USER "clusters:\n- name: k\n  cluster: {x: 1}\n", NULL,
     GS_EINVAL, "FILE:12: the cluster has no server"},
    {"an authority twice",
     WITH_CLUSTER("    certificate-authority: x\n    certificate-authority-data: Q0E=\n"), NULL,
     GS_EINVAL, "FILE:13: both certificate-authority and certificate-authority-data"},
    {"an authority that is no base64", WITH_CLUSTER("    certificate-authority-data: \"*\"\n"),
     NULL, GS_EINVAL, "FILE:13: certificate-authority-data is not base64"},
    {"insecure with an authority",
     WITH_CLUSTER("    certificate-authority: x\n    insecure-skip-tls-verify: true\n"), NULL,
     GS_EINVAL, "FILE:13: insecure-skip-tls-verify with a certificate-authority"},
    {"insecure that is no truth", WITH_CLUSTER("    insecure-skip-tls-verify: maybe\n"), NULL,
     GS_EINVAL, "FILE:14: insecure-skip-tls-verify must be true or false"},
    {"a proxy of another kind", WITH_CLUSTER("    proxy-url: ftp://p\n"), NULL, GS_EINVAL,
     "FILE: proxy-url must begin with"},
    {"a token that is a list", WITH_USER("    token: [a]\n"), NULL, GS_EINVAL,
     "FILE:14: token must be a string"},
    {"a token with a NUL", WITH_USER("    token: \"a\\0b\"\n"), NULL, GS_EINVAL,
     "FILE:14: token contains a NUL byte"},
    {"token and password", WITH_USER("    token: t\n    username: n\n"), NULL, GS_EINVAL,
     "FILE:14: both a token and a user name"},
    {"certificate without key", WITH_USER("    client-certificate: c\n"), NULL, GS_EINVAL,
     "FILE:14: client-key is missing"},
    {"key without certificate", WITH_USER("    client-key-data: a2V5\n"), NULL, GS_EINVAL,
     "FILE:14: client-certificate is missing"},
    {"a provider of old", WITH_USER("    auth-provider: {name: gcp}\n"), NULL, GS_EINVAL,
     "FILE:14: auth-provider is no longer supported"},
    {"a plugin without command",
     WITH_USER("    exec: {apiVersion: client.authentication.k8s.io/v1}\n"), NULL, GS_EINVAL,
     "FILE:14: exec: command is missing"},
    {"a plugin without version", WITH_USER("    exec: {command: a}\n"), NULL, GS_EINVAL,
     "FILE:14: exec: apiVersion must be"},
    {"a plugin of v1alpha1",
     WITH_USER("    exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}\n"), NULL,
     GS_EINVAL, "FILE:14: exec: apiVersion must be"},
    {"a v1 plugin without mode",
     WITH_USER("    exec: {command: a, apiVersion: client.authentication.k8s.io/v1}\n"), NULL,
     GS_EINVAL, "FILE:14: exec: interactiveMode is required"},
    {"a mode that is none",
     WITH_USER("    exec: {command: a, apiVersion: client.authentication.k8s.io/v1, "
               "interactiveMode: Sometimes}\n"),
     NULL, GS_EINVAL, "FILE:14: exec: interactiveMode is none of"},
    {"a variable without name",
     WITH_USER("    exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1, "
               "env: [{value: x}]}\n"),
     NULL, GS_EINVAL, "FILE:14: a variable of the plugin has no name"},
    {"an argument that is a mapping",
     WITH_USER("    exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1, "
               "args: [{a: b}]}\n"),
     NULL, GS_EINVAL, "FILE:14: an argument of the plugin must be a string"},
};

static void every_mistake_is_told_with_its_place(void **state)
{
    GS_FOR_EACH_ROW (r, errors) {
        struct gs_kube_config config = {0};
        struct gs_error err = {0};
        row_equal(r->row, parse(r->text, r->context, &config, &err), -1);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        if (strncmp(err.msg, r->words, strlen(r->words)) != 0)
            row_text(r->row, err.msg, r->words);
        row_true(r->row, config.server == NULL && config.token == NULL); /* untouched */
    }
}

/* Nine lists of nine references each would be 9^9 values. */
static void references_cannot_grow_without_end(void **state)
{
    char text[4096] = HEAD CTX "users:\n- name: u\n  user:\n    exec: {command: a, apiVersion: "
                               "client.authentication.k8s.io/v1beta1, provideClusterInfo: true}\n"
                               "a0: &a0 x\n";
    for (int level = 1; level <= 9; level++) {
        size_t len = strlen(text);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "a%d: &a%d [", level, level);
        for (int i = 0; i < 9; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "*a%d, ", level - 1);
        snprintf(text + len, sizeof(text) - len, "]\n");
    }
    strncat(text,
            "clusters:\n- name: k\n  cluster:\n    server: https://a\n    extensions:\n"
            "    - name: client.authentication.k8s.io/exec\n      extension: *a9\n",
            sizeof(text) - strlen(text) - 1);
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(parse(text, NULL, &config, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    assert_non_null(strstr(err.msg, "too large"));
}

static void a_server_alone_is_a_configuration(void **state)
{
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_kube_config_plain("http://127.0.0.1:8001/", &config, &err), 0);
    assert_string_equal(config.server, "http://127.0.0.1:8001");
    assert_string_equal(config.ns, "default");
    gs_kube_config_release(&config);
    assert_int_equal(gs_kube_config_plain("nonsense://x", &config, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_null(config.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_a_kubeconfig_says_is_read),
        cmocka_unit_test(json_is_yaml_too),
        cmocka_unit_test(an_exec_plugin_is_read),
        cmocka_unit_test(a_command_without_a_slash_is_looked_up_in_path),
        cmocka_unit_test(servers_are_checked_and_completed),
        cmocka_unit_test(every_mistake_is_told_with_its_place),
        cmocka_unit_test(references_cannot_grow_without_end),
        cmocka_unit_test(a_server_alone_is_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
