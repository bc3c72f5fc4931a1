/*
 * Converts symbols, which may overlap, to one name per address, as Valgrind does (checked with 3.19
 * on an assembler file written for this):
 *
 *   same range                the better name stays
 *   one starts later          it truncates the earlier one, which does not resume after it
 *   same start, other length  the shorter one keeps its range, the longer one begins after it
 *   no size, no type          not a function: such code has no name
 *
 * A priority queue returns the symbols by address; one whose start has moved is reinserted.
 */
#include "symbols/symtab.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "symbols/debug_files.h"

/* Priority queue with the lowest (first, last) on top: the parent of element i is (i - 1) / 2. */
struct symbol_heap {
	struct symtab_entry *data;
	size_t count, capacity;
};

struct collect {
	const struct elf_file *file; /* determines which addresses are code */
	struct symbol_heap heap;
};

static bool is_before(const struct symtab_entry *a, const struct symtab_entry *b)
{
	return a->first != b->first ? a->first < b->first : a->last < b->last;
}

static void heap_push(struct symbol_heap *h, struct symtab_entry entry)
{
	size_t i = h->count;
	(void)vec_add(h);
	for (; i > 0 && is_before(&entry, &h->data[(i - 1) / 2]); i = (i - 1) / 2)
		h->data[i] = h->data[(i - 1) / 2];
	h->data[i] = entry;
}

static struct symtab_entry heap_pop(struct symbol_heap *h)
{
	struct symtab_entry top = h->data[0], moved = h->data[--h->count];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child + 1 < h->count && is_before(&h->data[child + 1], &h->data[child]))
			child++;
		if (child >= h->count || !is_before(&h->data[child], &moved))
			break;
		h->data[i] = h->data[child];
		i = child;
	}
	h->data[i] = moved;
	return top;
}

static size_t length_without_version(const char *name)
{
	return strcspn(name, "@");
}

bool symtab_is_better_name(const char *a, const char *b)
{
	size_t length_a = length_without_version(a), length_b = length_without_version(b);
	if (length_a != length_b)
		return length_a < length_b;
	bool versioned_a = a[length_a] != '\0', versioned_b = b[length_b] != '\0';
	if (versioned_a != versioned_b)
		return versioned_a;
	return strcmp(a, b) < 0;
}

static int collect_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct collect *c = ctx;
	if (!sym->is_defined || sym->size == 0)
		return 0;
	if (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC && sym->type != STT_OBJECT)
		return 0;
	if (sym->bind != STB_GLOBAL && sym->bind != STB_LOCAL && sym->bind != STB_WEAK)
		return 0;
	const struct elf_segment *segment = elf_file_segment(c->file, sym->vaddr);
	if (!segment || !segment->is_exec)
		return 0;
	uint64_t room = segment->memsz - (sym->vaddr - segment->vaddr);
	if (room > UINT64_MAX - sym->vaddr)
		return 0;
	heap_push(&c->heap, (struct symtab_entry){
		.first = sym->vaddr, .last = sym->vaddr + MIN(sym->size, room) - 1,
		.name = sym->name,
	});
	return 0;
}

/*
 * Takes the lowest symbol from the queue and compares it with the next one. Adds it to @t, or drops
 * one of the two, or moves the start of the longer one. @moves_left bounds the work on malicious
 * tables: at 0 the longer one is dropped.
 */
static void settle_lowest(struct symtab *t, struct symbol_heap *heap, size_t *moves_left)
{
	struct symtab_entry low = heap_pop(heap);
	if (heap->count == 0 || low.last < heap->data[0].first) {
		*vec_add(t) = low;
		return;
	}
	if (low.first < heap->data[0].first) {
		low.last = heap->data[0].first - 1;
		*vec_add(t) = low;
		return;
	}
	struct symtab_entry next = heap_pop(heap); /* same start, same length or longer */
	if (next.last == low.last) {
		heap_push(heap, symtab_is_better_name(next.name, low.name) ? next : low);
		return;
	}
	if (*moves_left > 0) {
		(*moves_left)--;
		next.first = low.last + 1;
		heap_push(heap, next);
	}
	heap_push(heap, low);
}

void symtab_init(struct symtab *t, struct elf_file *file, struct elf_file *debug)
{
	*t = (struct symtab){0};
	struct collect c = {.file = file};
	elf_file_each_symbol(file, collect_symbol, &c);
	if (debug)
		elf_file_each_symbol(debug, collect_symbol, &c);
	size_t moves_left = 16 * c.heap.count;
	vec_reserve(t, c.heap.count);
	while (c.heap.count > 0)
		settle_lowest(t, &c.heap, &moves_left);
	vec_deinit(&c.heap);
}

void symtab_deinit(struct symtab *t)
{
	vec_deinit(t);
}

struct symtab_entry *symtab_find(struct symtab *t, uint64_t vaddr)
{
	size_t n = vec_search(t, e, e->first <= vaddr);
	return n > 0 && vaddr <= t->data[n - 1].last ? &t->data[n - 1] : NULL;
}

/* A sorted list of each object, made on first use. See symtab.h. */

struct variable {
	uint64_t start, end;
	const char *name;
};

struct data_object {
	struct elf_file *file, *debug;
	VEC(struct variable) list; /* ascending */
};

struct data_symbols {
	VEC(struct data_object) objects;
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
	struct data_object *o = ctx;
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

static struct data_object *get_object(struct data_symbols *d, struct elf_file *file)
{
	for (size_t i = 0; i < d->objects.count; i++)
		if (d->objects.data[i].file == file)
			return &d->objects.data[i];
	struct data_object *o = vec_add(&d->objects);
	bool is_whole = elf_file_section(file->elf, ".symtab", NULL) != NULL;

	*o = (struct data_object){.file = elf_file_hold(file),
			     .debug = is_whole ? NULL : debuglink_find(file, DEBUGLINK_DIRS)};
	elf_file_each_symbol(file, add_variable, o);
	if (o->debug)
		elf_file_each_symbol(o->debug, add_variable, o);
	vec_sort(&o->list, compare);
	return o;
}

const char *data_symbols_find(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			      uint64_t *offset_out)
{
	const struct data_object *o = get_object(d, file);
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

/* Narrows @out, in which @vaddr is, to its section. */
static void find_section(struct elf_file *file, uint64_t vaddr, struct data_place *out)
{
	size_t names;
	Elf_Scn *scn = NULL;

	if (elf_getshdrstrndx(file->elf, &names) != 0)
		return;
	while ((scn = elf_nextscn(file->elf, scn))) {
		GElf_Shdr header;

		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    header.sh_flags & SHF_TLS || vaddr < header.sh_addr ||
		    vaddr - header.sh_addr >= header.sh_size)
			continue;
		out->first = header.sh_addr;
		out->start = MAX(out->start, header.sh_addr);
		out->end = MIN(out->end, header.sh_addr + header.sh_size);
		out->name = elf_strptr(file->elf, names, header.sh_name);
		return;
	}
}

bool data_symbols_place(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			struct data_place *out)
{
	const struct data_object *o = get_object(d, file);
	const struct elf_segment *segment = elf_file_segment(file, vaddr);
	size_t next = vec_search(&o->list, e, e->start <= vaddr), i = next;
	uint64_t offset, start = 0;
	const char *name = data_symbols_find(d, file, vaddr, &offset);

	if (!segment)
		return false;
	*out = (struct data_place){.first = segment->vaddr, .start = segment->vaddr,
				   .end = segment->vaddr + segment->memsz, .name = name,
				   .is_variable = name != NULL};
	if (next < o->list.count)
		out->end = MIN(out->end, o->list.data[next].start);
	while (i > 0 && (i == next || o->list.data[i - 1].start == start))
		start = o->list.data[--i].start;
	if (name) {
		out->first = out->start = start;
		out->end = MIN(out->end, o->list.data[i].end);
		return true;
	}
	if (next > 0)
		out->start = MAX(out->start, o->list.data[i].end);
	find_section(file, vaddr, out);
	return true;
}
