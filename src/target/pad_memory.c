/*
 * The shared memory of tier 2: layout, slots and their directory. See pad_memory.h.
 */
#include "target/pad_memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

#define TAKEN_OUT 1 /* as a thread pointer in the directory: neither empty nor anybody's */

static void lay_out(struct pad_memory *m, const struct pad_memory_options *options)
{
	size_t at = PAD_DIRECTORY_OFFSET;

	CHECK(options->slot_count <= PAD_MAX_SLOTS);
	_Static_assert(sizeof(struct pad_control) <= PAD_DIRECTORY_OFFSET,
		       "the control block has room");
	m->directory = at;
	at += ROUND_UP(sizeof(struct pad_directory) << PAD_DIRECTORY_BITS, PAGE_SIZE_MIN);
	m->slots = at;
	at += ROUND_UP(sizeof(struct pad_slot) * options->slot_count, PAGE_SIZE_MIN);
	m->rules = at;
	at += ROUND_UP(sizeof(struct unwind_rule) << options->rule_bits, PAGE_SIZE_MIN);
	m->ring = at;
	m->ring_size = options->ring_size;
	m->file_size = at + options->ring_size;
	m->map_size = m->file_size + options->ring_size;
}

/* Maps the file and, behind it, its ring a second time. */
static int map(struct pad_memory *m)
{
	uint8_t *base = mmap(NULL, m->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	void *again;

	if (base == MAP_FAILED)
		return -errno;
	again = mmap(base + m->file_size, m->ring_size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, m->fd, (off_t)m->ring);
	if (again == MAP_FAILED) {
		int err = -errno;
		munmap(base, m->map_size);
		return err;
	}
	m->base = base;
	return 0;
}

/*
 * What a file of the user's may grow to (RLIMIT_FSIZE) is not meant for memory: the limit is taken away for
 * a moment, as far as we may.
 */
static int make_size(int fd, size_t size)
{
	struct rlimit limit;
	bool is_raised = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size;
	int rc;

	if (is_raised) {
		const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
		const struct rlimit hard = { limit.rlim_max, limit.rlim_max };
		is_raised = setrlimit(RLIMIT_FSIZE, &none) == 0 || setrlimit(RLIMIT_FSIZE, &hard) == 0;
	}
	rc = ftruncate(fd, (off_t)size) != 0 ? -errno : 0;
	if (is_raised)
		setrlimit(RLIMIT_FSIZE, &limit);
	return rc;
}

int pad_memory_init(struct pad_memory *m, int fd, const struct pad_memory_options *options)
{
	int err;

	*m = (struct pad_memory){ .fd = fd };
	lay_out(m, options);
	err = make_size(fd, m->file_size);
	if (!err)
		err = map(m);
	if (err)
		return err;
	m->control = (struct pad_control *)(void *)m->base;
	*m->control = (struct pad_control){
		.off = 1,
		.shared = 1,
		.rule_bits = options->rule_bits,
		.ring_size = m->ring_size,
		.room = m->ring_size,
		.raw_max = MIN(m->ring_size / 4, 1u << 20),
	};
	if (getrandom(&m->control->key, sizeof(m->control->key), GRND_NONBLOCK) < 0)
		m->control->key = hash_u64((uint64_t)(uintptr_t)m->base);
	m->control->key <<= PAD_MARK_LOW;
	m->chunk[0] = (struct pad_chunk){ .base = m->base + m->slots, .count = options->slot_count };
	m->chunk_count = 1;
	m->slot_count = options->slot_count;
	return 0;
}

size_t pad_memory_more(const struct pad_memory *m)
{
	uint32_t count = MIN(m->slot_count, PAD_MAX_SLOTS - m->slot_count);

	return m->chunk_count < PAD_MAX_CHUNKS ? ROUND_UP(count * sizeof(struct pad_slot), PAGE_SIZE_MIN) : 0;
}

int pad_memory_grow(struct pad_memory *m, int fd, taddr_t target)
{
	struct pad_chunk c = { .target = target, .size = pad_memory_more(m), .fd = fd };
	void *base;
	int err;

	if (!c.size)
		return -ENOSPC;
	err = make_size(fd, c.size);
	if (err)
		return err;
	base = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	c.base = base;
	c.count = (uint32_t)(c.size / sizeof(struct pad_slot));
	m->slot_count += c.count;
	m->control->chunk[m->chunk_count].slots = target;
	m->chunk[m->chunk_count++] = c;
	return 0;
}

void pad_memory_deinit(struct pad_memory *m)
{
	for (uint32_t i = 0; i < m->chunk_count; i++) {
		if (!m->chunk[i].size)
			continue;
		munmap(m->chunk[i].base, m->chunk[i].size);
		close(m->chunk[i].fd);
	}
	if (m->base)
		munmap(m->base, m->map_size);
	close(m->fd);
	free(m->free_slot);
	*m = (struct pad_memory){ .fd = -1 };
}

void pad_memory_locate(struct pad_memory *m, taddr_t target)
{
	m->target = target;
	m->control->chunk[0].slots = m->chunk[0].target = target + m->slots;
	m->control->rules = target + m->rules;
	m->control->ring = target + m->ring;
}

/*
 * An entry of the kernel's list is the address of its link to the next; the last links to the head.
 */
static uint64_t *link_of(struct pad_memory *m)
{
	return &m->control->owner_next;
}

int pad_owner_init(struct pad_owner *owner)
{
	owner->head.list = (uintptr_t)&owner->head.list;
	owner->head.futex_offset = (int64_t)offsetof(struct pad_control, owner) -
				   (int64_t)offsetof(struct pad_control, owner_next);
	owner->head.pending = 0;
	_Static_assert(sizeof(owner->head) == sizeof(struct robust_list_head),
		       "as the kernel has it");
	return syscall(SYS_set_robust_list, &owner->head, sizeof(owner->head)) ? -errno : 0;
}

void pad_owner_add(struct pad_owner *owner, struct pad_memory *m)
{
	__atomic_store_n(&m->control->owner, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
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

/* The number of the chunk that slot *index is in; *index becomes its place there. */
static uint32_t find_chunk(const struct pad_memory *m, uint32_t *index)
{
	uint32_t chunk = 0;

	while (*index >= m->chunk[chunk].count)
		*index -= m->chunk[chunk++].count;
	return chunk;
}

struct pad_slot *pad_memory_slot(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->chunk[find_chunk(m, &index)];

	return (struct pad_slot *)(void *)c->base + index;
}

static struct pad_directory *directory(const struct pad_memory *m)
{
	return (struct pad_directory *)(void *)(m->base + m->directory);
}

static struct pad_directory *find(const struct pad_memory *m, uint64_t key)
{
	const uint64_t mask = (1u << PAD_DIRECTORY_BITS) - 1;
	struct pad_directory *d = directory(m);

	for (uint64_t i = pad_directory_hash(key), n = 0; n <= mask; i = (i + 1) & mask, n++) {
		if (d[i].thread_pointer == key)
			return &d[i];
		if (d[i].thread_pointer == 0)
			return NULL;
	}
	return NULL;
}

/* A place for @key, which is not in the directory. At most a quarter of it is in use. */
static struct pad_directory *find_place(const struct pad_memory *m, uint64_t key)
{
	uint64_t mask = (1u << PAD_DIRECTORY_BITS) - 1, i = pad_directory_hash(key);
	struct pad_directory *d = directory(m);

	while (d[i].thread_pointer > TAKEN_OUT)
		i = (i + 1) & mask;
	return &d[i];
}

/* Where slot @index is in the target. */
static taddr_t slot_address(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->chunk[find_chunk(m, &index)];

	return c->target + index * sizeof(struct pad_slot);
}

static uint32_t slot_index(const struct pad_memory *m, const struct pad_directory *d)
{
	const struct pad_chunk *c = m->chunk;
	uint32_t before = 0;

	while (d->slot - c->target >= c->count * sizeof(struct pad_slot))
		before += c++->count;
	return before + (uint32_t)((d->slot - c->target) / sizeof(struct pad_slot));
}

int pad_memory_find_thread(const struct pad_memory *m, uint64_t thread_pointer)
{
	const struct pad_directory *d = find(m, thread_pointer);
	return d ? (int)slot_index(m, d) : -ENOENT;
}

void pad_memory_reset_slot(struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);

	if (slot->guard)
		pad_note_left(slot);
	slot->guard = slot->guard_pc = 0;
	slot->dirty = slot->frame_count = slot->check_count = 0;
	slot->reason = PAD_REASON_NONE;
}

static uint32_t use_next(struct pad_memory *m)
{
	uint32_t index = m->used, chunk = find_chunk(m, &index);

	m->control->chunk[chunk].used = index + 1;
	return m->used++;
}

bool pad_memory_has_room(const struct pad_memory *m, uint64_t thread_pointer)
{
	return m->free_count || m->used < m->slot_count || find(m, thread_pointer);
}

int pad_memory_add_thread(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high)
{
	struct pad_directory *d = find(m, thread_pointer);
	struct pad_slot *slot;
	uint32_t index;

	if (d)
		index = slot_index(m, d);
	else if (m->free_count)
		index = m->free_slot[--m->free_count];
	else if (m->used < m->slot_count)
		index = use_next(m);
	else
		return -ENOSPC;
	slot = pad_memory_slot(m, index);
	slot->thread_pointer = thread_pointer;
	slot->index = index;
	slot->stack_low = stack_low;
	slot->stack_high = stack_high;
	pad_memory_reset_slot(m, index);
	if (!d) {
		d = find_place(m, thread_pointer);
		d->slot = slot_address(m, index);
		__atomic_store_n(&d->thread_pointer, thread_pointer, __ATOMIC_RELEASE);
	}
	return (int)index;
}

static void add_free_slot(struct pad_memory *m, uint32_t index)
{
	m->free_slot =
		xgrow(m->free_slot, &m->free_capacity, m->free_count + 1, sizeof(*m->free_slot));
	m->free_slot[m->free_count++] = index;
}

void pad_memory_remove_thread(struct pad_memory *m, uint64_t thread_pointer)
{
	struct pad_directory *d = find(m, thread_pointer);

	if (!d)
		return;
	add_free_slot(m, slot_index(m, d));
	__atomic_store_n(&d->thread_pointer, TAKEN_OUT, __ATOMIC_RELEASE);
}

void pad_memory_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, uint64_t position)
{
	struct pad_directory *d = find_place(m, slot->thread_pointer);
	struct pad_control *own = m->control;

	own->off = control->off;
	own->flags = control->flags;
	own->shared = control->shared;
	own->room = control->room;
	own->key = control->key;
	own->head = position;
	own->tail = control->tail;
	/* a slot keeps its index: the thread may be about to write that into a record */
	own->chunk[0].used = m->used = slot->index + 1;
	for (uint32_t i = 0; i < slot->index; i++)
		add_free_slot(m, i);
	*pad_memory_slot(m, slot->index) = *slot;
	d->slot = slot_address(m, slot->index);
	d->thread_pointer = slot->thread_pointer;
}
