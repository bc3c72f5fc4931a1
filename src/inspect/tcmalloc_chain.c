/* See tcmalloc_chain.h. */
#include "inspect/tcmalloc_chain.h"

#include <string.h>

static bool read_next(struct inspect_memory *m, const struct tcmalloc_chain *c, taddr_t at,
		      taddr_t *out)
{
	if (!c->span)
		return memory_read_word(m, at, out);
	memcpy(out, memory_peek(m, at, sizeof(*out)), sizeof(*out));
	return true;
}

uint64_t tcmalloc_chain_mark(struct inspect_memory *m, struct slabs *p, struct tcmalloc_chain c)
{
	taddr_t at = c.first;
	uint64_t count = 0;

	if (c.span)
		memory_peek(m, c.span, sizeof(at));
	while (at && slabs_mark(p, at, c.size, c.state) && read_next(m, &c, at, &at))
		count++;
	p->broken += at != 0;
	return count;
}
