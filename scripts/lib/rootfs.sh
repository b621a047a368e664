# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # facts for the scripts, and $root is theirs
#
# Sourced after apt.sh by what makes images and archives: a program with all that it loads, so that it
# runs on any Linux of its architecture.
#
#   release_facts                           version, revision, epoch, created, arch, multiarch
#   fill_rootfs build/PROGRAM DIR           program, libraries, certificates, licences, SPDX document
#   pack DIR . >FILE                        a tar archive that depends on names, modes and contents alone

rootfs_packages=(binutils ca-certificates gcc git jq)

# Debian's and OCI's names of architectures agree on amd64 and arm64.
release_facts() {
    local changed=""
    version=$(sed -nE 's/^project\(gpushare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    revision=${GPUSHARE_REVISION:-$(git -C "$root" rev-parse HEAD 2>/dev/null)} || revision=unknown
    [[ $revision == unknown || -n ${GPUSHARE_REVISION:-} ]] || changed=$(git -C "$root" status --porcelain)
    revision+=${changed:+-changed}
    epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
    created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
    arch=$(dpkg --print-architecture)
    multiarch=$(gcc -print-multiarch)
}

# The path of every shared object that the program loads, the dynamic linker included.
libraries_of() {
    ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' | sort -u
}

# The linker stays where programs ask for it, the rest goes to its first search folder. Debian's
# packages are stripped already; our programs keep their debug information in the build folder.
fill_rootfs() {
    local program=$1 rootfs=$2 library to
    mkdir -p "$rootfs/usr/bin" "$rootfs/usr/lib/$multiarch" "$rootfs/etc/ssl/certs"
    strip --strip-all -o "$rootfs/usr/bin/${program##*/}" "$program"
    while read -r library; do
        to=$rootfs/usr/lib/$multiarch/${library##*/}
        [[ $library == */ld-linux* ]] && to=$rootfs$library
        install -D -m 755 "$library" "$to"
    done < <(libraries_of "$program")
    # as the package ships them: /etc/ssl/certs may hold what only this machine trusts
    cat /usr/share/ca-certificates/mozilla/*.crt >"$rootfs/etc/ssl/certs/ca-certificates.crt"
    add_papers "${program##*/}" "$rootfs"
    find "$rootfs" -type d -exec chmod 755 {} +
    chmod 755 "$rootfs"/usr/bin/*
    chmod 644 "$rootfs"/etc/ssl/certs/*
}

# What it is made of: our licence and an SPDX document; each Debian package's entry of dpkg, one file
# each as in distroless images, where scanners look; each one's copyright file, and the licences that
# those refer to.
add_papers() {
    local program=$1 rootfs=$2 doc=$2/usr/share/doc status=$2/var/lib/dpkg/status.d packages package text
    mkdir -p "$doc/gpushare" "$status"
    install -m 644 "$root/LICENSE" "$doc/gpushare/LICENSE"
    GPUSHARE_BUILD_DIR=$rootfs/usr/bin SOURCE_DATE_EPOCH=$epoch "$root/scripts/sbom.sh" \
        --image "$program" --out "$doc/gpushare/sbom.spdx.json"
    mapfile -t packages < <(jq -r '.packages[] | select(.supplier == "Organization: Debian").name' \
        "$doc/gpushare/sbom.spdx.json")
    for package in "${packages[@]}"; do
        # headers that were compiled in are no package of the image
        [[ $package == *-dev ]] || dpkg-query -s "$package" >"$status/$package"
        install -D -m 644 "/usr/share/doc/$package/copyright" "$doc/$package/copyright"
    done
    grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$doc" | sort -u |
        while read -r text; do install -D -m 644 "$text" "$rootfs$text"; done
    install -m 644 /usr/lib/os-release "$rootfs/etc/os-release"
    find "$rootfs/usr/share" "$rootfs/var" -type f -exec chmod 644 {} +
    newer_at_hand "${packages[@]}"
}

# What is bundled is as old as the builder's packages: as far as its package lists know, and they can be
# old, or not there at all.
newer_at_hand() {
    local lists
    eval "$(apt-config shell lists Dir::State::lists/d)"
    [[ -n $(find "$lists" -maxdepth 1 -name '*_Packages*' -mtime -7 2>/dev/null) ]] ||
        echo "${0##*/}: warning: the package lists are missing or older than a week: whether" \
            "libraries have fixes is not known (apt-get update)" >&2
    apt-cache policy "$@" 2>/dev/null | awk -v script="${0##*/}" '
        /^[^ ]/ { sub(/:$/, ""); package = $0 }
        $1 == "Installed:" { have = $2 }
        $1 == "Candidate:" && $2 != have && $2 != "(none)" {
            print script ": warning: " package " " have " is bundled, " $2 \
                " is at hand (apt-get upgrade)" }' >&2
}

pack() {
    tar --create --directory "$1" --format=ustar --sort=name --mtime="@$epoch" \
        --owner=0 --group=0 --numeric-owner "${@:2}"
}
