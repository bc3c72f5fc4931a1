/*
 * Numbers of objects come from the dynamic linker's list, in which glibc keeps each object's; in
 * musl they count the objects of the list that have such variables. The program is always the
 * first, and a static program the only one.
 */
#include "graph/thread_blocks.h"

#include <string.h>

#include "arch/arch.h"

#define OBJECTS_MAX 65536u      /* in the list; more means that it is a ring */
#define BLOCKS_MAX 65536u       /* numbers of objects */
#define DYNAMIC_MAX 1024u       /* entries of a dynamic section */
#define WORD 8u

static bool read_memory(const struct thread_memory *memory, taddr_t addr, void *buf, size_t size)
{
	return memory->read(memory->ctx, addr, buf, size);
}

static bool read_word(const struct thread_memory *memory, taddr_t addr, uint64_t *out)
{
	return read_memory(memory, addr, out, sizeof(*out));
}

/* What _thread_db_* of glibc says about a field: bits of an element, elements, offset. */
struct field_symbols {
	struct thread_blocks *b;
	const struct elf_file *file;
	uint64_t number_offset, number_size; /* of an object's number in its struct link_map */
};

static bool read_field(const struct elf_file *file, uint64_t vaddr, uint32_t out[static 3])
{
	const struct elf_segment *s = elf_file_segment(file, vaddr);

	if (!s || vaddr - s->vaddr > s->filesz || s->filesz - (vaddr - s->vaddr) < 3 * sizeof(*out))
		return false;
	uint8_t *bytes = elf_file_read(file, s->offset + (vaddr - s->vaddr), 3 * sizeof(*out));

	if (!bytes)
		return false;
	memcpy(out, bytes, 3 * sizeof(*out));
	free(bytes);
	return out[0] % 8 == 0 && out[0] / 8 <= 64;
}

static int note_field(void *ctx, const struct elf_symbol *sym)
{
	struct field_symbols *f = ctx;
	uint32_t field[3];

	if (!sym->is_defined || strncmp(sym->name, "_thread_db_", 11) != 0 ||
	    !read_field(f->file, sym->vaddr, field))
		return 0;
	const char *name = sym->name + 11;

	if (strcmp(name, "link_map_l_tls_modid") == 0) {
		f->number_offset = field[2];
		f->number_size = field[0] / 8;
	} else if (strcmp(name, "dtv_dtv") == 0) {
		f->b->entry.size = field[0] / 8;
		f->b->entry.offset = field[2];
	} else if (strcmp(name, "dtv_t_pointer_val") == 0) {
		f->b->pointer.size = field[0] / 8;
		f->b->pointer.offset = field[2];
	} else if (strcmp(name, "pthread_dtvp") == 0) {
		f->b->vector.size = field[0] / 8;
		f->b->vector.offset = field[2];
	}
	return 0;
}

/* Where the list of objects begins: DT_DEBUG of the program. 0: it has none. */
static taddr_t find_list(const struct thread_object *program, const struct thread_memory *memory)
{
	GElf_Phdr header;
	uint64_t entry[2], version[2];
	size_t count;

	if (elf_getphdrnum(program->file->elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(program->file->elf, (int)i, &header) ||
		    header.p_type != PT_DYNAMIC)
			continue;
		taddr_t at = program->bias + header.p_vaddr;

		for (uint32_t k = 0; k < DYNAMIC_MAX; k++, at += sizeof(entry)) {
			if (!read_memory(memory, at, entry, sizeof(entry)) || entry[0] == DT_NULL)
				return 0;
			if (entry[0] == DT_DEBUG)
				/* struct r_debug: version, first object */
				return read_memory(memory, entry[1], version, sizeof(version)) ?
					       version[1] : 0;
		}
	}
	return 0;
}

static struct thread_object *find_object(struct thread_blocks *b, taddr_t bias)
{
	for (size_t i = 0; i < b->objects.count; i++)
		if (b->objects.data[i].bias == bias && b->objects.data[i].size)
			return &b->objects.data[i];
	return NULL;
}

/* struct link_map: base, name, dynamic section, next, previous; the rest is the linker's own. */
static void number_objects(struct thread_blocks *b, const struct field_symbols *f, taddr_t list,
			   const struct thread_memory *memory)
{
	uint64_t map[4], number, count = 0;

	for (uint32_t i = 0; list && i < OBJECTS_MAX; i++, list = map[3]) {
		if (!read_memory(memory, list, map, sizeof(map)))
			return;
		struct thread_object *o = find_object(b, map[0]);

		if (!o)
			continue;
		count++;
		if (f->number_size != WORD)
			o->number = count;
		else if (read_word(memory, list + f->number_offset, &number) &&
			 number <= BLOCKS_MAX)
			o->number = number;
	}
}

static uint64_t block_size(const struct elf_file *file)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(file->elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(file->elf, (int)i, &header) && header.p_type == PT_TLS)
			return header.p_memsz <= UINT64_C(1) << 32 ? header.p_memsz : 0;
	return 0;
}

void thread_blocks_init(struct thread_blocks *b, const struct thread_memory *memory)
{
	struct field_symbols f = {.b = b};
	taddr_t list = 0;
	bool is_static = true;
	size_t program = SIZE_MAX;

	for (size_t i = 0; i < b->objects.count; i++) {
		struct thread_object *o = &b->objects.data[i];

		o->size = block_size(o->file);
		f.file = o->file;
		elf_file_each_symbol((struct elf_file *)o->file, note_field, &f);
		is_static = is_static && !o->file->has_interp;
	}
	for (size_t i = 0; i < b->objects.count && !list; i++) {
		const struct thread_object *o = &b->objects.data[i];

		if (!o->file->has_interp && !(is_static && i == 0))
			continue;
		program = program == SIZE_MAX ? i : program;
		list = find_list(o, memory);
	}
	number_objects(b, &f, list, memory);
	if (program != SIZE_MAX && b->objects.data[program].size &&
	    b->objects.data[program].number == 0)
		b->objects.data[program].number = 1;
	if (b->vector.size == 0)
		b->vector.offset = (uint64_t)(int64_t)arch_native->thread_vector;
}

/* Where word @number of the vector is from its start, by glibc's layout or the others'. */
static int64_t entry_offset(const struct thread_blocks *b, uint64_t number)
{
	bool is_described = b->entry.size && b->pointer.size == WORD;
	uint64_t each = is_described ? b->entry.size : WORD;
	uint64_t at = is_described ? b->entry.offset + b->pointer.offset : 0;

	return (int64_t)(at + number * each);
}

bool thread_blocks_entry(const struct thread_blocks *b, size_t i, struct thread_entry *out)
{
	const struct thread_object *o = &b->objects.data[i];
	bool is_described = b->entry.size && b->pointer.size == WORD;

	if (o->size == 0 || o->number == 0)
		return false;
	*out = (struct thread_entry){.vector = (int64_t)b->vector.offset,
				     .entry = entry_offset(b, o->number), .number = o->number};
	/* glibc's vector begins at its second entry; musl's with the count */
	if (is_described)
		out->count = (int64_t)b->entry.offset - (int64_t)b->entry.size;
	return true;
}

taddr_t thread_blocks_find(const struct thread_blocks *b, const struct thread_memory *memory,
			   taddr_t thread_pointer, size_t i)
{
	const struct thread_object *o = &b->objects.data[i];
	uint64_t vector;

	if (o->size == 0 || o->number == 0 ||
	    !read_word(memory, thread_pointer + b->vector.offset, &vector))
		return 0;
	taddr_t start;

	if (!read_word(memory, vector + (taddr_t)entry_offset(b, o->number), &start))
		return 0;
	/* what has not been used has an odd number there */
	return start % WORD == 0 && start <= UINT64_MAX - o->size ? start : 0;
}
