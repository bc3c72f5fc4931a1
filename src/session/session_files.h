/*
 * The files of a session: their names (see result_file.h), and the event file. The pid is inserted
 * for all processes except the first that has such a file, or for all if several are attached to. A
 * number is inserted if a process executes another profiled program, whose files have the names, or
 * has the pid of an earlier process.
 */
#ifndef PTMEM_SESSION_SESSION_FILES_H
#define PTMEM_SESSION_SESSION_FILES_H

#include "base/types.h"

struct session;

/* At the start of @s, and when its files are complete: updates what their names depend on. */
void session_files_begin(struct session *s);
void session_files_end(struct session *s);
/*
 * The same if another program's profile takes the place of that of @s (image.is_superseded): its
 * files get the names of this one's.
 */
void session_files_supersede(struct session *s);

/* The name of a file, before parts are inserted. */
struct session_file {
	const char *option;  /* "--data", for messages */
	const char *pattern;
	const char *source;  /* part to insert; NULL = none */
	bool is_of_counted;  /* only processes that are counted as memusage does have one */
	unsigned part;       /* its number, if it is one of several; 0: it is not */
};

/* The name of @file for @s. The caller frees *path_out. Not 0 after a message. */
int session_files_name(struct session *s, const struct session_file *file, char **path_out);

/* Files that are written while the program runs. */
enum stream_file { STREAM_EVENTS, STREAM_DATA, STREAM_RECORDING };

/* The same for a file that is written from now on: the previous program's file of this name is
 * renamed with its number. */
int session_files_stream_name(struct session *s, enum stream_file which,
			      const struct session_file *file, char **path_out);

/*
 * The name of @file with @number (0 = none), for a file that is written while the program runs;
 * never standard output or another shared place: then @fallback is the pattern, unless it is NULL.
 */
int session_files_numbered_name(struct session *s, const struct session_file *file,
				unsigned number, const char *fallback, char **path_out);

/* The name for the profile so far, of @source (NULL = the heap), with @number; never standard
 * output or another shared place. */
int session_files_snapshot_name(struct session *s, const char *source, unsigned number,
				char **path_out);

/* Announces a file that was written, unless the process is silent. "-" is standard output. */
void session_files_announce(const struct session *s, const char *path);

/* Opens the event file of @s if requested. @is_first: the first of the run. */
void session_files_open_events(struct session *s, bool is_first);
/* Closes it; an error is reported and counted. */
void session_files_close_events(struct session *s);

/*
 * The files that a session writes at its end. If names are fetched then, which takes time, each is
 * written before that, with the names known so far (session_end.is_draft), and replaced afterwards.
 */

struct result;

/*
 * The name of @file for @s, decided by the first call; *path_out stays the session's. Not 0 after a
 * message.
 */
int final_file_name(struct session *s, const struct session_file *file, const char **path_out);
/* Whether the first call is still to come. */
bool final_file_is_new(const struct session *s, const struct session_file *file);

/*
 * Writes @r to @path, or elsewhere: as rescue_write. A draft is written if that is possible,
 * silently, and not to a place that takes several outputs; the result is 0.
 */
int final_file_write(const struct session *s, const struct result *r, const char *path);

/* Both, for a file that is announced. */
int final_file_put(struct session *s, const struct session_file *file, const struct result *r);

void final_files_deinit(struct session *s);

/*
 * Checks all output files of a run before the program starts: their names can be expanded, no two
 * are the same file, none is an input, and all can be written.
 */

struct options;
struct run;

/*
 * Checks the names: placeholders, and files that would overwrite each other or an input. Opens and
 * creates nothing. 0, or -EINVAL after a message.
 */
int out_files_check_names(struct options *options);

/*
 * What @run uses @path for: "the program", or the option whose file it is for any profiled process;
 * NULL: nothing.
 */
const char *out_files_find_use(struct run *run, const char *path);

/*
 * Checks that all files can be created: 0, or -errno after a message. FIFOs and devices are not
 * opened.
 */
int out_files_check_places(struct run *run);

#endif
