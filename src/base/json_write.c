/* Writes JSON: strings in valid UTF-8, and what separates values. See json_write.h. */
#include "base/json_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"

/* -- strings -- */

static void put_shown(FILE *out, const char *s, size_t size, bool is_for_pages)
{
	_cleanup_free_ char *clean = text_clean(s, size);

	putc('"', out);
	for (const char *p = clean; *p; p++) {
		if (*p == '"' || *p == '\\')
			putc('\\', out);
		if (*p == '<' && is_for_pages)
			fputs("\\u003c", out);
		else
			putc(*p, out);
	}
	putc('"', out);
}

/* As UTF-16, which readers turn into the character again. */
static void put_escaped(FILE *out, uint32_t c)
{
	if (c > 0xffff)
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			0xdc00 + (c & 0x3ff));
	else
		fprintf(out, "\\u%04x", c);
}

static void put_exact(FILE *out, const char *text, size_t size)
{
	putc('"', out);
	while (size > 0) {
		size_t n = utf8_character(text, size);

		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			fprintf(out, "\\u%04x", *text);
		else if (n == 0)
			fputs("\\ufffd", out);
		else if (n > 1 && utf8_unseen(text, n))
			put_escaped(out, utf8_unseen(text, n));
		else
			fwrite(text, 1, n, out);
		text += MAX(n, 1u);
		size -= MAX(n, 1u);
	}
	putc('"', out);
}

/* -- values -- */

/* What comes before a value or, with @is_end, before a closing bracket. */
static void begin(struct json_writer *w, const char *name, bool is_end)
{
	if (w->has_value && !is_end)
		putc(',', w->out);
	if (w->begins_line)
		fprintf(w->out, "\n%*s", (int)w->indent, "");
	else if (w->has_value && !is_end && w->is_spaced)
		putc(' ', w->out);
	if (name)
		fprintf(w->out, "\"%s\":%s", name, w->is_spaced ? " " : "");
	w->begins_line = false;
	w->has_value = true;
}

void json_write_name(struct json_writer *w, const char *name)
{
	begin(w, name, false);
}

void json_write_open(struct json_writer *w, const char *name, char bracket)
{
	begin(w, name, false);
	putc(bracket, w->out);
	CHECK(w->depth < 64);
	uint64_t level = UINT64_C(1) << w->depth++;

	w->arrays = bracket == '[' ? w->arrays | level : w->arrays & ~level;
	w->has_value = false;
}

void json_write_close(struct json_writer *w, unsigned levels)
{
	for (; levels > 0; levels--) {
		begin(w, NULL, true);
		CHECK(w->depth > 0);
		putc(w->arrays >> --w->depth & 1 ? ']' : '}', w->out);
	}
}

struct json_writer *json_write_line(struct json_writer *w, unsigned indent)
{
	w->begins_line = true;
	w->indent = indent;
	return w;
}

void json_write_text_n(struct json_writer *w, const char *name, const char *text, size_t size)
{
	begin(w, name, false);
	if (w->escape == JSON_EXACT)
		put_exact(w->out, text, size);
	else
		put_shown(w->out, text, size, w->escape == JSON_FOR_PAGES);
}

void json_write_text(struct json_writer *w, const char *name, const char *text)
{
	if (text)
		json_write_text_n(w, name, text, strlen(text));
	else
		json_write_format(w, name, "null");
}

void json_write_bool(struct json_writer *w, const char *name, bool value)
{
	begin(w, name, false);
	fputs(value ? "true" : "false", w->out);
}

void json_write_number(struct json_writer *w, const char *name, uint64_t value)
{
	begin(w, name, false);
	fprintf(w->out, "%" PRIu64, value);
}

void json_write_each(struct json_writer *w, const struct json_number *number)
{
	for (; number->name; number++)
		json_write_number(w, number->name, number->value);
}

void json_write_all(struct json_writer *w, const char *name, const struct json_number *number)
{
	json_write_open(w, name, '{');
	json_write_each(w, number);
	json_write_close(w, 1);
}

void json_write_format(struct json_writer *w, const char *name, const char *format, ...)
{
	va_list args;

	begin(w, name, false);
	va_start(args, format);
	vfprintf(w->out, format, args);
	va_end(args);
}
