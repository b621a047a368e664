/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "gpushare/base/cleanup.h"
#include "scratch.h"
#include "tls_client.h"

enum { DAY_S = 86400 };

static struct fixture fix;
static char out[4096]; /* the last answer */

static int make_certificates(void **state)
{
#define CA        "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign"
#define OF_CLIENT "-addext extendedKeyUsage=clientAuth"
#define OF_SERVER "-addext extendedKeyUsage=serverAuth"
    static const struct {
        const char *name, *issuer, *subject, *extensions;
        int days;
    } rows[] = {
        {"ca", NULL, "/CN=ca", CA, 1},
        {"other-ca", NULL, "/CN=ca", CA, 1}, /* the same name, another key */
        {"server", "ca", "/CN=server", OF_SERVER, 1},
        {"server-2", "ca", "/CN=server-2", OF_SERVER, 1},
        {"client", "ca", "/CN=kube-scheduler", OF_CLIENT, 1},
        {"a-node", "ca", "/CN=system:node:n1", OF_CLIENT, 1},
        {"by-dns", "ca", "/CN=common",
         OF_CLIENT " -addext subjectAltName=IP:127.0.0.1,DNS:dns.example,DNS:second.example", 1},
        {"nameless", "ca", "/", OF_CLIENT, 1},
        {"foreign", "other-ca", "/CN=kube-scheduler", OF_CLIENT, 1},
        {"self-signed", NULL, "/CN=kube-scheduler", OF_CLIENT, 1},
        {"expired", "ca", "/CN=kube-scheduler", OF_CLIENT, -1},
    };
    scratch_enter();
    GS_FOR_EACH_ROW (r, rows)
        scratch_certify(r->name, r->issuer, r->subject, r->extensions, r->days);
    return 0;
}

static int remove_certificates(void **state)
{
    scratch_leave();
    return 0;
}

/* The handler's view of the client, for /show/. */
static void whoami(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_buf_printf(&res->body, "<%s>", req->client_name ? req->client_name : "(none)");
}

static const struct gs_http_route routes[] = {{"GET", "/whoami", whoami, 0},
                                              {"GET", "/slow", whoami, GS_HTTP_BLOCKING}};

static void start_for(const char *client_ca, const char *allowed)
{
    fixture_init(&fix);
    fix.config.routes = routes;
    fix.config.route_count = GS_COUNT_OF(routes);
    scratch_copy("server.crt", "now.crt");
    scratch_copy("server.key", "now.key");
    fix.config.tls_cert = "now.crt";
    fix.config.tls_key = "now.key";
    fix.config.tls_client_ca = client_ca;
    fix.config.tls_allowed_names = allowed;
    fixture_start(&fix);
}

/* One connection, two requests on it; 0 when the server refuses. */
static int visit(const char *cert, const char *priorities)
{
    struct tls_client client;
    int status = 0;
    if (tls_client_open(&client, fix.port, cert, priorities)) {
        status = tls_client_get(&client, "/slow", out, sizeof(out));
        if (status)
            assert_int_equal(tls_client_get(&client, "/whoami", out, sizeof(out)), status);
    }
    tls_client_close(&client);
    return status;
}

/* A connection that stays, to a server of that name. */
static void open_to(struct tls_client *client, const char *cert, const char *server)
{
    assert_true(tls_client_open(client, fix.port, cert, NULL));
    assert_string_equal(client->server_name, server);
}

static void expect_status(struct tls_client *client, const char *path, int status)
{
    assert_int_equal(tls_client_get(client, path, out, sizeof(out)), status);
}

/* A new one that is closed. */
static void expect_server(const char *cert, const char *server)
{
    struct tls_client client;
    open_to(&client, cert, server);
    expect_status(&client, "/whoami", 200);
    tls_client_close(&client);
}

static void without_a_client_ca_everybody_may_come(void **state)
{
    start_for(NULL, NULL);
    assert_int_equal(visit(NULL, NULL), 200);
    assert_non_null(strstr(out, "<(none)>"));
    assert_int_equal(visit("foreign", NULL), 200);
    assert_non_null(strstr(out, "<(none)>")); /* a name nobody verified is no name */
    assert_int_equal(fixture_stats(&fix).tls_refused, 0);
    fixture_stop(&fix);
}

static void versions_below_1_2_and_keys_without_forward_secrecy_are_refused(void **state)
{
    static const struct {
        const char *name, *priorities;
        int status;
    } rows[] = {
        {"1.3", "NORMAL:-VERS-ALL:+VERS-TLS1.3", 200},
        {"1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.2", 200},
        {"1.2, AES-GCM", "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM", 200},
        {"1.2, ChaCha20", "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+CHACHA20-POLY1305", 200},
        {"1.2, RSA's own key exchange", "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", 0},
        {"1.2, CBC", "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC", 0},
        {"1.2, CCM", "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CCM", 0},
        {"1.1", "LEGACY:-VERS-ALL:+VERS-TLS1.1:%VERIFY_ALLOW_SIGN_WITH_SHA1", 0},
        {"1.0", "LEGACY:-VERS-ALL:+VERS-TLS1.0:%VERIFY_ALLOW_SIGN_WITH_SHA1", 0},
    };
    start_for(NULL, NULL);
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s\n", r->name);
        assert_int_equal(visit(NULL, r->priorities), r->status);
    }
    fixture_stop(&fix);
}

static void only_verified_clients_of_an_allowed_name_reach_a_handler(void **state)
{
    static const struct {
        const char *allowed, *cert; /* NULL: anybody's; none */
        const char *name;           /* NULL: refused */
    } rows[] = {
        {NULL, "client", "<kube-scheduler>"},
        {NULL, "nameless", "<>"},
        {NULL, NULL, NULL},
        {NULL, "foreign", NULL},
        {NULL, "self-signed", NULL},
        {NULL, "expired", NULL},
        {NULL, "server", NULL}, /* of our CA, for another purpose */
        {"kube-scheduler", "client", "<kube-scheduler>"},
        {"a,kube-scheduler,b", "client", "<kube-scheduler>"},
        {"kube-schedule", "client", NULL},
        {"kube-scheduler-2", "client", NULL},
        {"KUBE-SCHEDULER", "client", NULL},
        {"", "client", NULL},
        {",", "nameless", NULL},
        {"kube-scheduler", "nameless", NULL},
        {"kube-scheduler", "foreign", NULL},
        {"kube-scheduler", "a-node", NULL},
        {"dns.example", "by-dns", "<dns.example>"},
        {"second.example", "by-dns", "<second.example>"},
        {"common", "by-dns", "<common>"},
        {"third.example", "by-dns", NULL},
    };
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  \"%s\" %s\n", r->allowed ? r->allowed : "anybody",
                      r->cert ? r->cert : "none");
        start_for("ca.crt", r->allowed);
        GS_FOR_EACH_ROW (version, versions) {
            assert_int_equal(visit(r->cert, *version), r->name ? 200 : 0);
            if (r->name)
                assert_non_null(strstr(out, r->name));
        }
        wait_open(&fix, 0);
        struct gs_http_stats stats = fixture_stats(&fix);
        assert_int_equal(stats.tls_refused, r->name ? 0 : 2);
        assert_int_equal(stats.requests[2], r->name ? 4 : 0);
        assert_int_equal(stats.requests[4] + stats.requests[5] + stats.requests[0], 0);
        fixture_stop(&fix);
    }
}

static void changed_files_are_used_and_old_connections_answer_once(void **state)
{
    struct tls_client old;
    start_for("ca.crt", NULL);
    open_to(&old, "client", "server");
    expect_status(&old, "/whoami", 200);

    scratch_copy("server-2.crt", "now.crt"); /* the key is not there yet */
    expect_server("client", "server");
    assert_int_equal(fixture_stats(&fix).tls_reload_failures, 1);

    scratch_copy("server-2.key", "now.key");
    expect_server("client", "server-2");
    expect_status(&old, "/whoami", 200);

    scratch_text("now.crt", "nonsense");
    expect_server("client", "server-2");
    assert_int_equal(fixture_stats(&fix).tls_reload_failures, 2);
    expect_status(&old, "/whoami", 0);
    tls_client_close(&old);
    fixture_stop(&fix);
}

static void a_changed_client_ca_is_used_and_old_connections_answer_once(void **state)
{
    struct tls_client old;
    scratch_copy("ca.crt", "now-ca.crt");
    start_for("now-ca.crt", NULL);
    assert_int_equal(visit("client", NULL), 200);
    assert_int_equal(visit("foreign", NULL), 0);
    open_to(&old, "client", "server");
    expect_status(&old, "/whoami", 200);
    scratch_copy("other-ca.crt", "now-ca.crt");
    assert_int_equal(visit("client", NULL), 0);
    assert_int_equal(visit("foreign", NULL), 200);
    expect_status(&old, "/slow", 200);
    expect_status(&old, "/slow", 0);
    tls_client_close(&old);
    fixture_stop(&fix);
}

static struct {
    atomic_int good, bad;
    char why[256]; /* the last one */
} told;

static void note_files(void *ctx, const char *why)
{
    if (why)
        snprintf(told.why, sizeof(told.why), "%s", why);
    atomic_fetch_add(why ? &told.bad : &told.good, 1);
}

static void start_telling(const char *cert, const char *key, const char *client_ca)
{
    atomic_store(&told.good, 0);
    atomic_store(&told.bad, 0);
    fixture_init(&fix);
    fix.config.routes = routes;
    fix.config.route_count = GS_COUNT_OF(routes);
    fix.config.tls_cert = cert;
    fix.config.tls_key = key;
    fix.config.tls_client_ca = client_ca;
    fix.config.on_tls_files = note_files;
    fix.config.response_timeout_ns = GS_NS_PER_S / 4; /* it looks 32 times a second */
    fixture_start(&fix);
}

/* In place, as `cp` does. */
static void overwrite(const char *file, const char *from, int pct)
{
    _cleanup_free_ char *text = scratch_read(from);
    FILE *to = fopen(file, "we");
    assert_non_null(to);
    fwrite(text, 1, strlen(text) * (size_t)pct / 100, to);
    fclose(to);
}

/* The old ones are used, it is told once and shown; the whole files are used without anybody having
 * to connect. */
static void files_that_cannot_be_used_change_nothing(void **state)
{
    static const struct {
        const char *row;
        const char *file, *from;
        int pct; /* of it; -1: removed */
        const char *why;
    } rows[] = {
        {"half a certificate", "now.crt", "server-2.crt", 50, "now.crt"},
        {"no certificate yet", "now.crt", "server-2.crt", 0, "now.crt"},
        {"a certificate without its key", "now.crt", "server-2.crt", 100, "not match"},
        {"half a key", "now.key", "server.key", 50, "now.crt"},
        {"the key of another", "now.key", "server-2.key", 100, "not match"},
        {"half a CA", "now-ca.crt", "other-ca.crt", 50, "now-ca.crt"},
        {"no CA yet", "now-ca.crt", "other-ca.crt", 0, "now-ca.crt"},
        {"a CA removed", "now-ca.crt", NULL, -1, "now-ca.crt"},
        {"a key removed", "now.key", NULL, -1, "now.key"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s\n", r->row);
        scratch_copy("server.crt", "now.crt");
        scratch_copy("server.key", "now.key");
        scratch_copy("ca.crt", "now-ca.crt");
        start_telling("now.crt", "now.key", "now-ca.crt");
        int64_t expires_s = fixture_stats(&fix).tls_expires_s;
        assert_in_range(expires_s, time(NULL) + DAY_S - 60, time(NULL) + DAY_S);

        if (r->pct < 0)
            assert_int_equal(unlink(r->file), 0);
        else
            overwrite(r->file, r->from, r->pct);
        wait_for(&told.bad, 1);
        for (int visits = 0; visits < 3; visits++) {
            assert_int_equal(visit("client", NULL), 200);
            assert_int_equal(visit("foreign", NULL), 0);
        }
        assert_non_null(strstr(told.why, r->why));
        assert_true(fixture_stats(&fix).tls_stale);
        assert_int_equal(fixture_stats(&fix).tls_expires_s, expires_s);

        /* Between the two writes it may look once more. */
        scratch_copy("server-2.crt", "now.crt");
        scratch_copy("server-2.key", "now.key");
        scratch_copy("other-ca.crt", "now-ca.crt");
        wait_for(&told.good, 1);
        WAIT_UNTIL(!fixture_stats(&fix).tls_stale);
        assert_int_equal(visit("client", NULL), 0);
        assert_int_equal(visit("foreign", NULL), 200);
        assert_in_range(atomic_load(&told.bad), 1, 4);
        assert_in_range(fixture_stats(&fix).tls_reload_failures, 1, 4);
        fixture_stop(&fix);
    }
}

/* A Secret's folder: the names point into ..data, which is renamed to another folder. */
static void a_mounted_secret_is_replaced_in_one_step(void **state)
{
    static const char *const folders[] = {"mount", "mount/..0", "mount/..1"};
    static const char *const files[][4] = {
        {"server.crt", "mount/..0/now.crt", "server-2.crt", "mount/..1/now.crt"},
        {"server.key", "mount/..0/now.key", "server-2.key", "mount/..1/now.key"},
        {"ca.crt", "mount/..0/now-ca.crt", "other-ca.crt", "mount/..1/now-ca.crt"},
    };
    static const char *const links[][2] = {{"..0", "mount/..data"},
                                           {"..1", "mount/..tmp"},
                                           {"..data/now.crt", "mount/now.crt"},
                                           {"..data/now.key", "mount/now.key"},
                                           {"..data/now-ca.crt", "mount/now-ca.crt"}};
    struct tls_client old;
    GS_FOR_EACH_ROW (r, folders)
        assert_int_equal(mkdir(*r, 0700), 0);
    GS_FOR_EACH_ROW (r, files) {
        scratch_copy((*r)[0], (*r)[1]);
        scratch_copy((*r)[2], (*r)[3]);
    }
    GS_FOR_EACH_ROW (r, links)
        assert_int_equal(symlink((*r)[0], (*r)[1]), 0);
    start_telling("mount/now.crt", "mount/now.key", "mount/now-ca.crt");
    open_to(&old, "client", "server");
    expect_status(&old, "/whoami", 200);

    assert_int_equal(rename("mount/..tmp", "mount/..data"), 0);
    wait_for(&told.good, 1); /* nobody connected */
    expect_server("foreign", "server-2");
    expect_status(&old, "/slow", 200);
    assert_int_equal(visit("client", NULL), 0);
    assert_int_equal(atomic_load(&told.bad), 0);
    tls_client_close(&old);
    fixture_stop(&fix);
}

static void what_is_not_tls_is_cut_at_the_deadline(void **state)
{
    static const char *const rows[] = {
        "", "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01", /* the begin of a handshake, and nothing more */
    };
    fixture_init(&fix);
    fix.config.tls_cert = "server.crt";
    fix.config.tls_key = "server.key";
    fix.config.request_timeout_ns = fix.config.idle_timeout_ns = GS_NS_PER_S / 4;
    fixture_start(&fix);
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe *probe = open_and_send(&fix, "%s", *r);
        char rest[64];
        ssize_t got;
        do /* an alert may come first */
            got = recv(probe->fd, rest, sizeof(rest), 0);
        while (got > 0);
    }
    wait_open(&fix, 0);
    assert_int_equal(fixture_stats(&fix).tls_refused, 3);
    fixture_stop(&fix);
}

/* As Go's HTTP client has one in reserve. */
static void a_connection_that_asked_nothing_delays_no_stop(void **state)
{
    const int64_t long_ns = 600 * GS_NS_PER_S; /* longer than this test may take */
    struct tls_client spare;
    fixture_init(&fix);
    fix.config.tls_cert = "server.crt";
    fix.config.tls_key = "server.key";
    fix.config.request_timeout_ns = fix.config.idle_timeout_ns = long_ns;
    fixture_start(&fix);
    open_to(&spare, NULL, "server");
    gs_http_server_stop(fix.server, long_ns);
    tls_client_close(&spare);
    fixture_stop(&fix);
}

static void wrong_files_are_told_at_start(void **state)
{
    static const struct {
        const char *cert, *key, *ca;
        enum gs_code code;
    } rows[] = {
        {"server.crt", NULL, NULL, GS_EINVAL},
        {NULL, "server.key", NULL, GS_EINVAL},
        {NULL, NULL, "ca.crt", GS_EINVAL},
        {"nowhere.crt", "server.key", NULL, GS_ENOENT},
        {"server.crt", "nowhere.key", NULL, GS_ENOENT},
        {"server.crt", "server.key", "nowhere.crt", GS_ENOENT},
        {"server.crt", "server-2.key", NULL, GS_EINVAL},
        {"server.key", "server.crt", NULL, GS_EINVAL},
        {"server.crt", "server.key", "server.key", GS_EINVAL},
        {"empty", "server.key", NULL, GS_EINVAL},
        {"server.crt", "server.key", "empty", GS_EINVAL},
    };
    scratch_text("empty", "");
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        fixture_init(&fix);
        fix.config.tls_cert = r->cert;
        fix.config.tls_key = r->key;
        fix.config.tls_client_ca = r->ca;
        assert_int_equal(gs_http_server_start(&fix.config, &fix.server, &err), -1);
        print_message("  %s\n", err.msg);
        assert_int_equal(err.code, r->code);
        assert_null(fix.server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_client_ca_everybody_may_come),
        cmocka_unit_test(versions_below_1_2_and_keys_without_forward_secrecy_are_refused),
        cmocka_unit_test(only_verified_clients_of_an_allowed_name_reach_a_handler),
        cmocka_unit_test(changed_files_are_used_and_old_connections_answer_once),
        cmocka_unit_test(a_changed_client_ca_is_used_and_old_connections_answer_once),
        cmocka_unit_test(files_that_cannot_be_used_change_nothing),
        cmocka_unit_test(a_mounted_secret_is_replaced_in_one_step),
        cmocka_unit_test(what_is_not_tls_is_cut_at_the_deadline),
        cmocka_unit_test(a_connection_that_asked_nothing_delays_no_stop),
        cmocka_unit_test(wrong_files_are_told_at_start),
    };
    return cmocka_run_group_tests_name("http over TLS", tests, make_certificates,
                                       remove_certificates);
}
