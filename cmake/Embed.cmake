# SPDX-License-Identifier: Apache-2.0
# Makes files part of a program. Included by CMakeLists.txt it defines gs_embed(); run with
# cmake -P, -DFROM=FILE -DTO=FILE.c -DNAME=SYMBOL -DTYPE=STRUCT -DHEADER=HEADER, it writes one of them
# as a C array.
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ ${FROM} hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    file(WRITE ${TO} "#include \"${HEADER}\"\n\nstatic const unsigned char bytes[] = {\n${bytes}};\n"
                     "const struct ${TYPE} ${NAME} = {bytes, sizeof(bytes)};\n")
    return()
endif()

set(GS_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

# gs_embed(<target> <struct> <header> <prefix> <file>...): an OBJECT library of one symbol per file, whose
# name is the prefix and the file's name with _ for what C does not have: a struct {bytes, len}.
function(gs_embed target type header prefix)
    foreach(file IN LISTS ARGN)
        get_filename_component(name ${file} NAME)
        string(REGEX REPLACE "[^A-Za-z0-9]" "_" symbol ${prefix}${name})
        set(code ${CMAKE_CURRENT_BINARY_DIR}/${target}/${symbol}.c)
        add_custom_command(
            OUTPUT ${code}
            COMMAND ${CMAKE_COMMAND} -DFROM=${file} -DTO=${code} -DNAME=${symbol} -DTYPE=${type}
                    -DHEADER=${header} -P ${GS_EMBED_SCRIPT}
            DEPENDS ${file} ${GS_EMBED_SCRIPT}
            VERBATIM)
        list(APPEND codes ${code})
    endforeach()
    add_library(${target} OBJECT ${codes})
endfunction()
