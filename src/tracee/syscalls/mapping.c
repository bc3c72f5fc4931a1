/*
 * The system calls that map and unmap, one row and one function for each. Lengths are rounded up to
 * pages as in the kernel; a failed call changes nothing.
 */
#include "tracee/state/target_options.h"
#include "tracee/syscalls/mapping.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define HUGE_SHIFT_SHIFT 26 /* mmap(2), MAP_HUGETLB: log2 of the page's size in bits 26 to 31 */
#define HUGE_SHIFT_MASK 0x3f
#define HUGE_SHIFT_DEFAULT 21

static bool is_error(int64_t result)
{
	return result < 0 && result >= -4095;
}

static struct mapping_range range(taddr_t start, uint64_t length, uint64_t unit)
{
	struct mapping_range r = {start, start};
	if (length <= UINT64_MAX - unit && start <= UINT64_MAX - ROUND_UP(length, unit))
		r.end = start + ROUND_UP(length, unit);
	return r;
}

static struct mapping_range pages(taddr_t start, uint64_t length)
{
	return range(start, length, PAGE_SIZE_MIN);
}

/* -- one call each -- */

static void mmap_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	uint64_t unit = PAGE_SIZE_MIN, flags = c->arg[3],
		 shift = flags >> HUGE_SHIFT_SHIFT & HUGE_SHIFT_MASK;
	if (flags & MAP_HUGETLB)
		unit = 1ull << (shift ? shift : HUGE_SHIFT_DEFAULT);
	out->come = range(result, c->arg[1], unit);
}

static struct mapping_range munmap_removes(const struct mapping_call *c)
{
	return pages(c->arg[0], c->arg[1]);
}

static void munmap_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	(void)result;
	out->gone = munmap_removes(c);
}

static struct mapping_range mremap_removes(const struct mapping_call *c)
{
	if (c->arg[3] & MREMAP_DONTUNMAP)
		return (struct mapping_range){0};
	return pages(c->arg[0], c->arg[1]);
}

/*
 * In place, the tail is added or removed; a move removes and adds everything. An old size of 0
 * creates a second mapping.
 */
static void mremap_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	struct mapping_range old = pages(c->arg[0], c->arg[1]), new = pages(result, c->arg[2]);
	if (result != c->arg[0]) {
		out->gone = mremap_removes(c);
		out->come = new;
	} else if (new.end > old.end) {
		out->come = (struct mapping_range){old.end, new.end};
	} else {
		out->gone = (struct mapping_range){new.end, old.end};
	}
}

static struct mapping_range brk_removes(const struct mapping_call *c)
{
	if (c->program_break == 0 || c->arg[0] == 0 || c->arg[0] >= c->program_break)
		return (struct mapping_range){0};
	return (struct mapping_range){c->arg[0], c->program_break};
}

/* The result is the current break, whether the call failed or not. */
static void brk_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	if (c->program_break != 0 && result > c->program_break)
		out->come = (struct mapping_range){c->program_break, result};
	else if (c->program_break != 0)
		out->gone = (struct mapping_range){result, c->program_break};
}

static void attach_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	(void)result;
	out->come = c->object;
}

static struct mapping_range detach_removes(const struct mapping_call *c)
{
	return c->object;
}

static void detach_done(const struct mapping_call *c, taddr_t result, struct mapping_change *out)
{
	(void)result;
	out->gone = c->object;
}

static const struct {
	long number;
	enum heap_function function;
	struct mapping_range (*removes)(const struct mapping_call *c);
	void (*done)(const struct mapping_call *c, taddr_t result, struct mapping_change *out);
} rows[] = {
	{SYS_brk, FUNCTION_BRK, brk_removes, brk_done},
	{SYS_mmap, FUNCTION_MMAP, NULL, mmap_done},
	{SYS_munmap, FUNCTION_MUNMAP, munmap_removes, munmap_done},
	{SYS_mremap, FUNCTION_MREMAP, mremap_removes, mremap_done},
	{SYS_shmat, FUNCTION_MMAP, NULL, attach_done},
	{SYS_shmdt, FUNCTION_MUNMAP, detach_removes, detach_done},
	{SYS_io_setup, FUNCTION_MMAP, NULL, attach_done},
	{SYS_io_destroy, FUNCTION_MUNMAP, detach_removes, detach_done},
};

const long *mapping_watched(size_t *count_out)
{
	static const long numbers[] = {
		SYS_brk,   SYS_mmap,  SYS_munmap,   SYS_mremap,
		SYS_shmat, SYS_shmdt, SYS_io_setup, SYS_io_destroy,
	};
	_Static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(rows), "every row is watched");
	*count_out = ARRAY_SIZE(numbers);
	return numbers;
}

bool mapping_is_watched(long number)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].number == number)
			return true;
	}
	return false;
}

bool mapping_may_make_code(long number)
{
	return number == SYS_mmap || number == SYS_mprotect || number == SYS_pkey_mprotect ||
	       number == SYS_shmat;
}

bool mapping_makes_code(const struct mapping_call *c)
{
	return mapping_may_make_code(c->number) &&
	       c->arg[2] & (c->number == SYS_shmat ? (uint64_t)SHM_EXEC : (uint64_t)PROT_EXEC);
}

struct mapping_range mapping_code(const struct mapping_call *c, int64_t result)
{
	if (is_error(result))
		return (struct mapping_range){0};
	if (c->number == SYS_shmat)
		return pages((taddr_t)result, PAGE_SIZE_MIN);
	return pages(c->number == SYS_mmap ? (taddr_t)result : c->arg[0], c->arg[1]);
}

struct mapping_range mapping_removed(const struct mapping_call *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].number == c->number && rows[i].removes)
			return rows[i].removes(c);
	}
	return (struct mapping_range){0};
}

struct mapping_change mapping_done(const struct mapping_call *c, int64_t result)
{
	struct mapping_change change = {0};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].number != c->number)
			continue;
		change.function = rows[i].function;
		if (!is_error(result))
			rows[i].done(c, (taddr_t)result, &change);
	}
	return change;
}

bool mapping_is_wanted(const struct target_options *o, long number)
{
	if (number == SYS_brk)
		return o->watch.brk;
	return o->watch.mappings && mapping_is_watched(number);
}
