/* Bounds are in bytes: each part is cut before it is written, and the whole is counted. */
#include "output/brief.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

#define TITLE_MOST 200u
#define FACT_MOST 160u
#define FACTS_MOST 6u
#define WHAT_MOST 100u
#define NAME_MOST 120u
#define COMMAND_MOST 400u
#define HEAD_MOST 1500u /* the title, and the facts that fit */

void brief_deinit(struct brief *b)
{
	free(b->title);
	vec_release(&b->facts, e, free(*e));
	vec_release(&b->findings, e, {
		free(e->what);
		free(e->name);
		free(e->more);
	});
	b->title = NULL;
}

/* A visible copy of at most @most bytes; frees @text. */
static char *bound(char *text, size_t most)
{
	_cleanup_free_ char *clean = text_clean(text, strlen(text));
	size_t characters = text_length(clean);
	char *cut = text_cut(clean, most);

	free(text);
	/* of characters with several bytes there may be fewer */
	while (strlen(cut) > most && characters > 0) {
		free(cut);
		characters = MIN(characters, most) * 3 / 4;
		cut = text_cut(clean, characters);
	}
	return cut;
}

void brief_set_title(struct brief *b, char *title)
{
	free(b->title);
	b->title = bound(title, TITLE_MOST);
}

void brief_add_fact(struct brief *b, char *text)
{
	char *fact = bound(text, FACT_MOST);

	if (b->facts.count < FACTS_MOST)
		*vec_add(&b->facts) = fact;
	else
		free(fact);
}

/* A name is shortened where that hurts least. */
static char *bound_name(char *name)
{
	_cleanup_free_ char *clean = text_clean(name, strlen(name));

	free(name);
	return bound(text_shorten_site(clean, NAME_MOST), NAME_MOST);
}

void brief_add(struct brief *b, uint64_t bytes, char *what, char *name, char *more)
{
	*vec_add(&b->findings) = (struct brief_finding){
		bytes, bound(what, WHAT_MOST), name ? bound_name(name) : NULL, more};
}

/* -- commands -- */

char *brief_shell_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:=,+@%^";
	_cleanup_free_ char *text = NULL, *clean = text_clean(word, strlen(word));
	bool is_visible = strcmp(clean, word) == 0;
	size_t size;
	FILE *f;

	if (*word && !word[strspn(word, plain)])
		return xstrdup(word);
	f = open_memstream(&text, &size);
	CHECK(f);
	fputs(is_visible ? "'" : "$'", f);
	for (const char *s = word; *s; s++) {
		if (is_visible && *s == '\'')
			fputs("'\\''", f);
		else if (!is_visible && (*s < ' ' || *s > '~' || *s == '\'' || *s == '\\'))
			fprintf(f, "\\x%02x", (unsigned)(uint8_t)*s);
		else
			putc(*s, f);
	}
	putc('\'', f);
	CHECK(!fclose(f));
	return_ptr(text);
}

static bool is_brief_option(const char *word)
{
	return strcmp(word, "--brief") == 0 || text_begins_with(word, "--format=");
}

/* NULL: it is too long to be shown. */
static char *make_command(const struct brief_command *c, const char *more)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	for (size_t i = 0; c->argv && c->argv[i]; i++) {
		_cleanup_free_ char *word = brief_shell_word(c->argv[i]);

		if (i < c->options && is_brief_option(c->argv[i]))
			continue;
		fprintf(f, "%s%s", i ? " " : "", word);
		if (i == 0 && more && *more)
			fprintf(f, " %s", more);
	}
	CHECK(!fclose(f));
	if (size == 0 || size > COMMAND_MOST)
		return NULL;
	return_ptr(text);
}

static void put_command(FILE *f, const struct brief *b, const char *more, enum brief_form form)
{
	_cleanup_free_ char *command = make_command(&b->command, more);
	bool has_more = more && *more;

	if (command && form == BRIEF_TEXT) {
		fprintf(f, "            $ %s\n", command);
	} else if (command) {
		fputs("  ", f);
		markdown_put_code(f, command);
		fputs("\n", f);
	} else {
		fprintf(f, "  (the same command without --brief%s%s)\n",
			has_more ? ", and with " : "",
			has_more && strlen(more) < WHAT_MOST ? more : "");
	}
}

/* -- the report -- */

static int compare(const void *a, const void *b)
{
	const struct brief_finding *x = a, *y = b;
	int order;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	order = strcmp(x->what, y->what);
	return order ? order : strcmp(x->name ?: "", y->name ?: "");
}

static char *finding_text(const struct brief *b, const struct brief_finding *e,
			  enum brief_form form)
{
	_cleanup_free_ char *text = NULL;
	char bytes[AMOUNT_SIZE];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	amount_bytes((double)e->bytes, bytes);
	if (form == BRIEF_TEXT) {
		fprintf(f, "%10s  %s%s%s\n", bytes, e->what, e->name ? " " : "",
			e->name ? e->name : "");
	} else {
		fprintf(f, "- **%s** ", bytes);
		markdown_put_words(f, e->what);
		if (e->name) {
			putc(' ', f);
			markdown_put_code(f, e->name);
		}
		fputs("\n", f);
	}
	put_command(f, b, e->more, form);
	CHECK(!fclose(f));
	return_ptr(text);
}

static void put_line(FILE *f, const char *text, const char *end, enum brief_form form)
{
	if (form == BRIEF_TEXT)
		fputs(text, f);
	else
		markdown_put_words(f, text);
	fputs(form == BRIEF_TEXT ? "\n" : end, f);
}

/* With what precedes lines. */
static size_t size_of(const struct brief *b, const char *text)
{
	size_t size = strlen(text);

	for (const char *s = text; b->prefix && (s = strchr(s, '\n')); s++)
		size += b->prefix;
	return size;
}

/* Returns the number of bytes. */
static size_t put_head(FILE *file, const struct brief *b, enum brief_form form)
{
	size_t used = 0;

	for (size_t i = 0; i <= b->facts.count; i++) {
		_cleanup_free_ char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		CHECK(f);
		if (i == 0 && form == BRIEF_MARKDOWN)
			fputs("### ", f);
		put_line(f, i == 0 ? b->title ?: "" : b->facts.data[i - 1],
			 i == 0 ? "\n\n" : "  \n", form);
		CHECK(!fclose(f));
		if (used + size_of(b, text) > HEAD_MOST)
			continue;
		fputs(text, file);
		used += size_of(b, text);
	}
	putc('\n', file);
	return used + 1 + b->prefix;
}

static char *rest_text(const struct brief *b, size_t left, enum brief_form form)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	if (left > 0)
		fprintf(f, "%s%zu smaller finding%s, and all of it:\n",
			form == BRIEF_TEXT ? "            " : "- ", left, plural(left));
	else
		fprintf(f, "%sall of it:\n", form == BRIEF_TEXT ? "            " : "- ");
	put_command(f, b, b->all, form);
	CHECK(!fclose(f));
	return_ptr(text);
}

void brief_print(FILE *file, struct brief *b, enum brief_form form)
{
	_cleanup_free_ char *longest = rest_text(b, b->findings.count, form);
	size_t used = put_head(file, b, form) + size_of(b, longest), shown = 0;

	vec_sort(&b->findings, compare);
	for (; shown < b->findings.count; shown++) {
		_cleanup_free_ char *text = finding_text(b, &b->findings.data[shown], form);

		if (used + size_of(b, text) > BRIEF_SIZE)
			break;
		used += size_of(b, text);
		fputs(text, file);
	}
	_cleanup_free_ char *rest = rest_text(b, b->findings.count - shown, form);

	fputs(rest, file);
}
