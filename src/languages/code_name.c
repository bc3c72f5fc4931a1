/* The forms of names: CPython's Python/perf_trampoline.c, V8's src/logging/log.cc. */
#include "languages/code_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/proc.h"
#include "base/text.h"

void code_name_deinit(struct code_name *n)
{
	free(n->function);
	free(n->path);
	*n = (struct code_name){0};
}

/* Takes ":NUMBER" from the end of [@s, *@end). */
static bool take_number(const char *s, const char **end, uint64_t *out)
{
	const char *at = *end;

	while (at > s && at[-1] >= '0' && at[-1] <= '9')
		at--;
	if (at == s || at[-1] != ':' || !proc_parse_number(at, *end, 10, out) || *out > UINT32_MAX)
		return false;
	*end = at - 1;
	return true;
}

/* Where a script's name begins in [@s, @end): after the function's, which can have blanks. */
static const char *find_path(const char *s, const char *end)
{
	static const char *const begins[] = {" /", " file://", " node:", " wasm:"};
	const char *best = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		const char *at = strstr(s, begins[i]);

		if (at && at < end && (!best || at < best))
			best = at;
	}
	for (const char *at = end; !best && at > s; at--)
		best = at[-1] == ' ' ? at - 1 : NULL;
	return best;
}

static void parse_script(const char *s, struct code_name *out)
{
	const char *end = s + strlen(s), *path, *rest;
	uint64_t column, line = 0;

	if (*s && strchr("~^+*", *s))
		s++; /* how it was compiled */
	path = find_path(s, end);
	if (!path) {
		out->function = xstrdup(s);
		return;
	}
	if (!take_number(path + 1, &end, &column) || !take_number(path + 1, &end, &line)) {
		end = s + strlen(s);
		line = 0;
	}
	rest = text_after(path + 1, "file://");
	rest = rest && rest < end ? rest : path + 1;
	out->function = path > s ? xmemdup(s, (size_t)(path - s) + 1) : xstrdup("(anonymous)");
	if (path > s)
		out->function[path - s] = '\0';
	if (rest < end) {
		out->path = xmemdup(rest, (size_t)(end - rest) + 1);
		out->path[end - rest] = '\0';
		out->line = (uint32_t)line;
	}
}

void code_name_parse(const char *text, struct code_name *out)
{
	static const char *const scripts[] = {"JS:", "LazyCompile:", "Function:", "Script:",
					      "Eval:"};
	const char *python = text_after(text, "py::"), *colon = python ? strchr(python, ':') : NULL;

	*out = (struct code_name){0};
	if (colon && colon > python && colon[1]) {
		out->function = xmemdup(python, (size_t)(colon - python) + 1);
		out->function[colon - python] = '\0';
		out->path = xstrdup(colon + 1);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		const char *rest = text_after(text, scripts[i]);

		if (rest) {
			parse_script(rest, out);
			return;
		}
	}
	out->function = xstrdup(text);
}
