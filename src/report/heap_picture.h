/* The map of the heap: arenas below one another, cells in address order. */
#ifndef PTMEM_REPORT_HEAP_PICTURE_H
#define PTMEM_REPORT_HEAP_PICTURE_H

#include "report/chart_layout.h"
#include "report/inspect_file.h"

/* Draws it into @box; arenas that do not fit are summed up in a line. */
void heap_picture_draw(const struct chart_drawing *d, const struct inspect_file *f,
		       struct chart_box box);

#endif
