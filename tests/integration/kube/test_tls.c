/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"

/* TLS against `openssl s_server`, with certificates made on the spot. */

static struct folder certificates;

/* Starts a program; its stdout and stderr go to `out` (a path). */
static pid_t start_program(const char *const argv[], const char *out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, certificates.path);
    int errnum =
        posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errnum != 0)
        fail_msg("%s: %s (install the package openssl)", argv[0], strerror(errnum));
    return pid;
}

static char *in_folder(const char *name)
{
    char *path;
    assert_true(asprintf(&path, "%s/%s", certificates.path, name) > 0);
    return path;
}

static char *slurp(const char *path)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(path, "re");
    assert_non_null(text);
    assert_non_null(file);
    size_t len = fread(text, 1, 65535, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static void openssl_does(const char *const words[])
{
    const char *argv[32] = {(char *)(uintptr_t) "openssl"};
    for (size_t i = 0; words[i]; i++)
        argv[i + 1] = words[i];
    _cleanup_free_ char *out = in_folder("openssl.out");
    int status;
    pid_t pid = start_program(argv, out);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        _cleanup_free_ char *said = slurp(out);
        fail_msg("openssl %s: %s", words[0], said);
    }
}

static void make_ca(const char *name)
{
    char key[64], crt[64], subject[64];
    snprintf(key, sizeof(key), "%s.key", name);
    snprintf(crt, sizeof(crt), "%s.crt", name);
    snprintf(subject, sizeof(subject), "/CN=%s", name);
    openssl_does((const char *[]){"req", "-x509", "-newkey", "ec", "-pkeyopt",
                                  "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", crt,
                                  "-days", "2", "-subj", subject, NULL});
}

/* NAME.crt and NAME.key, signed by CA, for these alternative names. */
static void make_certificate(const char *name, const char *ca, const char *names, const char *days)
{
    char key[64], crt[64], csr[64], ext[64], subject[64], ca_key[64], ca_crt[64], line[128];
    snprintf(key, sizeof(key), "%s.key", name);
    snprintf(crt, sizeof(crt), "%s.crt", name);
    snprintf(csr, sizeof(csr), "%s.csr", name);
    snprintf(ext, sizeof(ext), "%s.ext", name);
    snprintf(subject, sizeof(subject), "/CN=%s", name);
    snprintf(ca_key, sizeof(ca_key), "%s.key", ca);
    snprintf(ca_crt, sizeof(ca_crt), "%s.crt", ca);
    snprintf(line, sizeof(line), "subjectAltName=%s\n", names);
    free(folder_write(&certificates, ext, line, 0600));
    openssl_does((const char *[]){"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                  "-nodes", "-keyout", key, "-out", csr, "-subj", subject, NULL});
    openssl_does((const char *[]){"x509", "-req", "-in", csr, "-CA", ca_crt, "-CAkey", ca_key,
                                  "-CAcreateserial", "-days", days, "-extfile", ext, "-out", crt,
                                  NULL});
}

/* Debian's OpenSSL refuses old protocols by itself; here it must be the client that does. */
static void allow_old_protocols(void)
{
    char *path = folder_write(&certificates, "openssl.cnf",
                              "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                              "system_default = old\n[old]\nMinProtocol = TLSv1\n"
                              "CipherString = DEFAULT@SECLEVEL=0\n[req]\n"
                              "distinguished_name = name\n[name]\n",
                              0600);
    assert_int_equal(setenv("OPENSSL_CONF", path, 1), 0);
    free(path);
}

static int make_all(void **state)
{
    folder_make(&certificates);
    allow_old_protocols();
    make_ca("ca");
    make_ca("other");
    make_certificate("ip", "ca", "IP:127.0.0.1", "2");
    make_certificate("dns", "ca", "DNS:api.test", "2");
    make_certificate("expired", "ca", "IP:127.0.0.1", "-1");
    make_certificate("client", "ca", "DNS:me", "2");
    make_certificate("stranger", "other", "DNS:me", "2");
    free(folder_write(&certificates, "version", "{}", 0600)); /* what the server serves */
    return 0;
}

static int remove_all(void **state)
{
    folder_remove(&certificates);
    return 0;
}

struct server {
    pid_t pid;
    uint32_t port;
};

/* Serves NAME.crt on a port of its own choice; `more` are further words of s_server. It ends with
 * this program, however that ends. */
static struct server start_server(const char *name, const char *const more[])
{
    char crt[64], key[64];
    snprintf(crt, sizeof(crt), "%s.crt", name);
    snprintf(key, sizeof(key), "%s.key", name);
    const char *argv[32] = {"setpriv", "--pdeathsig", "KILL",  "openssl", "s_server",
                            "-accept", "127.0.0.1:0", "-cert", crt,       "-key",
                            key,       "-WWW",        NULL};
    for (size_t i = 0; more && more[i]; i++)
        argv[12 + i] = more[i];
    _cleanup_free_ char *out = in_folder("server.out");
    unlink(out);
    struct server server = {.pid = start_program(argv, out)};
    for (int tries = 0; tries < 1000 && server.port == 0; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * GS_NS_PER_MS}, NULL);
        _cleanup_free_ char *said = access(out, R_OK) == 0 ? slurp(out) : strdup("");
        const char *at = strstr(said, "ACCEPT 127.0.0.1:");
        at = at ? at + strlen("ACCEPT 127.0.0.1:") : "";
        if (strchr(at, '\n'))
            gs_parse_u32(at, strcspn(at, "\n"), &server.port);
    }
    assert_true(server.port > 0);
    return server;
}

static void stop_server(struct server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}

enum how { NOTHING, IN_FILE, INLINE };

static struct gs_kube_pem pem(const char *name, const char *ending, enum how how)
{
    struct gs_kube_pem pem = {0};
    char file[64];
    snprintf(file, sizeof(file), "%s.%s", name, ending);
    if (how == NOTHING)
        return pem;
    pem.file = in_folder(file);
    if (how == INLINE) {
        pem.data = slurp(pem.file);
        pem.len = strlen(pem.data);
        free(pem.file);
        snprintf(file, sizeof(file), "stranger.%s", ending); /* does not count beside it */
        pem.file = in_folder(file);
    }
    return pem;
}

static const char *const must_show[] = {"-Verify", "1",      "-verify_return_error",
                                        "-CAfile", "ca.crt", NULL};
static const char *const old_tls[] = {"-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0", NULL};

static const struct tls_row {
    const char *row;
    const char *certificate; /* the server's */
    const char *const *more;
    const char *ca;
    enum how ca_how;
    const char *client;
    enum how client_how;
    const char *server_name;
    bool insecure;
    const char *failure; /* words of it, NULL: an answer comes */
} rows[] = {
    {"authority in a file", "ip", NULL, "ca", IN_FILE},
    {"authority inline", "ip", NULL, "ca", INLINE},
    {"another authority", "ip", NULL, "other", INLINE, .failure = "certificate"},
    {"no authority: the system's", "ip", NULL, "ca", NOTHING, .failure = "certificate"},
    {"insecure", "ip", NULL, "ca", NOTHING, .insecure = true},
    {"expired", "expired", NULL, "ca", INLINE, .failure = "expired"},
    {"a certificate for another name", "dns", NULL, "ca", INLINE, .failure = "127.0.0.1"},
    {"tls-server-name", "dns", NULL, "ca", INLINE, .server_name = "api.test"},
    {"a wrong tls-server-name", "dns", NULL, "ca", INLINE, .server_name = "x.test",
     .failure = "x.test"},
    {"tls-server-name that is an address", "ip", NULL, "ca", INLINE, .server_name = "127.0.0.1"},
    {"client certificate in files", "ip", must_show, "ca", IN_FILE, "client", IN_FILE},
    {"client certificate inline", "ip", must_show, "ca", INLINE, "client", INLINE},
    {"no client certificate", "ip", must_show, "ca", INLINE, .failure = "https://"},
    {"a stranger's client certificate", "ip", must_show, "ca", INLINE, "stranger", INLINE,
     .failure = "https://"},
    {"TLS 1.1", "ip", old_tls, "ca", INLINE, .failure = "https://"},
};

static void servers_are_verified_and_clients_show_themselves(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct server server = start_server(r->certificate, r->more);
        struct gs_kube_config config = {
            .ca = pem(r->ca, "crt", r->ca_how),
            .client_cert = pem(r->client, "crt", r->client_how),
            .client_key = pem(r->client, "key", r->client_how),
            .tls_server_name = r->server_name ? strdup(r->server_name) : NULL,
            .insecure = r->insecure,
        };
        assert_true(asprintf(&config.server, "https://127.0.0.1:%u", server.port) > 0);
        struct fixture f = {.patience_ns = 30 * GS_NS_PER_S};
        struct gs_error err = {0};
        fixture_start_with(&f, NULL, 0, &config);
        int status = fixture_get(&f, "/version", NULL, &err);
        if (status != (r->failure ? 0 : 200))
            fail_msg("row \"%s\": status %d, %s", r->row, status, err.msg);
        row_text(r->row, gs_code_name(err.code), r->failure ? "EIO" : "OK");
        if (r->failure && !strstr(err.msg, r->failure))
            row_text(r->row, err.msg, r->failure);
        fixture_stop(&f);
        stop_server(&server);
    }
}

static void an_authority_that_is_replaced_is_noticed(void **state)
{
    struct server server = start_server("ip", NULL);
    _cleanup_free_ char *ca = in_folder("ca.crt");
    _cleanup_free_ char *other = in_folder("other.crt");
    _cleanup_free_ char *good = slurp(ca);
    _cleanup_free_ char *bad = slurp(other);
    struct gs_kube_config config = {.ca.file = folder_write(&certificates, "used.crt", bad, 0600)};
    assert_true(asprintf(&config.server, "https://127.0.0.1:%u", server.port) > 0);
    struct fixture f = {.patience_ns = 30 * GS_NS_PER_S};
    struct gs_error err = {0};
    fixture_start_with(&f, NULL, 0, &config);
    assert_int_equal(fixture_get(&f, "/version", NULL, &err), 0);
    free(folder_write(&certificates, "used.crt", good, 0600));
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100 * GS_NS_PER_MS}, NULL);
    assert_int_equal(fixture_get(&f, "/version", NULL, &err), 200);
    free(folder_write(&certificates, "used.crt", bad, 0600));
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100 * GS_NS_PER_MS}, NULL);
    assert_int_equal(fixture_get(&f, "/version", NULL, &err), 0);
    fixture_stop(&f);
    stop_server(&server);
}

static void an_authority_that_is_no_certificate_is_told_as_such(void **state)
{
    struct gs_kube_config config = {.ca = {.data = strdup("nonsense"), .len = 8}};
    struct server server = start_server("ip", NULL);
    assert_true(asprintf(&config.server, "https://127.0.0.1:%u", server.port) > 0);
    struct fixture f = {.patience_ns = 30 * GS_NS_PER_S};
    struct gs_error err = {0};
    fixture_start_with(&f, NULL, 0, &config);
    assert_int_equal(fixture_get(&f, "/version", NULL, &err), 0);
    assert_non_null(strstr(err.msg, "certificate-authority is not a PEM certificate"));
    fixture_stop(&f);
    stop_server(&server);
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
        mount(certificates.path, "/etc/ssl/certs", NULL, MS_BIND, NULL) < 0)
        skip(); /* needs root */
    char *others = in_folder("other.crt"), *bundle = slurp(others);
    free(folder_write(&certificates, "ca-certificates.crt", bundle, 0644));
    free(bundle);
    free(others);
    openssl_does((const char *[]){"rehash", "/etc/ssl/certs", NULL});
    GS_FOR_EACH_ROW (r, authorities) {
        struct server server = start_server("ip", NULL); /* of "ca", as is its certificate */
        struct gs_kube_config config = {.ca = pem("other", "crt", r->ca_how)};
        assert_true(asprintf(&config.server, "https://127.0.0.1:%u", server.port) > 0);
        struct fixture f = {.patience_ns = 30 * GS_NS_PER_S};
        struct gs_error err = {0};
        fixture_start_with(&f, NULL, 0, &config);
        row_equal(r->row, fixture_get(&f, "/version", NULL, &err), r->status);
        fixture_stop(&f);
        stop_server(&server);
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
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
