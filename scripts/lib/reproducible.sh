# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by check.sh after apt.sh and build.sh: two builds that share nothing but the source and
# the compiler give the same bytes.
#
#   reproducible "$root" gpushare-extender gpushare-sim      one line per program that differs

copy_source() {
    local from=$1 to=$2
    mkdir -p "$to"
    tar -C "$from" --exclude './build*' --exclude ./.git --exclude __pycache__ -c . |
        tar -C "$to" --no-same-owner -x
}

# Everything that an honest build should not depend on is another one each time.
build_here() {
    cmake --preset release -Wno-dev >/dev/null
    cmake --build --preset release --target "$@" -- --quiet "-j${jobs:?}"
}

build_one_way() (
    cd "$1" || exit
    umask 022
    export -f build_here
    env LC_ALL=C TZ=UTC HOME=/nonexistent jobs=2 bash -euc 'build_here "$@"' build "${@:2}"
)

build_another_way() (
    cd "$1" || exit
    umask 077
    local -a as=()
    if ((EUID == 0)); then
        chown -R nobody "$1"
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fi
    export -f build_here
    env LC_ALL=C.UTF-8 TZ=Pacific/Chatham USER=somebody HOME="$1/home" jobs=1 LANGUAGE=de \
        "${as[@]}" faketime -f '+400d' bash -euc 'build_here "$@"' build "${@:2}"
)

reproducible() {
    local root=$1 program work same=0
    shift
    # shellcheck disable=SC2154  # build.sh's
    apt_need "${build_packages[@]}" faketime
    work=$(mktemp -d)
    chmod 755 "$work"
    export CCACHE_DISABLE=1
    copy_source "$root" "$work/a"
    copy_source "$root" "$work/much/longer/than the other"
    build_one_way "$work/a" "$@" &
    build_another_way "$work/much/longer/than the other" "$@"
    wait $!
    for program in "$@"; do
        if cmp -s "$work/a/build/$program" "$work/much/longer/than the other/build/$program"; then
            printf 'note: %s %.12s\n' "$program" "$(sha256sum <"$work/a/build/$program")" >&2
        else
            echo "$program differs: $work"
            same=1
        fi
    done
    ((same)) || rm -rf "$work"
}
