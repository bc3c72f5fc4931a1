/*
 * Mappings and page faults on their way from event to profile. See sources.h.
 *
 *	HEAP_MAP, HEAP_UNMAP   brk or mmap, by the function; all of them are the
 *	                       heap's with --pages-as-heap
 *	HEAP_FAULT             faults
 *
 * Pseudo frames are addresses in the hole of the address space that no program can
 * reach, outside any module, with names that are given by hand.
 */
#include "sources.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "session.h"
#include "session_output.h"
#include "target/maps.h"

#define PSEUDO_BASE 0x8000000000000000ull
#define USER_END 0x00007fffffffffffull /* the last address of a program; above is [vsyscall] */

const struct source_info source_info[SOURCE_COUNT] = {
	[SOURCE_HEAP] = {"heap", "Heap", "bytes"},
	[SOURCE_BRK] = {"brk", "Heap growth by brk", "bytes"},
	[SOURCE_MMAP] = {"mmap", "Mapped memory", "bytes"},
	[SOURCE_FAULTS] = {"faults", "Page faults", "pages"},
};

/* -- names -- */

/* Of the call tree of @ctx, a struct source. */
static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	struct source *src = ctx;
	struct run *run = src->session->run;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);
	return symbols_find(run->symbols, run_module(run, f->module), f->pc, part);
}

void source_fill_report(struct source *src, struct report *out)
{
	struct session *s = src->session;
	const struct options *o = s->run->options;
	*out = (struct report){
		.profile = src->profile,
		.filter = s->run->filter,
		.symbol = find_symbol,
		.symbol_ctx = src,
		.desc = o->desc,
		.command = s->command,
		.threshold = o->threshold,
		.pid = s->pid,
		.fullpath_after = o->fullpath_after.data,
		.fullpath_after_count = o->fullpath_after.count,
		.is_pages = src->kind != SOURCE_HEAP || o->pages_as_heap,
	};
}

/*
 * The frame called @name; its address is made of the name, so that it is the same in every profile.
 */
static uint32_t pseudo_frame(struct source *src, const char *name, const char *object)
{
	uint64_t hash = 0;
	for (const char *p = object ? object : name; *p; p++)
		hash = hash_u64(hash ^ (uint8_t)*p);
	taddr_t pc = PSEUDO_BASE | hash >> 8;
	struct calltree *tree = profile_calltree(src->profile);
	uint32_t frame = calltree_find_frame(tree, pc);
	if (frame)
		return frame;
	struct symbol_frame sf = {.name = name};
	const struct symbol sym = {.object = object, .frame = &sf, .count = 1};
	symbols_define(src->session->run->symbols, 0, pc, &sym);
	return calltree_get_frame(tree, pc, 0);
}

/* What was mapped, as a frame below @node. */
static uint32_t add_map_kind(struct source *src, uint32_t node, const struct heap_event *he)
{
	struct calltree *tree = profile_calltree(src->profile);
	char link[64], name[4200];
	if (he->function != FUNCTION_MMAP && he->function != FUNCTION_MREMAP)
		return node;
	if (he->function == FUNCTION_MREMAP)
		return calltree_get_child(tree, node, pseudo_frame(src, "[moved or grown]", NULL));
	if (he->map_flags == 0)
		return calltree_get_child(tree, node, pseudo_frame(src, "[shared memory]", NULL));
	if (he->map_fd < 0) {
		bool is_stack = he->map_flags & (MAP_STACK | MAP_GROWSDOWN);
		return calltree_get_child(
			tree, node, pseudo_frame(src, is_stack ? "[stack]" : "[anonymous]", NULL));
	}
	snprintf(link, sizeof(link), "fd/%d", he->map_fd);
	_cleanup_free_ char *path = proc_read_link((pid_t)he->thread, link);
	const char *base = path ? strrchr(path, '/') : NULL;
	const char *shown = base && base[1] ? base + 1 : path;
	snprintf(name, sizeof(name), "[file %s]", shown ? shown : "???");
	return calltree_get_child(tree, node, pseudo_frame(src, name, path));
}

/* -- events -- */

/*
 * The node of an event's stack. Frame 0 is where the
 * thread is, and is kept as it is (massif.md 1.0.5).
 */
static uint32_t whole_node(struct source *src, const struct heap_event *he)
{
	struct calltree *tree = profile_calltree(src->profile);
	if (!he->stack)
		return calltree_get_child(tree, 0, calltree_get_frame(tree, 0, 0));
	return session_stack_node(src->session, src->profile, he->stack, he->kind != HEAP_FAULT);
}

/* A brk's range in whole pages: those that are new, or not needed any more. */
static void to_pages(struct event *ev)
{
	taddr_t end = ROUND_UP(ev->addr + ev->size, (taddr_t)PAGE_SIZE_MIN);
	ev->addr = ROUND_UP(ev->addr, (taddr_t)PAGE_SIZE_MIN);
	ev->size = end - ev->addr;
}

/* --pages-as-heap: @ev is not yet of any tree. */
static void pages_event(struct source *src, const struct heap_event *he, struct event ev)
{
	struct session *s = src->session;
	if (he->function == FUNCTION_BRK)
		to_pages(&ev);
	if (ev.size == 0)
		return;
	bool needs_unmapper = s->flows && flows_is_full(s->flows);
	if (he->kind == HEAP_MAP || needs_unmapper)
		ev.node = whole_node(src, he);
	if (s->events)
		events_writer_event(s->events, profile_calltree(src->profile), &ev);
	if (s->flows)
		flows_event(s->flows, &ev);
	profile_event(src->profile, &ev);
}

void sources_event(struct session *s, const struct heap_event *he)
{
	static const uint8_t kinds[] = {
		[HEAP_MAP] = EVENT_MAP, [HEAP_UNMAP] = EVENT_UNMAP, [HEAP_FAULT] = EVENT_COUNT,
	};
	enum source_kind kind = he->kind == HEAP_FAULT ? SOURCE_FAULTS :
				he->function == FUNCTION_BRK ? SOURCE_BRK : SOURCE_MMAP;
	struct source *src = &s->source[kind];
	struct event ev = {
		.time_ns = he->time_ns,
		.thread = he->thread,
		.kind = kinds[he->kind],
		.function = he->function,
		.addr = he->addr,
		.size = he->size,
	};
	if (s->run->options->pages_as_heap && he->kind != HEAP_FAULT)
		pages_event(&s->source[SOURCE_HEAP], he, ev);
	if (!src->is_traced || (he->kind == HEAP_MAP && !he->stack))
		return;
	if (he->kind != HEAP_UNMAP)
		ev.node = whole_node(src, he);
	if (kind == SOURCE_MMAP && he->kind == HEAP_MAP)
		ev.node = add_map_kind(src, ev.node, he);
	if (kind == SOURCE_FAULTS && he->function == FUNCTION_MAJOR_FAULT)
		ev.node = calltree_get_child(profile_calltree(src->profile), ev.node,
					     pseudo_frame(src, "[major fault]", NULL));
	profile_event(src->profile, &ev);
}

/* -- life -- */

void sources_init(struct session *s, const struct profile_options *options, uint64_t start_ns)
{
	uint32_t trace = s->run->options->trace;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		struct source *src = &s->source[k];
		*src = (struct source){.session = s, .kind = k, .is_traced = trace & 1u << k};
		if (k == SOURCE_HEAP) {
			src->is_traced |= s->run->options->pages_as_heap;
			src->profile = s->profile;
		} else if (src->is_traced) {
			struct profile_options po = *options;
			po.heap_admin = 0;
			po.granule = k == SOURCE_BRK ? 1 : 0;
			po.is_ignored_ctx = src;
			/* looking for names takes long, and a ring of faults fills meanwhile */
			if (!filter_has_ignore_fns(s->run->filter))
				po.is_ignored = NULL;
			src->profile = profile_new(&po, start_ns);
		}
	}
}

void sources_fork(struct session *child)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		struct source *src = &child->source[k];
		src->session = child;
		if (k == SOURCE_HEAP) {
			src->profile = child->profile;
		} else if (src->profile) {
			src->profile = profile_clone(src->profile);
			profile_set_ctx(src->profile, src, child);
			profile_set_process(src->profile, child->pid);
		}
	}
}

void sources_deinit(struct session *s)
{
	for (int k = SOURCE_HEAP + 1; k < SOURCE_COUNT; k++)
		profile_free(s->source[k].profile);
}

/* Every mapping that is there already is one event, in address order, of the pseudo frame 0x0. */
static void add_initial_mappings(struct session *s)
{
	struct maps maps;
	if (maps_read(s->space->reader, &maps) != 0)
		return;
	for (size_t i = 0; i < maps.list.count; i++) {
		const struct map *m = &maps.list.data[i];
		struct heap_event he = {.time_ns = s->start_ns, .thread = s->pid, .kind = HEAP_MAP,
					.addr = m->start, .size = m->end - m->start};
		if (m->end - 1 <= USER_END)
			sources_event(s, &he);
	}
	maps_deinit(&maps);
}

void sources_start(struct session *s)
{
	if (s->run->options->pages_as_heap && s->space)
		add_initial_mappings(s);
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			profile_start(s->source[k].profile, s->start_ns);
	}
}

void sources_forget(struct session *s, taddr_t start, taddr_t end)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			calltree_forget(profile_calltree(s->source[k].profile), start, end);
	}
}

static void print_summary(const struct source *src, const char *path)
{
	const struct profile_totals *p = profile_totals(src->profile);
	bool is_pages = src->kind == SOURCE_FAULTS;
	if (is_pages)
		log_info("  %-12s %llu pages (%llu bytes)", source_info[src->kind].name,
			 (unsigned long long)p->allocations,
			 (unsigned long long)p->allocated_bytes);
	else
		log_info("  %-12s %llu bytes came, %llu are there; at most %llu",
			 source_info[src->kind].name, (unsigned long long)p->allocated_bytes,
			 (unsigned long long)p->live_bytes, (unsigned long long)p->peak_bytes);
	bool is_user_only;
	uint64_t lost = is_pages ? target_lost_faults(src->session->run->target, &is_user_only) : 0;
	if (lost > 0)
		log_warn("%llu page faults were lost: they came faster than they could be read",
			 (unsigned long long)lost);
	if (is_pages && is_user_only)
		log_info("  not seen     page faults inside system calls: "
			 "kernel.perf_event_paranoid is above 1");
	if (path)
		log_info("  written to   %s; read it with: ptmem-report %s", path, path);
}

void sources_finish(struct session *s, uint64_t now_ns)
{
	bool is_silent = session_is_silent(s);
	if (!s->source[SOURCE_HEAP].is_traced && !is_silent)
		log_info("process %u, %s", s->pid, s->command);
	for (int k = SOURCE_HEAP + 1; k < SOURCE_COUNT; k++) {
		struct source *src = &s->source[k];
		char suffix[16], *path = NULL;
		struct report r;
		if (!src->is_traced)
			continue;
		profile_finish(src->profile, now_ns);
		source_fill_report(src, &r);
		snprintf(suffix, sizeof(suffix), ".%s", source_info[k].name);
		int rc = session_put_massif(s, &r, suffix, &path);
		if (!is_silent)
			print_summary(src, rc == 0 ? path : NULL);
		free(path);
	}
}
