/*
 * Allocates memory in the target for stubs and pads, within a branch's reach of their functions.
 *
 *	area     size      is                                    for
 *	page     4 KiB     mapped by us, begins with a header    stubs
 *	pads     64 KiB    mapped by us                          pads
 *	slack    < 4 KiB   the end of a text's last page         stubs, if nothing can be mapped
 *
 * Each cluster of objects (the executable; the libraries) gets its own areas. A page's header
 * records how much is used, for a later ptmem.
 */
#ifndef PTMEM_TRACEE_INJECT_STUB_AREA_H
#define PTMEM_TRACEE_INJECT_STUB_AREA_H

#include "base/types.h"

struct module;
struct address_space;
struct stub_area; /* state/space.h */
struct target;
struct thread;

#define STUB_MAX 128u  /* maximum size of a stub, bytes */
#define STUB_ALIGN 16u

/* What room is needed for. */
struct stub_place {
	struct target *target;
	/* stopped; makes the mmap call; NULL: existing areas only */
	struct thread *thread;
	struct address_space *space;
	const struct module *module; /* module whose slack may be used */
};

/*
 * An area with STUB_MAX bytes left within reach of @addr, valid until the next call. 0 or
 * -errno.
 */
int stub_area_get(const struct stub_place *place, taddr_t addr, struct stub_area **area_out);
/* Marks the next @size bytes of @a as used. */
void stub_area_use(struct stub_area *a, uint32_t size);

/* Allocates a stub of @size bytes, at most STUB_MAX, within reach of @addr. 0 or -errno. */
int stub_area_take(const struct stub_place *place, taddr_t addr, uint32_t size, taddr_t *at_out);
/* The same for a pad, in an area of pads. */
int stub_area_take_pad(const struct stub_place *place, taddr_t addr, uint32_t size,
		       taddr_t *at_out);

/* Writes into the pages of @s how much of them is used. */
void stub_area_write_headers(const struct address_space *s);
/* Marks @a, which must stay, as available to a later ptmem. */
void stub_area_leave(const struct address_space *s, const struct stub_area *a);
/* Takes over the pages that an earlier ptmem could not remove from @s. */
void stub_area_adopt(struct address_space *s);

/* Areas of ptmem's code that the program has unmapped, or otherwise taken from its threads. */

struct maps;
struct stub_area;

enum lost_state {
	LOST_NOT,      /* it is as ptmem mapped it */
	LOST_GONE,     /* unmapped, at least in part, or without rights */
	LOST_REPLACED, /* the program has mapped something else there */
};

/* What became of @a, an area of code of @s, according to @maps. */
enum lost_state lost_code_state(const struct address_space *s, const struct maps *maps,
				const struct stub_area *a);
/*
 * Maps @a, which is gone, again, with what was written into it. All threads are stopped; @th makes
 * the calls. 0 or -errno.
 */
int lost_code_restore(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a);
/*
 * Whether the mapping of @s at @start is of a kind that ptmem makes: all that a guardian, which
 * does not know the contents, can tell.
 */
bool lost_code_may_be_ours(const struct address_space *s, taddr_t start);

#endif
