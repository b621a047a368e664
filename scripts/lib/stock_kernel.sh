# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced after apt.sh: a kernel as it is installed everywhere; nothing is installed.
#
#   stock_kernel DIR        DIR/bzImage, and its modules in DIR/lib/modules

stock_kernel() {
    local dir=$1 package
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        awk '$1 == "Depends:" { print $2; exit }')
    [[ -n $package ]] || {
        apt_update
        package=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')
    }
    apt_extract "$package" "$dir"
    mv "$dir"/boot/vmlinuz-* "$dir/bzImage"
}
