/*
 * Broken symbol tables and broken DWARF: changes bytes of a good ELF file in memory
 * and asks for addresses, variables and types in it, and walks a heap by these types. Nothing may
 * crash, hang or leak; what the answers are does not matter.
 *
 * usage: fuzz_symbols FILE [SECONDS [FIRST_SEED]]
 *
 * Linked with libptmem.a of MODE=asan. FILE: a small program with debug information; the round of seed 0 leaves it as it
 * is. A round that crashes or takes more than 10 seconds prints its seed; the same seed does the same again.
 */
#include <gelf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "graph/equal_strings.h"
#include "graph/struct_layout.h"
#include "graph/variables.h"
#include "symbols/symbols.h"

#define ROUND_SECONDS 10
#define ADDRESSES 200

struct area {
	size_t offset, size;
};

struct input {
	uint8_t *data;
	size_t size;
	uint64_t text, text_size;
	VEC(struct area) areas; /* areas to change: debug sections, symbols, headers */
};

static volatile uint32_t current_seed;

static void on_signal(int number)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "signal %d in the round of seed %u\n", number,
			      current_seed);
	(void)!write(STDERR_FILENO, text, (size_t)length);
	signal(number, SIG_DFL);
	raise(number == SIGALRM ? SIGABRT : number);
}

static bool is_target(const char *name)
{
	return strncmp(name, ".debug_", 7) == 0 || strcmp(name, ".symtab") == 0 ||
	       strcmp(name, ".dynsym") == 0 || strcmp(name, ".strtab") == 0 ||
	       strncmp(name, ".gnu_debug", 10) == 0 || strncmp(name, ".note", 5) == 0;
}

static bool find_areas(struct input *in)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)in->data, in->size);
	GElf_Ehdr eh;
	size_t names;
	if (!elf || !gelf_getehdr(elf, &eh) || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh))
			continue;
		const char *name = elf_strptr(elf, names, sh.sh_name);
		if (name && is_target(name) && sh.sh_type != SHT_NOBITS && sh.sh_size)
			*vec_add(&in->areas) = (struct area){sh.sh_offset, sh.sh_size};
		if (name && strcmp(name, ".text") == 0) {
			in->text = sh.sh_addr;
			in->text_size = sh.sh_size;
		}
	}
	*vec_add(&in->areas) = (struct area){eh.e_shoff, (size_t)eh.e_shnum * eh.e_shentsize};
	elf_end(elf);
	return in->text_size > 0;
}

static bool read_input(struct input *in, const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	in->size = (size_t)ftell(f);
	rewind(f);
	in->data = xmalloc(in->size);
	bool ok = fread(in->data, 1, in->size, f) == in->size;
	fclose(f);
	return ok && find_areas(in);
}

/* Some bytes of one area: random, near their value, or copied from elsewhere in it. */
static void change(uint8_t *image, const struct area *a, unsigned *seed)
{
	static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
	size_t end = a->offset + a->size;
	size_t at = a->offset + (size_t)rand_r(seed) % a->size;
	size_t from = a->offset + (size_t)rand_r(seed) % a->size;
	size_t length = (size_t)rand_r(seed) % 64;
	switch (rand_r(seed) % 5) {
	case 0:
		image[at] = (uint8_t)rand_r(seed);
		break;
	case 1:
		image[at] = nasty[(size_t)rand_r(seed) % sizeof(nasty)];
		break;
	case 2:
		image[at] ^= (uint8_t)(1u << rand_r(seed) % 8);
		break;
	case 3:
		memset(image + at, nasty[(size_t)rand_r(seed) % sizeof(nasty)], MIN(end - at, length));
		break;
	default:
		length = MIN(end - at, length);
		memmove(image + at, image + from, MIN(end - from, length));
	}
}

/* -- a heap, in this process, whose words mostly lead to its blocks -- */

#define BLOCKS 128u
#define BLOCK_ROOM 512u
#define FORGED 40u /* descriptions of containers */

static uint64_t heap_words[BLOCKS * BLOCK_ROOM / sizeof(uint64_t)];
static uint32_t block_size[BLOCKS];
static struct resident pages;
static struct inspect_memory memory;

static ssize_t read_self(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)addr, size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

static uint32_t find_block(void *ctx, taddr_t addr)
{
	uint64_t at = addr - (uintptr_t)heap_words;

	return at < sizeof(heap_words) && at % BLOCK_ROOM < block_size[at / BLOCK_ROOM] ?
		       (uint32_t)(at / BLOCK_ROOM) : TYPED_NO_BLOCK;
}

static void get_extent(void *ctx, uint32_t block, struct typed_extent *out)
{
	*out = (struct typed_extent){(uintptr_t)heap_words + block * BLOCK_ROOM,
				     block_size[block]};
}

static void fill_heap(unsigned *seed)
{
	for (size_t i = 0; i < ARRAY_SIZE(heap_words); i++) {
		uint64_t block = (uint64_t)rand_r(seed) % BLOCKS * BLOCK_ROOM;
		uint64_t inside = (uint64_t)rand_r(seed) % BLOCK_ROOM;
		unsigned what = (unsigned)rand_r(seed) % 10;

		heap_words[i] = what < 6 ? (uintptr_t)heap_words + block :
				what < 8 ? (uintptr_t)heap_words + block + inside :
				what == 8 ? inside % 16 : (uint64_t)rand_r(seed) << 20;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		block_size[i] = 8 + (uint32_t)rand_r(seed) % (BLOCK_ROOM - 8);
}

/* The name of a member of @type, perhaps of one of its members: as paths of descriptions. */
static char *any_member(struct type_table *types, uint32_t type, unsigned *seed)
{
	char *path = NULL;

	for (uint32_t level = 0; level < 4; level++) {
		uint32_t members = type_table_get(types, type)->members;
		uint32_t i = members ? (uint32_t)rand_r(seed) % members : 0;
		const struct data_member *m = members ? type_table_member(types, type, i) : NULL;

		if (!m || !m->name || !*m->name)
			break;
		char *longer = path ? xasprintf("%s.%s", path, m->name) : xstrdup(m->name);

		free(path);
		path = longer;
		type = type_table_member_type(types, type, i);
		if (rand_r(seed) % 3 == 0)
			break;
	}
	return path ? path : xstrdup("none");
}

/* Descriptions by which @type is a container of any kind, with any of its members. */
static void forge_container(struct containers *c, struct type_table *types, uint32_t type,
			    unsigned *seed)
{
	static const char *const kinds[] = {"array", "nodes", "swiss", "string", "optional",
					    "variant", "wrapper", "pointer", "reference"};
	static const char *const keys[] = {
		"begin", "end", "size", "capacity", "root", "next", "also", "slots", "header",
		"first", "table", "own", "inline", "node", "if"};
	char *name = type_table_name(types, type), *why = NULL;
	char *line = xasprintf("%.*s* %s", (int)strcspn(name, " \t\n"), name,
			       kinds[(size_t)rand_r(seed) % ARRAY_SIZE(kinds)]);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (rand_r(seed) % 2)
			continue;
		char *member = any_member(types, type, seed);
		char *longer = xasprintf("%s %s=%s", line, keys[i], member);

		free(member);
		free(line);
		line = longer;
	}
	if (rand_r(seed) % 2) {
		char *longer = xasprintf("%s of=%d skip=%d boxed=%d before=%d base=%s", line, rand_r(seed) % 4,
					 rand_r(seed) % 64, rand_r(seed) % 32,
					 rand_r(seed) % 32, name);

		free(line);
		line = longer;
	}
	if (containers_add(c, line, &why) != 0)
		free(why);
	free(line);
	free(name);
}

/* Values of all types lie in the heap, and lead on from there. */
static void walk_heap(struct type_table *types, unsigned *seed)
{
	struct containers *c = containers_new();
	const struct typed_heap heap = {.types = types, .containers = c, .memory = &memory,
					.blocks = BLOCKS, .find = find_block,
					.extent = get_extent};
	struct graph_strings strings = {0};
	struct typed_walk w;

	fill_heap(seed);
	for (uint32_t i = 0, count = type_table_count(types); i < FORGED && count; i++)
		forge_container(c, types, (uint32_t)rand_r(seed) % count, seed);
	typed_walk_init(&w, &heap);
	for (uint32_t type = 0, count = type_table_count(types); type < count; type++) {
		char *order = NULL;

		typed_walk_add_root(&w, (uintptr_t)heap_words + type % BLOCKS * BLOCK_ROOM, type);
		struct_layout_padding(types, type);
		struct_layout_best(types, type, &order);
		free(order);
	}
	typed_walk_run(&w);
	equal_strings_find(&w, &strings);
	for (uint32_t i = 0; i < BLOCKS; i++)
		free(typed_walk_path(&w, w.type[i], (uint64_t)rand_r(seed) % BLOCK_ROOM));
	vec_release(&strings.list, r, free(r->text));
	typed_walk_deinit(&w);
	containers_free(c);
}

/* All variables and what their types consist of. */
static void walk_types(struct elf_file *file, unsigned *seed)
{
	struct type_table *types = type_table_new("");
	struct variables *v = variables_new(types);

	variables_add_object(v, file, 0);
	for (uint32_t i = 0, count = variables_count(v); i < count; i++)
		variables_name(v, i);
	for (uint32_t type = 0; type < type_table_count(types); type++) {
		for (uint32_t i = 0; i < type_table_get(types, type)->members; i++)
			type_table_member_type(types, type, i);
		uint64_t size = type_table_get(types, type)->size;

		type_table_alignment(types, type);
		free(type_table_name(types, type));
		for (uint64_t at = 0; at <= MIN(size, UINT64_C(64)); at += 4)
			free(type_table_path(types, type, at, NULL));
		type_table_argument(types, type, 0);
	}
	walk_heap(types, seed);
	variables_free(v);
	type_table_free(types);
}

static void one_round(const struct input *in, uint32_t number)
{
	unsigned seed = number;
	uint8_t *image = xmemdup(in->data, in->size);
	size_t changes = number ? 1 + (size_t)rand_r(&seed) % 40 : 0;
	for (size_t i = 0; i < changes; i++)
		change(image, &in->areas.data[(size_t)rand_r(&seed) % in->areas.count], &seed);
	struct module m = {.id = 1, .path = (char *)"fuzzed"};
	if (elf_file_open_memory(image, in->size, "fuzzed", &m.file) != 0)
		return;
	struct symbols *s = symbols_new(&(struct symbols_options){.debug_dirs = ""});
	for (size_t i = 0; i < ADDRESSES; i++)
		symbols_find(s, &m, in->text + (uint64_t)rand_r(&seed) % in->text_size,
			     rand_r(&seed) % 4 ? SYMBOL_ALL : SYMBOL_REAL);
	symbols_free(s);
	walk_types(m.file, &seed);
	elf_file_release(m.file);
}

int main(int argc, char **argv)
{
	struct input in = {0};
	if (argc < 2 || !read_input(&in, argv[1])) {
		fprintf(stderr, "usage: fuzz_symbols FILE [SECONDS [FIRST_SEED]]\n");
		return 2;
	}
	const struct memory_source source = {.read = read_self, .read_file = read_self};

	if (resident_read(getpid(), &pages) != 0)
		return 2;
	memory_init(&memory, &pages, &source);
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
	uint32_t first = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM};
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], on_signal);
	current_seed = first;
	do {
		alarm(ROUND_SECONDS);
		one_round(&in, current_seed);
		current_seed++;
	} while (time(NULL) < end);
	printf("%u rounds\n", current_seed - first);
	memory_deinit(&memory);
	resident_deinit(&pages);
	vec_deinit(&in.areas);
	free(in.data);
	return 0;
}
