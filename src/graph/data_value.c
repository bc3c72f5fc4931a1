/* Values of a process as text. */
#include "graph/data_value.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define TEXT_MAX 80u         /* bytes of a string */
#define ENUMERATORS_MAX 4096u

static bool read_all(const struct data_value *v, taddr_t addr, void *buf, size_t size)
{
	return v->read(v->ctx, addr, buf, size) == (ssize_t)size;
}

/* Its first @size bytes, at most 8, as an unsigned number. */
static bool load_value(const struct data_value *v, uint64_t size, uint64_t *out)
{
	uint64_t word = v->word;

	if (!v->is_word && !read_all(v, v->at, &word, sizeof(word))) {
		word = 0;
		if (!read_all(v, v->at, &word, size))
			return false;
	}
	*out = size < 8 ? word & ((UINT64_C(1) << 8 * size) - 1) : word;
	return true;
}

static bool is_struct(const struct data_type *t)
{
	return t->kind == DATA_STRUCT || t->kind == DATA_UNION;
}

/* *@v, a struct, becomes its member @path. A bit field is none. */
static bool find_member(struct data_value *v, const char *path)
{
	struct member_place place;

	if (!type_table_find_place(v->types, v->type, path, &place) || place.bit_size)
		return false;
	v->at += place.offset;
	v->type = place.type;
	return true;
}

/* The place that @v points to, or, if it is a struct, that it has. */
static enum value_step enter(struct data_value *v)
{
	const struct data_type *t = type_table_get(v->types, v->type);

	if (!v->is_word && is_struct(t))
		return VALUE_TAKEN;
	uint32_t type = t->kind == DATA_POINTER ? t->target : TYPE_NONE;
	taddr_t at;

	if (!load_value(v, 8, &at))
		return VALUE_UNREADABLE;
	if (!at)
		return VALUE_NULL;
	v->is_word = false;
	v->at = at;
	v->type = type;
	return VALUE_TAKEN;
}

enum value_step data_value_member(struct data_value *v, const char *name)
{
	enum value_step entered = enter(v);

	if (entered != VALUE_TAKEN)
		return entered;
	return find_member(v, name) ? VALUE_TAKEN : VALUE_UNKNOWN;
}

enum value_step data_value_offset(struct data_value *v, uint64_t offset)
{
	enum value_step entered = enter(v);

	v->at += offset;
	v->type = TYPE_NONE;
	return entered;
}

/* The string at @addr, of at most @size bytes; NULL: it cannot be read. */
static char *string_at(const struct data_value *v, taddr_t addr, size_t size)
{
	char text[TEXT_MAX];
	ssize_t n = v->read(v->ctx, addr, text, MIN(size, sizeof(text)));

	return n > 0 ? text_clean(text, strnlen(text, (size_t)n)) : NULL;
}

/* Whether a program means @addr to be text: printable, not empty, and it ends. */
static bool is_text(const struct data_value *v, taddr_t addr)
{
	char text[TEXT_MAX + 1];
	ssize_t n = v->read(v->ctx, addr, text, sizeof(text));
	size_t size = n > 0 ? strnlen(text, (size_t)n) : 0;

	for (size_t i = 0; i < size; i++)
		if (((unsigned char)text[i] < ' ' && !strchr("\t\n\r", text[i])) ||
		    text[i] == 0x7f)
			return false;
	return size > 0 && size < (size_t)n;
}

bool data_is_character(const struct type_table *types, uint32_t type)
{
	const struct data_type *t = type_table_get(types, type);

	return t->kind == DATA_BASE && t->size == 1;
}

bool data_counted_string(struct type_table *types, uint32_t type, uint64_t *data_out,
			 uint64_t *length_out)
{
	struct member_place data, length;

	/* libstdc++'s std::string and std::string_view, Rust's &str */
	if (!type_table_find_place(types, type, "_M_dataplus._M_p|_M_str|data_ptr", &data) ||
	    !type_table_find_place(types, type, "_M_string_length|_M_len|length", &length))
		return false;
	*data_out = data.offset;
	*length_out = length.offset;
	return true;
}

static char *counted_string(const struct data_value *v)
{
	uint64_t data, length, size;
	taddr_t at;

	if (!data_counted_string(v->types, v->type, &data, &length) ||
	    !read_all(v, v->at + data, &at, sizeof(at)) ||
	    !read_all(v, v->at + length, &size, sizeof(size)))
		return NULL;
	return size ? string_at(v, at, MIN(size, (uint64_t)TEXT_MAX)) : xstrdup("");
}

static char *integer(const struct data_value *v, const struct data_type *t, enum value_form form)
{
	uint64_t size = t->size && t->size < 8 ? t->size : 8, value;

	if (!load_value(v, size, &value))
		return NULL;
	if (form == VALUE_HEX)
		return xasprintf("%#" PRIx64, value);
	if (!t->is_signed)
		return xasprintf("%" PRIu64, value);
	unsigned unused = (unsigned)(64 - 8 * size);

	return xasprintf("%" PRId64, (int64_t)(value << unused) >> unused);
}

/* The name of the enumerator that has the value; else the number. */
static char *enumerator(const struct data_value *v, const struct data_type *t)
{
	Dwarf_Die die = t->die, child;
	uint64_t size = t->size && t->size < 8 ? t->size : 8, value, constant;
	uint64_t mask = size < 8 ? (UINT64_C(1) << 8 * size) - 1 : UINT64_MAX;

	if (!load_value(v, size, &value))
		return NULL;
	if (dwarf_child(&die, &child) != 0)
		return integer(v, t, VALUE_INTEGER);
	for (unsigned i = 0; i < ENUMERATORS_MAX; i++) {
		const char *name = die_string(&child, DW_AT_name);

		if (name && die_number(&child, DW_AT_const_value, &constant) &&
		    ((constant ^ value) & mask) == 0)
			return xstrdup(name);
		if (dwarf_siblingof(&child, &child) != 0)
			break;
	}
	return integer(v, t, VALUE_INTEGER);
}

char *data_value_text(const struct data_value *v, enum value_form form)
{
	const struct data_type t = *type_table_get(v->types, v->type);
	bool is_pointer = t.kind == DATA_POINTER;
	taddr_t pointer = 0;

	if (form == VALUE_AUTO && t.kind == DATA_ENUM)
		return enumerator(v, &t);
	if (form == VALUE_AUTO && is_pointer && is_struct(type_table_get(v->types, t.target))) {
		struct data_value inner = *v;
		char *text = enter(&inner) == VALUE_TAKEN ? counted_string(&inner) : NULL;

		return text ? text : integer(v, &t, VALUE_HEX);
	}
	if (form == VALUE_AUTO && is_struct(&t) && !v->is_word)
		return counted_string(v);
	if (t.kind == DATA_ARRAY && form <= VALUE_STRING && !v->is_word)
		return data_is_character(v->types, t.target) ?
			       string_at(v, v->at, t.count ? t.count : TEXT_MAX) : NULL;
	bool is_unknown = v->type == TYPE_NONE || (is_pointer && t.target == TYPE_NONE);
	bool may_be_text = form == VALUE_STRING ||
			   (form == VALUE_AUTO && is_pointer &&
			    data_is_character(v->types, t.target));

	if (!may_be_text && !(form == VALUE_AUTO && is_unknown))
		return integer(v, &t, is_pointer && form == VALUE_AUTO ? VALUE_HEX : form);
	if (!load_value(v, 8, &pointer))
		return NULL;
	if (may_be_text && !pointer)
		return xstrdup("(null)");
	if (may_be_text || is_text(v, pointer))
		return string_at(v, pointer, TEXT_MAX);
	return integer(v, &t, VALUE_INTEGER);
}

/* -- arguments: the ABI's classes (of System V and AAPCS64) -- */

/* Whether an argument of type @t is in a register of its own, of those for integers. */
static bool is_integer_class(const struct data_type *t)
{
	return t->kind == DATA_POINTER || t->kind == DATA_ENUM ||
	       (t->kind == DATA_BASE && t->size && t->size <= 8);
}

static bool is_floating(const struct data_type *t)
{
	static const char *const names[] = {"double", "float", "f64", "f32"};

	return t->kind == DATA_BASE && t->name &&
	       text_is_among(t->name, names, ARRAY_SIZE(names));
}

/* Whether a function returns a value of type @t where a hidden argument says. */
static bool is_returned_in_memory(const struct data_type *t)
{
	Dwarf_Die die = t->die;
	uint64_t convention;

	return is_struct(t) &&
	       (t->size > 16 || (die_number(&die, DW_AT_calling_convention, &convention) &&
				 convention == DW_CC_pass_by_reference));
}

uint32_t data_argument_type(struct type_table *types, struct debug_units *units, uint64_t address,
			    unsigned number)
{
	struct child_dies below = {0};
	uint32_t found = TYPE_NONE;
	Dwarf_Die function;

	if (!debug_units_find_function(units, address, &function))
		return TYPE_NONE;
	uint32_t result = type_table_read_of(types, units, &function);

	if (is_returned_in_memory(type_table_get(types, result)) && number-- == 0)
		return TYPE_NONE;
	debug_units_children(units, &function, &below);
	for (size_t i = 0; i < below.list.count; i++) {
		if (below.list.data[i].tag != DW_TAG_formal_parameter)
			continue;
		uint32_t type = type_table_read_of(types, units, &below.list.data[i].die);
		const struct data_type *t = type_table_get(types, type);

		if (is_floating(t))
			continue;
		if (!is_integer_class(t))
			break;
		if (number-- == 0) {
			found = type;
			break;
		}
	}
	vec_deinit(&below.list);
	return found;
}
