/* Strings in JSON documents. */
#ifndef PTMEM_BASE_JSON_TEXT_H
#define PTMEM_BASE_JSON_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * The first @size bytes of @s, which may be anything, as a JSON string with its quotes. "<" is
 * escaped, so that the document can be part of an HTML page.
 */
void json_put_text(FILE *out, const char *s, size_t size);

#endif
