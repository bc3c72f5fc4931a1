/* The list of robust futexes through which the kernel finds control blocks. */
#include "tracee/pads/pad_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

/*
 * The link to the next control block. The kernel and ptmem follow it, so it is private; and since
 * the distance between link and futex is the same for all, it is the last word of the page before.
 */
static uint64_t *link_of(const struct pad_memory *m)
{
	return (uint64_t *)(void *)m->base - 1;
}

/*
 * An entry of the kernel's list is the address of its link to the next one; the last one links to
 * the head.
 */
int pad_owner_init(struct pad_owner *owner)
{
	owner->head.list = (uintptr_t)&owner->head.list;
	owner->head.futex_offset =
		(int64_t)offsetof(struct pad_control, owner) + (int64_t)sizeof(uint64_t);
	owner->head.pending = 0;
	_Static_assert(sizeof(owner->head) == sizeof(struct robust_list_head),
		       "as the kernel has it");
	size_t size;
	if (syscall(SYS_get_robust_list, 0, &owner->before, &size) != 0)
		owner->before = NULL;
	return syscall(SYS_set_robust_list, &owner->head, sizeof(owner->head)) ? -errno : 0;
}

void pad_owner_deinit(struct pad_owner *owner)
{
	syscall(SYS_set_robust_list, owner->before, sizeof(owner->head));
}

void pad_owner_add(struct pad_owner *owner, struct pad_memory *m)
{
	m->written.owner = (uint32_t)syscall(SYS_gettid);
	__atomic_store_n(&m->control->owner, m->written.owner, __ATOMIC_SEQ_CST);
	*link_of(m) = owner->head.list;
	__atomic_store_n(&owner->head.list, (uintptr_t)link_of(m), __ATOMIC_SEQ_CST);
}

void pad_owner_remove(struct pad_owner *owner, struct pad_memory *m)
{
	uint64_t *link = &owner->head.list;

	while (*link != (uintptr_t)&owner->head.list) {
		if (*link == (uintptr_t)link_of(m)) {
			*link = *link_of(m);
			return;
		}
		link = (uint64_t *)(uintptr_t)*link;
	}
}

/*
 * The files of the shared memory, and their layout.
 */

#define LARGER_RINGS 32u /* slots */

uint64_t pad_memory_ring_size(const struct pad_memory *m, uint32_t index)
{
	uint64_t first = m->layout.ring_size;

	if (index == 0)
		return first;
	return index < LARGER_RINGS ? MAX(first / 4, (uint64_t)PAD_RING_MIN) : PAD_RING_MIN;
}

/* The bytes of all rings of slots before @index. */
static size_t sizes_before(const struct pad_memory *m, uint32_t index)
{
	uint64_t size = index > 0 ? pad_memory_ring_size(m, 0) : 0;

	if (index > 1)
		size += (MIN(index, LARGER_RINGS) - 1) * pad_memory_ring_size(m, 1);
	if (index > LARGER_RINGS)
		size += (uint64_t)(index - LARGER_RINGS) * PAD_RING_MIN;
	return size;
}

/* Lays out @c, with slots from @c->first on; returns its size. */
static size_t lay_out_chunk(const struct pad_memory *m, struct pad_chunk *c)
{
	c->rings = ROUND_UP(sizeof(struct pad_slot) * c->count, PAGE_SIZE_MIN);
	return c->rings + sizes_before(m, c->first + c->count) - sizes_before(m, c->first);
}

static void lay_out(struct pad_memory *m, const struct pad_memory_options *options)
{
	size_t at = PAD_DIRECTORY_OFFSET;

	CHECK(options->slot_count <= PAD_MAX_SLOTS);
	_Static_assert(sizeof(struct pad_control) <= PAD_DIRECTORY_OFFSET,
		       "the control block has room");
	m->layout.directory = at;
	at += ROUND_UP(sizeof(struct pad_directory) << PAD_DIRECTORY_BITS, PAGE_SIZE_MIN);
	/* filter, distances and heads of rings precede it */
	at = ROUND_UP(PAD_BEHIND_RINGS, PAGE_SIZE_MIN);
	m->layout.deep_caches = at;
	at += ROUND_UP(sizeof(struct pad_deep_cache) * PAD_DEEP_CACHES, PAGE_SIZE_MIN);
	m->layout.rules = at;
	at += ROUND_UP(sizeof(struct unwind_rule) << options->rule_bits, PAGE_SIZE_MIN);
	m->written.rule_bits = options->rule_bits;
	m->layout.virtual = at;
	at += ROUND_UP(sizeof(struct pad_virtual), PAGE_SIZE_MIN);
	m->layout.slots = at;
	m->layout.ring_size = options->ring_size;
	m->slots.chunk[0] = (struct pad_chunk){.count = options->slot_count};
	m->layout.file_size = at + lay_out_chunk(m, &m->slots.chunk[0]);
}

/* The page below the shared memory is private; its last word is the link of pad_memory.c. */
#define LINK_SIZE PAGE_SIZE_MIN

static int map(struct pad_memory *m)
{
	const int prot = PROT_READ | PROT_WRITE;
	uint8_t *link = mmap(NULL, LINK_SIZE + m->layout.file_size, prot,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (link == MAP_FAILED)
		return -errno;
	m->base = link + LINK_SIZE;
	if (mmap(m->base, m->layout.file_size, prot, MAP_SHARED | MAP_FIXED, m->fd, 0) ==
	    MAP_FAILED) {
		int err = -errno;
		munmap(link, LINK_SIZE + m->layout.file_size);
		m->base = NULL;
		return err;
	}
	return 0;
}

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020 /* linux/fcntl.h since 6.3 */
#endif

/*
 * Whether @fd is a new memfd. The program may have replaced it by another file, one that it may not
 * write but we may: such a file must not be changed.
 */
static bool is_new_memory(int fd)
{
	struct stat st;

	/* -1: no memfd; some get F_SEAL_EXEC when they are created */
	return (fcntl(fd, F_GET_SEALS) & ~F_SEAL_EXEC) == 0 && fstat(fd, &st) == 0 &&
	       st.st_size == 0;
}

/*
 * The program can open the file again through its own mapping (/proc/self/map_files). If it
 * truncated it, an access beyond the new end would kill us.
 */
static int seal_size(int fd, size_t size)
{
	struct stat st;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
	    fstat(fd, &st) != 0)
		return -errno;
	return (size_t)st.st_size == size ? 0 : -EIO;
}

/*
 * RLIMIT_FSIZE limits the user's files, and is not meant for memory: it is raised while the file
 * gets its size, if permitted.
 */
static int make_size(int fd, size_t size)
{
	struct rlimit limit;
	bool is_raised = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size;
	int rc;

	if (!is_new_memory(fd))
		return -EBADF;
	if (is_raised) {
		const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
		const struct rlimit hard = { limit.rlim_max, limit.rlim_max };
		is_raised = setrlimit(RLIMIT_FSIZE, &none) == 0 ||
			    setrlimit(RLIMIT_FSIZE, &hard) == 0;
	}
	rc = ftruncate(fd, (off_t)size) != 0 ? -errno : 0;
	if (is_raised)
		setrlimit(RLIMIT_FSIZE, &limit);
	return rc != 0 ? rc : seal_size(fd, size);
}

int pad_memory_init(struct pad_memory *m, int fd, const struct pad_memory_options *options)
{
	int err;

	*m = (struct pad_memory){ .fd = fd };
	lay_out(m, options);
	err = make_size(fd, m->layout.file_size);
	if (!err)
		err = map(m);
	if (err)
		return err;
	m->written.record_max = 1u << 20;
	m->written.off = m->written.shared = 1;
	m->control = (struct pad_control *)(void *)m->base;
	*m->control = (struct pad_control){
		.off = 1,
		.shared = 1,
		.rule_bits = options->rule_bits,
		.record_max = m->written.record_max,
		.next_number = 1,
	};
	m->place = xcalloc(1u << PAD_DIRECTORY_BITS, sizeof(*m->place));
	m->slots.chunk[0].base = m->base + m->layout.slots;
	m->slots.chunk_count = 1;
	m->slots.count = options->slot_count;
	return 0;
}

/* The next chunk; returns its size. */
static size_t next_chunk(const struct pad_memory *m, struct pad_chunk *out)
{
	*out = (struct pad_chunk){
		.first = m->slots.count,
		.count = MIN(m->slots.count, PAD_MAX_SLOTS - m->slots.count),
	};
	return out->count && m->slots.chunk_count < PAD_MAX_CHUNKS ? lay_out_chunk(m, out) : 0;
}

size_t pad_memory_more(const struct pad_memory *m)
{
	struct pad_chunk c;

	return next_chunk(m, &c);
}

int pad_memory_grow(struct pad_memory *m, int fd, taddr_t target)
{
	struct pad_chunk c;
	size_t size = next_chunk(m, &c);
	void *base;
	int err;

	c.target = target;
	c.size = size;
	c.fd = fd;
	if (!c.size)
		return -ENOSPC;
	err = make_size(fd, c.size);
	if (err)
		return err;
	base = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	c.base = base;
	m->slots.count += c.count;
	m->control->chunk[m->slots.chunk_count].slots = target;
	m->slots.chunk[m->slots.chunk_count++] = c;
	return 0;
}

/* Copies @from, a memfd of @size bytes mapped at @base, except for its holes. */
static int copy_file(int from, const uint8_t *base, size_t size, int to)
{
	/* does not use write(2), which RLIMIT_FSIZE limits */
	uint8_t *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
	off_t start = 0, end;

	if (copy == MAP_FAILED)
		return -errno;
	while ((start = lseek(from, start, SEEK_DATA)) >= 0 && start < (off_t)size) {
		end = lseek(from, start, SEEK_HOLE);
		if (end <= start)
			break;
		memcpy(copy + start, base + start, (size_t)(end - start));
		start = end;
	}
	munmap(copy, size);
	return 0;
}

int pad_memory_replace(struct pad_memory *m, uint32_t part, int fd)
{
	int *own = part == 0 ? &m->fd : &m->slots.chunk[part].fd;
	uint8_t *base = part == 0 ? m->base : m->slots.chunk[part].base;
	size_t size = part == 0 ? m->layout.file_size : m->slots.chunk[part].size;
	const int flags = MAP_SHARED | MAP_FIXED, rights = PROT_READ | PROT_WRITE;
	int err = make_size(fd, size);

	if (!err)
		err = copy_file(*own, base, size, fd);
	if (err)
		return err;
	if (mmap(base, size, rights, flags, fd, 0) == MAP_FAILED)
		return -errno;
	close(*own);
	*own = fd;
	return 0;
}

void pad_memory_deinit(struct pad_memory *m)
{
	for (uint32_t i = 0; i < m->slots.chunk_count; i++) {
		if (!m->slots.chunk[i].size)
			continue;
		munmap(m->slots.chunk[i].base, m->slots.chunk[i].size);
		close(m->slots.chunk[i].fd);
	}
	if (m->base)
		munmap(m->base - LINK_SIZE, LINK_SIZE + m->layout.file_size);
	close(m->fd);
	free(m->known);
	free(m->place);
	free(m->slots.free_slot);
	*m = (struct pad_memory){ .fd = -1 };
}

void pad_memory_locate(struct pad_memory *m, taddr_t target)
{
	m->target = target;
	m->control->chunk[0].slots = m->slots.chunk[0].target = target + m->layout.slots;
	m->control->rules = target + m->layout.rules;
	m->control->virtual = target + m->layout.virtual;
}

void pad_memory_set_flags(struct pad_memory *m, uint32_t flags)
{
	m->written.flags = flags;
	__atomic_store_n(&m->control->flags, flags, __ATOMIC_RELEASE); /* after the clock's word */
}

void pad_memory_set_gap(struct pad_memory *m, uint64_t ticks)
{
	m->written.gap_ticks = ticks;
	__atomic_store_n(&m->control->gap_ticks, ticks, __ATOMIC_RELAXED);
}

void pad_memory_set_framed(struct pad_memory *m, taddr_t start, uint64_t size)
{
	struct pad_control *c = m->control;

	if (m->written.framed == start && m->written.framed_size == size)
		return;
	/* a pad sees no range but these two */
	__atomic_store_n(&c->framed_size, 0, __ATOMIC_SEQ_CST);
	if (size)
		__atomic_store_n(&c->framed, start, __ATOMIC_SEQ_CST);
	else
		start = m->written.framed;
	__atomic_store_n(&c->framed_size, size, __ATOMIC_SEQ_CST);
	m->written.framed = start;
	m->written.framed_size = size;
}

void pad_memory_set_off(struct pad_memory *m, bool is_off)
{
	m->written.off = is_off;
	__atomic_store_n(&m->control->off, m->written.off, __ATOMIC_SEQ_CST);
}

void pad_memory_set_shared(struct pad_memory *m, bool is_shared)
{
	m->written.shared = is_shared;
	__atomic_store_n(&m->control->shared, m->written.shared, __ATOMIC_RELAXED);
}

void pad_memory_set_sample_interval(struct pad_memory *m, uint64_t interval)
{
	m->written.sample_interval = interval;
	__atomic_store_n(&m->control->sample_interval, interval, __ATOMIC_RELAXED);
}

void pad_memory_set_sample_shift(struct pad_memory *m, uint32_t shift)
{
	m->written.sample_shift = shift;
	m->written.shift_max = MAX(m->written.shift_max, shift);
	__atomic_store_n(&m->control->sample_shift, shift, __ATOMIC_RELAXED);
}

static struct pad_virtual *virtual_of(const struct pad_memory *m)
{
	return (struct pad_virtual *)(void *)(m->base + m->layout.virtual);
}

/* The flag comes last, and goes first: a pad that sees it reads what is written here. */
void pad_memory_set_virtual(struct pad_memory *m, const struct pad_virtual_layout *layout)
{
	uint32_t flags = m->written.flags & ~(uint32_t)PAD_VIRTUAL;

	pad_memory_set_flags(m, flags);
	virtual_of(m)->layout = *layout;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (layout->mode != PAD_VIRTUAL_OFF && !(flags & (PAD_COUNT_ONLY | PAD_VERIFY)))
		pad_memory_set_flags(m, flags | PAD_VIRTUAL);
}

/*
 * Pads of other threads may be reading @at: what they have begun with stays, or has no kind. Those
 * that are as before are not touched.
 */
static void publish_label(struct pad_label *at, const struct pad_label *label)
{
	struct pad_label without_kind = *label;

	__atomic_store_n(&at->kind, PAD_LABEL_NONE, __ATOMIC_SEQ_CST);
	if (label->kind == PAD_LABEL_NONE)
		return;
	without_kind.kind = PAD_LABEL_NONE;
	*at = without_kind;
	__atomic_store_n(&at->kind, label->kind, __ATOMIC_SEQ_CST);
}

void pad_memory_set_labels(struct pad_memory *m, const struct pad_label *label)
{
	bool has_any = false;

	for (uint32_t i = 0; i < PAD_LABELS; i++) {
		if (memcmp(&m->written.label[i], &label[i], sizeof(*label)) != 0)
			publish_label(&m->control->label[i], &label[i]);
		m->written.label[i] = label[i];
		has_any |= label[i].kind != PAD_LABEL_NONE;
	}
	/* never 0, which slots have that are to read them anew */
	__atomic_store_n(&m->control->label_epoch, ++m->written.label_epoch, __ATOMIC_SEQ_CST);
	/* from then on, also to record that there are none any more */
	if (has_any && !(m->written.flags & PAD_COUNT_ONLY))
		pad_memory_set_flags(m, m->written.flags | PAD_HAS_LABELS);
}

void pad_memory_set_traps_calls(struct pad_memory *m, bool traps)
{
	__atomic_store_n(&m->control->traps_calls, traps, __ATOMIC_SEQ_CST);
}

bool pad_memory_add_call_site(struct pad_memory *m, taddr_t pc)
{
	for (uint32_t i = 0; i < PAD_SITE_TRIES; i++) {
		uint64_t *site = &m->written.call_site[pad_site_index(pc, i)];

		if (*site == pc)
			return false;
		if (*site)
			continue;
		*site = pc;
		__atomic_store_n(&m->control->call_site[pad_site_index(pc, i)], pc,
				 __ATOMIC_SEQ_CST);
		return true;
	}
	return false;
}

bool pad_memory_has_call_site(const struct pad_memory *m, taddr_t pc)
{
	return pad_has_call_site(m->written.call_site, pc);
}

void pad_memory_clear_call_sites(struct pad_memory *m)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(m->written.call_site); i++) {
		m->written.call_site[i] = 0;
		__atomic_store_n(&m->control->call_site[i], 0, __ATOMIC_SEQ_CST);
	}
}

/*
 * Begins again: each function traps once more. Deaths of functions that slots still have in their
 * lists are not seen while they are unknown, so lists are compared completely until then.
 */
static void forget_functions(struct pad_memory *m)
{
	struct pad_virtual *v = virtual_of(m);
	uint64_t counts_deaths = v->layout.counts_deaths;

	__atomic_store_n(&v->layout.counts_deaths, 0, __ATOMIC_SEQ_CST);
	memset(m->known, 0, sizeof(v->known));
	memset(v->known, 0, sizeof(v->known));
	memset(v->filter, 0, sizeof(v->filter));
	m->known_functions = 0;
	__atomic_fetch_add(&v->deaths, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&v->layout.counts_deaths, counts_deaths, __ATOMIC_SEQ_CST);
}

void pad_memory_know(struct pad_memory *m, uint64_t identity, uint64_t stamp)
{
	struct pad_known *shared = virtual_of(m)->known;
	const uint64_t mask = (1u << PAD_KNOWN_BITS) - 1;
	uint64_t i = pad_known_hash(identity), bit = i;

	if (!m->known)
		m->known = xcalloc(mask + 1, sizeof(*m->known));
	if (m->known_functions > mask / 2)
		forget_functions(m);
	/* at most half of it is in use */
	while (m->known[i].identity && m->known[i].identity != identity)
		i = (i + 1) & mask;
	m->known_functions += !m->known[i].identity;
	m->known[i] = (struct pad_known){identity, stamp};
	__atomic_store_n(&shared[i].stamp, stamp, __ATOMIC_RELAXED);
	__atomic_store_n(&shared[i].identity, identity, __ATOMIC_RELEASE);
	virtual_of(m)->filter[bit / 64] |= UINT64_C(1) << bit % 64;
}

void pad_memory_count_death(struct pad_memory *m)
{
	__atomic_fetch_add(&virtual_of(m)->deaths, 1, __ATOMIC_RELAXED);
}

/* Addresses of slots, and how many were ever used. */
static bool are_chunks_intact(const struct pad_memory *m)
{
	const volatile struct pad_control *c = m->control;
	uint32_t left = m->slots.used;

	for (uint32_t i = 0; i < PAD_MAX_CHUNKS; i++) {
		const struct pad_chunk *own = &m->slots.chunk[i];
		uint32_t used = i < m->slots.chunk_count ? MIN(left, own->count) : 0;
		taddr_t slots = i < m->slots.chunk_count ? own->target : 0;
		if (c->chunk[i].used != used || c->chunk[i].slots != slots)
			return false;
		left -= used;
	}
	return true;
}

bool pad_memory_is_intact(const struct pad_memory *m)
{
	const volatile struct pad_control *c = m->control;

	return c->owner == m->written.owner && c->off == m->written.off &&
	       c->flags == m->written.flags && c->shared == m->written.shared &&
	       c->rules == m->target + m->layout.rules &&
	       c->virtual == m->target + m->layout.virtual &&
	       c->rule_bits == m->written.rule_bits && c->record_max == m->written.record_max &&
	       c->gap_ticks == m->written.gap_ticks && c->framed == m->written.framed &&
	       c->framed_size == m->written.framed_size &&
	       c->sample_shift == m->written.sample_shift &&
	       c->sample_interval == m->written.sample_interval && are_chunks_intact(m);
}

uint32_t pad_memory_chunk(const struct pad_memory *m, uint32_t *index)
{
	uint32_t chunk = 0;

	while (*index >= m->slots.chunk[chunk].count)
		*index -= m->slots.chunk[chunk++].count;
	return chunk;
}

struct pad_slot *pad_memory_slot(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->slots.chunk[pad_memory_chunk(m, &index)];

	return (struct pad_slot *)(void *)c->base + index;
}

taddr_t pad_memory_slot_address(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->slots.chunk[pad_memory_chunk(m, &index)];

	return c->target + index * sizeof(struct pad_slot);
}

struct pad_ring *pad_memory_ring(const struct pad_memory *m, uint32_t index)
{
	return (struct pad_ring *)(void *)(m->base + PAD_RINGS_OFFSET) + index;
}

/* The offset of the bytes of ring @index in its chunk, *@chunk_out. */
static size_t ring_offset(const struct pad_memory *m, uint32_t index,
			  const struct pad_chunk **chunk_out)
{
	uint32_t within = index;
	const struct pad_chunk *c = &m->slots.chunk[pad_memory_chunk(m, &within)];

	*chunk_out = c;
	return c->rings + sizes_before(m, index) - sizes_before(m, c->first);
}

uint8_t *pad_memory_ring_bytes(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c;
	size_t offset = ring_offset(m, index, &c);

	return c->base + offset;
}

void pad_memory_place_ring(struct pad_memory *m, uint32_t index)
{
	struct pad_ring *ring = pad_memory_ring(m, index);
	const struct pad_chunk *c;
	size_t offset = ring_offset(m, index, &c);

	if (!ring->at)
		ring->limit = pad_memory_ring_size(m, index);
	ring->at = c->target + offset;
	ring->mask = pad_memory_ring_size(m, index) - 1;
	pad_memory_slot(m, index)->ring =
		m->target + PAD_RINGS_OFFSET + index * sizeof(struct pad_ring);
}
