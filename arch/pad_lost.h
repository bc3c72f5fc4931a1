/*
 * Full rings. A thread that finds no room traps (image.full_trap) and waits for ptmem. With
 * PAD_LOSES it does not: the record is lost, and counted here. A lost record takes no number, and
 * does not change the frames of which later records keep some.
 *
 * In an exact profile a block may then be released that the reader never saw, or be given out
 * while another one seems to live there; the reader sees both of other programs, too. A realloc
 * whose beginning is lost ends as an allocation.
 *
 * A release that is lost leaves a block in the profile that is no more, so with PAD_SAMPLING half
 * of a ring is for releases: a sample that would take it is lost before anything is done for it,
 * and so is the release of a block that may not be a sample (INNER_FREE, REALLOC_MAYBE), of which
 * there can be any number as long as ptmem reads none. A sample whose release is lost stays in the
 * filter as such a block: the release of the next one at its address counts as its own.
 */
#ifndef PTMEM_ARCH_PAD_LOST_H
#define PTMEM_ARCH_PAD_LOST_H

#include <stdint.h>

/* Records that a ring had no room for. Bytes of samples are weighted. */
struct pad_lost {
	uint64_t allocations, bytes, releases;
	uint64_t has_unsure; /* also of blocks that may not be in the profile; not counted */
};

#endif
