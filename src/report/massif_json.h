/*
 * A massif file as JSON for the page (output/html_page.h): frames and nodes as in doc/format.md,
 * the totals of its snapshots as timeline, and instead of cells "states", the values of leaves at
 * the snapshots with a tree.
 */
#ifndef PTMEM_REPORT_MASSIF_JSON_H
#define PTMEM_REPORT_MASSIF_JSON_H

#include <stdio.h>

#include "report/massif_file.h"

/* For each frame of the JSON: a node of the file that has it. The caller frees @node. */
struct massif_json_frames {
	uint32_t *node;
	size_t count;
};

/* Writes the object; @frames_out may be NULL. The caller checks the stream for errors. */
void massif_json_write(FILE *out, const struct massif_file *file,
		       struct massif_json_frames *frames_out);

#endif
