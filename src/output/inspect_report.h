/* The report of --inspect: text, or JSON for programs. */
#ifndef PTMEM_OUTPUT_INSPECT_REPORT_H
#define PTMEM_OUTPUT_INSPECT_REPORT_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/json_write.h"
#include "base/types.h"
#include "inspect/block_types.h"
#include "inspect/holders.h"
#include "inspect/inspect.h"
#include "output/brief.h"
#include "output/inspect_go.h"

/* A core file: it does not record what was resident or swapped out. */
struct inspect_core_title {
	const char *path;
	uint64_t bytes;            /* of memory in it; those in pages of zeros are in no row */
	uint64_t zeros, left_out;  /* bytes in pages of zeros; mapped, but not in the file */
	uint32_t missing_files;    /* files of the program and libraries that are missing */
};

#define INSPECT_PIN_FRAMES 8u

/* A call path whose blocks pin nearly empty pages, or were not touched. */
struct inspect_pin {
	uint64_t pages;            /* that they pin, perhaps with others */
	uint64_t pages_alone;      /* of these, ones that nothing else pins */
	uint64_t bytes;            /* of its blocks, as the profile counts them */
	struct cold_bytes untouched;
	char *frame[INSPECT_PIN_FRAMES]; /* innermost first */
	size_t depth;
};

struct inspect_title {
	uint32_t pid;
	const char *command;
	uint64_t rss, swap;        /* VmRSS and VmSwap in /proc/PID/status, bytes */
	uint64_t hugetlb;          /* HugetlbPages there */
	/* in transparent huge pages, a part of rss; of them, what was read; zeros in that */
	uint64_t huge, huge_read, huge_zeros;
	const struct memory_cgroup_usage *cgroup; /* of its control group; NULL = unknown */
	unsigned glibc_major, glibc_minor; /* 0 = unknown */
	bool is_newer;             /* than the versions of glibc that are known; it was verified */
	bool has_malloc;           /* its malloc is glibc's, and was used */
	uint32_t inside;           /* threads that stayed in the middle of malloc */
	uint32_t moments;          /* in which those that were in it ran to leave it */
	uint64_t stopped_ns;       /* during that */
	const struct touched_pages *touched; /* in touched_seconds; NULL = not known */
	double touched_seconds;
	const struct inspect_go *go;   /* NULL = not looked for */
	const struct inspect_pin *pin; /* most pages first */
	size_t pin_count;
	const struct inspect_pin *cold; /* of a profile: most untouched bytes first */
	size_t cold_count;
	struct inspect_pin cold_all;    /* their sum, and that of all other paths */
	bool is_estimated;              /* what they have, from samples */
	const struct inspect_core_title *core; /* NULL = of a process */
};

/* The types of live blocks, largest first: their numbers add up to those of all. */

#define INSPECT_TYPE_SIZE (TYPE_NAME_MAX * 4)

/* "C++ Foo", "Python dict", "text", "zeros", "40 bytes": in @text, cut if it is longer. */
const char *inspect_type_text(const struct block_type *t, char text[static INSPECT_TYPE_SIZE]);

/*
 * The table for people: at most @rows of them, and the rest in one row. Below each is what points
 * to its blocks, if @h has it.
 */
void inspect_types_print(FILE *f, const struct block_types *t, const struct block_holders *h,
			 size_t rows);

/* Those that pin most nearly empty pages: at most @rows. */
void inspect_types_print_pins(FILE *f, const struct block_types *t, size_t rows);

/* A line below such a one: what would return without its blocks; nothing if that is nothing. */
void inspect_print_alone(FILE *f, uint64_t pages);

/* A member of an object, on a line of its own. */
void inspect_types_write_json(struct json_writer *w, const struct inspect_title *title,
			      const struct block_types *t, const struct block_holders *h);

/* What would return malloc's free memory to the system, as text, each with the bytes. */

struct inspect_advice {
	const char *name;  /* "malloc_trim" */
	uint64_t bytes;    /* bytes it would return; an upper bound if is_limit */
	bool is_limit;
	char *text;        /* owned */
};
struct inspect_advice_list {
	VEC(struct inspect_advice) list;
};

/*
 * Sorted by bytes, the most first; nothing below a page. None for a heap that is corrupt, or was
 * being changed.
 */
void inspect_advice_find(const struct inspect_report *r, struct inspect_advice_list *out);
void inspect_advice_deinit(struct inspect_advice_list *a);

/* Python's allocator, as text and JSON. */

/* The sentence about it; nothing if it was not found. */
void inspect_python_print_summary(FILE *f, const struct inspect_report *r);
/* How full its arenas are, and what pins the emptiest: at most @rows types. */
void inspect_python_print(FILE *f, const struct inspect_report *r, size_t rows);
/* Why its blocks may be wrong or missing. */
void inspect_python_print_doubts(FILE *f, const struct python_report *p);
/* Likewise; nothing if it was not found. */
void inspect_python_write_json(struct json_writer *w, const struct inspect_report *r);

/*
 * How much of the blocks was not touched, if @t has that: in all, by type and by call path, at most
 * @rows.
 */
void inspect_cold_print(FILE *f, const struct inspect_title *t, const struct block_types *types,
			size_t rows);
/* Likewise, but by type: that is in "types". */
void inspect_cold_write_json(struct json_writer *w, const struct inspect_title *t,
			     const struct block_types *types);

/*
 * The blocks in use, one by one, as CSV: "address,bytes,type,allocator", ascending; with @touched
 * also ",untouched,untouched_at_most" (inspect/cold.h).
 */

struct inspect_block {
	taddr_t addr;
	uint64_t size;          /* usable */
	uint32_t type;          /* an index in struct block_types */
	bool is_python;         /* of Python's allocator, not malloc's */
};
struct inspect_blocks {
	VEC(struct inspect_block) list;
};

/* A heap_block_fn; @blocks: a struct inspect_blocks. */
void inspect_blocks_add(void *blocks, taddr_t addr, uint64_t usable, uint32_t type);
void inspect_blocks_add_python(void *blocks, taddr_t addr, uint64_t usable, uint32_t type);
void inspect_blocks_sort(struct inspect_blocks *b);
/* Sorts them before. */
void inspect_blocks_write(FILE *file, struct inspect_blocks *b, const struct block_types *types,
			  const struct touched_pages *touched);

/* --inspect as text. */

void inspect_report_print(FILE *file, const struct inspect_title *t,
			  const struct inspect_report *r);

/* The same as findings. */
void inspect_report_brief(struct brief *b, const struct inspect_title *t,
			  const struct inspect_report *r);

/*
 * Prints the lines that explain why blocks may be missing, or counted although free; none if there
 * is no problem.
 */
void inspect_report_print_doubts(FILE *file, const struct inspect_title *t,
				 const struct inspect_report *r);

/* --inspect as JSON. */

/*
 * One object. Sizes are in bytes; "resident" and "swapped" of rows add up to those of "memory".
 * Pages are those that are resident or swapped out; of a core file, those in it that are not all
 * zeros.
 */
void inspect_report_write_json(FILE *file, const struct inspect_title *t,
			       const struct inspect_report *r);

#endif
