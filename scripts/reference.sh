#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes docs/reference.md: every option, metric, name, reason and Event, from the programs and their
# source; and the manual pages in docs/man that only list options. --check shows what it would change
# instead (scripts/check.sh reference). Builds what is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/lib/apt.sh
. scripts/lib/apt.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh

diff_pages() {
    local page
    for page in "$1"/*.1; do
        diff "docs/man/${page##*/}" "$page" || return 1
    done
}

main() {
    local dir
    apt_need python3 curl openssl
    build_project "$root" release gpushare-extender gpushare-device-plugin gpushare-mps gpushare-sim \
        kubectl-inspect-gpushare synthetic-api
    dir=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder as it is now
    trap "rm -rf '$dir'" EXIT
    tests/monitoring/pages.sh "$root/build" "$dir"
    python3 tests/reference/reference.py "$root/build" "$dir" >"$dir/reference.md"
    mkdir "$dir/man"
    python3 tests/reference/manual.py "$root/build" "$dir/man"
    if [[ ${1:-} == --check ]]; then
        diff docs/reference.md "$dir/reference.md" && diff_pages "$dir/man"
    else
        cp "$dir/reference.md" docs/reference.md
        cp "$dir"/man/*.1 docs/man/
    fi
}

main "$@"
