# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by check.sh: rules about the source text that no compiler checks. Each function prints
# one line per violation ("file:line: words") and fails when there is one. They run in the root of
# the checkout, without pipefail: a grep that finds nothing is good news.

# Every file of the project below the given folders whose name matches one of the patterns; build
# folders and caches are none of it.
files_of() {
    local folders=() patterns=() pattern
    while [[ $1 != -- ]]; do
        [[ -e $1 ]] && folders+=("$1")
        shift
    done
    shift
    for pattern in "$@"; do
        patterns+=(-o -name "$pattern")
    done
    ((${#folders[@]} == 0)) ||
        find "${folders[@]}" -name '.git' -prune -o -name 'build*' -type d -prune -o \
            -name __pycache__ -prune -o -type f \( "${patterns[@]:1}" \) -print | LC_ALL=C sort
}

c_files() {
    files_of src include tools tests -- '*.c' '*.h'
}

# Without tests.
code_files() {
    files_of src include tools -- '*.c' '*.h' | grep -v '^tools/[a-z]*/tests/'
}

# Fails when it is given a line; passes all on.
no_line() {
    ! grep .
}

rule_banned() {
    local calls='atoi|atol|atoll|atof|strtol|strtoll|strtoul|strtoull|sprintf|vsprintf|strcpy|strcat'
    calls+='|strncat|stpcpy|scanf|sscanf|fscanf|alloca|system|popen|gets|strtok|tmpnam|mktemp'
    # a call, not a part of another name, not a member, not inside a comment line
    code_files | xargs grep -nE "(^|[^A-Za-z0-9_.>\"])($calls)[[:space:]]*\\(" |
        grep -vE '^[^:]+:[0-9]+:[[:space:]]*/?\*' | no_line
}

# Which layers a layer may include follows from the lines of cmake/Layers.cmake that decide what
# it links: set(GS_MAY_core base model core); of a program, set(GS_OF_mps base model)
rule_layers() {
    local layer allowed file
    sed -nE 's/^set\(GS_(MAY|OF)_([a-z_]+) +([a-z ]+)\).*/\2 \3/p' cmake/Layers.cmake |
        while read -r layer allowed; do
        allowed=${allowed// /|}
        files_of "src/$layer" src/*/"$layer" "include/gpushare/$layer" "tools/$layer" -- '*.c' '*.h' |
            xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"gpushare/' |
            grep -vE "\"gpushare/($allowed)/" | sed 's/$/   (goes against the layers)/'
    done | no_line || return 1
    # private headers: of the own folder only
    for file in $(code_files); do
        grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file" | grep -v '"gpushare/' |
            while IFS='"' read -r where name _; do
                [[ $name != *..* ]] && private_header_exists "$file" "$name" && continue
                echo "$where\"$name\"   (not a header of its own folder)"
            done
    done | no_line || return 1
    python3 scripts/lib/headers.py .
}

# Programs may also use the headers that programs share and those of their own layers, and protobuf-c
# puts its own beside the build.
private_header_exists() {
    local dir
    dir=$(dirname "$1")
    [[ -f $dir/$2 || $2 == *.pb-c.h ]] || [[ $2 == common/* && $dir != src/lib/[!c]* && -f src/lib/$2 ]] ||
        [[ $dir == src/${2%%/*} && -f src/$2 ]]
}

# Foreign headers and the layers where they may appear (docs/architecture.md); "programs": beside a main.c, or in
# src/lib/common.
foreign_headers=(
    'jansson.h            codec apiserver kube programs'
    'yaml.h               codec'
    'curl/.*              kube'
    'microhttpd.h         http'
    'gnutls/.*            http programs'
    'nghttp2/.*           grpc'
    'protobuf-c/.*        grpc'
    'libsmartcols/.*      programs'
    'argp.h               programs'
    'uthash.h             codec service allocate apiserver kube grpc nvml programs'
    'utlist.h             codec service allocate apiserver kube grpc nvml programs'
    'dlfcn.h              nvml'
    'emmintrin.h          codec'
)

rule_foreign() {
    local row header layers pattern known="gpushare/.*"
    for row in "${foreign_headers[@]}"; do
        known+="|${row%% *}"
    done
    for row in "${foreign_headers[@]}"; do
        read -r header layers <<<"$row"
        pattern="^src/[a-z_]+/(${layers// /|})/"
        [[ $layers != *programs ]] || pattern+='|^src/([a-z_]+|lib/common)/[^/]*:'
        # a foreign type in a public header would reach every includer
        grep -rnE "#[[:space:]]*include[[:space:]]*<$header>" include | sed 's/$/   (public header)/'
        grep -rnE "#[[:space:]]*include[[:space:]]*<$header>" src |
            grep -vE "$pattern" | sed 's/$/   (not in this layer)/'
    done | no_line || return 1
    # what is neither foreign nor from libc is a library that nobody decided on
    grep -rnohE '#[[:space:]]*include[[:space:]]*<[^>]+>' src include | sed -E 's/.*<(.*)>/\1/' |
        sort -u | grep -vxE "$known" | while read -r header; do
        libc_has "$header" || echo "<$header> is neither libc's nor in the list of foreign headers"
    done | no_line || return 1
    # decisions are pure; the policies' tables alone are shared by threads
    grep -rnE '#[[:space:]]*include[[:space:]]*<(pthread|sys/|time|unistd|fcntl|signal|poll|errno)' \
        src/lib/core src/lib/model include/gpushare/core include/gpushare/model |
        grep -v '^src/lib/core/policy.*<pthread' | sed 's/$/   (core and model do no I\/O and know no time)/' | no_line
}

libc_has() {
    local path
    [[ -f $(gcc -print-file-name=include)/$1 ]] && return 0
    for path in "/usr/include/$1" "/usr/include/$(gcc -print-multiarch)/$1"; do
        dpkg -S "$path" 2>/dev/null | grep -qE '^(libc6|linux-libc)-dev:' && return 0
    done
    return 1
}

# More than 500 lines asks for a split, more than 600 demands one.
rule_size() {
    files_of src include tools -- '*.c' '*.h' | xargs wc -l | grep -v ' total$' | while read -r lines file; do
        ((lines <= 600)) || echo "$file: $lines lines, more than 600"
        ((lines <= 500 || lines > 600)) || echo "note: $file has $lines lines" >&2
    done | no_line
}

# McCabe's number of ways through a function, a switch counted once (pmccabe).
complexity_max=20
rule_complexity() {
    files_of src include tools -- '*.c' '*.h' | xargs pmccabe 2>/dev/null | sort -n | awk -v most="$complexity_max" '
        { ways[NR] = $1 }
        $1 > most { print $6 ": " $7 " has a complexity of " $1 ", more than " most }
        END {
            if (NR < 1000) print "pmccabe named " NR " functions"
            printf "note: %d functions: median %d, p90 %d, p99 %d, most %d\n", NR, ways[int((NR + 1) / 2)],
                ways[int(NR * .9)], ways[int(NR * .99)], ways[NR] >"/dev/stderr"
        }' | no_line
}

# Apache-2.0, but for a kernel module of the tests: it is linked with the kernel.
# shellcheck disable=SC2016  # awk's
rule_spdx() {
    files_of src include tools tests cmake scripts .ci CMakeLists.txt -- \
        '*.c' '*.h' '*.sh' '*.py' '*.cmake' CMakeLists.txt run '*.proto' | xargs awk '
        function judge() {
            if (file != "" && !named)
                print file ": no SPDX-License-Identifier: " licence " in its first lines"
        }
        FNR == 1 {
            judge()
            file = FILENAME
            named = 0
            licence = file == "tests/kernel/fakegpu.c" ? "GPL-2.0-only" : "Apache-2.0"
        }
        FNR <= 3 && $0 ~ "SPDX-License-Identifier: " licence "( |$)" { named = 1 }
        END { judge() }' | no_line
}

rule_todo() {
    files_of src include tools tests cmake scripts .ci config manifests docs CMakeLists.txt README.md -- '*' |
        grep -vE '^tests/fuzz/(corpus|grown)/' | grep -v '^scripts/lib/rules.sh$' |
        xargs grep -nIE '\b(TODO|FIXME|XXX)\b' | no_line
}

# scripts/words.txt: an expression, a tab, what stands there instead.
rule_words() {
    local expression instead
    while IFS=$'\t' read -r expression instead; do
        [[ $expression != '#'* ]] || continue
        grep -rnE --exclude-dir=build -e "$expression" src include docs manifests share examples README.md |
            awk -v instead="$instead" '{ print $0 "   (instead: " instead ")" }'
    done <scripts/words.txt | no_line
}

rule_guards() {
    files_of src include tools tests -- '*.h' | xargs grep -Lx '#pragma once' | no_line
}
