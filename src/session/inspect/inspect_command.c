/*
 * --inspect of a running process and of a core file, whose program and libraries are found by
 * their build-ids.
 */
#include "session/inspect/inspect_command.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/files.h"
#include "base/log.h"
#include "base/proc.h"
#include "inspect/core_file.h"
#include "inspect/inspect.h"
#include "output/inspect_report.h"
#include "session/exec_info.h"
#include "session/inspect/inspect_stopped.h"
#include "session/inspect/inspect_title.h"
#include "session/inspect/malloc_module.h"
#include "session/inspect/object_names.h"
#include "session/out.h"
#include "session/run.h"
#include "tracee/control/attach.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "unwind/unwind.h"

struct inspect_blocks;
struct inspect_stopped;
struct inspect_title;
struct run;

/* Whether the output is a list of blocks, which must be collected. */
static bool inspect_output_wants_blocks(const struct run *run)
{
	const char *pattern = run->options->inspect.out;

	return pattern && inspect_title_wants_blocks(pattern);
}

/* The file of the program or a library that @path is, too; NULL. */
static const char *find_object(const struct held_modules *modules, const char *path)
{
	for (size_t i = 0; i < modules->list.count; i++) {
		const struct module *m = modules->list.data[i];

		if (m->file && !m->is_vdso && same_file(m->file->path, path))
			return m->path;
	}
	return NULL;
}

/* Writes the report for @t's process. 0, or -errno after a message. */
static int inspect_output_write(struct run *run, const struct inspect_title *t,
				const struct inspect_stopped *look, struct inspect_blocks *blocks)
{
	const struct out_name name = {.which = OUT_INSPECT, .pid = t->pid,
				      .needs_pid = options_attach_many(run->options)};
	_cleanup_free_ char *path = NULL;
	int rc = run->options->inspect.out ? out_path(run, &name, &path) : 0;

	if (rc != 0)
		return rc;
	const char *object = path ? find_object(&look->modules, path) : NULL;

	if (object) {
		log_error("--inspect-out would overwrite %s, which process %u has mapped", object,
			  t->pid);
		return -EEXIST;
	}
	return inspect_title_save(
		&(struct inspect_found){path ? path : "-", t, &look->report, blocks});
}

/* The program and the libraries of a process that left a core file. */

struct core_modules {
	struct held_modules held;
	uint32_t missing; /* objects whose files are missing or have changed */
};

/* Falls back to the object's file if its headers are not in the core. */

struct object_finder {
	const struct core_file *core;
	const char *program;
	struct inspect_input *in;
	struct core_modules *out;
};

/* The end of the last mapping of the file whose first mapping is number @i. */
static taddr_t find_end(const struct inspect_input *in, size_t i, bool *is_exec_out)
{
	const struct map *list = in->resident.maps.list.data, *first = &list[i];
	taddr_t end = first->end;

	for (*is_exec_out = false; i < in->resident.maps.list.count; i++) {
		bool is_same = strcmp(list[i].path, first->path) == 0;

		if (*list[i].path && !is_same)
			break;
		*is_exec_out |= is_same && list[i].is_exec;
		end = is_same ? list[i].end : end;
	}
	return end;
}

static bool is_same_object(const struct elf_file *file, const struct core_object *o)
{
	return o->build_id_size == 0 ||
	       (file->build_id && file->build_id_size == o->build_id_size &&
		memcmp(file->build_id, o->build_id, o->build_id_size) == 0);
}

static struct elf_file *open_file(const struct object_finder *f, const struct map *first,
				  taddr_t end, const struct core_object *o)
{
	taddr_t entry = f->core->entry;
	bool is_program = entry >= first->start && entry < end;
	const char *path = is_program && f->program ? f->program : first->path;
	struct elf_file *file;

	if (elf_file_open(NULL, path, first->path, &file) != 0) {
		log_verbose("%s: cannot be read: its symbols are unknown", path);
		return NULL;
	}
	if (is_same_object(file, o))
		return file;
	if (path == f->program)
		log_warn("%s is not the program of the core: their build-ids differ", path);
	else
		log_verbose("%s is not the file that the process had: its build-id differs", path);
	elf_file_release(file);
	return NULL;
}

/* gcore leaves code out, and the list of mapped files does not say what it was. */
static void add_segment(struct object_finder *f, taddr_t start, taddr_t end, bool is_exec)
{
	struct maps *maps = &f->in->resident.maps;

	inspect_add_segment(f->in, start, end);
	for (size_t i = vec_search(&maps->list, e, e->end <= start);
	     i < maps->list.count && maps->list.data[i].start < end; i++)
		maps->list.data[i].is_exec |= is_exec;
}

static void add_segments(struct object_finder *f, const struct module *m,
			 const struct core_object *o)
{
	for (size_t i = 0; i < o->segments; i++)
		add_segment(f, o->segment[i].start, o->segment[i].end, o->segment[i].is_exec);
	for (size_t i = 0; m->file && o->segments == 0 && i < m->file->segment_count; i++) {
		const struct elf_segment *s = &m->file->segment[i];
		taddr_t start = m->bias + s->vaddr;

		add_segment(f, start, start + s->memsz, s->is_exec);
	}
}

static taddr_t bias_of(const struct elf_file *file, const struct map *first)
{
	const struct elf_segment *s = file->segment;

	return first->start - ROUND_DOWN(s->vaddr - s->offset, (taddr_t)PAGE_SIZE_MIN);
}

static void add_module(struct object_finder *f, size_t i)
{
	const struct map *first = &f->in->resident.maps.list.data[i];
	bool is_exec;
	taddr_t end = find_end(f->in, i, &is_exec);
	struct core_object object = {0};
	bool is_object = core_object_read(f->core, first->start, &object);

	if (!is_object && !is_exec)
		return;
	struct module *m = xcalloc(1, sizeof(*m));

	*m = (struct module){.id = (uint32_t)i + 1, .users = 1, .start = first->start, .end = end,
			     .bias = object.bias, .path = xstrdup(first->path)};
	m->file = open_file(f, first, end, &object);
	if (m->file && !is_object && m->file->segment_count > 0)
		m->bias = bias_of(m->file, first);
	f->out->missing += !m->file;
	add_segments(f, m, &object);
	*vec_add(&f->out->held.list) = m;
}

/*
 * Finds them by the mappings in @c. A file is used only if its build-id is that of the object in
 * the core. Adds their segments to @in, whose mappings are known. @program: the program's file;
 * NULL = the one named in @c.
 */
static void core_modules_find(const struct core_file *c, const char *program,
			      struct inspect_input *in, struct core_modules *out)
{
	struct object_finder f = {c, program, in, out};

	*out = (struct core_modules){0};
	for (size_t i = 0; i < in->resident.maps.list.count; i++) {
		const struct map *m = &in->resident.maps.list.data[i];

		if (*m->path == '/' && m->offset == 0 && !m->is_shared)
			add_module(&f, i);
	}
}

/*
 * Converts the contents of a core file to the input of inspect_run; inspect_stopped.c does so for a
 * stopped process.
 */

#define PCS 64u

struct core {
	struct core_file file;
	struct core_sums sums;
	struct core_modules modules;
	struct inspect_input in;
	struct inspect_stopped look;
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
	inspect_stopped_classify(&c->look);
	return 0;
}

static int report_core(struct run *run, struct core *c, const char *path)
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
		rc = report_core(run, &c, path);
	else
		log_error("%s: cannot be read: %s", path, strerror(-rc));
	inspect_stopped_deinit(&c.look);
	inspect_input_deinit(&c.in);
	vec_deinit(&c.blocks.list);
	core_file_close(&c.file);
	return rc;
}

/* Attaches without installing anything, reads while all threads are stopped, and detaches. */

struct look {
	struct registry *registry;
	struct target *target;
	struct inspect_stopped result;
	bool wants_blocks, wants_holders;
	struct inspect_objects objects;
	struct memory_copy copy;
	uint64_t copied_most;
	struct inspect_blocks blocks;
	int rc;
	uint64_t stopped_ns;            /* in all looks */
};

static void read_objects(void *ctx, struct address_space *s)
{
	struct look *l = ctx;

	inspect_objects_read(s, &l->objects);
}

static void look_at(void *ctx, struct address_space *s)
{
	struct look *l = ctx;

	const struct inspect_wish wish = {.block = l->wants_blocks ? inspect_blocks_add : NULL,
					  .python_block = l->wants_blocks ?
						  inspect_blocks_add_python : NULL,
					  .ctx = &l->blocks, .wants_types = true,
					  .wants_holders = l->wants_holders,
					  .objects = &l->objects, .copy = &l->copy};

	l->rc = inspect_stopped(l->target, s, &wish, &l->result);
}

static int read_process(struct look *l, pid_t pid, enum attach_problem *problem_out,
			long *detail_out)
{
	const struct target_options options = {.only_reads = true, .probes = {.none = true}};
	const struct event_sink sink = {
		.ctx = l, .before_stop = read_objects, .space_new = look_at};

	l->rc = 0;
	inspect_stopped_copy_init(&l->copy, proc_find_reader(pid), l->copied_most);
	l->target = target_new(&options, &sink, l->registry);
	int rc = target_attach(l->target, pid, problem_out, detail_out);

	if (rc == 0) {
		l->stopped_ns += target_stats(l->target)->attach_ns;
		target_detach(l->target);
	}
	target_free(l->target);
	if (rc == 0 && l->rc == 0)
		inspect_stopped_classify(&l->result);
	memory_copy_deinit(&l->copy);
	inspect_objects_deinit(&l->objects);
	return rc != 0 ? rc : l->rc;
}

static void forget(struct look *l)
{
	inspect_stopped_deinit(&l->result);
	l->blocks.list.count = 0;
}

static int report_process(struct run *run, pid_t pid, struct look *l)
{
	_cleanup_free_ char *why = inspect_title_refusal((uint32_t)pid, &l->result);
	_cleanup_free_ char *command = exec_info_command(proc_find_reader(pid), false);
	struct inspect_title title;

	if (why) {
		log_error("%s", why);
		return -ENOTSUP;
	}
	inspect_title_init(&title, (uint32_t)pid, command ? command : "", &l->result);
	title.stopped_ns = l->stopped_ns;
	return inspect_output_write(run, &title, &l->result, &l->blocks);
}

int inspect_process(struct run *run, pid_t pid, enum attach_problem *problem_out,
		    long *detail_out)
{
	struct look l = {.registry = &run->registry,
			 .wants_blocks = inspect_output_wants_blocks(run),
			 .wants_holders = run->options->inspect.pointers,
			 .copied_most = run->options->inspect.copy};
	int rc = read_process(&l, pid, problem_out, detail_out);

	for (uint32_t i = 1; rc == 0 && i < PYTHON_LOOKS; i++) {
		if (!python_report_is_torn(&l.result.report.python))
			break;
		forget(&l);
		rc = read_process(&l, pid, problem_out, detail_out);
	}
	if (rc == 0) {
		rc = report_process(run, pid, &l);
		inspect_stopped_deinit(&l.result);
	} else if (*problem_out == ATTACH_OK) {
		log_error("process %d: its memory cannot be read: %s", (int)pid, strerror(-rc));
	}
	vec_deinit(&l.blocks.list);
	return rc;
}
