/*
 * Matches the frames of two profiles, which may be of two builds of a program.
 *
 * Functions are the same if their names are. Addresses, directories and line numbers do not count,
 * nor do the suffixes of clones (".part.0", " [clone .cold]"), the numbers that compilers give to
 * lambdas and closures, and the hashes of Rust's names. A frame without a name matches
 * others of the same source file, else of the same object: "[libz.so]" in any version, the program
 * whatever its file name. Offsets are not comparable between builds.
 *
 * Call sites in one function are distinguished by line if line numbers are comparable: in objects
 * with the same build-id, and in functions of which both profiles have the same lines. Otherwise
 * the call sites of a function are merged.
 */
#ifndef PTMEM_REPORT_FRAME_MATCH_H
#define PTMEM_REPORT_FRAME_MATCH_H

#include "output/path_tree.h"

struct frame_match;

/* A frame in its file; NULL = unknown. */
struct match_frame {
	const char *function, *file, *object;
	uint64_t line;           /* 0 = unknown */
	bool is_same_build;      /* the other profile has an object with the same build-id */
};

/* @is_exact: generated parts of names stay, for one profile alone. */
struct frame_match *frame_match_new(bool is_exact);
void frame_match_free(struct frame_match *m); /* may be NULL */

/* Frames of a side are numbered from 0 in the order in which they are added. */
void frame_match_add(struct frame_match *m, enum path_side side, const struct match_frame *frame);
/* Call it after the last frame. */
void frame_match_finish(struct frame_match *m);

/* The number, from 0, with which frame @frame of @side is matched. */
uint32_t frame_match_function(const struct frame_match *m, enum path_side side, size_t frame);
uint32_t frame_match_site(const struct frame_match *m, enum path_side side, size_t frame);
uint32_t frame_match_function_count(const struct frame_match *m);
uint32_t frame_match_site_count(const struct frame_match *m);

const char *frame_match_name(const struct frame_match *m, uint32_t function);
/* "function (file:line)" if call sites in the function are distinguished, else its name. */
const char *frame_match_site_name(const struct frame_match *m, uint32_t site);
/* "file:line" or "in object" of a frame whose site's name lacks it; else NULL. */
const char *frame_match_place(const struct frame_match *m, enum path_side side, size_t frame);

#endif
