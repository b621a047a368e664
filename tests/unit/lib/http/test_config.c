/* SPDX-License-Identifier: Apache-2.0 */

#include "rows.h"

#include "gpushare/http/server.h"

static void nothing(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
}

static const struct gs_http_route good[] = {{"GET", "/a/", nothing, GS_HTTP_PREFIX}};

static struct gs_http_config defaults(void)
{
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    config.routes = good;
    config.route_count = 1;
    config.workers = 1;
    config.threads = 1;
    return config;
}

static void addresses_are_numeric_with_a_port(void **state)
{
    static const struct {
        const char *listen;
        enum gs_code code;
    } rows[] = {
        {"127.0.0.1:0", GS_OK},
        {"0.0.0.0:0", GS_OK},
        {":0", GS_OK},
        {"[::1]:0", GS_OK},
        {"[::]:0", GS_OK},
        {"", GS_EINVAL},
        {":", GS_EINVAL},
        {"127.0.0.1", GS_EINVAL},
        {"127.0.0.1:", GS_EINVAL},
        {"127.0.0.1:65536", GS_EINVAL},
        {"127.0.0.1:-1", GS_EINVAL},
        {"127.0.0.1:0x10", GS_EINVAL},
        {"127.0.0.1:99999999999999999999", GS_EINVAL},
        {"127.0.0.256:0", GS_EINVAL},
        {"::1:0", GS_EINVAL},
        {"[::1:0", GS_EINVAL},
        {"[]:0", GS_EINVAL},
        {"[127.0.0.1]:0", GS_EINVAL},
        {"localhost:0", GS_EINVAL},
        {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:0", GS_EINVAL},
        {"192.0.2.1:0", GS_EIO}, /* an address this machine does not have */
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_http_config config = defaults();
        struct gs_http_server *server = NULL;
        struct gs_error err = {0};
        config.listen = r->listen;
        int result = gs_http_server_start(&config, &server, &err);
        print_message("  \"%s\" %s\n", r->listen, err.msg);
        assert_int_equal(err.code, r->code);
        if (r->code == GS_OK) {
            assert_int_equal(result, 0);
            assert_int_not_equal(gs_http_server_port(server), 0);
            gs_http_server_free(server);
        } else {
            assert_int_equal(result, -1);
            assert_null(server);
        }
    }
}

static void an_address_in_use_is_told(void **state)
{
    struct gs_http_config config = defaults();
    struct gs_http_server *server, *second = NULL;
    struct gs_error err = {0};
    char listen[32];
    assert_int_equal(gs_http_server_start(&config, &server, &err), 0);
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", gs_http_server_port(server));
    config.listen = listen;
    assert_int_equal(gs_http_server_start(&config, &second, &err), -1);
    assert_int_equal(err.code, GS_EEXIST);
    assert_null(second);
    gs_http_server_stop(server, 0);
    gs_http_server_stop(server, 0);
    gs_http_server_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_numeric_with_a_port),
        cmocka_unit_test(an_address_in_use_is_told),
    };
    return cmocka_run_group_tests_name("http configuration", tests, NULL, NULL);
}
