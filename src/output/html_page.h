/*
 * The report as one HTML file that needs no network: style, scripts (html/ next to this file) and
 * the profile, JSON of doc/format.md, which is embedded compressed so that no text of it is markup.
 */
#ifndef PTMEM_OUTPUT_HTML_PAGE_H
#define PTMEM_OUTPUT_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the page of @json, @size bytes. Errors of the stream are left in it. */
void html_page_write(FILE *out, const char *json, size_t size);

#endif
