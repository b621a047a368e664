/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_kit.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "gpushare/base/num.h"

static void must(int code)
{
    if (code < 0)
        fail_msg("%s", gnutls_strerror(code));
}

void tls_kit_open(struct tls_kit *kit)
{
    snprintf(kit->dir, sizeof(kit->dir), "/tmp/gpushare-tls-XXXXXX");
    assert_non_null(mkdtemp(kit->dir));
}

void tls_kit_close(struct tls_kit *kit)
{
    DIR *dir = opendir(kit->dir);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.')
            unlink(tls_kit_path(kit, 0, entry->d_name));
    }
    closedir(dir);
    assert_int_equal(rmdir(kit->dir), 0);
}

const char *tls_kit_path(const struct tls_kit *kit, int slot, const char *file)
{
    static char paths[8][512];
    snprintf(paths[slot], sizeof(paths[slot]), "%s/%s", kit->dir, file);
    return paths[slot];
}

/* By renaming, as a careful administrator does. */
static void put_file(const struct tls_kit *kit, const char *name, const void *bytes, size_t len)
{
    const char *fresh = tls_kit_path(kit, 6, "fresh");
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, tls_kit_path(kit, 7, name)), 0);
}

void tls_kit_write(const struct tls_kit *kit, const char *file, const char *text)
{
    put_file(kit, file, text, strlen(text));
}

void tls_kit_copy(const struct tls_kit *kit, const char *from, const char *to)
{
    gnutls_datum_t text;
    must(gnutls_load_file(tls_kit_path(kit, 5, from), &text));
    put_file(kit, to, text.data, text.size);
    gnutls_free(text.data);
}

static void load_issuer(const struct tls_kit *kit, const char *issuer, gnutls_x509_crt_t *ret_cert,
                        gnutls_x509_privkey_t *ret_key)
{
    char file[64];
    gnutls_datum_t text;
    must(gnutls_x509_crt_init(ret_cert));
    must(gnutls_x509_privkey_init(ret_key));
    snprintf(file, sizeof(file), "%s.pem", issuer);
    must(gnutls_load_file(tls_kit_path(kit, 0, file), &text));
    must(gnutls_x509_crt_import(*ret_cert, &text, GNUTLS_X509_FMT_PEM));
    gnutls_free(text.data);
    snprintf(file, sizeof(file), "%s.key", issuer);
    must(gnutls_load_file(tls_kit_path(kit, 0, file), &text));
    must(gnutls_x509_privkey_import(*ret_key, &text, GNUTLS_X509_FMT_PEM));
    gnutls_free(text.data);
}

static void describe(gnutls_x509_crt_t cert, enum tls_kind kind, const char *common_name,
                     int ends_s)
{
    static const unsigned char serial[] = {1, 2, 3, 4};
    time_t now = time(NULL);
    must(gnutls_x509_crt_set_version(cert, 3));
    must(gnutls_x509_crt_set_serial(cert, serial, sizeof(serial)));
    must(gnutls_x509_crt_set_activation_time(cert, now - 100000));
    must(gnutls_x509_crt_set_expiration_time(cert, now + ends_s));
    size_t len = common_name ? strcspn(common_name, ",") : 0;
    if (common_name)
        must(gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, common_name,
                                           (unsigned)len));
    for (const char *at = common_name; at && at[len];) {
        at += len + 1;
        len = strcspn(at, ",");
        must(gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, at, (unsigned)len,
                                                  GNUTLS_FSAN_APPEND));
    }
    must(gnutls_x509_crt_set_basic_constraints(cert, kind == TLS_CA, -1));
    if (kind == TLS_CA)
        must(gnutls_x509_crt_set_key_usage(cert, GNUTLS_KEY_KEY_CERT_SIGN));
    else
        must(gnutls_x509_crt_set_key_purpose_oid(
            cert, kind == TLS_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0));
}

void tls_kit_issue(const struct tls_kit *kit, const char *name, enum tls_kind kind,
                   const char *common_name, const char *issuer, int ends_s)
{
    gnutls_x509_crt_t cert, signer;
    gnutls_x509_privkey_t key, signer_key;
    gnutls_datum_t text;
    char file[64];
    must(gnutls_x509_privkey_init(&key));
    must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    must(gnutls_x509_crt_init(&cert));
    describe(cert, kind, common_name, ends_s);
    must(gnutls_x509_crt_set_key(cert, key));
    if (issuer) {
        load_issuer(kit, issuer, &signer, &signer_key);
        must(gnutls_x509_crt_sign2(cert, signer, signer_key, GNUTLS_DIG_SHA256, 0));
        gnutls_x509_crt_deinit(signer);
        gnutls_x509_privkey_deinit(signer_key);
    } else {
        must(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0));
    }
    must(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text));
    snprintf(file, sizeof(file), "%s.pem", name);
    put_file(kit, file, text.data, text.size);
    gnutls_free(text.data);
    must(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text));
    snprintf(file, sizeof(file), "%s.key", name);
    put_file(kit, file, text.data, text.size);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
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

bool tls_client_open(struct tls_client *client, uint16_t port, const struct tls_kit *kit,
                     const char *cert, const char *priorities)
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
        snprintf(pem, sizeof(pem), "%s.pem", cert);
        snprintf(key, sizeof(key), "%s.key", cert);
        must(gnutls_certificate_set_x509_key_file(client->creds, tls_kit_path(kit, 0, pem),
                                                  tls_kit_path(kit, 1, key), GNUTLS_X509_FMT_PEM));
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
