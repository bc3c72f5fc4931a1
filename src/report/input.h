/*
 * An input file of ptmem-report: read completely, its kind recognized by its content.
 *
 *	begins with "time" TAB           samples of /proc     samples_file.h
 *	begins with 8 zero bytes         memusage's data      memusage_file.h
 *	begins with "ptmem-recording"    a recording          recording_read.h
 *	begins with "format": "ptmem-inspect"  --inspect's JSON   inspect_file.h
 *	anything else                    a massif.out file    massif_file.h (or refused)
 */
#ifndef PTMEM_REPORT_INPUT_H
#define PTMEM_REPORT_INPUT_H

#include "recording/recording.h"
#include "report/inspect_file.h"
#include "report/massif_file.h"
#include "report/memusage_file.h"
#include "report/samples_file.h"

enum input_kind { INPUT_MASSIF, INPUT_MEMUSAGE, INPUT_SAMPLES, INPUT_RECORDING, INPUT_INSPECT };

struct input {
	enum input_kind kind;
	struct massif_file *massif;     /* the one of that kind is set, the others are NULL */
	struct memusage_file *memusage;
	struct samples_file *samples;
	struct recording *recording;
	struct inspect_file *inspect;
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

#endif
