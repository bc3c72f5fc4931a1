/*
 * Where the debug information of a stripped file is: on this machine, or on the servers that
 * DEBUGINFOD_URLS names.
 */
#ifndef PTMEM_SYMBOLS_DEBUG_FILES_H
#define PTMEM_SYMBOLS_DEBUG_FILES_H

#include <elfutils/libdw.h>
#include <stddef.h>

#include "base/elf_file.h"
#include "base/types.h"

/*
 * Finds the debug information of a stripped file: separate debug files by build-id and by
 * .gnu_debuglink, and the common file that dwz creates.
 */

/* The roots that are searched by default. */
#define DEBUGLINK_DIRS "/usr/lib/debug"

/*
 * The separate debug file of @file, opened (the caller releases it), or NULL. @dirs:
 * colon-separated roots. Looks for ROOT/.build-id/xx/yyyy.debug, then for the name in
 * .gnu_debuglink next to the file, in .debug next to it, and in ROOT/its directory; a file is
 * accepted only if its build-id or, without one, its checksum matches. Each name is tried in the
 * root directory of @file, then in ours.
 */
struct elf_file *debuglink_find(struct elf_file *file, const char *dirs);

/* The same for the file at @path, if that is it by its build-id. */
struct elf_file *debuglink_open(struct elf_file *file, const char *path);

/*
 * The debug information of @file, together with that of the file that its .gnu_debugaltlink refers
 * to, *alt_out: it is searched for as above, if *alt_file is NULL. The caller releases and ends
 * these three. NULL: there is none, or it may not be read, for libdw would look for a common file
 * that is not found here by itself: it opens whatever has that name, and would wait for a FIFO.
 */
Dwarf *debuglink_begin(const struct elf_file *file, const char *dirs, struct elf_file **alt_file,
		       Dwarf **alt_out);

/*
 * The unit of a .dwo file that has the tree of @cu_die, a skeleton read from @file; false: there is
 * none, or what has its name is no file.
 */
bool debuglink_find_split(const struct elf_file *file, Dwarf_Die *cu_die, Dwarf_Die *split_out);

/*
 * Debug files by build-id from the servers that DEBUGINFOD_URLS names, through libdebuginfod, which
 * is loaded when it is needed and has a cache of its own. A child process does the work, so that no
 * server can hang or crash its caller. What it finds is not verified.
 */

struct debuginfod_request {
	const uint8_t *build_id;
	size_t build_id_size;
	const char *name;      /* of the object, for messages */
};

struct debuginfod_ops {
	/* the debug file of request @index is at @path */
	void (*found)(void *ctx, size_t index, const char *path);
	bool (*should_stop)(void *ctx); /* asked ten times a second */
	void *ctx;
};

/* Whether the environment names servers. */
bool debuginfod_is_configured(void);

/*
 * Asks for each of @count debug files, and returns when the last one has arrived, when nothing has
 * arrived for DEBUGINFOD_TIMEOUT seconds (10 if not set), or when it should stop. On a terminal a
 * line shows the progress.
 */
void debuginfod_fetch(const struct debuginfod_request *request, size_t count,
		      const struct debuginfod_ops *ops);

#endif
