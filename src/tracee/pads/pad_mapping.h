/* A thread of the target opens and maps the files of the shared memory. */
#ifndef PTMEM_TRACEE_PADS_PAD_MAPPING_H
#define PTMEM_TRACEE_PADS_PAD_MAPPING_H

#include "tracee/pads/pad_memory.h"

struct address_space;
struct pads;
struct target;
struct thread;

/* Creates the memory of @p, whose space is @s; @th is stopped and makes the calls. 0 or -errno. */
int pads_open_memory(struct target *t, struct address_space *s, struct thread *th, struct pads *p);
/* Adds slots; returns whether more can be added later. @th is stopped and makes the calls. */
bool pads_grow(struct target *t, struct thread *th);

/*
 * An empty memfd that is open in both processes, here as *own_out. Returns its number in the
 * target.
 */
int pads_open_file(struct target *t, struct thread *th, int *own_out);
void pads_close_file(struct target *t, struct thread *th, int fd);
/*
 * Maps @m, whose file the target has open as @fd, over the mapping at @at. 0 or -errno: then
 * something may be mapped there already.
 */
int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m,
		  taddr_t at);
/* Maps chunk @c, whose file the target has open as @fd, at its old address. 0 or -errno. */
int pads_map_chunk_over(struct target *t, struct thread *th, int fd, const struct pad_chunk *c);
/* Calls mmap with @args in the target. Returns the address or -errno. */
int64_t pads_mmap(struct target *t, struct thread *th, const uint64_t args[6]);

#endif
