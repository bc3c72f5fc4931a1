/*
 * Reports live blocks and leaks, with the chains of blocks from named roots that hold them. Roots
 * are named by objects' segments, stacks and thread-local memory by registers.
 */
#include "session/inspect/leak_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "output/brief.h"
#include "output/call_sites.h"
#include "output/leaks.h"
#include "output/report.h"
#include "session/inspect/copy_ahead.h"
#include "session/inspect/final_scan.h"
#include "session/inspect/malloc_module.h"
#include "session/record/recording_run.h"
#include "session/record/recording_values.h"
#include "session/out.h"
#include "session/session.h"
#include "symbols/code_owner.h"
#include "symbols/demangle.h"
#include "symbols/symtab.h"
#include "tracee/control/roots.h"
#include "tracee/state/module.h"

struct final_scan;

/* What most likely owns a block first: what runs through a stack is often borrowed. */
enum root_place { ROOT_VARIABLE, ROOT_THREAD_LOCAL, ROOT_STACK, ROOT_OTHER };

struct root_places {
	const struct roots *roots;
	VEC(struct root_range) objects; /* segments of the program and its libraries; ascending */
};

/* Whole pages are mapped: the first may begin before the segment. */
static void add_object(struct root_places *p, const struct module *m)
{
	for (size_t i = 0; m->file && !m->is_vdso && i < m->file->segment_count; i++) {
		const struct elf_segment *g = &m->file->segment[i];
		taddr_t start = m->bias + g->vaddr;

		*vec_add(&p->objects) = (struct root_range){ROUND_DOWN(start, PAGE_SIZE_MIN),
							    start + g->memsz};
	}
}

/* @scan, which has wants_holders, outlives @p. */
static void root_places_init(struct root_places *p, const struct final_scan *scan)
{
	*p = (struct root_places){.roots = scan->roots};
	for (size_t i = 0; i < scan->modules.list.count; i++)
		add_object(p, scan->modules.list.data[i]);
	vec_sort(&p->objects, taddr_compare);
}

static bool is_within(const struct root_range *range, taddr_t addr)
{
	return addr >= range->start && addr < range->end;
}

/*
 * The nearest stack pointer below @addr in its memory, or its red zone, says whose stack it is in.
 * Without one, it is in the memory of a thread that has its descriptor there: the thread's
 * variables.
 */
static enum root_place find_thread(const struct roots *r, taddr_t addr, pid_t *tid_out)
{
	const struct root_range *range = vec_find(&r->memory, addr);
	const struct root_thread *owner = NULL, *descriptor = NULL;

	for (size_t i = 0; range && i < r->threads.count; i++) {
		const struct root_thread *th = &r->threads.data[i];

		if (is_within(range, th->sp) && th->sp <= addr + arch_native->red_zone &&
		    (!owner || th->sp > owner->sp))
			owner = th;
		if (is_within(range, th->thread_pointer))
			descriptor = th;
	}
	bool is_on_stack = owner && !(owner == descriptor && addr >= owner->thread_pointer);
	const struct root_thread *th = is_on_stack ? owner : descriptor;

	*tid_out = th ? th->tid : 0;
	return is_on_stack ? ROOT_STACK : th ? ROOT_THREAD_LOCAL : ROOT_OTHER;
}

/* *tid_out: the thread whose stack or memory it is; else 0. */
static enum root_place root_places_find(const struct root_places *p, taddr_t addr, pid_t *tid_out)
{
	size_t i = vec_search(&p->objects, e, e->start <= addr);

	*tid_out = 0;
	if (i > 0 && is_within(&p->objects.data[i - 1], addr))
		return ROOT_VARIABLE;
	return find_thread(p->roots, addr, tid_out);
}

/* What holds the blocks of a leak check: from roots, which get names, along the blocks. */

struct final_scan;
struct root_places;

/*
 * Each block has one holder, so blocks form trees below the roots. A block's chain is its holder's
 * chain and the holder's call site.
 */

struct chain_search {
	const struct report *report;
	const struct final_scan *scan;
	const struct root_places *places;
	struct leak_holders *out;
	struct data_symbols *symbols;
	struct shown_stack stack;
	uint32_t *chain;       /* by block; 0 = not known yet */
	VEC(uint32_t) label;   /* by leaf: text + 1 of its call site; 0 = not known yet */
	VEC(uint32_t) way;     /* scratch: blocks from one to a known chain */
};

/* -- roots -- */

/* "variable 'v' in libx.so", "data of libx.so", or NULL. */
static char *variable_name(struct chain_search *x, taddr_t addr)
{
	uint64_t vaddr, offset;
	const struct module *m = held_modules_find(&x->scan->modules, addr, &vaddr);

	if (!m)
		return NULL;
	const char *object = text_base_name(m->path);
	const char *symbol = data_symbols_find(x->symbols, m->file, vaddr, &offset);

	if (!symbol)
		return xasprintf("data of %s", object);
	_cleanup_free_ char *plain = demangle(symbol);

	return xasprintf("variable '%s' in %s", plain ? plain : symbol, object);
}

static char *thread_name(const struct root_places *places, taddr_t addr)
{
	pid_t tid;
	enum root_place place = root_places_find(places, addr, &tid);

	if (place == ROOT_STACK)
		return xasprintf("stack of thread %d", (int)tid);
	return place == ROOT_THREAD_LOCAL ?
		       xasprintf("thread-local memory of thread %d", (int)tid) : NULL;
}

static char *root_name(struct chain_search *x, enum leakcheck_holder kind, taddr_t addr)
{
	char *name;

	if (kind == LEAKCHECK_HELD_BY_REGISTER)
		return xstrdup("a register");
	name = variable_name(x, addr);
	if (!name)
		name = thread_name(x->places, addr);
	return name ? name : xstrdup("other memory");
}

/* -- blocks -- */

/* The text of the call site of @leaf. */
static uint32_t label_of(struct chain_search *x, uint32_t leaf)
{
	while (x->label.count <= leaf)
		*vec_add(&x->label) = 0;
	if (x->label.data[leaf])
		return x->label.data[leaf] - 1;
	bool is_shown = shown_stack_fill(&x->stack, profile_leaf(x->report->profile, leaf)->node);
	_cleanup_free_ char *text =
		is_shown ? call_site_text(x->report, call_site_find(&x->stack)) :
			   xstrdup("[ignored]");
	uint32_t label = leak_holders_text(x->out, text);

	x->label.data[leaf] = label + 1;
	return label;
}

/* The chain of @block, whose holder's chain is known if it is a block. */
static uint32_t make_chain(struct chain_search *x, uint32_t block)
{
	const struct leakcheck *c = &x->scan->check;
	uint64_t value;
	enum leakcheck_holder kind = leakcheck_holder(c, block, &value);

	if (kind == LEAKCHECK_HELD_BY_BLOCK)
		return leak_holders_link(x->out, x->chain[value],
					 label_of(x, c->blocks.data[value].leaf));
	_cleanup_free_ char *name = root_name(x, kind, value);

	return leak_holders_link(x->out, 0, leak_holders_text(x->out, name));
}

/* Holders were reached before what they hold, so the way ends. */
static uint32_t find_chain(struct chain_search *x, uint32_t block)
{
	const struct leakcheck *c = &x->scan->check;

	x->way.count = 0;
	for (uint64_t at = block; !x->chain[at];) {
		*vec_add(&x->way) = (uint32_t)at;
		if (leakcheck_holder(c, (uint32_t)at, &at) != LEAKCHECK_HELD_BY_BLOCK)
			break;
	}
	while (x->way.count > 0) {
		uint32_t at = x->way.data[--x->way.count];

		x->chain[at] = make_chain(x, at);
	}
	return x->chain[block];
}

/*
 * The chains of all blocks of @scan, which has wants_holders and was run, that have a site: @site,
 * by block. The caller deinits and frees the result.
 */
static struct leak_holders *holder_chains_find(const struct report *r,
					       const struct final_scan *scan,
					       const struct root_places *places,
					       const uint32_t *site)
{
	const struct leakcheck *c = &scan->check;
	struct chain_search x = {
		.report = r, .scan = scan, .places = places, .stack = {.report = r}};
	uint64_t value;

	x.out = xcalloc(1, sizeof(*x.out));
	leak_holders_init(x.out);
	x.symbols = data_symbols_new();
	x.chain = xcalloc(c->blocks.count + 1, sizeof(*x.chain));
	for (uint32_t i = 0; i < c->blocks.count; i++)
		if (site[i] != LEAK_NO_SITE &&
		    leakcheck_holder(c, i, &value) != LEAKCHECK_HELD_BY_NOTHING)
			leak_holders_add(x.out, site[i], find_chain(&x, i), c->blocks.data[i].size);
	leak_holders_sort(x.out);
	data_symbols_free(x.symbols);
	shown_stack_deinit(&x.stack);
	vec_deinit(&x.label);
	vec_deinit(&x.way);
	free(x.chain);
	return x.out;
}

/*
 * Which blocks are live (--leaks), and which of them no pointer reaches (--leak-check): at the end
 * of a process, or while it runs.
 */

#define SITES_ON_STDERR 50
#define SHOW_ALL_KINDS (1u << 4) /* --show-leak-kinds=all: the choice behind the kinds */

static enum leak_kind kind_of(const struct leakcheck *c, size_t block)
{
	static const uint8_t kinds[] = {
		[LEAKCHECK_DEFINITE] = LEAK_DEFINITE, [LEAKCHECK_INDIRECT] = LEAK_INDIRECT,
		[LEAKCHECK_POSSIBLE] = LEAK_POSSIBLE, [LEAKCHECK_REACHABLE] = LEAK_REACHABLE,
	};

	return (enum leak_kind)kinds[c->state[block]];
}

/* Whether an allocator made a block with the stack @leaf for itself: by its caller, or its type. */
static bool is_allocators(const struct session *s, uint32_t leaf)
{
	const struct calltree *tree = profile_calltree(s->heap.profile);
	uint32_t node = profile_leaf(s->heap.profile, leaf)->node;
	uint32_t frame = calltree_node_frame(tree, node);
	uint32_t caller = calltree_node_frame(tree, calltree_parent(tree, node));

	for (size_t i = 0; i < s->heap.own_types; i++)
		if (s->heap.own_type[i] == caller)
			return true;
	const struct module *m =
		frame ? run_module(s->run, calltree_frame(tree, frame)->module) : NULL;

	return m && standard_malloc(m->path);
}

static struct block as_block(const struct leakcheck_block *b)
{
	return (struct block){.addr = b->addr, .size = b->size, .leaf = b->leaf,
			      .time_us = b->time * UINT64_C(1000)};
}

static struct block block_of(const struct leakcheck *c, size_t i)
{
	return as_block(&c->blocks.data[i]);
}

/* @site receives the site of each block. */
static void add_checked(struct leaks *l, const struct leakcheck *c, uint32_t *site)
{
	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct block block = block_of(c, i);

		site[i] = LEAK_NO_SITE;
		if (c->state[i] != LEAKCHECK_INDIRECT)
			site[i] = leaks_add(l, &block, kind_of(c, i));
	}
	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct block block = block_of(c, i), leader = block_of(c, c->leader[i]);

		if (c->state[i] == LEAKCHECK_INDIRECT)
			leaks_add_follower(l, &block, &leader);
	}
	for (size_t i = 0; i < c->outer.count; i++) {
		const struct block block = as_block(&c->outer.data[i]);

		leaks_add_outer(l, &block);
	}
}

/*
 * The kind of blocks for a leak check: the code that allocated them. In C++ that is an allocator's
 * function for one type.
 */
static uint32_t leaf_kind(void *report, uint32_t leaf)
{
	const struct report *r = report;

	return calltree_node_frame(profile_calltree(r->profile),
				   profile_leaf(r->profile, leaf)->node);
}

/* Whether code that allocates, or a function inlined in it, does so for strings alone. */
static bool is_text_kind(void *report, uint32_t frame)
{
	static const char *const functions[] = {"strdup", "__strdup", "strndup", "__strndup",
						"asprintf", "vasprintf", "__vasprintf_internal"};
	const struct report *r = report;
	const struct symbol *s = frame ? r->symbol(r->symbol_ctx, frame, SYMBOL_ALL) : NULL;

	for (uint32_t i = 0; s && i < s->count; i++) {
		const char *name = s->frame[i].name;

		if (name && strncmp(name, "std::__cxx11::basic_string<", 27) == 0)
			return true;
		for (size_t k = 0; name && k < ARRAY_SIZE(functions); k++)
			if (strcmp(name, functions[k]) == 0)
				return true;
	}
	return false;
}

static void print_to_stderr(void *ctx, const char *line)
{
	(void)ctx;
	log_print(LOG_RESULT, "%s", line);
}

static void print_to_file(void *ctx, const char *line)
{
	fprintf(ctx, "%s\n", line);
}

static char *headline(const struct session *s, const struct leaks *l)
{
	const struct options_leaks *o = &s->run->options->leaks;
	const char *why = o->older_than.seconds < 0 && o->age <= 0 ?
				  ", a tenth of the run (--older-than=0: all)" :
				  "";
	_cleanup_free_ char *younger =
		l->minimum_age ? xasprintf(", at least %.3f s old%s",
					   (double)l->minimum_age / 1e6, why) :
				 xstrdup("");

	_cleanup_free_ char *title = session_title(s);

	return xasprintf("leaks of process %u, %s: %zu site%s%s", s->process.pid, title,
			 l->sites.count, plural(l->sites.count), younger);
}

static void print_brief(const struct session *s, const struct leaks *l, FILE *file,
			enum brief_form form, size_t prefix)
{
	struct brief b = {.prefix = prefix};

	options_command(s->run->options, &b.command);
	brief_set_title(&b, headline(s, l));
	leaks_brief(l, &b);
	brief_print(file, &b, form);
	brief_deinit(&b);
}

/* To standard error. */
static void print_brief_lines(const struct session *s, const struct leaks *l)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(file);
	print_brief(s, l, file, BRIEF_TEXT, strlen("ptmem: "));
	CHECK(!fclose(file));
	log_print_lines(LOG_RESULT, "", text);
}

static void print_leaks(const struct session *s, const struct leaks *l, FILE *file)
{
	_cleanup_free_ char *head = headline(s, l);

	if (s->run->options->is_brief) {
		print_brief(s, l, file, BRIEF_TEXT, 0);
		return;
	}
	fprintf(file, "%s\n", head);
	leaks_print(l, SIZE_MAX, print_to_file, file);
}

struct leaks_file {
	const struct session *session;
	const struct leaks *leaks;
	bool is_json, is_markdown;
};

static int put_leaks_file(FILE *file, const void *ctx)
{
	const struct leaks_file *f = ctx;

	if (f->is_json)
		leaks_write_json(file, f->leaks);
	else if (f->is_markdown)
		print_brief(f->session, f->leaks, file, BRIEF_MARKDOWN, 0);
	else
		print_leaks(f->session, f->leaks, file);
	return 0;
}

static int write_leaks(const struct session *s, const struct leaks *l, const char *path)
{
	const struct leaks_file f = {s, l, text_ends_in(path, ".json"),
				     s->run->options->is_brief && text_ends_in(path, ".md")};
	const struct out_content content = {.put = put_leaks_file, .ctx = &f,
					    .end = f.is_json ? ".json" : NULL};

	return out_put(OUT_LEAKS, s->process.pid, path, &content);
}

static void print_as_info(void *ctx, const char *line)
{
	(void)ctx;
	log_info("%s", line);
}

/*
 * The result of a check is seen although its list is in a file: each process's, since the summary
 * of several processes has no such lines.
 */
static void announce_sums(const struct session *s, const struct leaks *l)
{
	_cleanup_free_ char *head = headline(s, l);

	if (!l->is_checked)
		return;
	FILE *collected = log_collect_info(NULL);

	log_info("%s", head);
	leaks_print_sums(l, print_as_info, NULL);
	log_collect_info(collected);
}

static void put_leaks(struct session *s, const struct leaks *l)
{
	const char *path;

	if (!s->run->options->leaks.out) {
		_cleanup_free_ char *head = headline(s, l);

		if (s->run->options->is_brief) {
			print_brief_lines(s, l);
			return;
		}
		print_to_stderr(NULL, head);
		leaks_print(l, SITES_ON_STDERR, print_to_stderr, NULL);
		return;
	}
	if (out_name(s, OUT_LEAKS, SOURCE_HEAP, &path) != 0)
		return;
	int rc = write_leaks(s, l, path);

	s->run->files_failed += rc != 0;
	if (rc != 0)
		return;
	out_announce(s, OUT_LEAKS, path);
	announce_sums(s, l);
}

static void announce_scan(const struct session *s, const struct final_scan *scan)
{
	char size[AMOUNT_SIZE];
	log_info("leak check of process %u: stopped for %.1f ms to read %s and %zu block%s",
		 s->process.pid, (double)scan->pause_ns / 1e6,
		 amount_bytes((double)scan->bytes, size), scan->check.blocks.count,
		 plural(scan->check.blocks.count));
	if (scan->check.scan.unreadable)
		log_warn("%llu byte%s of memory could not be read: "
			 "blocks with pointers only there appear lost",
			 (unsigned long long)scan->check.scan.unreadable,
			 plural(scan->check.scan.unreadable));
}

/*
 * The age that blocks must have, in milliseconds. What a process that runs on has just allocated is
 * mostly about to be freed, so by default it has to have lived for a tenth of the run.
 */
#define YOUNG_SHARE 10

static uint64_t minimum_age(const struct session *s, uint64_t time_ns, bool is_running)
{
	const struct options_leaks *o = &s->run->options->leaks;

	double run_us = time_ns < s->process.start_ns ?
				0 :
				(double)(time_ns - s->process.start_ns) / 1000;

	if (o->older_than.seconds >= 0)
		return (uint64_t)MIN(o->older_than.seconds * 1e6 +
				     run_us * o->older_than.percent / 100, 1e18);
	if (o->age > 0)
		return (uint64_t)(o->age * 1e6);
	return is_running ? (uint64_t)run_us / YOUNG_SHARE : 0;
}

static uint32_t rank_of_root(void *places, taddr_t addr)
{
	pid_t tid;

	_Static_assert(ROOT_OTHER < LEAKCHECK_RANKS, "each place has a rank");
	return root_places_find(places, addr, &tid);
}

static void use_scan(struct session *s, struct report *r, struct final_scan *scan,
		     struct leaks *l)
{
	struct leakcheck *c = &scan->check;
	struct root_places places = {0};

	announce_scan(s, scan);
	c->kind = leaf_kind;
	c->is_text = is_text_kind;
	c->kind_ctx = r;
	if (c->wants_holders) {
		root_places_init(&places, scan);
		c->rank = rank_of_root;
		c->rank_ctx = &places;
	}
	leakcheck_run(c);
	/* tcmalloc loses one as it starts, to which no program could do anything */
	for (size_t i = 0; i < c->blocks.count; i++)
		if (c->state[i] != LEAKCHECK_REACHABLE && is_allocators(s, c->blocks.data[i].leaf))
			c->state[i] = LEAKCHECK_REACHABLE;
	uint32_t *site = xcalloc(c->blocks.count + 1, sizeof(*site));

	add_checked(l, c, site);
	if (c->wants_holders)
		l->holders = holder_chains_find(r, scan, &places, site);
	vec_deinit(&places.objects);
	free(site);
	recording_run_leaks(s, c, l);
}

/*
 * The live blocks, with the results of the final scan if there was one; consumes these. @r must
 * outlive @l.
 */
static void find_leaks(struct session *s, struct report *r, uint64_t time_ns, bool is_running,
		       struct leaks *l)
{
	const struct options *o = s->run->options;
	struct final_scan *scan = final_scan_result(s);

	if (scan)
		time_ns = scan->time_ns;
	leaks_init(l, r, profile_block_clock(s->heap.profile, time_ns),
		   minimum_age(s, time_ns, is_running));
	l->is_checked = scan != NULL;
	l->lost = recording_calls_now(s).lost;
	l->lost_text = lost_events_text(&l->lost, s->heap.sample.interval);
	l->suppressions = s->run->suppressions;
	l->has_entries = o->leaks.gen_suppressions != 0;
	if (scan) {
		l->shown_kinds = o->leaks.shown_kinds & SHOW_ALL_KINDS ?
					 UINT32_MAX : o->leaks.shown_kinds << LEAK_DEFINITE;
		use_scan(s, r, scan, l);
	} else {
		leaks_add_all(l);
	}
	leaks_sort(l);
	final_scan_forget(s);
}

static void free_leaks(struct leaks *l)
{
	if (l->holders)
		leak_holders_deinit(l->holders);
	free(l->holders);
	leaks_deinit(l);
}

int leak_report_open(struct run *run)
{
	const struct option_strings *files = &run->options->leaks.suppressions;

	if (files->count == 0 || !run->options->leaks.check)
		return 0;
	run->suppressions = suppressions_read(files->data, files->count);
	return run->suppressions ? 0 : -EINVAL;
}

/* For limits: which leaves lost how much. */
static void note_lost(struct run *run, const struct report *r, const struct leaks *l)
{
	struct leaf_amounts lost = {.count = profile_leaf_count(r->profile)};

	lost.bytes = xcalloc((size_t)lost.count + 1, sizeof(*lost.bytes));
	for (size_t i = 0; i < l->sites.count; i++) {
		const struct leak_site *site = &l->sites.data[i];

		if ((site->kind == LEAK_DEFINITE || site->kind == LEAK_INDIRECT) &&
		    site->first_leaf <= lost.count)
			lost.bytes[site->first_leaf] += site->bytes;
	}
	limits_note_leaks(run, r, &lost);
	free(lost.bytes);
}

void leak_report_finish(struct session *s, uint64_t time_ns, bool is_running)
{
	struct report r = session_report(s);
	struct leaks l;

	if (s->run->options->leaks.check && !final_scan_result(s))
		log_warn("process %u %s: no leak check", s->process.pid,
			 s->image.has_executed ? "executed another program" :
						 "ended before its memory could be scanned");
	find_leaks(s, &r, time_ns, is_running, &l);
	s->run->lost_bytes += l.sum[LEAK_DEFINITE].bytes + l.sum[LEAK_INDIRECT].bytes;
	if (!is_running)
		note_lost(s->run, &r, &l);
	put_leaks(s, &l);
	free_leaks(&l);
}

/* -- one process, on demand -- */

struct leak_request {
	struct session *session;
	bool is_there;
};

static void scan_on_request(void *ctx, struct address_space *space)
{
	struct leak_request *q = ctx;

	if (space->sink.user != q->session)
		return;
	q->is_there = true;
	if (q->session->run->options->leaks.check)
		final_scan_run(q->session);
}

int leak_report_write(struct session *s, const char *path, FILE *file)
{
	struct run *run = s->run;
	struct leak_request q = {.session = s};
	struct leaks l;

	if (!options_report_leaks(run->options))
		return -ENOTSUP;
	if (!run->target)
		return -ESRCH;
	if (run->options->leaks.check && s->space)
		final_scan_prepare(run, s->space->id);
	target_inspect(run->target, scan_on_request, &q);
	if (!q.is_there)
		return -ESRCH; /* it has just ended */
	copy_ahead_unwatch(s);
	struct report r = session_report(s);
	find_leaks(s, &r, clock_now_ns(), true, &l);
	int rc = path ? write_leaks(s, &l, path) : 0;
	if (!path)
		print_leaks(s, &l, file);
	free_leaks(&l);
	copy_ahead_forget(s);
	return rc;
}
