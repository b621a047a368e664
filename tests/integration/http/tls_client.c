/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_client.h"

#include <gnutls/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "gpushare/base/num.h"

static void must(int code)
{
    if (code < 0)
        fail_msg("%s", gnutls_strerror(code));
}

static void read_server_name(struct tls_client *client)
{
    unsigned count;
    size_t size = sizeof(client->server_name);
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(client->session, &count);
    gnutls_x509_crt_t cert;
    assert_non_null(chain);
    must(gnutls_x509_crt_init(&cert));
    must(gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER));
    must(gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, client->server_name,
                                       &size));
    gnutls_x509_crt_deinit(cert);
}

bool tls_client_open(struct tls_client *client, uint16_t port, const char *cert,
                     const char *priorities)
{
    struct http_probe probe;
    char pem[64], key[64];
    *client = (struct tls_client){.fd = -1};
    assert_true(http_probe_open(&probe, port));
    client->fd = probe.fd;
    const struct timeval limit = {.tv_sec = 10};
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    must(gnutls_certificate_allocate_credentials(&client->creds));
    if (cert) {
        snprintf(pem, sizeof(pem), "%s.crt", cert);
        snprintf(key, sizeof(key), "%s.key", cert);
        must(gnutls_certificate_set_x509_key_file(client->creds, pem, key, GNUTLS_X509_FMT_PEM));
        /* shown whatever issuers the server names: it is the server that is tested */
        gnutls_certificate_set_flags(client->creds, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
    }
    must(
        gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL | GNUTLS_FORCE_CLIENT_CERT));
    if (priorities)
        must(gnutls_priority_set_direct(client->session, priorities, NULL));
    else
        must(gnutls_set_default_priority(client->session));
    must(gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->creds));
    gnutls_transport_set_int(client->session, client->fd);
    int code;
    do
        code = gnutls_handshake(client->session);
    while (code < 0 && !gnutls_error_is_fatal(code) && code != GNUTLS_E_AGAIN);
    if (code == 0)
        read_server_name(client);
    return code == 0;
}

void tls_client_close(struct tls_client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->creds);
    close(client->fd);
}

static size_t number(const char *text)
{
    uint32_t value = 0;
    assert_true(gs_parse_u32(text, strspn(text, "0123456789"), &value));
    return value;
}

int tls_client_get(struct tls_client *client, const char *path, char *out, size_t size)
{
    char request[256];
    int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    if (gnutls_record_send(client->session, request, (size_t)len) != len)
        return 0;
    size_t got = 0;
    const char *head_end = NULL, *length = NULL;
    for (;;) {
        ssize_t piece = gnutls_record_recv(client->session, out + got, size - 1 - got);
        if (piece == GNUTLS_E_INTERRUPTED)
            continue;
        if (piece <= 0)
            return 0;
        got += (size_t)piece;
        out[got] = '\0';
        head_end = strstr(out, "\r\n\r\n");
        length = strstr(out, "Content-Length: ");
        if (head_end && length && got >= (size_t)(head_end + 4 - out) + number(length + 16))
            return (int)number(out + 9);
    }
}
