/*
 * Converts mappings and page faults to events of profiles.
 *
 *	HEAP_MAP, HEAP_UNMAP   brk or mmap, by the function; all of them belong to the
 *	                       heap with --pages-as-heap
 *	HEAP_FAULT             faults
 */
#include "session/memory_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "session/session.h"
#include "session/session_output.h"
#include "session/summary.h"
#include "tracee/os/maps.h"

/* the last address of a program; [vsyscall] is above */
#define USER_END ((UINT64_C(1) << ARCH_ADDRESS_BITS) - 1)

/* -- names -- */

static uint32_t pseudo_frame(struct source *src, const char *name, const char *object)
{
	return pseudo_frame_get(src->session->run->symbols, profile_calltree(src->profile), name,
				object);
}

/* The mapped object, as a frame below @node. */
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

/* The node of an event's stack. Frame 0 is the thread's pc, unchanged (doc/massif.md 1). */
static uint32_t whole_node(struct source *src, const struct heap_event *he)
{
	struct calltree *tree = profile_calltree(src->profile);
	if (!he->stack)
		return calltree_get_child(tree, 0, calltree_get_frame(tree, 0, 0));
	return session_stack_node(src->session, src->profile, he->stack);
}

/* --pages-as-heap: @ev has no node yet. */
static void pages_event(struct source *src, const struct heap_event *he, const struct event *exact)
{
	struct session *s = src->session;
	struct event ev = *exact;
	if (he->function == FUNCTION_BRK) { /* the whole pages that are added or removed */
		taddr_t end = ROUND_UP(ev.addr + ev.size, (taddr_t)PAGE_SIZE_MIN);

		ev.addr = ROUND_UP(ev.addr, (taddr_t)PAGE_SIZE_MIN);
		ev.size = end - ev.addr;
	}
	if (ev.size == 0)
		return;
	bool needs_unmapper = s->heap.flows && flows_is_full(s->heap.flows);
	if (he->kind == HEAP_MAP || needs_unmapper)
		ev.node = whole_node(src, he);
	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(src->profile), &ev);
	if (s->heap.flows)
		flows_event(s->heap.flows, &ev);
	profile_event(src->profile, &ev);
}

void memory_sources_event(struct session *s, const struct heap_event *he, struct event *ev)
{
	enum memory_source_kind kind = he->kind == HEAP_FAULT ? SOURCE_FAULTS :
				he->function == FUNCTION_BRK ? SOURCE_BRK : SOURCE_MMAP;
	struct source *src = &s->source[kind];
	if (s->run->options->profile.pages_as_heap && he->kind != HEAP_FAULT)
		pages_event(&s->source[SOURCE_HEAP], he, ev);
	if (!src->is_traced || (he->kind == HEAP_MAP && !he->stack))
		return;
	if (he->kind != HEAP_UNMAP)
		ev->node = whole_node(src, he);
	if (kind == SOURCE_MMAP && he->kind == HEAP_MAP)
		ev->node = add_map_kind(src, ev->node, he);
	if (kind == SOURCE_FAULTS && he->function == FUNCTION_MAJOR_FAULT)
		ev->node = calltree_get_child(profile_calltree(src->profile), ev->node,
					      pseudo_frame(src, "[major fault]", NULL));
	profile_event(src->profile, ev);
}

/* -- life -- */

void memory_sources_init(struct session *s, const struct profile_options *options,
			 uint64_t start_ns)
{
	uint32_t trace = s->run->options->tracing.sources;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		struct source *src = &s->source[k];
		*src = (struct source){.session = s, .kind = k, .is_traced = trace & 1u << k};
		if (k == SOURCE_HEAP) {
			src->is_traced |= s->run->options->profile.pages_as_heap;
			src->profile = s->heap.profile;
		} else if (src->is_traced) {
			struct profile_options po = *options;
			po.sample_interval = 0; /* mappings are exact */
			po.heap_admin = 0;
			po.keep_history = po.keep_peak = false;
			po.groups = 0;
			po.granule = k == SOURCE_BRK ? 1 : 0;
			po.is_ignored_ctx = src;
			/* symbol lookups take long, and the ring of faults fills up meanwhile */
			if (!filter_has_ignore_fns(s->run->filter))
				po.is_ignored = NULL;
			src->profile = profile_new(&po, start_ns);
		}
	}
}

void memory_sources_fork(struct session *child)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		struct source *src = &child->source[k];
		src->session = child;
		memset(&src->names, 0, sizeof(src->names));
		if (k == SOURCE_HEAP) {
			src->profile = child->heap.profile;
		} else if (src->profile) {
			src->profile = profile_clone(src->profile);
			profile_set_ctx(src->profile, src, child);
			profile_set_process(src->profile, child->process.pid);
		}
	}
}

void memory_sources_deinit(struct session *s)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		vec_deinit(&s->source[k].names);
		if (k != SOURCE_HEAP)
			profile_free(s->source[k].profile);
	}
}

/* Each existing mapping is one event, in address order, of the pseudo frame 0x0. */
static void add_initial_mappings(struct session *s)
{
	struct maps maps;
	if (maps_read(s->space->processes.reader, &maps) != 0)
		return;
	for (size_t i = 0; i < maps.list.count; i++) {
		const struct map *m = &maps.list.data[i];
		const struct heap_event he = {.kind = HEAP_MAP};
		const struct event ev = {.time_ns = s->process.start_ns, .thread = s->process.pid,
					 .kind = EVENT_MAP, .addr = m->start,
					 .size = m->end - m->start};
		if (m->end - 1 <= USER_END)
			pages_event(&s->source[SOURCE_HEAP], &he, &ev);
	}
	maps_deinit(&maps);
}

void memory_sources_start(struct session *s)
{
	if (s->run->options->profile.pages_as_heap && s->space)
		add_initial_mappings(s);
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			profile_start(s->source[k].profile, s->process.start_ns);
	}
}

void memory_sources_forget(struct session *s, taddr_t start, taddr_t end)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			calltree_forget(profile_calltree(s->source[k].profile), start, end);
	}
}

void memory_sources_recall(struct session *s, uint32_t module)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			calltree_recall(profile_calltree(s->source[k].profile), module);
	}
}

/* Why some stacks of page faults are incomplete, and which faults are missing. */
static void print_limits(const struct session *s)
{
	struct fault_report r;
	char n[AMOUNT_SIZE];
	target_fault_report(s->run->target, &r);
	if (s->stacks.counts.truncated > 0)
		log_info("  [truncated]  %s stack%s incomplete: deeper than %u KiB, or not in "
			 "memory at the fault",
			 amount_commas(s->stacks.counts.truncated, n),
			 s->stacks.counts.truncated == 1 ? " is" : "s are",
			 (r.stack_copy + 1023) / 1024);
	if (r.is_user_only)
		log_info("  not seen     page faults inside system calls: "
			 "kernel.perf_event_paranoid is above 1");
}

/* The sum of a source's events; touched pages have no such line. */
static const char *const came_by[SOURCE_COUNT] = {
	[SOURCE_BRK] = "grown", [SOURCE_MMAP] = "mapped",
};

static void print_largest(const struct report *r)
{
	struct largest largest;

	if (!log_is_on(LOG_INFO))
		return;
	largest_find(r, &largest);
	largest_print(&largest);
	largest_deinit(&largest);
}

static void print_summary(const struct source *src, const struct report *r, const char *path)
{
	const struct profile_totals *p = profile_totals(src->profile);
	const char *name = memory_source_info[src->kind].name;
	char n[AMOUNT_SIZE], all[AMOUNT_SIZE], bytes[AMOUNT_SIZE], live[AMOUNT_SIZE],
		peak[AMOUNT_SIZE];

	amount_bytes((double)p->allocated_bytes, all);
	amount_commas(p->allocated_bytes, bytes);
	if (src->kind == SOURCE_FAULTS) {
		log_info("  %-12s %s page%s, %s (%s bytes)", name, amount_commas(p->allocations, n),
			 plural(p->allocations), all, bytes);
		print_limits(src->session);
	} else {
		log_info("  %-12s %s (%s byte%s) %s, %s in use, at most %s", name, all, bytes,
			 plural(p->allocated_bytes), came_by[src->kind],
			 amount_bytes((double)p->live_bytes, live),
			 amount_bytes((double)p->peak_bytes, peak));
	}
	summary_print_file(path);
	print_largest(r);
}

void memory_sources_end(struct session *s, uint64_t now_ns)
{
	for (int k = SOURCE_HEAP + 1; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			profile_finish(s->source[k].profile, now_ns);
	}
}

void memory_sources_finish(struct session *s)
{
	bool is_silent = session_is_silent(s) || s->end.is_draft;
	_cleanup_free_ char *title = session_title(s);
	if (!s->source[SOURCE_HEAP].is_traced && !is_silent)
		log_info("process %u, %s", s->process.pid, title);
	for (int k = SOURCE_HEAP + 1; k < SOURCE_COUNT; k++) {
		struct source *src = &s->source[k];
		const char *path = NULL;
		struct report r;
		if (!src->is_traced)
			continue;
		memory_source_fill_report(src, &r);
		int rc = options_write_massif(s->run->options) ?
				 session_output_finish_massif(s, k, &r, &path) : -ENOENT;
		if (!is_silent)
			print_summary(src, &r, rc == 0 ? path : NULL);
	}
}

void memory_sources_print_lost(const struct run *run)
{
	struct fault_report r;
	char n[AMOUNT_SIZE];
	target_fault_report(run->target, &r);
	if (r.lost == 0)
		return;
	log_warn("%s page fault%s lost: %s", amount_commas(r.lost, n),
		 r.lost == 1 ? " was" : "s were",
		 r.was_full ? "they came faster than they could be read" :
			      "the kernel counted more than it gave records of");
	if (!r.was_full)
		return;
	if (r.is_limited)
		log_info("  a user's buffers are small (%zu KiB for each CPU): fewer are lost with "
			 "a higher kernel.perf_event_mlock_kb, or as root",
			 r.ring_size >> 10);
	else
		log_info("  fewer are lost if a CPU is free for ptmem");
}
