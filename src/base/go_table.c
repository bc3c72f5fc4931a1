/*
 * Reads .gopclntab. Its parts, as Go's linker writes them (cmd/link/internal/ld/pcln.go):
 *
 *	header      magic, size of an address, numbers; since 1.16 where the parts begin
 *	functions   ascending pairs (entry, offset of the description), and the end of the last
 *	            one: addresses, since 1.18 of 4 bytes each from the start of the text
 *	description entry, name, ..., offsets of the three tables below
 *	values      per function: pairs (step of the value, length in code), as variable-length
 *	            numbers, of the frame's size, the file and the line
 */
#include "base/go_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define STEPS_MAX 100000u     /* pairs of one function */
#define NAME_SIZE_MAX 4096u   /* bytes, with the NUL */
#define FRAME_MAX (1u << 30)
#define TOP_FRAME 1u          /* of the flags: runtime/symtab.go */
#define SP_WRITE 2u

enum go_format { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct table_part {
	uint64_t start; /* offset in the table */
};

struct go_table {
	const uint8_t *data;
	size_t size;
	enum go_format format;
	uint64_t vaddr, text, count;
	struct go_bytes inlined; /* trees of inlined calls are in there; data: NULL = unknown */
	struct table_part names, units, files, values, functions;
};

static bool read_at(const struct go_table *t, uint64_t at, size_t size, uint64_t *out)
{
	*out = 0;
	if (size > t->size || at > t->size - size)
		return false;
	memcpy(out, t->data + at, size);
	return true;
}

/* A 4-byte word of the description at @at; 0 if there is none. */
static uint32_t word_at(const struct go_table *t, uint64_t at)
{
	uint64_t value;

	return read_at(t, at, 4, &value) ? (uint32_t)value : 0;
}

static const char *text_at(const struct go_table *t, uint64_t at)
{
	if (at >= t->size || !memchr(t->data + at, 0, MIN(t->size - at, (size_t)NAME_SIZE_MAX)))
		return NULL;
	return (const char *)t->data + at;
}

/* -- the header -- */

static bool read_parts(struct go_table *t)
{
	struct table_part *part[] = {&t->names, &t->units, &t->files, &t->values, &t->functions};
	size_t first = t->format >= GO_1_18 ? 3 : 2;
	uint64_t text = 0;

	if (t->format == GO_1_2) {
		t->functions.start = 16;
		/* behind the last function's end */
		return read_at(t, 16 + (2 * t->count + 1) * 8, 4, &t->files.start);
	}
	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (!read_at(t, 8 + (first + i) * 8, 8, &part[i]->start) ||
		    part[i]->start > t->size)
			return false;
	if (first == 3 && read_at(t, 8 + 2 * 8, 8, &text) && text != 0)
		t->text = text;
	return true;
}

/* The bytes of an entry in the list of functions; each has two numbers of half that size. */
static uint32_t pair_size(const struct go_table *t)
{
	return t->format >= GO_1_18 ? 8 : 16;
}

struct go_table *go_table_parse(const struct go_bytes *bytes, uint64_t text)
{
	const uint8_t *data = bytes->data;
	size_t size = bytes->size;
	static const uint32_t magic[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	struct go_table t = {.data = data, .size = size, .vaddr = bytes->vaddr, .text = text};
	uint64_t found;

	if (!read_at(&t, 0, 4, &found) || size < 16 || data[4] || data[5] || data[7] != 8)
		return NULL;
	while (t.format < ARRAY_SIZE(magic) && magic[t.format] != found)
		t.format++;
	if (t.format == ARRAY_SIZE(magic) || !read_at(&t, 8, 8, &t.count) ||
	    t.count > size / pair_size(&t) || t.count == 0 || !read_parts(&t) ||
	    t.functions.start > size - t.count * pair_size(&t))
		return NULL;
	struct go_table *out = xcalloc(1, sizeof(*out));

	*out = t;
	return out;
}

/* -- functions -- */

static uint64_t number(const struct go_table *t, uint64_t index)
{
	size_t size = pair_size(t) / 2;
	uint64_t value;

	return read_at(t, t->functions.start + index * size, size, &value) ? value : UINT64_MAX;
}

static uint64_t entry_of(const struct go_table *t, uint64_t i)
{
	uint64_t value = number(t, 2 * i);

	return t->format >= GO_1_18 && value != UINT64_MAX ? t->text + value : value;
}

/* Where the words of a description begin: after the entry. */
static uint64_t words_of(const struct go_table *t, uint64_t at)
{
	return at + (t->format >= GO_1_18 ? 4 : 8);
}

/* Words of a description. */
enum { WORD_NAME, WORD_FRAMES = 3, WORD_FILES, WORD_LINES, WORD_UNIT = 7 };

static uint32_t flags_of(const struct go_table *t, uint64_t at)
{
	uint64_t value = 0;

	if (t->format == GO_1_2)
		return 0;
	/* after the unit, since 1.20 the first line, and a byte with the kind of function */
	read_at(t, words_of(t, at) + (WORD_UNIT + 1 + (t->format == GO_1_20)) * 4ull + 1, 1,
		&value);
	return (uint32_t)value;
}

/* Without the flag: all before Go 1.17. What mcall runs never goes back to its caller. */
static bool is_outermost_name(const char *name)
{
	return strcmp(name, "runtime.goexit") == 0 || strcmp(name, "runtime.mstart") == 0 ||
	       strcmp(name, "runtime.mcall") == 0 ||
	       strcmp(name, "runtime.rt0_go") == 0;
}

/*
 * Calls from C into Go switch from the thread's stack to the goroutine's, but with a frame of the
 * same size on both.
 */
static bool sets_sp(const struct go_table *t, uint64_t at, const char *name)
{
	return flags_of(t, at) & SP_WRITE && strcmp(name, "runtime.cgocallback") != 0;
}

static bool describe(const struct go_table *t, uint64_t i, struct go_function *out)
{
	uint64_t at = number(t, 2 * i + 1);

	if (at == UINT64_MAX)
		return false;
	at += t->functions.start * (t->format != GO_1_2);
	const char *name = text_at(t, t->names.start + word_at(t, words_of(t, at)));

	if (!name || at >= t->size)
		return false;
	*out = (struct go_function){
		.entry = entry_of(t, i), .end = entry_of(t, i + 1), .name = name, .at = at,
		.is_outermost = flags_of(t, at) & TOP_FRAME || is_outermost_name(name),
		.sets_sp = sets_sp(t, at, name)};
	return out->end >= out->entry;
}

bool go_table_find(const struct go_table *t, uint64_t vaddr, struct go_function *out)
{
	uint64_t low = 0, high = t->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (entry_of(t, middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && describe(t, low - 1, out) && vaddr >= out->entry && vaddr < out->end;
}

bool go_table_find_caller(const struct go_table *t, uint64_t vaddr, struct go_function *out)
{
	struct go_function next;

	if (go_table_find(t, vaddr + 1, &next) && next.entry == vaddr + 1 &&
	    strcmp(next.name, "runtime.systemstack_switch") == 0) {
		*out = next;
		return true;
	}
	return go_table_find(t, vaddr, out);
}

bool go_table_find_name(const struct go_table *t, const char *name, struct go_function *out)
{
	for (uint64_t i = 0; i < t->count; i++)
		if (describe(t, i, out) && strcmp(out->name, name) == 0)
			return true;
	return false;
}

/* -- values by address -- */

static bool take_number(const struct go_table *t, uint64_t *at, uint32_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 32 && *at < t->size; shift += 7) {
		uint8_t byte = t->data[(*at)++];

		*out |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The value at @vaddr in the table of values at @offset. */
static bool find_in(const struct go_table *t, const struct go_function *f, uint32_t offset,
		    uint64_t vaddr, int32_t *out)
{
	uint32_t step, length;
	uint64_t at = t->values.start + offset, pc = f->entry;
	uint32_t value = UINT32_MAX; /* -1 */

	for (unsigned i = 0; offset != 0 && i < STEPS_MAX; i++) {
		if (!take_number(t, &at, &step) || (step == 0 && i > 0) ||
		    !take_number(t, &at, &length))
			return false;
		value += step & 1 ? ~(step >> 1) : step >> 1;
		pc += (uint64_t)length * t->data[6];
		if (vaddr < pc) {
			*out = (int32_t)value;
			return true;
		}
	}
	return false;
}

/* The same in the table that word @word of the description of @f names. */
static bool find_value(const struct go_table *t, const struct go_function *f, unsigned word,
		       uint64_t vaddr, int32_t *out)
{
	return find_in(t, f, word_at(t, words_of(t, f->at) + 4 * word), vaddr, out);
}

bool go_table_frame(const struct go_table *t, const struct go_function *f, uint64_t vaddr,
		    uint32_t *bytes_out)
{
	int32_t bytes;

	if (f->sets_sp || !find_value(t, f, WORD_FRAMES, vaddr, &bytes) || bytes < 0 ||
	    bytes % 8 != 0 || (uint32_t)bytes > FRAME_MAX)
		return false;
	*bytes_out = (uint32_t)bytes;
	return true;
}

/* -- inlined functions: since Go 1.18 -- */

enum { WORD_TABLES = 6 };           /* how many tables of values follow the description */
#define INLINED_INDEX 2u            /* of these: which inlined call an instruction is of */
#define INLINED_TREE 3u             /* of the offsets behind them */

bool go_table_inlined(const struct go_table *t, const struct go_function *f, uint64_t *vaddr,
		      const char **name_out)
{
	/* behind the unit, since 1.20 the first line: kind, flags, 0, number of offsets */
	uint64_t behind = words_of(t, f->at) + (WORD_UNIT + 1 + (t->format == GO_1_20)) * 4ull;
	uint32_t tables = word_at(t, words_of(t, f->at) + 4 * WORD_TABLES);
	uint64_t offsets = word_at(t, behind) >> 24, tree, at;
	/* of a call in the tree: its size, where its name and its place in the caller are */
	size_t size = t->format == GO_1_20 ? 16 : 20, name = t->format == GO_1_20 ? 4 : 12;
	uint32_t call[2];
	int32_t i;

	if (t->format < GO_1_18 || !t->inlined.data || tables <= INLINED_INDEX ||
	    offsets <= INLINED_TREE || tables > t->size / 4 ||
	    !find_in(t, f, word_at(t, behind + 4 + 4 * INLINED_INDEX), *vaddr, &i) || i < 0)
		return false;
	tree = word_at(t, behind + 4 + 4 * (tables + (uint64_t)INLINED_TREE));
	at = tree + (uint64_t)i * size + name;
	if (tree == UINT32_MAX || t->inlined.size < sizeof(call) ||
	    at > t->inlined.size - sizeof(call))
		return false;
	memcpy(call, t->inlined.data + at, sizeof(call));
	*name_out = text_at(t, t->names.start + call[0]);
	if (!*name_out || call[1] >= f->end - f->entry)
		return false;
	*vaddr = f->entry + call[1];
	return true;
}

/* The name of file @number of @f. */
static const char *file_name(const struct go_table *t, const struct go_function *f, int32_t number)
{
	uint64_t index = (uint32_t)number, offset;

	if (number < 0)
		return NULL;
	if (t->format == GO_1_2)
		return text_at(t, word_at(t, t->files.start + 4 * index));
	index += word_at(t, words_of(t, f->at) + 4 * WORD_UNIT);
	if (!read_at(t, t->units.start + 4 * index, 4, &offset) || offset == UINT32_MAX)
		return NULL;
	return text_at(t, t->files.start + offset);
}

bool go_table_line(const struct go_table *t, const struct go_function *f, uint64_t vaddr,
		   const char **file_out, uint32_t *line_out)
{
	int32_t file, line;

	if (!find_value(t, f, WORD_FILES, vaddr, &file) ||
	    !find_value(t, f, WORD_LINES, vaddr, &line) || line <= 0)
		return false;
	const char *name = file_name(t, f, file);

	if (!name)
		return false;
	*file_out = name;
	*line_out = (uint32_t)line;
	return true;
}

/* -- in a file -- */

static bool read_section(const struct elf_file *file, const char *name, struct go_bytes *out)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_file_section(file->elf, name, &header);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (!data || !data->d_buf)
		return false;
	*out = (struct go_bytes){data->d_buf, data->d_size, header.sh_addr};
	return true;
}

/* The bytes of its section from @vaddr on. */
static bool read_from(const struct elf_file *file, uint64_t vaddr, struct go_bytes *out)
{
	GElf_Shdr header;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    header.sh_type == SHT_NOBITS || vaddr < header.sh_addr ||
		    vaddr - header.sh_addr >= header.sh_size)
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);
		uint64_t at = vaddr - header.sh_addr;

		if (!data || !data->d_buf || at >= data->d_size)
			return false;
		*out = (struct go_bytes){(uint8_t *)data->d_buf + at, data->d_size - at, vaddr};
		return true;
	}
	return false;
}

/* The address that the word at @vaddr has if the file is mapped where it says; 0 = none. */
static uint64_t word_in(const struct elf_file *file, uint64_t vaddr)
{
	Elf_Scn *scn = elf_file_section(file->elf, ".rela.dyn", NULL);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	struct go_bytes bytes;
	uint64_t word = 0;
	GElf_Rela rela;

	for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
		if (rela.r_offset == vaddr)
			return (uint64_t)rela.r_addend;
	if (read_from(file, vaddr, &bytes) && bytes.size >= sizeof(word))
		memcpy(&word, bytes.data, sizeof(word));
	return word;
}

/*
 * The runtime's description of the program, moduledata, begins with the address of the table, at
 * @table. 0 = not found.
 */
static uint64_t find_module(const struct elf_file *file, uint64_t table)
{
	static const char *const names[] = {".go.module", ".noptrdata", ".data"};
	Elf_Scn *scn = elf_file_section(file->elf, ".rela.dyn", NULL);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	struct go_bytes bytes;
	GElf_Rela rela;
	uint64_t word;

	for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
		/* the list of names follows: its first word is an address, too */
		if ((uint64_t)rela.r_addend == table && word_in(file, rela.r_offset + 8) > table)
			return rela.r_offset;
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		if (!read_section(file, names[n], &bytes))
			continue;
		for (size_t i = -bytes.vaddr % 8; i + 16 <= bytes.size; i += 8) {
			memcpy(&word, bytes.data + i, sizeof(word));
			if (word == table && word_in(file, bytes.vaddr + i + 8) > table)
				return bytes.vaddr + i;
		}
	}
	return 0;
}

/* Words of moduledata. */
enum { MODULE_TEXT = 22, MODULE_FUNCTIONS_1_18 = 38, MODULE_FUNCTIONS_1_20 = 40 };

static int find_text(void *ctx, const struct elf_symbol *sym)
{
	uint64_t *text = ctx;

	if (!sym->is_defined || strcmp(sym->name, "runtime.text") != 0)
		return 0;
	*text = sym->vaddr;
	return 1;
}

static int find_functions(void *ctx, const struct elf_symbol *sym)
{
	uint64_t *start = ctx;

	if (!sym->is_defined ||
	    (strcmp(sym->name, "go:func.*") != 0 && strcmp(sym->name, "go.func.*") != 0))
		return 0;
	*start = sym->vaddr;
	return 1;
}

/*
 * Reads what the header does not say: where the text begins, in programs for any address and since
 * Go 1.26; and where the trees of inlined calls are.
 */
static void complete(struct go_table *t, struct elf_file *file)
{
	uint64_t module = t->format >= GO_1_18 ? find_module(file, t->vaddr) : 0, start = 0;

	if (!t->text && module)
		t->text = word_in(file, module + 8 * MODULE_TEXT);
	if (!t->text)
		elf_file_each_symbol(file, find_text, &t->text);
	if (t->format < GO_1_18)
		return;
	elf_file_each_symbol(file, find_functions, &start);
	if (!start && module)
		start = word_in(file, module + 8 * (t->format == GO_1_20 ? MODULE_FUNCTIONS_1_20 :
								       MODULE_FUNCTIONS_1_18));
	if (start && !read_from(file, start, &t->inlined))
		t->inlined = (struct go_bytes){0};
}

static bool is_go(const struct elf_file *file)
{
	return elf_file_section(file->elf, ".go.buildinfo", NULL) ||
	       elf_file_section(file->elf, ".note.go.buildid", NULL);
}

#define TABLE_ALIGN 32u

/* A linker other than Go's puts the table of a program for any address among other constants. */
static struct go_table *search(const struct elf_file *file)
{
	struct go_bytes all;
	struct go_table *t = NULL;

	if (!is_go(file) || !read_section(file, ".data.rel.ro", &all))
		return NULL;
	for (size_t i = -all.vaddr % TABLE_ALIGN; i < all.size && !t; i += TABLE_ALIGN)
		t = go_table_parse(
			&(struct go_bytes){all.data + i, all.size - i, all.vaddr + i}, 0);
	return t;
}

const struct go_table *go_table_of(struct elf_file *file)
{
	struct go_bytes bytes;
	struct go_table *t;

	if (file->go_user_free)
		return file->go_user;
	file->go_user_free = free;
	if (file->elf_class != ELFCLASS64)
		return NULL;
	if (read_section(file, ".gopclntab", &bytes) ||
	    read_section(file, ".data.rel.ro.gopclntab", &bytes))
		t = go_table_parse(&bytes, 0);
	else
		t = search(file);
	if (t)
		complete(t, file);
	file->go_user = t;
	return t;
}

#define BUILD_TEXTS 32u  /* in .go.buildinfo: its version begins here, after its length */
#define BUILD_FLAGS 15u
#define BUILD_IS_INLINE 2u

unsigned go_table_release(struct elf_file *file)
{
	static const char prefix[] = "go1.";
	struct go_bytes b;
	unsigned release = 0;

	if (!read_section(file, ".go.buildinfo", &b) || b.size < BUILD_TEXTS + 1 + 8 ||
	    !(b.data[BUILD_FLAGS] & BUILD_IS_INLINE))
		return 0;
	const uint8_t *text = b.data + BUILD_TEXTS + 1;

	if (memcmp(text, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	for (size_t i = sizeof(prefix) - 1; i < 8 && text[i] >= '0' && text[i] <= '9'; i++)
		release = release * 10 + (unsigned)(text[i] - '0');
	return release;
}
