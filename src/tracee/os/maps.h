/*
 * The memory map of a process, as /proc/PID/maps prints it.
 */
#ifndef PTMEM_TRACEE_OS_MAPS_H
#define PTMEM_TRACEE_OS_MAPS_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"

struct map {
	taddr_t start, end;
	uint64_t offset;
	dev_t dev;
	ino_t ino;
	bool is_read, is_write, is_exec, is_shared;
	bool is_deleted;   /* the path ended in " (deleted)", which is cut off */
	char *path;        /* "" for anonymous memory; "[heap]", "[stack]", "[vdso]", ...; owned */
};

/* Whether @line of smaps or status is "@key N kB": then *bytes_out becomes that, in bytes. */
bool maps_take_bytes(const char *line, const char *key, uint64_t *bytes_out);

struct maps {
	VEC(struct map) list; /* ascending, not overlapping */
};

/* Parses one line (without newline). -EINVAL for anything the kernel would not print. */
int maps_parse_line(const char *line, struct map *out);

/* /proc/@pid/maps, opened for maps_query; -errno. */
int maps_open(pid_t pid);
/*
 * Whether @addr is in an executable map now: 1, 0, or -errno if the kernel cannot look up a single
 * address (Linux 6.11 can: ioctl PROCMAP_QUERY, proc(5)). Takes a microsecond; reading all maps of
 * a large program takes milliseconds.
 */
int maps_query(int fd, taddr_t addr);

struct map_bounds {
	taddr_t start, end;
	bool is_main_stack; /* "[stack]" */
};
/* The same for a map of any kind that contains @addr. */
int maps_query_bounds(int fd, taddr_t addr, struct map_bounds *out);

/* Whether the @size bytes from @addr on are unmapped: 1, 0, or -errno as for maps_query. */
int maps_query_free(int fd, taddr_t addr, uint64_t size);

/* Reads /proc/@pid/maps. -errno; -ESRCH if the process has no memory any more. */
int maps_read(pid_t pid, struct maps *out);
void maps_deinit(struct maps *m);

/* Whether it is the stack of the main thread, which grows. */
bool map_is_main_stack(const struct map *m);

/* Code of a file, or of the vdso. */
bool map_is_text(const struct map *m);

/* Whether its name is not a file's, or one that shared memory has. */
bool map_has_no_file(const struct map *m);
/* Private memory of the program's or an allocator's, perhaps named by prctl. */
bool map_is_anonymous(const struct map *m);

/* The map that contains @addr, or NULL. */
const struct map *maps_find(const struct maps *m, taddr_t addr);

/*
 * Finds an unmapped range of @size bytes (whole pages) within @reach bytes of @near, as far as
 * possible from other maps: the heap and stacks grow, and the kernel puts new maps next to old
 * ones, where they would take the range's place once the program has unmapped it. *out: its start.
 * -ENOMEM if there is none.
 */
int maps_find_gap(const struct maps *m, taddr_t near, uint64_t reach, uint64_t size, taddr_t *out);

#endif
