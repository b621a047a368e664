/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "tls_kit.h"

enum { DAY_S = 86400, OUT = 4096 };

static struct tls_kit *kit_of(void **state)
{
    return *state;
}

static int make_certificates(void **state)
{
    struct tls_kit *kit = test_malloc(sizeof(*kit));
    tls_kit_open(kit);
    tls_kit_issue(kit, "ca", TLS_CA, "ca", NULL, DAY_S);
    tls_kit_issue(kit, "other-ca", TLS_CA, "ca", NULL, DAY_S); /* the same name, another key */
    tls_kit_issue(kit, "server", TLS_SERVER, "server", "ca", DAY_S);
    tls_kit_issue(kit, "server-2", TLS_SERVER, "server-2", "ca", DAY_S);
    tls_kit_issue(kit, "client", TLS_CLIENT, "kube-scheduler", "ca", DAY_S);
    tls_kit_issue(kit, "system:node:n1", TLS_CLIENT, "system:node:n1", "ca", DAY_S);
    tls_kit_issue(kit, "by-dns", TLS_CLIENT, "common,dns.example,second.example", "ca", DAY_S);
    tls_kit_issue(kit, "nameless", TLS_CLIENT, NULL, "ca", DAY_S);
    tls_kit_issue(kit, "foreign", TLS_CLIENT, "kube-scheduler", "other-ca", DAY_S);
    tls_kit_issue(kit, "self-signed", TLS_CLIENT, "kube-scheduler", NULL, DAY_S);
    tls_kit_issue(kit, "expired", TLS_CLIENT, "kube-scheduler", "ca", -60);
    *state = kit;
    return 0;
}

static int remove_certificates(void **state)
{
    tls_kit_close(*state);
    test_free(*state);
    return 0;
}

/* The handler's view of the client, for /show/. */
static void whoami(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_buf_printf(&res->body, "<%s>", req->client_name ? req->client_name : "(none)");
}

static const struct gs_http_route routes[] = {{"GET", "/whoami", whoami, 0},
                                              {"GET", "/slow", whoami, GS_HTTP_BLOCKING}};

static void start_for(struct fixture *fix, const struct tls_kit *kit, const char *client_ca,
                      const char *allowed)
{
    fixture_init(fix);
    fix->config.routes = routes;
    fix->config.route_count = GS_COUNT_OF(routes);
    tls_kit_copy(kit, "server.pem", "now.pem");
    tls_kit_copy(kit, "server.key", "now.key");
    fix->config.tls_cert = tls_kit_path(kit, 2, "now.pem");
    fix->config.tls_key = tls_kit_path(kit, 3, "now.key");
    fix->config.tls_client_ca = client_ca ? tls_kit_path(kit, 4, client_ca) : NULL;
    fix->config.tls_allowed_names = allowed;
    fixture_start(fix);
}

static void start(struct fixture *fix, const struct tls_kit *kit, const char *client_ca)
{
    start_for(fix, kit, client_ca, NULL);
}

/* One connection, two requests on it; 0 when the server refuses. */
static int visit(const struct fixture *fix, const struct tls_kit *kit, const char *cert,
                 const char *priorities, char *out)
{
    struct tls_client client;
    int status = 0;
    if (tls_client_open(&client, fix->port, kit, cert, priorities)) {
        status = tls_client_get(&client, "/slow", out, OUT);
        if (status)
            assert_int_equal(tls_client_get(&client, "/whoami", out, OUT), status);
    }
    tls_client_close(&client);
    return status;
}

static void without_a_client_ca_everybody_may_come(void **state)
{
    struct fixture fix;
    char out[OUT];
    start(&fix, kit_of(state), NULL);
    assert_int_equal(visit(&fix, kit_of(state), NULL, NULL, out), 200);
    assert_non_null(strstr(out, "<(none)>"));
    assert_int_equal(visit(&fix, kit_of(state), "foreign", NULL, out), 200);
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
    struct fixture fix;
    char out[OUT];
    start(&fix, kit_of(state), NULL);
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s\n", r->name);
        assert_int_equal(visit(&fix, kit_of(state), NULL, r->priorities, out), r->status);
    }
    fixture_stop(&fix);
}

static void only_verified_clients_reach_a_handler(void **state)
{
    static const struct {
        const char *cert; /* NULL: none */
        int status;
        const char *name;
    } rows[] = {
        {"client", 200, "<kube-scheduler>"},
        {"nameless", 200, "<>"},
        {NULL, 0, NULL},
        {"foreign", 0, NULL},
        {"self-signed", 0, NULL},
        {"expired", 0, NULL},
        {"server", 0, NULL}, /* of our CA, for another purpose */
        {"client", 200, "<kube-scheduler>"},
    };
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    struct fixture fix;
    char out[OUT];
    start(&fix, kit_of(state), "ca.pem");
    for (int version = 0; version < 2; version++) {
        GS_FOR_EACH_ROW (r, rows) {
            print_message("  1.%d %s\n", version + 2, r->cert ? r->cert : "none");
            assert_int_equal(visit(&fix, kit_of(state), r->cert, versions[version], out),
                             r->status);
            if (r->name)
                assert_non_null(strstr(out, r->name));
        }
    }
    wait_open(&fix, 0);
    struct gs_http_stats stats = fixture_stats(&fix);
    assert_int_equal(stats.tls_refused, 10);
    assert_int_equal(stats.requests[2], 3 * 2 * 2); /* nobody else got an answer of any kind */
    assert_int_equal(stats.requests[4] + stats.requests[5] + stats.requests[0], 0);
    fixture_stop(&fix);
}

static void a_client_s_name_can_be_asked_for(void **state)
{
    static const struct {
        const char *allowed, *cert;
        int status;
        const char *name;
    } rows[] = {
        {"kube-scheduler", "client", 200, "<kube-scheduler>"},
        {"a,kube-scheduler,b", "client", 200, "<kube-scheduler>"},
        {"kube-schedule", "client", 0, NULL},
        {"kube-scheduler-2", "client", 0, NULL},
        {"KUBE-SCHEDULER", "client", 0, NULL},
        {"", "client", 0, NULL},
        {",", "nameless", 0, NULL},
        {"kube-scheduler", "nameless", 0, NULL},
        {"kube-scheduler", "foreign", 0, NULL},
        {"kube-scheduler", "system:node:n1", 0, NULL},
        {"dns.example", "by-dns", 200, "<dns.example>"},
        {"second.example", "by-dns", 200, "<second.example>"},
        {"common", "by-dns", 200, "<common>"},
        {"third.example", "by-dns", 0, NULL},
    };
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        char out[OUT];
        print_message("  \"%s\" %s\n", r->allowed, r->cert);
        start_for(&fix, kit_of(state), "ca.pem", r->allowed);
        for (int version = 0; version < 2; version++) {
            assert_int_equal(visit(&fix, kit_of(state), r->cert, versions[version], out),
                             r->status);
            if (r->name)
                assert_non_null(strstr(out, r->name));
        }
        wait_open(&fix, 0);
        assert_int_equal(fixture_stats(&fix).tls_refused, r->status ? 0 : 2);
        fixture_stop(&fix);
    }
}

static void changed_files_are_used_and_old_connections_answer_once(void **state)
{
    struct fixture fix;
    struct tls_client old, fresh;
    char out[OUT];
    const struct tls_kit *kit = kit_of(state);
    start(&fix, kit, "ca.pem");
    assert_true(tls_client_open(&old, fix.port, kit, "client", NULL));
    assert_string_equal(old.server_name, "server");
    assert_int_equal(tls_client_get(&old, "/whoami", out, OUT), 200);

    tls_kit_copy(kit, "server-2.pem", "now.pem"); /* the key is not there yet */
    assert_true(tls_client_open(&fresh, fix.port, kit, "client", NULL));
    assert_string_equal(fresh.server_name, "server");
    assert_int_equal(fixture_stats(&fix).tls_reload_failures, 1);
    tls_client_close(&fresh);

    tls_kit_copy(kit, "server-2.key", "now.key");
    assert_true(tls_client_open(&fresh, fix.port, kit, "client", NULL));
    assert_string_equal(fresh.server_name, "server-2");
    assert_int_equal(tls_client_get(&fresh, "/whoami", out, OUT), 200);
    tls_client_close(&fresh);
    assert_int_equal(tls_client_get(&old, "/whoami", out, OUT), 200);

    tls_kit_write(kit, "now.pem", "nonsense");
    assert_true(tls_client_open(&fresh, fix.port, kit, "client", NULL));
    assert_string_equal(fresh.server_name, "server-2");
    tls_client_close(&fresh);
    assert_int_equal(fixture_stats(&fix).tls_reload_failures, 2);
    assert_int_equal(tls_client_get(&old, "/whoami", out, OUT), 0);
    tls_client_close(&old);
    fixture_stop(&fix);
}

static void a_changed_client_ca_is_used_and_old_connections_answer_once(void **state)
{
    struct fixture fix;
    struct tls_client old;
    char out[OUT];
    const struct tls_kit *kit = kit_of(state);
    tls_kit_copy(kit, "ca.pem", "now-ca.pem");
    start(&fix, kit, "now-ca.pem");
    assert_int_equal(visit(&fix, kit, "client", NULL, out), 200);
    assert_int_equal(visit(&fix, kit, "foreign", NULL, out), 0);
    assert_true(tls_client_open(&old, fix.port, kit, "client", NULL));
    assert_int_equal(tls_client_get(&old, "/whoami", out, OUT), 200);
    tls_kit_copy(kit, "other-ca.pem", "now-ca.pem");
    assert_int_equal(visit(&fix, kit, "client", NULL, out), 0);
    assert_int_equal(visit(&fix, kit, "foreign", NULL, out), 200);
    assert_int_equal(tls_client_get(&old, "/slow", out, OUT), 200);
    assert_int_equal(tls_client_get(&old, "/slow", out, OUT), 0);
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

static void start_telling(struct fixture *fix, const struct tls_kit *kit, const char *folder)
{
    char name[64];
    atomic_store(&told.good, 0);
    atomic_store(&told.bad, 0);
    fixture_init(fix);
    fix->config.routes = routes;
    fix->config.route_count = GS_COUNT_OF(routes);
    const char **const files[] = {&fix->config.tls_cert, &fix->config.tls_key,
                                  &fix->config.tls_client_ca};
    static const char *const names[] = {"now.pem", "now.key", "now-ca.pem"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", folder, names[i]);
        *files[i] = tls_kit_path(kit, 2 + i, name);
    }
    fix->config.on_tls_files = note_files;
    fixture_start(fix);
}

/* In place, as `cp` does. */
static void overwrite(const struct tls_kit *kit, const char *file, const char *from, int pct)
{
    char text[8192];
    FILE *in = fopen(tls_kit_path(kit, 0, from), "re");
    assert_non_null(in);
    size_t len = fread(text, 1, sizeof(text), in);
    fclose(in);
    FILE *out = fopen(tls_kit_path(kit, 0, file), "we");
    assert_non_null(out);
    fwrite(text, 1, len * (size_t)pct / 100, out);
    fclose(out);
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
        {"half a certificate", "now.pem", "server-2.pem", 50, "now.pem"},
        {"no certificate yet", "now.pem", "server-2.pem", 0, "now.pem"},
        {"a certificate without its key", "now.pem", "server-2.pem", 100, "not match"},
        {"half a key", "now.key", "server.key", 50, "now.pem"},
        {"the key of another", "now.key", "server-2.key", 100, "not match"},
        {"half a CA", "now-ca.pem", "other-ca.pem", 50, "now-ca.pem"},
        {"no CA yet", "now-ca.pem", "other-ca.pem", 0, "now-ca.pem"},
        {"a CA removed", "now-ca.pem", NULL, -1, "now-ca.pem"},
        {"a key removed", "now.key", NULL, -1, "now.key"},
    };
    const struct tls_kit *kit = kit_of(state);
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        char out[OUT];
        print_message("  %s\n", r->row);
        tls_kit_copy(kit, "server.pem", "now.pem");
        tls_kit_copy(kit, "server.key", "now.key");
        tls_kit_copy(kit, "ca.pem", "now-ca.pem");
        start_telling(&fix, kit, "");
        int64_t expires_s = fixture_stats(&fix).tls_expires_s;
        assert_in_range(expires_s, time(NULL) + DAY_S - 60, time(NULL) + DAY_S);

        if (r->pct < 0)
            assert_int_equal(unlink(tls_kit_path(kit, 0, r->file)), 0);
        else
            overwrite(kit, r->file, r->from, r->pct);
        wait_for(&told.bad, 1);
        for (int visits = 0; visits < 3; visits++) {
            assert_int_equal(visit(&fix, kit, "client", NULL, out), 200);
            assert_int_equal(visit(&fix, kit, "foreign", NULL, out), 0);
        }
        assert_non_null(strstr(told.why, r->why));
        assert_true(fixture_stats(&fix).tls_stale);
        assert_int_equal(fixture_stats(&fix).tls_expires_s, expires_s);

        /* Between the two writes it may look once more. */
        tls_kit_copy(kit, "server-2.pem", "now.pem");
        tls_kit_copy(kit, "server-2.key", "now.key");
        tls_kit_copy(kit, "other-ca.pem", "now-ca.pem");
        wait_for(&told.good, 1);
        for (int ms = 0; fixture_stats(&fix).tls_stale && ms < 10000; ms += 10)
            sleep_ms(10);
        assert_false(fixture_stats(&fix).tls_stale);
        assert_int_equal(visit(&fix, kit, "client", NULL, out), 0);
        assert_int_equal(visit(&fix, kit, "foreign", NULL, out), 200);
        assert_in_range(atomic_load(&told.bad), 1, 4);
        assert_in_range(fixture_stats(&fix).tls_reload_failures, 1, 4);
        fixture_stop(&fix);
    }
}

/* A Secret's folder: the names point into ..data, which is renamed to another folder. */
static void a_mounted_secret_is_replaced_in_one_step(void **state)
{
    static const char *const names[] = {"now.pem", "now.key", "now-ca.pem"};
    static const char *const versions[][3] = {{"server.pem", "server.key", "ca.pem"},
                                              {"server-2.pem", "server-2.key", "other-ca.pem"}};
    const struct tls_kit *kit = kit_of(state);
    struct fixture fix;
    struct tls_client old, fresh;
    char out[OUT], file[64], target[64];
    assert_int_equal(mkdir(tls_kit_path(kit, 0, "mount"), 0700), 0);
    for (int version = 0; version < 2; version++) {
        snprintf(file, sizeof(file), "mount/..%d", version);
        assert_int_equal(mkdir(tls_kit_path(kit, 0, file), 0700), 0);
        for (int i = 0; i < 3; i++) {
            snprintf(file, sizeof(file), "mount/..%d/%s", version, names[i]);
            tls_kit_copy(kit, versions[version][i], file);
        }
    }
    assert_int_equal(symlink("..0", tls_kit_path(kit, 0, "mount/..data")), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof(file), "mount/%s", names[i]);
        snprintf(target, sizeof(target), "..data/%s", names[i]);
        assert_int_equal(symlink(target, tls_kit_path(kit, 0, file)), 0);
    }
    start_telling(&fix, kit, "mount/");
    assert_true(tls_client_open(&old, fix.port, kit, "client", NULL));
    assert_string_equal(old.server_name, "server");
    assert_int_equal(tls_client_get(&old, "/whoami", out, OUT), 200);

    assert_int_equal(symlink("..1", tls_kit_path(kit, 0, "mount/..tmp")), 0);
    assert_int_equal(
        rename(tls_kit_path(kit, 0, "mount/..tmp"), tls_kit_path(kit, 1, "mount/..data")), 0);
    wait_for(&told.good, 1); /* nobody connected */
    assert_true(tls_client_open(&fresh, fix.port, kit, "foreign", NULL));
    assert_string_equal(fresh.server_name, "server-2");
    assert_int_equal(tls_client_get(&fresh, "/whoami", out, OUT), 200);
    assert_int_equal(tls_client_get(&old, "/slow", out, OUT), 200);
    assert_int_equal(visit(&fix, kit, "client", NULL, out), 0);
    assert_int_equal(atomic_load(&told.bad), 0);
    tls_client_close(&fresh);
    tls_client_close(&old);
    fixture_stop(&fix);

    unlink(tls_kit_path(kit, 0, "mount/..data"));
    static const char *const folders[] = {"mount/", "mount/..0/", "mount/..1/"};
    for (int i = 0; i < 9; i++) {
        snprintf(file, sizeof(file), "%s%s", folders[i / 3], names[i % 3]);
        assert_int_equal(unlink(tls_kit_path(kit, 0, file)), 0);
    }
    assert_int_equal(rmdir(tls_kit_path(kit, 0, "mount/..0")), 0);
    assert_int_equal(rmdir(tls_kit_path(kit, 0, "mount/..1")), 0);
    assert_int_equal(rmdir(tls_kit_path(kit, 0, "mount")), 0);
}

static void what_is_not_tls_is_cut_at_the_deadline(void **state)
{
    static const char *const rows[] = {
        "", "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01", /* the begin of a handshake, and nothing more */
    };
    struct fixture fix;
    const struct tls_kit *kit = kit_of(state);
    fixture_init(&fix);
    fix.config.tls_cert = tls_kit_path(kit, 2, "server.pem");
    fix.config.tls_key = tls_kit_path(kit, 3, "server.key");
    fix.config.request_timeout_ns = fix.config.idle_timeout_ns = GS_NS_PER_S / 2;
    fixture_start(&fix);
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe probe;
        assert_true(http_probe_open(&probe, fix.port));
        http_probe_text(&probe, "%s", *r);
        char rest[64];
        ssize_t got;
        do /* an alert may come first */
            got = recv(probe.fd, rest, sizeof(rest), 0);
        while (got > 0);
        http_probe_close(&probe);
    }
    wait_open(&fix, 0);
    assert_int_equal(fixture_stats(&fix).tls_refused, 3);
    fixture_stop(&fix);
}

static void wrong_files_are_told_at_start(void **state)
{
    static const struct {
        const char *cert, *key, *ca;
        enum gs_code code;
    } rows[] = {
        {"server.pem", NULL, NULL, GS_EINVAL},
        {NULL, "server.key", NULL, GS_EINVAL},
        {NULL, NULL, "ca.pem", GS_EINVAL},
        {"nowhere.pem", "server.key", NULL, GS_ENOENT},
        {"server.pem", "nowhere.key", NULL, GS_ENOENT},
        {"server.pem", "server.key", "nowhere.pem", GS_ENOENT},
        {"server.pem", "server-2.key", NULL, GS_EINVAL},
        {"server.key", "server.pem", NULL, GS_EINVAL},
        {"server.pem", "server.key", "server.key", GS_EINVAL},
        {"empty", "server.key", NULL, GS_EINVAL},
        {"server.pem", "server.key", "empty", GS_EINVAL},
    };
    const struct tls_kit *kit = kit_of(state);
    tls_kit_write(kit, "empty", "");
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        struct gs_error err = {0};
        fixture_init(&fix);
        fix.config.tls_cert = r->cert ? tls_kit_path(kit, 2, r->cert) : NULL;
        fix.config.tls_key = r->key ? tls_kit_path(kit, 3, r->key) : NULL;
        fix.config.tls_client_ca = r->ca ? tls_kit_path(kit, 4, r->ca) : NULL;
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
        cmocka_unit_test(only_verified_clients_reach_a_handler),
        cmocka_unit_test(a_client_s_name_can_be_asked_for),
        cmocka_unit_test(changed_files_are_used_and_old_connections_answer_once),
        cmocka_unit_test(a_changed_client_ca_is_used_and_old_connections_answer_once),
        cmocka_unit_test(files_that_cannot_be_used_change_nothing),
        cmocka_unit_test(a_mounted_secret_is_replaced_in_one_step),
        cmocka_unit_test(what_is_not_tls_is_cut_at_the_deadline),
        cmocka_unit_test(wrong_files_are_told_at_start),
    };
    return cmocka_run_group_tests_name("http over TLS", tests, make_certificates,
                                       remove_certificates);
}
