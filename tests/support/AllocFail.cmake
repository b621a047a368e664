# SPDX-License-Identifier: Apache-2.0
# gs_fail_allocations(<target>): the target's own objects allocate through alloc_fail.c.
function(gs_fail_allocations target)
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/alloc_fail.c)
    foreach(call malloc calloc realloc reallocarray strdup strndup)
        target_link_options(${target} PRIVATE -Wl,--wrap=${call})
    endforeach()
endfunction()
