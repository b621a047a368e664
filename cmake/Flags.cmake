# SPDX-License-Identifier: Apache-2.0
# Warnings are errors in the presets; hardening in what is installed; sanitizers by option.
set(GS_SANITIZE "" CACHE STRING "comma list for -fsanitize=")
option(GS_FUZZ "build libFuzzer targets (clang)" OFF)
option(GS_WERROR "warnings are errors: for the project's own builds, whose compilers are known" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "as scripts/image.sh ships it" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes
                    -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2
                    -Wno-unused-parameter -Wno-missing-field-initializers -Wdate-time
                    -ffp-contract=off -fno-common -fno-strict-aliasing -fstack-protector-strong -fPIE)
if(GS_WERROR)
    add_compile_options(-Werror)
endif()
add_compile_definitions(_GNU_SOURCE GS_VERSION="${PROJECT_VERSION}")
# Paths in assertions and debug information do not depend on where the tree lies.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
add_link_options(-pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed)

# What ships; scripts/check.sh hardening looks at the programs themselves. After the OpenSSF's
# compiler options hardening guide for C.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(CMAKE_BUILD_TYPE MATCHES "^(RelWithDebInfo|Release|MinSizeRel)$")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-clash-protection)
    include(CheckCCompilerFlag)
    # x86: indirect branches may only land where the compiler marked it, returns where they came from.
    check_c_compiler_flag(-fcf-protection=full GS_HAS_CF_PROTECTION)
    if(GS_HAS_CF_PROTECTION)
        add_compile_options(-fcf-protection=full)
    endif()
    # A variable on the stack that was forgotten is zero, not what lay there.
    check_c_compiler_flag(-ftrivial-auto-var-init=zero GS_HAS_AUTO_VAR_INIT)
    if(GS_HAS_AUTO_VAR_INIT)
        add_compile_options(-ftrivial-auto-var-init=zero)
    endif()
    add_link_options(-Wl,--build-id=sha1)
endif()
if(GS_SANITIZE OR GS_FUZZ)
    add_compile_definitions(GS_FATAL_INVARIANTS)
endif()
if(GS_SANITIZE)
    add_compile_options(-fsanitize=${GS_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${GS_SANITIZE})
endif()
if(GS_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
