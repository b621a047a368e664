#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a small Linux kernel that has the dmem controller, and fakegpu.ko for it, from Debian's kernel
# source, once, into a cache outside the checkout, and prints the folder they are in. No kernel that
# Debian ships ready-made has CONFIG_CGROUP_DMEM.
#
#   tests/kernel/kernel_build.sh                    the newest linux-source-* of $KERNEL_SUITE
#   tests/kernel/kernel_build.sh linux_6.18.tar.xz  another kernel, from a tarball that is here already
#   tests/kernel/kernel_build.sh --cached           prints it only when it is built; exits 1 otherwise
#
#   KERNEL_SUITE   Debian suite whose source is taken (default: trixie-backports)
#   JOBS           compilers at a time (default: the processors)
#
# The compilers run at the lowest priority. The result appears with one rename.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpushare
suite=${KERNEL_SUITE:-trixie-backports}
key=$(cat "$here/kernel.config" "$here/fakegpu.c" | sha256sum | cut -c1-12)
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg
tarball=""
package=""
version=""
work=""

say() {
    echo "kernel_build.sh: $*" >&2
}

# The newest kernel that was built of these files, whatever its version: mirrors keep only the latest.
cached() {
    find "$cache" -maxdepth 1 -name "kernel-*-$key" 2>/dev/null | sort -V | tail -n 1 | grep .
}

# apt with a source list, package lists and an archive folder of its own: the machine's apt sources
# stay as they are, and tell the mirror.
source_apt() {
    local program=$1
    shift
    "$program" -qq -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$work/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$work/apt" \
        -o APT::Sandbox::User=root "$@"
}

find_package() {
    local mirror
    mkdir -p "$work"/apt/{lists,archives}/partial
    # shellcheck disable=SC2016 # apt's own placeholders
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
        awk '$2 == "Debian" && $1 !~ /security/ { print $1; exit }')
    [[ -n $mirror ]] || { say "apt knows no Debian mirror" && return 1; }
    echo "deb [signed-by=$debian_key] $mirror $suite main" >"$work/apt/sources.list"
    source_apt apt-get update >&2
    package=$(source_apt apt-cache search --names-only '^linux-source-[0-9.]+$' | sort -V |
        awk 'END { print $1 }')
    [[ -n $package ]] || { say "$suite has no linux-source" && return 1; }
    version=$(source_apt apt-cache show "$package" | awk '$1 == "Version:" { print $2; exit }')
}

source_tar() {
    if [[ -n $tarball ]]; then
        cat "$tarball"
    else
        dpkg-deb --fsys-tarfile "$work"/*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz'
    fi
}

unpack() {
    mkdir "$work/source" "$work/build"
    [[ -n $tarball ]] || {
        say "fetching $package $version"
        (cd "$work" && source_apt apt-get download "$package=$version" >&2)
    }
    say "unpacking"
    source_tar | tar -xJ -C "$work/source" --strip-components=1 --exclude='*/Documentation/*/*' \
        --exclude='*/tools/testing' --exclude='*/drivers/gpu/drm/amd/include' --exclude='*/arch/*/boot/dts'
    rm -f "$work"/*.deb
}

# Runs a step whose output is only worth reading when it fails.
quietly() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        return 1
    }
}

compiler=gcc
! command -v ccache >/dev/null || compiler="ccache gcc"

kernel_make() {
    nice -n 19 make -s -C "$work/source" O="$work/build" CC="$compiler" -j"${JOBS:-$(nproc)}" "$@"
}

configure() {
    local dropped
    quietly kernel_make tinyconfig
    (cd "$work/source" && quietly scripts/kconfig/merge_config.sh -O "$work/build" -m "$work/build/.config" \
        "$here/kernel.config")
    quietly kernel_make olddefconfig
    dropped=$(grep '=y$' "$here/kernel.config" | grep -vxF -f "$work/build/.config" || true)
    [[ -z $dropped ]] || { say "the kernel dropped $dropped" && return 1; }
}

compile() {
    local started=$SECONDS
    say "compiling $version"
    configure
    quietly kernel_make bzImage modules
    mkdir "$work/module"
    cp "$here/fakegpu.c" "$work/module/"
    echo 'obj-m := fakegpu.o' >"$work/module/Kbuild"
    # The signature of dmem_cgroup_register_region() has changed.
    ! grep -q 'struct dmem_cgroup_init' "$work/source/include/linux/cgroup_dmem.h" ||
        echo 'ccflags-y := -DFAKEGPU_DMEM_INIT' >>"$work/module/Kbuild"
    quietly kernel_make M="$work/module" modules
    say "compiled in $((SECONDS - started)) s"
}

install_result() {
    mkdir "$work/result"
    cp "$work/build/arch/x86/boot/bzImage" "$work/module/fakegpu.ko" "$work/result/"
    cp "$work/build/.config" "$work/result/config"
    mv "$work/result" "$cache/kernel-$version-$key"
}

main() {
    if [[ ${1:-} == --cached ]]; then
        cached
        exit
    fi
    if (($#)); then
        tarball=$(realpath "$1")
        version=$(basename "$tarball" | sed -E 's/\.tar\.[a-z0-9]+$//; s/\.orig$//')
    else
        cached && exit
    fi
    mkdir -p "$cache"
    exec 9>"$cache/.kernel.lock"
    flock 9
    if [[ -z $tarball ]]; then
        cached && exit
    elif [[ -d $cache/kernel-$version-$key ]]; then
        echo "$cache/kernel-$version-$key"
        exit
    fi
    apt_need flex bison bc make gcc libc6-dev libelf-dev xz-utils debian-archive-keyring
    # We hold the lock. Always the same folder: compilers are given its path, and a compiler cache
    # knows them by what they are given.
    work=$cache/.kernel.work
    trap 'rm -rf "$work"' EXIT
    rm -rf "$work"
    mkdir "$work"
    [[ -n $tarball ]] || find_package
    unpack
    compile
    install_result
    echo "$cache/kernel-$version-$key"
}

main "$@"
