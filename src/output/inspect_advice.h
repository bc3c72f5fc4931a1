/* What would return free memory of malloc to the system, in words, each with the bytes. */
#ifndef PTMEM_OUTPUT_INSPECT_ADVICE_H
#define PTMEM_OUTPUT_INSPECT_ADVICE_H

#include "base/vec.h"
#include "inspect/inspect.h"

struct inspect_advice {
	const char *name;  /* "malloc_trim" */
	uint64_t bytes;    /* that it would return; at most as many where is_limit */
	bool is_limit;
	char *text;        /* owned */
};
struct inspect_advice_list {
	VEC(struct inspect_advice) list;
};

/* Advice with most bytes first; none below a page. */
void inspect_advice_find(const struct inspect_report *r, struct inspect_advice_list *out);
void inspect_advice_deinit(struct inspect_advice_list *a);

/* Resident bytes in free chunks, of all arenas. */
struct inspect_bytes inspect_free_bytes(const struct inspect_report *r);
/* What malloc_trim(0) would return, likewise. */
struct inspect_bytes inspect_trim_bytes(const struct inspect_report *r);

#endif
