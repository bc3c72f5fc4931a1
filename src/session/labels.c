/*
 * Each thread with a label has a base: the node of its labels' frames, in the order of the options.
 * Stacks are built without labels; what such a node becomes behind a base is kept.
 */
#include "session/labels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/data_value.h"
#include "graph/type_table.h"
#include "output/call_sites.h"
#include "profile/calltree.h"
#include "session/label_option.h"
#include "session/label_totals.h"
#include "session/label_variable.h"
#include "session/memory_source.h"
#include "session/runtimes/v8_stacks.h"
#include "session/session.h"
#include "tracee/calls/calls.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/thread.h"

/* -- options -- */

const char *labels_check_text(const struct options *o, const char *text)
{
	struct label_option l;
	const char *why = label_option_parse(text, &l);

	label_option_deinit(&l);
	if (why)
		return why;
	if (o->files.replay)
		return "--replay has no running program";
	if (!o->profile.heap || o->profile.pages_as_heap ||
	    !(o->tracing.sources & 1u << SOURCE_HEAP))
		return "it is about blocks of the heap: --heap=no, --pages-as-heap and --trace "
		       "without heap cannot be used with it";
	return NULL;
}

#define VARIABLES_MAX 4u

const char *labels_check(const struct options *o)
{
	unsigned variables = 0;

	for (size_t i = 0; i < o->labels.count; i++) {
		struct label_option l;

		if (!label_option_parse(o->labels.data[i], &l))
			variables += l.kind != LABEL_ARGUMENT;
		label_option_deinit(&l);
	}
	return variables > VARIABLES_MAX ? "at most four of its values can be variables" : NULL;
}

static void watch_function(struct run *run, struct label_option *l)
{
	struct custom_probe *p = custom_probes_within(&run->probes, l->object, strlen(l->object));

	p->is_label = run->has_label_functions = true;
	l->probe = p;
}

void labels_open(struct run *run)
{
	const struct option_strings *texts = &run->options->labels;
	const char *path = run->options->names.extra_debuginfo_path;
	unsigned number = 0;

	if (!texts->count)
		return;
	run->labels = xcalloc(texts->count, sizeof(*run->labels));
	run->needs_peak = true;
	run->label_dirs = path ? xasprintf("%s:/usr/lib/debug", path) : NULL;
	run->label_types = type_table_new(run->label_dirs);
	for (size_t i = 0; i < texts->count; i++) {
		struct label_option *l = &run->labels[i];

		CHECK(!label_option_parse(texts->data[i], l));
		while (strcmp(run->labels[l->first].name, l->name) != 0)
			l->first++;
		if (l->kind == LABEL_ARGUMENT)
			watch_function(run, l);
		else
			l->number = number++;
	}
	for (size_t i = 0; i < texts->count; i++)
		if (run->labels[i].kind == LABEL_ARGUMENT)
			run->labels[i].number = number < PAD_LABELS ? number++ : PAD_LABELS;
}

void labels_close(struct run *run)
{
	for (size_t i = 0; run->labels && i < run->options->labels.count; i++) {
		struct label_option *l = &run->labels[i];

		if (l->kind != LABEL_ARGUMENT && !l->is_found && run->is_first_known)
			log_warn("--label=%s: %s", l->text,
				 l->kind == LABEL_VARIABLE ?
					 "no variable of this name in the program or "
					 "its libraries" :
					 "no thread context of OpenTelemetry has been published "
					 "with this key");
		label_option_deinit(l);
	}
	type_table_free(run->label_types);
	free(run->label_dirs);
	free(run->labels);
	run->labels = NULL;
	run->label_types = NULL;
	run->label_dirs = NULL;
}

/* -- a session -- */

/* A text that an option had: its frame. */
struct label_text {
	uint32_t label;         /* the first option of its name */
	char *text;             /* owned */
	uint32_t frame;
};

/* A call of a label's function. */
struct labelled_call {
	taddr_t sp, return_pc;  /* at its entry; sp 0: there is none */
	bool is_of_pad;         /* a pad has noted it: the breakpoint knows nothing of it */
};

/* A thread in a call. */
struct labelled_thread {
	uint32_t tid, base;
	uint32_t checked;       /* a node in these calls; 0 = none */
	uint32_t *frame;        /* of each option; 0 = none. Owned */
	struct labelled_call *call; /* of each option; owned */
	/* those of variables are of pads' values: of this slot, after so many changes */
	bool has_values;
	uint32_t slot, changes;
};

struct label_argument {
	taddr_t entry;          /* of the function; 0 = none yet */
	uint32_t type;
};

struct labelled_node {
	uint32_t base, node, result;
};

/* The frame of a value of a variable, since the text of each need be made only once. */
struct label_frame {
	uint32_t label, frame;  /* frame 0: such a value is no label */
	struct pad_label_value value; /* words behind its size are 0 */
};

struct label_sum {
	uint32_t text;          /* number + 1 in labels.texts; 0: without this label */
	struct label_use use;
};

struct labels {
	size_t count;           /* of options */
	struct type_table *types; /* the run's */
	VEC(struct label_text) texts;
	HASH(uint32_t) by_text, by_frame; /* indexes of texts */
	/* of each option; owned */
	struct label_argument *argument;
	uint32_t *text_count;
	bool *is_reported;
	struct label_place *place; /* of each option that is a variable; owned */
	bool has_variables, has_pending; /* also functions that pads follow */
	uint64_t searched_ns;   /* when variables that are pending were looked for */
	HASH(struct label_frame) frames; /* at most LABEL_TEXTS_MAX */
	HASH(struct labelled_thread) threads;
	HASH(struct labelled_node) nodes;
	/* of a child: what its parent had allocated before; of each option, all texts then */
	struct label_use *inherited; /* owned */
	size_t inherited_texts; /* and one for none */
};

static struct labels *get_labels(struct session *s)
{
	struct labels *l = s->labels;

	if (l)
		return l;

	s->labels = l = xcalloc(1, sizeof(*l));
	l->count = s->run->options->labels.count;
	l->types = s->run->label_types;
	l->place = xcalloc(l->count, sizeof(*l->place));
	l->argument = xcalloc(l->count, sizeof(*l->argument));
	l->text_count = xcalloc(l->count, sizeof(*l->text_count));
	l->is_reported = xcalloc(l->count, sizeof(*l->is_reported));
	return l;
}

static void free_thread(struct labelled_thread *t)
{
	free(t->frame);
	free(t->call);
}

void labels_free(struct session *s)
{
	struct labels *l = s->labels;

	if (!l)
		return;
	vec_release(&l->texts, t, free(t->text));
	hash_deinit(&l->by_text);
	hash_deinit(&l->by_frame);
	hash_deinit(&l->nodes);
	hash_deinit(&l->frames);
	for (size_t i = 0; hash_next(&l->threads.index, &i); i++)
		free_thread(&l->threads.slot[i]);
	hash_deinit(&l->threads);
	free(l->place);
	free(l->argument);
	free(l->text_count);
	free(l->is_reported);
	free(l->inherited);
	free(l);
	s->labels = NULL;
}

/* -- values -- */

static ssize_t read_some(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return space_read_some(ctx, addr, buf, size);
}

/* The type of the argument of @label in the function at @entry; the last one is kept. */
static uint32_t argument_type(struct session *s, size_t label, taddr_t entry)
{
	struct label_argument *known = &s->labels->argument[label];

	if (known->entry == entry)
		return known->type;
	const struct module *m = session_module(s, entry);
	struct debug_units *units =
		m && m->file ? type_table_add(s->labels->types, m->file) : NULL;

	known->entry = entry;
	known->type = units ? data_argument_type(s->labels->types, units, entry - m->bias,
						 s->run->labels[label].arg) : TYPE_NONE;
	return known->type;
}

static void report_member(struct session *s, size_t label, const struct label_step *step)
{
	if (!s->labels->is_reported[label])
		log_warn("process %" PRIu32 ": --label=%s: no debug information says where the "
			 "member %s is: build the program with -g, or give its offset: ->+16",
			 s->process.pid, s->run->labels[label].text, step->member);
	s->labels->is_reported[label] = true;
}

/* The text for a call of the function of option @label; NULL: no label. Malloc'ed. */
static char *read_text(struct session *s, size_t label, const struct within_call *call)
{
	const struct label_option *l = &s->run->labels[label];
	const struct label_place *place = &s->labels->place[label];
	struct pad_label_value value;

	if (place->pad.kind != PAD_LABEL_NONE && place->pad.function == call->entry) {
		label_argument_read(s->space, call->arg[l->arg], &place->pad, &value);
		return label_variable_text(s->labels->types, l, place, &value);
	}
	struct data_value v = {.types = s->labels->types, .read = read_some, .ctx = s->space,
			       .is_word = true, .word = call->arg[l->arg],
			       .type = argument_type(s, label, call->entry)};
	enum value_step end = VALUE_TAKEN;

	for (unsigned i = 0; i < l->steps && end == VALUE_TAKEN; i++) {
		end = l->step[i].member ? data_value_member(&v, l->step[i].member) :
					  data_value_offset(&v, l->step[i].offset);
		if (end == VALUE_UNKNOWN)
			report_member(s, label, &l->step[i]);
	}
	char *text = end == VALUE_TAKEN ? data_value_text(&v, l->form) : NULL;

	if (end == VALUE_NULL || end == VALUE_UNKNOWN)
		return NULL;
	return text ? text : xstrdup("?");
}

/* -- frames -- */

static uint32_t new_frame(struct session *s, uint32_t label, const char *text)
{
	_cleanup_free_ char *name =
		xasprintf("[%s: %s]", s->run->labels[label].name, text);

	return pseudo_frame_get(s->run->symbols, profile_calltree(s->heap.profile), name, NULL);
}

static uint32_t frame_of(struct session *s, uint32_t label, const char *text)
{
	struct labels *l = s->labels;

	label = s->run->labels[label].first;
	uint64_t hash = label_text_hash(label, text);
	const uint32_t *known = hash_find(&l->by_text, hash, i,
					  l->texts.data[*i].label == label &&
						  strcmp(l->texts.data[*i].text, text) == 0);

	if (known)
		return l->texts.data[*known].frame;
	if (l->text_count[label] > LABEL_TEXTS_MAX) /* and "other" */
		return frame_of(s, label, "other");
	if (++l->text_count[label] > LABEL_TEXTS_MAX)
		text = "other";
	struct label_text new = {label, xstrdup(text), new_frame(s, label, text)};

	*hash_add(&l->by_text, label_text_hash(label, text)) = (uint32_t)l->texts.count;
	*hash_add(&l->by_frame, hash_u64(new.frame)) = (uint32_t)l->texts.count;
	*vec_add(&l->texts) = new;
	return new.frame;
}

/* -- threads -- */

static struct labelled_thread *find_thread(const struct labels *l, uint32_t tid)
{
	return l ? hash_find(&l->threads, hash_u64(tid), t, t->tid == tid) : NULL;
}

static struct labelled_thread *get_thread(struct labels *l, uint32_t tid)
{
	struct labelled_thread *t = find_thread(l, tid);

	if (t)
		return t;
	t = hash_add(&l->threads, hash_u64(tid));
	*t = (struct labelled_thread){.tid = tid, .frame = xcalloc(l->count, sizeof(*t->frame)),
				      .call = xcalloc(l->count, sizeof(*t->call))};
	return t;
}

static void find_base(struct session *s, struct labelled_thread *t)
{
	struct calltree *tree = profile_calltree(s->heap.profile);

	t->base = t->checked = 0;
	for (size_t i = 0; i < s->labels->count; i++)
		if (t->frame[i])
			t->base = calltree_get_child(tree, t->base, t->frame[i]);
}

/* The labels of @t have changed: what the thread allocates next has other stacks. */
static void set_base(struct session *s, struct labelled_thread *t)
{
	find_base(s, t);
	pads_forget_node(s->space, (pid_t)t->tid);
}

/* Whether stacks have all native frames. */
static bool has_native_stacks(const struct session *s)
{
	return !s->stacks.virtual && !s->stacks.java && !s->code && !v8_stacks_are_on(s);
}

/* Says to the pads where labels are. What values mean may have changed. */
static void publish(struct session *s)
{
	struct pad_label label[PAD_LABELS] = {0};

	hash_deinit(&s->labels->frames);
	for (size_t i = 0; i < s->labels->count; i++)
		if (s->run->labels[i].number < PAD_LABELS)
			label[s->run->labels[i].number] = s->labels->place[i].pad;
	if (s->space)
		pads_set_labels(s->space, label);
}

/*
 * If pads can read all labels of the function of @call, they do so from now on. Of several
 * functions with its name the first one that is called counts.
 */
static void place_labels(struct session *s, const struct within_call *call)
{
	struct labels *l = s->labels;
	const struct module *m = session_module(s, call->entry);
	struct label_place *place = xcalloc(l->count, sizeof(*place));
	bool can_read = m && has_native_stacks(s);

	for (size_t i = 0; can_read && i < l->count; i++) {
		const struct label_option *o = &s->run->labels[i];

		if (o->probe == call->function)
			can_read = o->number < PAD_LABELS && !l->place[i].module &&
				   label_argument_place(l->types, call->entry,
							argument_type(s, i, call->entry), o,
							&place[i]);
		place[i].module = m->id;
	}
	for (size_t i = 0; can_read && i < l->count; i++)
		if (s->run->labels[i].probe == call->function)
			l->place[i] = place[i];
	free(place);
	if (!can_read)
		return;
	l->has_variables = true;
	publish(s);
}

void labels_begin(struct session *s, pid_t tid, const struct within_call *call)
{
	struct labels *l = get_labels(s);
	struct labelled_thread *t = get_thread(l, (uint32_t)tid);

	place_labels(s, call);
	for (size_t i = 0; i < l->count; i++) {
		if (s->run->labels[i].probe != call->function)
			continue;
		_cleanup_free_ char *text = read_text(s, i, call);

		t->frame[i] = text ? frame_of(s, (uint32_t)i, text) : 0;
		t->call[i] = (struct labelled_call){call->sp, call->return_pc, false};
	}
	set_base(s, t);
}

void labels_end(struct session *s, pid_t tid, const struct custom_probe *function)
{
	struct labelled_thread *t = find_thread(s->labels, (uint32_t)tid);

	for (size_t i = 0; t && i < s->labels->count; i++)
		if (s->run->labels[i].probe == function) {
			t->frame[i] = 0;
			t->call[i] = (struct labelled_call){0};
		}
	if (t)
		set_base(s, t);
}

void labels_thread_exit(struct session *s, uint32_t thread)
{
	struct labelled_thread *t = find_thread(s->labels, thread);

	if (!t)
		return;
	free_thread(t);
	hash_remove(&s->labels->threads, t);
}

/* -- variables -- */

static void report_variable(struct session *s, size_t label, const char *why)
{
	if (!s->labels->is_reported[label])
		log_warn("process %" PRIu32 ": --label=%s: %s", s->process.pid,
			 s->run->labels[label].text, why);
	s->labels->is_reported[label] = true;
}

/* Looks for option @label in @m. */
static void search_module(struct session *s, size_t label, const struct module *m)
{
	struct label_option *l = &s->run->labels[label];
	struct label_place *place = &s->labels->place[label];
	const char *why = NULL;

	if (l->kind == LABEL_CONTEXT)
		label_context_find(s->space, m, l, place);
	else
		why = label_variable_find(s->space, m, s->labels->types, l, place);
	if (why)
		report_variable(s, label, why);
	l->is_found |= why || place->pad.kind != PAD_LABEL_NONE;
}

void labels_add_module(struct session *s, const struct module *m)
{
	bool is_new = false;

	for (size_t i = 0; s->run->labels && i < s->run->options->labels.count; i++) {
		if (s->run->labels[i].kind == LABEL_ARGUMENT)
			continue;
		const struct label_place *place = &get_labels(s)->place[i];
		const struct module *pending =
			place->is_pending ? run_module(s->run, place->module) : NULL;

		s->labels->has_variables = true;
		if (place->module && !pending)
			continue;
		search_module(s, i, pending ? pending : m);
		is_new |= s->labels->place[i].pad.kind != PAD_LABEL_NONE;
		s->labels->has_pending |= place->is_pending;
	}
	if (is_new)
		publish(s);
}

void labels_remove_module(struct session *s, const struct module *m)
{
	bool is_gone = false;

	for (size_t i = 0; s->labels && i < s->labels->count; i++) {
		if (s->labels->place[i].module != m->id)
			continue;
		s->labels->place[i] = (struct label_place){0};
		is_gone = true;
	}
	if (is_gone)
		publish(s);
	if (s->labels && s->space)
		pads_clear_call_sites(s->space);
}

#define SEARCH_NS 10000000u

/* Looks again for variables whose threads' places, or keys, were not known yet. */
static void search_pending(struct session *s, uint64_t now_ns)
{
	struct labels *l = s->labels;
	bool is_new = false;

	if (now_ns - l->searched_ns < SEARCH_NS)
		return;
	l->searched_ns = now_ns;
	l->has_pending = false;
	for (size_t i = 0; i < l->count; i++) {
		struct module *m =
			l->place[i].is_pending ? run_module(s->run, l->place[i].module) : NULL;

		if (!m)
			continue;
		search_module(s, i, m);
		is_new |= !l->place[i].is_pending;
		l->has_pending |= l->place[i].is_pending;
	}
	if (is_new)
		publish(s);
}

/* The values of the thread of @he, which is stopped, to @out. */
static void read_values(const struct session *s, const struct heap_event *he,
			struct pad_label_value *out)
{
	struct arch_regs regs;
	uint64_t pointer = 0;

	if (ptrace_get_regs((pid_t)he->thread, &regs) == 0)
		pointer = regs.word[arch_native->thread_pointer];
	for (size_t i = 0; i < s->labels->count; i++) {
		uint32_t number = s->run->labels[i].number;
		const struct pad_label *p = &s->labels->place[i].pad;

		if (number >= PAD_LABELS || p->kind == PAD_LABEL_NONE)
			continue;
		if (p->base == PAD_LABEL_CALL)
			pads_read_call(s->space, pointer, number, &out[number]);
		else
			label_variable_read(s->space, pointer, p, &out[number]);
	}
}

static uint32_t frame_of_value(struct session *s, uint32_t label, const struct pad_label_value *v)
{
	struct labels *l = s->labels;
	size_t size = sizeof(uint64_t) * pad_label_words(v);
	uint64_t hash = hash_u64((uint64_t)label << 32 | v->state << 16 | v->size) ^
			hash_bytes((const char *)v->word, size);
	const struct label_frame *known =
		hash_find(&l->frames, hash, f,
			  f->label == label && f->value.state == v->state &&
				  f->value.size == v->size &&
				  memcmp(f->value.word, v->word, size) == 0);

	if (known)
		return known->frame;
	_cleanup_free_ char *text = label_variable_text(
		l->types, &s->run->labels[label], &l->place[label], v);
	uint32_t frame = text ? frame_of(s, label, text) : 0;

	if (l->frames.index.count < LABEL_TEXTS_MAX * PAD_LABELS)
		*hash_add(&l->frames, hash) = (struct label_frame){label, frame, *v};
	return frame;
}

/*
 * Whether the call of option @label that @t is in is the one that pads have noted, if there is one.
 * The breakpoint follows only the outermost one: what pads note in that does not count.
 */
static bool take_call(struct session *s, struct labelled_thread *t, size_t label,
		      const struct pad_label_value *v)
{
	struct labelled_call *call = &t->call[label];

	if (call->sp && !call->is_of_pad) {
		if (!v->sp || !within_is_above(call->sp, v->sp))
			return false;
		within_forget(s->run->target, s->space, (pid_t)t->tid,
			      s->run->labels[label].probe);
	}
	*call = (struct labelled_call){v->sp, v->return_pc, true};
	t->checked = 0;
	return true;
}

/* The labels of @t that pads know, at the event @he of it. */
static void take_values(struct session *s, struct labelled_thread *t, const struct heap_event *he)
{
	struct labels *l = s->labels;
	struct pad_label_value own[PAD_LABELS] = {0};
	const struct pad_label_value *value = he->label ? he->label : own;
	bool has_changed = false;

	if (he->label && t->has_values && t->slot == he->path && t->changes == he->label_changes)
		return;
	if (!he->label)
		read_values(s, he, own);
	t->has_values = he->label;
	t->slot = he->path;
	t->changes = he->label_changes;
	for (size_t i = 0; i < l->count; i++) {
		const struct label_option *option = &s->run->labels[i];

		if (option->number >= PAD_LABELS)
			continue;
		if (option->kind == LABEL_ARGUMENT && !take_call(s, t, i, &value[option->number]))
			continue;
		uint32_t frame = frame_of_value(s, (uint32_t)i, &value[option->number]);

		has_changed |= t->frame[i] != frame;
		t->frame[i] = frame;
	}
	if (has_changed)
		find_base(s, t);
}

/* -- stacks -- */

static uint32_t *find_node(struct labels *l, uint32_t base, uint32_t node)
{
	struct labelled_node *known =
		hash_find(&l->nodes, hash_u64((uint64_t)base << 32 | node), n,
			  n->base == base && n->node == node);

	return known ? &known->result : NULL;
}

static bool is_called_from(const struct calltree *tree, uint32_t node, uint32_t caller)
{
	while (caller && node && calltree_node_frame(tree, node) != caller)
		node = calltree_parent(tree, node);
	return caller && node;
}

/*
 * Ends calls that were left by longjmp or an exception: the stack @node, which is complete, does
 * not have their callers.
 */
static void leave_calls(struct session *s, struct labelled_thread *t, uint32_t node)
{
	const struct calltree *tree = profile_calltree(s->heap.profile);
	bool has_left = false;

	for (size_t i = 0; i < s->labels->count; i++) {
		uint32_t caller = calltree_find_frame(tree, t->call[i].return_pc - 1);

		if (!t->frame[i] || !s->run->labels[i].probe || is_called_from(tree, node, caller))
			continue;
		if (!t->call[i].is_of_pad)
			within_forget(s->run->target, s->space, (pid_t)t->tid,
				      s->run->labels[i].probe);
		t->frame[i] = 0;
		t->call[i] = (struct labelled_call){0};
		has_left = true;
	}
	if (has_left)
		set_base(s, t);
	t->checked = node;
}

/*
 * Where stacks do not show which calls of a pad's are open, breakpoints follow the next ones.
 * @is_complete: that of an event of @t.
 */
static void check_stacks(const struct session *s, const struct labelled_thread *t, bool is_complete)
{
	if (s->space->traps_calls || (is_complete && has_native_stacks(s)))
		return;
	bool is_in_call = false;

	for (size_t i = 0; i < s->labels->count; i++)
		is_in_call |= t->call[i].sp && t->call[i].is_of_pad;
	if (!is_in_call)
		return;
	log_verbose("process %" PRIu32 ": calls of functions with labels are followed by "
		    "breakpoints: %s", s->process.pid,
		    is_complete ? "its stacks have no native frames" : "a stack is incomplete");
	pads_trap_calls(s->space);
}

uint32_t labels_node(struct session *s, const struct heap_event *he, uint32_t node,
		     bool is_complete)
{
	struct labelled_thread *t = s->labels->has_variables ? get_thread(s->labels, he->thread) :
							       find_thread(s->labels, he->thread);
	struct calltree *tree = profile_calltree(s->heap.profile);
	uint32_t base, result;
	VEC(uint32_t) missing = {0};

	if (s->labels->has_pending)
		search_pending(s, he->time_ns ? he->time_ns : clock_now_ns());
	if (s->labels->has_variables)
		take_values(s, t, he);
	if (s->labels->has_variables && s->space)
		check_stacks(s, t, is_complete);
	base = t ? t->base : 0;
	if (base && is_complete && node != t->checked && has_native_stacks(s)) {
		leave_calls(s, t, node);
		base = t->base;
	}
	if (!base)
		return node;
	for (result = base; node; node = calltree_parent(tree, node)) {
		const uint32_t *known = find_node(s->labels, base, node);

		if (known) {
			result = *known;
			break;
		}
		*vec_add(&missing) = node;
	}
	for (size_t i = missing.count; i-- > 0;) {
		uint32_t each = missing.data[i];

		result = calltree_get_child(tree, result, calltree_node_frame(tree, each));
		*hash_add(&s->labels->nodes, hash_u64((uint64_t)base << 32 | each)) =
			(struct labelled_node){base, each, result};
	}
	vec_deinit(&missing);
	return result;
}

/* -- sums -- */

struct label_sums {
	VEC(struct label_sum) list; /* the largest first; all that allocated */
};

/*
 * The number + 1 of the text of option @label, the first of its name, in the stack @node; 0: it has
 * none.
 */
static uint32_t text_in(const struct labels *l, const struct calltree *tree, uint32_t label,
			uint32_t node)
{
	uint32_t found = 0;

	for (; node; node = calltree_parent(tree, node)) {
		uint32_t frame = calltree_node_frame(tree, node);
		const uint32_t *text = hash_find(&l->by_frame, hash_u64(frame), i,
						 l->texts.data[*i].frame == frame);

		if (text && l->texts.data[*text].label == label)
			found = *text + 1;
	}
	return found;
}

static int compare_sums(const void *a, const void *b)
{
	const struct label_sum *x = a, *y = b;
	int order = label_use_compare(&x->use, &y->use);

	return order ? order : (x->text > y->text) - (x->text < y->text);
}

/*
 * The sums of option @label. @at_peak: bytes of each leaf; NULL: what is in use now. All behind the
 * first @max are in the last one. To be freed with vec_deinit.
 */
static struct label_sums sum_up(const struct session *s, uint32_t label,
				const struct leaf_amounts *at_peak, size_t max)
{
	struct profile *p = s->heap.profile;
	struct label_sums out = {0};

	for (uint32_t i = 0; i <= s->labels->texts.count; i++)
		*vec_add(&out.list) = (struct label_sum){.text = i};
	for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
		const struct leaf *leaf = profile_leaf(p, i);
		uint64_t peak = at_peak && i <= at_peak->count ? at_peak->bytes[i] : 0;
		const struct label_use of_leaf = {at_peak ? peak : leaf->live_bytes,
						  leaf->total_bytes, leaf->calls};

		label_use_add(&out.list.data[text_in(s->labels, profile_calltree(p), label,
					       leaf->node)].use, &of_leaf);
	}
	qsort(out.list.data, out.list.count, sizeof(*out.list.data), compare_sums);
	while (out.list.count && !out.list.data[out.list.count - 1].use.calls)
		out.list.count--;
	for (size_t i = max + 1; i < out.list.count; i++)
		label_use_add(&out.list.data[max].use, &out.list.data[i].use);
	return out;
}

static const char *text_of(const struct labels *l, const struct label_sum *sum)
{
	return sum->text ? l->texts.data[sum->text - 1].text : "";
}

size_t labels_live(const struct session *s, struct label_amount *out, size_t max)
{
	size_t count = 0, each = s->labels ? max / s->labels->count : 0;

	for (uint32_t i = 0; each && i < s->labels->count; i++) {
		if (s->run->labels[i].first != i)
			continue;
		struct label_sums sums = sum_up(s, i, NULL, each - 1);

		for (size_t k = 0; k < MIN(sums.list.count, each); k++) {
			const struct label_sum *sum = &sums.list.data[k];
			bool is_rest = k == each - 1 && sums.list.count > each;

			out[count++] = (struct label_amount){
				s->run->labels[i].name, is_rest ? "other" : text_of(s->labels, sum),
				sum->use.held, sum->use.bytes};
		}
		vec_deinit(&sums.list);
	}
	return count;
}

/* -- processes -- */

/* What the parent had allocated is not the child's, which has counted it, too. */
static void take_inherited(const struct session *parent, struct labels *l)
{
	l->inherited_texts = l->texts.count + 1;
	l->inherited = xcalloc(l->count * l->inherited_texts, sizeof(*l->inherited));
	for (uint32_t i = 0; i < l->count; i++) {
		struct label_sums sums = sum_up(parent, i, NULL, UINT32_MAX);

		for (size_t k = 0; k < sums.list.count; k++)
			l->inherited[i * l->inherited_texts + sums.list.data[k].text] =
				sums.list.data[k].use;
		vec_deinit(&sums.list);
	}
}

void labels_fork(struct session *parent, struct session *child)
{
	const struct labels *from = parent->labels;

	child->labels = NULL;
	if (!from)
		return;
	struct labels *l = get_labels(child);

	l->has_variables = from->has_variables;
	memcpy(l->place, from->place, l->count * sizeof(*l->place));
	memcpy(l->text_count, from->text_count, l->count * sizeof(*l->text_count));
	for (uint32_t i = 0; i < from->texts.count; i++) {
		const struct label_text *text = &from->texts.data[i];

		*hash_add(&l->by_text, label_text_hash(text->label, text->text)) = i;
		*hash_add(&l->by_frame, hash_u64(text->frame)) = i;
		*vec_add(&l->texts) =
			(struct label_text){text->label, xstrdup(text->text), text->frame};
	}
	take_inherited(parent, l);
	if (l->has_variables)
		publish(child);
}

/* A process that was never in a call with a label, and knows no variable. */
static void add_unlabelled(const struct session *s, struct label_totals *to)
{
	const struct profile *p = s->heap.profile;
	const struct profile_totals *sum = profile_totals(p);
	const struct profile_totals *before = &s->process.inherited.totals;

	for (uint32_t i = 0; s->run->labels && i < s->run->options->labels.count; i++) {
		if (s->run->labels[i].first != i)
			continue;
		const struct label_use use = {
			sum->live_bytes, sum->allocated_bytes - before->allocated_bytes,
			profile_count(p, sum->allocations - before->allocations)};

		label_use_add(&label_totals_get(to, i, "")->use, &use);
	}
}

static void add_label(const struct session *s, uint32_t label, struct label_totals *to)
{
	const struct labels *l = s->labels;
	const struct label_use *inherited = l->inherited + label * l->inherited_texts;
	struct label_sums sums = sum_up(s, label, NULL, UINT32_MAX);

	for (size_t k = 0; k < sums.list.count; k++) {
		const struct label_sum *sum = &sums.list.data[k];
		struct label_use use = sum->use;

		if (sum->text < l->inherited_texts) {
			use.bytes -= inherited[sum->text].bytes;
			use.calls -= inherited[sum->text].calls;
		}
		if (use.calls || use.held)
			label_use_add(&label_totals_get(to, label, text_of(l, sum))->use, &use);
	}
	vec_deinit(&sums.list);
}

void labels_add(const struct session *s, struct label_totals *to)
{
	if (!s->labels)
		add_unlabelled(s, to);
	for (uint32_t i = 0; s->labels && i < s->labels->count; i++)
		if (s->run->labels[i].first == i)
			add_label(s, i, to);
}

/* -- the summary -- */

void labels_print(const struct session *s, const struct leaf_amounts *at_peak, uint64_t peak)
{
	for (uint32_t i = 0; s->labels && i < s->labels->count; i++) {
		if (s->run->labels[i].first != i)
			continue;
		struct label_sums sums = sum_up(s, i, at_peak, LABEL_TEXTS_SHOWN);
		size_t count = sums.list.count, shown = MIN(count, (size_t)LABEL_TEXTS_SHOWN);

		for (size_t k = 0; k < shown; k++) {
			const char *text = text_of(s->labels, &sums.list.data[k]);

			label_use_print(k ? "" : s->run->labels[i].name,
					&sums.list.data[k].use, peak,
					sums.list.data[k].text ? text : "(none)");
		}
		_cleanup_free_ char *others = xasprintf("%zu others", count - shown);

		if (count > shown)
			label_use_print("", &sums.list.data[shown].use, peak, others);
		vec_deinit(&sums.list);
	}
}
