/*
 * LIST    := SPEC { "," SPEC }
 * SPEC    := NAME { ":" SETTING } | PATH          a path has a slash, and no settings
 * SETTING := KEY "=" VALUE
 *
 * A value that is a number may end in K, M or G. glibc ignores tunables that it does not know, so
 * they are checked here; the others complain themselves.
 */
#include "report/whatif/allocator_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct malloc_choice {
	const char *name;
	const char *library[5];   /* sonames, the newest first; glibc: none is preloaded */
	const char *package;      /* of Debian */
	/* variable of the environment: one with all settings, or NULL: one for each */
	const char *variable;
	const char *prefix;       /* of each key in it, or of each variable */
	char between, after_key;  /* what separates settings, and key and value */
	const char *const *keys;  /* all that there are; NULL: not checked */
	bool has_timers;          /* returns memory after a time */
};

static const char *const tunables[] = {
	"arena_max", "arena_test", "hugetlb", "mmap_max", "mmap_threshold", "mxfast", "perturb",
	"tcache_count", "tcache_max", "tcache_unsorted_limit", "top_pad", "trim_threshold", NULL};

static const struct malloc_choice kinds[] = {
	{.name = "glibc", .library = {""}, .package = "libc6", .variable = "GLIBC_TUNABLES",
	 .prefix = "glibc.malloc.", .between = ':', .after_key = '=', .keys = tunables},
	{.name = "jemalloc", .library = {"libjemalloc.so.2", "libjemalloc.so.1"},
	 .package = "libjemalloc2", .variable = "MALLOC_CONF", .prefix = "", .between = ',',
	 .after_key = ':', .has_timers = true},
	{.name = "tcmalloc", .library = {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"},
	 .package = "libtcmalloc-minimal4", .prefix = "TCMALLOC_", .after_key = '='},
	{.name = "mimalloc",
	 .library = {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0",
		     "libmimalloc.so"},
	 .package = "libmimalloc2.0 or libmimalloc3", .prefix = "MIMALLOC_", .after_key = '=',
	 .has_timers = true},
};

static const struct malloc_choice *find_kind(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == size && memcmp(kinds[i].name, name, size) == 0)
			return &kinds[i];
	return NULL;
}

/* "128K" as "131072"; other values as they are. The caller frees it. */
static char *plain_value(const char *value)
{
	char *unit;
	uint64_t number = strtoull(value, &unit, 10);
	const char *found = *unit ? strchr("KMG", *unit) : NULL;

	if (!text_is_digit(*value) || !found || unit[1] || number > UINT32_MAX)
		return xstrdup(value);
	unsigned shift = *found == 'K' ? 10 : *found == 'M' ? 20 : 30;

	return xasprintf("%" PRIu64, number << shift);
}

static void append(char **to, char between, const char *text)
{
	_cleanup_free_ char *old = *to;

	*to = xasprintf("%s%c%s", old, between, text);
}

static char *upper_case(const char *key)
{
	char *copy = xstrdup(key);

	for (char *c = copy; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	return copy;
}

/* The caller frees it. */
static char *unknown_key(const struct malloc_choice *k, const char *key)
{
	_cleanup_free_ char *all = xstrdup(k->keys[0]);

	for (size_t i = 1; k->keys[i]; i++)
		append(&all, ' ', k->keys[i]);
	return xasprintf("malloc of %s has no tunable '%s', only %s", k->name, key, all);
}

static char *add_setting(struct allocator_spec *s, const char *setting)
{
	static const char of_keys[] = "abcdefghijklmnopqrstuvwxyz_0123456789.";
	const struct malloc_choice *k = s->kind;
	size_t size = strspn(setting, of_keys);
	_cleanup_free_ char *key = xstrndup(setting, size);

	if (!size || setting[size] != '=' || !setting[size + 1] ||
	    strpbrk(setting + size + 1, " =\t\n\"'\\"))
		return xasprintf("'%s' of %s is not like KEY=VALUE", setting, k->name);
	bool is_known = !k->keys;

	for (size_t i = 0; k->keys && k->keys[i]; i++)
		is_known |= strcmp(k->keys[i], key) == 0;
	if (!is_known)
		return unknown_key(k, key);
	_cleanup_free_ char *value = plain_value(setting + size + 1);
	_cleanup_free_ char *name = k->variable ? xstrdup(key) : upper_case(key);
	_cleanup_free_ char *word = xasprintf("%s%s%c%s", k->prefix, name, k->after_key, value);

	if (!s->setting && k->variable)
		s->setting = xasprintf("%s=%s", k->variable, word);
	else if (!s->setting)
		s->setting = xstrdup(word);
	else
		append(&s->setting, k->variable ? k->between : '\n', word);
	return NULL;
}

static char *parse_named(char *text, struct allocator_spec *out)
{
	char *rest = text, *name = strsep(&rest, ":"), *why = NULL;

	out->kind = find_kind(name, strlen(name));
	if (!out->kind)
		return xasprintf("'%s' is none of glibc, jemalloc, tcmalloc and mimalloc, nor the "
				 "path of a library", name);
	while (rest && !why)
		why = add_setting(out, strsep(&rest, ":"));
	return why;
}

static char *parse_path(const char *text, struct allocator_spec *out)
{
	if (strpbrk(text, " :\t\n"))
		return xasprintf("the loader takes no path with blanks or colons: %s", text);
	out->library = xstrdup(text);
	return NULL;
}

char *allocator_specs_parse(const char *list, allocator_specs *out)
{
	_cleanup_free_ char *copy = xstrdup(list);
	char *rest = copy, *why = NULL;

	while (rest && !why) {
		char *text = strsep(&rest, ",");

		if (!*text)
			return xstrdup("an allocator is missing beside a comma");
		if (out->count == ALLOCATOR_SPECS)
			return xstrdup("64 allocators are the most");
		struct allocator_spec *s = vec_add(out);

		*s = (struct allocator_spec){.text = xstrdup(text)};
		why = strchr(text, '/') ? parse_path(text, s) : parse_named(text, s);
	}
	return why;
}

void allocator_specs_deinit(allocator_specs *specs)
{
	vec_release(specs, s, (free(s->text), free(s->library), free(s->setting)));
}

const char *allocator_spec_library(const struct allocator_spec *spec, size_t i)
{
	if (!spec->kind)
		return i == 0 ? spec->library : NULL;
	return i < ARRAY_SIZE(spec->kind->library) ? spec->kind->library[i] : NULL;
}

bool allocator_spec_is(const struct allocator_spec *spec, const char *path)
{
	const char *base = text_base_name(path);

	if (!spec->kind)
		return strcmp(base, text_base_name(spec->library)) == 0;
	if (!*spec->kind->library[0])
		return text_begins_with(base, "libc.so") || text_begins_with(base, "libc-");
	_cleanup_free_ char *start = xasprintf("lib%s", spec->kind->name);

	return text_begins_with(base, start);
}

bool allocator_spec_has_timers(const struct allocator_spec *spec)
{
	return !spec->kind || spec->kind->has_timers;
}

char *allocator_spec_missing(const struct allocator_spec *spec)
{
	if (!spec->kind)
		return xasprintf("%s cannot be loaded, or has no malloc", spec->library);
	if (!*spec->kind->library[0])
		return xstrdup("ptmem-report does not run with glibc here");
	return xasprintf("%s is not installed: install %s (as Debian calls it), or name a library "
			 "by its path: --what-if=/usr/lib/libNAME.so",
			 spec->kind->name, spec->kind->package);
}
