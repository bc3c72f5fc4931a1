/* What languages share. */
#include "languages/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/elf_file.h"

void virtual_function_deinit(struct virtual_function *f)
{
	free(f->name);
	free(f->file);
	free(f->table);
	*f = (struct virtual_function){0};
}

void interpreter_own(struct interpreter *out, void *own, struct virtual_layout *frames)
{
	out->own = own;
	out->frames = frames;
}

void interpreter_close_own(struct interpreter *i)
{
	virtual_layout_deinit(i->frames);
	free(i->own);
}

uint32_t virtual_function_line(const struct virtual_function *f, uint64_t offset, uint32_t unit)
{
	uint64_t i = offset / unit;
	uint32_t line;

	if (i >= f->table_size / sizeof(line))
		return 0;
	memcpy(&line, f->table + i * sizeof(line), sizeof(line));
	return line <= INT32_MAX ? line : 0;
}

/* -- code of loops -- */

/*
 * Compilers move what they think is rare out of the loop, to code that has a name only in .symtab,
 * and CFI of its own. In Debian's 3.14 these are 84 of 85 KiB: nearly all instructions. Only jumps
 * within a function lead to the middle of another one.
 */
#define PARTS_MAX 16u
#define PART_SIZE_MAX (1u << 20)

struct loop_search {
	const struct elf_functions *functions;
	struct virtual_loop part[PARTS_MAX]; /* addresses in the file */
	size_t count;
};

static void add_part(void *ctx, taddr_t target)
{
	struct loop_search *s = ctx;
	size_t i = vec_search(&s->functions->list, e, e->end <= target);
	const struct elf_function *f = &s->functions->list.data[i];

	if (i == s->functions->list.count || f->kind != ELF_FUNCTION || f->start >= target ||
	    f->end - f->start > PART_SIZE_MAX || s->count == PARTS_MAX)
		return;
	for (size_t j = 0; j < s->count; j++)
		if (target >= s->part[j].start && target < s->part[j].end)
			return;
	s->part[s->count++] = (struct virtual_loop){f->start, f->end, VIRTUAL_LOOP};
}

void interpreter_each_branch(struct elf_file *elf, uint64_t start, uint64_t end,
			     void (*fn)(void *ctx, taddr_t target), void *ctx)
{
	const struct elf_segment *segment = elf_file_segment(elf, start);
	_cleanup_free_ uint8_t *bytes = NULL;

	if (segment)
		bytes = elf_file_read(elf, segment->offset + (start - segment->vaddr), end - start);
	if (bytes)
		arch_native->each_branch_out(
			&(struct arch_code){.bytes = bytes, .size = end - start, .at = start}, fn,
			ctx);
}

const struct elf_function *interpreter_function_at(const struct elf_functions *functions,
						   uint64_t start)
{
	size_t i = vec_search(&functions->list, e, e->end <= start);
	const struct elf_function *f = &functions->list.data[i];

	return i < functions->list.count && f->kind == ELF_FUNCTION && f->start == start ? f : NULL;
}

struct called_search {
	const struct elf_functions *functions;
	struct interpreter_called *called;
	const struct elf_function *largest;
};

static void take_called(void *ctx, taddr_t target)
{
	struct called_search *s = ctx;
	const struct elf_function *f = interpreter_function_at(s->functions, target);

	if (f && s->called->count < INTERPRETER_CALLED_MAX)
		s->called->list[s->called->count++] = f;
}

void interpreter_find_called(struct elf_file *elf, const struct elf_functions *functions,
			     uint64_t start, uint64_t end, struct interpreter_called *out)
{
	struct called_search s = {.functions = functions, .called = out};

	out->count = 0;
	interpreter_each_branch(elf, start, end, take_called, &s);
}

static void take_largest(void *ctx, taddr_t target)
{
	struct called_search *s = ctx;
	const struct elf_function *f = interpreter_function_at(s->functions, target);

	if (f && (!s->largest || f->end - f->start > s->largest->end - s->largest->start))
		s->largest = f;
}

const struct elf_function *interpreter_largest_called(struct elf_file *elf,
						      const struct elf_functions *functions,
						      const struct elf_function *caller,
						      const struct elf_function *least)
{
	struct called_search s = {.functions = functions, .largest = least};

	interpreter_each_branch(elf, caller->start, caller->end, take_largest, &s);
	return s.largest;
}

void interpreter_find_parts(struct elf_file *elf, taddr_t bias, struct virtual_layout *l)
{
	struct elf_functions functions;
	struct loop_search s = {.functions = &functions};

	elf_functions_find(elf, &functions);
	for (size_t i = 0; i < l->loops.count && s.count < PARTS_MAX; i++) {
		struct virtual_loop loop = l->loops.data[i];

		if (loop.kind == VIRTUAL_LOOP)
			s.part[s.count++] = (struct virtual_loop){
				loop.start - bias, loop.end - bias, VIRTUAL_LOOP};
	}
	/* the list grows meanwhile */
	for (size_t i = 0; i < s.count; i++) {
		struct virtual_loop part = s.part[i];

		interpreter_each_branch(elf, part.start, part.end, add_part, &s);
		part.start += bias;
		part.end += bias;
		virtual_loop_add(l, &part);
	}
	vec_deinit(&functions.list);
}
