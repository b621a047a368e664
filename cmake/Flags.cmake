# SPDX-License-Identifier: Apache-2.0
# Warnings are errors everywhere; hardening in release; sanitizers by option.
set(GS_SANITIZE "" CACHE STRING "comma list for -fsanitize=")
option(GS_FUZZ "build libFuzzer targets (clang)" OFF)

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror -Wstrict-prototypes
                    -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2
                    -Wno-unused-parameter -Wno-missing-field-initializers
                    -ffp-contract=off -fno-common -fno-strict-aliasing -fstack-protector-strong -fPIE)
add_compile_definitions(_GNU_SOURCE GS_VERSION="${PROJECT_VERSION}")
# Paths in assertions and debug information do not depend on where the tree lies.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
add_link_options(-pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed)

set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(GS_SANITIZE)
    add_compile_options(-fsanitize=${GS_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${GS_SANITIZE})
endif()
if(GS_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
