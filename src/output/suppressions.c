/*
 * Suppression files: one pass, line by line. Entries of other tools are read, too, so that an error
 * in them is found, and dropped.
 *
 * What --gen-suppressions printed is such a file as it is: what ptmem says between the entries is
 * skipped, in a list of leaks (--leaks-out), which begins with "leaks of process", and in messages,
 * whose lines begin with "ptmem: "; so is what Valgrind says, in lines that begin with "==7==".
 */
#include "output/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/shell_words.h"
#include "base/text.h"

#define ALL_KINDS 15u
#define FRAMES_MAX 500u /* of one that is printed; Valgrind reads that many */

static const char *const kind_names[] = {"definite", "indirect", "possible", "reachable"};

enum frame_type { FRAME_FUNCTION, FRAME_OBJECT, FRAME_SOURCE, FRAME_ANY };

struct frame_pattern {
	enum frame_type type;
	char *text;           /* owned; NULL with FRAME_ANY */
	uint32_t line;        /* FRAME_SOURCE; 0 = any */
};

struct suppression {
	char *name;           /* owned: as for suppressions_name */
	uint32_t kinds;       /* a bit for each */
	bool is_for_leaks;
	VEC(struct frame_pattern) frames;
};

struct suppressions {
	VEC(struct suppression) list;
};

/* -- reading -- */

struct suppressions_reader {
	struct suppressions *to;
	const char *path;
	FILE *file;
	char *line;           /* owned; without spaces around it */
	size_t capacity;
	size_t left;          /* bytes that may be read */
	unsigned number;
	bool is_message;      /* the line has ptmem's or Valgrind's mark */
	bool is_list;         /* of leaks: they are between the entries */
};

static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r\n");
	for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

/* What follows the mark of a message at the beginning of @text; NULL: there is none. */
static char *after_mark(char *text)
{
	size_t digits = strspn(text + MIN(strlen(text), (size_t)2), "0123456789");
	bool is_valgrinds = (strncmp(text, "==", 2) == 0 || strncmp(text, "--", 2) == 0) &&
			    digits && strncmp(text + 2 + digits, text, 2) == 0;

	return is_valgrinds			  ? text + digits + 4 :
	       text_begins_with(text, "ptmem: ") ? text + strlen("ptmem: ") :
						   NULL;
}

/* The next line that is neither empty nor a comment; NULL at the end. */
static char *next_line(struct suppressions_reader *r)
{
	while (stream_read_line(r->file, &r->line, &r->capacity, &r->left) >= 0 && r->left) {
		char *text = trim(r->line), *message = after_mark(text);

		r->number++;
		r->is_message = message;
		if (message)
			text = trim(message);
		if (*text && *text != '#')
			return text;
	}
	return NULL;
}

static int fail(const struct suppressions_reader *r, const char *what)
{
	log_error("%s:%u: %s", r->path, r->number, what);
	return -EINVAL;
}

/* "definite, possible" as bits. False if one is unknown. */
static bool parse_kinds(char *text, uint32_t *kinds_out)
{
	char *rest = text, *word;
	uint32_t kinds = 0;

	while ((word = strsep(&rest, ","))) {
		size_t i = 0;

		word = trim(word);
		while (i < ARRAY_SIZE(kind_names) && strcmp(kind_names[i], word) != 0)
			i++;
		if (i < ARRAY_SIZE(kind_names))
			kinds |= 1u << i;
		else if (strcmp(word, "all") == 0)
			kinds = ALL_KINDS;
		else if (strcmp(word, "none") != 0)
			return false;
	}
	*kinds_out = kinds;
	return true;
}

/* "Memcheck,Addrcheck:Leak": whether that is for leaks. False if it is no tool and kind. */
static bool parse_tool(const char *text, bool *is_for_leaks_out)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return false;
	_cleanup_free_ char *tools = xasprintf(",%.*s,", (int)(colon - text), text);

	*is_for_leaks_out = strstr(tools, ",Memcheck,") && strcmp(colon + 1, "Leak") == 0;
	return true;
}

/* "FILE:LINE" or "FILE"; as in Valgrind, what is no number after the colon is any line. */
static struct frame_pattern source_pattern(const char *text)
{
	const char *colon = strrchr(text, ':');

	if (!colon)
		return (struct frame_pattern){FRAME_SOURCE, xstrdup(text), 0};
	return (struct frame_pattern){FRAME_SOURCE, xstrndup(text, (size_t)(colon - text)),
				      (uint32_t)strtoul(colon + 1, NULL, 10)};
}

/* A line after the second one. Lines of other tools' entries may be anything. */
static int add_line(struct suppressions_reader *r, struct suppression *s, char *text)
{
	const char *value;
	char *kinds = strncmp(text, "match-leak-kinds:", 17) == 0 ? text + 17 : NULL;

	if (kinds && s->is_for_leaks)
		return parse_kinds(kinds, &s->kinds) ? 0 : fail(r, "unknown kind of leak");
	if (strcmp(text, "...") == 0)
		*vec_add(&s->frames) = (struct frame_pattern){.type = FRAME_ANY};
	else if ((value = text_after(text, "fun:")) && *value)
		*vec_add(&s->frames) = (struct frame_pattern){FRAME_FUNCTION, xstrdup(value), 0};
	else if ((value = text_after(text, "obj:")) && *value)
		*vec_add(&s->frames) = (struct frame_pattern){FRAME_OBJECT, xstrdup(value), 0};
	else if ((value = text_after(text, "src:")) && *value)
		*vec_add(&s->frames) = source_pattern(value);
	else if (s->is_for_leaks)
		return fail(r, "expected fun:PATTERN, obj:PATTERN, src:PATTERN, \"...\" or "
			       "\"}\"");
	return 0;
}

static void free_suppression(struct suppression *s)
{
	vec_release(&s->frames, e, free(e->text));
	free(s->name);
}

/* The lines between the braces. */
static int read_body(struct suppressions_reader *r, struct suppression *s)
{
	char *text = next_line(r);
	int rc = 0;

	if (!text)
		return fail(r, "the entry has no name");
	s->name = xasprintf("%s (%s:%u)", text, r->path, r->number);
	text = next_line(r);
	if (!text || !parse_tool(text, &s->is_for_leaks))
		return fail(r, "expected a tool and a kind of error, as in Memcheck:Leak");
	while (rc == 0 && (text = next_line(r)) && strcmp(text, "}") != 0)
		rc = add_line(r, s, text);
	if (rc == 0 && !text)
		return fail(r, "the last entry has no \"}\"");
	if (rc == 0 && s->is_for_leaks && s->frames.count == 0)
		return fail(r, "the entry has no frames");
	return rc;
}

/* Whether @text, which begins no entry, is said between entries; not what should be in one. */
static bool is_between(struct suppressions_reader *r, const char *text)
{
	static const char *const parts[] = {"fun:", "obj:", "src:", "match-leak-kinds:",
					    "Memcheck:", "..."};

	r->is_list |= text_begins_with(text, "leaks of process ");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (text_begins_with(text, parts[i]))
			return false;
	return (r->is_list || r->is_message) && strcmp(text, "}") != 0;
}

static int read_entries(struct suppressions_reader *r)
{
	char *text;
	int rc = 0;

	while (rc == 0 && (text = next_line(r))) {
		struct suppression s = {.kinds = ALL_KINDS};
		bool is_entry = strcmp(text, "{") == 0;

		if (!is_entry && is_between(r, text))
			continue;
		rc = is_entry ? read_body(r, &s) : fail(r, "expected \"{\"");
		if (rc == 0 && s.is_for_leaks)
			*vec_add(&r->to->list) = s;
		else
			free_suppression(&s);
	}
	if (rc == 0 && !r->left)
		rc = fail(r, "it is too large: no list of suppressions has 16 MiB");
	return rc;
}

static int read_file(struct suppressions *s, const char *path)
{
	struct suppressions_reader r = {.to = s, .path = path, .file = fopen(path, "re"),
					.left = TEXT_FILE_MAX};
	int rc = r.file ? 0 : -errno;

	if (r.file) {
		rc = read_entries(&r);
		fclose(r.file);
	} else {
		log_error("--suppressions: %s: %s", path, strerror(-rc));
	}
	free(r.line);
	return rc;
}

struct suppressions *suppressions_read(const char *const *path, size_t count)
{
	struct suppressions *s = xcalloc(1, sizeof(*s));

	for (size_t i = 0; i < count; i++)
		if (read_file(s, path[i]) != 0) {
			suppressions_free(s);
			return NULL;
		}
	return s;
}

void suppressions_free(struct suppressions *s)
{
	if (!s)
		return;
	vec_release(&s->list, e, free_suppression(e));
	free(s);
}

const char *suppressions_name(const struct suppressions *s, uint32_t index)
{
	return s->list.data[index].name;
}

/* -- matching -- */

static bool matches(const char *pattern, const char *text)
{
	return text && wildcard_matches(pattern, strlen(pattern), text);
}

static bool matches_frame(const struct frame_pattern *p, const struct suppression_frame *f)
{
	/* Valgrind calls unknown names "???", and matches them by patterns only */
	if (p->type == FRAME_OBJECT)
		return matches(p->text, f->object ? f->object : "???");
	if (p->type == FRAME_SOURCE)
		return matches(p->text, f->file ? f->file : "???") &&
		       (!p->line || p->line == f->line);
	return matches(p->text, f->raw) || matches(p->text, f->name ? f->name : "???");
}

/*
 * As for wildcards: after "..." the rest is tried at each frame. Only the last "..." has to be
 * tried again, since a later place for an earlier one leaves fewer frames for the rest.
 */
static bool matches_stack(const struct frame_pattern *p, size_t patterns,
			  const struct suppression_frame *f, size_t frames)
{
	size_t i = 0, k = 0, again_i = SIZE_MAX, again_k = 0;

	while (i < patterns) {
		if (p[i].type == FRAME_ANY) {
			again_i = ++i;
			again_k = k;
		} else if (k < frames && matches_frame(&p[i], &f[k])) {
			i++;
			k++;
		} else if (again_i != SIZE_MAX && again_k < frames) {
			i = again_i;
			k = ++again_k;
		} else {
			return false;
		}
	}
	return true;
}

/* Whether @p is for a function that allocates, which Valgrind replaces. */
static bool is_allocation(const struct frame_pattern *p)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign",
		"aligned_alloc", "valloc", "pvalloc", "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t",
		"_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
		"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
	};

	if (p->type == FRAME_OBJECT)
		return strstr(p->text, "vgpreload_") != NULL;
	for (size_t i = 0; p->type == FRAME_FUNCTION && i < ARRAY_SIZE(names); i++)
		if (matches(p->text, names[i]))
			return true;
	return false;
}

/* As the first pattern it is the function that allocates, whatever its name. */
static bool is_any_function(const struct frame_pattern *p)
{
	return p->type == FRAME_FUNCTION && strcmp(p->text, "*") == 0;
}

bool suppressions_match(const struct suppressions *s, unsigned kind,
			const struct suppression_frame *frame, size_t count, uint32_t *index_out)
{
	for (size_t i = 0; i < s->list.count; i++) {
		const struct suppression *e = &s->list.data[i];
		const struct frame_pattern *p = e->frames.data;
		size_t n = e->frames.count;

		if (!(e->kinds & 1u << kind))
			continue;
		if ((!is_any_function(p) && matches_stack(p, n, frame, count)) ||
		    (is_allocation(p) && matches_stack(p + 1, n - 1, frame, count))) {
			*index_out = (uint32_t)i;
			return true;
		}
	}
	return false;
}

/* -- writing -- */

void suppressions_print(unsigned kind, const struct suppression_frame *frame, size_t count,
			void (*line)(void *ctx, const char *text), void *ctx)
{
	_cleanup_free_ char *kinds = xasprintf("   match-leak-kinds: %s", kind_names[kind]);

	line(ctx, "{");
	line(ctx, "   <insert_a_suppression_name_here>");
	line(ctx, "   Memcheck:Leak");
	line(ctx, kinds);
	line(ctx, "   fun:*"); /* malloc or the like: the first frame in Valgrind's stacks */
	for (size_t i = 0; i < MIN(count, FRAMES_MAX); i++) {
		const char *shown = frame[i].name;
		/* Valgrind's symbols have start-up code by another name, or by that of reports. */
		bool is_below_main = shown && strcmp(shown, "(below main)") == 0;
		const char *name = frame[i].raw && !is_below_main ? frame[i].raw : shown;
		/* arguments of templates differ between compilers, in their spaces at least */
		const char *args = name && strncmp(name, "operator", 8) != 0 ? strchr(name, '<') :
									       NULL;
		_cleanup_free_ char *text =
			args ? xasprintf("   fun:%.*s<*", (int)(args - name), name) :
			name ? xasprintf("   fun:%s", name) :
			       xasprintf("   obj:%s", frame[i].object ? frame[i].object : "*");

		line(ctx, text);
		if (frame[i].is_repeated)
			line(ctx, "   ...");
	}
	line(ctx, "}");
}
