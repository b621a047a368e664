#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Long fuzzing, at the lowest priority: scripts/fuzz.sh --seconds 3600 [TARGET]..., then
# scripts/fuzz.sh --merge. check.sh fuzz is the short run.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"

main() {
    local word
    local -a targets
    for word in "$@"; do
        [[ $word == --help || $word == -h ]] && exec python3 "$root/tests/fuzz/campaign.py" --help
    done
    apt_need python3 clang libclang-rt-14-dev
    mapfile -t targets < <(basename -s .c "$root"/tests/fuzz/*_*.c | sed 's/^/fuzz_/')
    build_project "$root" fuzz "${targets[@]}"
    exec python3 "$root/tests/fuzz/campaign.py" "$@"
}

main "$@"
