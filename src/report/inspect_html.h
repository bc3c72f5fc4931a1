/* What --inspect found as one HTML file that needs no network: the picture and its numbers. */
#ifndef PTMEM_REPORT_INSPECT_HTML_H
#define PTMEM_REPORT_INSPECT_HTML_H

#include <stdio.h>

#include "report/inspect_file.h"

/* Errors of the stream are left in it. */
void inspect_html_write(FILE *out, const struct inspect_file *f);

#endif
