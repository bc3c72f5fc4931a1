/* A sorted list of each object, made on first use. See data_symbols.h. */
#include "symbols/data_symbols.h"

#include <string.h>

#include "base/vec.h"
#include "symbols/debuglink.h"
#include "symbols/symtab.h"

struct variable {
	uint64_t start, end;
	const char *name;
};

struct object {
	struct elf_file *file, *debug;
	VEC(struct variable) list; /* ascending */
};

struct data_symbols {
	VEC(struct object) objects;
};

struct data_symbols *data_symbols_new(void)
{
	return xcalloc(1, sizeof(struct data_symbols));
}

void data_symbols_free(struct data_symbols *d)
{
	for (size_t i = 0; d && i < d->objects.count; i++) {
		elf_file_release(d->objects.data[i].debug);
		elf_file_release(d->objects.data[i].file);
		vec_deinit(&d->objects.data[i].list);
	}
	if (d)
		vec_deinit(&d->objects);
	free(d);
}

static int add_variable(void *ctx, const struct elf_symbol *sym)
{
	struct object *o = ctx;
	const struct elf_segment *segment = elf_file_segment(o->file, sym->vaddr);

	if (sym->is_defined && sym->type == STT_OBJECT && sym->size > 0 && segment &&
	    sym->size <= segment->memsz - (sym->vaddr - segment->vaddr))
		*vec_add(&o->list) = (struct variable){
			.start = sym->vaddr, .end = sym->vaddr + sym->size, .name = sym->name};
	return 0;
}

/* By address; of several in one place the best name, and the largest, come first. */
static int compare(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return strcmp(x->name, y->name) == 0 ? 0 : symtab_is_better_name(x->name, y->name) ? -1 : 1;
}

static struct object *get_object(struct data_symbols *d, struct elf_file *file)
{
	for (size_t i = 0; i < d->objects.count; i++)
		if (d->objects.data[i].file == file)
			return &d->objects.data[i];
	struct object *o = vec_add(&d->objects);
	bool is_whole = elf_file_section(file->elf, ".symtab", NULL) != NULL;

	*o = (struct object){.file = elf_file_hold(file),
			     .debug = is_whole ? NULL : debuglink_find(file, DEBUGLINK_DIRS)};
	elf_file_each_symbol(file, add_variable, o);
	if (o->debug)
		elf_file_each_symbol(o->debug, add_variable, o);
	if (o->list.count > 1)
		qsort(o->list.data, o->list.count, sizeof(*o->list.data), compare);
	return o;
}

const char *data_symbols_find(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			      uint64_t *offset_out)
{
	const struct object *o = get_object(d, file);
	size_t i = vec_search(&o->list, e, e->start <= vaddr);

	if (i == 0)
		return NULL;
	uint64_t start = o->list.data[--i].start;

	while (i > 0 && o->list.data[i - 1].start == start)
		i--;
	if (vaddr >= o->list.data[i].end)
		return NULL;
	*offset_out = vaddr - start;
	return o->list.data[i].name;
}
