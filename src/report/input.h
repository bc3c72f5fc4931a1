/*
 * The files that ptmem-report reads, in memory: massif files (massif_file.h), recordings,
 * memusage's data, a sampler's rows, and the JSON of --inspect.
 */
#ifndef PTMEM_REPORT_INPUT_H
#define PTMEM_REPORT_INPUT_H

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/account.h"
#include "recording/recording.h"
#include "report/massif_file.h"

/*
 * A data file of memusage(1) or of ptmem --data, in memory (doc/memusage.md section 2).
 *
 *	FILE   := PEAK PEAKS RECORD ...     24 bytes each, little-endian
 *	PEAK   := 0, peak of heap + stack, time of the start
 *	PEAKS  := peak of the heap, peak of the stack, time of the end
 *	RECORD := live heap, stack depth, time        one per call
 *
 * If the program was killed the peaks are 0 in the file, and are computed from the records. The
 * unit of time is not in the file: only ratios are meaningful.
 */

#define MEMUSAGE_RECORD_SIZE 24

struct memusage_record {
	uint64_t heap, stack;
	uint64_t time;         /* in the file's order; with threads it may go back a little */
};

struct memusage_file {
	struct memusage_record *record;
	/* number of records without duplicates that memusage leaves at the end */
	size_t count;
	uint64_t peak_heap, peak_stack, peak_total;
	uint64_t start, end;   /* start <= end */
	bool is_complete;      /* the peaks were in the file */
};

/*
 * Takes ownership of @data (malloc'ed), also on failure. -EINVAL with *@why_out, which the caller
 * frees.
 */
int memusage_file_parse(char *data, size_t size, struct memusage_file **file_out, char **why_out);
void memusage_file_free(struct memusage_file *file); /* may be NULL */

/*
 * The file of a sampler of /proc/PID/status, in memory.
 *
 *	FILE   := HEADER { ROW }
 *	HEADER := "time" TAB "pid" { TAB FIELD } NL
 *	ROW    := SECONDS TAB PID { TAB VALUE } NL      as many values as fields
 *
 * FIELD is a name of /proc/PID/status without its colon: VmPeak, VmSize, VmHWM,
 * VmRSS, then any others. SECONDS is decimal, since the start of the profile
 * ("12.300"). VALUE is in KiB (Threads: a number); "-" if the kernel gave none. Rows of several
 * processes may alternate. A last line without a line end is incomplete, since the sampler was
 * killed, and is dropped.
 */

#define SAMPLES_NONE UINT64_MAX /* a value that was "-" */

struct samples_file {
	char *data;
	char **field;          /* names after "time" and "pid"; point into data */
	size_t field_count;
	double *time;          /* seconds, one per row */
	uint32_t *pid;         /* one per row */
	uint64_t *value;       /* row_count * field_count, as written, or SAMPLES_NONE */
	size_t row_count;
	size_t time_capacity, pid_capacity, value_capacity, field_capacity;
};

/*
 * Takes ownership of @data (malloc'ed), also on failure. -EINVAL with *@why_out "Line N: ...",
 * which the caller frees.
 */
int samples_file_parse(char *data, size_t size, struct samples_file **file_out, char **why_out);
void samples_file_free(struct samples_file *file); /* may be NULL */

/* The index of the field @name, or SIZE_MAX. */
size_t samples_file_field(const struct samples_file *file, const char *name);

/* Bytes of field @field in row @row; SAMPLES_NONE if there is no value. */
uint64_t samples_file_bytes(const struct samples_file *file, size_t row, size_t field);

/* The JSON written by --inspect (output/inspect_report.h), as far as pictures need it. */

struct inspect_cell {
	taddr_t start;
	double pages, live, nearly_empty; /* as in struct heap_cell */
};

struct inspect_arena {
	char *name;             /* "main arena", "Python's arenas"; owned */
	bool is_python;         /* malloc_trim returns nothing of it */
	double resident, live, free, trim; /* bytes */
	VEC(struct inspect_cell) cells;
};

struct inspect_file {
	char *title, *all;      /* "process 12, a command"; what the rows add up to; owned */
	double row[ROW_COUNT];  /* resident bytes */
	double sum;
	unsigned pages_per_cell;
	VEC(struct inspect_arena) arenas; /* largest first */
};

bool inspect_file_is(const char *data, size_t size);
/* Takes ownership of @data. -EINVAL with *@why_out if it is malformed. */
int inspect_file_parse(char *data, size_t size, struct inspect_file **out, char **why_out);
void inspect_file_free(struct inspect_file *f);

/*
 * An input file of ptmem-report: read completely, its kind recognized by its content.
 *
 *	begins with "time" TAB           samples of /proc
 *	begins with 8 zero bytes         memusage's data
 *	begins with "ptmem-recording"    a recording          recording_format.h
 *	begins with "format": "ptmem-inspect"  --inspect's JSON
 *	begins with "ptmem-graph"        a heap graph         graph_file.h
 *	anything else                    a massif.out file    massif_file.h (or refused)
 */

enum input_kind {
	INPUT_MASSIF, INPUT_MEMUSAGE, INPUT_SAMPLES, INPUT_RECORDING, INPUT_INSPECT, INPUT_GRAPH,
};

struct input {
	enum input_kind kind;
	struct massif_file *massif;     /* the one of that kind is set, the others are NULL */
	struct memusage_file *memusage;
	struct samples_file *samples;
	struct recording *recording;
	struct inspect_file *inspect;
	struct graph_file *graph;
};

/* Reads all of @path ("-": standard input) to *@data_out, which the caller frees. 0 or -errno. */
int input_read(const char *path, char **data_out, size_t *size_out);

enum input_kind input_kind(const char *data, size_t size);

/*
 * -errno if @path cannot be read; -EINVAL with *@why_out (the caller frees it) if it is
 * malformed.
 */
int input_open(const char *path, struct input *out, char **why_out);
void input_deinit(struct input *input);

/* The call paths of a recording or massif file (massif_paths.h); NULL: it has none. */
const struct recording *input_paths(const struct input *input);

/* Of a recording or massif file: the command; the base name of its program. To be freed. */
char *input_command(const struct input *input);
char *input_program(const struct input *input);
/* The mean distance of its samples in bytes; 0 = it is exact. */
uint64_t input_interval(const struct input *input);
/* Whether functions of a recorded program have source lines, so that inlined ones are known. */
enum input_lines { INPUT_NO_FUNCTIONS, INPUT_NO_LINES, INPUT_HAS_LINES };
enum input_lines input_lines(const struct input *input);
/*
 * Functions that were inlined are known from debug information: where one of two recordings has
 * none of the program, or of a library, the inlined functions of the other one in it become a part
 * of the functions that contain them. Either may be without a recording.
 */
void input_match_inlined(struct input *a, struct input *b);
/* The same of the program, as if the other had no debug information of it. */
void input_merge_inlined(struct input *input);
/* Why it is not of the whole run; NULL: it is, as far as is known. */
const char *input_gap(const struct input *input);

#endif
