/*
 * The memory that pads share with ptmem: one memfd, mapped by both, and one more for each chunk of
 * slots that was added later. Slots are given to threads by pad_slots.h.
 *
 *	control | directory | slots | deep | rules | ring            in the file
 *	control | directory | slots | deep | rules | ring | ring     in memory, on both sides
 *
 * Slots and deep caches lie in the file as sparse arrays; only what threads used has pages.
 * Contract of what is in there, and which side trusts which: arch/pad.h. struct pad_memory holds
 * all that ptmem needs to know again; the shared copy is written, and never read back.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_MEMORY_H
#define PTMEM_TRACEE_PADS_PAD_MEMORY_H

#include "arch/pad.h"
#include "base/types.h"

#define PAD_RULE_BITS 17

struct pad_memory_options {
	size_t ring_size;    /* a power of two, at least 64 KiB */
	uint32_t slot_count; /* threads at a time before it grows, at most PAD_MAX_SLOTS */
	uint32_t rule_bits;
};

/* Slots that lie together. */
struct pad_chunk {
	uint8_t *base;       /* in this process */
	taddr_t target;      /* in the target's; 0 until pad_memory_locate */
	uint32_t count;
	size_t size;         /* of its own mapping; 0 = lies in that of all else */
	int fd;              /* likewise */
};

/* A thread that has a slot, at the same place as in the shared directory. */
struct pad_place {
	uint64_t thread_pointer; /* 0 = empty, 1 = removed */
	uint32_t slot;
};

struct pad_memory {
	int fd;              /* owned */
	size_t file_size, map_size;
	size_t directory, slots, deep_caches, rules, ring; /* offsets */
	size_t ring_size;
	uint64_t key, raw_max;    /* as in the control block */
	uint64_t sample_seed; /* pad_sampling.h */
	uint32_t flags, rule_bits, owner, off, shared;
	struct pad_place *place;  /* 1 << PAD_DIRECTORY_BITS; owned */
	uint8_t *base;       /* this process's mapping */
	taddr_t target;      /* the target's; 0 until pad_memory_locate */
	struct pad_control *control;
	struct pad_chunk chunk[PAD_MAX_CHUNKS];
	uint32_t chunk_count;
	uint32_t slot_count; /* in all chunks */
	uint32_t used;       /* slots that were ever in use: 0 .. used - 1 */
	uint32_t *free_slot; /* slots given back */
	size_t free_count, free_capacity;
	struct { bool is_lent; uint32_t slot; } deep[PAD_DEEP_CACHES];
};

/*
 * Takes over @fd, an empty memfd that may be sealed, sizes and maps it, and fills it in with off
 * set. It keeps its size then, for all that have it open. -errno (and @fd stays the caller's) when
 * there is not enough memory or address space, or the file is not as it should be.
 */
int pad_memory_init(struct pad_memory *m, int fd, const struct pad_memory_options *options);
void pad_memory_deinit(struct pad_memory *m);

/*
 * What the target must do: mmap map_size bytes of fd at offset 0, shared, readable and
 * writable, anywhere (@target); then ring_size bytes at offset ring over the last
 * ring_size bytes of that, fixed. Then this updates the control block.
 */
void pad_memory_locate(struct pad_memory *m, taddr_t target);

/* The bytes of the next chunk: as many slots as there are, or fewer; 0 = there can be no more. */
size_t pad_memory_more(const struct pad_memory *m);
/*
 * Takes over @fd, an empty memfd, as the next chunk, which the target has mapped at @target:
 * shared, readable and writable. -errno (and @fd stays the caller's).
 */
int pad_memory_grow(struct pad_memory *m, int fd, taddr_t target);

/* What pads do from now on, of enum pad_flag. */
void pad_memory_set_flags(struct pad_memory *m, uint32_t flags);
/* Whether pads run the originals only, and whether several threads may be in pads at a time. */
void pad_memory_set_off(struct pad_memory *m, bool is_off);
void pad_memory_set_shared(struct pad_memory *m, bool is_shared);

/*
 * Whether the control block holds what ptmem wrote for pads to read. (Head, tail and room are the
 * ring's.) Some values make pads lose events (off, flags, owner), others make each call a stop
 * (raw_max, rules), and neither breaks a record.
 */
bool pad_memory_is_intact(const struct pad_memory *m);

/*
 * Takes over @fd, an empty memfd, instead of the file of chunk @part (0: the first file, which
 * holds all the rest as well): with the same contents, and mapped here at the same address. The
 * target, whose threads are stopped, has to map it, too. -errno (and @fd stays the caller's).
 */
int pad_memory_replace(struct pad_memory *m, uint32_t part, int fd);

/* The slot number @index, which is below used. */
struct pad_slot *pad_memory_slot(const struct pad_memory *m, uint32_t index);
/* Its address in the target. */
taddr_t pad_memory_slot_address(const struct pad_memory *m, uint32_t index);
/* The number of the chunk that slot *index is in; *index becomes its place there. */
uint32_t pad_memory_chunk(const struct pad_memory *m, uint32_t *index);

#endif
