/*
 * The files of the shared memory, opened and mapped by a thread of the target.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_MAPPING_H
#define PTMEM_TRACEE_PADS_PAD_MAPPING_H

#include "tracee/pads/pad_memory.h"

struct address_space;
struct pads;
struct target;
struct thread;

/* Makes the memory of @p, whose space is @s; @th is stopped and makes the calls. 0 or -errno. */
int pads_open_memory(struct target *t, struct address_space *s, struct thread *th, struct pads *p);
/* More slots; whether there can be more. @th is stopped; it makes calls for that. */
bool pads_grow(struct target *t, struct thread *th);

/* An empty memfd that is open in both, here as *own_out; returns its number in the target. */
int pads_open_file(struct target *t, struct thread *th, int *own_out);
void pads_close_file(struct target *t, struct thread *th, int fd);
/*
 * Maps @m, whose file the target has open as @fd, over what lies at @at. 0 or -errno: then
 * something may be mapped there already.
 */
int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m,
		  taddr_t at);
/*
 * Maps chunk @c, whose file the target has open as @fd, over what lies in its place. 0 or -errno.
 */
int pads_map_chunk_over(struct target *t, struct thread *th, int fd, const struct pad_chunk *c);
/* mmap with @args in the target: the address or -errno. */
int64_t pads_mmap(struct target *t, struct thread *th, const uint64_t args[6]);

#endif
