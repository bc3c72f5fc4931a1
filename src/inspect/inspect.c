/*
 * An inspection: its input, the memory of threads, then allocators, and the rest of each mapping.
 */
#include "inspect/inspect.h"

#include <string.h>

#include "malloc/account.h"
#include "inspect/holders.h"
#include "inspect/python_objects.h"
#include "languages/go_heap.h"
#include "malloc/glibc.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

void inspect_add_segment(struct inspect_input *in, taddr_t start, taddr_t end)
{
	const struct maps *maps = &in->resident.maps;
	struct inspect_segment s = {ROUND_DOWN(start, PAGE), ROUND_UP(end, PAGE), false};
	size_t at = vec_search(&in->segments, e, e->start < s.start);

	for (size_t i = vec_search(&maps->list, e, e->end <= s.start); i < maps->list.count; i++) {
		if (maps->list.data[i].start >= s.end)
			break;
		s.is_write |= maps->list.data[i].is_write;
	}
	*vec_insert(&in->segments, at) = s;
}

/* Whether @m has a part of the program or a library. */
static bool inspect_is_object(const struct inspect_input *in, const struct map *m)
{
	for (size_t i = 0; i < in->segments.count; i++)
		if (in->segments.data[i].start < m->end && in->segments.data[i].end > m->start)
			return true;
	return false;
}

void inspect_input_deinit(struct inspect_input *in)
{
	resident_deinit(&in->resident);
	vec_deinit(&in->threads);
	vec_deinit(&in->segments);
	vec_deinit(&in->profiler);
	vec_deinit(&in->registers);
	vec_deinit(&in->frames);
}

void inspect_add_frames(struct inspect_input *in, pid_t tid, const taddr_t *pc, const taddr_t *sp,
			size_t count)
{
	for (size_t i = 0; i < count; i++)
		*vec_add(&in->frames) =
			(struct holder_frame){.tid = tid, .start = sp[i], .pc = pc[i]};
}

/* Spans for the memory of threads: stacks and thread variables. */

/*
 * A stack is the mapping of a stack pointer, in use from there to the mapping's end, or to the
 * thread's variables, which follow it:
 *
 *	| touched | red zone | in use | thread variables, libc's descriptor of the thread |
 *	                     sp                          thread pointer
 *
 * A thread in a signal handler may have two: the handler's own, and that of the code which it
 * interrupted. One in the data of a program or library is that object's.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define RED_ZONE 128u
/* glibc's descriptor of a thread follows its thread pointer: 2304 bytes (2.28) to 2368 (2.41). */
#define THREAD_BYTES 2304u

struct used_stack {
	const struct map *map;
	taddr_t low; /* the lowest stack pointer in it */
};

/* The stacks of a thread, innermost first. */
struct used_stacks {
	struct used_stack list[1 + THREAD_INTERRUPTED];
	size_t count;
};

static void add_stack(const struct inspect_input *in, taddr_t sp, struct used_stacks *out)
{
	const struct map *m = maps_find(&in->resident.maps, sp);

	if (!m || m->is_shared || inspect_is_object(in, m) ||
	    (in->has_go && go_heap_may_have(sp)))
		return;
	for (size_t i = 0; i < out->count; i++) {
		if (out->list[i].map != m)
			continue;
		out->list[i].low = MIN(out->list[i].low, sp);
		return;
	}
	out->list[out->count++] = (struct used_stack){m, sp};
}

static bool has_map(const struct used_stacks *stacks, const struct map *m)
{
	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->list[i].map == m)
			return true;
	return false;
}

struct thread_adder {
	const struct inspect_input *in;
	struct inspect_memory *memory;
	struct spans *spans;
	struct block_holders *holders;
};

static void hold(const struct thread_adder *a, const struct holder_thread *of)
{
	if (a->in->wants_holders)
		*vec_add(&a->holders->threads) = *of;
}

static void add_variables(const struct thread_adder *a, const struct glibc_thread *th,
			  const struct used_stacks *stacks)
{
	const struct map *m = maps_find(&a->in->resident.maps, th->thread_pointer);

	if (!m)
		return;
	taddr_t start = MAX(glibc_tls_start(a->memory, th->thread_pointer), m->start);
	taddr_t end = MIN(th->thread_pointer + THREAD_BYTES, m->end);

	/* the rest of the page at the end of a stack belongs to it */
	if (has_map(stacks, m))
		end = MIN(ROUND_UP(end, PAGE), m->end);
	spans_add(a->spans, start, end, ROW_TLS);
	hold(a, &(struct holder_thread){.tid = th->tid, .tls = start, .tls_end = end});
}

static void add_parts(const struct thread_adder *a, const struct glibc_thread *th,
		      const struct used_stack *stack)
{
	const struct map *m = stack->map;
	bool has_tls = th->thread_pointer > stack->low && th->thread_pointer < m->end;
	taddr_t start = MAX(m->start, stack->low - MIN(stack->low, (taddr_t)RED_ZONE));
	taddr_t end = has_tls ? th->thread_pointer : m->end;

	spans_add(a->spans, start, end, ROW_STACK);
	spans_add(a->spans, m->start, start, ROW_STACK_BEYOND);
	hold(a, &(struct holder_thread){.tid = th->tid, .stack = start, .stack_end = end});
}

/* Adds to @s what no span covers yet; to @holders, if they are wanted, each stack. */
static void thread_spans_add(const struct inspect_input *in, struct inspect_memory *m,
			     struct spans *s, struct block_holders *holders)
{
	const struct thread_adder a = {in, m, s, holders};
	struct used_stacks stacks;

	for (size_t i = 0; i < in->threads.count; i++) {
		const struct glibc_thread *th = &in->threads.data[i];

		stacks.count = 0;
		add_stack(in, th->sp, &stacks);
		for (uint32_t k = 0; k < th->interrupted_count; k++)
			add_stack(in, th->interrupted[k], &stacks);
		add_variables(&a, th, &stacks);
		for (size_t k = 0; k < stacks.count; k++)
			add_parts(&a, th, &stacks.list[k]);
	}
}

/*
 * Spans are added in order of precedence: malloc's, ptmem's own, stacks and thread variables. The
 * rest of each mapping is classified by its name.
 */

#define MOVED_PAGES_MAX (UINT64_C(1) << 22)

struct examination {
	const struct inspect_input *in;
	struct inspect_report *out;
	struct inspect_memory memory;
	struct glibc glibc;
	struct glibc_lists lists;
	struct glibc_mmapped_list mmapped;
	struct allocator other;
	struct pymalloc python;
	struct spans spans;
	struct account account;
};

/* -- malloc's -- */

/* Parts of program and libraries in which allocators keep their variables. */
struct data_ranges {
	VEC(struct addr_range) list;
};

static void find_glibc(struct examination *n, const struct data_ranges *data)
{
	glibc_find(&n->memory, data->list.data, data->list.count, &n->glibc);
	glibc_lists_read(&n->memory, &n->glibc, n->in->threads.data, n->in->threads.count,
			 &n->lists);
	for (uint32_t i = 0; i < n->glibc.heaps.count; i++) {
		const struct glibc_heap *h = &n->glibc.heaps.data[i];

		spans_add_heap(&n->spans, h->map_start, h->end, i);
	}
}

static void add_slabs(struct examination *n, const struct slabs *p, uint32_t heap)
{
	for (size_t i = 0; i < p->outer;) {
		taddr_t start = p->list.data[i].start, end = start;

		for (; i < p->outer && p->list.data[i].start == end; i++)
			end = p->list.data[i].end;
		spans_add_heap(&n->spans, start, end, heap);
	}
}

static void pass_slab_block(void *ctx, taddr_t addr, uint64_t usable)
{
	const struct heap_input *heap = ctx;

	heap_report_block(heap, addr, usable);
}

static void find_other(struct examination *n, const struct allocator_input *in,
		       struct heap_input *heap)
{
	struct slabs_visit visit = {.fn = pass_slab_block, .ctx = heap};

	allocator_find(in, &n->other);
	slabs_visit(&n->other.slabs, &n->memory, &visit);
	n->out->other = (struct inspect_allocator){
		.name = n->other.name, .sums = visit.sums, .caches = n->other.caches,
		.broken = n->other.slabs.broken};
	add_slabs(n, &n->other.slabs, SPAN_SLABS);
}

static void find_python(struct examination *n, const struct allocator_input *in,
			const struct heap_input *heap)
{
	if (heap->only_blocks || !python_is_likely(&n->in->resident.maps))
		return;
	pymalloc_read(in, &n->spans, &n->python);
	python_report_make(&n->python, heap, &n->out->python);
	add_slabs(n, &n->python.slabs, SPAN_PYTHON);
}

static void find_data(const struct inspect_input *in, struct data_ranges *out)
{
	for (size_t i = 0; i < in->segments.count; i++) {
		const struct inspect_segment *s = &in->segments.data[i];

		if (s->is_write)
			*vec_add(&out->list) = (struct addr_range){s->start, s->end};
	}
}

static void find_allocators(struct examination *n, struct heap_input *heap)
{
	struct data_ranges data = {0};

	find_data(n->in, &data);
	const struct allocator_input in = {
		.memory = &n->memory, .data = data.list.data, .data_count = data.list.count,
		.thread = n->in->threads.data, .thread_count = n->in->threads.count};

	find_glibc(n, &data);
	find_other(n, &in, heap);
	find_python(n, &in, heap);
	vec_deinit(&data.list);
}

/* Searches what the heaps leave of @r, for blocks that extend to @end at most. */
static void search_gaps(struct examination *n, const struct addr_range *r, taddr_t end,
			bool only_first)
{
	size_t k = spans_find(&n->spans, r->start);
	taddr_t at = r->start;

	for (; at < r->end; k++) {
		const struct span *s = k < n->spans.list.count ? &n->spans.list.data[k] : NULL;
		struct addr_range gap = {at, s ? MIN(s->start, r->end) : r->end};
		taddr_t limit = s ? MIN(s->start, end) : end;

		if (gap.start < gap.end && only_first)
			glibc_mmapped_find_first(&n->memory, &n->glibc, gap, limit, &n->mmapped);
		else if (gap.start < gap.end)
			glibc_mmapped_find(&n->memory, &n->glibc, gap, limit, &n->mmapped);
		at = s ? MAX(s->end, gap.end) : r->end;
	}
}

/*
 * Searches all mappings. Each may contain blocks and other memory, since the kernel merges
 * mappings; a block may extend to the next ones, since the program may divide its mapping by
 * mprotect or madvise.
 */
static void search_mmapped(struct examination *n, bool only_first)
{
	const struct maps *maps = &n->in->resident.maps;
	taddr_t end = 0;

	n->mmapped.list.count = 0;
	n->mmapped.covered = 0;
	for (size_t i = 0; i < maps->list.count && n->glibc.arenas.count; i++) {
		const struct map *m = &maps->list.data[i];
		struct addr_range r = {m->start, m->end};

		if (!map_is_anonymous(m))
			continue;
		if (end < m->end)
			end = m->end;
		for (size_t k = i + 1; k < maps->list.count && maps->list.data[k].start == end &&
		     map_is_anonymous(&maps->list.data[k]); k++)
			end = maps->list.data[k].end;
		r.start = MAX(r.start, n->mmapped.covered);
		if (r.start < r.end)
			search_gaps(n, &r, end, only_first);
	}
}

/* Most programs have blocks only at the starts of mappings, and behind these: that is quick. */
static bool find_all_mmapped(struct examination *n)
{
	struct glibc_mmapped_list *found = &n->mmapped;

	if (n->glibc.params.is_known) {
		search_mmapped(n, true);
		if (glibc_mmapped_choose(&n->glibc, found))
			return true;
	}
	search_mmapped(n, false);
	if (glibc_mmapped_choose(&n->glibc, found) || !n->glibc.params.is_known)
		return n->glibc.params.is_known;
	found->pages_left = MOVED_PAGES_MAX;
	search_mmapped(n, false);
	return glibc_mmapped_choose(&n->glibc, found);
}

static void find_mmapped(struct examination *n, const struct heap_input *heap)
{
	struct glibc_mmapped_list *found = &n->mmapped;

	n->out->is_mmapped_complete = find_all_mmapped(n);
	for (size_t i = 0; i < found->list.count; i++) {
		const struct glibc_mmapped *b = &found->list.data[i];
		uint64_t usable = glibc_mmapped_usable(&n->glibc, b);

		spans_add(&n->spans, b->start, b->block, ROW_OWN);
		spans_add(&n->spans, b->block, b->block + usable, ROW_MMAPPED);
		spans_add(&n->spans, b->block + usable, b->end, ROW_OWN);
		n->out->mmapped_blocks++;
		n->out->mmapped_bytes += usable;
		heap_report_block(heap, b->block, usable);
	}
}

/* -- the rest of each mapping -- */

static void name_map(const struct inspect_input *in, const struct map *m, struct span *out)
{
	out->row = ROW_ANONYMOUS;
	if (*m->path == '/' || m->is_shared)
		out->row = m->is_shared && map_has_no_file(m) ? ROW_SHARED : ROW_FILE;
	else if (map_is_main_stack(m))
		out->row = ROW_STACK_BEYOND;
	else if (strncmp(m->path, "[v", 2) == 0) /* vdso, vvar, vsyscall */
		out->row = ROW_TEXT;
	out->file_row = out->row;
	if (!inspect_is_object(in, m) || m->is_shared || *m->path == '[')
		return;
	out->row = out->file_row = ROW_DATA;
	if (*m->path == '/' && !m->is_write)
		out->file_row = ROW_TEXT;
}

static void add_span(struct examination *n, const struct span *s, struct heap_input *heap)
{
	const struct addr_range part = {s->start, s->end};

	if (s->heap == SPAN_SLABS)
		slabs_account(&n->other.slabs, &n->memory, part, &n->account);
	else if (s->heap == SPAN_PYTHON)
		slabs_account(&n->python.slabs, &n->memory, part, &n->account);
	else if (s->heap == SPAN_NO_HEAP)
		account_add(&n->account, s->start, s->end, s->row, s->file_row);
	else
		heap_report_add(&n->out->heaps, heap, s->heap, &n->account);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct inspect_shared *)a)->name,
		      ((const struct inspect_shared *)b)->name);
}

static int compare_shared(const void *a, const void *b)
{
	const struct inspect_shared *x = a, *y = b;
	uint64_t left = x->bytes.resident + x->bytes.swapped;
	uint64_t right = y->bytes.resident + y->bytes.swapped;

	return left != right ? (left > right ? -1 : 1) : compare_names(a, b);
}

static bool merge_shared(struct inspect_shared *to, struct inspect_shared *from)
{
	if (compare_names(to, from) != 0)
		return false;
	inspect_bytes_add(&to->bytes, from->bytes);
	free(from->name);
	return true;
}

/* What @m has added to the row of shared memory, of which @before is known. */
static void note_shared(struct examination *n, const struct map *m, struct inspect_bytes *before)
{
	struct inspect_bytes now = n->account.row[ROW_SHARED];
	struct inspect_bytes own = {now.resident - before->resident,
				    now.swapped - before->swapped};

	if (own.resident || own.swapped)
		*vec_add(&n->out->shared) = (struct inspect_shared){xstrdup(m->path), own};
	*before = now;
}

/* Spans outside any mapping have no pages. */
static void add_all(struct examination *n, struct heap_input *heap)
{
	taddr_t start = 0; /* everything before it was added: a span may cover several mappings */
	size_t at = 0;
	struct inspect_bytes shared = {0};

	for (size_t i = 0; i < n->in->resident.maps.list.count; i++) {
		const struct map *m = &n->in->resident.maps.list.data[i];
		struct span rest = {.heap = SPAN_NO_HEAP};

		start = MAX(start, m->start);
		name_map(n->in, m, &rest);
		for (; at < n->spans.list.count && n->spans.list.data[at].start < m->end; at++) {
			const struct span *s = &n->spans.list.data[at];

			if (start < s->start)
				account_add(&n->account, start, s->start, rest.row, rest.file_row);
			if (s->end > start)
				add_span(n, s, heap);
			start = MAX(start, s->end);
		}
		if (start < m->end)
			account_add(&n->account, start, m->end, rest.row, rest.file_row);
		start = MAX(start, m->end);
		note_shared(n, m, &shared);
	}
	vec_sort(&n->out->shared, compare_names);
	vec_merge(&n->out->shared, merge_shared);
	vec_sort(&n->out->shared, compare_shared);
}

static taddr_t find_break(const struct inspect_input *in)
{
	for (size_t i = 0; i < in->resident.maps.list.count; i++)
		if (strcmp(in->resident.maps.list.data[i].path, "[heap]") == 0)
			return in->resident.maps.list.data[i].end;
	return 0;
}

static void take_results(struct examination *n)
{
	struct inspect_report *out = n->out;

	for (size_t i = 0; i < ROW_COUNT; i++) {
		out->row[i] = n->account.row[i];
		out->all.resident += out->row[i].resident;
		out->all.swapped += out->row[i].swapped;
	}
	out->params = n->glibc.params;
	out->heap_count = (uint32_t)n->glibc.heaps.count + n->glibc.lost_heaps;
	out->threads = (uint32_t)n->in->threads.count;
	out->caches = n->lists.caches;
	out->broken_lists = n->lists.broken;
	out->differing = n->in->resident.differing;
	out->bytes_read = n->memory.bytes + n->memory.ahead.bytes;
	for (size_t i = 0; !inspect_is_consistent(out) && i < out->heaps.arenas.count; i++)
		out->heaps.arenas.data[i].trim = (struct inspect_bytes){0};
}

static void start_types(struct examination *n)
{
	block_types_init(&n->out->types, &n->memory);
	n->out->types.wants_python = n->in->wants_python && n->in->wants_holders;
	for (size_t i = 0; i < n->in->segments.count; i++) {
		const struct inspect_segment *s = &n->in->segments.data[i];

		block_types_add_object(&n->out->types, s->start, s->end);
	}
}

static int compare_frames(const void *a, const void *b)
{
	const struct holder_frame *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The spans become the holders'. */
static void scan_for_holders(struct examination *n)
{
	struct block_holders *h = &n->out->holders;

	if (n->out->types.wants_python)
		python_objects_find(&n->memory, &n->out->types, h);
	for (size_t i = 0; i < n->in->segments.count; i++) {
		const struct inspect_segment *s = &n->in->segments.data[i];

		if (s->is_write)
			*vec_add(&h->objects) = (struct addr_range){s->start, s->end};
	}
	for (size_t i = 0; i < n->glibc.arenas.count; i++) {
		const struct glibc_arena *a = &n->glibc.arenas.data[i];

		if (a->is_main)
			*vec_add(&h->own) =
				(struct addr_range){a->addr, a->addr + a->size};
	}
	for (uint32_t i = 0; i < n->out->types.list.count; i++)
		if (n->out->types.list.data[i].header)
			block_holders_set_header(h, i, n->out->types.list.data[i].header);
	vec_append(&h->registers, &n->in->registers);
	vec_append(&h->frames, &n->in->frames);
	vec_sort(&h->frames, compare_frames);
	h->spans = n->spans;
	n->spans = (struct spans){0};
	block_holders_scan(h, &n->in->resident, n->in->source.read, n->in->source.ctx);
}

void inspect_run(const struct inspect_input *in, struct inspect_report *out)
{
	struct examination n = {.in = in, .out = out};
	struct heap_input heap = {.memory = &n.memory, .glibc = &n.glibc, .lists = &n.lists,
				  .types = in->wants_types ? &out->types : NULL,
				  .touched = in->touched,
				  .paths = in->paths,
				  .holders = in->wants_holders ? &out->holders : NULL,
				  .program_break = find_break(in), .block = in->block,
				  .python_block = in->python_block, .block_ctx = in->block_ctx,
				  .only_blocks = in->only_blocks};

	*out = (struct inspect_report){0};
	memory_init(&n.memory, &in->resident, &in->source);
	account_init(&n.account, &in->resident);
	if (in->wants_types)
		start_types(&n);
	if (in->wants_holders)
		block_holders_init(&out->holders);
	find_allocators(&n, &heap);
	find_mmapped(&n, &heap);
	heap_report_init(&out->heaps, &n.glibc, &n.python, &n.memory);
	if (in->only_blocks) {
		for (size_t i = 0; i < n.glibc.heaps.count; i++)
			heap_report_add(&out->heaps, &heap, i, &n.account);
	} else {
		for (size_t i = 0; i < in->profiler.count; i++)
			spans_add(&n.spans, in->profiler.data[i].start,
				  in->profiler.data[i].end, ROW_PROFILER);
		thread_spans_add(in, &n.memory, &n.spans, &out->holders);
		add_all(&n, &heap);
	}
	heap_report_finish(&out->heaps, &out->types);
	take_results(&n);
	if (in->wants_holders)
		scan_for_holders(&n);
	block_types_finish(&out->types);
	spans_deinit(&n.spans);
	vec_deinit(&n.mmapped.list);
	pymalloc_deinit(&n.python);
	allocator_deinit(&n.other);
	glibc_lists_deinit(&n.lists);
	glibc_deinit(&n.glibc);
	memory_deinit(&n.memory);
}

struct spare_search {
	const struct slabs *slabs;
	struct inspect_spare *out;
};

static void add_spare(void *ctx, taddr_t start, taddr_t end, enum inspect_row row)
{
	const struct spare_search *s = ctx;
	size_t count = s->out->list.count;

	if (row == s->slabs->row_live || row == ROW_UNKNOWN_HEAP)
		return;
	if (count > 0 && s->out->list.data[count - 1].end == start)
		s->out->list.data[count - 1].end = end;
	else
		*vec_add(&s->out->list) = (struct addr_range){start, end};
}

void inspect_find_spare(const struct inspect_input *in, struct inspect_spare *out)
{
	struct inspect_memory memory;
	struct allocator other;
	struct data_ranges data = {0};
	struct spare_search search = {&other.slabs, out};

	*out = (struct inspect_spare){0};
	memory_init(&memory, &in->resident, &in->source);
	find_data(in, &data);
	allocator_find(&(struct allocator_input){.memory = &memory, .data = data.list.data,
						 .data_count = data.list.count,
						 .thread = in->threads.data,
						 .thread_count = in->threads.count},
		       &other);
	if (other.name && other.slabs.broken == 0)
		slabs_each_part(&other.slabs, &memory, (struct addr_range){0, UINT64_MAX},
				add_spare, &search);
	allocator_deinit(&other);
	vec_deinit(&data.list);
	memory_deinit(&memory);
}

void inspect_report_deinit(struct inspect_report *r)
{
	heap_report_deinit(&r->heaps);
	block_types_deinit(&r->types);
	block_holders_deinit(&r->holders);
	python_report_deinit(&r->python);
	vec_release(&r->shared, e, free(e->name));
}

bool inspect_is_consistent(const struct inspect_report *r)
{
	return r->broken_lists == 0 && r->heaps.unlisted == 0 &&
	       r->heaps.broken_heaps == 0 && r->other.broken == 0;
}
