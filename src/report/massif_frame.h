/* Parses the lines of massif's call trees. */
#ifndef PTMEM_REPORT_MASSIF_FRAME_H
#define PTMEM_REPORT_MASSIF_FRAME_H

#include "report/massif_file.h"

enum massif_line {
	MASSIF_LINE_ROOT,      /* "(heap allocation functions) ...": everything but the next two */
	MASSIF_LINE_FRAME,     /* "0xADDRESS: FUNCTION (LOCATION)" */
	MASSIF_LINE_AGGREGATE, /* "in N places, all below massif's threshold (..%)" */
};

/* The parsed text of a tree line. Missing parts have size 0. */
struct massif_frame {
	enum massif_line line;
	taddr_t address;              /* FRAME */
	/* FRAME: with its parameters; "???" if unknown. Otherwise the whole text */
	struct massif_text function;
	/* FRAME: "a.c:7" or "in /usr/lib/x.so", without the parentheses */
	struct massif_text location;
	struct massif_text file;      /* FRAME with a source line: "a.c", or a path */
	uint64_t line_number;         /* of file; 0 = none */
	struct massif_text object;    /* FRAME without a source line: "/usr/lib/x.so" or "???" */
	uint64_t places;              /* AGGREGATE */
};

/* Parses the text of @node; never fails: unknown text is a MASSIF_LINE_ROOT. */
void massif_file_frame(const struct massif_node *node, struct massif_frame *out);

#endif
