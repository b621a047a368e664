/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Texts in lines of so many columns. */

/* The words of the text, as many in a line as fit into width columns, from a column on, and a line
 * end; at: where the line stands. A word that is longer than a line is not cut. */
void wrap_words(FILE *out, int at, int column, int width, const char *text, size_t len);

/* The name, with its middle left out if it takes more than size - 1 bytes, so that its ends still
 * tell it from others: "jupyter-..-wbn-0". A name of Kubernetes has no two dots. size: 8 or more.
 */
void wrap_shorten(const char *name, char *to, size_t size);
