/* The grammar of --label: an argument has ":arg" before any member, a variable has not. */
#include "session/label_option.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void label_option_deinit(struct label_option *l)
{
	free(l->name);
	free(l->object);
	free(l->file);
	for (unsigned i = 0; i < l->steps; i++)
		free(l->step[i].member);
}

static bool is_name_character(char c)
{
	return c == '_' || (c | 32) - 'a' + 0u < 26 || text_is_digit(c);
}

/* Takes "->MEMBER" or "->+OFFSET" from *@pos. */
static const char *take_step(const char **pos, struct label_option *l)
{
	const char *start = *pos + 2, *end = start;
	struct label_step step = {0};

	if (l->steps == LABEL_STEPS_MAX)
		return "it has more than 8 members";
	if (*start == '+') {
		char *after;

		if (!text_is_digit(start[1]))
			return "after ->+ comes a number of bytes";
		step.offset = strtoull(start + 1, &after, 0);
		end = after;
		if (step.offset > INT32_MAX)
			return "such an offset is in no object";
	} else {
		while (is_name_character(*end))
			end++;
		if (end == start)
			return "after -> comes the name of a member, or +OFFSET";
		step.member = xstrndup(start, (size_t)(end - start));
	}
	l->step[l->steps++] = step;
	*pos = end;
	return NULL;
}

static const char *take_form(const char *text, struct label_option *l)
{
	static const char *const names[] = {"", ":str", ":int", ":hex"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i]) == 0) {
			l->form = (enum value_form)i;
			return NULL;
		}
	return "after the argument or variable come ->MEMBER and :str, :int or :hex";
}

/* Where the last ":arg" of @text is, before any member. */
static const char *find_argument(const char *text)
{
	const char *end = strstr(text, "->"), *found = NULL;

	for (const char *p = text; (p = strstr(p, ":arg")) && (!end || p < end); p++)
		found = p;
	return found;
}

/* The name before '=' in @text, which is a word; 0: it has none. */
static size_t name_size(const char *text)
{
	size_t n = 0;

	while (is_name_character(text[n]))
		n++;
	return text[n] == '=' ? n : 0;
}

static const char *parse_argument(const char *text, const char *argument, struct label_option *l,
				  const char **end_out)
{
	if (argument == text || argument[4] < '1' || argument[4] > '6')
		return "it is FUNCTION:argN, N from 1 to 6, as in handle_request:arg1->id, "
		       "or a variable";
	l->object = xstrndup(text, (size_t)(argument - text));
	l->arg = (unsigned)(argument[4] - '1');
	*end_out = argument + 5;
	return NULL;
}

/* The length of a variable's name at @text, which may be qualified: "ns::requests". */
static size_t variable_size(const char *text)
{
	size_t n = 0;

	for (;;) {
		if (is_name_character(text[n]))
			n++;
		else if (n && strncmp(text + n, "::", 2) == 0 && is_name_character(text[n + 2]))
			n += 2;
		else
			return n;
	}
}

/* Where the name of a variable begins, behind the file in @text. */
static const char *skip_file(const char *text)
{
	const char *colon = strchr(text, ':'), *member = strstr(text, "->");

	while (colon && colon[1] == ':')
		colon = strchr(colon + 2, ':');
	if (!colon || (member && member < colon) || !memchr(text, '.', (size_t)(colon - text)))
		return text;
	return colon + 1;
}

static const char *parse_variable(const char *text, struct label_option *l, const char **end_out)
{
	l->kind = LABEL_VARIABLE;
	if (strncmp(text, "tls:", 4) == 0) {
		l->is_thread_local = true;
		text += 4;
	}
	const char *start = skip_file(text);
	size_t size = variable_size(start);

	if (start != text)
		l->file = xstrndup(text, (size_t)(start - 1 - text));
	if (size == 0)
		return "it is FUNCTION:argN, as in handle_request:arg1->id, or a variable, as in "
		       "current_db or tls:current_request->id";
	l->object = xstrndup(start, size);
	*end_out = start + size;
	return NULL;
}

static char *usual_name(const struct label_option *l)
{
	if (l->steps && l->step[l->steps - 1].member)
		return xstrdup(l->step[l->steps - 1].member);
	if (l->kind == LABEL_ARGUMENT)
		return xasprintf("%s arg%u", l->object, l->arg + 1);
	return xstrdup(l->object);
}

const char *label_option_parse(const char *text, struct label_option *l)
{
	size_t named = name_size(text);
	const char *what = named ? text + named + 1 : text, *argument = find_argument(what);
	const char *why = NULL, *pos = "";

	*l = (struct label_option){.text = text};
	if (strncmp(what, "otel:", 5) == 0) {
		l->kind = LABEL_CONTEXT;
		l->object = xstrdup(what + 5);
		why = what[5] ? NULL : "after otel: comes the key of an attribute";
	} else if (argument) {
		why = parse_argument(what, argument, l, &pos);
	} else {
		why = parse_variable(what, l, &pos);
	}
	while (!why && strncmp(pos, "->", 2) == 0)
		why = take_step(&pos, l);
	if (why)
		return why;
	l->name = named ? xstrndup(text, named) : usual_name(l);
	return take_form(pos, l);
}
