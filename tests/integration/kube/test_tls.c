/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "scratch.h"

/* TLS against `openssl s_server`, with certificates made on the spot. */

enum server { IP, DNS, EXPIRED, ASKS, OLD, SERVERS };

static struct {
    const char *certificate;
    const char *words; /* of s_server */
    pid_t pid;
    char *url;
} servers[SERVERS] = {
    [IP] = {"ip", ""},
    [DNS] = {"dns", ""},
    [EXPIRED] = {"expired", ""},
    [ASKS] = {"ip", "-Verify 1 -verify_return_error -CAfile ca.crt"},
    [OLD] = {"ip", "-tls1_1 -cipher DEFAULT@SECLEVEL=0"},
};

/* On a port of its own choice; it ends with this program, however that ends. */
static void start_server(enum server server)
{
    const char *name = servers[server].certificate;
    char out[64], command[512];
    uint32_t port = 0;
    snprintf(out, sizeof(out), "server.%d", server);
    snprintf(command, sizeof(command),
             "exec openssl s_server -accept 127.0.0.1:0 -WWW -cert %s.crt -key %s.key %s "
             "</dev/null >%s 2>&1",
             name, name, servers[server].words, out);
    scratch_text(out, "");
    servers[server].pid = fork();
    if (servers[server].pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    for (int tries = 0; tries < 1000 && port == 0; tries++) {
        sleep_ms(10);
        _cleanup_free_ char *said = scratch_read(out);
        const char *at = strstr(said, "ACCEPT 127.0.0.1:");
        at = at ? at + strlen("ACCEPT 127.0.0.1:") : "";
        if (strchr(at, '\n'))
            gs_parse_u32(at, strcspn(at, "\n"), &port);
    }
    assert_true(port > 0);
    assert_true(asprintf(&servers[server].url, "https://127.0.0.1:%u", port) > 0);
}

static int start_all(void **state)
{
    static const struct {
        const char *name, *issuer, *subject, *extensions;
        int days;
    } certificates[] = {
        {"ca", NULL, "/CN=ca", "-addext basicConstraints=critical,CA:TRUE", 2},
        {"other", NULL, "/CN=other", "-addext basicConstraints=critical,CA:TRUE", 2},
        {"ip", "ca", "/CN=ip", "-addext subjectAltName=IP:127.0.0.1", 2},
        {"dns", "ca", "/CN=dns", "-addext subjectAltName=DNS:api.test", 2},
        {"expired", "ca", "/CN=expired", "-addext subjectAltName=IP:127.0.0.1", -1},
        {"client", "ca", "/CN=client", "", 2},
        {"stranger", "other", "/CN=stranger", "", 2},
    };
    scratch_enter();
    GS_FOR_EACH_ROW (r, certificates)
        scratch_certify(r->name, r->issuer, r->subject, r->extensions, r->days);
    scratch_text("version", "{}"); /* what the servers serve */
    for (int server = 0; server < SERVERS; server++)
        start_server((enum server)server);
    return 0;
}

static int stop_all(void **state)
{
    for (int server = 0; server < SERVERS; server++) {
        kill(servers[server].pid, SIGKILL);
        waitpid(servers[server].pid, NULL, 0);
        free(servers[server].url);
    }
    scratch_leave();
    return 0;
}

/* The status of GET /version, with this configuration; it is released. */
static int ask(struct fixture *f, enum server server, struct gs_kube_config *config)
{
    *f = (struct fixture){.patience_ns = 30 * GS_NS_PER_S, .clock = &sleepless};
    config->server = strdup(servers[server].url);
    fixture_start_with(f, NULL, 0, config);
    return fixture_get(f, "/version");
}

enum how { NOTHING, IN_FILE, INLINE };

static struct gs_kube_pem pem(const char *name, const char *ending, enum how how)
{
    struct gs_kube_pem pem = {0};
    if (how == NOTHING)
        return pem;
    assert_true(asprintf(&pem.file, "%s.%s", name, ending) > 0);
    if (how == INLINE) {
        pem.data = scratch_read(pem.file);
        pem.len = strlen(pem.data);
        free(pem.file);
        assert_true(asprintf(&pem.file, "stranger.%s", ending) > 0); /* does not count beside it */
    }
    return pem;
}

static const struct tls_row {
    const char *row;
    enum server server;
    const char *ca;
    enum how ca_how;
    const char *client;
    enum how client_how;
    const char *server_name;
    bool insecure;
    const char *failure; /* words of it, NULL: an answer comes */
} rows[] = {
    {"authority in a file", IP, "ca", IN_FILE},
    {"authority inline", IP, "ca", INLINE},
    {"another authority", IP, "other", INLINE, .failure = "certificate"},
    {"no authority: the system's", IP, "ca", NOTHING, .failure = "certificate"},
    {"insecure", IP, "ca", NOTHING, .insecure = true},
    {"expired", EXPIRED, "ca", INLINE, .failure = "expired"},
    {"a certificate for another name", DNS, "ca", INLINE, .failure = "127.0.0.1"},
    {"tls-server-name", DNS, "ca", INLINE, .server_name = "api.test"},
    {"a wrong tls-server-name", DNS, "ca", INLINE, .server_name = "x.test", .failure = "x.test"},
    {"tls-server-name that is an address", IP, "ca", INLINE, .server_name = "127.0.0.1"},
    {"client certificate in files", ASKS, "ca", IN_FILE, "client", IN_FILE},
    {"client certificate inline", ASKS, "ca", INLINE, "client", INLINE},
    {"no client certificate", ASKS, "ca", INLINE, .failure = "https://"},
    {"a stranger's client certificate", ASKS, "ca", INLINE, "stranger", INLINE,
     .failure = "https://"},
    {"TLS 1.1", OLD, "ca", INLINE, .failure = "https://"},
};

static void servers_are_verified_and_clients_show_themselves(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        struct gs_kube_config config = {
            .ca = pem(r->ca, "crt", r->ca_how),
            .client_cert = pem(r->client, "crt", r->client_how),
            .client_key = pem(r->client, "key", r->client_how),
            .tls_server_name = r->server_name ? strdup(r->server_name) : NULL,
            .insecure = r->insecure,
        };
        int status = ask(&f, r->server, &config);
        if (status != (r->failure ? 0 : 200))
            fail_msg("row \"%s\": status %d, %s", r->row, status, f.err.msg);
        row_text(r->row, gs_code_name(f.err.code), r->failure ? "EIO" : "OK");
        if (r->failure && !strstr(f.err.msg, r->failure))
            row_text(r->row, f.err.msg, r->failure);
        fixture_stop(&f);
    }
}

static void an_authority_that_is_replaced_is_noticed(void **state)
{
    static const struct {
        const char *file;
        int status;
    } in_turn[] = {{"ca.crt", 200}, {"other.crt", 0}};
    struct gs_kube_config config = {.ca.file = strdup("used.crt")};
    struct fixture f;
    scratch_copy("other.crt", "used.crt");
    assert_int_equal(ask(&f, IP, &config), 0);
    GS_FOR_EACH_ROW (r, in_turn) {
        scratch_copy(r->file, "used.crt");
        slept_ns += 2 * GS_NS_PER_S;
        assert_int_equal(fixture_get(&f, "/version"), r->status);
    }
    fixture_stop(&f);
}

static void an_authority_that_is_no_certificate_is_told_as_such(void **state)
{
    struct gs_kube_config config = {.ca = {.data = strdup("nonsense"), .len = 8}};
    struct fixture f;
    assert_int_equal(ask(&f, IP, &config), 0);
    assert_non_null(strstr(f.err.msg, "certificate-authority is not a PEM certificate"));
    fixture_stop(&f);
}

/* The machine's own authorities lie in /etc/ssl/certs, by hash. A server of theirs is none of a
 * kubeconfig that names another. */
static void the_machine_s_authorities_do_not_count_beside_the_kubeconfig_s(void **state)
{
    static const struct {
        const char *row;
        enum how ca_how;
        int status;
    } authorities[] = {{"another authority", INLINE, 0}, {"none is named", NOTHING, 200}};
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(scratch_path(), "/etc/ssl/certs", NULL, MS_BIND, NULL) < 0)
        skip(); /* needs root */
    scratch_copy("other.crt", "ca-certificates.crt");
    assert_int_equal(system("openssl rehash /etc/ssl/certs >rehash.log 2>&1"), 0);
    GS_FOR_EACH_ROW (r, authorities) {
        struct gs_kube_config config = {.ca = pem("other", "crt", r->ca_how)};
        struct fixture f;
        row_equal(r->row, ask(&f, IP, &config), r->status); /* of "ca", as is its certificate */
        fixture_stop(&f);
    }
    umount2("/etc/ssl/certs", MNT_DETACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_verified_and_clients_show_themselves),
        cmocka_unit_test(an_authority_that_is_replaced_is_noticed),
        cmocka_unit_test(an_authority_that_is_no_certificate_is_told_as_such),
        cmocka_unit_test(the_machine_s_authorities_do_not_count_beside_the_kubeconfig_s),
    };
    return cmocka_run_group_tests(tests, start_all, stop_all);
}
