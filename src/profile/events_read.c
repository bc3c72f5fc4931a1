/* Single characters of event files. */
#include "profile/events.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "profile/estimate.h"

/* The encoding is that of events.c. */

/* The value of a decimal or hexadecimal digit; INT_MAX if it is none. */
static int event_text_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

/* Decodes one escape; returns the byte or -1. Advances *at, which is after the backslash. */
static int event_text_unescape(const char **at)
{
	char c = *(*at)++;
	if (c == '\\')
		return '\\';
	if (c == 'n')
		return '\n';
	if (c == 't')
		return '\t';
	if (c != 'x' || event_text_digit((*at)[0]) > 15 || event_text_digit((*at)[1]) > 15)
		return -1;
	int value = event_text_digit((*at)[0]) * 16 + event_text_digit((*at)[1]);
	*at += 2;
	return value ? value : -1;
}

/*
 * The reader of event files; the grammar is at the head of events.c.
 *
 * The file is untrusted: each line is parsed by a cursor that stays within it, each field is
 * checked, and the first error ends reading with the line number and a reason. Node ids are dense,
 * so the table of nodes is never larger than the file.
 */

/* The maximum sum of a file's sizes: bytes of profiles are added twice, and must not overflow. */
#define BYTES_MAX (UINT64_C(1) << 62)
#define FIRST_LINE "ptmem-events 1"

/* Letters of lines, by event_kind - 1; 'j' and 'R' are events, too. */
static const char events[] = "afbrmusctpkdoqz";

struct line_reader {
	struct calltree *tree;
	const struct events_reader_ops *ops;
	const char *at;           /* the rest of the line */
	const char *why;          /* NULL: no error */
	VEC(uint32_t) node;       /* id in the file -> node; [0] = root */
	VEC(struct events_module) module; /* all in the file; path is not kept; unmapped: end 0 */
	size_t last_module;       /* index of the last one found */
	uint64_t bytes;           /* sum of sizes that change a profile */
	uint64_t interval;        /* of samples; 0 = not of samples */
	uint8_t sample_shift;     /* of the samples that follow */
	uint64_t weighted;        /* of the next block; 0 = its size */
	bool has_header, has_event, has_end;
};

static bool fail(struct line_reader *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return false;
}

/* Fields. After an error they return 0 and r->why is kept. */

static uint64_t number(struct line_reader *r, int base, uint64_t max)
{
	uint64_t value = 0;
	if (*r->at != ' ') {
		fail(r, "a field is missing, or fields are not apart by one blank");
		return 0;
	}
	const char *start = ++r->at;
	for (; event_text_digit(*r->at) < base; r->at++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)event_text_digit(*r->at), &value) ||
		    value > max) {
			fail(r, "a number is too large");
			return 0;
		}
	}
	if (r->at == start || (*r->at && *r->at != ' '))
		fail(r, "a field is not a number");
	return r->why ? 0 : value;
}

static uint64_t decimal(struct line_reader *r)
{
	return number(r, 10, UINT64_MAX);
}

static uint32_t decimal32(struct line_reader *r)
{
	return (uint32_t)number(r, 10, UINT32_MAX);
}

static uint64_t hex(struct line_reader *r)
{
	return number(r, 16, UINT64_MAX);
}

static bool at_end(struct line_reader *r)
{
	if (!r->why && *r->at)
		return fail(r, "more fields than the record has");
	return !r->why;
}

/* Decodes text up to @stop ('\0': the end of the line). The caller frees it; NULL on error. */
static char *text(struct line_reader *r, char stop)
{
	_cleanup_free_ char *out = xmalloc(strlen(r->at) + 1);
	size_t n = 0;
	while (*r->at && *r->at != stop) {
		int c = (unsigned char)*r->at++;
		if (c == '\\') {
			if (!*r->at || (c = event_text_unescape(&r->at)) < 0) {
				fail(r, "an escape is not one of \\\\ \\n \\t \\xHH");
				return NULL;
			}
		} else if (c < 0x20) {
			fail(r, "a control character in a text");
			return NULL;
		}
		out[n++] = (char)c;
	}
	if (*r->at != stop) {
		fail(r, "a field of a name is missing");
		return NULL;
	}
	if (stop)
		r->at++;
	out[n] = '\0';
	return_ptr(out);
}

/* The space before a text. */
static bool blank(struct line_reader *r)
{
	if (!r->why && *r->at != ' ')
		return fail(r, "the text is missing");
	if (!r->why)
		r->at++;
	return !r->why;
}

/* Records. */

static struct events_module *find_module(struct line_reader *r, uint32_t id)
{
	if (r->last_module < r->module.count && r->module.data[r->last_module].id == id)
		return &r->module.data[r->last_module];
	for (size_t i = 0; i < r->module.count; i++) {
		if (r->module.data[i].id != id)
			continue;
		r->last_module = i;
		return &r->module.data[i];
	}
	return NULL;
}

static void read_header(struct line_reader *r)
{
	uint32_t pid = decimal32(r);
	uint64_t start_ns = decimal(r);
	_cleanup_free_ char *command = blank(r) ? text(r, '\0') : NULL;
	if (r->why)
		return;
	r->has_header = true;
	if (r->ops->header)
		r->ops->header(r->ops->ctx, command, pid, start_ns);
}

static void read_sampling(struct line_reader *r)
{
	uint64_t interval = decimal(r), seed = decimal(r);
	if (!at_end(r))
		return;
	if (interval < 2 || interval > ESTIMATE_INTERVAL_MAX)
		fail(r, "a mean distance of samples that is less than 2 or more than 2^40");
	else if (r->has_event)
		fail(r, "sampling begins after events");
	if (r->why)
		return;
	r->interval = interval;
	if (r->ops->sampling)
		r->ops->sampling(r->ops->ctx, interval, seed);
}

static void read_shift(struct line_reader *r)
{
	uint8_t shift = (uint8_t)number(r, 10, ESTIMATE_SHIFT_MAX);

	if (!at_end(r))
		return;
	if (!r->interval)
		fail(r, "a shift of the interval without an interval");
	else
		r->sample_shift = shift;
}

static void read_total(struct line_reader *r)
{
	uint8_t function = (uint8_t)number(r, 10, HEAP_FUNCTION_COUNT - 1);
	struct call_total total = {.calls = decimal(r)};
	total.bytes = decimal(r);
	if (at_end(r) && r->ops->total)
		r->ops->total(r->ops->ctx, function, &total);
}

static void read_load(struct line_reader *r)
{
	struct events_module m = { .id = decimal32(r) };
	m.start = hex(r);
	m.end = hex(r);
	m.bias = hex(r);
	_cleanup_free_ char *path = blank(r) ? text(r, '\0') : NULL;
	struct events_module *old = find_module(r, m.id);

	if (!r->why && (!m.id || (old && old->end)))
		fail(r, "a module id is 0 or in use");
	if (!r->why && m.start >= m.end)
		fail(r, "a module ends before it starts");
	if (r->why)
		return;
	if (old)
		calltree_recall(r->tree, m.id);
	else
		old = vec_add(&r->module);
	*old = m;
	m.path = path;
	if (r->ops->module)
		r->ops->module(r->ops->ctx, &m);
}

static void read_unmapped(struct line_reader *r)
{
	struct events_module m = { .id = decimal32(r) };
	struct events_module *old = find_module(r, m.id);
	if (!at_end(r))
		return;
	if (!old || !old->end) {
		fail(r, "no such module");
		return;
	}
	calltree_forget(r->tree, old->start, old->end);
	old->end = 0;
	if (r->ops->module)
		r->ops->module(r->ops->ctx, &m);
}

/* The frame of @pc in @module. In the tree the address may still belong to an unmapped module. */
static uint32_t frame_of(struct line_reader *r, taddr_t pc, uint32_t module)
{
	uint32_t frame = calltree_get_frame(r->tree, pc, module);
	if (calltree_frame(r->tree, frame)->module == module)
		return frame;
	calltree_forget(r->tree, pc, pc + 1);
	return calltree_get_frame(r->tree, pc, module);
}

static void read_node(struct line_reader *r)
{
	uint32_t id = decimal32(r), parent = decimal32(r);
	taddr_t pc = hex(r);
	uint32_t module = decimal32(r);
	if (!at_end(r))
		return;
	if (id != r->node.count)
		fail(r, "node ids are not 1, 2, 3, ...");
	else if (parent >= id)
		fail(r, "a node comes before its parent");
	else if (module && !find_module(r, module))
		fail(r, "no such module");
	if (r->why)
		return;
	uint32_t node = calltree_get_child(r->tree, r->node.data[parent], frame_of(r, pc, module));
	*vec_add(&r->node) = node;
}

static void read_name(struct line_reader *r)
{
	struct events_name n = { .pc = hex(r) };
	n.module = decimal32(r);
	n.line = decimal32(r);
	n.is_inlined = number(r, 10, 1);
	_cleanup_free_ char *name = blank(r) ? text(r, '\t') : NULL;
	_cleanup_free_ char *file = r->why ? NULL : text(r, '\t');
	_cleanup_free_ char *dir = r->why ? NULL : text(r, '\0');
	if (r->why)
		return;
	n.name = *name ? name : NULL;
	n.file = *file ? file : NULL;
	n.dir = *dir ? dir : NULL;
	if (r->ops->name)
		r->ops->name(r->ops->ctx, &n);
}

/* Whether the sizes can be added up. Failed calls may request any size. */
static bool add_bytes(struct line_reader *r, const struct event *ev, char letter)
{
	bool is_made = ev->addr ? strchr("aRrmz", letter) != NULL : letter == 's' || letter == 'p';

	if (r->interval && strchr("mupz", letter))
		return fail(r, "not of samples: mappings, counts and blocks from before are exact");
	if (!is_made)
		return true;
	if (__builtin_add_overflow(r->bytes, ev->size, &r->bytes) ||
	    __builtin_add_overflow(r->bytes, ev->align, &r->bytes) ||
	    __builtin_add_overflow(r->bytes, ev->weighted, &r->bytes) ||
	    __builtin_add_overflow(r->bytes, r->interval << r->sample_shift, &r->bytes) ||
	    r->bytes > BYTES_MAX)
		return fail(r, "sizes add up to more than 2^62 bytes");
	return true;
}

static void read_event(struct line_reader *r, enum event_kind kind, char letter)
{
	struct event ev = { .kind = (uint8_t)kind, .is_inner = letter == 'j' };
	ev.time_ns = decimal(r);
	ev.thread = decimal32(r);
	ev.function = (uint8_t)number(r, 10, UINT8_MAX);
	uint32_t node = decimal32(r);
	if (kind == EVENT_REALLOC_BEGIN || kind == EVENT_REALLOC_END ||
	    kind == EVENT_MAPPING_CALL || letter == 'R')
		ev.old_addr = hex(r);
	bool has_only_sp = kind == EVENT_SAMPLE || kind == EVENT_STACK_BASE ||
			   kind == EVENT_PROGRAM_END;
	if (kind != EVENT_REALLOC_BEGIN && kind != EVENT_STACK && kind != EVENT_COUNT &&
	    kind != EVENT_RESIDENT && !has_only_sp)
		ev.addr = hex(r);
	if (kind != EVENT_FREE && kind != EVENT_REALLOC_BEGIN && !has_only_sp)
		ev.size = decimal(r);
	if (kind == EVENT_ALLOC || kind == EVENT_MAPPING_CALL || kind == EVENT_RESIDENT)
		ev.align = decimal(r);
	if (!r->why && *r->at)
		ev.sp = hex(r);
	if (!at_end(r))
		return;
	if (node >= r->node.count) {
		fail(r, "no such node");
		return;
	}
	ev.sample_shift = ev.addr && strchr("aRr", letter) ? r->sample_shift : 0;
	ev.weighted = kind == EVENT_ALLOC ? r->weighted : 0;
	r->weighted = 0;
	if (!add_bytes(r, &ev, letter))
		return;
	ev.node = r->node.data[node];
	r->has_event = true;
	if (r->ops->event)
		r->ops->event(r->ops->ctx, &ev);
}

static void read_value(struct line_reader *r)
{
	_cleanup_free_ char *key = blank(r) ? text(r, ' ') : NULL;
	_cleanup_free_ char *value = r->why ? NULL : text(r, '\0');

	if (!r->why && !*key)
		fail(r, "a value without a key");
	else if (!r->why && r->ops->value)
		r->ops->value(r->ops->ctx, key, value);
}

static void read_thread_exit(struct line_reader *r)
{
	uint32_t thread = decimal32(r);
	if (at_end(r) && r->ops->thread_exit)
		r->ops->thread_exit(r->ops->ctx, thread);
}

static void read_touched(struct line_reader *r)
{
	taddr_t addr = hex(r);
	uint64_t bytes = decimal(r);

	if (at_end(r) && r->ops->touched)
		r->ops->touched(r->ops->ctx, addr, bytes);
}

static void read_touch_size(struct line_reader *r)
{
	uint64_t least = decimal(r);

	if (!r->why && r->has_event)
		fail(r, "after the first event");
	if (at_end(r) && r->ops->touch_size)
		r->ops->touch_size(r->ops->ctx, least);
}

static void read_end(struct line_reader *r)
{
	uint64_t time_ns = decimal(r);
	if (!at_end(r))
		return;
	r->has_end = true;
	if (r->ops->end)
		r->ops->end(r->ops->ctx, time_ns);
}

static void read_record(struct line_reader *r, char letter)
{
	const char *event = strchr(events, letter);
	if (event)
		read_event(r, (enum event_kind)(event - events + 1), letter);
	else if (letter == 'j')
		read_event(r, EVENT_FREE, letter);
	else if (letter == 'R')
		read_event(r, EVENT_ALLOC, letter);
	else if (letter == 'n')
		read_node(r);
	else if (letter == 'y')
		read_sampling(r);
	else if (letter == 'Y')
		read_shift(r);
	else if (letter == 'w')
		read_total(r);
	else if (letter == 'W')
		r->weighted = decimal(r);
	else if (letter == 'l')
		read_load(r);
	else if (letter == 'g')
		read_unmapped(r);
	else if (letter == 'i')
		read_name(r);
	else if (letter == 'v')
		read_value(r);
	else if (letter == 'x')
		read_thread_exit(r);
	else if (letter == 'M')
		read_touch_size(r);
	else if (letter == 'T')
		read_touched(r);
	else if (letter == 'e')
		read_end(r);
	else
		fail(r, "no such kind of line");
}

/* The process executed another program: what follows is of that. */
static void begin_again(struct line_reader *r)
{
	if (!r->has_header || r->has_end || !r->ops->restart) {
		fail(r, "a second first line, but not after an exec");
		return;
	}
	struct calltree *tree = r->ops->restart(r->ops->ctx);
	const struct line_reader next = {
		.tree = tree, .ops = r->ops, .node = r->node, .module = r->module};

	*r = next;
	r->node.count = 1;
	r->module.count = 0;
}

static void read_line(struct line_reader *r, const char *line, unsigned number_of_line)
{
	bool is_first = strcmp(line, FIRST_LINE) == 0;
	r->at = line;
	if (number_of_line == 1) {
		if (!is_first)
			fail(r, "not an event file (the first line is not \"" FIRST_LINE "\")");
		return;
	}
	if (is_first) {
		begin_again(r);
		return;
	}
	if (!*line || *line == '#')
		return;
	r->at++;
	if (r->has_end)
		fail(r, "a line after the end");
	else if (*line == 'h' && !r->has_header)
		read_header(r);
	else if (*line == 'h')
		fail(r, "a second header");
	else if (!r->has_header)
		fail(r, "no header");
	else
		read_record(r, *line);
}

/* Takes the line feed off. False: nothing can be read of @line, which may be cut. */
static bool trim(struct line_reader *r, char *line, size_t length)
{
	if (memchr(line, '\0', length))
		return fail(r, "a NUL character");
	if (line[length - 1] != '\n')
		return r->ops->cut ? false : fail(r, "the last line is cut");
	line[length - 1] = '\0';
	return true;
}

/* All lines are read. */
static void check_end(struct line_reader *r, unsigned lines)
{
	if (r->has_end)
		return;
	if (lines == 0)
		fail(r, "the file is empty");
	else if (r->ops->cut && r->has_header)
		r->ops->cut(r->ops->ctx, lines);
	else
		fail(r, "the file is cut: it has no end line");
}

int events_read(FILE *file, struct calltree *t, const struct events_reader_ops *ops,
		unsigned *line_out, const char **why_out)
{
	struct line_reader r = { .tree = t, .ops = ops };
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	unsigned number_of_line = 1;
	ssize_t length;
	*vec_add(&r.node) = 0;
	for (; !r.why && (length = getline(&line, &capacity, file)) > 0; number_of_line++) {
		if (trim(&r, line, (size_t)length))
			read_line(&r, line, number_of_line);
		if (r.why)
			break;
	}
	if (!r.why && ferror(file))
		fail(&r, "the file cannot be read");
	else if (!r.why)
		check_end(&r, number_of_line - 1);
	vec_deinit(&r.node);
	vec_deinit(&r.module);
	if (!r.why)
		return 0;
	*line_out = number_of_line;
	*why_out = r.why;
	return -EINVAL;
}
