/*
 * Allocators other than glibc's in a stopped process: musl (mallocng since 1.2.1, and the one
 * before), jemalloc 5.2.0 to 5.3.1, tcmalloc of gperftools 2.7 to 2.18, mimalloc 2.0.3 to 2.4 and
 * 3.6, not its secure form. Each is recognized by its data structures, which are verified, since
 * stripped libraries have no symbols for them.
 */
#ifndef PTMEM_MALLOC_ALLOCATORS_H
#define PTMEM_MALLOC_ALLOCATORS_H

#include "malloc/glibc.h"
#include "malloc/slabs.h"

/*
 * Allocators other than glibc's in a stopped process. Each is recognized by its data structures,
 * which are verified, since stripped libraries have no symbols for them:
 *
 *	musl        mallocng, musl 1.2.1 and later (allocators.h); the one before (allocators.h)
 *	jemalloc    5.2.0 to 5.3.1 (allocators.h)
 *	tcmalloc    gperftools 2.7 to 2.18 (allocators.h)
 *	mimalloc    2.0.3 to 2.4 (allocators.h) and 3.6 (allocators.h), not its secure form
 */

/* What there is to search, and for what. */
struct allocator_input {
	struct inspect_memory *memory;
	const struct addr_range *data;         /* writable data of program and libraries */
	size_t data_count;
	const struct glibc_thread *thread;
	size_t thread_count;
};

struct allocator {
	const char *name;                       /* as malloc_module_other has it; NULL = none */
	struct slabs slabs;                     /* sorted */
	uint32_t caches;                        /* of threads */
};

/* Whether an allocator of that name may be found. */
bool allocator_is_known(const char *name);

/*
 * Finds the first of them that has blocks in use, or the last one that has none: another library
 * may have taken its place. allocator_deinit frees @out.
 */
void allocator_find(const struct allocator_input *in, struct allocator *out);
void allocator_deinit(struct allocator *a);

/*
 * jemalloc's extents (64 bits, 48 of an address in use), by the tree that leads from each page to
 * the description of its extent:
 *
 *	root        2^18 pointers to leaves, by address >> 30; in the library's data
 *	leaf        2^18 words, by address >> 12: of an extent's first and last page, and each
 *	            of a slab. 16 bits size class, 48 bits description; flags in its low bits
 *
 *	description
 *	0  bits: 12 slab; then of several bits, from
 *	     5.3  5.2
 *	     17   16   state: 0 in use, dirty, muzzy, retained
 *	     20   18   size class
 *	     28   26   free regions
 *	8  address; of a large block: of its first byte, within its first page
 *	16 size; the low 12 bits are others
 *	64 a slab's bits of 512 regions, 1 = free
 *
 * Class and pages of an extent in use must agree with the leaf. What jemalloc needs for itself is
 * in blocks at multiples of 2 MiB: 0 size, 16 a description of their unused ends.
 *
 * Threads' caches: see jemalloc.c.
 */

bool jemalloc_find(const struct allocator_input *in, struct allocator *out);

/*
 * mimalloc 2.0.3 to 2.4 in their release form (64 bits); 2.0.3 is as 2.0.4:
 *
 *	segment     at a multiple of its size, larger only for a huge block; slices of 64 KiB, the
 *	            first of them its own. Key: its cookie ^ its address, the same for all
 *	page        some adjacent slices with blocks of one size; described at its first slice.
 *	            A size of 0: the slices are free
 *	lists       in each page: free, freed by its thread, freed by other threads; in each heap:
 *	            freed by other threads while a page was full. A block's first word is the link
 *
 * The segment of an ended thread has no thread, and its pages no heap. A segment without pages and
 * thread is kept for later.
 *
 *	offsets              2.0.4    2.0.9    2.1.4    2.1.8
 *	used pages; cookie   312; 320 208; 216 208; 216 216; 224
 *	slices, own, kind    328      224      224      248
 *	entries; thread      360; 352 248; 256 248; 256 272; 280
 *	pages; of bytes      368; 80  264; 80  264; 96  288; 96
 *
 * The blocks of a page begin after 128 bytes (2.0.4) or 384 (2.0.9) if they have up to 1024 bytes;
 * after 3 blocks of up to 64 bytes, or one of up to 512 (2.1.0); from 2.1.4 on the page says where.
 *
 * Where an aligned block begins in its place is not recorded, only that a page has such blocks.
 * 2.0.3 keeps blocks that are aligned to more than 2 MiB, although the program frees them.
 */

bool mimalloc_find(const struct allocator_input *in, struct allocator *out);

/*
 * mimalloc 3.6 in its release form (64 bits):
 *
 *	region   256 MiB, aligned; begins with a description (128 bytes) for each of its slices of
 *	         64 KiB, so that the first 8 slices have the descriptions
 *	page     adjacent slices with blocks of one size. The descriptions of its slices point to
 *	         the one that is in use: the first slice's own, or, for blocks of up to 10 KiB, one
 *	         at the start of the slice itself. Of a single block's only two slices' do
 *	arena    adjacent regions. What describes it follows the descriptions of its first region;
 *	         a bit for each slice that is free
 *
 * A page outside all arenas has a region of its own, or several: large blocks, and those that are
 * aligned to more than 64 KiB. Descriptions of pages that were freed remain: without thread, and
 * without a block in use. The pages of thread 8 have mimalloc's own variables of threads.
 *
 *	page    self 0, thread + flags 8, free 16, local free 24, size of a block 32, used 40 (u16),
 *	        where blocks begin, from here, 48, capacity 56 (u16), reserved 58 (u16), freed by
 *	        others + flag 64, arena 104, or region, size; slice 112 (u32), slices 116 (u32),
 *	        kind 120 (u32): 3 = region, 6 = arena
 *	arena   start 40, slices 48, own slices 56, lists of bits 112: free, committed, dirty, purge
 *
 * As in mimalloc 2 it is not recorded where an aligned block begins in its place.
 */

bool mimalloc3_find(const struct allocator_input *in, struct allocator *out);

/*
 * musl's malloc since 1.2.1 (mallocng, 64 bits):
 *
 *	context     0 secret, 56 first area, 64 last area; 928 bytes in libc's data
 *	area        0 secret, 8 next, 16 int slots, 24 descriptions of groups (meta), 40 bytes each;
 *	            one page
 *	meta        16 group or 0, 24 int available, 28 int freed: a bit for each of its slots,
 *	            32 bits: 5 last slot, 1 may be freed, 6 size class, 52 pages of its mapping
 *	group       0 its meta, 16 slots
 *
 * A slot that is neither available nor freed holds a block, or an inner group. The four bytes
 * before a slot say where the block begins:
 *
 *	-3          7 << 5: the block is 16 times the number at -2 after the slot's start, or a
 *	            multiple of 1 MiB more
 *	            else the block is at its start, and these are the bytes before the block:
 *	-4          1 if the offset is at -8, 32 bits
 *	-3          5 bits number of the slot; 3 bits unused bytes at its end, 5: it is written in
 *	            the last 4 bytes of the slot; 6: an inner group
 *	-2          offset from slot 0, in 16 bytes
 */

bool musl_find(const struct allocator_input *in, struct allocator *out);

/*
 * musl's malloc before 1.2.1, which later versions have as oldmalloc (64 bits):
 *
 *	bins        8 bytes: a bit for each list that is not empty; 64 lists, 24 bytes each: int
 *	            lock, int waiters, 8 first chunk, 16 last; in libc's data. A list that was never
 *	            used is 0; an empty one refers to itself, as to a chunk 8 bytes before it
 *	chunk       0 size of the one before, 8 size, each + 1 if it is in use; 16 block, or, if it
 *	            is free, next and previous chunk of its list. At 16 more than a multiple of 32
 *	area        chunks that follow one another; the first has no chunk before it, the last one
 *	            has no size: in memory of brk or mmap, or what is left of a page of a library's
 *	            data
 *
 * A chunk with a mapping of its own is 16 bytes after its start, which it has at 0, and not marked
 * as in use. An aligned block has another such header.
 */

bool musl_old_find(const struct allocator_input *in, struct allocator *out);

/*
 * tcmalloc of gperftools 2.7 to 2.18 (64 bits, 48 of an address in use, pages of 8 kB), by the tree
 * that leads from each of its pages to the description of its span:
 *
 *	root        2^17 pointers to leaves, by address >> 31; in the library's data
 *	leaf        2^18 pointers to descriptions, by address >> 13: of a span's first and last
 *	            page, and of each page between that is divided into blocks. What it has for
 *	            others within a span is out of date
 *
 *	description, 48 bytes
 *	0  number of its first page (address >> 13); 8 number of its pages
 *	16 next, 24 previous description on the list of its size class, see tcmalloc.c
 *	32 first free block, see tcmalloc.c
 *	40 16 bits blocks that are not free; 8 bits size class, 0: one block, or a free span;
 *	   2 bits 0 in use, 1 free, 2 free and returned to the kernel; 1 bit sampled
 *
 * A block that tcmalloc samples is a span of its own: 32 points to the requested size. Its usable
 * size is that of other blocks. Sizes of classes are known from threads' caches, see
 * tcmalloc.c. gperftools' debugging allocator, which has headers of its own in tcmalloc's
 * blocks, is not taken for tcmalloc.
 */

bool tcmalloc_find(const struct allocator_input *in, struct allocator *out);

#endif
