# SPDX-License-Identifier: Apache-2.0
# A layer is an OBJECT library made of every .c file in its folder of src/. Object libraries do not
# pull each other in: a program or a test links exactly the layers it names, so a call that goes
# against the arrows (docs/architecture.md) fails to link.

# What each layer may call, itself included. "port" has headers only: what the programs plug in.
set(GS_MAY_base     base)
set(GS_MAY_model    base model)
set(GS_MAY_core     base model core)
set(GS_MAY_codec    base model codec)
set(GS_MAY_port     base model port)
set(GS_MAY_cluster  base model core port cluster)
set(GS_MAY_service  base model core codec port cluster service)
set(GS_MAY_allocate base model core codec allocate)
set(GS_MAY_apiserver base model core codec apiserver)
set(GS_MAY_kube     base model codec port kube)
set(GS_MAY_http     base http)
set(GS_MAY_grpc     base grpc)
set(GS_MAY_nvml     base model codec port nvml)
set(GS_MAY_limit    base model port limit)
set(GS_MAY_packing  base model core packing) # tools/packing, which is in no program

# What each program may call: it is linked from these layers, and its files may include no others.
set(GS_OF_extender      base model core codec port cluster service kube http)
set(GS_OF_device_plugin base model core codec port allocate kube http grpc nvml limit)
set(GS_OF_mps           base model codec port nvml)
set(GS_OF_inspect       base model core codec port cluster kube http)
set(GS_OF_sim           base model core codec port cluster service kube http apiserver)

# gs_layer(<folder> [library...]): the layer has the folder's last name; the libraries are foreign
# ones.
function(gs_layer folder)
    get_filename_component(name ${folder} NAME)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c)
    add_library(gs_${name} OBJECT ${sources})
    target_link_libraries(gs_${name} PUBLIC ${ARGN})
endfunction()

# gs_protobuf_c(<layer> <name>...): src/lib/<layer>/proto/<name>.proto becomes C in the build folder, seen
# by this layer only. The generated code is not ours: it is compiled without our warnings.
function(gs_protobuf_c layer)
    find_program(PROTOC_C protoc-c REQUIRED)
    set(from ${CMAKE_CURRENT_SOURCE_DIR}/lib/${layer}/proto)
    set(to ${CMAKE_CURRENT_BINARY_DIR}/lib/${layer}/proto)
    file(MAKE_DIRECTORY ${to})
    foreach(name IN LISTS ARGN)
        set(code ${to}/${name}.pb-c.c ${to}/${name}.pb-c.h)
        add_custom_command(OUTPUT ${code}
                           COMMAND ${PROTOC_C} --c_out=${to} -I ${from} ${from}/${name}.proto
                           DEPENDS ${from}/${name}.proto VERBATIM)
        set_source_files_properties(${code} PROPERTIES COMPILE_OPTIONS -w)
        target_sources(gs_${layer} PRIVATE ${code})
    endforeach()
    target_include_directories(gs_${layer} SYSTEM PRIVATE ${to})
endfunction()

# gs_link(<target> <layer>...): the layers' objects and their foreign libraries.
function(gs_link target)
    foreach(layer IN LISTS ARGN)
        if(TARGET gs_${layer})
            target_link_libraries(${target} PRIVATE gs_${layer})
        endif()
    endforeach()
endfunction()

# gs_program(<name> <folder>): src/<folder>/*.c, placed in the build root.
function(gs_program name folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c)
    add_executable(${name} ${sources})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    gs_link(${name} ${GS_OF_${folder}})
    target_link_libraries(${name} PRIVATE gs_common)
endfunction()

# gs_unit_tests(<folder>): every test_*.c of tests/unit/<folder> becomes a program that links only what
# the layer may call, plus cmocka.
function(gs_unit_tests folder)
    get_filename_component(layer ${folder} NAME)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/${folder}/test_*.c)
    foreach(source IN LISTS sources)
        get_filename_component(test ${source} NAME_WE)
        gs_test(${layer}_${test} ${source} LAYERS ${GS_MAY_${layer}})
    endforeach()
endfunction()

# gs_test(<name> <source>... LAYERS <layer>... [LIBS <library>...] [ARGS <argument>...])
function(gs_test name)
    cmake_parse_arguments(arg "" "" "LAYERS;LIBS;ARGS" ${ARGN})
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
    target_compile_definitions(${name} PRIVATE GS_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                               GS_BINARY_DIR="${CMAKE_BINARY_DIR}")
    gs_link(${name} ${arg_LAYERS})
    target_link_libraries(${name} PRIVATE PkgConfig::CMOCKA ${arg_LIBS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
    if(CMAKE_CROSSCOMPILING) # emulated
        set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
    else()
        set_tests_properties(${name} PROPERTIES TIMEOUT 300)
    endif()
endfunction()
