/*
 * The memory that pads share with ptmem: one memfd, mapped by both, and one more for each chunk of
 * slots that was added later.
 *
 *	control | directory | ... | deep | rules | slots | rings     the first file
 *	slots | rings                                                 others
 *
 * Slots, deep caches and rings are sparse arrays in the file; only used parts take pages. The first
 * thread's ring is the largest, for most programs have one thread; later ones are small, for many
 * threads share few CPUs. arch/pad.h defines the contents, and which side trusts which. struct
 * pad_memory holds everything that ptmem needs later; the shared copy is written, and never read
 * back.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_MEMORY_H
#define PTMEM_TRACEE_PADS_PAD_MEMORY_H

#include "arch/pad.h"
#include "base/types.h"

#define PAD_RULE_BITS 17
#define PAD_RING_MIN 65536u

struct pad_memory_options {
	size_t ring_size;    /* of the first thread's: a power of two, at least PAD_RING_MIN */
	uint32_t slot_count; /* threads at a time before it grows, at most PAD_MAX_SLOTS */
	uint32_t rule_bits;
};

/* A contiguous array of slots. */
struct pad_chunk {
	uint8_t *base;       /* address in this process */
	taddr_t target;      /* address in the target; 0 until pad_memory_locate */
	uint32_t first, count; /* slots */
	size_t rings;        /* offset of the bytes of their rings, in the order of slots */
	size_t size;         /* size of its own mapping; 0 = it is part of the main mapping */
	int fd;              /* likewise */
};

/* A thread that has a slot, at the same index as in the shared directory. */
struct pad_place {
	uint64_t thread_pointer; /* 0 = empty, 1 = removed */
	uint32_t slot;
};

/* Sizes and offsets in the file. */
struct pad_layout {
	size_t file_size;
	size_t directory, slots, deep_caches, rules, virtual; /* offsets */
	size_t ring_size;    /* of the first thread's */
};

/* What ptmem wrote to the control block. */
struct pad_written {
	uint64_t record_max, gap_ticks, sample_interval;
	uint32_t flags, rule_bits, owner, off, shared;
	uint32_t sample_shift;
	uint32_t shift_max;  /* the largest value that this ever had */
	uint64_t virtual;    /* address in the target */
	uint64_t label_epoch;
	struct pad_label label[PAD_LABELS];
	uint64_t call_site[1 << PAD_SITE_BITS];
	uint64_t framed, framed_size;
};

struct pad_slots {
	struct pad_chunk chunk[PAD_MAX_CHUNKS];
	uint32_t chunk_count;
	uint32_t count;      /* slots in all chunks */
	uint32_t used;       /* slots that were ever in use: 0 .. used - 1 */
	uint32_t *free_slot; /* slots that were released */
	size_t free_count, free_capacity;
};

struct pad_memory {
	int fd;              /* owned */
	uint8_t *base;       /* address in this process */
	taddr_t target;      /* address in the target; 0 until pad_memory_locate */
	struct pad_layout layout;
	struct pad_control *control;
	struct pad_written written;
	uint64_t sample_seed; /* pad_sampling.h */
	/* what was written to the table of struct pad_virtual; owned, NULL = nothing yet */
	struct pad_known *known;
	uint32_t known_functions; /* in it */
	struct pad_place *place;  /* 1 << PAD_DIRECTORY_BITS; owned */
	struct pad_slots slots;
	struct { bool is_lent; uint32_t slot; } deep[PAD_DEEP_CACHES];
};

/*
 * Takes over @fd, an empty sealable memfd; sets its size, seals and maps it, and initializes it
 * with off set. -errno (the caller keeps @fd) if there is not enough memory or address space, or
 * the file is not as expected.
 */
int pad_memory_init(struct pad_memory *m, int fd, const struct pad_memory_options *options);
void pad_memory_deinit(struct pad_memory *m);

/*
 * The target must mmap file_size bytes of fd at offset 0, shared, readable and writable, anywhere
 * (@target). After that, this updates the control block.
 */
void pad_memory_locate(struct pad_memory *m, taddr_t target);

/* The size of the next chunk: as many slots as there are, or fewer; 0 = no more are possible. */
size_t pad_memory_more(const struct pad_memory *m);
/*
 * Takes over @fd, an empty memfd, as the next chunk, which the target has mapped at @target:
 * shared, readable and writable. -errno (the caller keeps @fd).
 */
int pad_memory_grow(struct pad_memory *m, int fd, taddr_t target);

/* Sets the flags of pads, of enum pad_flag. */
void pad_memory_set_flags(struct pad_memory *m, uint32_t flags);
/* Sets the range of code that has frame pointers (struct pad_control); @size 0: there is none. */
void pad_memory_set_framed(struct pad_memory *m, taddr_t start, uint64_t size);
/* Sets the longest time between stamps, in ticks. */
void pad_memory_set_gap(struct pad_memory *m, uint64_t ticks);
/*
 * Sets whether pads only run the originals, and whether several threads may be in pads at a
 * time.
 */
void pad_memory_set_off(struct pad_memory *m, bool is_off);
void pad_memory_set_shared(struct pad_memory *m, bool is_shared);
/* Sets the mean distance of samples; then the shift of the distances that are drawn from now on. */
void pad_memory_set_sample_interval(struct pad_memory *m, uint64_t interval);
void pad_memory_set_sample_shift(struct pad_memory *m, uint32_t shift);

/* Publishes @layout for pads; then they record the frames of an interpreter, or not any more. */
void pad_memory_set_virtual(struct pad_memory *m, const struct pad_virtual_layout *layout);
/* Publishes PAD_LABELS labels; then pads record their values. */
void pad_memory_set_labels(struct pad_memory *m, const struct pad_label *label);
/* Sets whether all calls of functions with labels trap. */
void pad_memory_set_traps_calls(struct pad_memory *m, bool traps);
/*
 * Adds an address to which such calls may return (control.call_site): false if it is there already,
 * or there is no room. Removes all of them.
 */
bool pad_memory_add_call_site(struct pad_memory *m, taddr_t pc);
bool pad_memory_has_call_site(const struct pad_memory *m, taddr_t pc);
void pad_memory_clear_call_sites(struct pad_memory *m);
/* Adds the function @identity with @stamp to those that records may refer to. */
void pad_memory_know(struct pad_memory *m, uint64_t identity, uint64_t stamp);
/* An allocation that no pad has recorded may have the address of a function. */
void pad_memory_count_death(struct pad_memory *m);

/*
 * Whether the fields of the control block that pads only read still hold what ptmem wrote. (The
 * reader checks heads and numbers.) Some wrong values make pads lose events (off, flags, owner),
 * others make each call a stop (record_max, rules), without breaking a record.
 */
bool pad_memory_is_intact(const struct pad_memory *m);

/*
 * Takes over @fd, an empty memfd, in place of the file of chunk @part (0: the first file, which
 * contains everything else, too): copies the contents, and maps it here at the same address. The
 * target, whose threads are stopped, must map it, too. -errno (the caller keeps @fd).
 */
int pad_memory_replace(struct pad_memory *m, uint32_t part, int fd);

/* Slot number @index, which must be below used. */
struct pad_slot *pad_memory_slot(const struct pad_memory *m, uint32_t index);
/* The address of that slot in the target. */
taddr_t pad_memory_slot_address(const struct pad_memory *m, uint32_t index);
/* The ring of that slot, and the address of its bytes here. */
struct pad_ring *pad_memory_ring(const struct pad_memory *m, uint32_t index);
uint8_t *pad_memory_ring_bytes(const struct pad_memory *m, uint32_t index);
uint64_t pad_memory_ring_size(const struct pad_memory *m, uint32_t index);
/* Prepares the ring of slot @index, whose thread is new: what was written to it is kept. */
void pad_memory_place_ring(struct pad_memory *m, uint32_t index);
/* The number of the chunk that contains slot *index; *index becomes the index within it. */
uint32_t pad_memory_chunk(const struct pad_memory *m, uint32_t *index);

/*
 * Where pads keep the frames of a thread's last stack: normally in its slot, or in a deep cache for
 * a thread that recurses deeper. There are a few of those, assigned when a pad requests one
 * (PAD_REASON_DEEP).
 */

/* A copy of the deep cache of one slot, for a forked child. */
struct pad_deep_copy {
	uint32_t index;
	struct pad_deep_cache cache;
};

/*
 * Slot @index, whose thread is stopped at a PAD_REASON_DEEP, gets a deep cache if one is free, and
 * never requests one again. Its frames are reset: the caller must reset the reader's, too
 * (ring_reset_slot).
 */
void pad_cache_deepen(struct pad_memory *m, uint32_t index);

/* A copy of the deep cache of slot @index, which the caller frees; NULL = it has none. */
struct pad_deep_copy *pad_cache_copy(const struct pad_memory *m, uint32_t index);

/* The slots of threads in the shared memory, and the directory in which pads find them. */

/* Whether pad_slots_add() for @thread_pointer would find a slot. */
bool pad_slots_have_room(const struct pad_memory *m, uint64_t thread_pointer);
/*
 * Assigns a slot to the thread with @thread_pointer; an existing one (thread pointers are reused)
 * is reset. The thread must be stopped, or not running yet. Returns the slot's index, or -ENOSPC.
 */
int pad_slots_add(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high);

/* The index of the slot of @thread_pointer, or -ENOENT. */
int pad_slots_find(const struct pad_memory *m, uint64_t thread_pointer);

/* The thread has ended: its slot may be reused. Its records must have been read. */
void pad_slots_remove(struct pad_memory *m, uint64_t thread_pointer);

/*
 * Clears the call and the frames of slot @index, whose thread is stopped outside pads. The caller
 * must reset the reader's copy, too (ring_reset_slot).
 */
void pad_slots_reset(struct pad_memory *m, uint32_t index);

/*
 * @m was just made with its parent's options, at the same address. Turns it into a copy of the
 * parent's memory for the one thread of @slot: @control, @slot and its deep cache (NULL = none) as
 * they were, no rules. The caller took flags, index and thread pointer from private memory, not
 * from the shared one.
 */
void pad_slots_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, const struct pad_deep_copy *deep);

/* Lets pads detect that ptmem died. */

/*
 * The control blocks owned by the calling thread. When it dies, for whatever reason, the kernel
 * sets PAD_OWNER_DIED in each before it releases traced threads: they are robust futexes. Replaces
 * the thread's list of robust mutexes; must not be moved.
 */
struct pad_owner {
	/* struct robust_list_head */
	struct { uint64_t list; int64_t futex_offset; uint64_t pending; } head;
	void *before;  /* the thread's own list */
};
int pad_owner_init(struct pad_owner *owner);
/* Restores the thread's own list; ours must be empty. */
void pad_owner_deinit(struct pad_owner *owner);
void pad_owner_add(struct pad_owner *owner, struct pad_memory *m);
void pad_owner_remove(struct pad_owner *owner, struct pad_memory *m); /* before its deinit */

#endif
