/*
 * Converts the contents of a core file to the input of inspect_run; inspect_look.c does so for a
 * stopped process.
 */
#include "session/inspect_core.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "inspect/core_memory.h"
#include "session/core_modules.h"
#include "session/inspect_look.h"
#include "session/inspect_output.h"
#include "session/inspect_title.h"
#include "session/run.h"
#include "session/object_bytes.h"
#include "tracee/state/module.h"
#include "unwind/unwind.h"

#define PCS 64u

struct core {
	struct core_file file;
	struct core_sums sums;
	struct core_modules modules;
	struct inspect_input in;
	struct inspect_look look;
	struct inspect_blocks blocks;
};

/* -- threads -- */

static const struct module *module_at(void *ctx, taddr_t pc)
{
	const struct core_modules *modules = ctx;

	for (size_t i = 0; i < modules->held.list.count; i++) {
		const struct module *m = modules->held.list.data[i];

		if (m->file && pc >= m->start && pc < m->end)
			return m;
	}
	return NULL;
}

static int read_stack(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return core_file_read_all(ctx, addr, buf, size) ? 0 : -EFAULT;
}

/* What the stack of @th, with @regs, tells. */
static void walk(struct core *c, struct unwind *unwind, const struct arch_regs *regs,
		 struct glibc_thread *th)
{
	struct stack_view view = {.is_stopped = true, .start = regs->word[arch_native->sp],
				  .read = read_stack, .read_ctx = &c->file};
	enum unwind_end end;
	taddr_t pc[PCS];

	arch_unwind_regs(arch_native, regs, &view.regs);
	size_t n = unwind_walk_stopped(unwind, &view, pc, PCS, &end);

	th->is_inside = malloc_modules_have(&c->look.malloc, pc, n);
	th->interrupted_count = (uint32_t)unwind_interrupted(unwind, &view, th->interrupted,
							     THREAD_INTERRUPTED);
}

static void take_threads(struct core *c)
{
	const struct unwind_ops ops = {.module = module_at, .ctx = &c->modules};
	struct unwind *unwind = unwind_new(arch_native, &ops);

	for (size_t i = 0; i < c->file.threads.count; i++) {
		const struct core_thread *from = &c->file.threads.data[i];
		struct glibc_thread *th = vec_add(&c->in.threads);

		*th = (struct glibc_thread){
			.tid = from->tid, .sp = from->regs.word[arch_native->sp],
			.thread_pointer = from->regs.word[arch_native->thread_pointer]};
		walk(c, unwind, &from->regs, th);
		c->look.inside += th->is_inside;
		for (size_t k = 0; k < ARRAY_SIZE(from->regs.word); k++)
			*vec_add(&c->in.registers) = from->regs.word[k];
	}
	unwind_free(unwind);
}

/* -- the report -- */

static int read_core(struct core *c, const char *program)
{
	int rc = core_memory_read(&c->file, &c->in.resident, &c->sums);

	if (rc != 0)
		return rc;
	core_modules_find(&c->file, program, &c->in, &c->modules);
	c->look.modules = c->modules.held;
	malloc_modules_find(c->look.modules.list.data, c->look.modules.list.count, &c->look.malloc);
	take_threads(c);
	c->in.source = core_memory_source(&c->file);
	c->in.source.read_file = object_bytes_read;
	c->in.source.file_ctx = &c->look.modules;
	inspect_run(&c->in, &c->look.report);
	c->look.has_arena = c->look.report.heaps.arenas.count > 0 &&
			    c->look.report.heaps.arenas.data[0].is_main;
	inspect_look_classify(&c->look);
	return 0;
}

static int report(struct run *run, struct core *c, const char *path)
{
	_cleanup_free_ char *why = inspect_title_refusal((uint32_t)c->file.pid, &c->look);
	const struct inspect_core_title of_core = {
		.path = path, .bytes = c->sums.bytes, .zeros = c->sums.zeros,
		.left_out = c->sums.left_out, .missing_files = c->modules.missing};
	struct inspect_title title;

	if (why) {
		log_error("%s", why);
		return -ENOTSUP;
	}
	inspect_title_init(&title, (uint32_t)c->file.pid, c->file.command, &c->look);
	title.core = &of_core;
	return inspect_output_write(run, &title, &c->look, &c->blocks);
}

int inspect_core(struct run *run, const char *path, const char *program)
{
	_cleanup_free_ char *why = NULL;
	struct core c = {.in.wants_types = true,
			 .in.wants_holders = run->options->inspect.pointers};
	int rc = core_file_open(path, &c.file, &why);

	if (rc != 0) {
		log_error("%s: %s", path, why);
		return rc;
	}
	if (inspect_output_wants_blocks(run)) {
		c.in.block = inspect_blocks_add;
		c.in.python_block = inspect_blocks_add_python;
		c.in.block_ctx = &c.blocks;
	}
	rc = read_core(&c, program);
	if (rc == 0)
		rc = report(run, &c, path);
	else
		log_error("%s: cannot be read: %s", path, strerror(-rc));
	inspect_look_deinit(&c.look);
	inspect_input_deinit(&c.in);
	vec_deinit(&c.blocks.list);
	core_file_close(&c.file);
	return rc;
}
