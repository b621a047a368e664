/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_FAIL_CURL_H
#define GPUSHARE_KUBE_FAIL_CURL_H

#include <curl/curl.h>

#include "gpushare/base/error.h"

/* gs_fail() from curl's code, its error buffer (may be "") and the server's name. Returns -1. */
int gs_fail_curl(struct gs_error *err, CURLcode code, const char *detail, const char *server);

#endif
