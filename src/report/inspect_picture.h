/*
 * The picture of --inspect's results:
 *
 *	title
 *	[ VmRSS                                             ]
 *	[ malloc                          ][ program ][ ... ]    a bar, down to its parts
 *	[ live     ][ free ][ free ][ ... ][    ][    ][    ]
 *	[] live heap blocks    12 MiB      [] ...
 *
 *	main arena: ...
 *	[][][][][][][][][][][][][][]    a cell per page, or per group of pages
 */
#ifndef PTMEM_REPORT_INSPECT_PICTURE_H
#define PTMEM_REPORT_INSPECT_PICTURE_H

#include "report/canvas.h"
#include "report/inspect_file.h"

/* @title: NULL = the file's. On a white background of @width times @height. */
void inspect_picture_draw(const struct inspect_file *f, const char *title, struct canvas *canvas,
			  double width, double height);

#endif
