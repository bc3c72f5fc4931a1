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
bool wrapper_is_below_main(const char *function)
{
	return function && strcmp(function, "(below main)") == 0;
}

bool wrapper_is_named(const char *function)
{
	return function && *function && strcmp(function, "???") != 0 &&
	       !wrapper_is_below_main(function);
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

/* See session/memory_source.h for pseudo frames. */
static enum frame_rank rank_of_pseudo(const char *name)
{
	static const char *const mappings[] = {"[file ", "[stack]", "[shared memory]"};

	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		if (strncmp(name, mappings[i], strlen(mappings[i])) == 0)
			return RANK_MAPPING;
	}
	return RANK_UNNAMED;
}

enum frame_rank wrapper_rank_named(const char *function)
{
	return wrapper_is_named(function) ? RANK_FUNCTION : RANK_UNNAMED;
}

/* Whether @name is of an instance for a closure, or of one that only calls what it is given. */
static bool is_caller(const char *name, size_t size)
{
	static const char *const parts[] = {
		"{lambda", "'lambda", "$_", "{closure", "{{closure",
		"::_State_impl<", "::_Async_state_impl<", "::_Deferred_state<", "::_Task_state<",
		"::_Function_handler<", "::__invoke", "::__thread_proxy", "::__func<",
		"::__async_assoc_state<", "::__deferred_assoc_state<",
		"::__rust_begin_short_backtrace", "::call_once", "::call_mut",
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (memmem(name, size, parts[i], strlen(parts[i])))
			return true;
	}
	return false;
}

/* The length of the qualified name @name without parameters. */
static size_t name_length(const char *name)
{
	int depth = 0;

	for (const char *s = name; *s; s++) {
		depth += (*s == '<') - (*s == '>' && s > name && s[-1] != '-');
		if (depth <= 0 && *s == '(' && strncmp(s, "(anonymous", 10) != 0)
			return (size_t)(s - name);
	}
	return strlen(name);
}

/*
 * Without source lines the functions inlined into an instance of a template or generic function are
 * not known: the instance is taken instead. Names of Rust may lack their arguments.
 */
static enum frame_rank rank_of_standard(const struct frame_text *frame)
{
	const char *object = frame->object;
	bool is_programs = object && *object && strcmp(object, "???") != 0 &&
			   !standard_is_library(object);
	bool has_line = frame->file && *frame->file;

	if (!wrapper_is_named(frame->function))
		return RANK_STANDARD;
	const char *name = standard_qualified_name(frame->function);
	size_t size = name_length(name);

	if (is_programs && !has_line && is_caller(name, size))
		return RANK_CALLER;
	if (standard_is_thread_start(frame->function))
		return RANK_THREAD;
	bool is_rust = strncmp(name, "core::", 6) == 0 || strncmp(name, "alloc::", 7) == 0;

	return is_programs && !has_line && (is_rust || memchr(name, '<', size)) ? RANK_INSTANCE :
										 RANK_STANDARD;
}

/* What HotSpot's parts get memory by, in whose place they are shown. */
static bool is_java_allocator(const char *function)
{
	static const char *const names[] = {
		"AllocateHeap(", "ReallocateHeap(", "Arena::", "ChunkPool::", "Chunk::",
		"resource_allocate_bytes(", "resource_reallocate_bytes(",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(function, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static enum frame_rank rank_of_runtime(const char *function, bool is_java)
{
	bool is_wrapper = wrapper_is_malloc_like(function) ||
			  (is_java && function && is_java_allocator(function));

	return wrapper_is_named(function) && !is_wrapper ? RANK_RUNTIME : RANK_FUNCTION;
}

enum frame_rank wrapper_rank(const struct frame_text *frame)
{
	if (frame->function && *frame->function == '[')
		return rank_of_pseudo(frame->function);
	enum standard_library library = standard_library(frame);

	switch (library) {
	case STANDARD_LOADER:
		return RANK_LOADER;
	case STANDARD_CXX_RUST:
		return rank_of_standard(frame);
	case STANDARD_JAVA:
	case STANDARD_NODE:
		return rank_of_runtime(frame->function, library == STANDARD_JAVA);
	case STANDARD_C:
	case STANDARD_MALLOC:
	case STANDARD_PACKAGE:
		return wrapper_rank_named(frame->function);
	case STANDARD_NONE:
		break;
	}
	return wrapper_is_malloc_like(frame->function) ? RANK_FUNCTION : RANK_SITE;
}

bool wrapper_is_better(enum frame_rank rank, enum frame_rank best)
{
	bool is_innermost = rank == RANK_UNNAMED || rank == RANK_INSTANCE || rank == RANK_CALLER ||
			    rank == RANK_RUNTIME;

	return rank > best || (rank == best && !is_innermost);
}

const char *wrapper_label(enum frame_rank rank)
{
	return rank == RANK_LOADER ? "[dynamic loader]" : NULL;
}

static bool get_frame(const struct stack *s, size_t i, struct stack_frame *out)
{
	return s->frame(s->ctx, i, out);
}

/* Whether the nearest named frame from @i on is an allocator's. */
static bool is_part_of_allocator(const struct stack *s, size_t i)
{
	struct stack_frame f;

	for (; get_frame(s, i, &f); i++) {
		if (f.is_named)
			return f.is_allocator;
	}
	return false;
}

/* The frame that represents the unnamed frame @i of @object. */
static size_t find_representative(const struct stack *s, size_t i, const char *object)
{
	struct stack_frame f;

	for (size_t k = i; object && get_frame(s, k, &f); k++) {
		if (!f.object || (f.object != object && strcmp(f.object, object) != 0))
			break;
		if (f.is_named)
			return k;
	}
	return i;
}

struct stack_site stack_site_find(const struct stack *s)
{
	struct stack_site best = {.rank = RANK_SITE};
	struct stack_frame f;

	for (size_t i = 0; get_frame(s, i, &f); i++) {
		/* generated code, of the run-time system in it */
		if (f.rank == RANK_SITE && !f.is_named && !f.object && best.rank == RANK_RUNTIME)
			f.rank = RANK_UNNAMED;
		if (f.rank == RANK_SITE && f.is_named)
			return (struct stack_site){.frame = i};
		if (f.rank == RANK_SITE && !is_part_of_allocator(s, i))
			return (struct stack_site){find_representative(s, i, f.object), f.rank,
						   true};
		if (f.rank == RANK_SITE)
			f.rank = RANK_UNNAMED;
		if (i == 0 || wrapper_is_better(f.rank, best.rank))
			best = (struct stack_site){.frame = i, .rank = f.rank};
		if (f.rank == RANK_THREAD)
			break;
	}
	return best;
}
