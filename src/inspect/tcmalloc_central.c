/* See tcmalloc_central.h. */
#include "inspect/tcmalloc_central.h"

#include "inspect/tcmalloc_chain.h"

#define SLOTS 64

struct head {
	uint64_t page, pages;
	taddr_t next, before, first;
	uint64_t bits;
};
struct central {
	uint64_t class;
	struct head empty, others;
	uint64_t spans, free;
	struct {
		taddr_t first, last;
	} slot[SLOTS];
	int32_t used, size, most, unused;
};
_Static_assert(sizeof(struct central) == 1160, "as in 2.10");

bool tcmalloc_central_read(struct inspect_memory *m, const struct tcmalloc_central *c,
			   uint32_t class, struct slabs *p)
{
	taddr_t start = c->head - offsetof(struct central, empty);
	struct central e;

	if (!memory_read(m, start, &e, sizeof(e)))
		return false;
	/* it is the other head */
	if (e.class != class && !memory_read(m, start - sizeof(struct head), &e, sizeof(e)))
		return false;
	if (e.class != class || e.spans != c->spans || e.free != c->free || e.used < 0 ||
	    e.used > e.size || e.size > e.most || e.most > SLOTS)
		return false;
	for (int32_t i = 0; i < e.used; i++)
		tcmalloc_chain_mark(m, p, (struct tcmalloc_chain){
			.first = e.slot[i].first, .size = c->size, .state = PLACE_FREE});
	return true;
}
