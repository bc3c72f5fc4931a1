/*
 * Interpreters in a process, whatever their language. Hides which one it is: a language is a row of
 * functions that find its interpreter, describe the list of its frames as data (virtual_frames.h),
 * and read the names and lines of functions. Nothing is executed in the program.
 *
 * What describes an interpreter is not believed before one walk makes sense: a thread's list leads
 * to functions with names.
 */
#ifndef PTMEM_LANGUAGES_INTERPRETER_H
#define PTMEM_LANGUAGES_INTERPRETER_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/proc.h"
#include "languages/virtual_frames.h"
#include "tracee/os/maps.h"

struct elf_file;
struct elf_function;
struct elf_functions;

struct interpreter_thread;

/* A process in which to look. */
struct interpreter_process {
	pid_t pid;
	struct root_dir *root; /* NULL = ours */
	const struct maps *maps;
	struct language_memory memory;
	const char *path;       /* of the object with the interpreter, as in the maps */
	struct interpreter_thread *thread; /* in the loop, stopped */
};

#define INTERPRETER_STATES_MAX 8u

/* The states of one thread: several if it runs sub-interpreters. The innermost first. */
struct interpreter_thread {
	taddr_t thread_pointer; /* the word that arch->thread_pointer names */
	taddr_t state[INTERPRETER_STATES_MAX];
	uint32_t count;
	/* Where it is stopped now. realloc has moved a block, and has not returned: 0 = none. */
	struct arch_regs regs;
	taddr_t sp, moved_from, moved_to;
};

/* A function of the program's. */
struct virtual_function {
	char *name;       /* qualified if the interpreter knows that; visible. Owned */
	char *file;       /* as compiled: relative, or no path at all; NULL = none. Owned */
	uint32_t first_line;
	uint64_t stamp;   /* virtual_stamp: another function at the address has another one */
	bool is_internal; /* a frame of the interpreter itself, not to be shown */
	taddr_t object, start; /* of the function; of its first instruction */
	uint64_t size;    /* bytes of instructions; 0 = unknown */
	uint8_t *table;   /* of lines, as the language has them. Owned */
	size_t table_size;
};

void virtual_function_deinit(struct virtual_function *f);

struct interpreter {
	const struct language *language;
	void *own;                     /* of the language */
	struct virtual_layout *frames; /* in `own`; its loops are known from the start */
	/* The object has no symbol of this name, so that its loop is not known; NULL = it has. */
	const char *missing;
	/* Its code in a program that embeds it, whose other functions are shown; 0 = all is. */
	struct addr_range embedded;
};

struct language {
	const char *name;
	/* Whether an object of the file name @name may have an interpreter. */
	bool (*is_object)(const char *name);
	/* Whether the object @path is a part of an interpreter, whose functions are not shown. */
	bool (*is_part)(const char *path);
	/* Whether the object @path exchanges parts of stacks; NULL = none does. */
	bool (*is_switcher)(const char *path);
	/* The interpreter in @elf, which is mapped with @bias, and its loops. False: none. */
	bool (*open)(struct elf_file *elf, taddr_t bias, struct interpreter *out);
	/* For a forked process: what open() had found but for loops, which the caller copies. */
	void (*copy)(const struct interpreter *from, struct interpreter *out);
	void (*close)(struct interpreter *i);
	/*
	 * Finds out what frames and functions are like, in a process that is stopped. False: not
	 * yet, or never; *problem_out, which the caller frees, says why.
	 */
	bool (*find)(struct interpreter *i, const struct interpreter_process *in,
		     char **problem_out);
	/*
	 * Finds where code in a thread like @t, of which stack() has filled in the states, has its
	 * state, if find() did not; NULL = it always does.
	 */
	bool (*find_place)(struct interpreter *i, const struct language_memory *m,
			   const struct interpreter_thread *t);
	/*
	 * The frames of a thread, innermost first: as virtual_frames_walk, of all its states. What
	 * @t has from an earlier call is checked, and found again if it does not hold.
	 */
	ssize_t (*stack)(const struct interpreter *i, const struct language_memory *m,
			 struct interpreter_thread *t, struct virtual_frame *out, size_t max);
	/*
	 * Reads the function of @frame, a frame of a thread that is stopped. -EINVAL if it is none,
	 * or has parts that cannot be read. virtual_function_deinit frees @out.
	 */
	int (*read_function)(const struct interpreter *i, const struct language_memory *m,
			     const struct virtual_frame *frame, struct virtual_function *out);
	/* The line of @f at the position @position of a frame; 0 if it has none. */
	uint32_t (*line)(const struct interpreter *i, const struct language_memory *m,
			 const struct virtual_function *f, uint64_t position);
	/* "3.11"; the caller frees it. */
	char *(*version)(const struct interpreter *i);
};

extern const struct language language_python, language_ruby, language_php, language_perl,
	language_lua;

/* What open() and copy() fill in: @own, of the language, which has @frames. */
void interpreter_own(struct interpreter *out, void *own, struct virtual_layout *frames);
/* close() of languages that have nothing else: frees it. */
void interpreter_close_own(struct interpreter *i);

/* The interpreter in @elf, named @path, which is mapped with @bias. False: none that is known. */
bool interpreter_open(const char *path, struct elf_file *elf, taddr_t bias,
		      struct interpreter *out);

/* Adds to @l the other code that its loops jump to, in @elf, which is mapped with @bias. */
void interpreter_find_parts(struct elf_file *elf, taddr_t bias, struct virtual_layout *l);

/* Calls @fn for the target of each branch or call that leaves [@start, @end) of @elf's code. */
void interpreter_each_branch(struct elf_file *elf, uint64_t start, uint64_t end,
			     void (*fn)(void *ctx, taddr_t target), void *ctx);

/* The function of @functions that begins at @start; NULL: none does. */
const struct elf_function *interpreter_function_at(const struct elf_functions *functions,
						   uint64_t start);

/*
 * A loop without a symbol is found by who calls it: the function with the interpreter's
 * instructions is much larger than what else is called there.
 */
#define INTERPRETER_CALLED_MAX 32u

/* Functions that one calls: elements of a struct elf_functions. */
struct interpreter_called {
	const struct elf_function *list[INTERPRETER_CALLED_MAX];
	size_t count;           /* more are left out */
};

/* What [@start, @end) of @elf's code calls. */
void interpreter_find_called(struct elf_file *elf, const struct elf_functions *functions,
			     uint64_t start, uint64_t end, struct interpreter_called *out);
/* The largest of what @caller calls, and of @least, which may be NULL; NULL: there is none. */
const struct elf_function *interpreter_largest_called(struct elf_file *elf,
						      const struct elf_functions *functions,
						      const struct elf_function *caller,
						      const struct elf_function *least);

/* Table of lines with one uint32_t for each @unit bytes of code. 0 = unknown. */
uint32_t virtual_function_line(const struct virtual_function *f, uint64_t offset, uint32_t unit);

#endif
