/*
 * Room in the target for stubs and pads, within a branch's reach of their functions.
 *
 *	area     size      is                                    for
 *	page     4 KiB     mapped by us, begins with a header    stubs
 *	pads     16 KiB    mapped by us                          pads
 *	slack    < 4 KiB   the end of a text's last page         stubs, where nothing can be mapped
 *
 * Each cluster of objects (the executable; the libraries) gets areas of its own. A page's
 * header tells a later ptmem, which finds it, where to go on behind what is used.
 */
#ifndef PTMEM_TARGET_STUB_AREA_H
#define PTMEM_TARGET_STUB_AREA_H

#include "base/types.h"

struct module;
struct space;
struct stub_area; /* space.h, which owns them */
struct target;
struct thread;

#define STUB_MAX 128u  /* bytes of the longest stub */
#define STUB_ALIGN 16u

/* For whom room is sought. */
struct stub_place {
	struct target *target;
	/* stopped; makes the system call that maps; NULL: known areas only */
	struct thread *thread;
	struct space *space;
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
void stub_area_write_headers(const struct space *s);
/* Notes in @a, which must stay, that a later ptmem may take it over. */
void stub_area_leave(const struct space *s, const struct stub_area *a);
/* Takes over the pages that an earlier ptmem had to leave in @s when it went. */
void stub_area_adopt(struct space *s);

#endif
