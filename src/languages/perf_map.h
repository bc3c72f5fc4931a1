/*
 * Names of code that a program generates while it runs, as the program itself publishes them:
 *
 *	/tmp/perf-PID.map     text, a line for each function: node --perf-basic-prof, .NET
 *	                      (DOTNET_PerfMapEnabled), Python -X perf, PHP, LuaJIT, and Java on
 *	                      request (jcmd PID Compiler.perfmap, which writes it anew each time)
 *	jit-PID.dump          records with times, lines and moves (jitdump): node --perf-prof,
 *	                      Java's libperf-jvmti, Python -X perf_jit
 *
 * Both grow while the program runs; a refresh reads what was added. Code is freed, and its
 * addresses are used again, so a name is looked up for an address at a time:
 *
 *	time        1        2        3        4
 *	            |-- f --------------|
 *	                              |-- g (same addresses) ---    address at 2: f; at 4: g
 *
 * The files are untrusted: every number is checked, what is read is bounded, and what does not fit
 * is counted. Knows nothing of any language, of processes nothing but where their files are.
 */
#ifndef PTMEM_LANGUAGES_PERF_MAP_H
#define PTMEM_LANGUAGES_PERF_MAP_H

#include <sys/types.h>
#include <time.h>

#include "base/alloc.h"
#include "base/proc.h"
#include "base/types.h"

#define CODE_ENTRIES_MAX (1u << 23)
#define CODE_TEXT_MAX (1u << 30)      /* bytes of all names */
#define CODE_NAME_MAX 4096u           /* of one; the rest is cut off */
#define CODE_SIZE_MAX (UINT64_C(1) << 30)
#define CODE_LINES_MAX (1u << 25)

/* A function at an address, from a time on. */
struct code_entry {
	taddr_t start, end;
	uint64_t from;        /* ns of CLOCK_MONOTONIC: it was not there before */
	uint32_t name;        /* in struct code_map.text */
	uint32_t order;       /* of those that begin at the same time, the last one counts */
	uint32_t line, lines; /* in struct code_map.lines: the first and how many */
};

/* Code from there on, up to the next line or the end of the function, is of this line. */
struct code_line {
	uint32_t offset; /* from the function's start */
	uint32_t file;   /* in struct code_map.text */
	uint32_t line;
};

/* A function was published: what was known of its addresses may be obsolete. */
struct code_change {
	taddr_t start, end;
	uint64_t from;
};

/* All functions that were ever published. Zeroed = empty. */
struct code_map {
	VEC(struct code_entry) entries; /* @sorted of them by start, the others as they came */
	/* for each sorted one: the last end in the part of the list of which it is the middle */
	VEC(taddr_t) reach;
	VEC(char) text;     /* names, each with a NUL; 0 = "" */
	VEC(struct code_line) lines;
	size_t sorted;
	uint32_t next_order;
	uint64_t rejected;  /* entries that contradict themselves, or were too many */
	VEC(struct code_change) changes; /* the owner empties it */
};

void code_map_deinit(struct code_map *m);

/*
 * Adds @e (start, end, from and lines) with the name @name, of @size bytes. False, and counts it,
 * if it contradicts itself or there are too many.
 */
bool code_map_add(struct code_map *m, const struct code_entry *e, const char *name, size_t size);

/*
 * The function that contains @addr at @time: of those that began until then, the last one. NULL if
 * there is none. Valid until something is added.
 */
const struct code_entry *code_map_find(struct code_map *m, taddr_t addr, uint64_t time);

/* Its name, made visible (text_clean). The caller frees it. */
char *code_map_name(const struct code_map *m, const struct code_entry *e);

/* The line of @addr in @e; *file_out is the caller's to free. False if it is unknown. */
bool code_map_line(const struct code_map *m, const struct code_entry *e, taddr_t addr,
		   char **file_out, uint32_t *line_out);

/* -- files -- */

enum perf_file_kind { PERF_MAP, PERF_JITDUMP };

#define PERF_FILE_TAIL 64u

/* A file of one of the two kinds, as far as it has been read. */
struct perf_file {
	enum perf_file_kind kind;
	char *path;            /* in the program's root, or as in its maps; owned */
	int fd;                /* -1 = not open */
	uint64_t size_seen;    /* when it was last read, and the time of its contents */
	struct timespec mtime;
	bool is_refused;       /* it was said that it is not read, and why */
	dev_t dev;
	ino_t ino;
	uint64_t offset;       /* what is before it has been read */
	/* the last bytes before it: they tell a file that grew from one that was written anew */
	uint8_t tail[PERF_FILE_TAIL];
	size_t tail_size;
	bool is_in_line;       /* of a map: the rest of a line that is too long is skipped */
	bool has_header;       /* of a jitdump */
	bool has_ticks;        /* its times are of another clock, so they are not used */
	bool has_low_lines;    /* some are for the first bytes of a function */
	bool is_broken;        /* nothing more can be read from it */
	bool is_again;         /* it is read from its start again: most of it is known */
	uint64_t seen;         /* time of the last refresh: what is new is not older */
	uint64_t bad;          /* lines or records without meaning */
	/* of a jitdump: lines of the next function, in the map's list */
	taddr_t pending_code;
	uint32_t pending, pending_count;
};

void perf_file_init(struct perf_file *f, enum perf_file_kind kind, const char *path);
void perf_file_deinit(struct perf_file *f);

/* A part of a file. */
struct perf_data {
	const uint8_t *data;
	size_t size;
	uint64_t available; /* from its start to the end of the file: at least @size */
	uint64_t now;       /* nothing in it is newer */
};

/*
 * Adds what @d, from f->offset on, says in whole lines or records. Returns how many bytes these
 * have, at most @available: of a record larger than @size only the beginning is needed. The caller
 * gives the others again, with what follows them.
 */
uint64_t perf_file_parse(struct perf_file *f, struct code_map *m, const struct perf_data *d);

/*
 * Reads what was added to the file open as @fd. If it is another file than before, or has changed
 * where it was read, all of it. 0 or -errno.
 */
int perf_file_refresh(struct perf_file *f, struct code_map *m, int fd, uint64_t now);

/* -- a process -- */

/* What a process publishes. */
struct perf_maps {
	pid_t pid;
	struct root_dir *root; /* held; NULL = ours */
	VEC(struct perf_file) files; /* the first is the perf map, whether it exists or not */
	struct code_map code;
	int64_t uid, fs_uid;   /* of the process, as last seen */
	struct timespec started; /* CLOCK_REALTIME; what is older was another process's */
};

/* @root: of the process (root_dir_of), may be NULL. */
void perf_maps_init(struct perf_maps *p, pid_t pid, struct root_dir *root);
void perf_maps_deinit(struct perf_maps *p);

/* A file that the process has mapped, by its name in /proc/PID/maps: a jitdump if named so. */
void perf_maps_add_mapped(struct perf_maps *p, const char *path);

/*
 * Reads what was added to all files. @now: CLOCK_MONOTONIC, ns. The number of functions that are
 * new. A file of a user other than the process's or root is not read, nor is one that was last
 * written before the process began. Costs an open and a stat for each file if nothing is new.
 */
size_t perf_maps_refresh(struct perf_maps *p, uint64_t now);

/* The same for files that are open, by a stat of each: does not see that one was replaced. */
size_t perf_maps_poll(struct perf_maps *p, uint64_t now);

/*
 * The child @pid of a fork of @parent's process has its functions, and publishes its own in
 * addition.
 */
void perf_maps_fork(struct perf_maps *p, const struct perf_maps *parent, pid_t pid,
		    struct root_dir *root);

#endif
