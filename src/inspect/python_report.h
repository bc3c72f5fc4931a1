/*
 * The blocks of Python's allocator, which are objects and memory of objects, by arena: an arena is
 * returned when none of its blocks is in use, so few of them may keep it.
 */
#ifndef PTMEM_INSPECT_PYTHON_REPORT_H
#define PTMEM_INSPECT_PYTHON_REPORT_H

#include "inspect/heap_report.h"
#include "inspect/pymalloc.h"

/* Upper bounds of the live part of an arena, percent. */
#define PYTHON_STEPS 6u
extern const uint32_t python_step[PYTHON_STEPS];
#define PYTHON_FEW 10u /* an arena with at most that much live is nearly empty */

/* Arenas that are alike. */
struct python_arenas {
	uint64_t count, blocks;
	uint64_t counted, free; /* bytes that are resident or swapped; of these, not live */
};

struct python_pin {
	uint32_t type;          /* of blocks, an index in struct block_types */
	uint64_t arenas;        /* nearly empty ones that these pin, perhaps with others */
	uint64_t blocks;        /* in these arenas */
};

struct python_report {
	enum pymalloc_found found;
	struct pymalloc_layout layout;
	struct python_arenas all, step[PYTHON_STEPS]; /* all: their sum */
	uint64_t live_bytes, free_pools;
	struct pymalloc_class classes[PYMALLOC_CLASSES];
	VEC(struct python_pin) pins;    /* most arenas first; if types are wanted */
	uint32_t broken;
	uint32_t interpreters;          /* with allocators of their own; these are sums */
	bool has_lost;                  /* there are more, whose arenas could not be read */
	bool has_hooks;                 /* for debugging: each place holds more than its block */
};

/* @heap has what else is done with each block; python_report_deinit frees @out. */
void python_report_make(struct pymalloc *p, const struct heap_input *heap,
			struct python_report *out);
void python_report_deinit(struct python_report *r);

#define PYTHON_LOOKS 5u /* as many as are made until none is torn: each seldom is */
/* Whether a thread may have been in the middle of an allocation, so that another look helps. */
bool python_report_is_torn(const struct python_report *r);

#endif
