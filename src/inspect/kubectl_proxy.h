/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "inspect/app.h"

/*
 * `kubectl proxy` on a unix socket: the API server with everything that kubectl knows of
 * kubeconfigs, credential plugins and proxies. The socket lies in a folder of its own (0700) until
 * it is open, and then in none: only this process reaches it. kubectl ends with this process,
 * however that ends; when it ends first, this process exits with 1. One thread; zeroed: none runs.
 */
struct kubectl_proxy {
    pid_t pid;
    int output;    /* what it writes */
    bool followed; /* by the thread, which hands it on */
    pthread_t thread;
    int stop[2]; /* a pipe: closing its end stops the thread */
    int socket_fd;
    char socket[32];  /* its path, of this process alone */
    char server[256]; /* of the context, for messages */
    char prefix[512]; /* the path in its address, which kubectl proxy leaves out; "" for none */
    char ns[256];     /* the context's namespace; "" for none */
    bool asks_user;   /* a credential plugin may ask on this terminal */
};

/* Starts $KUBECTL, else kubectl of $PATH, with the connection's kubeconfig, context, cluster, user
 * and impersonation, and returns when it listens. GS_EINVAL: what kubectl said when it ended;
 * GS_ETIMEOUT; GS_EIO. */
int kubectl_proxy_start(struct kubectl_proxy *proxy, const struct connection *connection,
                        struct gs_error *err);
void kubectl_proxy_stop(struct kubectl_proxy *proxy);
