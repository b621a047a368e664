#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Certificates for manifests/overlays/ha-mtls: a CA of its own, the extender's certificate as a
# Secret, and a folder for each control-plane node with kube-scheduler's certificate and its
# configuration. Touches nothing outside its folder; run again, it keeps the CA and renews the rest.
set -euo pipefail
umask 077

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=gpushare-certificates
namespace=gpushare-system
address=""
config=$root/config/kube-scheduler-config-v1.yaml
days=365
ca_days=3650
ca_step=""

usage() {
    cat <<'END'
Usage: scripts/extender_certificates.sh --address IP[:PORT] [--out DIR] [--days N]
           [--namespace NAME] [--config FILE] [--ca-step 1|2|3]

  --address    where kube-scheduler reaches the extender: the Service's cluster IP
                 kubectl -n gpushare-system get service gpushare-extender -o jsonpath='{.spec.clusterIP}'
  --out        folder for what is made (gpushare-certificates)
  --days       how long the two certificates are good (365); the CA: ten years
  --namespace  where the extender runs (gpushare-system)
  --config     kube-scheduler's configuration to start from (config/kube-scheduler-config-v1.yaml)
  --ca-step    another CA, without a moment in which the two sides refuse each other: 1 both are trusted,
               2 the new one signs, 3 the old one is trusted no more; each time everything is brought to
               both sides (docs/operate.md)
END
}

parse() {
    while (($#)); do
        case $1 in
        --address | --out | --days | --namespace | --config)
            printf -v "${1#--}" '%s' "${2:?$1 needs a value}"
            shift
            ;;
        --ca-step)
            ca_step=${2:?--ca-step needs 1, 2 or 3}
            [[ $ca_step == [123] ]] || { usage >&2 && exit 2; }
            shift
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    [[ -n $address ]] || { usage >&2 && exit 2; }
    [[ $address == *:* ]] || address+=:29999
    [[ -f $config ]] || { echo "no file $config" >&2 && exit 1; }
    command -v openssl >/dev/null || { echo "openssl is not installed" >&2 && exit 1; }
}

new_key() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$1"
}

# make_ca NAME: unless it is there. Each has a subject of its own, or chains could not tell two apart.
make_ca() {
    [[ -f $out/$1.key ]] && return
    new_key "$out/$1.key"
    openssl req -x509 -new -sha256 -key "$out/$1.key" -days "$ca_days" \
        -subj "/CN=gpushare-extender-ca-$(openssl rand -hex 4)" \
        -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" \
        -out "$out/$1.crt"
}

# The CA that signs is ca; next-ca does not yet, old-ca not any more. All that are there are trusted.
change_ca() {
    case $ca_step in
    1)
        [[ ! -f $out/old-ca.crt ]] || { echo "finish the last change first: --ca-step 3" >&2 && exit 1; }
        make_ca next-ca
        ;;
    2)
        [[ -f $out/next-ca.crt || -f $out/old-ca.crt ]] || { echo "--ca-step 1 comes first" >&2 && exit 1; }
        [[ -f $out/next-ca.crt ]] || return 0
        mv "$out/ca.crt" "$out/old-ca.crt"
        mv "$out/ca.key" "$out/old-ca.key"
        mv "$out/next-ca.crt" "$out/ca.crt"
        mv "$out/next-ca.key" "$out/ca.key"
        ;;
    3)
        [[ ! -f $out/next-ca.crt ]] || { echo "--ca-step 2 comes first" >&2 && exit 1; }
        rm -f "$out"/old-ca.*
        ;;
    esac
}

# issue FILE COMMON_NAME USAGE [SUBJECT_ALT_NAME]
issue() {
    new_key "$1.key"
    openssl req -new -sha256 -key "$1.key" -subj "/CN=$2" |
        openssl x509 -req -sha256 -CA "$out/ca.crt" -CAkey "$out/ca.key" -days "$days" \
            -set_serial "0x$(openssl rand -hex 16)" -out "$1.crt" -extfile <(
                echo "basicConstraints=critical,CA:FALSE"
                echo "keyUsage=critical,digitalSignature"
                echo "extendedKeyUsage=$3"
                [[ -z ${4:-} ]] || echo "subjectAltName=$4"
            ) 2>/dev/null
}

# A file for "kubectl apply", so that keys appear on no command line.
secret() {
    local file
    cat <<END
apiVersion: v1
kind: Secret
metadata:
  name: gpushare-extender-tls
  namespace: $namespace
type: kubernetes.io/tls
data:
END
    for file in "$out/control-plane/ca.crt" "$out/tls.crt" "$out/tls.key"; do
        printf '  %s: %s\n' "${file##*/}" "$(base64 -w0 "$file")"
    done
}

# serverName: the certificate names the Service, not its address, which may change.
scheduler_config() {
    sed -E -e "s|^( *)(- )?urlPrefix: .*|\1\2urlPrefix: https://$address/gpushare-scheduler|" \
        -e "s|^( *)enableHTTPS: false|\1enableHTTPS: true\n\1tlsConfig:\n\1  serverName: $name\n\1  caFile: /etc/kubernetes/gpushare/ca.crt\n\1  certFile: /etc/kubernetes/gpushare/client.crt\n\1  keyFile: /etc/kubernetes/gpushare/client.key|" \
        "$config"
}

main() {
    parse "$@"
    name=gpushare-extender.$namespace.svc
    mkdir -p "$out/control-plane"
    make_ca ca
    change_ca
    issue "$out/tls" "$name" serverAuth "DNS:$name,DNS:$name.cluster.local,DNS:${name%.svc}"
    issue "$out/control-plane/client" kube-scheduler clientAuth
    cat "$out"/{ca,next-ca,old-ca}.crt >"$out/control-plane/ca.crt" 2>/dev/null || true
    secret >"$out/secret.yaml"
    scheduler_config >"$out/control-plane/kube-scheduler-config.yaml"
    cat <<END
Made in $out. Left to do by hand:
1. kubectl apply -f $out/secret.yaml
2. on each control-plane node: copy $out/control-plane/* to /etc/kubernetes/gpushare/, and let
   kube-scheduler read kube-scheduler-config.yaml there (docs/install.md)
3. keep $out/ca.key where nobody reads it: who has it may schedule. (docs/operate.md: renewal.) Before $days days are over
   run this again; the extender reads a renewed Secret by itself, kube-scheduler needs a restart.
END
}

main "$@"
