/* What would return malloc's free memory to the system, as text, each with the bytes. */
#ifndef PTMEM_OUTPUT_INSPECT_ADVICE_H
#define PTMEM_OUTPUT_INSPECT_ADVICE_H

#include "base/vec.h"
#include "inspect/inspect.h"

struct inspect_advice {
	const char *name;  /* "malloc_trim" */
	uint64_t bytes;    /* bytes it would return; an upper bound if is_limit */
	bool is_limit;
	char *text;        /* owned */
};
struct inspect_advice_list {
	VEC(struct inspect_advice) list;
};

/*
 * Sorted by bytes, the most first; nothing below a page. None for a heap that is corrupt, or was
 * being changed.
 */
void inspect_advice_find(const struct inspect_report *r, struct inspect_advice_list *out);
void inspect_advice_deinit(struct inspect_advice_list *a);

/* Resident bytes in free chunks, of all arenas. */
struct inspect_bytes inspect_free_bytes(const struct inspect_report *r);
/* The bytes that malloc_trim(0) would return, of all arenas. */
struct inspect_bytes inspect_trim_bytes(const struct inspect_report *r);

#endif
