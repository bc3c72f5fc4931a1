/*
 * Which demangler a symbol needs is seen by its first characters; anything else is
 * not asked for at all, since libiberty would take some plain C names for types.
 *
 * A version (name@VER, name@@VER) is no part of the mangled name: it is cut off first
 * and put back behind the demangled one.
 */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#undef ARRAY_SIZE /* libiberty's; base/types.h has the same */
#include "base/alloc.h"
#include "base/cleanup.h"

/*
 * libiberty gives up at 1,024 characters unless told not to, which long templates
 * exceed. Its recursion is bounded by the length: this one fits any stack.
 */
#define LENGTH_MAX 8192

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || (name[1] == 'D' && name[2]));
}

static char *demangle_plain(const char *name)
{
	int options = DMGL_ANSI | DMGL_PARAMS;
	if (strlen(name) <= LENGTH_MAX)
		options |= DMGL_NO_RECURSE_LIMIT;
	switch (name[1]) {
	case 'R':
		return rust_demangle(name, options);
	case 'D':
		return dlang_demangle(name, options);
	default: { /* Rust's legacy names are C++ names with a hash at the end: first asked for */
		char *rust = rust_demangle(name, options);
		return rust ? rust : cplus_demangle_v3(name, options);
	}
	}
}

char *demangle(const char *name)
{
	if (!is_mangled(name))
		return NULL;
	const char *version = strchr(name, '@');
	if (!version)
		return demangle_plain(name);
	_cleanup_free_ char *bare = xstrndup(name, (size_t)(version - name));
	_cleanup_free_ char *plain = demangle_plain(bare);
	return plain ? xasprintf("%s%s", plain, version) : NULL;
}
