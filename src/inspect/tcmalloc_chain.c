/* See tcmalloc_chain.h. */
#include "inspect/tcmalloc_chain.h"

uint64_t tcmalloc_chain_mark(struct inspect_memory *m, struct slabs *p, struct tcmalloc_chain c)
{
	taddr_t at = c.first;
	uint64_t count = 0;

	while (at && slabs_mark(p, at, c.size, c.state) && memory_read_word(m, at, &at))
		count++;
	p->broken += at != 0;
	return count;
}
