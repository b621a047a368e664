#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Container images without a container engine: OCI archives made of the program, the shared
# libraries it loads, Mozilla's CA certificates, and what scanners and lawyers want to see of them.
# The same commit, built with the same Debian packages, gives the same digest in any folder.
#
# Their registry is gpushare.invalid, a name that nobody can ever hold (RFC 2606): whoever forgets the
# import gets an error, and not a stranger's program.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# shellcheck source=scripts/lib/rootfs.sh
. "$root/scripts/lib/rootfs.sh"

# image, program, user, largest size unpacked in MiB
images=(
    "extender       gpushare-extender       65532:65532  25"
    # root, because the kubelet's socket folder belongs to root; no capability is needed
    "device-plugin  gpushare-device-plugin  0:0          40"
    # root, because NVIDIA's daemon serves all users (manifests/mps)
    "mps  gpushare-mps  0:0  25"
    # the page for a team (manifests/web)
    "inspect  kubectl-inspect-gpushare  65532:65532  25"
)
out=$root/build/images
rootfs=""
platform=""
only=()

usage() {
    cat <<'EOF'
Usage: scripts/image.sh [--out DIR] [extender|device-plugin|mps|inspect]...
       scripts/image.sh --platform linux/amd64,linux/arm64 [--out DIR] [IMAGE]...
       scripts/image.sh --rootfs DIR extender|device-plugin|mps|inspect

Writes DIR/IMAGE-VERSION-ARCH.tar (default: build/images), an OCI archive, and prints its image's
digest and size. Import it where a container runtime is:

  ctr -n k8s.io images import FILE           containerd, on each node
  podman load -i FILE; docker load -i FILE
  skopeo copy oci-archive:FILE docker://REGISTRY/NAME:TAG

--platform: for each of these, and for more than one DIR/IMAGE-VERSION.tar besides, an archive with one
index of all, of which every node takes its own ("skopeo copy --all"). On amd64 scripts/cross.sh makes
arm64's: it needs root and minutes.

--rootfs writes no archive, only the files of one image, into the empty folder DIR (images/Dockerfile.*).

  GPUSHARE_BUILD_DIR  folder with the programs, built already (default: build, built now)
  SOURCE_DATE_EPOCH   time of every file and of the image (default: the commit's)
  IMAGE_SOURCE        address of the source, for the label org.opencontainers.image.source
EOF
}

# --- the OCI layout: https://github.com/opencontainers/image-spec ---

# Prints "sha256:DIGEST SIZE"; the file becomes the blob of that name.
add_blob() {
    local layout=$1 file=$2 digest
    digest=$(sha256sum "$file" | cut -d' ' -f1)
    printf 'sha256:%s %s\n' "$digest" "$(stat -c %s "$file")"
    mv "$file" "$layout/blobs/sha256/$digest"
}

labels() {
    local title=$1 described
    case $title in
    gpushare-extender) described="kube-scheduler's extender: shares GPU memory between pods" ;;
    gpushare-mps) described="runs an MPS control daemon for each GPU of its node" ;;
    kubectl-inspect-gpushare) described="who has which GPU's memory; a page of it for a team" ;;
    *) described="node agent: tells the kubelet how much GPU memory there is; runs as root, because \
the kubelet's socket folder belongs to root" ;;
    esac
    jq -n --arg title "$title" --arg description "$described" --arg version "$version" \
        --arg revision "$revision" --arg created "$created" --arg source "${IMAGE_SOURCE:-}" '{
        "org.opencontainers.image.title": $title,
        "org.opencontainers.image.description": $description,
        "org.opencontainers.image.version": $version,
        "org.opencontainers.image.revision": $revision,
        "org.opencontainers.image.created": $created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.vendor": "gpushare"
    } + (if $source == "" then {} else {"org.opencontainers.image.source": $source} end)'
}

# NVIDIA's container runtime gives the plugin and gpushare-mps every GPU of the node and the driver's
# management library, which is loaded by name; depending on the host the runtime puts it into one of these
# folders.
environment() {
    echo 'PATH=/usr/bin'
    [[ $1 == gpushare-device-plugin || $1 == gpushare-mps ]] || return 0
    echo 'NVIDIA_VISIBLE_DEVICES=all'
    [[ $1 == gpushare-mps ]] && echo 'NVIDIA_DRIVER_CAPABILITIES=compute,utility' ||
        echo 'NVIDIA_DRIVER_CAPABILITIES=utility'
    echo "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib64:/usr/lib/$multiarch"
}

image_config() {
    local title=$1 user=$2 diff_id=$3
    jq -cSn --arg arch "$arch" --arg created "$created" --arg user "$user" --arg diff_id "$diff_id" \
        --arg entrypoint "/usr/bin/$title" --argjson labels "$(labels "$title")" \
        --arg env "$(environment "$title")" '{
        architecture: $arch, os: "linux", created: $created,
        config: {User: $user, WorkingDir: "/", Entrypoint: [$entrypoint],
                 Env: ($env | split("\n")), Labels: $labels},
        rootfs: {type: "layers", diff_ids: [$diff_id]},
        history: [{created: $created, created_by: "scripts/image.sh"}]}'
}

image_manifest() {
    local config=$1 layer=$2 labels=$3
    jq -cSn --arg config "$config" --arg layer "$layer" --argjson labels "$labels" '
        def blob($type; $said): ($said | split(" ")) as $w
            | {mediaType: $type, digest: $w[0], size: ($w[1] | tonumber)};
        {schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
         config: blob("application/vnd.oci.image.config.v1+json"; $config),
         layers: [blob("application/vnd.oci.image.layer.v1.tar+gzip"; $layer)],
         annotations: $labels}'
}

# containerd takes the name from its own annotation, podman and skopeo from the standard one.
image_index() {
    local manifest=$1 title=$2
    jq -cSn --arg manifest "$manifest" --arg name "gpushare.invalid/$title:$version" \
        --arg version "$version" --arg arch "$arch" '($manifest | split(" ")) as $w |
        {schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
         manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json",
                      digest: $w[0], size: ($w[1] | tonumber),
                      platform: {architecture: $arch, os: "linux"},
                      annotations: {"org.opencontainers.image.ref.name": $version,
                                    "io.containerd.image.name": $name}}]}'
}

# What "docker load" of engines that do not know OCI layouts reads.
docker_manifest() {
    local title=$1 config=$2 layer=$3
    jq -cSn --arg config "$config" --arg layer "$layer" --arg tag "gpushare.invalid/$title:$version" '
        def path($said): "blobs/" + ($said | split(" ")[0] | sub(":"; "/"));
        [{Config: path($config), Layers: [path($layer)], RepoTags: [$tag]}]'
}

# --- one image ---

make_layout() {
    local title=$1 user=$2 work=$3 layout=$3/layout diff_id layer config manifest
    mkdir -p "$layout/blobs/sha256"
    pack "$work/rootfs" . >"$work/layer.tar"
    diff_id=sha256:$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
    gzip -9n "$work/layer.tar"
    layer=$(add_blob "$layout" "$work/layer.tar.gz")
    image_config "$title" "$user" "$diff_id" >"$work/config.json"
    config=$(add_blob "$layout" "$work/config.json")
    image_manifest "$config" "$layer" "$(labels "$title")" >"$work/manifest"
    manifest=$(add_blob "$layout" "$work/manifest")
    image_index "$manifest" "$title" >"$layout/index.json"
    docker_manifest "$title" "$config" "$layer" >"$layout/manifest.json"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
    find "$layout" -type d -exec chmod 755 {} +
    find "$layout" -type f -exec chmod 644 {} +
    echo "${manifest%% *}"
}

make_image() {
    local name=$1 program=$2 user=$3 most_mib=$4 work=$tmp/$1 file bytes digest
    if [[ -n $rootfs ]]; then
        fill_rootfs "$build/$program" "$rootfs"
        return
    fi
    file=$out/gpushare-$name-$version-$arch.tar
    mkdir -p "$work/rootfs" "$out"
    fill_rootfs "$build/$program" "$work/rootfs"
    bytes=$(find "$work/rootfs" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
    if ((bytes > most_mib << 20)); then
        echo "image.sh: $program needs $bytes bytes unpacked, more than $most_mib MiB" >&2
        return 1
    fi
    digest=$(make_layout "$program" "$user" "$work")
    # index.json first: readers that stream need not keep the blobs before they know what they are
    pack "$work/layout" oci-layout index.json manifest.json blobs >"$file.part"
    mv "$file.part" "$file"
    printf 'gpushare.invalid/%s:%s %s %s (%s MiB unpacked)\n' "$program" "$version" "$digest" \
        "${file#"$PWD"/}" "$(awk -v b="$bytes" 'BEGIN { printf "%.1f", b / 1048576 }')"
}

# --- several platforms in one archive ---

# The index of the images whose layouts were unpacked into these folders, as their own indexes name them.
joined_index() {
    local layout
    for layout in "$@"; do
        jq '.manifests[0] | del(.annotations)' "$layout/index.json"
    done | jq -cSs '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: .}'
}

# An index of an index: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
join_platforms() {
    local name=$1 work=$tmp/joined-$1 file=$out/gpushare-$1-$version.tar one architecture index
    local -a layouts=()
    mkdir -p "$work/whole/blobs/sha256"
    for one in ${platform//,/ }; do
        architecture=${one#linux/}
        mkdir "$work/$architecture"
        tar -C "$work/$architecture" -xf "$out/gpushare-$name-$version-$architecture.tar"
        cp "$work/$architecture"/blobs/sha256/* "$work/whole/blobs/sha256/"
        layouts+=("$work/$architecture")
    done
    cp "${layouts[0]}/oci-layout" "$work/whole/"
    joined_index "${layouts[@]}" >"$work/index"
    index=$(add_blob "$work/whole" "$work/index")
    jq -cS --arg index "$index" '($index | split(" ")) as $w | .manifests = [{
        mediaType: "application/vnd.oci.image.index.v1+json", digest: $w[0], size: ($w[1] | tonumber),
        annotations: .manifests[0].annotations}]' "${layouts[0]}/index.json" >"$work/whole/index.json"
    chmod -R u=rwX,go=rX "$work/whole"
    pack "$work/whole" oci-layout index.json blobs >"$file.part"
    mv "$file.part" "$file"
    printf '%s %s %s (%s)\n' "$(jq -r '.manifests[0].annotations["io.containerd.image.name"]' \
        "$work/whole/index.json")" "${index%% *}" "${file#"$PWD"/}" "$platform"
}

# Those of the other architecture are made in a Debian of their own.
make_others() {
    local one
    for one in ${platform//,/ }; do
        case $one in
        "linux/$arch") ;;
        linux/arm64) "$root/scripts/cross.sh" --images "$out" "${only[@]}" ;;
        *) echo "image.sh: $one cannot be made on $arch" >&2 && return 2 ;;
        esac
    done
}

# --- all ---

parse() {
    while (($#)); do
        case $1 in
        --out | --rootfs)
            printf -v "${1#--}" '%s' "$(realpath -m "${2:?$1 needs a folder}")"
            shift
            ;;
        --platform)
            platform=${2:?--platform needs a list}
            shift
            ;;
        --help | -h) usage && exit 0 ;;
        *)
            printf '%s\n' "${images[@]}" | grep -q "^$1 " || { usage >&2 && exit 2; }
            only+=("$1")
            ;;
        esac
        shift
    done
    [[ -z $rootfs || ${#only[@]} == 1 ]] || { usage >&2 && exit 2; }
    ((${#only[@]})) || mapfile -t only < <(printf '%s\n' "${images[@]}" | cut -d' ' -f1)
}

main() {
    local row name program user most_mib
    parse "$@"
    apt_need "${rootfs_packages[@]}"
    release_facts
    build=${GPUSHARE_BUILD_DIR:-$root/build}
    [[ -n ${GPUSHARE_BUILD_DIR:-} ]] ||
        build_project "$root" release gpushare-extender gpushare-device-plugin gpushare-mps \
            kubectl-inspect-gpushare
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    for row in "${images[@]}"; do
        read -r name program user most_mib <<<"$row"
        [[ ",${platform:-linux/$arch}," == *",linux/$arch,"* && " ${only[*]} " == *" $name "* ]] || continue
        make_image "$name" "$program" "$user" "$most_mib"
    done
    make_others
    [[ $platform != *,* ]] || for name in "${only[@]}"; do join_platforms "$name"; done
}

main "$@"
