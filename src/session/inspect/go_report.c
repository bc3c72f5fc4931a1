/* Finds the object with Go's runtime, and names paths by the tables of all objects. */
#include "session/inspect/go_report.h"

#include "base/go_table.h"
#include "tracee/state/module.h"

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct memory_source *source = ctx;
	ssize_t n = source->read(source->ctx, addr, buf, size);

	return n > 0 && (size_t)n == size;
}

static bool has_runtime(const struct module *m)
{
	const struct go_table *t = m->file && !m->is_vdso ? go_table_of(m->file) : NULL;
	struct go_function f;

	return t && go_table_find_name(t, "runtime.mallocgc", &f);
}

void go_state_read(const struct held_modules *modules, const struct memory_source *source,
		   struct go_state *out)
{
	struct memory_source copy = *source;
	const struct language_memory memory = {.read = read_memory, .ctx = &copy};
	struct go_heap_places places;

	*out = (struct go_state){0};
	for (size_t i = 0; i < modules->list.count && !out->module; i++)
		if (has_runtime(modules->list.data[i]))
			out->module = modules->list.data[i];
	if (out->module && go_heap_find(out->module->file, &places))
		out->has_heap = go_heap_read(&memory, &places, out->module->bias, &out->heap);
}

void go_state_deinit(struct go_state *s)
{
	go_heap_deinit(&s->heap);
	*s = (struct go_state){0};
}

/* The innermost function at the call before frame->pc, and its line. */
static void name_frame(void *ctx, struct inspect_go_frame *frame)
{
	const struct held_modules *modules = ctx;
	uint64_t vaddr, at;
	const struct module *m = held_modules_find(modules, frame->pc - 1, &vaddr);
	const struct go_table *t = m ? go_table_of(m->file) : NULL;
	struct go_function f;
	const char *inlined;

	if (!t || !go_table_find(t, vaddr, &f))
		return;
	frame->name = f.name;
	go_table_line(t, &f, vaddr, &frame->file, &frame->line);
	at = vaddr;
	if (go_table_inlined(t, &f, &at, &inlined))
		frame->name = inlined;
}

void go_report_make(const struct go_state *s, const struct held_modules *modules,
		    struct inspect_go *out)
{
	struct held_modules list = *modules;

	*out = (struct inspect_go){.is_go = s->module != NULL};
	if (!s->module)
		return;
	out->is_unknown = !s->has_heap;
	out->release = go_table_release(s->module->file);
	out->path = s->module->path;
	out->start = s->module->start;
	out->end = s->module->end;
	if (s->has_heap)
		inspect_go_fill(out, &s->heap, name_frame, &list);
}
