/*
 * V8's description of itself, and its frames. Its objects are in v8_object.c.
 *
 * The names of the variables end in the type of the field, which differs between versions.
 */
#include "languages/v8.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/elf_file.h"

/* The low bits of a reference to an object; a small integer has a 0 in the lowest. */
#define TAG_MASK 3u
#define TAG 1u
#define LOWEST (UINT64_C(1) << 32) /* no object is below: numbers in frames are */

#define OFFSET_MAX 4096

struct v8_row {
	const char *name; /* behind "v8dbg_" */
	uint16_t to;      /* in struct v8_layout */
	bool is_start;    /* the name goes on */
};

#define TO(member) offsetof(struct v8_layout, member)

static const struct v8_row rows[] = {
	{"off_fp_context", TO(frame_context), false},
	{"off_fp_function", TO(frame_closure), false},
	{"class_JSFunction__shared__", TO(closure_function), true},
	{"class_SharedFunctionInfo__name_or_scope_info__", TO(function_name), true},
	{"class_SharedFunctionInfo__script_or_debug_info__", TO(function_script), true}, /* to 20 */
	{"class_SharedFunctionInfo__script__", TO(function_script), true},
	{"class_SharedFunctionInfo__flags__", TO(function_flags), true},
	{"class_SharedFunctionInfo__feedback_metadata__", TO(function_metadata), true},
	{"class_Script__name__", TO(script_name), true},
	{"class_Script__source__", TO(script_source), true},
	{"class_HeapObject__map__", TO(map), true},
	{"class_Map__instance_type__", TO(map_type), true},
	{"class_String__length__", TO(string_length), true},
	{"class_SeqOneByteString__chars__", TO(one_byte), true},
	{"class_SeqTwoByteString__chars__", TO(two_byte), true},
	{"class_ConsString__first__", TO(cons_first), true},
	{"class_ConsString__second__", TO(cons_second), true},
	{"class_SlicedString__parent__", TO(sliced_parent), true},
	{"class_SlicedString__offset__", TO(sliced_offset), true},
	{"class_ThinString__actual__", TO(thin_actual), true},
	{"class_ExternalString__resource__", TO(external_resource), true},
	{"scopeinfo_idx_ncontextlocals", TO(scope_locals), false},
	{"scopeinfo_idx_first_vars", TO(scope_names), false},
	{"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", TO(type_function), false},
	{"type_ScopeInfo__SCOPE_INFO_TYPE", TO(type_scope), false},
	{"type_Script__SCRIPT_TYPE", TO(type_script), false},
};

/* What v8_object.c takes for granted. */
static const struct {
	const char *name;
	int32_t value;
} constants[] = {
	{"HeapObjectTag", TAG},	  {"HeapObjectTagMask", TAG_MASK},
	{"SmiTag", 0},		  {"SmiTagMask", 1},
	{"SmiShiftSize", 31},	  {"TaggedSize", 8},
	{"IsNotStringMask", -128}, {"StringTag", 0},
	{"StringEncodingMask", 8}, {"OneByteStringTag", 8},
	{"SeqStringTag", 0},	  {"ConsStringTag", 1},
	{"ExternalStringTag", 2}, {"SlicedStringTag", 3},
	{"ThinStringTag", 5},	  {"StringRepresentationMask", 7},
};

struct v8_description {
	const struct language_memory *memory;
	taddr_t bias;
	struct v8 *v8;
	bool is_v8, is_other; /* it has V8; one whose objects are unlike those that are known */
};

static bool is_named(const struct v8_row *row, const char *name)
{
	return row->is_start ? strncmp(name, row->name, strlen(row->name)) == 0 :
			       strcmp(name, row->name) == 0;
}

static void take_variable(struct v8_description *d, const char *name, taddr_t at)
{
	int32_t value;

	if (!d->memory->read(d->memory->ctx, at, &value, sizeof(value)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (is_named(&rows[i], name) && value >= -OFFSET_MAX && value <= OFFSET_MAX)
			memcpy((char *)&d->v8->layout + rows[i].to, &value, sizeof(value));
	for (size_t i = 0; i < ARRAY_SIZE(constants); i++)
		if (strcmp(constants[i].name, name) == 0)
			d->is_other |= constants[i].value != value;
}

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	static const char variable[] = "v8dbg_", class[] = "_ZN2v87Isolate";
	struct v8_description *d = ctx;

	if (!sym->is_defined || !sym->name)
		return 0;
	if (strncmp(sym->name, variable, sizeof(variable) - 1) == 0) {
		d->is_v8 = true;
		take_variable(d, sym->name + sizeof(variable) - 1, d->bias + sym->vaddr);
	} else if (strcmp(sym->name, "Builtins_InterpreterEntryTrampoline") == 0 && sym->size) {
		d->v8->loop = sym->vaddr;
		d->v8->loop_end = sym->vaddr + sym->size;
	} else if (!d->is_v8) {
		d->is_v8 = strncmp(sym->name, class, sizeof(class) - 1) == 0;
	}
	return 0;
}

/* Whether all rows are known, and none is an offset that objects cannot have. */
static bool is_complete(const struct v8_layout *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int32_t value;

		memcpy(&value, (const char *)l + rows[i].to, sizeof(value));
		bool is_in_frame = rows[i].to == TO(frame_context) ||
				   rows[i].to == TO(frame_closure);

		if (value == -1 || (value < 0) != is_in_frame)
			return false;
	}
	return true;
}

int v8_open(struct elf_file *elf, taddr_t bias, const struct language_memory *m, struct v8 *out)
{
	struct v8 v = {0};
	struct v8_description d = {.memory = m, .bias = bias, .v8 = &v};

	memset(&v.layout, 0xff, sizeof(v.layout));
	elf_file_each_symbol(elf, take_symbol, &d);
	if (!d.is_v8)
		return -ENOENT;
	if (!v.loop || !is_complete(&v.layout))
		return -ENODATA;
	if (d.is_other)
		return -EINVAL;
	*out = v;
	return 0;
}

void v8_deinit(struct v8 *v)
{
	for (size_t i = 0; i < V8_LINES; i++)
		vec_deinit(&v->lines[i].end);
}

/* -- frames -- */

static uint64_t offset_of(int32_t offset)
{
	return (uint64_t)(int64_t)offset;
}

void v8_fill_pad_layout(const struct v8 *v, struct pad_virtual_layout *out)
{
	const struct v8_layout *l = &v->layout;

	out->state_kind = PAD_STATE_FRAMES;
	out->identity = offset_of(l->frame_closure);
	out->identity_mask = UINT64_MAX;
	out->entry = offset_of(l->frame_context);
	out->owner = offset_of(l->closure_function);
	out->name = offset_of(l->function_name);
	out->file = offset_of(l->function_script);
	out->line = offset_of(l->function_flags);
	out->table = offset_of(l->function_metadata);
	out->tag_mask = TAG_MASK;
	out->tag_value = TAG;
	out->lowest = LOWEST;
	/* of a string its hash and length, of a scope's description its flags */
	out->name_word = offset_of(l->map) + sizeof(uint64_t);
	out->file_word = offset_of(l->script_source);
}

static bool is_reference(uint64_t word)
{
	return (word & TAG_MASK) == TAG && word >= LOWEST;
}

uint64_t v8_frame_function(const struct v8 *v, const struct language_memory *m, taddr_t fp)
{
	const struct v8_layout *l = &v->layout;
	uint64_t context, closure, function;

	if (!fp || fp % sizeof(fp) ||
	    !language_read_word(m, fp + offset_of(l->frame_context), &context) ||
	    !language_read_word(m, fp + offset_of(l->frame_closure), &closure) ||
	    !is_reference(context) || !is_reference(closure) ||
	    !language_read_word(m, closure - TAG + offset_of(l->closure_function), &function))
		return 0;
	return is_reference(function) ? function - TAG : 0;
}

/* Replaces *word by the word at @offset of what it refers to, if it is a reference. */
static bool follow(const struct language_memory *m, int32_t offset, uint64_t *word)
{
	return !is_reference(*word) || language_read_word(m, *word - TAG + offset_of(offset), word);
}

uint64_t v8_function_stamp(const struct v8 *v, const struct language_memory *m, uint64_t at)
{
	const struct v8_layout *l = &v->layout;
	struct pad_stamp stamp;
	uint64_t name, name_word;

	if (!language_read_word(m, at + offset_of(l->function_name), &name) ||
	    !language_read_word(m, at + offset_of(l->function_script), &stamp.file) ||
	    !language_read_word(m, at + offset_of(l->function_flags), &stamp.line) ||
	    !language_read_word(m, at + offset_of(l->function_metadata), &stamp.table))
		return 0;
	name_word = name;
	stamp.file_hash = stamp.file;
	if (!follow(m, l->map + (int32_t)sizeof(uint64_t), &name_word) ||
	    !follow(m, l->script_source, &stamp.file_hash))
		return 0;
	stamp.name_hash = pad_stamp_mix(name, name_word);
	return pad_stamp_of(&stamp);
}
