/*
 * The first characters of a symbol select the demangler. Other symbols are not passed to libiberty,
 * which would take some plain C names for types. A version (name@VER, name@@VER) is not part of the
 * mangled name: it is cut off before and appended afterwards.
 */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#undef ARRAY_SIZE /* libiberty's; base/types.h defines it, too */
#include "base/alloc.h"
#include "base/cleanup.h"

/*
 * The same limits as Valgrind's. libiberty gives up on C++ names above 1,024 characters, which
 * bounds its recursion: these stay mangled, as in Valgrind.
 */
#define OPTIONS (DMGL_ANSI | DMGL_PARAMS)

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || (name[1] == 'D' && name[2]));
}

static char *demangle_plain(const char *name)
{
	switch (name[1]) {
	case 'R':
		return rust_demangle(name, OPTIONS);
	case 'D':
		return dlang_demangle(name, OPTIONS);
	default: { /* Rust's legacy names are C++ names with a hash at the end: tried first */
		char *rust = rust_demangle(name, OPTIONS);
		return rust ? rust : cplus_demangle_v3(name, OPTIONS);
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
