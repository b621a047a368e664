#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a runc that needs no library of the machine it runs on, and prints the folder that it is in
# (module_build.sh): it starts itself again, so none can be brought along for it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=tests/e2e/module_build.sh
. "$root/tests/e2e/module_build.sh"

[[ ${1:-} == --cached ]] || apt_need gcc libc6-dev libseccomp-dev pkg-config >&2
export CGO_ENABLED=1 GOFLAGS="-mod=mod -tags=seccomp,netgo,osusergo '-ldflags=-s -w -extldflags=-static'"
module_build runc github.com/opencontainers/runc v1.3.4 . "" "$@"
