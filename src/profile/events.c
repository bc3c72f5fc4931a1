/*
 * Events as text. One record per line: its letter first, fields separated by one space, "\n" at the
 * end of each line. Numbers are decimal (D) or lower- or upper-case hexadecimal without prefix (X),
 * all unsigned. TEXT extends to the end of the line; in it and in the fields of a name "\\", "\n",
 * "\t" and "\xHH" represent a backslash, a line feed, a tab and any other byte. Lines that begin
 * with "#" and empty lines are ignored.
 *
 *	ptmem-events 1                        the first line
 *	h PID(D) START(D ns) COMMAND(TEXT)    header, once, before all that follows
 *	                                      (both again, in a pipe: the process executed
 *	                                      another program, and all begins again)
 *	y INTERVAL(D) SEED(D)                 before all events: they are samples, of marks so many
 *	                                      bytes apart on average; no m, u, p and z
 *	Y SHIFT(D)                            the blocks that follow are samples of marks
 *	                                      INTERVAL << SHIFT bytes apart; at most 10
 *	w FUNCTION(D) CALLS(D) BYTES(D)       exact total of a file of samples
 *	W BYTES(D)                            the next event's block is a sample that the program
 *	                                      took, and stands for so many bytes
 *	l ID(D) START(X) END(X) BIAS(X) PATH(TEXT)   module loaded; ID > 0
 *	g ID(D)                               module unloaded; it may be loaded there again
 *	n ID(D) PARENT(D) PC(X) MODULE(D)     node: ids 1, 2, 3, ... in order; parent before child;
 *	                                      0 = root, module 0 = none
 *	i PC(X) MODULE(D) LINE(D) INLINED(0|1) NAME<tab>FILE<tab>DIR    empty = unknown; not inlined
 *	                                      ones end the frames of an address
 *
 *	v KEY VALUE(TEXT)                     known besides the events, for recordings; KEY has no
 *	                                      blank
 *
 * Events; each begins TIME(D ns) THREAD(D) FUNCTION(D 0-255) NODE(D) and continues:
 *
 *	a ... ADDR(X) SIZE(D) ALIGN(D)        alloc
 *	R ... OLD(X) ADDR(X) SIZE(D) ALIGN(D) alloc: a sample, by realloc of a block that was none
 *	f ... ADDR(X)                         free
 *	j ... ADDR(X)                         free within another call: if a block is live there
 *	b ... OLD(X)                          realloc begins
 *	r ... OLD(X) ADDR(X) SIZE(D)          realloc ends
 *	m ... ADDR(X) SIZE(D)                 map
 *	u ... ADDR(X) SIZE(D)                 unmap
 *	s ... SIZE(D)                         bytes of all stacks
 *	c ... OLD(X) ADDR(X) SIZE(D) ARGS(D)  call of a mapping function, as in event.h
 *	t ...                                 stack pointer sampled
 *	p ... SIZE(D)                         bytes that are only counted
 *	k ...                                 a stack begins at the stack pointer
 *	d ...                                 the program's own destructors are over
 *	o ... ADDR(X) SIZE(D)                 where the thread's own stack may reach
 *	q ... SIZE(D) SPACE(D)                resident memory and address space
 *	z ... ADDR(X) SIZE(D)                 block from before the profile
 *	                                      each may end with SP(X), the stack pointer, if known;
 *	                                      what does not fail has sizes of 2^62 in all at most
 *	x THREAD(D)                           thread ended
 *	e TIME(D ns)                          the end, the last line
 *
 * This file writes; events_read.c reads.
 */
#include "profile/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"

struct events_writer {
	FILE *file;
	int error;          /* first -errno */
	uint32_t *file_id;  /* by node of the tree; 0 = not written yet */
	size_t file_id_count;
	VEC(uint32_t) unwritten; /* nodes, each above the one before it; between calls nothing */
	uint32_t last_id;
	uint8_t sample_shift; /* of the last sample */
};

struct events_writer *events_writer_new(FILE *file)
{
	struct events_writer *w = xcalloc(1, sizeof(*w));
	w->file = file;
	return w;
}

static void note_error(struct events_writer *w)
{
	if (!w->error)
		w->error = errno ? -errno : -EIO;
}

ATTR_PRINTF(2, 3) static void put(struct events_writer *w, const char *fmt, ...)
{
	va_list ap;
	if (w->error) /* nothing may follow a gap */
		return;
	va_start(ap, fmt);
	errno = 0;
	if (vfprintf(w->file, fmt, ap) < 0)
		note_error(w);
	va_end(ap);
}

static void put_text(struct events_writer *w, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\\')
			put(w, "\\\\");
		else if (*c == '\n')
			put(w, "\\n");
		else if (*c == '\t')
			put(w, "\\t");
		else if (*c < 0x20 || *c == 0x7f)
			put(w, "\\x%02x", *c);
		else
			put(w, "%c", *c);
	}
}

void events_writer_header(struct events_writer *w, const char *command, uint32_t pid,
			  uint64_t start_ns)
{
	put(w, "ptmem-events 1\nh %" PRIu32 " %" PRIu64 " ", pid, start_ns);
	put_text(w, command);
	put(w, "\n");
}

void events_writer_module(struct events_writer *w, const struct events_module *m)
{
	if (!m->start && !m->end) {
		put(w, "g %" PRIu32 "\n", m->id);
		return;
	}
	put(w, "l %" PRIu32 " %" PRIx64 " %" PRIx64 " %" PRIx64 " ", m->id, m->start, m->end,
	    m->bias);
	put_text(w, m->path);
	put(w, "\n");
}

void events_writer_name(struct events_writer *w, const struct events_name *n)
{
	put(w, "i %" PRIx64 " %" PRIu32 " %" PRIu32 " %d ", n->pc, n->module, n->line,
	    n->is_inlined);
	put_text(w, n->name ? n->name : "");
	put(w, "\t");
	put_text(w, n->file ? n->file : "");
	put(w, "\t");
	put_text(w, n->dir ? n->dir : "");
	put(w, "\n");
}

void events_writer_sampling(struct events_writer *w, uint64_t interval, uint64_t seed)
{
	put(w, "y %" PRIu64 " %" PRIu64 "\n", interval, seed);
}

void events_writer_totals(struct events_writer *w, const struct call_totals *totals)
{
	char lost[80];

	for (unsigned i = 0; i < HEAP_FUNCTION_COUNT; i++) {
		const struct call_total *total = &totals->function[i];

		if (total->calls)
			put(w, "w %u %" PRIu64 " %" PRIu64 "\n", i, total->calls, total->bytes);
	}
	if (totals->lost.allocations || totals->lost.releases) {
		snprintf(lost, sizeof(lost), "%" PRIu64 " %" PRIu64 " %" PRIu64,
			 totals->lost.allocations, totals->lost.bytes, totals->lost.releases);
		events_writer_value(w, "missing", lost);
	}
	if (totals->is_doubtful)
		events_writer_value(w, "corrupt", "1");
}

void events_writer_value(struct events_writer *w, const char *key, const char *value)
{
	put(w, "v ");
	put_text(w, key);
	put(w, " ");
	put_text(w, value);
	put(w, "\n");
}

static void put_node(struct events_writer *w, const struct calltree *t, uint32_t node)
{
	uint32_t parent = calltree_parent(t, node);
	const struct calltree_frame *frame = calltree_frame(t, calltree_node_frame(t, node));
	w->file_id[node] = ++w->last_id;
	put(w, "n %" PRIu32 " %" PRIu32 " %" PRIx64 " %" PRIu32 "\n", w->last_id,
	    parent ? w->file_id[parent] : 0, frame->key, frame->module);
}

/* The number of @node in the file; first writes it and its ancestors if necessary. */
static uint32_t file_id_of(struct events_writer *w, const struct calltree *t, uint32_t node)
{
	if (!node)
		return 0;
	if (node >= w->file_id_count) {
		size_t old = w->file_id_count;
		w->file_id = xgrow(w->file_id, &w->file_id_count, (size_t)node + 1,
				   sizeof(*w->file_id));
		memset(&w->file_id[old], 0, (w->file_id_count - old) * sizeof(*w->file_id));
	}
	for (uint32_t n = node; n && !w->file_id[n]; n = calltree_parent(t, n))
		*vec_add(&w->unwritten) = n;
	while (w->unwritten.count)
		put_node(w, t, w->unwritten.data[--w->unwritten.count]);
	return w->file_id[node];
}

static char letter_of(const struct event *ev)
{
	static const char letters[] = "?afbrmusctpkdoqz";
	CHECK(ev->kind > 0 && ev->kind < sizeof(letters) - 1);
	if (ev->kind == EVENT_FREE && ev->is_inner)
		return 'j';
	return ev->kind == EVENT_ALLOC && ev->old_addr ? 'R' : letters[ev->kind];
}

/* Only events with a new block have one. */
static void put_shift(struct events_writer *w, const struct event *ev)
{
	bool has_shift = ev->addr && (ev->kind == EVENT_ALLOC || ev->kind == EVENT_REALLOC_END);

	if (!has_shift || ev->sample_shift == w->sample_shift)
		return;
	w->sample_shift = ev->sample_shift;
	put(w, "Y %u\n", ev->sample_shift);
}

/* A line of at most ten numbers; vfprintf would take most of the time of a profile. */
struct event_line {
	char text[256];
	size_t size;
};

static inline void add_number(struct event_line *l, uint64_t n, unsigned base)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = "0123456789abcdef"[n % base];
	while (n /= base);
	l->text[l->size++] = ' ';
	while (count)
		l->text[l->size++] = digits[--count];
}

static void add_decimal(struct event_line *l, uint64_t n)
{
	add_number(l, n, 10);
}

static void add_hex(struct event_line *l, uint64_t n)
{
	add_number(l, n, 16);
}

/* What follows the fields that all events have. */
static void add_fields(struct event_line *l, const struct event *ev)
{
	switch ((enum event_kind)ev->kind) {
	case EVENT_ALLOC:
		if (ev->old_addr)
			add_hex(l, ev->old_addr);
		add_hex(l, ev->addr);
		add_decimal(l, ev->size);
		add_decimal(l, ev->align);
		break;
	case EVENT_FREE:
		add_hex(l, ev->addr);
		break;
	case EVENT_REALLOC_BEGIN:
		add_hex(l, ev->old_addr);
		break;
	case EVENT_REALLOC_END:
		add_hex(l, ev->old_addr);
		add_hex(l, ev->addr);
		add_decimal(l, ev->size);
		break;
	case EVENT_MAP:
	case EVENT_UNMAP:
	case EVENT_STACK_RANGE:
	case EVENT_EARLIER:
		add_hex(l, ev->addr);
		add_decimal(l, ev->size);
		break;
	case EVENT_RESIDENT:
		add_decimal(l, ev->size);
		add_decimal(l, ev->align);
		break;
	case EVENT_STACK:
	case EVENT_COUNT:
		add_decimal(l, ev->size);
		break;
	case EVENT_MAPPING_CALL:
		add_hex(l, ev->old_addr);
		add_hex(l, ev->addr);
		add_decimal(l, ev->size);
		add_decimal(l, ev->align);
		break;
	case EVENT_SAMPLE:
	case EVENT_STACK_BASE:
	case EVENT_PROGRAM_END:
		break;
	}
	if (ev->sp)
		add_hex(l, ev->sp);
}

void events_writer_event(struct events_writer *w, const struct calltree *t, const struct event *ev)
{
	uint32_t node = file_id_of(w, t, ev->node);
	struct event_line l = {.size = 1};

	l.text[0] = letter_of(ev);
	put_shift(w, ev);
	if (ev->kind == EVENT_ALLOC && ev->weighted)
		put(w, "W %" PRIu64 "\n", ev->weighted);
	add_decimal(&l, ev->time_ns);
	add_decimal(&l, ev->thread);
	add_decimal(&l, ev->function);
	add_decimal(&l, node);
	add_fields(&l, ev);
	l.text[l.size++] = '\n';
	if (w->error)
		return;
	errno = 0;
	if (fwrite(l.text, 1, l.size, w->file) != l.size)
		note_error(w);
}

void events_writer_thread_exit(struct events_writer *w, uint32_t thread)
{
	put(w, "x %" PRIu32 "\n", thread);
}

void events_writer_end(struct events_writer *w, uint64_t time_ns)
{
	put(w, "e %" PRIu64 "\n", time_ns);
}

int events_writer_free(struct events_writer *w)
{
	errno = 0;
	if (fflush(w->file) != 0)
		note_error(w);
	if (w->error)
		__fpurge(w->file); /* not even where there is room again */
	int r = w->error;
	free(w->file_id);
	vec_deinit(&w->unwritten);
	free(w);
	return r;
}

/* Letters of the lines that are events (events.c). */
static const char event_letters[] = "afbrmusctpkdoqzjR";

#define CUT_TAIL (1 << 20) /* bytes in which an event is looked for: the names of a file are last */

bool events_cut(const char *path, uint64_t *time_ns_out)
{
	off_t end = stream_cut_line(path);
	_cleanup_fclose_ FILE *file = end > 0 ? fopen(path, "re") : NULL;
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	if (!file || fseeko(file, MAX(end - CUT_TAIL, 0), SEEK_SET) != 0)
		return false;
	while (getline(&line, &capacity, file) > 2) {
		bool is_event = line[1] == ' ' && strchr(event_letters, line[0]);

		if (is_event)
			*time_ns_out = strtoull(line + 2, NULL, 10);
		found |= is_event;
	}
	return found;
}
