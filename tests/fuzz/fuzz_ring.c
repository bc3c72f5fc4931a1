/*
 * The reader of the ring on memory that the program spoilt: no crash, no hang, and frames, raw stacks and
 * numbers that are what they say. Where nothing was spoilt, what comes out is what went in. Run it under
 * ASan.
 *
 *	fuzz_ring RUNS [SEED]
 *
 * Each run writes records as pads do, some not at all, spoils some words, and then reads, and copies a
 * ring as a fork does. Words change between two reads as well: in the callbacks, and in every sixteenth run
 * by a thread that does nothing else. Records continue into a profile.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "profile/profile.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring.h"

#define RING_SIZE    65536u
#define SLOTS        8u
#define USED         4u
#define MAX_WRITTEN  64u
#define PROFILE_RUNS 4096u /* then a new one: this is no test of memory */

static struct pad_memory memory, copy;
static struct ring ring;
static struct tick_clock ticks;
static uint64_t times[USED]; /* of the last event of each slot */
static struct profile *profile;
static uint64_t seed, sum;
static bool is_spoilt, is_spoilt_later;
static _Atomic bool thread_runs, thread_rests;
static struct { uint32_t kept; } path[USED];
static uint64_t written[MAX_WRITTEN]; /* blocks, in the order of numbers */
static size_t written_count, read_count;
static uint64_t next_number, heads[USED];
static uint32_t depth[USED], listed[USED];

static uint64_t any(uint64_t below)
{
	return below ? hash_u64(++seed) % below : 0;
}

static uint64_t strange(void)
{
	switch (any(6)) {
	case 0:
		return hash_u64(++seed);
	case 1:
		return any(64);
	case 2:
		return 0 - any(64);
	case 3:
		return 1ull << any(64);
	case 4: /* a mark */
		return pad_mark(any(2 * MAX_WRITTEN), (uint8_t)any(16), (enum pad_record_type)any(16));
	}
	return any(RING_SIZE) << 32 | any(RING_SIZE);
}

static uint64_t *word(uint32_t slot, uint64_t position)
{
	return (uint64_t *)(void *)(pad_memory_ring_bytes(&memory, slot) +
				    (position & (RING_SIZE - 1)));
}

/* -- corruption -- */

static void spoil_once(void)
{
	uint32_t slot = (uint32_t)any(USED);
	uint64_t *control = (uint64_t *)(void *)memory.control;
	uint64_t *shared = (uint64_t *)(void *)pad_memory_ring(&memory, slot);
	uint64_t *at = any(4) ? word(slot, ring_source(&ring, slot)->position + 8 * any(256)) :
		       any(2) ? word(slot, 8 * any(RING_SIZE / 8)) :
		       any(2) ? shared + any(4) :
				control + any(sizeof(*memory.control) / 8);

	if (any(3))
		*(volatile uint64_t *)at ^= 1ull << any(64);
	else
		*(volatile uint64_t *)at = strange();
}

static void *spoil_for_ever(void *unused)
{
	uint64_t own = 1;

	for (;;) {
		thread_rests = !thread_runs;
		if (thread_rests) {
			usleep(1000);
			continue;
		}
		uint32_t slot = hash_u64(++own) % USED;
		volatile uint64_t *at = word(slot, hash_u64(++own) % 1024 * 8);
		*at ^= 1ull << (hash_u64(++own) & 63);
		if (own % 64 < 2)
			*(volatile uint64_t *)&pad_memory_ring(&memory, slot)->head +=
				(hash_u64(++own) & 15) * 16;
		else if (own % 64 < 4)
			*(volatile uint64_t *)&memory.control->next_number += hash_u64(++own) & 15;
	}
	return unused;
}

/* -- writing as pads do -- */

/* A place for a record of @size bytes at the head of the ring; where it would cross the end it starts over. */
static uint64_t *reserve(uint32_t slot, uint64_t size)
{
	uint64_t rest = RING_SIZE - (heads[slot] & (RING_SIZE - 1));

	if (size > rest) {
		*word(slot, heads[slot]) = PAD_RECORD_FILL;
		heads[slot] += rest;
	}
	heads[slot] += size;
	return word(slot, heads[slot] - size);
}

/* Stores the mark of a whole record. */
static void commit(uint32_t slot, uint64_t *at, enum pad_record_type type, uint64_t block)
{
	at[0] = pad_mark(next_number++, FUNCTION_MALLOC, type);
	memory.control->next_number = next_number;
	pad_memory_ring(&memory, slot)->head = heads[slot];
	written[written_count++] = block;
}

static void write_block(uint32_t slot, uint64_t block)
{
	uint32_t tail = memory.written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
	struct pad_record_block r = { .result = block, .bytes = any(1000) };
	bool has_raw = !any(4), has_stack = !has_raw && !(memory.written.flags & PAD_COUNT_ONLY);

	r.flags = (uint16_t)((has_raw ? PAD_HAS_RAW : 0) | (has_stack ? PAD_HAS_STACK : 0));
	r.kept = has_stack ? (uint32_t)any(depth[slot] + 1) : 0;
	r.fresh = has_stack ? (uint16_t)any(6) : 0;
	r.raw = has_raw ? (uint32_t)any(40) * 8 : 0;
	r.size = sizeof(r) + 8u * r.fresh + (has_raw ? PAD_RAW_REGS * 8 + r.raw : 0);
	r.size = ROUND_UP(r.size, 16u) + tail;
	bool has_guess = r.fresh > 0 && !any(4);
	uint32_t guess = has_guess ? (uint32_t)any(r.fresh) : r.fresh;
	r.flags |= has_guess ? PAD_HAS_GUESSES : 0;
	uint64_t *at = reserve(slot, r.size);
	memcpy(at + 1, (uint64_t *)&r + 1, sizeof(r) - 8);
	for (uint32_t i = sizeof(r) / 8; i < r.size / 8; i++)
		at[i] = 0x1000 + any(64);
	if (has_guess)
		at[sizeof(r) / 8 + guess] |= PAD_GUESSED;
	commit(slot, at, PAD_RECORD_ALLOC, block);
	if (has_stack) {
		depth[slot] = r.kept + guess;
		listed[slot] = 0;
	}
}

/* A part of a list: what a list has is not compared, as it comes with no event. */
static void write_list(uint32_t slot)
{
	struct pad_record_list r = {.kept = (uint32_t)any(listed[slot] + 1)};
	uint32_t fresh = (uint32_t)any(6);

	r.size = (uint32_t)(sizeof(r) + fresh * sizeof(struct pad_listed_frame));
	r.size += memory.written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
	uint64_t *at = reserve(slot, r.size);
	memcpy(at + 1, (uint64_t *)&r + 1, sizeof(r) - 8);
	for (uint32_t i = sizeof(r) / 8; i < r.size / 8; i++)
		at[i] = 0x1000 + any(64);
	at[0] = pad_mark(next_number++, 0, PAD_RECORD_LIST);
	memory.control->next_number = next_number;
	pad_memory_ring(&memory, slot)->head = heads[slot];
	listed[slot] = r.kept + fresh;
}

/* A label, which comes with no event, either. */
static void write_label(uint32_t slot)
{
	struct pad_record_label r = {.label = (uint8_t)any(PAD_LABELS), .state = (uint8_t)any(3)};

	r.bytes = (uint16_t)(r.state == PAD_LABEL_PRESENT ? any(PAD_LABEL_BYTES + 1) : 0);
	r.size = ROUND_UP((uint32_t)sizeof(r) + (r.bytes + 7u) / 8 * 8, 16u);
	r.size += memory.written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
	uint64_t *at = reserve(slot, r.size);
	memcpy(at + 1, (uint64_t *)&r + 1, sizeof(r) - 8);
	for (uint32_t i = sizeof(r) / 8; i < r.size / 8; i++)
		at[i] = strange();
	at[0] = pad_mark(next_number++, 0, PAD_RECORD_LABEL);
	memory.control->next_number = next_number;
	pad_memory_ring(&memory, slot)->head = heads[slot];
}

static void write_short(uint32_t slot, uint64_t block, enum pad_record_type type)
{
	uint64_t *at = reserve(slot, 16 + (memory.written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0));

	at[1] = type == PAD_RECORD_SAME ? block * PAD_SAME_BYTES : block;
	commit(slot, at, type, block);
}

static void write_stamp(uint32_t slot)
{
	uint64_t *at = reserve(slot, PAD_TIME_SIZE);

	at[0] = any(2) ? PAD_RECORD_TIME : PAD_RECORD_CLOCK;
	at[1] = any(2) ? arch_ticks() : strange();
	pad_memory_ring(&memory, slot)->head = heads[slot];
}

static void write_record(void)
{
	uint32_t slot = (uint32_t)any(USED);
	uint64_t block = 16 + 16 * any(1000);

	if (!any(3))
		write_stamp(slot);
	if (!any(4))
		write_list(slot);
	if (!any(4))
		write_label(slot);

	switch (any(8)) {
	case 0: /* numbers without records */
		next_number += any(1000);
		break;
	case 1:
	case 2:
		write_short(slot, block, PAD_RECORD_FREE);
		break;
	case 3:
		write_short(slot, block, PAD_RECORD_SAME);
		break;
	case 4:
		write_short(slot, block, any(2) ? PAD_RECORD_INNER_FREE : PAD_RECORD_REALLOC_BEGIN);
		break;
	default:
		write_block(slot, block);
	}
}

/* -- reading -- */

static void spoil_meanwhile(void)
{
	if (is_spoilt_later && !any(4))
		spoil_once();
}

static void check_block(taddr_t block)
{
	if (is_spoilt)
		return;
	CHECK(read_count < written_count && written[read_count] == block);
	read_count++;
}

static void check_stack(const struct heap_event *he)
{
	CHECK(he->path < USED && he->frame_count <= PAD_MAX_FRAMES && he->kept <= he->frame_count);
	CHECK(he->kept <= path[he->path].kept);
	path[he->path].kept = he->frame_count;
	for (uint32_t i = 0; i < he->frame_count; i++)
		sum += he->frame[i];
}

/* A raw stack is a copy: it does not change with the program's memory. */
static void check_raw(const struct stack_view *view)
{
	struct arch_unwind_regs regs = view->regs;

	CHECK(view->start == regs.reg[arch_native->dwarf_sp]);
	spoil_meanwhile();
	CHECK(memcmp(&regs, &view->regs, sizeof(regs)) == 0);
	for (size_t i = 0; i < view->size; i++)
		sum += view->data[i];
}

static void on_event(void *ctx, struct heap_event *he)
{
	const struct event ev = { .kind = he->kind == HEAP_FREE		 ? EVENT_FREE :
					  he->kind == HEAP_REALLOC_BEGIN ? EVENT_REALLOC_BEGIN :
					  he->kind == HEAP_REALLOC_END	 ? EVENT_REALLOC_END :
									   EVENT_ALLOC,
				  .function = he->function, .thread = he->path, .addr = he->addr,
				  .old_addr = he->old_addr, .size = he->size, .align = he->align };

	CHECK(he->path < USED && he->function < 16);
	check_block(he->kind == HEAP_REALLOC_BEGIN ? he->old_addr : he->addr);
	for (uint32_t i = 0; i < PAD_LABELS; i++) {
		CHECK(he->label[i].size <= PAD_LABEL_BYTES && he->label[i].state < PAD_LABEL_STATES);
		sum += hash_bytes((const char *)he->label[i].word, he->label[i].size);
	}
	if (he->frame)
		check_stack(he);
	if (he->stack)
		check_raw(he->stack);
	if (he->kind != HEAP_REALLOC_END || he->old_addr)
		profile_event(profile, &ev);
	spoil_meanwhile();
}

static uint32_t on_node(void *ctx, const struct heap_event *he)
{
	check_stack(he);
	spoil_meanwhile();
	return 0;
}

/* Dates do not run backwards in a thread, nor beyond the turn. */
static void check_time(uint32_t slot, uint64_t ns)
{
	CHECK(ns >= times[slot] && ns <= tick_clock_now(&ticks));
	times[slot] = ns;
}

static void on_quick(void *ctx, struct quick_event *event, size_t count)
{
	CHECK(count > 0 && count <= 512);
	for (size_t i = 0; i < count; i++) {
		CHECK(event[i].slot < USED && event[i].node == 0);
		check_time(event[i].slot, event[i].time_ns);
		check_block(event[i].addr);
	}
	profile_quick(profile, event, count);
	spoil_meanwhile();
}

static void step(const struct ring_reader *reader)
{
	if (any(4))
		ring_drain(&ring, 1 + any(40), reader);
	else
		ring_publish(&ring);
}

/* As pads_catch_up. */
static void catch_up(const struct ring_reader *reader)
{
	ring_drain(&ring, SIZE_MAX, reader);
	ring_publish(&ring);
}

/* As pads.c. */
static void fork_ring(void)
{
	uint32_t slot = (uint32_t)any(USED);
	struct ring_unfinished *saved = ring_save_unfinished(&ring, slot);
	struct ring other;

	ring_fork(&other, &ring, slot);
	other.memory = &copy;
	ring_restore_unfinished(&other, slot, saved);
	ring_deinit(&other);
	free(saved);
}

static void begin(void)
{
	static struct profile_options o = { .peak_inaccuracy = 1.0, .detailed_freq = 2, .max_snapshots = 20,
					    .heap_admin = 8, .alignment = 16 };

	if (profile && any(PROFILE_RUNS) == 0) {
		profile_free(profile);
		profile = NULL;
	}
	if (!profile) {
		o.time_unit = (enum time_unit)any(2);
		profile = profile_new(&o, 0);
	}
	for (uint32_t i = 0; i < USED; i++)
		*pad_memory_ring(&memory, i) = (struct pad_ring){.limit = RING_SIZE};
	memory.control->next_number = next_number = 1;
	pad_memory_set_flags(&memory,
			     (any(4) ? 0 : PAD_STACK_POINTER) | (any(8) ? 0 : PAD_COUNT_ONLY));
	memset(path, 0, sizeof(path));
	memset(depth, 0, sizeof(depth));
	memset(listed, 0, sizeof(listed));
	memset(heads, 0, sizeof(heads));
	memset(times, 0, sizeof(times));
	written_count = read_count = 0;
	tick_clock_init(&ticks, arch_native);
	ring_init(&ring, &memory, arch_native, &ticks);
	for (uint32_t i = 0; i < USED; i++)
		ring_reset_slot(&ring, i);
}

static bool run_once(void)
{
	const struct ring_reader reader = {
		.event = on_event, .node = on_node, .quick = any(2) ? on_quick : NULL,
		.is_counting = memory.written.flags & PAD_COUNT_ONLY,
	};
	bool was_broken;

	for (uint64_t n = any(MAX_WRITTEN); n > 0; n--)
		write_record();
	for (uint64_t n = is_spoilt ? any(8) : 0; n > 0; n--)
		spoil_once();
	for (uint64_t n = any(12); n > 0; n--)
		step(&reader);
	if (is_spoilt && !any(64))
		fork_ring();
	catch_up(&reader);
	was_broken = ring.broken;
	CHECK(is_spoilt || (!was_broken && ring_pending(&ring) == 0 && read_count == written_count));
	ring_deinit(&ring);
	return was_broken;
}

static void make_memory(struct pad_memory *m)
{
	const struct pad_memory_options options = { RING_SIZE, SLOTS, 8 };

	CHECK(pad_memory_init(m, memfd_create("ring", MFD_ALLOW_SEALING), &options) == 0);
	for (uint64_t i = 0; i < USED; i++)
		CHECK(pad_slots_add(m, 100 + i, 1, 2) == (int)i);
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, broken = 0;
	pthread_t thread;

	seed = argc > 2 ? strtoull(argv[2], NULL, 10) << 32 : 0;
	make_memory(&memory);
	make_memory(&copy);
	if (pthread_create(&thread, NULL, spoil_for_ever, NULL) != 0)
		return 1;
	for (unsigned long i = 0; i < runs; i++) {
		thread_runs = i / 256 % 16 == 0;
		while (thread_runs == thread_rests)
			usleep(100);
		is_spoilt = thread_runs || any(8) > 0;
		is_spoilt_later = is_spoilt && any(2);
		begin();
		broken += run_once();
	}
	printf("fuzz_ring: %lu runs, %lu rings found corrupt (%llx)\n", runs, broken, (unsigned long long)sum);
	return 0;
}
