/* Recordings as files: recording_write.c writes them, recording_read.c reads and checks them. */
#ifndef PTMEM_RECORDING_RECORDING_FORMAT_H
#define PTMEM_RECORDING_RECORDING_FORMAT_H

#include <stdio.h>

#include "recording/recording.h"

/*
 * Recordings as files: a head, then chunks, each compressed separately.
 *
 *	head     "ptmem-recording 1\n", or 2 if it holds estimates from samples
 *	chunk    name (4 bytes), packed size, unpacked size, CRC-32 of the packed data (each
 *	         4 bytes, little-endian), then a zlib stream
 *
 * Numbers in a chunk are varints: 7 bits a byte, the lowest first, the top bit set on all bytes but
 * the last one. Unpacked, a chunk is
 *
 *	"text"   count; for each text its size and its bytes. Texts are numbered from 1 in the
 *	         order of the file
 *	a table  columns, rows; then each column: the differences between neighbours (the first one
 *	         to 0), modulo 2^64, signed, as 2 * d for d >= 0 and -2 * d - 1 for d < 0
 *	"copy"   empty: the file is a copy of one that ptmem had not finished
 *	"sync"   what is before it belongs together: the CRC-32 of the heads (16 bytes each) of the
 *	         chunks since the last one as a number, or nothing in files of older versions
 *
 * A reader ignores what follows the last "sync", and skips chunks whose name it does not know.
 */

#define RECORDING_HEAD "ptmem-recording 1\n"
#define RECORDING_HEAD_SAMPLED "ptmem-recording 2\n"
#define RECORDING_TEXTS "text"
#define RECORDING_SYNC "sync"
#define RECORDING_COPY "copy"
#define RECORDING_CHUNK_HEAD 16u /* bytes */

/* A file being written chunk by chunk. */
struct recording_out {
	FILE *file;
	uint32_t heads;            /* CRC-32 of the heads since the last "sync" */
};

void recording_write_head(struct recording_out *out, const struct recording *r);
/* Writes texts from number @first on. */
void recording_write_texts(struct recording_out *out, const struct recording *r, size_t first);
/* Writes the rows of a table from @first on; nothing if there are none. */
void recording_write_rows(struct recording_out *out, const struct recording *r,
			  enum recording_table_id id, size_t first);
/* Says that the file is a copy of one that was not finished: it was made on purpose. */
void recording_write_copy(struct recording_out *out);
void recording_write_sync(struct recording_out *out);

/* Writes all of @r as a file: 0 or -errno. */
int recording_write(FILE *file, const struct recording *r);

/*
 * Reads recordings. The file is untrusted, and each number is checked, so
 * reports can rely on the following:
 *
 *	all references are to existing rows and texts; a node's parent precedes it
 *	leaves, and rows of tables with keys, are unique and in the order of their keys
 *	timeline and cells are in intervals of one length; intervals are 0 .. rows - 1
 *	born < died < number of intervals, or died = CELL_NEVER: live at the end
 *
 * The last rule differs from the file, where CELL_NEVER cells include those that died.
 */

/* Whether @data begins like a recording. */
bool recording_is(const char *data, size_t size);

/* -EINVAL and *@why_out, which the caller frees, if @data is damaged or not a recording. */
int recording_read(const char *data, size_t size, struct recording **out, char **why_out);

/*
 * The same, but the rows are those of the file, checked one by one only: for recording_write. Fails
 * for a file that recording_read refuses.
 */
int recording_read_rows(const char *data, size_t size, struct recording **out, char **why_out);

/*
 * Brings @r, whose numbers are those of a file or of a recording that was built, into this form.
 * @is_sampled: it contains estimates. NULL, or the error.
 */
const char *recording_check(struct recording *r, bool is_sampled);

/*
 * Reads tables that this ptmem has written, alone: their references, which may lead to rows of
 * another recording, are not checked. NULL if @data is not complete.
 */
struct recording *recording_read_tables(const char *data, size_t size);

#endif
