/*
 * The traced processes: start or attach, follow, detach; and the loop that turns
 * their stops into events for a sink.
 *
 * A target holds processes, their threads and their address spaces:
 *
 *	process --- space (shared by vfork and CLONE_VM children)
 *	   \-- threads
 *
 * Knows nothing of unwinding, profiles or formats: the sink does.
 */
#ifndef PTMEM_TARGET_TARGET_H
#define PTMEM_TARGET_TARGET_H

#include "arch/unwind_rule.h"
#include "base/quick_event.h"
#include "base/types.h"
#include "target/heap_event.h"
#include "target/space.h"

struct target;

struct target_options {
	bool follow_exec;     /* --trace-children=yes: new images are profiled too */
	/* of no forks, but of what a process that is followed executes itself */
	bool follow_own_exec;
	bool keep_running;    /* started programs survive ptmem's death */
	bool no_probes;       /* watch no function (only processes) */
	bool no_stacks;       /* events are counted only: their stacks are not read */
	bool stack_pointers;  /* events carry sp */
	bool mapping_calls;   /* watch mmap, mremap and munmap, too */
	bool program_end;     /* HEAP_PROGRAM_END */
	uint64_t sample_ns;   /* HEAP_SAMPLE of every thread that runs, this often; 0 = never */
	bool count_instructions; /* --time-unit=i */
	bool no_promotion;    /* --probes=break */
	bool promote_at_once; /* --probes=jump */
	uint64_t ring_size;   /* bytes, a power of two; 0 = by the number of CPUs */
	bool last_look;       /* the sink wants it */
	bool verify;          /* pads send every stack both ways */
	bool watch_brk;       /* HEAP_MAP, HEAP_UNMAP at brk */
	bool watch_faults;    /* HEAP_FAULT at page faults */
	bool watch_mappings;  /* at mmap, munmap, mremap and their like */
	bool free_stacks;     /* frees come with their stacks */
	bool mempools;        /* client requests of memory pools are events */
	bool running_on_valgrind; /* the program is told so if it asks */
	/* what SIGXFSZ, which the caller ignores, is to a started program; NULL = what it is to us */
	const struct sigaction *file_signal;
	const char *somalloc; /* --soname-synonyms: which allocators are watched; NULL = all */
};

/*
 * The stack of thread @tid: from its first stack pointer, high, down to low. It stands at sp now.
 */
struct thread_stack_info {
	pid_t tid;
	taddr_t low, high, sp;
};

/* Why a space is no longer profiled. NEXT_IMAGE: an exec, and what it executed is profiled, too. */
enum space_end { SPACE_EXITED, SPACE_EXEC, SPACE_NEXT_IMAGE, SPACE_DETACHED };

struct target_sink {
	void *ctx;
	/* A program begins: nothing of it ran yet (started, exec) or it runs already (attached). */
	void (*space_new)(void *ctx, struct space *s);
	/* @child is a fork of @parent; everything counted so far is its, too. */
	void (*space_fork)(void *ctx, struct space *parent, struct space *child);
	/* The last that is heard of @s. Its memory may be gone already. */
	void (*space_end)(void *ctx, struct space *s, enum space_end why);
	void (*module_loaded)(void *ctx, struct space *s, struct module *m);
	void (*module_unloaded)(void *ctx, struct space *s, struct module *m);
	void (*event)(void *ctx, struct space *s, const struct heap_event *ev);
	/*
	 * The same for plain allocations and frees that pads recorded, many at a time, while
	 * wants_quick says so (asked often); all at @time_ns. Allocations carry what `node`
	 * returned for their
	 * stack: @path (a thread's slot) as in struct heap_event. NULL, all three = never.
	 */
	bool (*wants_quick)(void *ctx, struct space *s);
	uint32_t (*node)(void *ctx, struct space *s, const struct heap_event *ev);
	void (*quick)(void *ctx, struct space *s, uint64_t time_ns, const struct quick_event *ev, size_t count);
	void (*thread_exit)(void *ctx, struct space *s, pid_t tid);
	/* A thread of @s begins, or is there already when @s begins. NULL = not asked for. */
	void (*stack_new)(void *ctx, struct space *s, const struct thread_stack_info *info);
	/* A thread ends by itself, while others go on. With stack_new, as is the next. */
	void (*stack_gone)(void *ctx, struct space *s, pid_t tid);
	/*
	 * The stack pointer in the outermost frame of a stopped thread (@view: its registers and
	 * stack); false: the walk does not reach it.
	 */
	bool (*stack_start)(void *ctx, struct space *s, struct stack_view *view, taddr_t *sp_out);
	/* Whether the walk from @view meets a signal frame before it reaches @outer_sp. */
	bool (*in_signal)(void *ctx, struct space *s, struct stack_view *view, taddr_t outer_sp);
	/* All pcs on the stack of a thread stopped anywhere (@view: its registers and stack), unlowered;
	 * *is_whole_out: the walk reached the outermost frame. Returns their number. */
	size_t (*stack_pcs)(void *ctx, struct space *s, struct stack_view *view, taddr_t *pcs, size_t max,
			    bool *is_whole_out);
	/*
	 * A return address in [@start, @end) where a frame's CFA is its stack pointer + 16 and at
	 * most one callee-saved register was saved, at CFA - 16: *saved_out is its index
	 * (arch.dwarf_saved), -1 = none. 0 if there is no such place.
	 */
	taddr_t (*find_row)(void *ctx, struct space *s, taddr_t start, taddr_t end, int *saved_out);
	/*
	 * Rules of @s shall live in @memory (1 << bits
	 * slots, zeroed) from now on: pads read them there.
	 */
	void (*rule_memory)(void *ctx, struct space *s, struct unwind_rule *memory, uint32_t bits);
	/*
	 * @tid is the last thread of process @pid, stopped
	 * on its way out; its memory is still there.
	 */
	void (*process_exit)(void *ctx, struct space *s, pid_t pid, pid_t tid);
	/* ptmem is about to map something in @s. NULL = not asked for. */
	void (*will_map)(void *ctx, struct space *s);
	/*
	 * Called when target_clock() passes what it returned last (at first: at once); returns the
	 * next time, UINT64_MAX = never. NULL = never.
	 */
	uint64_t (*tick)(void *ctx, uint64_t now_ns);
	/*
	 * The last chance to read the memory of @s (last_look): all events are in, its threads
	 * stand still, and it is about to exit or to be detached. Not called when it is killed
	 * suddenly.
	 */
	void (*last_look)(void *ctx, struct space *s);
	/* @s is to be detached, and runs until a last_look that follows at once: it may be prepared. */
	void (*prepare_look)(void *ctx, struct space *s);
	/*
	 * The program itself says a monitor command; whether
	 * there is such a one. NULL = there is none.
	 */
	bool (*monitor)(void *ctx, struct space *s, const char *text);
	/* Whether the program that @pid just executed is to be left alone. NULL = never. */
	bool (*skip_exec)(void *ctx, pid_t pid);
	/*
	 * Called now and then between events, and when a
	 * timer or signal woke the loop; true = leave.
	 */
	bool (*poll)(void *ctx);
};

struct target_stats {
	uint64_t stops;          /* waitpid returns */
	uint64_t trap_stops;     /* of them at our breakpoints */
	uint64_t attach_ns, detach_ns; /* the pauses of all threads */
	uint64_t nested;         /* calls inside a watched call */
	uint64_t threads, processes; /* ever seen */
	uint32_t probes;         /* watched functions, of the first program */
	uint32_t unprobed;       /* definitions that could not be watched */
	uint32_t pages_left;     /* pages that stayed mapped at detach */
	uint32_t masks_mended;   /* signal masks given back SIGTRAP */
	uint64_t records, raw_records, ring_bytes; /* of rings that were closed */
	uint64_t ring_full;      /* stops for want of room in a ring */
	uint64_t ring_jumps;     /* times that a ring went on around unfinished records */
	uint64_t holes;          /* records that were begun and never finished */
	uint64_t promote_ns;     /* pauses for it */
};

struct target *target_new(const struct target_options *options, const struct target_sink *sink);
void target_free(struct target *t);

/*
 * Starts @argv under tracing, stopped at its first instruction after return of
 * target_run's first steps. -errno of the failed execve (nothing ran), -EPERM
 * when tracing is not possible.
 */
int target_start(struct target *t, char *const argv[]);

/* Why an attach failed, for a message of the caller's. */
enum attach_problem {
	ATTACH_OK, ATTACH_NO_PROCESS, ATTACH_TRACED, ATTACH_PERMISSION, ATTACH_32BIT, ATTACH_SELF,
	ATTACH_NO_PROBES, ATTACH_NO_FAULTS, ATTACH_KERNEL_THREAD, ATTACH_OTHER,
	/* of a process that has ended; of one whose other threads run */
	ATTACH_ZOMBIE, ATTACH_DEAD_LEADER,
	/* a thread, in @detail_out, cannot be stopped */
	ATTACH_STUCK,
};
/* What /proc alone says of @pid: ATTACH_OK, NO_PROCESS, ZOMBIE, DEAD_LEADER or KERNEL_THREAD. */
enum attach_problem target_look(pid_t pid);

/* Attaches to all threads of @pid. 0, or -errno with *problem_out and *detail_out (a number: the
 * tracer's pid, a thread's id, a uid, an errno). Nothing of ours is left in the process then. */
int target_attach(struct target *t, pid_t pid, enum attach_problem *problem_out, long *detail_out);

/*
 * Why the started program was killed before its first
 * instruction: ATTACH_32BIT, ATTACH_NO_PROBES. OK: it was not.
 */
enum attach_problem target_refusal(const struct target *t);

/* Runs until nobody is left, or the sink's poll says to leave. */
void target_run(struct target *t);

/*
 * Whether target_detach will not return before the
 * processes ended: they run under a filter of ours.
 */
bool target_must_stay(const struct target *t);
/* Lets go of everybody: text restored, stubs removed where nobody is in them. */
void target_detach(struct target *t);

/* The same after a failed check, when nothing of ours may be trusted: no event is made any more. */
void target_abandon(struct target *t);

/*
 * Stops everybody, brings all events in, calls @fn for each profiled space, and lets
 * everybody go on. Returns how long they stood, ns. Not from within a callback of the
 * sink other than poll.
 */
uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct space *s), void *ctx);

/* Calls @fn for each profiled space as it is now, without stopping anybody. */
void target_each(struct target *t, void (*fn)(void *ctx, struct space *s), void *ctx);

/* Asks a running target_run to call poll soon; safe in a signal handler. */
void target_wake(void);

/* The wait status of the started program, once it ended; false before. */
bool target_exit_status(const struct target *t, int *status_out);
pid_t target_first_pid(const struct target *t);

/* Number of processes that are traced now. */
unsigned target_process_count(const struct target *t);

/* CPUs that ptmem may run on. */
unsigned target_cpu_count(void);

/* CLOCK_MONOTONIC in ns, as events carry it. */
uint64_t target_clock(void);
/* How much of the address space of process @pid is ptmem's; 0 if it is not followed. */
uint64_t target_mapped_bytes(const struct target *t, pid_t pid);

/* watch_faults: those that no event told of, and whether the ones in system calls are left out. */
int target_fault_error(const struct target *t); /* why they could not be watched; 0 */
uint64_t target_lost_faults(const struct target *t, bool *user_only_out);

const struct target_stats *target_stats(const struct target *t);

/* Instructions executed so far by all threads (count_instructions). */
uint64_t target_instructions(const struct target *t);

/* Looks for new or gone modules of @s now; what an unwinder calls for an unknown address.
 * Cheap when @pc was looked up in vain since the last change. Returns the module or NULL. */
struct module *target_refresh_module(struct target *t, struct space *s, taddr_t pc);

#endif
