/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdint.h>

/* A client that shows CERT.crt (scratch.h). Everything that goes wrong here fails the test. */
struct tls_client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t creds;
    char server_name[64]; /* common name of the server's certificate, after a handshake */
};

/* Connects and shakes hands; cert NULL shows none; priorities NULL are GnuTLS's own. False when the
 * server refuses. With TLS 1.3 it may refuse only later: the first answer tells. */
bool tls_client_open(struct tls_client *client, uint16_t port, const char *cert,
                     const char *priorities);
void tls_client_close(struct tls_client *client);

/* Sends GET path; returns the status and the whole answer in `out`, or 0 when the server is gone.
 */
int tls_client_get(struct tls_client *client, const char *path, char *out, size_t size);
