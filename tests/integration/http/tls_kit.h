/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdint.h>

/* Certificates made on the spot, in a folder of their own, and a client that shows them. Everything
 * that goes wrong here fails the test. */
struct tls_kit {
    char dir[32];
};

/* What a certificate is for; each is written as NAME.pem and NAME.key. */
enum tls_kind { TLS_CA, TLS_SERVER, TLS_CLIENT };

void tls_kit_open(struct tls_kit *kit);
void tls_kit_close(struct tls_kit *kit);

/* ends_s: seconds from now; negative: expired. issuer: an earlier TLS_CA, NULL signs itself.
 * common_name NULL: none; "common,dns,…": DNS names behind it. */
void tls_kit_issue(const struct tls_kit *kit, const char *name, enum tls_kind kind,
                   const char *common_name, const char *issuer, int ends_s);

/* dir/file; *borrowed until* the next call with the same slot (0 to 7). */
const char *tls_kit_path(const struct tls_kit *kit, int slot, const char *file);

void tls_kit_copy(const struct tls_kit *kit, const char *from, const char *to);
void tls_kit_write(const struct tls_kit *kit, const char *file, const char *text);

struct tls_client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t creds;
    char server_name[64]; /* common name of the server's certificate, after a handshake */
};

/* Connects and shakes hands; cert NULL shows none; priorities NULL are GnuTLS's own. False when the
 * server refuses. With TLS 1.3 it may refuse only later: the first answer tells. */
bool tls_client_open(struct tls_client *client, uint16_t port, const struct tls_kit *kit,
                     const char *cert, const char *priorities);
void tls_client_close(struct tls_client *client);

/* Sends GET path; returns the status and the whole answer in `out`, or 0 when the server is gone.
 */
int tls_client_get(struct tls_client *client, const char *path, char *out, size_t size);
