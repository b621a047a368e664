/* SPDX-License-Identifier: Apache-2.0 */
#include "fail_curl.h"

static enum gs_code code_of(CURLcode code)
{
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return GS_ENOMEM;
    case CURLE_OPERATION_TIMEDOUT:
        return GS_ETIMEOUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return GS_EPROTO;
    default:
        return GS_EIO;
    }
}

/* What to look at, for the failures that a person has to mend. */
static const char *advice_for(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return " (check certificate-authority and tls-server-name in the kubeconfig)";
    case CURLE_SSL_CERTPROBLEM:
        return " (check client-certificate and client-key in the kubeconfig)";
    case CURLE_SSL_CACERT_BADFILE:
        return " (certificate-authority is no PEM certificate)";
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return " (is the API server running, and is its address right?)";
    default:
        return "";
    }
}

int gs_fail_curl(struct gs_error *err, CURLcode code, const char *detail, const char *server)
{
    return gs_fail(err, code_of(code), "%s: %.150s%s", server,
                   detail[0] ? detail : curl_easy_strerror(code), advice_for(code));
}
