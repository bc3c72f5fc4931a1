/*
 * Functions as listed by elf_functions, and the branches between them: parts that a compiler moved
 * elsewhere jump back into the middle of a function.
 */
#include "tracee/syscalls/syscall_text.h"

#include <stdlib.h>
#include "tracee/state/target_internal.h"

const uint8_t *syscall_text_segment(struct syscall_text *t, size_t i)
{
	const struct elf_segment *seg = &t->file->segment[i];

	if (!t->bytes[i])
		t->bytes[i] = elf_file_read(t->file, seg->offset, seg->filesz);
	return t->bytes[i];
}

void syscall_text_init(const struct arch *arch, struct elf_file *file, struct syscall_text *out)
{
	*out = (struct syscall_text){.arch = arch, .file = file};
	elf_functions_find(file, &out->functions);
	out->bytes = xcalloc(file->segment_count + 1, sizeof(*out->bytes));
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segment[i].is_exec)
			syscall_text_segment(out, i);
	}
}

void syscall_text_deinit(struct syscall_text *t)
{
	for (size_t i = 0; i < t->file->segment_count; i++)
		free(t->bytes[i]);
	free(t->bytes);
	vec_deinit(&t->entries);
	vec_deinit(&t->functions.list);
}

size_t syscall_text_function(const struct syscall_text *t, uint64_t vaddr)
{
	return vec_search(&t->functions.list, f, f->start <= vaddr) - 1;
}

const struct elf_function *syscall_text_holder(const struct syscall_text *t, uint64_t vaddr)
{
	size_t i = syscall_text_function(t, vaddr);

	return i == SIZE_MAX || t->functions.list.data[i].end <= vaddr ? NULL :
									 &t->functions.list.data[i];
}

struct arch_code syscall_text_code(const struct syscall_text *t, size_t i)
{
	const struct elf_function *f = &t->functions.list.data[i];
	uint64_t start = f->start, end = f->end;
	const struct elf_segment *seg = elf_file_segment(t->file, start);
	const uint8_t *bytes = t->bytes[seg - t->file->segment];

	if (i > 0 && f->kind == ELF_GAP && f[-1].end == start && f[-1].start >= seg->vaddr)
		start = f[-1].start;
	return (struct arch_code){.bytes = bytes ? bytes + (start - seg->vaddr) : NULL,
				  .size = bytes ? end - start : 0,
				  .at = start};
}

static void note_entry(void *ctx, taddr_t target)
{
	struct syscall_text *t = ctx;
	const struct elf_function *f = syscall_text_holder(t, target);

	if (f && (f->start != target || f->kind == ELF_GAP))
		*vec_add(&t->entries) = target;
}

static int compare(const void *a, const void *b)
{
	taddr_t x = *(const taddr_t *)a, y = *(const taddr_t *)b;

	return (x > y) - (x < y);
}

void syscall_text_link(struct syscall_text *t)
{
	t->is_readable = true;
	for (size_t i = 0; i < t->functions.list.count; i++) {
		const struct arch_code code = syscall_text_code(t, i);
		bool is_whole = code.bytes && t->arch->each_branch_out(&code, note_entry, t) == 0;
		if (!is_whole && t->functions.list.data[i].kind == ELF_FUNCTION)
			t->is_readable = false;
	}
	if (t->entries.count > 1)
		qsort(t->entries.data, t->entries.count, sizeof(*t->entries.data), compare);
}

uint32_t *syscall_text_entries(const struct syscall_text *t, struct arch_code *code)
{
	VEC(uint32_t) found = {0};
	size_t i = vec_search(&t->entries, entry, *entry < code->at);

	for (; i < t->entries.count && t->entries.data[i] - code->at < code->size; i++)
		*vec_add(&found) = (uint32_t)(t->entries.data[i] - code->at);
	code->entry = found.data;
	code->entry_count = found.count;
	return found.data;
}
