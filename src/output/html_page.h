/*
 * The report as one HTML file that needs no network: style, scripts (html/ next to this file) and
 * the profile, JSON of doc/format.md, which is embedded compressed so that no text of it is markup.
 */
#ifndef PTMEM_OUTPUT_HTML_PAGE_H
#define PTMEM_OUTPUT_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "base/types.h"

/*
 * Writes the page of @json, @size bytes. @is_live: it may ask the server that it comes from for
 * what is new. Errors of the stream are left in it.
 */
void html_page_write(FILE *out, const char *json, size_t size, bool is_live);

#endif
