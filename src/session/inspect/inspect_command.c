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
#include "session/inspect/copy_ahead.h"
#include "session/inspect/inspect_stopped.h"
#include "session/inspect/inspection.h"
#include "session/inspect/malloc_module.h"
#include "session/inspect/object_names.h"
#include "session/inspect/touched.h"
#include "session/out.h"
#include "session/run.h"
#include "tracee/control/attach.h"
#include "tracee/inject/touched_pages.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "unwind/unwind.h"

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

/*
 * The name of output @which; NULL: none is wanted. The caller frees it. 0, or -errno after a
 * message.
 */
static int name_output(struct run *run, const struct inspection *i, enum output which,
		       char **path_out)
{
	const struct out_name name = {.which = which, .pid = i->title.pid,
				      .needs_pid = options_attach_many(run->options)};
	int rc = out_pattern(run->options, which) ? out_path(run, &name, path_out) : 0;
	const char *object = *path_out ? find_object(&i->look.modules, *path_out) : NULL;

	if (rc != 0 || !object)
		return rc;
	log_error("%s would overwrite %s, which process %u has mapped", out_rows[which].option,
		  object, i->title.pid);
	return -EEXIST;
}

/* Writes the report, or says why there is none. 0, or -errno after a message. */
static int report(struct run *run, struct inspection *i)
{
	_cleanup_free_ char *path = NULL, *page = NULL;

	if (i->why) {
		log_error("%s", i->why);
		return -ENOTSUP;
	}
	int rc = name_output(run, i, inspection_output(run->options), &path);

	if (rc == 0)
		rc = name_output(run, i, OUT_HTML, &page);
	if (rc == 0 && page)
		rc = inspection_save_page(i, page);
	if (rc == 0 && (path || !page))
		rc = inspection_save(i, path ? path : "-");
	return rc;
}

/* The program and the libraries of a process that left a core file. */

struct core_modules {
	struct held_modules held;
	uint32_t missing; /* objects whose files are missing or have changed */
};

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
		m->bias = first->start - ROUND_DOWN(m->file->segment->vaddr -
						    m->file->segment->offset,
						    (taddr_t)PAGE_SIZE_MIN);
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
	struct inspection inspection;
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
	struct inspect_stopped *look = &c->inspection.look;
	enum unwind_end end;
	taddr_t pc[PCS], sp[PCS];

	arch_unwind_regs(arch_native, regs, &view.regs);
	unwind_keep_sp(unwind, sp);
	size_t n = unwind_walk_stopped(unwind, &view, pc, PCS, &end);

	unwind_keep_sp(unwind, NULL);
	if (look->wants_graph)
		inspect_add_frames(&look->in, th->tid, pc, sp, n);
	th->is_inside = malloc_modules_have(&look->malloc, pc, n);
	th->interrupted_count = (uint32_t)unwind_interrupted(unwind, &view, th->interrupted,
							     THREAD_INTERRUPTED);
}

static void take_threads(struct core *c)
{
	const struct unwind_ops ops = {.module = module_at, .ctx = &c->modules};
	struct inspect_stopped *look = &c->inspection.look;
	struct unwind *unwind = unwind_new(arch_native, &ops);

	for (size_t i = 0; i < c->file.threads.count; i++) {
		const struct core_thread *from = &c->file.threads.data[i];
		struct glibc_thread *th = vec_add(&look->in.threads);

		*th = (struct glibc_thread){
			.tid = from->tid, .sp = from->regs.word[arch_native->sp],
			.thread_pointer = from->regs.word[arch_native->thread_pointer]};
		walk(c, unwind, &from->regs, th);
		look->inside += th->is_inside;
		for (size_t k = 0; k < ARRAY_SIZE(from->regs.word); k++)
			*vec_add(&look->in.registers) = from->regs.word[k];
	}
	unwind_free(unwind);
}

/* -- the report -- */

static int read_core(struct core *c, const char *program)
{
	struct inspect_stopped *look = &c->inspection.look;
	const struct inspect_wish wish = inspection_wish(&c->inspection);
	int rc = core_memory_read(&c->file, &look->in.resident, &c->sums);

	if (rc != 0)
		return rc;
	core_modules_find(&c->file, program, &look->in, &c->modules);
	look->modules = c->modules.held;
	look->wants_graph = wish.wants_graph;
	look->graph.keeps_edges = wish.wants_graph;
	look->graph.drops_places = wish.drops_places;
	look->graph.containers = wish.containers;
	malloc_modules_find(look->modules.list.data, look->modules.list.count, &look->malloc);
	take_threads(c);
	look->in.source = core_memory_source(&c->file);
	look->in.source.read_file = object_bytes_read;
	look->in.source.file_ctx = &look->modules;
	look->in.block = wish.block;
	look->in.python_block = wish.python_block;
	look->in.block_ctx = wish.ctx;
	look->in.wants_types = wish.wants_types;
	look->in.wants_holders = wish.wants_holders;
	look->in.wants_python = wish.wants_graph;
	look->is_copied = true;
	go_state_read(&look->modules, &look->in.source, &look->go);
	look->in.has_go = look->go.module != NULL;
	inspect_stopped_classify(look);
	inspection_judge(&c->inspection, (uint32_t)c->file.pid, c->file.command);
	return 0;
}

int inspect_core(struct run *run, const char *path, const char *program)
{
	_cleanup_free_ char *why = NULL;
	struct core c = {0};
	int rc = core_file_open(path, &c.file, &why);

	if (rc != 0) {
		log_error("%s: %s", path, why);
		return rc;
	}
	inspection_init(&c.inspection, run->options, inspection_path(run->options));
	rc = read_core(&c, program);
	const struct inspect_core_title of_core = {
		.path = path, .bytes = c.sums.bytes, .zeros = c.sums.zeros,
		.left_out = c.sums.left_out, .missing_files = c.modules.missing};

	c.inspection.title.core = &of_core;
	if (rc == 0)
		rc = report(run, &c.inspection);
	else
		log_error("%s: cannot be read: %s", path, strerror(-rc));
	inspection_deinit(&c.inspection);
	core_file_close(&c.file);
	return rc;
}

/* Attaches without installing anything, reads while all threads are stopped, and detaches. */

#define HUGE_READ_MAX (UINT64_C(4) << 30) /* a second */
#define TOUCHED_NS UINT64_C(2000000000) /* to find what was touched: the process is stopped */

struct process_reader {
	const struct options *options;
	struct inspection inspection;
	struct inspect_objects objects;
	struct written_pages written; /* since it was copied ahead; closed = it was not */
	bool has_touched;             /* found in an earlier look, before anything was read */
	struct inspect_visit visit;
};

static void read_objects(void *visit, struct address_space *s)
{
	struct process_reader *r = ((struct inspect_visit *)visit)->ctx;

	inspect_objects_read(s, &r->objects);
}

/* Before anything is read, which would touch it. */
static int find_touched(struct process_reader *r, struct address_space *s)
{
	if (r->inspection.cold == 0 || r->has_touched)
		return 0;
	r->has_touched = true;
	return touched_pages_find(r->visit.target, s, TOUCHED_NS, &r->inspection.touched);
}

static int look_at(struct inspect_visit *v, struct address_space *s)
{
	struct process_reader *r = v->ctx;
	struct inspect_wish wish = inspection_wish(&r->inspection);
	int rc = find_touched(r, s);

	wish.objects = &r->objects;
	if (r->written.uffd >= 0)
		wish.written = &r->written;
	if (rc == 0)
		rc = inspect_stopped(v->target, s, &wish, &r->inspection.look);
	r->inspection.rc = rc;
	return rc;
}

static int read_process(struct inspection *i, void *ctx)
{
	struct process_reader *r = ctx;
	pid_t pid = r->visit.pid;

	inspect_stopped_copy_init(&i->copy, proc_find_reader(pid),
				  copy_ahead_most(r->options, false));
	r->written = (struct written_pages){.uffd = -1, .pagemap = -1};
	if (i->cold == 0) /* it would touch all of it */
		copy_ahead(&i->copy, r->visit.registry, pid, &r->written);
	int rc = inspect_visit_run(&r->visit);

	i->stopped_ns += r->visit.stopped_ns;
	written_pages_end(&r->written);
	inspect_objects_deinit(&r->objects);
	return rc;
}

/* What to do about process @pid, which ended while it was about to be read. */
static void explain_end(const struct options *o, pid_t pid)
{
	log_error("process %d ended before its memory could be read; %s -- PROGRAM shows it at the "
		  "end of a program that ptmem starts",
		  (int)pid, o->graph.what ? "ptmem --graph" : "ptmem --inspect-at-exit");
}

/* Whether process @pid, which was there, could not be read because it has ended since. */
static bool has_ended(pid_t pid, int rc, enum attach_problem problem)
{
	if (problem == ATTACH_OK)
		return rc == -ESRCH || proc_is_dead(pid);
	return problem == ATTACH_NO_PROCESS || problem == ATTACH_ZOMBIE;
}

int inspect_process(struct run *run, pid_t pid, enum attach_problem *problem_out,
		    long *detail_out)
{
	bool was_alive = !proc_is_dead(pid);
	struct process_reader r = {.options = run->options, .visit = {
		.registry = &run->registry, .pid = pid, .before = read_objects, .fn = look_at,
		.makes_calls = run->options->inspect.cold > 0}};

	r.visit.ctx = &r;
	inspection_init(&r.inspection, run->options, inspection_path(run->options));
	int rc = 0;

	r.inspection.rc = -ESRCH;
	if (r.inspection.cold > 0)
		rc = touched_wait(&run->registry, pid, &r.inspection.cold, problem_out,
				  detail_out);
	if (rc != 0) {
		inspection_deinit(&r.inspection);
		return rc;
	}
	rc = inspection_read(&r.inspection, read_process, &r);
	*problem_out = r.visit.problem;
	*detail_out = r.visit.detail;
	if (rc == 0) {
		_cleanup_free_ char *command = exec_info_command(proc_find_reader(pid), false);

		inspection_read_huge(&r.inspection, proc_find_reader(pid), HUGE_READ_MAX);
		inspection_judge(&r.inspection, (uint32_t)pid, command ? command : "");
		rc = report(run, &r.inspection);
	} else if (was_alive && has_ended(pid, rc, *problem_out)) {
		*problem_out = ATTACH_OK;
		explain_end(run->options, pid);
	} else if (*problem_out == ATTACH_OK) {
		log_error("process %d: its memory cannot be read: %s", (int)pid, strerror(-rc));
	}
	inspection_deinit(&r.inspection);
	return rc;
}
