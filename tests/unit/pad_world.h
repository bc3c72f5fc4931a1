/*
 * Pads in the test's own process, which is both target and reader. The shared memory is mapped
 * twice, the recorder and the pads have pages of their own, a function is called through its pad
 * (pad.start) instead of being patched, and a SIGTRAP handler does the tracer's work.
 */
#ifndef PTMEM_TESTS_UNIT_PAD_WORLD_H
#define PTMEM_TESTS_UNIT_PAD_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/arch.h"
#include "arch/pad.h"
#include "base/elf_file.h"
#include "pad_cpu.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring.h"
#include "unwind/unwind.h"

#define MAX_PADS 64
#define MAX_WALK 20000
#define PADS_SIZE 0x10000

typedef void event_fn(void *ctx, struct heap_event *ev);

struct world {
	struct pad_memory memory;
	struct ring ring;
	struct tick_clock clock;
	struct unwind *unwind;
	uint8_t *target;        /* the "target's" mapping of the shared memory */
	uint8_t *recorder;
	uint8_t *pads;          /* near this program */
	size_t pads_used;
	struct pad pad[MAX_PADS];
	size_t pad_count;
	struct module module[128];
	size_t module_count;
	/* what the handler saw */
	volatile uint64_t full, bounds, in_calls, throws, unknown, large, deep, sites;
	volatile uint64_t exits; /* hit by threads, with breakpoints at them (arm_exits) */
	volatile uint64_t outside_allocs, outside_frees; /* signal handlers' calls without a pad */
	bool has_reader;        /* another thread drains: threads wait when the ring is full */
	event_fn *on_event;
	pthread_mutex_t lock;   /* over unwind and pad_memory */
};

static struct world *world;
extern void *__libc_stack_end;

/* The recorder's unwind information for [start, start + size). */
static void add_recorder_module(taddr_t start, size_t size, taddr_t bias)
{
	struct module *m = &world->module[world->module_count++];
	struct recorder_image image = arch_recorder_image();
	uint8_t *elf = malloc(image.elf_size);
	memcpy(elf, image.elf, image.elf_size);
	*m = (struct module){ .id = (uint32_t)world->module_count, .start = start, .end = start + size,
			      .bias = bias };
	assert_int_equal(elf_file_open_memory(elf, image.elf_size, "[recorder]", &m->file), 0);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct module *m = &world->module[world->module_count];
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	*m = (struct module){ .id = (uint32_t)world->module_count + 1, .bias = info->dlpi_addr,
			      .start = UINT64_MAX };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		m->start = MIN(m->start, info->dlpi_addr + p->p_vaddr);
		m->end = MAX(m->end, info->dlpi_addr + p->p_vaddr + p->p_memsz);
	}
	if (elf_file_open(NULL, path, NULL, &m->file) == 0)
		world->module_count++;
	return 0;
}

static const struct module *find_module(void *ctx, taddr_t pc)
{
	for (size_t i = 0; i < world->module_count; i++)
		if (pc >= world->module[i].start && pc < world->module[i].end)
			return &world->module[i];
	return NULL;
}

/* Room for code within reach of @near. */
static uint8_t *code_pages(uintptr_t near, size_t size)
{
	for (uintptr_t i = 1; i < 0x70; i++)
		for (int sign = -1; sign <= 1; sign += 2) {
			uintptr_t at = ROUND_DOWN(near, 0x100000) + (uintptr_t)sign * i * 0x1000000;
			void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (p != MAP_FAILED)
				return p;
		}
	fail_msg("no room for code");
	return NULL;
}

static int own_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return -EFAULT; /* the copy must be large enough */
}

static int live_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	if (addr < 4096)
		return -EFAULT;
	memcpy(buf, (const void *)(uintptr_t)addr, size);
	return 0;
}

/* The pcs of a raw stack by full unwinding, outermost first; learns the rules. */
static size_t unwind_raw(const struct stack_view *raw, taddr_t *out, size_t max)
{
	struct stack_view view = *raw;
	enum unwind_end end;
	view.read = own_memory;
	pthread_mutex_lock(&world->lock);
	size_t n = unwind_walk(world->unwind, &view, out, max, &end);
	pthread_mutex_unlock(&world->lock);
	if (end != UNWIND_COMPLETE)
		fail_msg("a stack ended after %zu frames: %s", n, unwind_end_text[end]);
	for (size_t i = 0; i < n / 2; i++) {
		taddr_t t = out[i];
		out[i] = out[n - 1 - i];
		out[n - 1 - i] = t;
	}
	return n;
}

static size_t drain(void)
{
	return ring_drain(&world->ring, SIZE_MAX, &(struct ring_reader){ .event = world->on_event });
}

static void stack_bounds(taddr_t *low, taddr_t *high)
{
	pthread_attr_t attr;
	void *start;
	size_t size;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &start, &size);
	pthread_attr_destroy(&attr);
	*low = (taddr_t)start;
	*high = (taddr_t)start + size;
	if ((taddr_t)__libc_stack_end > *low && (taddr_t)__libc_stack_end < *high)
		*high = ROUND_UP((taddr_t)__libc_stack_end, 16) + 16;
}

/* Gives the calling thread a slot. */
static int enroll(void)
{
	taddr_t low, high;
	stack_bounds(&low, &high);
	pthread_mutex_lock(&world->lock);
	int slot = pad_slots_add(&world->memory, thread_pointer(), low, high);
	pthread_mutex_unlock(&world->lock);
	assert_true(slot >= 0);
	return slot;
}

static const struct pad *pad_of_trap(taddr_t pc)
{
	for (size_t i = 0; i < world->pad_count; i++)
		if (pc == world->pad[i].entry_trap || pc == world->pad[i].leave_trap)
			return &world->pad[i];
	return NULL;
}

static void serve_in_call(ucontext_t *uc, const struct pad *pad, struct pad_slot *slot)
{
	static taddr_t pcs[MAX_WALK];
	struct stack_view view = view_at_entry(uc);
	view.read = live_memory;
	enum unwind_end end;
	pthread_mutex_lock(&world->lock);
	unwind_walk(world->unwind, &view, pcs, MAX_WALK, &end); /* learns */
	if (end != UNWIND_COMPLETE)
		fail_msg("inside a pad: %s", unwind_end_text[end]);
	bool in_signal = unwind_in_signal(world->unwind, &view, pad_call_end(slot));
	pthread_mutex_unlock(&world->lock);
	world->in_calls++;
	if (in_signal) {
		if (pad->leave_trap)
			world->outside_allocs++;
		else
			world->outside_frees++;
		SET_PC(uc, pad->straight); /* tier 1 would count it */
	} else if (slot->reason == PAD_REASON_STALE ||
		   *(const uint64_t *)(uintptr_t)slot->return_at != slot->return_to) {
		pad_slots_reset(&world->memory, slot->index);
		ring_reset_slot(&world->ring, slot->index);
	}
}

/* A caller that is not known yet, or a frame on the way to another call whose rule is missing. */
static void serve_call(const ucontext_t *uc)
{
	static taddr_t pcs[MAX_WALK];
	struct stack_view view = view_at_entry(uc);
	enum unwind_end end;

	world->sites++;
	pad_memory_add_call_site(&world->memory, view.regs.reg[16]);
	unwind_walk(world->unwind, &view, pcs, MAX_WALK, &end); /* learns */
}

static void serve_entry(ucontext_t *uc, const struct pad *pad)
{
	int index = pad_slots_find(&world->memory, thread_pointer());
	if (index < 0) {
		world->unknown++;
		enroll();
		return;
	}
	struct pad_slot *slot = pad_memory_slot(&world->memory, (uint32_t)index);
	switch (slot->reason) {
	case PAD_REASON_BOUNDS:
		world->bounds++;
		SET_PC(uc, pad->straight);
		break;
	case PAD_REASON_IN_CALL:
	case PAD_REASON_STALE:
		serve_in_call(uc, pad, slot);
		break;
	case PAD_REASON_CALL:
		serve_call(uc);
		break;
	case PAD_REASON_THROW:
		world->throws++;
		*(uint64_t *)(uintptr_t)slot->return_at = (uintptr_t)world->pads + PADS_SIZE - sizeof(drop_word);
		slot->return_at = 0;
		break;
	default:
		abort();
	}
}

/* A call that is not recorded by the pad: the tracer would make its event. */
static void serve_leave(void)
{
	int index = pad_slots_find(&world->memory, thread_pointer());
	if (pad_memory_slot(&world->memory, (uint32_t)index)->reason != PAD_REASON_DEEP) {
		world->large++;
		return;
	}
	world->deep++;
	drain();
	pad_cache_deepen(&world->memory, (uint32_t)index);
	ring_reset_slot(&world->ring, (uint32_t)index);
}

static const struct pad_exit *find_exit(taddr_t pc)
{
	for (size_t i = 0; i < world->pad_count; i++)
		for (unsigned k = 0; k < PAD_EXITS; k++)
			if (pc == world->pad[i].exit[k].at)
				return &world->pad[i].exit[k];
	return NULL;
}

/* Breakpoints as when pads are removed. */
static void arm_exits(void)
{
	for (size_t i = 0; i < world->pad_count; i++)
		for (unsigned k = 0; k < PAD_EXITS; k++)
			if (world->pad[i].exit[k].at)
				memcpy((void *)(uintptr_t)world->pad[i].exit[k].at, arch_native->trap, arch_native->trap_size);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	taddr_t pc = TRAP_PC(uc);
	const struct pad *pad = pad_of_trap(pc);

	AFTER_TRAP(uc);

	if (pc == (taddr_t)world->recorder + arch_recorder_image().full_trap) {
		__atomic_add_fetch(&world->full, 1, __ATOMIC_RELAXED);
		SET_ANSWER(uc, PAD_FULL_RETRY);
		if (world->has_reader)
			usleep(100);
		else
			drain(), ring_publish(&world->ring);
	} else if (pad && pc == pad->leave_trap) {
		serve_leave();
	} else if (pad) {
		serve_entry(uc, pad);
	} else if (find_exit(pc)) {
		world->exits++;
		SET_PC(uc, find_exit(pc)->to);
	} else {
		static const char text[] = "a foreign trap\n";
		(void)!write(2, text, sizeof(text) - 1);
		_exit(3);
	}
}

static void world_open(struct world *w, size_t ring_size, event_fn *on_event)
{
	struct pad_memory_options options = { ring_size, 64, 14 };
	struct unwind_ops ops = { .module = find_module };
	struct recorder_image image = arch_recorder_image();

	memset(w, 0, sizeof(*w));
	world = w;
	w->on_event = on_event;
	pthread_mutex_init(&w->lock, NULL);
	int fd = memfd_create("pads", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(pad_memory_init(&w->memory, fd, &options), 0);
	w->target = mmap(NULL, w->memory.layout.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 0);
	assert_ptr_not_equal(w->target, MAP_FAILED);
	pad_memory_locate(&w->memory, (taddr_t)w->target);
	tick_clock_init(&w->clock, arch_native);
	tick_clock_measure(&w->clock); /* else each record has a stamp, and none is short */
	pad_memory_set_gap(&w->memory, tick_clock_ticks(&w->clock, RING_GAP_NS));
	ring_init(&w->ring, &w->memory, arch_native, &w->clock);
	dl_iterate_phdr(add_module, NULL);
	w->unwind = unwind_new(arch_native, &ops);
	void *rules = w->memory.base + w->memory.layout.rules;
	unwind_set_memory(w->unwind, rules, 14, NULL, NULL);
	w->recorder = mmap(NULL, ROUND_UP(image.size, 4096), PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(w->recorder, image.code, image.size);
	__builtin___clear_cache((char *)w->recorder, (char *)w->recorder + image.size);
	add_recorder_module((taddr_t)w->recorder, image.size, (taddr_t)w->recorder);
	w->pads = code_pages((uintptr_t)world_open, PADS_SIZE);
	memcpy(w->pads + PADS_SIZE - sizeof(drop_word), drop_word, sizeof(drop_word));
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigaddset(&action.sa_mask, SIGALRM); /* the tracer is not interrupted either */
	sigaction(SIGTRAP, &action, NULL);
	w->memory.control->off = 0;
}

static void world_close(void)
{
	ring_deinit(&world->ring);
	unwind_free(world->unwind);
	for (size_t i = 0; i < world->module_count; i++)
		elf_file_release(world->module[i].file);
	munmap(world->target, world->memory.layout.file_size);
	munmap(world->recorder, ROUND_UP(arch_recorder_image().size, 4096));
	munmap(world->pads, PADS_SIZE);
	pad_memory_deinit(&world->memory);
	signal(SIGTRAP, SIG_DFL);
}

/* A pad for the function at @entry, to be placed at @at; returns the address to call. */
static void *make_pad_at(const void *entry, struct pad_probe probe, uint8_t *at)
{
	uint8_t stub_code[128];
	struct arch_stub stub;
	struct arch_move move = {
		.code = entry, .code_size = 64, .from = (taddr_t)(uintptr_t)entry,
		.to = (taddr_t)(uintptr_t)at, .out = stub_code, .out_size = sizeof(stub_code),
	};
	if (arch_native->make_stub(&move, &stub) != 0)
		fail_msg("no stub: %s", move.why);
	struct pad_request request = {
		.probe = probe, .code = (const void *)(uintptr_t)stub.patch, .code_size = stub.moved, .from = stub.patch,
		.at = (uint64_t)(uintptr_t)at, .recorder = (uint64_t)(uintptr_t)world->recorder,
		.control = (uint64_t)(uintptr_t)world->target,
	};
	struct pad *pad = &world->pad[world->pad_count++];
	const char *why = "";
	uint8_t out[PAD_ROOM];
	if (arch_make_pad(&request, out, pad, &why) != 0)
		fail_msg("no pad: %s", why);
	assert_true(pad->size <= PAD_ROOM);
	memcpy(at, out, pad->size);
	__builtin___clear_cache((char *)at, (char *)at + pad->size);
	add_recorder_module(pad->at, pad->size, pad->bias);
	return (void *)(uintptr_t)pad->start;
}

static void *make_pad(const void *entry, struct pad_probe probe)
{
	uint8_t *at = world->pads + world->pads_used;
	world->pads_used += PAD_ROOM;
	return make_pad_at(entry, probe, at);
}

#define NO PAD_NO_ARG
static const struct pad_probe malloc_probe = { PAD_ALLOC, FUNCTION_MALLOC, 0, NO, NO, {NO}, NO, 0, 0, 0, 0 };
static const struct pad_probe calloc_probe = { PAD_ALLOC, FUNCTION_CALLOC, 1, 0, NO, {NO}, NO, 0, 0, 0, 0 };
static const struct pad_probe memalign_probe = { PAD_ALLOC, FUNCTION_MEMALIGN, 1, NO, 0, {NO}, NO, 0, 0, 0, 0 };
static const struct pad_probe valloc_probe = { PAD_ALLOC, FUNCTION_MEMALIGN, 0, NO, NO, {NO}, NO, 0, 0, 0, 4096 };
static const struct pad_probe posix_memalign_probe = { PAD_ALLOC, FUNCTION_MEMALIGN, 2, NO, 1, {NO}, 0, 0, 0, 0, 0 };
static const struct pad_probe realloc_probe = { PAD_REALLOC, FUNCTION_REALLOC, 1, NO, NO, {0}, NO, 0, 0, 0, 0 };
static const struct pad_probe reallocarray_probe = { PAD_REALLOC, FUNCTION_REALLOC, 2, 1, NO, {0}, NO, 0, 0, 0, 0 };
static const struct pad_probe free_probe = { PAD_FREE, FUNCTION_FREE, NO, NO, NO, {0}, NO, 0, 0, 0, 0 };
static const struct pad_probe new_probe = { PAD_ALLOC, FUNCTION_NEW, 0, NO, NO, {NO}, NO, 0, 0, 0, 0 };
static const struct pad_probe delete_probe = { PAD_DELETE, FUNCTION_DELETE, NO, NO, NO, {0}, NO, 0, 0, 0, 0 };
static const struct pad_probe labelled_probe = { PAD_LABELLED, FUNCTION_NONE, NO, NO, NO, {NO}, NO, 0, 0, 0, 1 };
static const struct pad_probe throw_probe = { PAD_THROW_CHECK, FUNCTION_NONE, NO, NO, NO, {NO}, NO, 0, 0, 0, 0 };
#undef NO

#endif
