/*
 * Room in the target for stubs and pads, within a branch's reach of their functions.
 *
 *	area     size      is                                    for
 *	page     4 KiB     mapped by us, begins with a header    stubs
 *	pads     16 KiB    mapped by us                          pads
 *	slack    < 4 KiB   the end of a text's last page         stubs, where nothing can be mapped
 *
 * Each cluster of objects (the executable; the libraries) gets areas of its own. A page's
 * header says how much is used, for a later ptmem that finds it.
 */
#ifndef PTMEM_TRACEE_INJECT_STUB_AREA_H
#define PTMEM_TRACEE_INJECT_STUB_AREA_H

#include "base/types.h"

struct module;
struct address_space;
struct stub_area; /* state/own_memory.h */
struct target;
struct thread;

#define STUB_MAX 128u  /* bytes of the longest stub */
#define STUB_ALIGN 16u

/* What room is needed for. */
struct stub_place {
	struct target *target;
	/* stopped; makes the system call that maps; NULL: known areas only */
	struct thread *thread;
	struct address_space *space;
	const struct module *module; /* whose slack may be taken */
};

/* An area with STUB_MAX bytes left within reach of @addr, until the next call. 0 or -errno. */
int stub_area_get(const struct stub_place *place, taddr_t addr, struct stub_area **area_out);
/* Counts the next @size bytes of @a as used. */
void stub_area_use(struct stub_area *a, uint32_t size);

/* Takes room for a stub of @size bytes, STUB_MAX at most, within reach of @addr. 0 or -errno. */
int stub_area_take(const struct stub_place *place, taddr_t addr, uint32_t size, taddr_t *at_out);
/* The same of a pad, in an area of pads. */
int stub_area_take_pad(const struct stub_place *place, taddr_t addr, uint32_t size,
		       taddr_t *at_out);

/* Notes in the pages of @s what is used of them. */
void stub_area_write_headers(const struct address_space *s);
/* Notes in @a, which must stay, that a later ptmem may take it over. */
void stub_area_leave(const struct address_space *s, const struct stub_area *a);
/* Takes over the pages that an earlier ptmem had to leave in @s when it went. */
void stub_area_adopt(struct address_space *s);

#endif
