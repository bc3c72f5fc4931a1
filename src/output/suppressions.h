/*
 * Known leaks, which reports leave out: files in Valgrind's format (its manual, 2.5), of whose
 * entries those for Memcheck:Leak count.
 *
 *	{
 *	   NAME
 *	   Memcheck:Leak
 *	   match-leak-kinds: KIND[,KIND]...     definite, indirect, possible, reachable, all
 *	   fun:PATTERN                          a function: mangled, or as in reports
 *	   obj:PATTERN                          the path of a program or library
 *	   src:PATTERN[:LINE]                   the base name of a source file
 *	   ...                                  any number of frames, also none
 *	}
 *
 * The lines match a stack from its innermost frame on; the stack may have more frames. In
 * Valgrind's stacks that is malloc, operator new and the like, which ptmem's stacks do not have: a
 * first line for such a function matches them, too.
 */
#ifndef PTMEM_OUTPUT_SUPPRESSIONS_H
#define PTMEM_OUTPUT_SUPPRESSIONS_H

#include <stdio.h>

#include "base/types.h"

struct suppressions;

/* A frame of a stack. NULL = unknown. */
struct suppression_frame {
	const char *name;   /* as in reports */
	const char *raw;    /* as in symbol tables; of an inlined function: without its scope */
	const char *object;
	const char *file;   /* base name of the source */
	uint32_t line;
	bool is_repeated;   /* more calls of the same functions follow, which are left out */
};

/*
 * Reads the files at @path (@count). NULL after a message if one cannot be read or has an error.
 */
struct suppressions *suppressions_read(const char *const *path, size_t count);
void suppressions_free(struct suppressions *s); /* may be NULL */

/* The name of one: "NAME (FILE:LINE)". */
const char *suppressions_name(const struct suppressions *s, uint32_t index);

/*
 * Whether one matches a leak with the stack @frame (@count, innermost first). @kind: the number of
 * its kind in "match-leak-kinds:" above, 0 = definite. *index_out: the first that does.
 */
bool suppressions_match(const struct suppressions *s, unsigned kind,
			const struct suppression_frame *frame, size_t count, uint32_t *index_out);

/* Writes the entry that would match: lines, through @line. */
void suppressions_print(unsigned kind, const struct suppression_frame *frame, size_t count,
			void (*line)(void *ctx, const char *text), void *ctx);

#endif
