/*
 * Parses one line of a massif tree (doc/massif.md section 1.3). Function names are free text with
 * spaces and parentheses, so the location is searched from the end: the closing parenthesis at the
 * end of the line and the matching opening one, if the text in between looks like a location.
 */
#include "report/massif_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/estimate.h"

static bool take_prefix(struct massif_text *t, const char *prefix)
{
	size_t n = strlen(prefix);

	if (t->size < n || memcmp(t->at, prefix, n))
		return false;
	t->at += n;
	t->size -= n;
	return true;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Removes a number in @base from the start; false if there is none or it exceeds 64 bits. */
static bool take_based_number(struct massif_text *t, unsigned base, uint64_t *out)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < t->size; n++) {
		int digit = digit_value(t->at[n]);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	if (!n)
		return false;
	t->at += n;
	t->size -= n;
	*out = value;
	return true;
}

/* Splits "FILE:LINE". */
static bool split_source(struct massif_text t, struct massif_frame *out)
{
	const char *colon = memrchr(t.at, ':', t.size);

	if (!colon || colon == t.at)
		return false;
	struct massif_text number = {colon + 1, t.size - (size_t)(colon + 1 - t.at)};
	uint64_t line;

	if (!take_based_number(&number, 10, &line) || number.size)
		return false;
	out->file = (struct massif_text){t.at, (size_t)(colon - t.at)};
	out->line_number = line;
	return true;
}

/* The parenthesis that matches the one at the end of @t; t.size if there is none. */
static size_t find_opening(struct massif_text t)
{
	size_t depth = 0;

	for (size_t i = t.size; i-- > 0;) {
		if (t.at[i] == ')')
			depth++;
		else if (t.at[i] == '(' && --depth == 0)
			return i;
	}
	return t.size;
}

/*
 * Removes "(LOCATION)", which begins at @open, from the end of @t; false if it is not a
 * location.
 */
static bool take_location(struct massif_text t, size_t open, struct massif_frame *out)
{
	if (open + 2 > t.size || t.at[open] != '(' || (open && t.at[open - 1] != ' '))
		return false;
	struct massif_text inside = {t.at + open + 1, t.size - open - 2};
	struct massif_text object = inside;

	if (take_prefix(&object, "in "))
		out->object = object;
	else if (!split_source(inside, out))
		return false;
	out->location = inside;
	out->function.size = open ? open - 1 : 0;
	return true;
}

/*
 * Splits off the location at the end of @t, if there is one, from the name before it. Unbalanced
 * parentheses in a path hide its start: then the last plausible place is used.
 */
static void split_location(struct massif_text t, struct massif_frame *out)
{
	out->function = t;
	if (!t.size || t.at[t.size - 1] != ')' || take_location(t, find_opening(t), out))
		return;
	for (size_t open = t.size; open-- > 0;)
		if (take_location(t, open, out))
			return;
}

void massif_file_frame(const struct massif_node *node, struct massif_frame *out)
{
	struct massif_text t = node->text;
	uint64_t number;

	while (take_prefix(&t, " "))
		;
	*out = (struct massif_frame){.line = MASSIF_LINE_ROOT, .function = t};
	struct massif_text rest = t;

	if (take_prefix(&rest, "in ") && take_based_number(&rest, 10, &number) &&
	    take_prefix(&rest, " place")) {
		out->line = MASSIF_LINE_AGGREGATE;
		out->places = number;
		return;
	}
	rest = t;
	if (take_prefix(&rest, "0x") && take_based_number(&rest, 16, &number) &&
	    take_prefix(&rest, ": ")) {
		out->line = MASSIF_LINE_FRAME;
		out->address = number;
		split_location(rest, out);
		if (!out->function.size)
			out->function = (struct massif_text){"???", 3};
	}
}

#define SAMPLING_OPTION "--heap-sample="

/* "512K" at @s, which ends at @end; 0 if it is not a number. */
static uint64_t parse_bytes(const char *s, const char *end)
{
	uint64_t bytes = 0;
	unsigned shift = 0;

	for (; s < end && *s >= '0' && *s <= '9' && bytes <= ESTIMATE_INTERVAL_MAX; s++)
		bytes = bytes * 10 + (uint64_t)(*s - '0');
	if (s < end && strchr("KMG", *s))
		shift = *s == 'K' ? 10 : *s == 'M' ? 20 : 30;
	return bytes <= ESTIMATE_INTERVAL_MAX >> shift ? bytes << shift : 0;
}

uint64_t massif_sampling_interval(const struct massif_file *file)
{
	const char *at = file->desc.at, *end = at + file->desc.size;
	uint64_t interval = 0;

	/* the last one wins, as on the command line */
	while (at &&
	       (at = memmem(at, (size_t)(end - at), SAMPLING_OPTION, strlen(SAMPLING_OPTION)))) {
		at += strlen(SAMPLING_OPTION);
		interval = parse_bytes(at, end);
	}
	return interval > 1 ? interval : 0;
}

/*
 * Reads massif.out files line by line, like ms_print: blank lines and comments are skipped, and the
 * number of children (not the indentation) defines the nesting. It uses an explicit stack, so depth
 * only takes memory.
 *
 * The file is untrusted: every number is checked for its range, every index for its width, and too
 * large a number of children ends with the file. Error messages are the same as ms_print's, if it
 * has any.
 */

#define SHOWN_OF_BAD_LINE 200

/* A node whose children are still to be read. */
struct open_node {
	uint32_t node, last_child;
	uint64_t missing;
};

struct massif_reader {
	struct massif_file *file;
	size_t at;                /* next byte to read */
	uint32_t line_number;     /* number of the last line read */
	struct massif_text line;  /* the last line read, without its line end */
	bool is_end;              /* there are no more lines; line is empty */
	char *why;                /* the first error; NULL = none */
	VEC(struct open_node) open;
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct massif_text skip_spaces(struct massif_text t)
{
	for (; t.size && is_space(*t.at); t.at++)
		t.size--;
	return t;
}

static struct massif_text skip(struct massif_text t, size_t n)
{
	return (struct massif_text){.at = t.at + n, .size = t.size - n};
}

static bool has_prefix(struct massif_text t, const char *prefix)
{
	size_t n = strlen(prefix);

	return t.size >= n && !memcmp(t.at, prefix, n);
}

/* Removes decimal digits from the start of *@t. False if there are none or they exceed 64 bits. */
static bool take_number(struct massif_text *t, uint64_t *out)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < t->size && text_is_digit(t->at[n]); n++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(t->at[n] - '0'), &value))
			return false;
	if (!n)
		return false;
	*t = skip(*t, n);
	*out = value;
	return true;
}

/* Blank, or only a comment. */
static bool is_void(struct massif_text t)
{
	t = skip_spaces(t);
	return !t.size || *t.at == '#';
}

/* For lines without free text: @t up to its comment. */
static struct massif_text without_comment(struct massif_text t)
{
	const char *comment = memchr(t.at, '#', t.size);

	return (struct massif_text){t.at, comment ? (size_t)(comment - t.at) : t.size};
}

/* Reads the next line that is not empty or a comment. */
static void next_line(struct massif_reader *r)
{
	const struct massif_file *f = r->file;

	while (r->at < f->size) {
		const char *start = f->data + r->at;
		size_t rest = f->size - r->at;
		const char *end = memchr(start, '\n', rest);
		size_t size = end ? (size_t)(end - start) : rest;

		r->at += end ? size + 1 : size;
		r->line_number++;
		r->line = (struct massif_text){start, size};
		if (!is_void(r->line))
			return;
	}
	r->line = (struct massif_text){f->data + f->size, 0};
	r->is_end = true;
}

ATTR_PRINTF(2, 3) static void fail(struct massif_reader *r, const char *fmt, ...)
{
	va_list args;
	char *text;

	if (r->why)
		return;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	r->why = xasprintf("Line %" PRIu32 ": %s", r->line_number, text);
	free(text);
}

/* An error that shows the line; terminal control characters are masked. */
static void fail_expected(struct massif_reader *r, const char *what)
{
	char shown[SHOWN_OF_BAD_LINE + 1];
	size_t n = MIN(r->line.size, (size_t)SHOWN_OF_BAD_LINE);

	for (size_t i = 0; i < n; i++)
		shown[i] = (unsigned char)r->line.at[i] < ' ' || r->line.at[i] == 0x7f ?
				   '?' :
				   r->line.at[i];
	shown[n] = '\0';
	if (r->is_end)
		fail(r, "expected %s line, got end of file", what);
	else
		fail(r, "expected %s line, got:\n%s", what, shown);
}

static uint32_t add_node(struct massif_reader *r, uint32_t parent, uint64_t bytes,
			 struct massif_text text)
{
	struct massif_file *f = r->file;

	f->node = xgrow(f->node, &f->node_capacity, f->node_count + 1, sizeof(*f->node));
	f->node[f->node_count] = (struct massif_node){
		.bytes = bytes,
		.parent = parent,
		.line = r->line_number,
		.text = text,
	};
	return (uint32_t)f->node_count++;
}

/* Adds @node to the children of the innermost open node. */
static void link_node(struct massif_reader *r, uint32_t node)
{
	if (!r->open.count)
		return;
	struct open_node *parent = &r->open.data[r->open.count - 1];

	if (parent->last_child)
		r->file->node[parent->last_child].next_sibling = node;
	else
		r->file->node[parent->node].first_child = node;
	parent->last_child = node;
	parent->missing--;
}

/* Parses the line: spaces "n" CHILDREN ":" spaces BYTES TEXT. */
static bool parse_tree_line(struct massif_reader *r, uint64_t *children_out, uint64_t *bytes_out,
			    struct massif_text *text_out)
{
	struct massif_text t = skip_spaces(r->line);
	uint64_t children, bytes;

	if (!has_prefix(t, "n"))
		return false;
	t = skip(t, 1);
	if (!take_number(&t, &children) || !has_prefix(t, ":"))
		return false;
	t = skip_spaces(skip(t, 1));
	if (!take_number(&t, &bytes))
		return false;
	*children_out = children;
	*bytes_out = bytes;
	*text_out = t;
	return true;
}

/* Reads one line of a tree below the innermost open node; returns its index, 0 after an error. */
static uint32_t read_node(struct massif_reader *r, uint64_t total)
{
	uint64_t children, bytes;
	struct massif_text text;

	next_line(r);
	if (r->is_end || !parse_tree_line(r, &children, &bytes, &text)) {
		fail_expected(r, "a tree node");
		return 0;
	}
	if (bytes > total) {
		fail(r, "%" PRIu64 " bytes in a snapshot of %" PRIu64, bytes, total);
		return 0;
	}
	if (r->open.count >= MASSIF_FILE_MAX_DEPTH || r->file->node_count >= UINT32_MAX) {
		fail(r, "the tree is too large (%d levels at most)", MASSIF_FILE_MAX_DEPTH);
		return 0;
	}
	uint32_t parent = r->open.count ? r->open.data[r->open.count - 1].node : 0;
	uint32_t node = add_node(r, parent, bytes, text);

	link_node(r, node);
	*vec_add(&r->open) = (struct open_node){.node = node, .missing = children};
	return node;
}

static uint32_t read_tree(struct massif_reader *r, uint64_t total)
{
	r->open.count = 0;
	uint32_t root = read_node(r, total);

	while (!r->why && r->open.count) {
		if (r->open.data[r->open.count - 1].missing)
			read_node(r, total);
		else
			r->open.count--;
	}
	return root;
}

/* The text after "@field=" in the current line. */
static struct massif_text read_field(struct massif_reader *r, const char *field)
{
	struct massif_text t = without_comment(r->line);
	size_t n = strlen(field);

	if (r->why)
		return (struct massif_text){0};
	if (!r->is_end && has_prefix(t, field) && t.size > n && t.at[n] == '=')
		return skip(t, n + 1);
	_cleanup_free_ char *quoted = xasprintf("\"%s\"", field);

	fail_expected(r, quoted);
	return (struct massif_text){0};
}

static uint64_t read_number(struct massif_reader *r, const char *field)
{
	struct massif_text t = read_field(r, field);
	uint64_t value = 0;

	if (!r->why && (!take_number(&t, &value) || skip_spaces(t).size))
		fail(r, "expected a number after \"%s=\"", field);
	return value;
}

static uint64_t read_next_number(struct massif_reader *r, const char *field)
{
	next_line(r);
	return read_number(r, field);
}

static bool contains(struct massif_text t, const char *s)
{
	return memmem(t.at, t.size, s, strlen(s));
}

static enum massif_kind read_kind(struct massif_reader *r)
{
	next_line(r);
	struct massif_text t = read_field(r, "heap_tree");

	if (r->why || massif_text_is(t, "empty"))
		return MASSIF_EMPTY;
	if (massif_text_is(t, "peak"))
		return MASSIF_PEAK;
	if (!contains(t, "detailed") && !contains(t, "peak"))
		fail(r, "expected 'empty' or '...' after 'heap_tree='");
	return MASSIF_DETAILED;
}

/* Reads a snapshot whose first line is the current one; afterwards the line after it is current. */
static void read_snapshot(struct massif_reader *r)
{
	struct massif_file *f = r->file;
	struct massif_snapshot s = {.number = read_number(r, "snapshot")};

	s.time = read_next_number(r, "time");
	s.heap = read_next_number(r, "mem_heap_B");
	s.extra = read_next_number(r, "mem_heap_extra_B");
	s.stacks = read_next_number(r, "mem_stacks_B");
	if (__builtin_add_overflow(s.heap, s.extra, &s.total) ||
	    __builtin_add_overflow(s.total, s.stacks, &s.total))
		fail(r, "the sizes of the snapshot exceed 64 bits");
	s.kind = read_kind(r);
	if (!r->why && s.kind != MASSIF_EMPTY)
		s.root = read_tree(r, s.total);
	if (r->why)
		return;
	f->snapshot = xgrow(f->snapshot, &f->snapshot_capacity, f->snapshot_count + 1, sizeof(s));
	f->snapshot[f->snapshot_count++] = s;
	f->largest_total = MAX(f->largest_total, s.total);
	if (s.kind == MASSIF_PEAK)
		f->peak = s.number;
	next_line(r);
}

/* Appends the text after "desc:" in the current line, with its line end if there is one. */
static void add_desc(struct massif_reader *r)
{
	struct massif_file *f = r->file;
	struct massif_text t = skip(r->line, strlen("desc:"));
	size_t old = f->desc.size;

	f->desc_data = xrealloc(f->desc_data, old + t.size + 1, 1);
	memcpy(f->desc_data + old, t.at, t.size);
	f->desc = (struct massif_text){f->desc_data, old + t.size};
	if (f->data[r->at - 1] == '\n')
		f->desc_data[f->desc.size++] = '\n';
}

static void read_header(struct massif_reader *r)
{
	for (next_line(r); has_prefix(r->line, "desc:"); next_line(r))
		add_desc(r);
	if (!has_prefix(r->line, "cmd:")) {
		fail(r, "missing 'cmd' line");
		return;
	}
	r->file->command = skip_spaces(skip(r->line, strlen("cmd:")));
	next_line(r);
	if (!has_prefix(r->line, "time_unit:")) {
		fail(r, "missing 'time_unit' line");
		return;
	}
	r->file->time_unit = skip_spaces(without_comment(skip(r->line, strlen("time_unit:"))));
	next_line(r);
}

int massif_file_parse(char *data, size_t size, struct massif_file **file_out, char **why_out)
{
	struct massif_file *f = xcalloc(1, sizeof(*f));
	struct massif_reader r = {.file = f};

	f->data = data;
	f->size = size;
	f->peak = SIZE_MAX;
	add_node(&r, 0, 0, (struct massif_text){0});
	read_header(&r);
	while (!r.why && !r.is_end)
		read_snapshot(&r);
	vec_deinit(&r.open);
	if (r.why) {
		massif_file_free(f);
		*why_out = r.why;
		return -EINVAL;
	}
	if (f->peak >= f->snapshot_count)
		f->peak = SIZE_MAX;
	if (f->node_count > 1)
		f->memory = memory_kind_of_root(f->node[1].text.at, f->node[1].text.size);
	*file_out = f;
	return 0;
}

void massif_file_free(struct massif_file *file)
{
	if (!file)
		return;
	free(file->data);
	free(file->desc_data);
	free(file->snapshot);
	free(file->node);
	free(file);
}

uint64_t massif_own_bytes(const struct massif_file *file, uint32_t node)
{
	uint64_t own = file->node[node].bytes;

	for (uint32_t c = file->node[node].first_child; c; c = file->node[c].next_sibling)
		own -= MIN(own, file->node[c].bytes);
	return own;
}

uint32_t massif_tree_end(const struct massif_file *file, uint32_t root)
{
	uint32_t end = root + 1;

	while (end < file->node_count && file->node[end].parent)
		end++;
	return end;
}

bool massif_text_is(struct massif_text t, const char *s)
{
	return t.size == strlen(s) && has_prefix(t, s);
}
