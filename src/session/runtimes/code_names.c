/* See code_names.h. Nothing here costs anything until an address is outside of all ELF files. */
#include "session/runtimes/code_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/frame_key.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "languages/code_name.h"
#include "languages/perf_map.h"
#include "session/session.h"
#include "tracee/pads/pads.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

#define RETRY_NS (UINT64_C(20) * 1000 * 1000)
#define TICK_NS (UINT64_C(1000) * 1000 * 1000)
#define SINGLE_CHANGES 256u /* more at a time are one */

/* A known address. */
struct code_key {
	taddr_t pc;
	uint64_t key; /* 0 = it has no name yet */
};

struct code_names {
	struct perf_maps maps;
	HASH(struct code_key) keys;   /* of addresses in the call trees, as of now */
	VEC(struct code_change) later; /* changes that have not taken effect */
	uint64_t tried_ns;            /* when the files were opened */
	uint64_t polled_ns, before_ns; /* when they were read, and the time before */
	bool is_snapshot;             /* the map is written on request: code may have changed */
	bool has_nameless;            /* a frame has no name */
	bool is_behind;               /* records from before the last reading are not read yet */
};

bool code_names_may_cover(const struct module *m)
{
	return !m || !m->file;
}

static struct code_names *get(struct session *s)
{
	if (s->code || !s->space)
		return s->code;
	struct code_names *c = s->code = xcalloc(1, sizeof(*c));
	struct root_dir *root = root_dir_of(s->space->processes.reader, NULL);

	perf_maps_init(&c->maps, s->space->processes.reader, root);
	root_dir_release(root);
	for (size_t i = 0; i < s->space->modules.count; i++) {
		const struct module *m = s->space->modules.data[i];

		code_names_note(s, m);
		c->is_snapshot |= strcmp(text_base_name(m->path), "libjvm.so") == 0;
	}
	return c;
}

void code_names_note(struct session *s, const struct module *m)
{
	if (!s->code && !strstr(m->path, "/jit-"))
		return;
	if (code_names_may_cover(m) && get(s))
		perf_maps_add_mapped(&s->code->maps, m->path);
}

/* -- changes -- */

static void forget_keys(struct code_names *c)
{
	hash_deinit(&c->keys);
}

static bool is_used(struct code_names *c, const struct code_change *change)
{
	for (size_t i = 0; hash_next(&c->keys.index, &i); i++) {
		taddr_t pc = c->keys.slot[i].pc;

		if (pc >= change->start && pc < change->end)
			return true;
	}
	return false;
}

/* Code in [@change->start, end) is another from now on. */
static void apply(struct session *s, const struct code_change *change)
{
	struct code_names *c = s->code;

	/* a call at the very end returns to the address after it */
	unwind_forget(s->stacks.unwind, change->start, change->end);
	if (!is_used(c, change))
		return;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].profile)
			calltree_forget_code(profile_calltree(s->source[k].profile), change->start,
					     change->end);
	}
	forget_keys(c);
	for (size_t i = 0; i < s->stacks.paths.count; i++)
		s->stacks.paths.data[i].count = 0;
	s->stacks.renamed++;
	if (s->space)
		pads_forget_nodes(s->space);
}

static void apply_all(struct session *s, const struct code_change *change, size_t count)
{
	struct code_change all = {.start = UINT64_MAX};

	for (size_t i = 0; i < count && count <= SINGLE_CHANGES; i++)
		apply(s, &change[i]);
	if (count <= SINGLE_CHANGES)
		return;
	for (size_t i = 0; i < count; i++) {
		all.start = MIN(all.start, change[i].start);
		all.end = MAX(all.end, change[i].end);
	}
	apply(s, &all);
}

/* Applies what took effect until @time_ns. */
static void apply_until(struct session *s, uint64_t time_ns)
{
	struct code_names *c = s->code;
	VEC(struct code_change) due = {0};
	size_t kept = 0;

	for (size_t i = 0; i < c->later.count; i++) {
		if (c->later.data[i].from <= time_ns)
			*vec_add(&due) = c->later.data[i];
		else
			c->later.data[kept++] = c->later.data[i];
	}
	c->later.count = kept;
	apply_all(s, due.data, due.count);
	vec_deinit(&due);
}

/*
 * What has taken effect: all events until then are known, unless the reader of records is behind.
 * Then their times decide.
 */
static uint64_t effective_ns(const struct session *s)
{
	const struct code_names *c = s->code;

	return c->is_behind ? s->events.last_ns : MAX(s->events.last_ns, c->before_ns);
}

/* The time for which names are wanted. Without changes to come, all have taken effect. */
static uint64_t now_of(const struct session *s)
{
	return s->code->later.count ? effective_ns(s) : UINT64_MAX;
}

/* Takes the changes that were read. */
static void take_changes(struct session *s)
{
	struct code_names *c = s->code;

	vec_append(&c->later, &c->maps.code.changes);
	c->maps.code.changes.count = 0;
	if (c->later.count)
		apply_until(s, effective_ns(s));
}

static void note_poll(struct code_names *c, uint64_t now)
{
	c->before_ns = c->polled_ns;
	c->polled_ns = now;
}

static void poll_files(struct session *s)
{
	uint64_t now = clock_now_ns();

	note_poll(s->code, now);
	if (perf_maps_poll(&s->code->maps, now) > 0)
		take_changes(s);
}

/* Opens the files, unless that was just done. */
static void open_files(struct session *s, uint64_t retry_ns)
{
	struct code_names *c = s->code;
	uint64_t now = clock_now_ns();

	if (c->tried_ns && now - c->tried_ns < retry_ns) {
		poll_files(s);
		return;
	}
	c->tried_ns = now;
	note_poll(c, now);
	if (perf_maps_refresh(&c->maps, now) > 0)
		take_changes(s);
}

void code_names_before_event(struct session *s, const struct heap_event *he)
{
	struct code_names *c = s->code;

	if (!c)
		return;
	if (he->stack && he->stack->stopped) {
		c->is_behind = false;
		poll_files(s);
		unwind_recheck(s->stacks.unwind);
	}
	if (c->later.count)
		apply_until(s, he->time_ns);
}

void code_names_before_records(struct session *s, bool is_behind)
{
	if (!s->code)
		return;
	s->code->is_behind = is_behind;
	poll_files(s);
	unwind_recheck(s->stacks.unwind);
}

bool code_names_needs_times(const struct session *s)
{
	return s->code && s->code->later.count > 0;
}

/* -- names -- */

/* The name of @e, with the line of @pc if that is known. */
static uint64_t key_of_entry(struct session *s, const struct code_entry *e, taddr_t pc)
{
	struct code_map *m = &s->code->maps.code;
	_cleanup_free_ char *text = code_map_name(m, e), *file = NULL, *dir = NULL;
	struct code_name name;
	uint32_t line = 0;

	code_name_parse(text, &name);
	if (code_map_line(m, e, pc, &file, &line)) {
		free(name.path);
		name.path = file;
		file = NULL;
		name.line = line;
	}
	const char *base = name.path ? text_base_name(name.path) : NULL;

	if (base && base > name.path + 1)
		dir = xstrndup(name.path, (size_t)(base - name.path) - 1);
	struct symbol_frame f = {
		.name = name.function, .file = base, .dir = dir, .line = name.line};
	const struct symbol sym = {.object = name.path, .frame = &f, .count = 1};
	uint64_t key = symbols_name(s->run->symbols, &sym);
	const struct events_name replayed = {
		.pc = key, .name = f.name, .file = f.file, .dir = f.dir, .line = f.line};

	if (s->events.writer)
		events_writer_name(s->events.writer, &replayed);
	code_name_deinit(&name);
	return key;
}

static uint64_t look_up(struct session *s, taddr_t pc, uint64_t time_ns)
{
	const struct code_entry *e = code_map_find(&s->code->maps.code, pc, time_ns);

	return e ? key_of_entry(s, e, pc) : 0;
}

uint64_t code_names_find(struct session *s, taddr_t pc)
{
	struct code_names *c = get(s);

	if (!c)
		return 0;
	struct code_key *known = hash_find(&c->keys, hash_u64(pc), e, e->pc == pc);

	if (known && known->key)
		return known->key;
	uint64_t key = look_up(s, pc, now_of(s));

	if (!key) {
		open_files(s, RETRY_NS);
		key = look_up(s, pc, now_of(s));
	}
	c->has_nameless |= !key;
	known = hash_find(&c->keys, hash_u64(pc), e, e->pc == pc);
	if (!known)
		known = hash_add(&c->keys, hash_u64(pc));
	*known = (struct code_key){pc, key};
	return key;
}

bool code_names_are_published(const struct session *s)
{
	return s->code && s->code->maps.code.entries.count > 0;
}

bool code_names_begin(struct session *s, taddr_t pc, const char *start)
{
	const struct code_entry *e =
		s->code ? code_map_find(&s->code->maps.code, pc, now_of(s)) : NULL;
	_cleanup_free_ char *text = e ? code_map_name(&s->code->maps.code, e) : NULL;

	return text && text_begins_with(text, start);
}

bool code_names_range(struct session *s, const struct generated_place *place,
		      struct generated_code *out)
{
	struct code_names *c = get(s);
	taddr_t pc = place->pc - !place->is_exact;

	if (!c)
		return false;
	const struct code_entry *e = code_map_find(&c->maps.code, pc, now_of(s));

	if (!e) {
		open_files(s, RETRY_NS);
		e = code_map_find(&c->maps.code, pc, now_of(s));
	}
	if (!e)
		return false;
	*out = (struct generated_code){.kind = GENERATED_RANGE, .start = e->start, .end = e->end,
				       .is_fixed = !c->is_snapshot};
	return true;
}

/* -- frames without a name -- */

static uint64_t late_key(void *ctx, taddr_t pc)
{
	return look_up(ctx, pc, UINT64_MAX);
}

/* Code that was in use before its name was published. */
static void name_frames(struct session *s)
{
	struct code_names *c = s->code;
	size_t named = 0;

	if (!c->has_nameless || !c->maps.code.entries.count)
		return;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		struct source *src = &s->source[k];

		if (!src->profile)
			continue;
		named += calltree_name_frames(profile_calltree(src->profile), late_key, s);
		src->names.count = 0;
	}
	if (named)
		forget_keys(c);
	c->has_nameless = false;
}

void code_names_finish(struct session *s)
{
	if (!s->code)
		return;
	open_files(s, 0);
	name_frames(s);
}

uint64_t code_names_tick(struct run *run, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];

		if (!s->code || !s->space)
			continue;
		if (now_ns - s->code->tried_ns >= TICK_NS) {
			open_files(s, 0);
			name_frames(s);
		}
		next = MIN(next, s->code->tried_ns + TICK_NS);
	}
	return next;
}

/* -- life -- */

void code_names_fork(const struct session *parent, struct session *child)
{
	struct root_dir *root;

	child->code = NULL;
	if (!parent->code || !child->space)
		return;
	child->code = xcalloc(1, sizeof(*child->code));
	root = root_dir_of(child->space->processes.reader, NULL);
	perf_maps_fork(&child->code->maps, &parent->code->maps, child->space->processes.reader,
		       root);
	root_dir_release(root);
	child->code->has_nameless = parent->code->has_nameless;
}

void code_names_free(struct session *s)
{
	struct code_names *c = s->code;

	if (!c)
		return;
	perf_maps_deinit(&c->maps);
	hash_deinit(&c->keys);
	vec_deinit(&c->later);
	free(c);
	s->code = NULL;
}
