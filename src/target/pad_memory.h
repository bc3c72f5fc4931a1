/*
 * The memory that pads share with ptmem: one memfd, mapped by both, and one more for each chunk of
 * slots that was added later.
 *
 *	control | directory | slots | rules | ring            in the file
 *	control | directory | slots | rules | ring | ring     in memory, on both sides
 *
 * Slots lie in the file as a sparse array; only what threads used has pages.
 * Contract of what stands in there: arch/pad.h.
 */
#ifndef PTMEM_TARGET_PAD_MEMORY_H
#define PTMEM_TARGET_PAD_MEMORY_H

#include "arch/pad.h"
#include "base/types.h"

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

struct pad_memory {
	int fd;              /* owned */
	size_t file_size, map_size;
	size_t directory, slots, rules, ring; /* offsets */
	size_t ring_size;
	uint8_t *base;       /* this process's mapping */
	taddr_t target;      /* the target's; 0 until pad_memory_locate */
	struct pad_control *control;
	struct pad_chunk chunk[PAD_MAX_CHUNKS];
	uint32_t chunk_count;
	uint32_t slot_count; /* in all chunks */
	uint32_t used;       /* slots that were ever in use: 0 .. used - 1 */
	uint32_t *free_slot; /* slots given back */
	size_t free_count, free_capacity;
};

/*
 * Takes over @fd, an empty memfd, sizes and maps it, and fills it in with off set.
 * -errno (and @fd stays the caller's) when there is not enough memory or address space.
 */
int pad_memory_init(struct pad_memory *m, int fd, const struct pad_memory_options *options);
void pad_memory_deinit(struct pad_memory *m);

/*
 * What the target must do: mmap map_size bytes of fd at offset 0, shared, readable and
 * writable, anywhere (@target); then ring_size bytes at offset ring over the last
 * ring_size bytes of that, fixed. Then this tells the control block.
 */
void pad_memory_locate(struct pad_memory *m, taddr_t target);

/*
 * @m, just made with its parent's options and located where that lies, becomes what that memory is for the
 * one thread of @slot: @control and @slot as they were, an empty ring that goes on at @position, no rules.
 */
void pad_memory_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, uint64_t position);

/* The bytes of the next chunk: as many slots as there are, or fewer; 0 = there can be no more. */
size_t pad_memory_more(const struct pad_memory *m);
/*
 * Takes over @fd, an empty memfd, as the next chunk, which the target has mapped at @target: shared,
 * readable and writable. -errno (and @fd stays the caller's).
 */
int pad_memory_grow(struct pad_memory *m, int fd, taddr_t target);

/*
 * The control blocks that the calling thread answers for. When it dies, however it does,
 * the kernel writes PAD_OWNER_DIED into each before it lets go of traced threads: they
 * are robust futexes. Takes the place of the thread's list of robust mutexes; must not
 * be moved or freed while the thread lives.
 */
struct pad_owner {
	/* struct robust_list_head */
	struct { uint64_t list; int64_t futex_offset; uint64_t pending; } head;
};
int pad_owner_init(struct pad_owner *owner);
void pad_owner_add(struct pad_owner *owner, struct pad_memory *m);
void pad_owner_remove(struct pad_owner *owner, struct pad_memory *m); /* before its deinit */

/* The slot number @index, which is below used. */
struct pad_slot *pad_memory_slot(const struct pad_memory *m, uint32_t index);

/* Whether the next would get a slot. */
bool pad_memory_has_room(const struct pad_memory *m, uint64_t thread_pointer);
/*
 * Gives the thread with @thread_pointer a slot; one that it has already (a thread pointer
 * is used again) is reset. The thread must be stopped, or not yet running. Returns the
 * slot's index, or -ENOSPC.
 */
int pad_memory_add_thread(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high);

/* The index of the slot of @thread_pointer, or -ENOENT. */
int pad_memory_find_thread(const struct pad_memory *m, uint64_t thread_pointer);

/* The thread is gone: its slot may be given to another. Its records must have been read. */
void pad_memory_remove_thread(struct pad_memory *m, uint64_t thread_pointer);

/*
 * Forgets guard and frames of slot @index, whose thread is stopped outside pads; the
 * reader must forget its own too (ring_reset_slot).
 */
void pad_memory_reset_slot(struct pad_memory *m, uint32_t index);

#endif
