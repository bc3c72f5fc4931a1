/*
 * Text in XML documents.
 */
#ifndef PTMEM_OUTPUT_XML_H
#define PTMEM_OUTPUT_XML_H

#include <stdio.h>

/* Writes @s, valid UTF-8 without control characters, as text or attribute value. */
void xml_put_text(FILE *out, const char *s);

#endif
