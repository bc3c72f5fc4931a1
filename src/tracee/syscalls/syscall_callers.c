/*
 * Functions as listed by elf_functions, and the branches between them: parts that a compiler moved
 * elsewhere jump back into the middle of a function.
 */
#include "tracee/syscalls/syscall_sites.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/* All bytes of segment @i of the file, or NULL. */
static const uint8_t *syscall_text_segment(struct syscall_text *t, size_t i)
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
	vec_sort(&t->entries, compare);
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

/*
 * The proof. A function gets only the arguments of its direct callers if
 *
 *	no word of data holds an address in it     exported symbols, relocations, tables of pointers
 *	no operand in the text does                lea, mov $address
 *	no branch leads into its middle
 *	the code before it does not run into it
 *
 * Its address may be in the global offset table, if that word is only compared: the C library
 * checks whether a signal interrupted a thread in C. The bytes are searched for anything that may
 * be a reference; decoding the containing function then excludes false ones.
 */

#define PAIRS_MAX 16    /* of functions and values passed on; more are not followed */
#define PASSED_MAX 64   /* calls of one function by another */
#define NUMBERS_MAX 512

struct proof {
	struct syscall_text *text;
	const struct elf_function *of;
	bool is_doubtful;
};

/* -- references in the text -- */

struct uses {
	struct syscall_text *text;
	uint64_t start, end;
	size_t last;            /* function being examined */
	int found;              /* enum arch_reference; or negative */
	struct syscall_callers *callers; /* NULL: not wanted */
};

static void examine_function(struct uses *u, size_t function)
{
	const struct elf_function *f = &u->text->functions.list.data[function];
	const struct arch_code code = syscall_text_code(u->text, function);
	int found = f->kind == ELF_NO_CODE || !code.bytes ?
			    -1 :
			    u->text->arch->refers(&code, f->start, u->start, u->end);

	/* the contents of a gap are interpreted on a guess */
	if (found > 0 && f->kind == ELF_GAP)
		found = -1;
	if (found > 0 && found & ARCH_REFERS_BRANCH && u->callers)
		*vec_add(&u->callers->list) = function;
	u->found = found < 0 || u->found < 0 ? -1 : u->found | found;
}

static void note_hint(void *ctx, taddr_t at)
{
	struct uses *u = ctx;
	size_t function = syscall_text_function(u->text, at);
	const struct elf_function *f = syscall_text_holder(u->text, at);

	if (!f)
		u->found = -1;
	else if (function != u->last && u->found >= 0)
		examine_function(u, function);
	u->last = function;
}

/* All references in the text to [@start, @end): enum arch_reference; negative: unknown. */
static int find_uses(struct syscall_text *t, uint64_t start, uint64_t end,
		     struct syscall_callers *callers)
{
	struct uses u = {.text = t, .start = start, .end = end, .last = SIZE_MAX,
			 .callers = callers};

	for (size_t i = 0; i < t->file->segment_count && u.found >= 0; i++) {
		const struct elf_segment *seg = &t->file->segment[i];
		if (!seg->is_exec)
			continue;
		const struct arch_code all = {.bytes = t->bytes[i], .size = seg->filesz,
					      .at = seg->vaddr};
		if (!all.bytes)
			return -1;
		t->arch->each_hint(&all, start, end, note_hint, &u);
	}
	return u.found;
}

/* -- references in data -- */

struct section {
	const char *name;
	GElf_Shdr header;
};

/* The section of the file that contains @vaddr. */
static bool find_section(struct elf_file *file, uint64_t vaddr, struct section *out)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(file->elf, section))) {
		GElf_Shdr h;
		if (!gelf_getshdr(section, &h) || !(h.sh_flags & SHF_ALLOC) ||
		    h.sh_type == SHT_NOBITS || vaddr - h.sh_addr >= h.sh_size)
			continue;
		const char *name = elf_strptr(file->elf, names, h.sh_name);
		*out = (struct section){.name = name ? name : "", .header = h};
		return true;
	}
	return false;
}

/*
 * Whether the word at @slot of the offset table @got is only compared. The table is accessed word
 * by word if no code uses its symbol (_GLOBAL_OFFSET_TABLE_).
 */
static bool is_compared_only(struct proof *p, const struct section *got, uint64_t slot)
{
	GElf_Shdr plt;
	bool has_plt = elf_file_section(p->text->file->elf, ".got.plt", &plt);
	uint64_t table = has_plt ? plt.sh_addr : got->header.sh_addr;
	int start = find_uses(p->text, table, table + 1, NULL);
	int found = find_uses(p->text, slot, slot + sizeof(uint64_t), NULL);

	return start == 0 && (found == 0 || found == ARCH_REFERS_COMPARE);
}

/* The word at @at contains an address in the function, or a relocation stores one there. */
static bool is_harmless_word(struct proof *p, uint64_t at, const uint8_t *word)
{
	struct section s;
	GElf_Rela rela;

	if (!find_section(p->text->file, at, &s))
		return false;
	if (s.header.sh_type == SHT_RELA) {
		uint64_t inside = (at - s.header.sh_addr) % sizeof(rela);
		if (inside != offsetof(GElf_Rela, r_addend))
			return false;
		memcpy(&rela, word - inside, sizeof(rela));
		if (GELF_R_TYPE(rela.r_info) != p->text->arch->elf_relative ||
		    !find_section(p->text->file, rela.r_offset, &s))
			return false;
		at = rela.r_offset;
	}
	return strcmp(s.name, ".got") == 0 && at % sizeof(uint64_t) == 0 &&
	       is_compared_only(p, &s, at);
}

/* A segment of data, and how many descriptions of the function it has had so far. */
struct data {
	const struct elf_segment *segment;
	const uint8_t *bytes;
	size_t *described;
};

/*
 * Whether @at is in the length of an entry of @frames (.eh_frame), or in its distance back to the
 * CIE, which leads into the text if that follows, as lld has it.
 */
static bool is_frame_header(const struct data *d, const GElf_Shdr *frames, uint64_t at)
{
	uint64_t first = frames->sh_addr - d->segment->vaddr, offset = at - d->segment->vaddr;
	uint32_t length;

	if (frames->sh_addr < d->segment->vaddr)
		return false;
	for (uint64_t i = first; i <= offset; i += sizeof(length) + length) {
		memcpy(&length, d->bytes + i, sizeof(length));
		if (offset - i < 2 * sizeof(length))
			return true;
		if (!length || length == UINT32_MAX) /* the end, or 64 bits */
			return false;
	}
	return false;
}

/* A distance from @at to the function. The FDE that describes the function does not call it. */
static bool is_harmless_distance(const struct proof *p, const struct data *d, uint64_t at,
				 uint32_t distance)
{
	struct section s;
	bool is_start = (uint32_t)at + distance == (uint32_t)p->of->start;

	if (!find_section(p->text->file, at, &s))
		return false;
	/* symbols, hashes and relocations are not pointers; the header's are offsets */
	if (s.header.sh_type != SHT_PROGBITS || strcmp(s.name, ".eh_frame_hdr") == 0)
		return true;
	if (strcmp(s.name, ".eh_frame") == 0)
		return !is_start || is_frame_header(d, &s.header, at) || (*d->described)++ == 0;
	return at % sizeof(distance) != 0;
}

/*
 * Whether the word at @at, with the upper half @high, can be a pointer for the program. Relocatable
 * objects need a relocation for it, in an aligned word, also in packed form (RELR). Objects at
 * fixed addresses do not: it can be anywhere, or half of a word.
 */
static bool may_be_pointer(const struct proof *p, uint64_t at, uint32_t high)
{
	bool is_whole = high == p->of->start >> 32;

	if (p->text->file->type != ET_EXEC)
		return is_whole && at % sizeof(uint64_t) == 0;
	return is_whole || at % sizeof(uint32_t) == 0;
}

static void examine_data(struct proof *p, const struct data *d)
{
	const struct elf_segment *seg = d->segment;
	const uint8_t *bytes = d->bytes;
	uint64_t start = p->of->start;
	uint32_t size = (uint32_t)(p->of->end - start);

	for (size_t i = 0; i + sizeof(uint32_t) <= seg->filesz && !p->is_doubtful; i++) {
		uint32_t low, high = 0;
		memcpy(&low, bytes + i, sizeof(low));
		uint32_t there = (uint32_t)(seg->vaddr + i) + low - (uint32_t)start;
		if (low - (uint32_t)start >= size && there >= size)
			continue;
		if (i + sizeof(uint64_t) <= seg->filesz)
			memcpy(&high, bytes + i + sizeof(low), sizeof(high));
		bool is_word = low - (uint32_t)start < size &&
			may_be_pointer(p, seg->vaddr + i, high);
		if (is_word && !is_harmless_word(p, seg->vaddr + i, bytes + i))
			p->is_doubtful = true;
		if (there < size && !is_harmless_distance(p, d, seg->vaddr + i, low))
			p->is_doubtful = true;
	}
}

static void examine_all_data(struct proof *p)
{
	const struct elf_file *file = p->text->file;
	size_t described = 0;

	for (size_t i = 0; i < file->segment_count && !p->is_doubtful; i++) {
		if (file->segment[i].is_exec)
			continue;
		const struct data d = {&file->segment[i], syscall_text_segment(p->text, i),
				       &described};
		if (d.bytes)
			examine_data(p, &d);
		else
			p->is_doubtful = true;
	}
}

/* -- callers -- */

/* The code before the function does not run into it. */
static bool is_run_into(const struct proof *p, size_t function)
{
	const struct elf_function *f = p->of;

	if (function == 0 || f[-1].end != f->start || f[-1].kind == ELF_NO_CODE)
		return false;
	const struct arch_code code = syscall_text_code(p->text, function - 1);
	int found = code.bytes ? p->text->arch->refers(&code, f->start, f->start, f->end) : -1;
	return found != 0;
}

static void find_callers(struct syscall_text *t, struct syscall_callers *out)
{
	struct proof p = {.text = t, .of = &t->functions.list.data[out->function]};

	if (!t->is_readable || p.of->kind != ELF_FUNCTION || p.of->start == t->file->entry)
		return;
	examine_all_data(&p);
	if (p.is_doubtful || is_run_into(&p, out->function))
		return;
	int found = find_uses(t, p.of->start, p.of->end, out);
	out->is_proven = found >= 0 && !(found & ARCH_REFERS_OTHER);
}

static const struct syscall_callers *callers_of(struct syscall_text *t,
						struct syscall_known *known, size_t function)
{
	for (size_t i = 0; i < known->list.count; i++) {
		if (known->list.data[i].function == function)
			return &known->list.data[i];
	}
	struct syscall_callers *new = vec_add(&known->list);
	*new = (struct syscall_callers){.function = function};
	find_callers(t, new);
	return new;
}

void syscall_known_deinit(struct syscall_known *k)
{
	vec_release(&k->list, e, vec_deinit(&e->list));
}

/* -- values -- */

/* The value wanted at a function's start. */
struct pair {
	size_t function;
	struct arch_value value;
};

struct pairs {
	struct pair data[PAIRS_MAX];
	size_t count;
};

/* A pair that is already there adds nothing: all paths to it are followed anyway. */
static bool add_pair(struct pairs *p, size_t function, struct arch_value value)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->data[i].function == function && p->data[i].value.kind == value.kind &&
		    p->data[i].value.number == value.number)
			return true;
	}
	if (p->count == PAIRS_MAX)
		return false;
	p->data[p->count++] = (struct pair){function, value};
	return true;
}

static bool add_number(struct syscall_numbers *out, int32_t number)
{
	for (size_t i = 0; i < out->list.count; i++) {
		if (out->list.data[i] == number)
			return true;
	}
	*vec_add(&out->list) = number;
	return out->list.count <= NUMBERS_MAX;
}

static bool take_value(struct pairs *p, size_t caller, struct arch_value v,
		       struct syscall_numbers *out)
{
	switch (v.kind) {
	case ARCH_VALUE_CONSTANT:
		return add_number(out, v.number);
	case ARCH_VALUE_REGISTER:
	case ARCH_VALUE_STACK:
		return add_pair(p, caller, v);
	default:
		return false;
	}
}

/* Values that function @caller passes on for @asked. */
static bool follow(struct syscall_text *t, const struct pair *asked, size_t caller, struct pairs *p,
		   struct syscall_numbers *out)
{
	struct arch_code code = syscall_text_code(t, caller);
	struct arch_value passed[PASSED_MAX];
	uint32_t *entries = syscall_text_entries(t, &code);
	ssize_t n = t->arch->find_passed(&code, t->functions.list.data[asked->function].start,
					 asked->value, passed, PASSED_MAX);
	bool is_known = n > 0 && n <= PASSED_MAX;

	free(entries);
	for (ssize_t i = 0; i < n && is_known; i++)
		is_known = take_value(p, caller, passed[i], out);
	return is_known;
}

bool syscall_callers_numbers(struct syscall_text *t, struct syscall_known *known, size_t function,
			     struct arch_value value, struct syscall_numbers *out)
{
	struct pairs p = {.count = 0};

	if ((value.kind != ARCH_VALUE_REGISTER && value.kind != ARCH_VALUE_STACK) ||
	    !add_pair(&p, function, value))
		return false;
	for (size_t i = 0; i < p.count; i++) {
		const struct pair asked = p.data[i];
		const struct syscall_callers *by = callers_of(t, known, asked.function);
		if (!by->is_proven)
			return false;
		for (size_t k = 0; k < by->list.count; k++) {
			if (!follow(t, &asked, by->list.data[k], &p, out))
				return false;
		}
	}
	return out->list.count > 0;
}
