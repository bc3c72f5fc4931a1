/*
 * The output files of a run. A row of a table says for each of them by which option it is wanted
 * and named, what it is called in messages, and what its file is called elsewhere.
 *
 *	name -> file, complete or absent -> if that fails (full disk, removed directory): elsewhere
 *
 * A name is expanded for a process (outfile.h); parts that distinguish a file from others are
 * inserted before the extension, each after a dot.
 *
 *	name           + source, pid, number
 *	f.massif       f.mmap.4711.1.massif
 *	f              f.mmap.4711.1           (f.mmap.4711.003.1: in part 3)
 *	massif.out.42  massif.out.42.mmap.1      (digits alone are no extension)
 *	-, /dev/null   unchanged: all outputs go to one file that is not a regular one
 *
 * The pid is inserted for all processes except the first that has such a file, or for all if
 * several are attached to; but of --html there is one file for all (one_page.h). A number is
 * inserted if a process executes another profiled program, whose files have the names, or has the
 * pid of an earlier process.
 */
#ifndef PTMEM_SESSION_OUT_H
#define PTMEM_SESSION_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/types.h"
#include "session/memory_source.h"

struct options;
struct run;
struct session;

enum output {
	OUT_MASSIF, OUT_XTREE, OUT_LEAKS, OUT_INSPECT, OUT_GRAPH, OUT_FOLDED, OUT_FLAME,
	OUT_MEMUSAGE, OUT_DATA, OUT_SAMPLES, OUT_RECORD, OUT_HTML, OUT_EVENTS, OUT_LOG,
	OUT_LIMITS, OUTPUTS
};

/* When a file is named. */
enum out_kind {
	OUT_FINAL,   /* once, at the end, when a draft may precede it (session_end.is_draft) */
	OUT_EACH,    /* whenever it is written */
	OUT_STREAM,  /* at the start; a previous program's file of that name is renamed */
	OUT_LITERAL, /* before the run: the option has the path itself */
	OUT_OWN,     /* before the run: the file belongs to ptmem's process */
};

struct out_row {
	const char *option;
	/* offset in struct options of the name as given; is_repeatable: of an option_strings */
	size_t pattern;
	enum out_kind kind;
	bool is_of_counted;   /* only processes that are counted as memusage does have one */
	bool has_sources;     /* one for each traced source; else it is SOURCE_HEAP's */
	bool is_repeatable;   /* the option may be given several times: a file for each */
	const char *what;     /* "profile", for messages */
	const char *fallback; /* the name elsewhere, before the pid */
	const char *announce; /* before its path, when it is written; NULL: summaries name it */
};
extern const struct out_row out_rows[OUTPUTS];

/* The name as given by the user; NULL = not written. */
const char *out_pattern(const struct options *o, enum output which);
/* Likewise, name @i of one that may be given several times; NULL: there are no more. */
const char *out_pattern_at(const struct options *o, enum output which, size_t i);

/* -- names -- */

/* The parts to insert; all zeros = none. */
struct file_name_parts {
	const char *source; /* NULL = none */
	uint32_t pid;       /* 0 = none */
	unsigned number;    /* 0 = none */
	unsigned part;      /* with three digits or more; 0 = none */
};

/* @path with @parts; the caller frees it. */
char *file_name_insert(const char *path, const struct file_name_parts *parts);

/* Whether @path takes several outputs in a row: "-", a FIFO, a device. */
bool file_name_is_shared(const char *path);

/* Whether @pattern contains a placeholder with one of @letters, e.g. "pn". */
bool file_name_has(const char *pattern, const char *letters);

/* A file of a process. */
struct out_name {
	enum output which;
	enum memory_source_kind source;
	uint32_t pid;
	bool needs_pid;       /* another process may have a file of the same name */
	unsigned number;      /* distinguishes it from other files of the process; 0 = none */
	unsigned part;        /* of a file in parts; 0: it is not */
	const char *pattern;  /* instead of the user's; NULL = that */
};

/* Not 0 after a message. The caller frees *path_out. */
int out_path(struct run *run, const struct out_name *name, char **path_out);

/* The name of a file of @s; of a stream from now on. Likewise. */
int out_session_path(struct session *s, enum output which, char **path_out);

/*
 * The name of a file that is written while the program runs, with @number; never standard output or
 * another shared place. Without a number it is that of the current part of the recording. Likewise.
 */
int out_numbered_path(struct session *s, enum output which, enum memory_source_kind source,
		      unsigned number, char **path_out);

/*
 * At the start of @s, and when its files are complete, or earlier if another process may get its
 * id before that: updates what their names depend on. Only the first end counts.
 */
void out_begin(struct session *s);
void out_end(struct session *s);
/*
 * The same if another program's profile takes the place of that of @s (image.is_superseded): its
 * files get the names of this one's.
 */
void out_supersede(struct session *s);
/* Adds @name, of a file, to *list, the first @count of such a list; only so many are listed. */
void out_list_name(char **list, unsigned *count, const char *name);

/* -- contents -- */

struct out_content {
	int (*put)(FILE *file, const void *ctx); /* 0 or -errno; errors of the stream are seen */
	const void *ctx;
	const char *end;       /* of its name elsewhere, after the pid; NULL = none */
	/*
	 * One of several, which are never written to a FIFO or device: elsewhere is in a directory
	 * of this name, which is said only with -v. NULL: it is not
	 */
	const char *directory;
};

/*
 * Writes @c for process @pid to @path, whole or not at all. If it cannot be: -errno, after a
 * message where it is instead.
 */
int out_put(enum output which, uint32_t pid, const char *path, const struct out_content *c);

/* A name for out_content.directory that no other ptmem has; the caller frees it. */
char *out_directory_name(void);
/* Where the file was put in that @directory; NULL = nowhere. The caller frees it. */
char *out_find(enum output which, uint32_t pid, const struct out_content *c);
/* Removes a file that out_find found, and its directory if it was the last one there. */
void out_remove(const char *path);

/*
 * The name of a file (OUT_FINAL: decided by the first call; OUT_EACH: a new one) that @s is about
 * to write; *path_out stays the session's. Not 0 after a message, and counted in the run.
 */
int out_name(struct session *s, enum output which, enum memory_source_kind source,
	     const char **path_out);

/*
 * Writes it, under the name that out_name decided last or decides now, and announces it. 0, or
 * -errno after a message, counted in the run. *@path_out (may be NULL) as of out_name.
 *
 * If names are fetched at the end, which takes time, each final file is written before that, with
 * the names known so far (session_end.is_draft), and replaced afterwards. A draft is written if
 * that is possible, silently, and not to a place that takes several outputs; the result is 0.
 */
int out_write(struct session *s, enum output which, enum memory_source_kind source,
	      const struct out_content *c, const char **path_out);

/* For the summary of all processes: @path was written. */
void out_note(struct run *run, enum output which, const char *path);
/* Announces a file of @s, unless the process is silent. "-" is standard output. */
void out_announce(const struct session *s, enum output which, const char *path);

/* -- checks of all output files before the program starts (out_check.c) -- */

/*
 * Checks the names: placeholders, and files that would overwrite each other or an input. Opens and
 * creates nothing. 0, or -EINVAL after a message.
 */
int out_check_names(struct options *options);

/*
 * Checks that all files can be created: 0, or -errno after a message. FIFOs and devices are not
 * opened.
 */
int out_check_places(struct run *run);

/*
 * What @run uses @path for: "the program", or the option whose file it is for any profiled process;
 * NULL: nothing.
 */
const char *out_find_use(struct run *run, const char *path);

#endif
