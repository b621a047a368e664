#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The limiter (src/lib/limit) on a real Linux kernel with the dmem controller, without a GPU: QEMU boots a
# small kernel whose only "GPUs" are those of a stand-in driver, and tests/kernel/checks.c as process 1.
# Works without KVM and without root, once the packages are there. Installs and builds what is missing.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kernel_tests=$root/tests/kernel
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/stock_kernel.sh
. "$root/scripts/lib/stock_kernel.sh"

# One boot each: the chapter, and what the kernel is told.
boots=(all "none cgroup_disable=dmem" hybrid)
accel=${KERNEL_ACCEL:-tcg}
boot_limit_s=600
kernel=""
work=""

usage() {
    cat <<'EOT'
Usage: scripts/kernel.sh [--stock | --source TARBALL]
       scripts/kernel.sh --cached

  --stock           on Debian's own kernel, which has no dmem: the hosts that cannot limit, and how
                    pods are noticed. Compiles no kernel
  --source TARBALL  on the kernel of this source (linux-*.tar.xz) instead of Debian's current one:
                    before 7.3 a limit below what is in use is accepted and ignored
  --cached          exits 0 when the kernel is built already; otherwise says what it would take

  KERNEL_ACCEL   tcg (the default) or kvm
  KERNEL_SUITE   Debian suite of the kernel's source (default: trixie-backports)
  JOBS           compilers at a time

The first run compiles a kernel: some 8 minutes of CPU time at the lowest priority, 170 MB fetched,
1.6 GB of disk meanwhile. It is kept in ${XDG_CACHE_HOME:-~/.cache}/gpushare.
EOT
}

# Only what the limiter needs, linked statically: the machine has no other file.
build_checks() {
    gcc -std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -Wno-unused-parameter \
        -Wno-missing-field-initializers -Werror -static -I"$root/include" -I"$root/src/lib" -o "$work/checks" \
        "$kernel_tests"/{check*,tree,user}.c "$root"/src/lib/{limit,base}/*.c \
        "$root/src/lib/model/enforced.c"
    local -a files=("$work/checks:init")
    [[ ! -e $kernel/fakegpu.ko ]] || files+=("$kernel/fakegpu.ko:fakegpu.ko")
    python3 "$kernel_tests/initramfs.py" "$work/initramfs" "${files[@]}"
}

# microvm has no ACPI: panic=-1 and reboot=t with -no-reboot make the machine end when process 1 does.
boot() {
    local chapter=$1 arguments=${2:-} cpu=max
    [[ $accel == tcg ]] || cpu=host
    timeout "$boot_limit_s" qemu-system-x86_64 -M microvm,acpi=off -accel "$accel" -cpu "$cpu" -m 1024 \
        -nodefaults -display none -no-reboot -serial stdio -kernel "$kernel/bzImage" \
        -initrd "$work/initramfs" \
        -append "console=ttyS0 panic=-1 reboot=t quiet $arguments $chapter" | tr -d '\r'
}

run_boots() {
    local words started failed=0
    for words in "${boots[@]}"; do
        started=$SECONDS
        # shellcheck disable=SC2086 # the chapter and the kernel's argument
        boot $words | tee "$work/log" || true
        grep -q '^RESULT PASS' "$work/log" || failed=1
        echo "---- $words: $((SECONDS - started)) s with $accel"
    done
    return "$failed"
}

main() {
    local -a source=()
    local stock=0
    while (($#)); do
        case $1 in
        --stock) stock=1 ;;
        --source) source=("$2") && shift ;;
        --cached)
            "$kernel_tests/kernel_build.sh" --cached >/dev/null && exit 0
            echo "the kernel would have to be compiled first (some 8 minutes of CPU time)"
            exit 1
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    apt_need qemu-system-x86 gcc libc6-dev python3
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if ((stock)); then
        kernel=$work/stock
        stock_kernel "$kernel"
        boots=(none hybrid)
    else
        kernel=$("$kernel_tests/kernel_build.sh" "${source[@]}")
    fi
    build_checks
    echo "kernel: $kernel"
    run_boots || { echo "kernel.sh: FAILED" && exit 1; }
    echo "kernel.sh: all passed in $SECONDS s"
}

main "$@"
