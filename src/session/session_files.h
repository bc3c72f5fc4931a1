/*
 * The files of a session: their names by the rule of file_name.h, and the file of events. The pid
 * is inserted for all processes but the first that has such a file, or for all where several are
 * attached to; a number where a program executes another one that is profiled, whose files have the
 * names, and where a process has the id of an earlier one.
 */
#ifndef PTMEM_SESSION_FILES_H
#define PTMEM_SESSION_FILES_H

#include "base/types.h"

struct session;

/* At the beginning of @s, and when its files are complete: what their names depend on. */
void session_files_begin(struct session *s);
void session_files_end(struct session *s);

/* What a file is called, before anything is inserted. */
struct session_file {
	const char *option;  /* "--data", for messages */
	const char *pattern;
	const char *source;  /* inserted; NULL = none */
	bool is_of_counted;  /* only processes that are counted as memusage does have one */
};

/* The name of @s's @file. *path_out is the caller's; not 0 after a message. */
int session_files_name(struct session *s, const struct session_file *file, char **path_out);

/* Files that are written while the program runs. */
enum stream_file { STREAM_EVENTS, STREAM_DATA, STREAM_RECORDING };

/* The same for a file that is written from now on: that of the program before, of this name, gets a
 * number. */
int session_files_stream_name(struct session *s, enum stream_file which,
			      const struct session_file *file, char **path_out);

/* The name of the profile so far, of @source (NULL = the heap): with @number, and never a place
 * that all outputs share. */
int session_files_snapshot_name(struct session *s, const char *source, unsigned number,
				char **path_out);

/* Announces a file that was written, unless the process is to be silent. "-" is standard output. */
void session_files_announce(const struct session *s, const char *path);

/* Opens the file for the events of @s if the options want them. @is_first: the first of the run. */
void session_files_open_events(struct session *s, bool is_first);
/* Closes it; an error is reported and counted. */
void session_files_close_events(struct session *s);

#endif
