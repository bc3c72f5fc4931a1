/*
 * Reads a stopped process in a consistent state: no thread is in the middle of malloc. Connects
 * tracee, unwind and inspect.
 */
#ifndef PTMEM_SESSION_INSPECT_INSPECT_STOPPED_H
#define PTMEM_SESSION_INSPECT_INSPECT_STOPPED_H

#include "base/cgroup.h"
#include "graph/heap_graph.h"
#include "inspect/inspect.h"
#include "malloc/memory_copy.h"
#include "session/inspect/go_report.h"
#include "session/inspect/malloc_module.h"
#include "tracee/control/target.h"

struct address_space;
struct registry;
struct target;

struct inspect_stopped {
	struct inspect_report report;
	struct held_modules modules;
	struct malloc_modules malloc;
	/* by inspect_stopped_classify */
	const char *other;       /* the name of an allocator that is not glibc's; NULL = none */
	const struct module *other_object; /* that has it; NULL = unknown */
	unsigned glibc_major, glibc_minor; /* 0 = unknown */
	char version[MALLOC_VERSION_SIZE]; /* jemalloc's, if that was found; "" = unknown */
	bool has_arena;          /* malloc was used, and is glibc's */
	uint32_t inside;         /* threads that did not leave malloc in time */
	uint32_t moments;        /* how often others ran to leave malloc */
	uint32_t steps;          /* single steps of threads that left it */
	uint64_t rss, swap;      /* VmRSS and VmSwap, bytes */
	uint64_t hugetlb;        /* pages of hugetlbfs, which these do not have */
	struct memory_cgroup_usage cgroup;
	bool has_cgroup;         /* it is known */
	struct go_state go;
	/* what holds each block, of report.holders; by inspect_stopped_classify */
	struct heap_graph graph;
	bool wants_graph, has_graph; /* has_graph: it is not too large */
	struct inspect_input in; /* until it has been examined */
	bool is_copied;          /* it is to be examined, without the process */
	struct memory_copy *copy; /* the caller's, freed when it is not needed; NULL = none */
};

/* What is known of a process's program and libraries before it is stopped. Zero: nothing. */
struct inspect_objects {
	struct held_modules modules;
	struct malloc_modules malloc;
};

struct inspect_wish {
	heap_block_fn *block;    /* called for each block in use; NULL = not needed */
	heap_block_fn *python_block; /* likewise: those of Python's allocator */
	void *ctx;
	bool only_blocks;        /* which takes less time: the report has no rows, and no pages */
	const struct pinned_paths *paths; /* of blocks; NULL = they are not known */
	const struct touched_pages *touched; /* until it was stopped; NULL = unknown */
	bool wants_types;        /* of blocks */
	bool wants_holders;      /* what points to them */
	bool wants_graph;        /* a graph of that, instead of sums; needs both */
	bool drops_places;       /* of the graph's pointers, which takes less memory */
	const char *containers;  /* for it: a file of descriptions; NULL = none */
	const struct inspect_objects *objects; /* read before, or NULL */
	struct memory_copy *copy; /* has room for its memory, or NULL; outlives the result */
	const struct written_pages *written; /* since it was copied ahead; NULL = it was not */
	bool is_last;            /* the process ends or is left: no thread may run on */
};

/*
 * A stop of a process in which nothing is installed: attaches, calls fn while all threads are
 * stopped, and detaches. The caller sets the first part.
 */
struct inspect_visit {
	struct registry *registry;
	pid_t pid;
	bool makes_calls;        /* fn injects calls: it is guarded */
	void (*before)(void *visit, struct address_space *s); /* as before_stop; NULL = nothing */
	int (*fn)(struct inspect_visit *v, struct address_space *s); /* 0 or -errno */
	void *ctx;
	struct target *target;   /* while fn runs */
	uint64_t stopped_ns;
	int rc;                  /* of fn; -ESRCH: it was not called */
	/* as target_attach; with ATTACH_OK an error is that of fn */
	enum attach_problem problem;
	long detail;
};
/* 0, or -errno of the attach or of fn. */
int inspect_visit_run(struct inspect_visit *v);

/* With room for the memory of @pid that is its own, if that is @most bytes at most. */
void inspect_stopped_copy_init(struct memory_copy *out, pid_t pid, uint64_t most);

/* Reads the files of @s, whose threads may run, again if it was read before. */
void inspect_objects_read(const struct address_space *s, struct inspect_objects *out);
void inspect_objects_deinit(struct inspect_objects *o);

/*
 * Reads @s, whose threads are stopped. Slow work that only needs files is left to
 * inspect_stopped_classify; what needs memory, too, if that was copied. -errno if its memory cannot
 * be listed. Free @out, which may not move, with inspect_stopped_deinit.
 */
int inspect_stopped(struct target *t, struct address_space *s, const struct inspect_wish *wish,
		 struct inspect_stopped *out);
/* What is needed to find memory that is in no block of an allocator other than glibc's. */
struct inspect_spare_input {
	struct inspect_input in; /* its source refers to what follows: it must not be moved */
	struct held_modules modules;
	pid_t reader;
};
/*
 * For inspect_find_spare, of @s, whose threads are stopped wherever they are. @pages: all of its
 * pages, whose lists are @out's from then on; NULL = they are found. -errno if its memory cannot be
 * listed: then @out is empty.
 */
int inspect_stopped_spare(struct target *t, struct address_space *s, struct resident *pages,
			  struct inspect_spare_input *out);
void inspect_spare_input_deinit(struct inspect_spare_input *in);
/* Determines the version of glibc's malloc, if it is glibc's. */
void inspect_stopped_version(struct inspect_stopped *l);
/*
 * After that: whether the structures of its glibc may be known. If the version is unknown, or newer
 * than the newest known, it is tried: then they must be verified.
 */
bool inspect_stopped_knows_glibc(const struct inspect_stopped *l);
/* Whether the version of an allocator other than glibc's is known. */
bool inspect_stopped_knows_other(const struct inspect_stopped *l);
/* The same, which malloc it is, and names of types. */
void inspect_stopped_classify(struct inspect_stopped *l);
void inspect_stopped_deinit(struct inspect_stopped *l);

#endif
