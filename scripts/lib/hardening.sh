# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by check.sh: what the compiler and the linker were asked for is in the programs. Looks at
# the programs themselves, not at the build's files.
#
#   softness_of build/gpushare-extender        one line per thing that is missing

# Options of cmake/Flags.cmake that leave no other trace than in each object's debug information.
# FORTIFY is a macro, and leaves calls.
hardening_options=(
    -fPIE -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero
)
[[ $(uname -m) == x86_64 ]] && hardening_options+=(-fcf-protection=full)

softness_of() {
    local program=$1 header dynamic symbols objects option without
    header=$(readelf -hlW "$program")
    dynamic=$(readelf -dW "$program")
    symbols=$(readelf --dyn-syms -W "$program")
    objects=$(readelf --debug-dump=info --dwarf-depth=1 "$program" 2>/dev/null |
        grep DW_AT_producer) || echo "no debug information: nothing is known about the options"
    grep -qE '^ *Type: +DYN' <<<"$header" && grep -qE 'FLAGS_1.* PIE' <<<"$dynamic" ||
        echo "not position independent"
    grep -q GNU_RELRO <<<"$header" || echo "no RELRO"
    grep -qE '\(FLAGS\) .*BIND_NOW' <<<"$dynamic" || echo "RELRO is not full: no BIND_NOW"
    grep -qE 'GNU_STACK .* RW +0x' <<<"$header" || echo "the stack is executable"
    ! grep -qE '^ *LOAD .* RWE +0x' <<<"$header" || echo "a segment is writable and executable"
    ! grep -qE 'RPATH|RUNPATH' <<<"$dynamic" || echo "libraries are searched in a folder of its own"
    ! grep -q TEXTREL <<<"$dynamic" || echo "relocations in the code"
    grep -q ' __stack_chk_fail' <<<"$symbols" || echo "no stack protector"
    grep -qE ' __(memcpy|vsnprintf|snprintf)_chk' <<<"$symbols" || echo "nothing is fortified"
    grep -q 'Build ID' <<<"$(readelf -nW "$program")" || echo "no build id"
    for option in "${hardening_options[@]}"; do
        without=$(grep -cvF -- " $option" <<<"$objects") || true
        ((without == 0)) || echo "$without objects were compiled without $option"
    done
}
