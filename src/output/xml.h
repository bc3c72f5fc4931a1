/*
 * Text in XML documents.
 */
#ifndef PTMEM_OUTPUT_XML_H
#define PTMEM_OUTPUT_XML_H

#include <stdio.h>

/* @s, valid UTF-8 without control characters, as text or as the value of an attribute. */
void xml_put_text(FILE *out, const char *s);

#endif
