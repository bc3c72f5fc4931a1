/*
 * The virtual machine's description of itself, its code cache, and its frames.
 *
 *	gHotSpotVMStructs: array of {type, field, type of the field, is static, offset, address}
 *
 * Strides and offsets of the entries are variables, too. All is the program's memory, so each
 * number is bounded, and lists end.
 */
#include "languages/java.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "arch/unwind_code.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define WORD ((uint32_t)sizeof(uint64_t))

/* -- its description -- */

#define ENTRIES_MAX 20000u
#define STRIDE_MAX 128u
#define OFFSET_MAX 65536u
#define TEXT_MAX 64u

enum java_symbol {
	SYM_STRUCTS, SYM_STRUCT_STRIDE, SYM_STRUCT_TYPE, SYM_STRUCT_FIELD, SYM_STRUCT_STATIC,
	SYM_STRUCT_OFFSET, SYM_STRUCT_ADDRESS,
	SYM_TYPES, SYM_TYPE_STRIDE, SYM_TYPE_NAME, SYM_TYPE_SIZE,
	SYM_INTS, SYM_INT_STRIDE, SYM_INT_NAME, SYM_INT_VALUE,
	SYMBOLS
};

static const char *const symbol_names[SYMBOLS] = {
	[SYM_STRUCTS] = "gHotSpotVMStructs",
	[SYM_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[SYM_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[SYM_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[SYM_STRUCT_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[SYM_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[SYM_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[SYM_TYPES] = "gHotSpotVMTypes",
	[SYM_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[SYM_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[SYM_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[SYM_INTS] = "gHotSpotVMIntConstants",
	[SYM_INT_STRIDE] = "gHotSpotVMIntConstantEntryArrayStride",
	[SYM_INT_NAME] = "gHotSpotVMIntConstantEntryNameOffset",
	[SYM_INT_VALUE] = "gHotSpotVMIntConstantEntryValueOffset",
};

enum row_kind {
	ROW_OFFSET,  /* of a field */
	ROW_ADDRESS, /* of a variable */
	ROW_SIZE,    /* of a type */
	ROW_INT,     /* a constant */
};

struct layout_row {
	const char *type, *field; /* of a size or constant: name and NULL */
	uint16_t to;              /* in struct java_layout */
	enum row_kind kind;
	bool is_needed;
};

#define TO(member) offsetof(struct java_layout, member)
#define NEEDED true
#define MAYBE false

/* What a version has instead of another is in rows of its own. */
static const struct layout_row rows[] = {
	{"CodeCache", "_heaps", TO(heaps), ROW_ADDRESS, NEEDED},
	{"Abstract_VM_Version", "_vm_major_version", TO(version), ROW_ADDRESS, MAYBE},
	{"ContinuationEntry", "_return_pc", TO(entry_return), ROW_ADDRESS, MAYBE},
	{"GrowableArrayBase", "_len", TO(array_length), ROW_OFFSET, MAYBE},
	{"GenericGrowableArray", "_len", TO(array_length), ROW_OFFSET, MAYBE}, /* 11 */
	{"GrowableArray<int>", "_data", TO(array_data), ROW_OFFSET, NEEDED},
	{"CodeHeap", "_memory", TO(heap_memory), ROW_OFFSET, NEEDED},
	{"CodeHeap", "_segmap", TO(heap_segments), ROW_OFFSET, NEEDED},
	{"CodeHeap", "_log2_segment_size", TO(heap_shift), ROW_OFFSET, NEEDED},
	{"VirtualSpace", "_low", TO(space_low), ROW_OFFSET, NEEDED},
	{"VirtualSpace", "_high", TO(space_high), ROW_OFFSET, NEEDED},
	{"HeapBlock::Header", "_used", TO(block_used), ROW_OFFSET, NEEDED},
	{"HeapBlock", NULL, TO(block_size), ROW_SIZE, NEEDED},
	{"CodeBlob", "_name", TO(blob_name), ROW_OFFSET, NEEDED},
	{"CodeBlob", "_size", TO(blob_size), ROW_OFFSET, NEEDED},
	{"CodeBlob", "_frame_size", TO(blob_frame), ROW_OFFSET, NEEDED},
	{"CodeBlob", "_frame_complete_offset", TO(blob_complete), ROW_OFFSET, MAYBE},
	{"CodeBlob", "_code_begin", TO(blob_code_start), ROW_OFFSET, MAYBE}, /* to 22 */
	{"CodeBlob", "_code_end", TO(blob_code_end), ROW_OFFSET, MAYBE},
	{"CodeBlob", "_code_offset", TO(blob_code_offset), ROW_OFFSET, MAYBE},
	{"CodeBlob", "_data_offset", TO(blob_data_offset), ROW_OFFSET, MAYBE},
	{"CodeBlob", "_mutable_data", TO(blob_mutable), ROW_OFFSET, MAYBE},
	{"CodeBlob", "_relocation_size", TO(blob_relocations), ROW_OFFSET, MAYBE},
	{"CompiledMethod", "_method", TO(nmethod_method), ROW_OFFSET, MAYBE}, /* to 22 */
	{"nmethod", "_method", TO(nmethod_method), ROW_OFFSET, MAYBE},
	{"CompiledMethod", "_scopes_data_begin", TO(nmethod_scopes), ROW_OFFSET, MAYBE},
	{"nmethod", "_scopes_data_offset", TO(nmethod_scopes_offset), ROW_OFFSET, MAYBE},
	{"nmethod", "_scopes_pcs_offset", TO(nmethod_descs_offset), ROW_OFFSET, MAYBE},
	{"nmethod", "_dependencies_offset", TO(nmethod_descs_end), ROW_OFFSET, MAYBE},
	{"nmethod", "_metadata_offset", TO(nmethod_metadata), ROW_OFFSET, MAYBE},
	{"nmethod", "_immutable_data", TO(nmethod_immutable), ROW_OFFSET, MAYBE},
	{"nmethod", "_orig_pc_offset", TO(nmethod_original), ROW_OFFSET, MAYBE},
	{"nmethod", "_compile_id", TO(nmethod_id), ROW_OFFSET, NEEDED},
	{"CompiledMethod", "_deopt_handler_begin", TO(nmethod_deopt), ROW_OFFSET, MAYBE},
	{"CompiledMethod", "_deopt_mh_handler_begin", TO(nmethod_deopt_mh), ROW_OFFSET, MAYBE},
	{"nmethod", "_deopt_handler_offset", TO(nmethod_deopt_offset), ROW_OFFSET, MAYBE},
	{"nmethod", "_deopt_mh_handler_offset", TO(nmethod_deopt_mh_offset), ROW_OFFSET, MAYBE},
	{"nmethod", NULL, TO(nmethod_size), ROW_SIZE, NEEDED},
	{"Method", "_constMethod", TO(method_const), ROW_OFFSET, NEEDED},
	{"ConstMethod", "_constants", TO(const_pool), ROW_OFFSET, NEEDED},
	{"ConstMethod", "_flags", TO(const_flags), ROW_OFFSET, MAYBE},
	{"ConstMethod", "_flags._flags", TO(const_flags), ROW_OFFSET, MAYBE}, /* since 21 */
	{"ConstMethod", "_code_size", TO(const_code_size), ROW_OFFSET, NEEDED},
	{"ConstMethod", "_name_index", TO(const_name), ROW_OFFSET, NEEDED},
	{"ConstMethod", NULL, TO(const_size), ROW_SIZE, NEEDED},
	{"ConstMethod::_has_linenumber_table", NULL, TO(const_has_lines), ROW_INT, MAYBE},
	{"ConstMethodFlags::_misc_has_linenumber_table", NULL, TO(const_has_lines), ROW_INT, MAYBE},
	{"ConstantPool", "_pool_holder", TO(pool_holder), ROW_OFFSET, NEEDED},
	{"ConstantPool", "_source_file_name_index", TO(pool_source), ROW_OFFSET, MAYBE},
	{"ConstantPool", NULL, TO(pool_size), ROW_SIZE, NEEDED},
	{"Klass", "_name", TO(class_name), ROW_OFFSET, NEEDED},
	{"InstanceKlass", "_source_file_name_index", TO(class_source), ROW_OFFSET, MAYBE}, /* 11 */
	{"Symbol", "_length", TO(symbol_length), ROW_OFFSET, MAYBE},
	{"Symbol", "_body", TO(symbol_text), ROW_OFFSET, MAYBE},
	{"Symbol", "_body[0]", TO(symbol_text), ROW_OFFSET, MAYBE},
	{"PcDesc", "_pc_offset", TO(desc_pc), ROW_OFFSET, NEEDED},
	{"PcDesc", "_scope_decode_offset", TO(desc_scope), ROW_OFFSET, NEEDED},
	{"PcDesc", NULL, TO(desc_size), ROW_SIZE, NEEDED},
	{"ContinuationEntry", NULL, TO(entry_size), ROW_SIZE, MAYBE},
	{"frame::interpreter_frame_sender_sp_offset", NULL, TO(frame_sender), ROW_INT, MAYBE},
	{"frame::interpreter_frame_last_sp_offset", NULL, TO(frame_last), ROW_INT, MAYBE},
};

struct self_description {
	const struct language_memory *memory;
	taddr_t address[SYMBOLS]; /* of the variables */
	uint64_t value[SYMBOLS];
	struct java_layout *layout;
	bool has[ARRAY_SIZE(rows)];
	taddr_t type_at;          /* the last type's name: entries of one type follow each other */
	char type[TEXT_MAX];
};

/* The text at @addr, cut off if it is longer; "" if it cannot be read. */
static void read_text(const struct language_memory *m, taddr_t addr, char *text)
{
	text[0] = '\0';
	/* the last text of a mapping may have less than this behind it */
	if (!m->read(m->ctx, addr, text, TEXT_MAX))
		for (size_t i = 0; i < TEXT_MAX; i++) {
			if (!m->read(m->ctx, addr + i, &text[i], 1)) {
				text[0] = '\0';
				break;
			}
			if (!text[i])
				break;
		}
	text[TEXT_MAX - 1] = '\0';
}

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct self_description *d = ctx;

	if (!sym->is_defined || !sym->name || strncmp(sym->name, "gHotSpotVM", 10) != 0)
		return 0;
	for (int i = 0; i < SYMBOLS; i++)
		if (strcmp(sym->name, symbol_names[i]) == 0)
			d->address[i] = sym->vaddr;
	return 0;
}

static void store(struct self_description *d, size_t row, uint64_t value)
{
	char *to = (char *)d->layout + rows[row].to;
	uint32_t small = (uint32_t)value;

	if (rows[row].kind == ROW_ADDRESS)
		memcpy(to, &value, sizeof(value));
	else if (value < OFFSET_MAX || rows[row].kind == ROW_INT)
		memcpy(to, &small, sizeof(small));
	else
		return;
	d->has[row] = true;
}

static void take_field(struct self_description *d, const uint8_t *entry)
{
	const uint64_t *v = d->value;
	taddr_t type = load_u64(entry + v[SYM_STRUCT_TYPE]);
	bool is_static = load_u32(entry + v[SYM_STRUCT_STATIC]);
	char field[TEXT_MAX] = "";

	if (type != d->type_at)
		read_text(d->memory, d->type_at = type, d->type);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].field || is_static != (rows[i].kind == ROW_ADDRESS) ||
		    strcmp(rows[i].type, d->type) != 0)
			continue;
		if (!field[0])
			read_text(d->memory, load_u64(entry + v[SYM_STRUCT_FIELD]), field);
		if (strcmp(rows[i].field, field) == 0)
			store(d, i, load_u64(entry + v[is_static ? SYM_STRUCT_ADDRESS :
								  SYM_STRUCT_OFFSET]));
	}
}

static void take_named(struct self_description *d, taddr_t name, enum row_kind kind, uint64_t value)
{
	char text[TEXT_MAX];

	read_text(d->memory, name, text);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].kind == kind && strcmp(rows[i].type, text) == 0)
			store(d, i, value);
}

static void take_type(struct self_description *d, const uint8_t *entry)
{
	take_named(d, load_u64(entry + d->value[SYM_TYPE_NAME]), ROW_SIZE,
		   load_u64(entry + d->value[SYM_TYPE_SIZE]));
}

static void take_int(struct self_description *d, const uint8_t *entry)
{
	take_named(d, load_u64(entry + d->value[SYM_INT_NAME]), ROW_INT,
		   load_u32(entry + d->value[SYM_INT_VALUE]));
}

struct description_list {
	enum java_symbol array, name, last; /* name and last: offsets in an entry */
	void (*take)(struct self_description *d, const uint8_t *entry);
};

static const struct description_list lists[] = {
	{SYM_STRUCTS, SYM_STRUCT_TYPE, SYM_STRUCT_ADDRESS, take_field},
	{SYM_TYPES, SYM_TYPE_NAME, SYM_TYPE_SIZE, take_type},
	{SYM_INTS, SYM_INT_NAME, SYM_INT_VALUE, take_int},
};

static int read_list(struct self_description *d, const struct description_list *l)
{
	const uint64_t *v = d->value;
	uint64_t stride = v[l->array + 1];
	uint8_t entry[STRIDE_MAX];

	if (!v[l->array] || !stride)
		return -EAGAIN;
	if (stride > STRIDE_MAX)
		return -EINVAL;
	for (int i = l->array + 2; i <= (int)l->last; i++)
		if (v[i] + WORD > stride)
			return -EINVAL;
	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		if (!d->memory->read(d->memory->ctx, v[l->array] + i * stride, entry, stride))
			return -EINVAL;
		if (!load_u64(entry + v[l->name]))
			return 0;
		l->take(d, entry);
	}
	return -EINVAL;
}

static bool is_complete(const struct self_description *d)
{
	const struct java_layout *l = d->layout;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].is_needed && !d->has[i])
			return false;
	return l->array_length != JAVA_ABSENT && l->symbol_text != JAVA_ABSENT &&
	       l->nmethod_method != JAVA_ABSENT &&
	       (l->blob_code_start != JAVA_ABSENT || l->blob_code_offset != JAVA_ABSENT) &&
	       (l->blob_code_end != JAVA_ABSENT || l->blob_data_offset != JAVA_ABSENT);
}

int java_open(struct elf_file *elf, taddr_t bias, const struct language_memory *m,
	      struct java *out)
{
	struct java j = {0};
	struct self_description d = {.memory = m, .layout = &j.layout};

	memset(&j.layout, 0xff, sizeof(j.layout));
	j.layout.heaps = j.layout.version = j.layout.entry_return = 0;
	j.layout.frame_sender = -1;
	j.layout.frame_last = -2;
	elf_file_each_symbol(elf, take_symbol, &d);
	for (int i = 0; i < SYMBOLS; i++) {
		if (!d.address[i])
			return -EINVAL;
		if (!language_read_word(m, bias + d.address[i], &d.value[i]))
			return -EFAULT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		int rc = read_list(&d, &lists[i]);

		if (rc < 0)
			return rc;
	}
	if (!is_complete(&d))
		return -EINVAL;
	if (j.layout.version && !m->read(m->ctx, j.layout.version, &j.version, sizeof(j.version)))
		return -EFAULT;
	if (!java_read_heaps(&j, m))
		return -EAGAIN;
	*out = j;
	return 0;
}

/* -- the code cache -- */

#define SHIFT_MAX 16u
#define HEAP_SIZE_MAX (UINT64_C(1) << 32)

static bool read_half(const struct language_memory *m, taddr_t addr, uint32_t *out)
{
	return m->read(m->ctx, addr, out, sizeof(*out));
}

static bool read_heap(const struct java_layout *l, const struct language_memory *m, taddr_t at,
		      struct java_heap *out)
{
	taddr_t memory = at + l->heap_memory, map = at + l->heap_segments, map_end;
	struct java_heap h;

	if (!language_read_word(m, memory + l->space_low, &h.start) ||
	    !language_read_word(m, memory + l->space_high, &h.end) ||
	    !language_read_word(m, map + l->space_low, &h.segments) ||
	    !language_read_word(m, map + l->space_high, &map_end) ||
	    !read_half(m, at + l->heap_shift, &h.shift) || h.shift > SHIFT_MAX ||
	    h.end < h.start || h.end - h.start > HEAP_SIZE_MAX || map_end < h.segments)
		return false;
	h.segment_count = MIN(map_end - h.segments, (h.end - h.start) >> h.shift);
	*out = h;
	return true;
}

bool java_read_heaps(struct java *j, const struct language_memory *m)
{
	const struct java_layout *l = &j->layout;
	taddr_t array, data, at;
	uint32_t count;

	j->heaps = 0;
	if (!language_read_word(m, l->heaps, &array) || !array ||
	    !read_half(m, array + l->array_length, &count) ||
	    !language_read_word(m, array + l->array_data, &data))
		return false;
	for (uint32_t i = 0; i < MIN(count, JAVA_HEAPS_MAX); i++)
		if (language_read_word(m, data + i * sizeof(at), &at) && at &&
		    read_heap(l, m, at, &j->heap[j->heaps]))
			j->heaps++;
	return j->heaps > 0;
}

#define SEGMENT_FREE 0xffu
#define SEGMENTS_AT_ONCE 256u

/* The first segment of the block that contains segment @i of @h; false if it is free. */
static bool find_block(const struct java_heap *h, const struct language_memory *m, uint64_t i,
		       uint64_t *out)
{
	uint8_t map[SEGMENTS_AT_ONCE];
	uint64_t first = UINT64_MAX;

	for (;;) {
		if (first > i) {
			first = i - MIN(i, SEGMENTS_AT_ONCE - 1);
			if (!m->read(m->ctx, h->segments + first, map, (size_t)(i - first + 1)))
				return false;
		}
		uint8_t back = map[i - first];

		if (back == SEGMENT_FREE || back > i)
			return false;
		if (!back)
			break;
		i -= back; /* downwards: it ends */
	}
	*out = i;
	return true;
}

#define HEADER_MAX 1024u
#define HEADER_MIN 64u

/* The bytes of a blob's header, as far as they can be read. */
struct blob_header {
	taddr_t at;
	uint8_t data[HEADER_MAX];
	size_t size;
};

static uint64_t header_word(const struct blob_header *h, uint32_t offset)
{
	return (uint64_t)offset + WORD <= h->size ? load_u64(h->data + offset) : 0;
}

static uint32_t header_half(const struct blob_header *h, uint32_t offset)
{
	return (uint32_t)header_word(h, offset);
}

static bool read_header(const struct java_layout *l, const struct language_memory *m, taddr_t at,
			struct blob_header *out)
{
	out->at = at;
	/* fields of 4 bytes at the end are read as words; a stub at the end of a heap is smaller */
	for (out->size = MIN((uint64_t)HEADER_MAX, (uint64_t)l->nmethod_size + WORD);
	     out->size >= HEADER_MIN; out->size /= 2)
		if (m->read(m->ctx, at, out->data, out->size))
			return true;
	return false;
}

/* Whether it is a method's, by its name, which is a constant of libjvm.so. */
static enum java_blob_kind kind_of(const struct java_layout *l, const struct language_memory *m,
				   const struct blob_header *h)
{
	char name[TEXT_MAX];

	read_text(m, header_word(h, l->blob_name), name);
	return strcmp(name, "nmethod") == 0	   ? JAVA_COMPILED :
	       strcmp(name, "native nmethod") == 0 ? JAVA_NATIVE :
	       strcmp(name, "Interpreter") == 0	   ? JAVA_INTERPRETER :
						     JAVA_STUB;
}

/* A field of the header that is an offset from its start, or else the address itself. */
static taddr_t header_place(const struct blob_header *h, uint32_t address, uint32_t offset)
{
	if (address != JAVA_ABSENT)
		return header_word(h, address);
	return offset != JAVA_ABSENT ? h->at + header_half(h, offset) : 0;
}

static uint64_t stamp_of(const struct java_layout *l, const struct blob_header *h)
{
	uint64_t stamp = hash_u64(header_half(h, l->nmethod_id) | 1);

	stamp = hash_u64(stamp ^ header_word(h, l->nmethod_method));
	stamp = hash_u64(stamp ^ header_half(h, l->blob_size));
	return hash_u64(stamp ^ header_half(h, l->blob_frame)) | 1;
}

/* What only methods have. */
static void fill_method(const struct java_layout *l, const struct blob_header *h,
			struct java_blob *out)
{
	taddr_t tables = l->nmethod_immutable != JAVA_ABSENT ?
				 header_word(h, l->nmethod_immutable) : h->at;

	out->method = header_word(h, l->nmethod_method);
	out->stamp = stamp_of(l, h);
	out->deopt = header_place(h, l->nmethod_deopt, l->nmethod_deopt_offset);
	out->deopt_mh = header_place(h, l->nmethod_deopt_mh, l->nmethod_deopt_mh_offset);
	if (l->nmethod_original != JAVA_ABSENT)
		out->original = header_half(h, l->nmethod_original);
	if (l->nmethod_descs_offset == JAVA_ABSENT)
		return;
	out->descs = tables + header_half(h, l->nmethod_descs_offset);
	if (l->nmethod_scopes != JAVA_ABSENT)
		out->scopes = header_word(h, l->nmethod_scopes);
	else if (l->nmethod_scopes_offset != JAVA_ABSENT)
		out->scopes = tables + header_half(h, l->nmethod_scopes_offset);
	/* to 22 the scopes precede the descriptions, then they follow */
	out->descs_end = out->scopes > out->descs		? out->scopes :
			 l->nmethod_descs_end != JAVA_ABSENT ?
				tables + header_half(h, l->nmethod_descs_end) : 0;
	if (l->blob_mutable != JAVA_ABSENT && l->blob_relocations != JAVA_ABSENT)
		out->metadata = header_word(h, l->blob_mutable) +
				header_half(h, l->blob_relocations);
	else if (l->nmethod_metadata != JAVA_ABSENT && l->nmethod_immutable == JAVA_ABSENT)
		out->metadata = h->at + header_half(h, l->nmethod_metadata);
	else if (l->nmethod_metadata != JAVA_ABSENT && l->blob_data_offset != JAVA_ABSENT) /* 23 */
		out->metadata = h->at + header_half(h, l->blob_data_offset) +
				(uint16_t)header_half(h, l->nmethod_metadata);
}

#define FRAME_WORDS_MAX (1u << 17)

static bool fill_blob(const struct java_layout *l, const struct language_memory *m,
		      const struct blob_header *h, struct java_blob *out)
{
	struct java_blob b = {.at = h->at, .kind = kind_of(l, m, h), .complete = -1};
	uint32_t words = header_half(h, l->blob_frame);

	b.size = header_half(h, l->blob_size);
	b.start = header_place(h, l->blob_code_start, l->blob_code_offset);
	b.end = header_place(h, l->blob_code_end, l->blob_data_offset);
	if (b.start < b.at || b.end < b.start || b.end - b.at > b.size)
		return false;
	if (words < FRAME_WORDS_MAX)
		b.frame_size = words * WORD;
	if (l->blob_complete != JAVA_ABSENT)
		b.complete = l->nmethod_immutable != JAVA_ABSENT ?
				     (int16_t)header_half(h, l->blob_complete) :
				     (int32_t)header_half(h, l->blob_complete);
	if (b.kind == JAVA_COMPILED || b.kind == JAVA_NATIVE)
		fill_method(l, h, &b);
	*out = b;
	return true;
}

int java_blob_find(const struct java *j, const struct language_memory *m, taddr_t pc,
		   struct java_blob *out)
{
	const struct java_layout *l = &j->layout;

	for (uint32_t i = 0; i < j->heaps; i++) {
		const struct java_heap *h = &j->heap[i];
		struct blob_header header;
		struct java_blob b;
		uint64_t segment;
		uint8_t is_used;

		if (pc < h->start || pc >= h->end)
			continue;
		segment = (pc - h->start) >> h->shift;
		if (segment >= h->segment_count || !find_block(h, m, segment, &segment))
			return -ENOENT;
		taddr_t block = h->start + (segment << h->shift);

		if (!m->read(m->ctx, block + l->block_used, &is_used, sizeof(is_used)) ||
		    !read_header(l, m, block + l->block_size, &header))
			return -EFAULT;
		if (!is_used || !fill_blob(l, m, &header, &b) || pc < b.start || pc > b.end)
			return -ENOENT;
		*out = b;
		return 0;
	}
	return -ENOENT;
}

uint64_t java_blob_stamp(const struct java *j, const struct language_memory *m, taddr_t at)
{
	struct blob_header header;

	return read_header(&j->layout, m, at, &header) ? stamp_of(&j->layout, &header) : 0;
}

void java_blob_name(const struct java *j, const struct language_memory *m,
		    const struct java_blob *blob, char *name, size_t size)
{
	char text[TEXT_MAX] = "";
	uint64_t at;

	if (language_read_word(m, blob->at + j->layout.blob_name, &at))
		read_text(m, at, text);
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	snprintf(name, size, "%s", text);
}

/* -- frames -- */

#define CALLER_MOVED_MAX 4096u /* arguments that an adapter pushes: 255 at most, and alignment */
#define ENTRY_MOVED_MAX 64u    /* words */

/* Whether @pc is a return address of Java code. */
static bool is_java_return(const struct java *j, const struct language_memory *m, taddr_t pc)
{
	struct java_blob b;

	if (java_blob_find(j, m, pc - 1, &b) != 0)
		return false;
	return b.kind == JAVA_INTERPRETER ||
	       (b.kind == JAVA_COMPILED && java_is_described(j, m, &b, pc));
}

/* Whether @place, in @b, returns to the stub's start, and not to behind a call in it. */
static bool is_barrier(const struct java *j, const struct language_memory *m,
		       const struct java_blob *b, const struct java_place *place)
{
	uint8_t code[ARCH_MAX_CALL];
	char name[TEXT_MAX];

	if (!place->is_return || b->kind != JAVA_STUB)
		return false;
	java_blob_name(j, m, b, name, sizeof(name));
	return strstr(name, "continuation") &&
	       m->read(m->ctx, place->pc - sizeof(code), code, sizeof(code)) &&
	       !arch_ends_in_call(code, sizeof(code));
}

/*
 * A virtual thread's frames are brought back from the heap a few at a time. The outermost of these
 * returns to a stub that fetches more (return barrier). Next on the stack is the frame in which the
 * thread's continuation was entered: a ContinuationEntry, frame pointer and return address.
 */
static void step_over_barrier(const struct java *j, const struct language_memory *m,
			      const struct java_place *place, struct java_step *out)
{
	const struct java_layout *l = &j->layout;
	taddr_t entry_pc, words[2];
	struct java_blob entry;

	if (!l->entry_return || l->entry_size == JAVA_ABSENT ||
	    !language_read_word(m, l->entry_return, &entry_pc) ||
	    java_blob_find(j, m, entry_pc - 1, &entry) != 0 ||
	    entry.frame_size < l->entry_size + sizeof(words))
		return;
	for (uint32_t i = 0; i < ENTRY_MOVED_MAX; i++) {
		taddr_t end = place->sp + i * WORD + entry.frame_size;

		if (!m->read(m->ctx, end - sizeof(words), words, sizeof(words)))
			return;
		if (!is_java_return(j, m, words[1]))
			continue;
		*out = (struct java_step){.kind = JAVA_BY_SIZE, .size = end - place->sp};
		return;
	}
	return;
}

static void step_interpreted(const struct java *j, const struct language_memory *m,
			     const struct java_place *place, struct java_step *out)
{
	taddr_t sender, fp = place->fp, end = fp + 2 * sizeof(fp);

	if (!fp)
		return;
	out->kind = JAVA_BY_FP;
	if (language_read_word(m, fp + (int64_t)j->layout.frame_sender * WORD, &sender) &&
	    sender > end && sender - end < CALLER_MOVED_MAX && sender % WORD == 0)
		out->caller_sp = sender;
}

void java_step(const struct java *j, const struct language_memory *m, const struct java_blob *blob,
	       const struct java_place *place, struct java_step *out)
{
	*out = (struct java_step){.kind = JAVA_UNKNOWN};
	if (!place->is_return && blob->complete > 0 &&
	    place->pc < blob->start + (uint32_t)blob->complete)
		return; /* its instructions tell */
	if (blob->kind == JAVA_INTERPRETER) {
		step_interpreted(j, m, place, out);
	} else if (blob->frame_size) {
		out->kind = JAVA_BY_SIZE;
		out->size = blob->frame_size;
		out->is_fixed = place->is_return && place->pc != blob->deopt &&
				place->pc != blob->deopt_mh;
	} else if (is_barrier(j, m, blob, place)) {
		step_over_barrier(j, m, place, out);
	} else if (place->fp) {
		out->kind = JAVA_BY_FP;
	}
}
