/* See wrapper.h. The standard libraries are known by standard_library.h. */
#include "symbols/wrapper.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/types.h"

static bool has_end(const char *name, size_t length, const char *end)
{
	size_t n = strlen(end);
	return length >= n && strncasecmp(name + length - n, end, n) == 0;
}

/* The length of @name without parameters, digits and the suffixes of variants. */
static size_t bare_length(const char *name)
{
	static const char *const variants[] = {"_usable", "_internal"};
	size_t length = strcspn(name, "<(");
	while (length > 0 && (isdigit((unsigned char)name[length - 1]) || name[length - 1] == '_'))
		length--;
	for (size_t i = ARRAY_SIZE(variants); i-- > 0;) {
		if (has_end(name, length, variants[i]))
			length -= strlen(variants[i]);
	}
	return length;
}

/* Whether the last part of @name, undecorated, ends like an allocation function. */
static bool is_named_like_malloc(const char *name)
{
	static const char *const ends[] = {
		"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc",
		"alloc", "allocate", "strdup", "strndup", "memdup", "asprintf",
	};
	size_t length = bare_length(name);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (has_end(name, length, ends[i]))
			return true;
	}
	return false;
}

/* "(below main)" has the same caller in all programs, so it is as useless as no name. */
bool wrapper_is_named(const char *function)
{
	return function && *function && strcmp(function, "???") != 0 &&
	       strcmp(function, "(below main)") != 0;
}

bool wrapper_is_malloc_like(const char *function)
{
	if (!wrapper_is_named(function))
		return false;
	const char *name = standard_qualified_name(function);

	return is_named_like_malloc(name) || strncmp(name, "operator new", 12) == 0 ||
	       strncmp(name, "operator delete", 15) == 0;
}

bool wrapper_is_allocator(const char *function)
{
	return wrapper_is_named(function) &&
	       (standard_is_namespace(function) ||
		is_named_like_malloc(standard_qualified_name(function)));
}

/* See session/sources.h for pseudo frames. */
static enum frame_rank rank_of_pseudo(const char *name)
{
	static const char *const mappings[] = {"[file ", "[stack]", "[shared memory]"};

	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		if (strncmp(name, mappings[i], strlen(mappings[i])) == 0)
			return RANK_MAPPING;
	}
	return RANK_UNNAMED;
}

static enum frame_rank rank_of_function(const char *function)
{
	return wrapper_is_named(function) ? RANK_FUNCTION : RANK_UNNAMED;
}

enum frame_rank wrapper_rank(const struct frame_text *frame)
{
	if (frame->function && *frame->function == '[')
		return rank_of_pseudo(frame->function);
	switch (standard_library(frame)) {
	case STANDARD_LOADER:
		return RANK_LOADER;
	case STANDARD_CXX_RUST:
		return RANK_STANDARD;
	case STANDARD_C:
	case STANDARD_MALLOC:
	case STANDARD_PACKAGE:
		return rank_of_function(frame->function);
	case STANDARD_NONE:
		break;
	}
	return wrapper_is_malloc_like(frame->function) ? RANK_FUNCTION : RANK_SITE;
}

bool wrapper_is_better(enum frame_rank rank, enum frame_rank best)
{
	return rank > best || (rank == best && rank != RANK_UNNAMED);
}

const char *wrapper_label(enum frame_rank rank)
{
	return rank == RANK_LOADER ? "[dynamic loader]" : NULL;
}
