/* Loads libmicrohttpd, or finds it in the program. */
#if __has_include(<microhttpd.h>)
#include "listen/http_library.h"

#include <dlfcn.h>
#include <stddef.h>

#define LIBRARY "libmicrohttpd.so.12"

/* Only a program that is linked statically has none. */
extern const char _DYNAMIC[] __attribute__((weak));

/* Only a program with which the library is linked has them. */
#define X(name) extern __typeof__(name) name __attribute__((weak));
HTTP_FUNCTIONS(X)
#undef X

static const char *load(struct http_library *lib)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

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

const char *http_library_load(struct http_library *lib)
{
	if (!MHD_start_daemon && _DYNAMIC)
		return load(lib);
	if (!MHD_start_daemon)
		return "this ptmem is linked statically without libmicrohttpd, and cannot load "
		       "it: use one that scripts/package has built, or --record";
#define X(name) lib->name = name;
	HTTP_FUNCTIONS(X)
#undef X
	return NULL;
}

#endif
