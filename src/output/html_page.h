/*
 * The report as one self-contained HTML file: style, scripts (html/ next to this file) and the
 * profile, JSON of doc/format.md, which is embedded compressed so that it cannot contain markup.
 */
#ifndef PTMEM_OUTPUT_HTML_PAGE_H
#define PTMEM_OUTPUT_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "base/types.h"

/*
 * Writes the page with @json, @size bytes. @is_live: it may request updates from its server. The
 * caller checks the stream for errors.
 */
void html_page_write(FILE *out, const char *json, size_t size, bool is_live);

/* The size of a page, about, whose profile has @packed bytes as gzip. */
size_t html_page_size(size_t packed);

#endif
