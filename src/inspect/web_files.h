/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* The files of web/, made part of the program by cmake/Embed.cmake. */
struct web_file {
    const unsigned char *bytes;
    size_t len;
};

extern const struct web_file web_index_html, web_style_css, web_app_js, web_icon_svg;
