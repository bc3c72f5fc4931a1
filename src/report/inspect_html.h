/* --inspect's results as one self-contained HTML file: the picture and its numbers. */
#ifndef PTMEM_REPORT_INSPECT_HTML_H
#define PTMEM_REPORT_INSPECT_HTML_H

#include <stdio.h>

#include "report/inspect_file.h"

/* The caller checks the stream for errors. */
void inspect_html_write(FILE *out, const struct inspect_file *f);

#endif
