/*
 * Whether a program that was executed is a Python interpreter: then it gets PYTHONMALLOC=malloc,
 * unless that variable is set, or --python-malloc=keep was given.
 */
#ifndef PTMEM_SESSION_RUNTIMES_PYTHON_PROGRAM_H
#define PTMEM_SESSION_RUNTIMES_PYTHON_PROGRAM_H

#include "base/types.h"

struct run;

struct address_space;
struct elf_file;
struct module;

/* Adds the functions of Python's own allocator to those that are watched, if @run wants them. */
void python_program_add_probes(struct run *run);

/* event_sink.variable; @ctx: the struct run. */
const char *python_program_variable(void *ctx, const struct address_space *s);

/*
 * Whether the program of @s began with that variable in its environment. *is_malloc_out: with a
 * value that takes all objects from malloc. Both are true if that is unknown.
 */
bool python_program_has_variable(const struct address_space *s, bool *is_malloc_out);
/*
 * Whether @elf, or a library that it needs, is a build of Python in which threads run at once. It
 * has no allocator but its own, and refuses to start with PYTHONMALLOC=malloc.
 */
bool python_program_is_free_threaded(const struct elf_file *elf);
/* Whether the functions of its allocator are in @m, and watched. */
bool python_program_watches(const struct module *m, bool is_free_threaded);
/* Whether the interpreter was started with -E or -I: it looks at no such variable. */
bool python_program_ignores_variables(const struct address_space *s);

#endif
