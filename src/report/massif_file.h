/*
 * A massif.out file in memory, read by ms_print's rules (doc/massif.md section 1.5), whether
 * written by ptmem, by Valgrind, or by hand.
 *
 *	file
 *	 +- snapshot[0 .. snapshot_count)     in file order
 *	     +- root --> node                  the tree of a detailed or peak snapshot
 *	node[1 .. node_count)                 of all trees, each in pre-order as in the file
 *
 * Nodes refer to each other by index, 0 = none: node[0] is never used. All text
 * points into the file's bytes, is not terminated, and lives as long as the file.
 *
 * ms_print removes every '#' and what follows it as a comment, and so cuts lambdas
 * ("{lambda(int)#1}"), closures and command lines. Here a comment is a line that
 * begins with '#', or what follows a number; no writer puts comments elsewhere.
 */
#ifndef PTMEM_REPORT_MASSIF_FILE_H
#define PTMEM_REPORT_MASSIF_FILE_H

#include "base/types.h"
#include "output/report.h"
#include "symbols/code_owner.h"

/* Maximum nesting of trees (root = 1), so readers may recurse. */
#define MASSIF_FILE_MAX_DEPTH 10000

struct massif_text {
	const char *at;
	size_t size;
};

/* For printf("%.*s", MASSIF_TEXT(t)). */
#define MASSIF_TEXT(t) (int)MIN((t).size, (size_t)INT32_MAX), (t).at

enum massif_kind { MASSIF_EMPTY, MASSIF_DETAILED, MASSIF_PEAK };

struct massif_snapshot {
	uint64_t number;           /* as written; normally its own index */
	uint64_t time;             /* in the file's time unit */
	uint64_t heap, extra, stacks;
	uint64_t total;            /* heap + extra + stacks */
	enum massif_kind kind;
	uint32_t root;             /* node; 0 = no tree (MASSIF_EMPTY) */
};

struct massif_node {
	uint64_t bytes;            /* at most its snapshot's total */
	uint32_t parent;           /* 0 for a root */
	uint32_t first_child, next_sibling; /* in file order */
	uint32_t line;             /* line number in the file, from 1 */
	struct massif_text text;   /* the line after the bytes, with its leading space */
};

struct massif_file {
	char *data;                /* contents of the file */
	size_t size;
	struct massif_text desc;   /* after "desc:", line end included; all such lines, joined */
	char *desc_data;           /* where desc points */
	struct massif_text command, time_unit;
	struct massif_snapshot *snapshot;
	size_t snapshot_count;     /* may be 0 */
	const struct my_code *my_code; /* of ptmem-report; NULL = nothing is given */
	struct massif_paths *paths; /* of massif_paths.h, which frees them, too; NULL: none yet */
	struct massif_node *node;
	size_t node_count;         /* node[0] included */
	enum memory_kind memory;   /* by the root of the first tree */
	size_t peak;               /* index of the peak by ms_print's rule; SIZE_MAX = none */
	uint64_t largest_total;    /* over all snapshots */
	size_t snapshot_capacity, node_capacity;
};

/*
 * Takes ownership of @data (malloc'ed, @size bytes), also on failure. -EINVAL if it is not a massif
 * file, with *@why_out = "Line N: ..." in ms_print's words, which the caller frees.
 */
int massif_file_parse(char *data, size_t size, struct massif_file **file_out, char **why_out);

void massif_file_free(struct massif_file *file); /* may be NULL */

/* The index after the last node of the tree that begins at @root. */
uint32_t massif_tree_end(const struct massif_file *file, uint32_t root);

/* The bytes of @node without its children; 0 if children claim more than their parent has. */
uint64_t massif_own_bytes(const struct massif_file *file, uint32_t node);

/* Whether @t equals @s. */
bool massif_text_is(struct massif_text t, const char *s);

/* Parses the lines of massif's call trees. */

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

/* Whether a massif file contains estimates: then its "desc:" has ptmem's option --heap-sample. */

/* The mean distance of samples in bytes; 0: exact. */
uint64_t massif_sampling_interval(const struct massif_file *file);

#endif
