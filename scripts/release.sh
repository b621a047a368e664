#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that a release consists of, in one folder: source, images, packages, the chart, the CLI's
# archive with a manifest for krew, SPDX documents, the release's notes, checksums of all, and the
# commands that publish it. Uploads nothing and tags nothing itself.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/rootfs.sh
. "$root/scripts/lib/rootfs.sh"
# shellcheck source=scripts/lib/security_pocket.sh
. "$root/scripts/lib/security_pocket.sh"

out=$root/build/release
url=https://gpushare.invalid/releases
registry=registry.example.com
platform=""
draft=no
cli=kubectl-inspect-gpushare

usage() {
    cat <<'EOF'
Usage: scripts/release.sh [--draft] [--platform LIST] [--url ADDRESS] [--registry NAME] [--out DIR]

Writes DIR (default: build/release, emptied first):

  gpushare-VERSION.tar.gz                             the source
  gpushare-{extender,device-plugin,mps,inspect}-VERSION-ARCH.tar  images, OCI layouts (scripts/image.sh)
  gpushare-IMAGE-VERSION.tar                          with --platform: one index of both architectures
  PROGRAM_VERSION_ARCH.deb                            packages (scripts/package.sh)
  kubectl-inspect-gpushare-VERSION-linux-ARCH.tar.gz  the CLI for any Linux
  inspect-gpushare.yaml                               krew's manifest of it
  gpushare-chart-VERSION.tgz                          the Helm chart
  sbom.spdx.json, PROGRAM.spdx.json                   of the programs, and of the image of each
  gpushare-dashboard.json                             the dashboard as grafana.com takes it
  publish.sh                                          pushes images and chart, and signs them
  NOTES.md, PUBLISH.txt, SHA256SUMS                   the second has the three commands that are left

--platform linux/amd64,linux/arm64: images, packages and archive of both (on amd64 scripts/cross.sh makes
           arm64's: it needs root and minutes)
--url      where the files will lie, in ADDRESS/vVERSION/; krew's manifest names it
--registry where publish.sh puts images and chart, and the chart finds its images
--draft    also from a changed tree, without a date in CHANGELOG.md, and where Debian has corrections
           of what is linked and bundled that this machine lacks

  GPUSHARE_BUILD_DIR  a configured build folder with the programs, built already (default: build)
  SOURCE_DATE_EPOCH   time of every file (default: the commit's)
EOF
}

# --- may it be released ---

# The section of CHANGELOG.md, without its heading.
notes() {
    awk -v heading="## $version " 'index($0 " ", heading) == 1 { on = 1; next } /^## / { on = 0 } on' \
        "$root/CHANGELOG.md" | sed -e '/./,$!d'
}

obstacles() {
    local heading tagged chart
    heading=$(grep -m 1 '^## ' "$root/CHANGELOG.md")
    [[ $heading =~ ^"## $version ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] ||
        echo "CHANGELOG.md begins with \"$heading\", not with \"## $version (YYYY-MM-DD)\""
    [[ $revision =~ ^[0-9a-f]{40}$ ]] || echo "the tree is not what is committed"
    chart=$(sed -nE 's/^(version|appVersion): //p' "$root/manifests/chart/Chart.yaml" | sort -u)
    [[ $chart == "$version" ]] || echo "manifests/chart/Chart.yaml has the version ${chart//$'\n'/, }"
    tagged=$(git -C "$root" rev-parse -q --verify "v$version^{commit}") || tagged=$revision
    [[ $tagged == "$revision" || $draft == yes ]] || echo "the tag v$version is another commit"
    [[ -n $(notes) ]] || echo "CHANGELOG.md says nothing of $version"
}

# What is linked and bundled is as old as this machine's packages.
uncorrected() {
    "$root/scripts/sbom.sh" --out "$tmp/linked.json"
    "$root/scripts/sbom.sh" --image "${programs[0]}" --out "$tmp/bundled.json"
    [[ $draft == yes ]] || apt_update
    newer_in_security_pocket "$tmp/linked.json" "$tmp/bundled.json"
}

complain() {
    printf 'release.sh: %s\n' "${1//$'\n'/$'\n'release.sh: }" >&2
    [[ $draft == yes ]] || exit 1
}

# --- what it consists of ---

# Untracked files are nobody's release; of a draft the tree as it is.
source_archive() {
    local name=gpushare-$version
    mkdir "$tmp/$name"
    git -C "$root" ls-files -z | tar -C "$root" --null --ignore-failed-read -T - -cf - 2>/dev/null |
        tar -C "$tmp/$name" -xf -
    chmod -R u=rwX,go=rX "$tmp/$name"
    pack "$tmp" "$name" | gzip -9n >"$out/$name.tar.gz"
}

# As "helm package" does: the chart's folder under its name, links followed; its images are those of the registry.
chart_archive() {
    mkdir "$tmp/chart"
    cp -rL "$root/manifests/chart" "$tmp/chart/gpushare"
    sed -i "s|repository: gpushare.invalid$|repository: $registry|" "$tmp/chart/gpushare/values.yaml"
    sed -i "s|image: gpushare.invalid/|image: $registry/|" "$tmp/chart/gpushare/Chart.yaml"
    chmod -R u=rwX,go=rX "$tmp/chart"
    pack "$tmp/chart" gpushare | gzip -9n >"$out/gpushare-chart-$version.tgz"
}

# https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
krew_manifest() {
    local archive name platform
    cat <<YAML
# SPDX-License-Identifier: Apache-2.0
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: inspect-gpushare
spec:
  version: v$version
  homepage: ${url%/releases}
  shortDescription: Who has which GPU's memory, and why a pod waits
  description: |
    For clusters that share GPUs by memory with gpushare: tables of nodes, GPUs and pods, the reason
    why a pod is not placed, what would fit, and a check of the installation.
  caveats: |
    Installed by krew, it is called "kubectl inspect-gpushare".
  platforms:
YAML
    for archive in "$out/$cli-$version"-linux-*.tar.gz; do
        name=${archive##*/}
        platform=${name##*-}
        cat <<YAML
  - selector:
      matchLabels:
        os: linux
        arch: ${platform%.tar.gz}
    uri: $url/v$version/$name
    sha256: $(sha256sum <"$archive" | cut -d' ' -f1)
    files:
    - from: ${name%.tar.gz}/*
      to: .
    bin: $cli
YAML
    done
}

sboms() {
    local program
    "$root/scripts/sbom.sh" --out "$out/sbom.spdx.json"
    for program in gpushare-extender gpushare-device-plugin gpushare-mps "$cli"; do
        "$root/scripts/sbom.sh" --image "$program" --out "$out/$program.spdx.json"
    done
}

checksums() {
    (cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | sort |
        xargs sha256sum) >"$tmp/sums"
    mv "$tmp/sums" "$out/SHA256SUMS"
}

# An image's archive of all platforms, where there is one.
image_to_copy() {
    local image=$1 joined=gpushare-$1-$version.tar
    [[ -f $out/$joined ]] && echo "$joined" || echo "gpushare-$image-$version-$arch.tar"
}

# Each image by its archive and its name, and the chart.
publish_script() {
    local image program
    cat <<EOF
#!/bin/sh
# Pushes the images and the chart to $registry, and signs them where COSIGN_KEY names a key.
#   ./publish.sh [--plain-http]     of a registry without TLS
set -eu
cd "\$(dirname "\$0")"
copies= pushes= signs=
[ "\${1:-}" != --plain-http ] ||
    { copies=--dest-tls-verify=false pushes=--plain-http signs=--allow-http-registry; }
sign() {
    [ -z "\${COSIGN_KEY:-}" ] || cosign sign --yes --key "\$COSIGN_KEY" \$signs "$registry/\$1@\$2"
}
push() {
    digest=\$(mktemp)
    skopeo copy --all \$copies --digestfile "\$digest" "oci-archive:\$1" "docker://$registry/\$2:$version"
    sign "\$2" "\$(cat "\$digest")"
    rm "\$digest"
}
EOF
    while read -r image program; do
        echo "push $(image_to_copy "$image") $program"
    done <<'EOF'
extender gpushare-extender
device-plugin gpushare-device-plugin
mps gpushare-mps
inspect kubectl-inspect-gpushare
EOF
    cat <<EOF
pushed=\$(helm push gpushare-chart-$version.tgz oci://$registry/charts \$pushes 2>&1) || { echo "\$pushed" >&2; exit 1; }
echo "\$pushed"
sign charts/gpushare "\$(echo "\$pushed" | sed -n 's/^Digest: //p')"
EOF
}

publishing() {
    cat <<EOF
# in this folder, in this order; the files may also lie in $url/v$version/ without GitHub
./publish.sh                                                # COSIGN_KEY=FILE before it signs, too
gpg --detach-sign --armor SHA256SUMS && git -C SOURCE tag -s v$version $revision && git -C SOURCE push origin v$version
gh release create v$version --verify-tag --notes-file NOTES.md *
# then, by a pull request: inspect-gpushare.yaml to krew-index's plugins/; by upload: gpushare-dashboard.json to grafana.com
EOF
}

# As grafana.com wants it: whoever imports it is asked for the data source.
dashboard() {
    jq '{__inputs: [{name: "DS_PROMETHEUS", label: "Prometheus", type: "datasource", pluginId: "prometheus",
                     pluginName: "Prometheus"}],
         __requires: [{type: "grafana", id: "grafana", name: "Grafana", version: "9.0.0"},
                      {type: "datasource", id: "prometheus", name: "Prometheus", version: "1.0.0"}],
         id: null} + . | .templating.list |= map(select(.name != "datasource"))' \
        "$root/manifests/monitoring/dashboard.json" | sed "s/\${datasource}/\${DS_PROMETHEUS}/g"
}

parse() {
    while (($#)); do
        case $1 in
        --draft) draft=yes ;;
        --url)
            url=${2:?--url needs an address}
            shift
            ;;
        --registry | --platform)
            printf -v "${1#--}" '%s' "${2:?$1 needs a value}"
            shift
            ;;
        --out)
            out=$(realpath -m "${2:?--out needs a folder}")
            shift
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
}

main() {
    local why
    parse "$@"
    apt_need "${rootfs_packages[@]}" cmake dpkg-dev
    release_facts
    why=$(obstacles)
    [[ -z $why || $draft == yes ]] || complain "$why"
    export GPUSHARE_BUILD_DIR=${GPUSHARE_BUILD_DIR:-}
    if [[ -z $GPUSHARE_BUILD_DIR ]]; then
        build_project "$root" release "${programs[@]}"
        GPUSHARE_BUILD_DIR=$root/build
    fi
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    why=$(uncorrected)
    [[ -z $why ]] || complain "$why"
    mkdir -p "$out"
    find "$out" -maxdepth 1 -type f -delete
    source_archive
    chart_archive
    "$root/scripts/image.sh" ${platform:+--platform "$platform"} --out "$out"
    "$root/scripts/package.sh" --out "$out"
    [[ $arch == arm64 || $platform != *arm64* ]] || "$root/scripts/cross.sh" --out "$out"
    sboms
    notes >"$out/NOTES.md"
    krew_manifest >"$out/inspect-gpushare.yaml"
    dashboard >"$out/gpushare-dashboard.json"
    publish_script >"$out/publish.sh"
    chmod +x "$out/publish.sh"
    publishing >"$out/PUBLISH.txt"
    checksums
    echo "$(wc -l <"$out/SHA256SUMS") files of $version in ${out#"$PWD"/}; nothing is published yet:"
    sed 's/^/  /' "$out/PUBLISH.txt"
}

main "$@"
