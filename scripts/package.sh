#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian packages of the programs (cmake/Package.cmake), and the CLI as an archive for any Linux:
# the program with every library that it loads. The same commit, built with the same Debian packages,
# gives the same bytes.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/rootfs.sh
. "$root/scripts/lib/rootfs.sh"

out=$root/build/packages
cli=kubectl-inspect-gpushare

usage() {
    cat <<'EOF'
Usage: scripts/package.sh [--out DIR]

Writes into DIR (default: build/packages), and prints the names:

  PROGRAM_VERSION_ARCH.deb                           for Debian 12, one per program
  kubectl-inspect-gpushare-VERSION-linux-ARCH.tar.gz the CLI for any Linux; unpack it anywhere and
                                                     link kubectl-inspect-gpushare into $PATH

  GPUSHARE_BUILD_DIR  a configured build folder with the programs, built already (default: build)
  SOURCE_DATE_EPOCH   time of every file (default: the commit's)
EOF
}

debian_packages() {
    (cd "$build" && SOURCE_DATE_EPOCH=$epoch cpack -G DEB -B "$tmp/cpack" >"$tmp/cpack.log" 2>&1) ||
        { cat "$tmp/cpack.log" >&2 && return 1; }
    mv "$tmp"/cpack/*.deb "$out/"
}

# What is called: a script that starts the program with its own linker and libraries.
launcher() {
    local linker
    linker=$(cd "$1" && find . -name 'ld-linux*')
    cat <<SH
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
here=\$(dirname "\$(readlink -f "\$0")")
exec "\$here/${linker#./}" --library-path "\$here/usr/lib/$multiarch" --argv0 $cli "\$here/usr/bin/$cli" "\$@"
SH
}

cli_archive() {
    local name=$cli-$version-linux-$arch
    local folder=$tmp/archive/$name
    mkdir -p "$folder/completions" "$folder/man"
    fill_rootfs "$build/$cli" "$folder"
    launcher "$folder" >"$folder/$cli"
    install -m 755 "$root/share/completions/kubectl_complete-inspect-gpushare" "$folder/"
    install -m 644 "$root/share/completions/$cli.bash" "$folder/"
    install -m 644 "$root/share/completions/_$cli" "$root/share/completions/$cli.fish" \
        "$folder/completions/"
    install -m 644 "$root/docs/man/$cli.1" "$folder/man/"
    chmod 755 "$folder/$cli"
    pack "$tmp/archive" "$name" | gzip -9n >"$out/$name.tar.gz"
}

main() {
    while (($#)); do
        case $1 in
        --out)
            out=$(realpath -m "${2:?--out needs a folder}")
            shift
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    apt_need "${rootfs_packages[@]}" cmake dpkg-dev
    release_facts
    build=${GPUSHARE_BUILD_DIR:-$root/build}
    [[ -n ${GPUSHARE_BUILD_DIR:-} ]] || build_project "$root" release "${programs[@]}"
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    mkdir -p "$out"
    debian_packages
    cli_archive
    (cd "$out" && ls -- *_"${version}_$arch.deb" "$cli-$version-linux-$arch.tar.gz")
}

main "$@"
