# SPDX-License-Identifier: Apache-2.0
# Foreign libraries, all from Debian 12. docs/development.md names each one's purpose and licence.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(SMARTCOLS REQUIRED IMPORTED_TARGET smartcols)
if(BUILD_TESTING)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
    # For a program of the end-to-end tests only.
    pkg_check_modules(SECCOMP IMPORTED_TARGET libseccomp)
endif()
