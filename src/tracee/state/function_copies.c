/* A search of all code by bytes finds the few functions that may refer to it; these are decoded. */
#include "tracee/state/function_copies.h"

#include <string.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"

#define ALIGNMENT_MAX 64u /* of functions, bytes */

struct copy_search {
	struct elf_file *file;
	uint64_t function;
	const char *const *setters;
	VEC(struct elf_function) allowed; /* code of setters */
	struct elf_functions functions;
	const struct arch_code *code;     /* of the segment that is searched */
	uint64_t examined;                /* start of the last function */
	bool is_found;
};

static int note_setter(void *ctx, const struct elf_symbol *sym)
{
	struct copy_search *s = ctx;

	for (size_t i = 0; s->setters[i] && elf_symbol_is_function(sym); i++)
		if (strstr(sym->name, s->setters[i]))
			*vec_add(&s->allowed) =
				(struct elf_function){sym->vaddr, sym->vaddr + sym->size,
						      ELF_FUNCTION};
	return 0;
}

static bool is_allowed(const struct copy_search *s, uint64_t at)
{
	for (size_t i = 0; i < s->allowed.count; i++)
		if (at >= s->allowed.data[i].start && at < s->allowed.data[i].end)
			return true;
	return false;
}

/* What is before the function is not said to run into it. */
static bool is_padding(const struct copy_search *s, const struct elf_function *f)
{
	return f->kind == ELF_GAP && f->end == s->function && f->end - f->start < ALIGNMENT_MAX;
}

static void note_hint(void *ctx, taddr_t at)
{
	struct copy_search *s = ctx;
	size_t i = vec_search(&s->functions.list, f, f->end <= at);
	const struct elf_function *f = &s->functions.list.data[i];

	if (s->is_found || is_allowed(s, at))
		return;
	if (i < s->functions.list.count && f->start <= at &&
	    (f->kind == ELF_NO_CODE || is_padding(s, f)))
		return;
	if (i == s->functions.list.count || f->start > at || f->start < s->code->at ||
	    f->end > s->code->at + s->code->size) {
		s->is_found = true;
		return;
	}
	if (s->examined == f->start)
		return;
	s->examined = f->start;
	const struct arch_code code = {.bytes = s->code->bytes + (f->start - s->code->at),
				       .size = f->end - f->start, .at = f->start};
	int found = arch_native->refers(&code, f->start, s->function, s->function + 1);

	/* what is between functions, and does not decode, is data */
	s->is_found = found < 0 ? f->kind == ELF_FUNCTION : found & ~ARCH_REFERS_BRANCH;
}

bool functions_may_have_copies(struct elf_file *file, const uint64_t *vaddr, size_t count,
			       const char *const *setters)
{
	struct copy_search s = {.file = file, .setters = setters};

	elf_file_each_symbol(file, note_setter, &s);
	elf_functions_find(file, &s.functions);
	for (size_t i = 0; i < file->segment_count && !s.is_found; i++) {
		const struct elf_segment *segment = &file->segment[i];

		if (!segment->is_exec)
			continue;
		_cleanup_free_ uint8_t *bytes =
			elf_file_read(file, segment->offset, segment->filesz);
		const struct arch_code code = {.bytes = bytes, .size = segment->filesz,
					       .at = segment->vaddr};

		s.code = &code;
		s.is_found = !bytes;
		for (size_t k = 0; k < count && !s.is_found; k++) {
			s.function = vaddr[k];
			s.examined = 0;
			arch_native->each_hint(&code, vaddr[k], vaddr[k] + 1, note_hint, &s);
		}
	}
	vec_deinit(&s.allowed);
	vec_deinit(&s.functions.list);
	return s.is_found;
}
