/*
 * Tier 2 in this process: what pads record, and that the incremental walk is the full
 * one, over calls at changing depths, in threads, through signals, longjmp and a full
 * ring. See pad_world.h for how.
 */
#include "base/hash.h"
#include "pad_world.h"
#include "rounds.h"

#include <errno.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED /* slow */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

/* --- functions that behave like an allocator, with results that can be predicted --- */

typedef void *(*alloc_fn)(size_t a, size_t b);
typedef void (*free_fn)(void *p);
typedef void *(*realloc_fn)(void *p, size_t a, size_t b);
typedef int (*posix_fn)(void **out, size_t align, size_t size);

uint64_t fake_next = 0x100000, fake_frees;
alloc_fn nested_alloc;
free_fn nested_free;
void fake_malloc(void), fake_free(void), fake_realloc(void), fake_posix(void), fake_new(void), fake_delete(void);
void fake_throw(void), fake_handle(void);

__asm__(FAKE_SYMBOLS FAKE_ALLOCATOR);

static alloc_fn pad_malloc, pad_calloc, pad_memalign, pad_valloc, pad_new;
static free_fn pad_free, pad_delete;
static realloc_fn pad_realloc, pad_reallocarray;
static posix_fn pad_posix;
void (*pad_handle)(uint64_t id, uint64_t blocks, uint64_t has_inner);

static void make_pads(void)
{
	pad_malloc = (alloc_fn)make_pad(fake_malloc, malloc_probe);
	pad_calloc = (alloc_fn)make_pad(fake_malloc, calloc_probe);
	pad_memalign = (alloc_fn)make_pad(fake_malloc, memalign_probe);
	pad_valloc = (alloc_fn)make_pad(fake_malloc, valloc_probe);
	pad_new = (alloc_fn)make_pad(fake_new, new_probe);
	pad_free = (free_fn)make_pad(fake_free, free_probe);
	pad_delete = (free_fn)make_pad(fake_delete, delete_probe);
	pad_realloc = (realloc_fn)make_pad(fake_realloc, realloc_probe);
	pad_reallocarray = (realloc_fn)make_pad(fake_realloc, reallocarray_probe);
#if ARCH_RETURN_SIZE
	pad_handle = (void (*)(uint64_t, uint64_t, uint64_t))make_pad(fake_handle, labelled_probe);
#endif
	pad_posix = (posix_fn)make_pad(fake_posix, posix_memalign_probe);
	nested_alloc = pad_malloc;
	nested_free = pad_free;
}

/* --- what was delivered --- */

#define KEEP 64
static struct heap_event seen[KEEP];
static uint64_t of_label[KEEP]; /* how many had each value of label 0, a number */
static uint64_t seen_count, verified, raw_only, kept_frames, all_frames, deepest;
static taddr_t last_stack[MAX_WALK];
static size_t last_stack_count;

static void keep(void *ctx, struct heap_event *ev)
{
	if (seen_count < KEEP)
		seen[seen_count] = *ev;
	if (ev->label[0].word[0] < KEEP)
		of_label[ev->label[0].word[0]]++;
	seen_count++;
	if (ev->frame) {
		memcpy(last_stack, ev->frame, ev->frame_count * sizeof(taddr_t));
		last_stack_count = ev->frame_count;
		kept_frames += ev->kept;
		all_frames += ev->frame_count;
		deepest = MAX(deepest, ev->frame_count);
	}
	if (!ev->stack)
		return;
	static taddr_t full[MAX_WALK];
	size_t n = unwind_raw(ev->stack, full, MAX_WALK);
	if (!ev->frame) {
		raw_only++;
		memcpy(last_stack, full, n * sizeof(taddr_t));
		last_stack_count = n;
		return;
	}
	verified++;
	if (n != ev->frame_count || memcmp(full, ev->frame, n * sizeof(taddr_t)) != 0)
		fail_msg("record %llu: %u frames incrementally (%u kept), %zu fully", (unsigned long long)seen_count,
			 ev->frame_count, ev->kept, n);
}

static struct world here;

static void open_world(size_t ring_size)
{
	world_open(&here, ring_size, keep);
	make_pads();
	seen_count = verified = raw_only = kept_frames = all_frames = deepest = 0;
	fake_next = 0x100000;
	fake_frees = 0;
}

static void expect(size_t i, uint8_t kind, uint8_t function, taddr_t addr, taddr_t old_addr, uint64_t size)
{
	if (i >= seen_count)
		fail_msg("record %zu is missing", i);
	assert_int_equal(seen[i].kind, kind);
	assert_int_equal(seen[i].function, function);
	assert_int_equal(seen[i].addr, addr);
	assert_int_equal(seen[i].old_addr, old_addr);
	assert_int_equal(seen[i].size, size);
}

static void test_records(void **state)
{
	void *out = NULL;
	open_world(1 << 16);
	enroll();
	assert_int_equal(pad_malloc(100, 0), 0x100000);
	assert_int_equal(pad_calloc(7, 9), 0x100010);
	assert_int_equal(pad_calloc(1ull << 40, 1ull << 40), 0x100020);
	assert_int_equal(pad_memalign(64, 200), 0x100030);
	assert_int_equal(pad_valloc(300, 0), 0x100040);
	assert_int_equal(pad_posix(&out, 128, 400), 0);
	assert_int_equal(pad_posix(&out, 3, 500), 22);
	assert_null(pad_malloc((size_t)-5, 0));
	assert_int_equal(pad_realloc((void *)0x100000, 600, 0), 0x100010);
	assert_int_equal(pad_reallocarray((void *)0x100010, 10, 70), 0x100020);
	pad_free((void *)0x100020);
	pad_free(NULL);
	assert_int_equal(fake_frees, 1);
	drain();
	expect(0, HEAP_ALLOC, FUNCTION_MALLOC, 0x100000, 0, 100);
	expect(1, HEAP_ALLOC, FUNCTION_CALLOC, 0x100010, 0, 63);
	expect(2, HEAP_ALLOC, FUNCTION_CALLOC, 0x100020, 0, UINT64_MAX);
	expect(3, HEAP_ALLOC, FUNCTION_MEMALIGN, 0x100030, 0, 200);
	assert_int_equal(seen[3].align, 64);
	expect(4, HEAP_ALLOC, FUNCTION_MEMALIGN, 0x100040, 0, 300);
	assert_int_equal(seen[4].align, 4096);
	expect(5, HEAP_ALLOC, FUNCTION_MEMALIGN, 0x5000, 0, 400);
	assert_int_equal(seen[5].align, 128);
	expect(6, HEAP_ALLOC, FUNCTION_MEMALIGN, 0, 0, 500);
	expect(7, HEAP_ALLOC, FUNCTION_MALLOC, 0, 0, (uint64_t)-5);
	assert_false(seen[7].frame || seen[7].stack);
	expect(8, HEAP_REALLOC_BEGIN, FUNCTION_REALLOC, 0, 0x100000, 0);
	expect(9, HEAP_REALLOC_END, FUNCTION_REALLOC, 0x100010, 0x100000, 600);
	expect(10, HEAP_REALLOC_BEGIN, FUNCTION_REALLOC, 0, 0x100010, 0);
	expect(11, HEAP_REALLOC_END, FUNCTION_REALLOC, 0x100020, 0x100010, 700);
	expect(12, HEAP_FREE, FUNCTION_FREE, 0x100020, 0, 0);
	expect(13, HEAP_FREE, FUNCTION_FREE, 0, 0, 0);
	assert_int_equal(seen_count, 14);
	assert_int_equal(here.in_calls, 0);
	assert_int_equal(ring_pending(&here.ring), 0);
	world_close();
}

/* operator new into malloc, operator delete into free: one event each. */
/* All return paths lead through an exit, once each, also while pads are off. */
static void test_exits(void **state)
{
	void *out = NULL;
	open_world(1 << 16);
	enroll();
	arm_exits();
	for (size_t i = 0; i < here.pad_count; i++) {
		const struct pad *pad = &here.pad[i];
		for (unsigned k = 0; k < PAD_EXITS && pad->exit[k].at; k++) {
			assert_in_range(pad->exit[k].at, pad->start, pad->at + pad->size - 1);
			assert_in_range(pad->exit[k].to, pad->tail, pad->at + pad->size - 1);
		}
		assert_in_range(pad->entry_trap, pad->at, pad->tail - 1);
	}
	assert_int_equal(pad_malloc(100, 0), 0x100000); /* to the original, and to its caller */
	assert_int_equal(here.exits, 2);
	assert_int_equal(pad_posix(&out, 128, 400), 0);
	assert_int_equal(pad_realloc((void *)0x100000, 600, 0), 0x100010);
	assert_int_equal(here.exits, 6);
	pad_free((void *)0x100010); /* only to the original */
	assert_int_equal(here.exits, 7);
	nested_alloc = (alloc_fn)fake_malloc;
	pad_new(50, 0);
	assert_int_equal(here.exits, 9);
	drain();
	expect(0, HEAP_ALLOC, FUNCTION_MALLOC, 0x100000, 0, 100);
	expect(4, HEAP_FREE, FUNCTION_FREE, 0x100010, 0, 0);
	assert_int_equal(seen_count, 6);
	here.memory.control->off = 1;
	assert_int_equal(pad_calloc(7, 9), 0x100020);
	pad_free(NULL);
	assert_int_equal(here.exits, 11);
	assert_int_equal(drain(), 0);
	world_close();
}

static void test_nested(void **state)
{
	open_world(1 << 16);
	enroll();
	for (int i = 0; i < 10; i++) {
		pad_delete(pad_new(50, 0));
		drain();
	}
	assert_int_equal(seen_count, 20);
	expect(18, HEAP_ALLOC, FUNCTION_NEW, 0x100090, 0, 50);
	expect(19, HEAP_FREE, FUNCTION_DELETE, 0x100090, 0, 0);
	assert_int_equal(fake_frees, 10);
	assert_int_equal(here.in_calls, 1); /* the rule of operator new's frame was looked up once */
	world_close();
}

static void test_off_and_unknown_thread(void **state)
{
	open_world(1 << 16);
	here.memory.control->off = 1;
	assert_int_equal(pad_malloc(1, 0), 0x100000);
	pad_free((void *)0x100000);
	here.memory.control->off = 0;
	here.memory.control->owner = PAD_OWNER_DIED | 1234;
	pad_delete(pad_new(1, 0));
	here.memory.control->owner = 1234;
	drain();
	assert_int_equal(seen_count, 0);
	assert_int_equal(here.unknown, 0);
	pad_malloc(1, 0);
	drain();
	assert_int_equal(here.unknown, 1);
	assert_int_equal(seen_count, 1);
	world_close();
}

/* --- registers --- */

uint64_t call_keeping(void *fn, uint64_t arg, uint64_t *result);
__asm__(CALL_KEEPING);

/* Callers in the same library may rely on registers that the original does not change. */
static void test_registers(void **state)
{
	uint64_t result;
	open_world(1 << 16);
	enroll();
	for (int i = 0; i < 20; i++) { /* raw at first, then incremental, finally verified */
		pad_memory_set_flags(&here.memory, i > 15 ? PAD_VERIFY : 0);
		assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
		assert_int_equal(result, 0x100000 + 16 * i);
		assert_int_equal(call_keeping((void *)pad_free, result, &result), 0);
		drain();
	}
	here.memory.control->off = 1;
	assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
	here.memory.control->off = 0;
	for (uint32_t i = 0; i < 2; i++) { /* trap at the entry: a call is still pending */
		struct pad_slot *slot = pad_memory_slot(&here.memory, 0);
		uint64_t deeper[4] = { 0, 0, 0xabc, 0 };
		slot->return_at = (uint64_t)(uintptr_t)&deeper[2];
		slot->return_to = i ? 0xabc : 0xabd;
		assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
		slot->return_at = 0;
	}
	/* too large: trap on return */
	pad_memory_set_flags(&here.memory, PAD_VERIFY);
	here.memory.control->record_max = 64;
	assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
	assert_int_equal(here.large, 1);
	world_close();
}

/*
 * Short records of 16 bytes, where one stack allocates repeatedly, also when the ring is full, for
 * one thread and for several, with and without stacks.
 */
static void run_short_ways(uint32_t flags, uint32_t shared)
{
	const uint64_t pairs = 20000;
	uint64_t result;
	open_world(1 << 16);
	enroll();
	pad_memory_set_flags(&here.memory, flags);
	pad_memory_set_shared(&here.memory, shared);
	for (uint64_t i = 0; i < pairs; i++) {
		assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
		assert_int_equal(result, 0x100000 + 16 * i);
		assert_int_equal(call_keeping((void *)pad_free, result, &result), 0);
		if (i < 3)
			drain(); /* it learns the rules */
	}
	drain();
	assert_int_equal(seen_count, 2 * pairs);
	assert_int_equal(fake_frees, pairs);
	/* nearly all had 16 bytes, and only the full ring caused traps */
	assert_true(here.ring.stats.bytes < 2 * pairs * 16 + 100000);
	assert_true(here.full >= 2 * pairs * 16 / (1 << 16) - 1);
	assert_int_equal(here.in_calls + here.bounds + here.unknown, 0);
	world_close();
}

static void test_short_ways(void **state)
{
	run_short_ways(0, 0);
	run_short_ways(0, 1);
	run_short_ways(PAD_COUNT_ONLY, 0);
	run_short_ways(PAD_COUNT_ONLY, 1);
}

/* A variable's value is that at each allocation, where one stack allocates repeatedly, too. */
static void test_labels(void **state)
{
	static volatile uint64_t variable;
	const struct pad_label label[PAD_LABELS] = {
		{.kind = PAD_LABEL_NUMBER, .place = (int64_t)(uintptr_t)&variable, .size = 8}};
	const uint64_t turns = 40;
	uint64_t result;

	open_world(1 << 16);
	enroll();
	pad_memory_set_labels(&here.memory, label);
	memset(of_label, 0, sizeof(of_label));
	for (uint64_t i = 0; i < turns * KEEP * 10; i++) {
		variable = i / 10 % KEEP;
		assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
		assert_int_equal(result, 0x100000 + 16 * i);
		if (i < 3)
			drain(); /* it learns the rules */
	}
	drain();
	assert_int_equal(seen_count, turns * KEEP * 10);
	for (size_t i = 0; i < KEEP; i++)
		assert_int_equal(of_label[i], turns * 10);
	assert_int_equal(here.in_calls + here.bounds + here.unknown, 0);
	world_close();
}

#if ARCH_RETURN_SIZE /* other CPUs have no pads for labels of calls */
/* The argument of the outermost call of a function is the label while that lasts; the function's return is not seen. */
static void test_labels_of_calls(void **state)
{
	const struct pad_label label[PAD_LABELS] = {
		[0] = {.kind = PAD_LABEL_NUMBER, .base = PAD_LABEL_CALL, .function = 1, .size = 8},
		[5] = {.kind = PAD_LABEL_NUMBER, .base = PAD_LABEL_CALL, .function = 2, .size = 8}};
	const uint64_t turns = 40, ids = KEEP - 2;
	uint64_t result;

	open_world(1 << 16);
	enroll();
	pad_memory_set_labels(&here.memory, label);
	memset(of_label, 0, sizeof(of_label));
	for (uint64_t i = 0; i < turns * ids; i++) {
		pad_handle(1 + i % ids, 5, i % 2);
		assert_int_equal(call_keeping((void *)pad_malloc, 100, &result), 0);
		if (i < 3)
			drain(); /* it learns the rules */
	}
	drain();
	assert_int_equal(seen_count, turns * ids * 6);
	assert_int_equal(of_label[0], turns * ids);
	for (size_t i = 1; i <= ids; i++)
		assert_int_equal(of_label[i], turns * 5);
	assert_true(here.sites >= 2 && here.sites <= 4); /* the inner call traps until its frame has a rule */
	pad_memory_set_traps_calls(&here.memory, true);
	pad_memory_clear_call_sites(&here.memory);
	assert_int_equal(here.in_calls + here.bounds + here.unknown, 0);
	world_close();
}
#endif

/* --- changing call depths --- */

struct walker {
	uint64_t random;
	uint64_t calls, budget;
	alloc_fn alloc;
	free_fn release;
};

static uint32_t next_random(struct walker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 20);
}

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

static void wander(struct walker *w, unsigned int depth);

static NOINLINE void by_sp(struct walker *w, unsigned int depth)
{
	volatile uint64_t local = w->calls;
	wander(w, depth);
	(void)local;
}

/* alloca: the CFA comes from the frame pointer. */
static NOINLINE void by_fp(struct walker *w, unsigned int depth)
{
	volatile char *room = __builtin_alloca(next_random(w) % 200 + 8);
	room[0] = 1;
	wander(w, depth);
	room[1] = 2;
}

/* A realigned stack. */
static NOINLINE void by_deref(struct walker *w, unsigned int depth)
{
	volatile char aligned[64] __attribute__((aligned(64)));
	volatile char *room = __builtin_alloca(next_random(w) % 100 + 8);
	aligned[0] = room[0] = 1;
	wander(w, depth);
	aligned[1] = room[1] = aligned[0];
}

/* Callee-saved registers are in use: outer frames that need the frame pointer must find it saved. */
static NOINLINE void with_saved(struct walker *w, unsigned int depth)
{
	CHANGE_SAVED(depth);
	wander(w, depth);
	CHANGE_SAVED(w->calls);
}

static NOINLINE void allocate(struct walker *w)
{
	if (w->calls >= w->budget)
		return;
	void *p = w->alloc(next_random(w) % 500, 0);
	if (next_random(w) % 2)
		w->release(p);
	w->calls++;
}

static NOINLINE void wander(struct walker *w, unsigned int depth)
{
	while (w->calls < w->budget) {
		switch (next_random(w) % (depth > 60 ? 7 : 11) + (depth > 60 ? 4 : 0)) {
		case 0:
			by_sp(w, depth + 1);
			break;
		case 1:
			by_fp(w, depth + 1);
			break;
		case 2:
			by_deref(w, depth + 1);
			break;
		case 3:
			with_saved(w, depth + 1);
			break;
		case 4:
		case 5:
			allocate(w);
			break;
		case 6:
			allocate(w);
			allocate(w);
			break;
		default:
			if (depth)
				return;
		}
	}
}

#ifdef SANITIZED
#define MANY 20000u
#else
#define MANY 250000u
#endif

/* Every record is also unwound fully and compared with the incremental walk. */
static void test_verify(void **state)
{
	struct walker w = { .random = 88172645463325252ull, .budget = rounds(MANY), .alloc = pad_malloc };
	open_world(1 << 20);
	enroll();
	pad_memory_set_flags(&here.memory, PAD_VERIFY);
	w.alloc = pad_malloc;
	w.release = pad_free;
	wander(&w, 0);
	drain();
	print_message("%llu verified, %llu raw only, deepest %llu, kept %.2f of the frames, ring full %llu times\n",
		      (unsigned long long)verified, (unsigned long long)raw_only, (unsigned long long)deepest,
		      (double)kept_frames / (double)all_frames, (unsigned long long)here.full);
	assert_true(verified + raw_only == rounds(MANY));
	assert_true(raw_only < rounds(MANY) / 100);
	assert_true(here.full > 0);
	assert_int_equal(here.in_calls + here.bounds + here.large, 0);
	world_close();
}

/* The same walk with and without verifying gives the same stacks: a hash over all of them. */
static uint64_t stacks_hash;

static void hash_stack(void *ctx, struct heap_event *ev)
{
	keep(ctx, ev);
	if (ev->kind != HEAP_ALLOC)
		return;
	for (size_t i = 0; i < last_stack_count; i++)
		stacks_hash = hash_u64(stacks_hash * 31 + last_stack[i]);
}

static uint64_t hash_of_walk(uint32_t flags)
{
	struct walker w = { .random = 362436069521288629ull, .budget = rounds(MANY) / 5 };
	open_world(1 << 18);
	enroll();
	here.on_event = hash_stack;
	pad_memory_set_flags(&here.memory, flags);
	w.alloc = pad_malloc;
	w.release = pad_free;
	stacks_hash = 0;
	wander(&w, 0);
	drain();
	world_close();
	return stacks_hash;
}

static void test_hash(void **state)
{
	uint64_t hash[2];
	for (int i = 0; i < 2; i++) /* one call site: the same return address */
		hash[i] = hash_of_walk(i ? PAD_VERIFY : 0);
	assert_int_equal(hash[0], hash[1]);
}

/* --- deep stacks --- */

static NOINLINE int descend(int depth)
{
	volatile int local = depth;
	if (depth == 0)
		pad_malloc(1, 0);
	else
		local += descend(depth - 1);
	return local;
}

/* From one call site, whose rule is known after the first time. */
static NOINLINE void descend_often(int depth, int times)
{
	for (int i = 0; i < times; i++) {
		descend(depth);
		drain();
	}
}

static void test_deep(void **state)
{
	open_world(1 << 22);
	enroll();
	pad_memory_set_flags(&here.memory, PAD_VERIFY);
	for (int i = 0; i < 3; i++) {
		descend(3000);
		descend(3000);
		descend(100);
		drain();
	}
	assert_int_equal(seen_count, 9);
	assert_true(deepest > 3000);
	assert_true(verified >= 6); /* the first three calls added the rules */
	/* Deeper than the slot's frames: the pad requests a deep cache, once. */
	descend_often(100, 2);
	descend_often(5000, 4);
	assert_int_equal(here.deep, 1);
	assert_int_equal(seen_count, 14);
	assert_true(last_stack_count > 5000);
	assert_true(seen[13].frame && seen[13].stack);
	pad_memory_set_flags(&here.memory, 0);
	descend_often(5000, 3);
	assert_true(seen[16].frame && !seen[16].stack && seen[16].kept > 5000);
	/* Larger than a record may be: a trap, and the call continues. */
	here.memory.control->record_max = 65536;
	descend(16500);
	drain();
	assert_int_equal(here.large, 1);
	assert_int_equal(seen_count, 17);
	descend(10);
	drain();
	assert_int_equal(seen_count, 18);
	world_close();
}

/* Without a free deep cache the stack is sent raw, and the pad does not request one again. */
static void test_no_deep_cache(void **state)
{
	open_world(1 << 23); /* so that the ring of a later thread has room for the largest record */
	for (int i = 0; i < PAD_DEEP_CACHES; i++) {
		uint32_t slot = (uint32_t)pad_slots_add(&here.memory, 0x1000 * (i + 1ull), 0, 1);
		pad_cache_deepen(&here.memory, slot);
	}
	enroll();
	descend_often(100, 2);
	descend_often(5000, 3);
	assert_int_equal(here.deep, 1);
	assert_int_equal(seen_count, 4);
	assert_true(seen[3].stack && !seen[3].frame);
	assert_true(last_stack_count > 5000);
	/* The next thread finds a cache that was returned. */
	pad_slots_remove(&here.memory, 0x3000);
	pad_slots_remove(&here.memory, thread_pointer());
	int slot = enroll();
	ring_reset_slot(&here.ring, (uint32_t)slot);
	descend_often(5000, 4);
	assert_int_equal(here.deep, 2);
	assert_int_equal(seen_count, 7);
	assert_true(seen[6].frame && !seen[6].stack && seen[6].kept > 5000);
	world_close();
}

static void test_count_only(void **state)
{
	open_world(1 << 16);
	enroll();
	pad_memory_set_flags(&here.memory, PAD_COUNT_ONLY);
	for (int i = 0; i < 20; i++)
		pad_free(pad_malloc(10, 0));
	drain();
	assert_int_equal(seen_count, 40);
	assert_false(seen[38].frame || seen[38].stack);
	assert_int_equal(seen[38].size, 10);
	world_close();
}

/* --- longjmp and exceptions --- */

static jmp_buf jump;
static void *jump_out(size_t size, size_t unused)
{
	longjmp(jump, 1);
}

static NOINLINE void new_deeper(int depth)
{
	volatile char room[64] = { 0 };
	if (depth)
		new_deeper(depth - 1);
	else
		pad_new(9, 0);
	(void)room[0];
}

static void test_longjmp_out_of_the_original(void **state)
{
	open_world(1 << 16);
	enroll();
	pad_new(1, 0);
	for (int i = 0; i < 3; i++) {
		nested_alloc = jump_out;
		if (setjmp(jump) == 0)
			new_deeper(i == 2 ? 0 : 5);
		nested_alloc = pad_malloc;
		if (i == 1) /* below the stack pointer of the call that was left */
			new_deeper(50);
		pad_new(2, 0);
	}
	drain();
	assert_int_equal(seen_count, 5);
	assert_int_equal(seen[1].size, 2);
	assert_int_equal(seen[2].size, 9);
	assert_int_equal(here.in_calls, 2); /* for operator new's rule; for the deeper call */
	world_close();
}

static int (*pad_throw)(void);
static int thrown;
static void *throwing_alloc(size_t size, size_t unused)
{
	thrown = pad_throw();
	return NULL;
}

static void test_throw_check(void **state)
{
	open_world(1 << 16);
	enroll();
	pad_throw = (int (*)(void))make_pad(fake_throw, throw_probe);
	assert_int_equal(pad_throw(), 7);
	assert_int_equal(here.throws, 0);
	nested_alloc = throwing_alloc;
	assert_null(pad_new(1, 0)); /* no longer in the pad: returns here directly, unrecorded */
	assert_int_equal(thrown, 7);
	assert_int_equal(here.throws, 1);
	nested_alloc = pad_malloc;
	pad_new(1, 0);
	drain();
	assert_int_equal(seen_count, 1);
	world_close();
}

/* --- threads --- */

#define THREADS 8
#ifdef SANITIZED
#define THREAD_CALLS 10000u
#else
#define THREAD_CALLS 30000u
#endif

static pthread_barrier_t start;
static volatile int done;
static uint64_t thread_calls;

static void *thread_main(void *arg)
{
	struct walker w = { .random = 88172645463325252ull + 977 * (uintptr_t)arg, .budget = thread_calls,
			    .alloc = pad_malloc, .release = pad_free };
	enroll();
	pthread_barrier_wait(&start);
	wander(&w, 0);
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static uint64_t live[65536];

/* Every block once, freed only while live: the ring's order is a valid one. */
static void check_order(void *ctx, struct heap_event *ev)
{
	static taddr_t base = 0x100000;
	if (ev->kind == HEAP_ALLOC) {
		uint64_t bit = (ev->addr - base) / 16 % (64 * 65536);
		assert_false(live[bit / 64] >> (bit % 64) & 1);
		live[bit / 64] |= 1ull << (bit % 64);
	} else {
		uint64_t bit = (ev->addr - base) / 16 % (64 * 65536);
		assert_true(live[bit / 64] >> (bit % 64) & 1);
		live[bit / 64] &= ~(1ull << (bit % 64));
	}
	keep(ctx, ev);
}

static void run_threads(size_t ring_size, uint32_t flags, uint64_t calls)
{
	pthread_t thread[THREADS];
	thread_calls = calls;
	open_world(ring_size);
	memset(live, 0, sizeof(live));
	here.on_event = check_order;
	here.has_reader = true;
	pad_memory_set_flags(&here.memory, flags);
	done = 0;
	pthread_barrier_init(&start, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_main, (void *)i);
	while (done < THREADS || ring_pending(&here.ring)) {
		if (!drain())
			usleep(50);
		ring_publish(&here.ring);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	drain(); /* a record that came late is not pending: others with later numbers were read */
	assert_int_equal(ring_pending(&here.ring), 0);
	uint64_t live_count = 0;
	for (size_t i = 0; i < 65536; i++)
		live_count += (uint64_t)__builtin_popcountll(live[i]);
	assert_int_equal(live_count, THREADS * calls - fake_frees);
	assert_int_equal(seen_count, THREADS * calls + fake_frees);
	world_close();
}

static void test_threads(void **state)
{
	run_threads(1 << 20, 0, rounds(THREAD_CALLS));
}

static void test_threads_verify_small_ring(void **state)
{
	run_threads(1 << 17, PAD_VERIFY, rounds(THREAD_CALLS) / 10);
	assert_true(here.full > 0);
	assert_true(verified > THREADS * (uint64_t)rounds(THREAD_CALLS) / 10 * 9 / 10);
}

/* --- signals --- */

#define SIGNALS 5000
#ifdef SANITIZED
#define SIGNAL_NS 1000000
#else
#define SIGNAL_NS 200000
#endif
static volatile uint64_t handled;

static void on_timer(int sig)
{
	int saved = errno;
	pad_free(pad_malloc(77, 0));
	handled++;
	errno = saved;
}

static uint64_t allocs_seen, frees_seen;

static void count_kinds(void *ctx, struct heap_event *ev)
{
	*(ev->kind == HEAP_ALLOC ? &allocs_seen : &frees_seen) += 1;
	keep(ctx, ev);
}

/* A handler that allocates at random moments: in the walk, between reserve and commit, anywhere. */
static void interrupt(uint32_t flags)
{
	struct walker w = { .random = 521288629ull };
	struct itimerspec every = { { 0, SIGNAL_NS }, { 0, SIGNAL_NS } };
	struct sigaction action = { .sa_handler = on_timer };
	timer_t timer;

	open_world(1 << 20);
	enroll();
	pad_memory_set_flags(&here.memory, flags);
	here.on_event = count_kinds;
	here.memory.control->shared = 0; /* one thread: handlers need no lock */
	allocs_seen = frees_seen = 0;
	w.alloc = pad_malloc;
	w.release = pad_free;
	handled = 0;
	sigaction(SIGALRM, &action, NULL);
	/* The test's reader and allocator must not be interrupted; the pads are. */
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	timer_settime(timer, 0, &every, NULL);
	for (; handled < SIGNALS; w.budget += 1000)
		wander(&w, 0);
	timer_delete(timer);
	drain();
	print_message("%llu signals, %llu and %llu calls served from outside\n", (unsigned long long)handled,
		      (unsigned long long)here.outside_allocs, (unsigned long long)here.outside_frees);
	/* Each handler's call was recorded, or handled without a pad. */
	assert_int_equal(allocs_seen, w.calls + handled - here.outside_allocs);
	assert_int_equal(frees_seen, fake_frees - here.outside_frees);
	assert_true(here.outside_allocs > 0 && here.outside_allocs < handled);
	assert_int_equal(ring_pending(&here.ring), 0);
	world_close();
}

static void test_signals(void **state)
{
	interrupt(PAD_VERIFY);
	interrupt(0);
}

/* --- the real libc, through pads --- */

static void test_libc(void **state)
{
	static const char *const name[] = { "malloc", "free", "calloc", "realloc" };
	const struct pad_probe probe[] = { malloc_probe, free_probe, calloc_probe, realloc_probe };
	void *handle[4];
	open_world(1 << 18);
	enroll();
	extern void *__libc_malloc(size_t), __libc_free(void *), *__libc_calloc(size_t, size_t),
		*__libc_realloc(void *, size_t);
	const void *entry[] = { (const void *)__libc_malloc, (const void *)__libc_free,
				(const void *)__libc_calloc, (const void *)__libc_realloc };
	/* In a program that is not PIE, &__libc_malloc may be a PLT entry: none of these tests is. */
	uint8_t *pages = code_pages((uintptr_t)entry[0], ROUND_UP(4 * PAD_ROOM, 4096));
	for (int i = 0; i < 4; i++)
		handle[i] = make_pad_at(entry[i], probe[i], pages + i * PAD_ROOM);
	alloc_fn p_malloc = (alloc_fn)handle[0], p_calloc = (alloc_fn)handle[2];
	free_fn p_free = (free_fn)handle[1];
	realloc_fn p_realloc = (realloc_fn)handle[3];
	for (int i = 0; i < 1000; i++) {
		char *p = p_malloc((size_t)i + 1, 0);
		memset(p, i, (size_t)i + 1);
		p = p_realloc(p, (size_t)i * 3 + 1, 0);
		for (int k = 0; k <= i; k++)
			assert_int_equal((uint8_t)p[k], (uint8_t)i);
		char *q = p_calloc(10, (size_t)i + 1);
		assert_int_equal(q[i], 0);
		p_free(p);
		p_free(q);
		if (i % 100 == 0)
			drain();
	}
	p_free(p_realloc(NULL, 5, 0));
	drain();
	assert_int_equal(seen_count, 6 * 1000 + 3);
	(void)name;
	world_close();
	munmap(pages, ROUND_UP(4 * PAD_ROOM, 4096));
}

/* What the program writes to the table of known functions does not move those that ptmem adds. */
static void test_known_functions(void **state)
{
	const uint64_t identity = 0x7f0000001230, other = 0x7f0000004560;
	const struct pad_memory_options options = {.ring_size = PAD_RING_MIN, .slot_count = 1,
						   .rule_bits = 14};
	struct pad_memory memory;
	int fd = memfd_create("pads", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(pad_memory_init(&memory, fd, &options), 0);
	struct pad_virtual *v = (void *)(memory.base + memory.layout.virtual);
	struct pad_known *first = &v->known[pad_known_hash(identity)];

	first->identity = other;
	pad_memory_know(&memory, identity, 1);
	assert_int_equal(first->identity, identity);
	assert_int_equal(first->stamp, 1);
	memset(v->known, 0, sizeof(v->known));
	pad_memory_know(&memory, identity + (1ull << 48), 3);
	pad_memory_know(&memory, identity, 2);
	assert_int_equal(first->identity, identity);
	assert_int_equal(first->stamp, 2);
	/* where it begins again, deaths of functions are unseen: lists are compared completely once */
	uint64_t deaths = v->deaths;

	v->layout.counts_deaths = 1;
	for (uint64_t i = 1; v->deaths == deaths && i <= 1u << PAD_KNOWN_BITS; i++)
		pad_memory_know(&memory, identity + 64 * i, 1);
	assert_int_equal(v->deaths, deaths + 1);
	assert_int_equal(v->layout.counts_deaths, 1);
	pad_memory_deinit(&memory);
}

/* Argument: a pattern that selects tests. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_off_and_unknown_thread),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_short_ways),
		cmocka_unit_test(test_labels),
#if ARCH_RETURN_SIZE
		cmocka_unit_test(test_labels_of_calls),
#endif
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_no_deep_cache),
		cmocka_unit_test(test_count_only),
		cmocka_unit_test(test_longjmp_out_of_the_original),
		cmocka_unit_test(test_throw_check),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_verify_small_ring),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_known_functions),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
