/* Text in comma-separated values. */
#ifndef PTMEM_BASE_CSV_TEXT_H
#define PTMEM_BASE_CSV_TEXT_H

#include <stdio.h>

/* Writes @text as part of a quoted field. */
void csv_put_quoted(FILE *out, const char *text);

#endif
