# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced: programs for a machine that has neither compiler nor network.
#
#   carry PROGRAM DIR    DIR/bin/NAME runs it by the loader and with the libraries that lie in DIR/lib,
#                        since the other machine's C library may be older

carry_libraries() {
    local library
    while read -r library; do
        cp -nL "$library" "$2/lib/"
    done < <(ldd "$1" | grep -o '/[^ ]*')
}

carry() {
    local name=${1##*/} dir=$2
    mkdir -p "$dir/bin" "$dir/lib" || return
    cp -L "$1" "$dir/lib/$name" || return
    carry_libraries "$1" "$dir"
    cat >"$dir/bin/$name" <<EOT
#!/bin/sh
lib=\$(dirname "\$0")/../lib
exec "\$lib"/ld-linux-*.so.* --library-path "\$lib" "\$lib/$name" "\$@"
EOT
    chmod +x "$dir/bin/$name"
}
