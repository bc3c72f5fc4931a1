/* Loads libmicrohttpd. */
#if __has_include(<microhttpd.h>)
#include "listen/http_library.h"

#include <dlfcn.h>
#include <stddef.h>

#define LIBRARY "libmicrohttpd.so.12"

/* Only a program that is linked statically has none. */
extern const char _DYNAMIC[] __attribute__((weak));

const char *http_library_load(struct http_library *lib)
{
	void *handle = _DYNAMIC ? dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!_DYNAMIC)
		return "this ptmem is linked statically, and cannot load libmicrohttpd: use one "
		       "that is not, from outside of the container or in a sidecar, or --record";
	if (!handle)
		return "it needs libmicrohttpd: install the package libmicrohttpd12, or run "
		       "scripts/install-deps build";
#define X(name)                                                                 \
	*(void **)&lib->name = dlsym(handle, #name);                            \
	if (!lib->name)                                                         \
		return "libmicrohttpd is too old: " #name " is not in it";
	HTTP_FUNCTIONS(X)
#undef X
	return NULL;
}

#endif
