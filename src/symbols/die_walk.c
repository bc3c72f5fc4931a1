/* Steps from DIE to DIE by the forms of their abbreviations. */
#include "symbols/die_walk.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

/*
 * A DIE is an abbreviation code followed by its attributes without separators. The next one is
 * found by adding up the sizes of the attributes' forms (DWARF 5, 7.5). libdw reads the
 * abbreviations, once each; everything else is bounds and sizes.
 */

/* Codes are small and dense in practice; a unit with larger ones is skipped. */
#define CODE_MAX 1000000

/* More attributes than any compiler generates. */
#define FORM_COUNT_MAX 1000

/* The end of the section data that contains @addr; NULL if there is none. DWARF 4 has two. */
static const uint8_t *section_end(Dwarf *dwarf, const uint8_t *addr, bool *is_types_out)
{
	Elf *elf = dwarf_getelf(dwarf);
	size_t names;
	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr header;
		if (!gelf_getshdr(scn, &header))
			continue;
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (!name || (!strstr(name, "debug_info") && !strstr(name, "debug_types")))
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		const uint8_t *start = data ? data->d_buf : NULL;
		*is_types_out = strstr(name, "debug_types") != NULL;
		if (start && addr >= start && addr < start + data->d_size)
			return start + data->d_size;
	}
	return NULL;
}

uint64_t dwarf_take_uleb(const uint8_t **pos, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *pos < end; shift += 7) {
		uint8_t byte = *(*pos)++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

uint64_t dwarf_take_fixed(const uint8_t **pos, const uint8_t *end, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(end - *pos) < size) {
		*pos = end;
		return 0;
	}
	memcpy(&value, *pos, size);
	*pos += size;
	return value;
}

bool dwarf_has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* DW_LANG_C17 */
	case 0x3e: /* DW_LANG_C23 */
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

static uint64_t read_uleb(struct die_walk *w)
{
	return dwarf_take_uleb(&w->pos, w->end);
}

static uint64_t read_fixed(struct die_walk *w, size_t size)
{
	return dwarf_take_fixed(&w->pos, w->end, size);
}

static void skip(struct die_walk *w, uint64_t size)
{
	w->pos = (uint64_t)(w->end - w->pos) < size ? w->end : w->pos + size;
}

/* The size of a value of @form; -1 if it is stored in the value itself. */
static int fixed_size(const struct die_walk *w, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present: case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2: case DW_FORM_ref2: case DW_FORM_strx2: case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3: case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8: case DW_FORM_ref8: case DW_FORM_ref_sig8: case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return w->address_size;
	case DW_FORM_ref_addr:
		return w->version == 2 ? w->address_size : w->offset_size;
	case DW_FORM_strp: case DW_FORM_line_strp: case DW_FORM_sec_offset: case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt: case DW_FORM_GNU_strp_alt:
		return w->offset_size;
	default:
		return -1;
	}
}

/* Skips a value of @form; false for an unknown form. */
static bool skip_value(struct die_walk *w, uint16_t form)
{
	if (form == DW_FORM_indirect)
		form = (uint16_t)read_uleb(w);
	int size = fixed_size(w, form);
	if (size >= 0) {
		skip(w, (uint64_t)size);
		return true;
	}
	switch (form) {
	case DW_FORM_string:
		skip(w, strnlen((const char *)w->pos, (size_t)(w->end - w->pos)) + 1);
		return true;
	case DW_FORM_block1:
		skip(w, read_fixed(w, 1));
		return true;
	case DW_FORM_block2:
		skip(w, read_fixed(w, 2));
		return true;
	case DW_FORM_block4:
		skip(w, read_fixed(w, 4));
		return true;
	case DW_FORM_block: case DW_FORM_exprloc:
		skip(w, read_uleb(w));
		return true;
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		read_uleb(w);
		return true;
	default:
		return false;
	}
}

/*
 * Reads the abbreviation of @die into @shape. The last attribute is where libdw finds no more: its
 * dwarf_getattrcnt miscounts implicit constants (0.188).
 */
static bool read_shape(struct die_walk *w, Dwarf_Die *die, struct die_shape *shape)
{
	unsigned int attribute, form;
	int tag = dwarf_tag(die);
	if (tag <= 0 || !die->abbrev)
		return false;
	uint32_t first = (uint32_t)w->forms.count, count = 0;
	while (count < FORM_COUNT_MAX &&
	       dwarf_getabbrevattr_data(die->abbrev, count, &attribute, &form, NULL, NULL) == 0) {
		*vec_add(&w->forms) = (struct die_form){(uint16_t)attribute, (uint16_t)form};
		count++;
	}
	*shape = (struct die_shape){
		.is_known = true, .has_children = dwarf_abbrevhaschildren(die->abbrev) > 0,
		.tag = (uint16_t)tag, .first_form = first, .form_count = count,
	};
	return true;
}

/* The shape of the DIE at @die with code @code; NULL if it cannot be read. */
static const struct die_shape *get_shape(struct die_walk *w, Dwarf_Die *die, uint64_t code)
{
	if (code > CODE_MAX)
		return NULL;
	vec_reserve(&w->shapes, code + 1);
	while (w->shapes.count <= code)
		*vec_add(&w->shapes) = (struct die_shape){0};
	struct die_shape *shape = &w->shapes.data[code];
	return shape->is_known || read_shape(w, die, shape) ? shape : NULL;
}

void die_walk_init(struct die_walk *w, const Dwarf_Die *cu_die, bool (*is_entered)(int tag))
{
	*w = (struct die_walk){.root = *cu_die, .is_entered = is_entered};
	Dwarf *dwarf = dwarf_cu_getdwarf(cu_die->cu);
	Dwarf_Off in_unit = dwarf_cuoffset(&w->root), next;
	Dwarf_Off header = dwarf_dieoffset(&w->root) - in_unit;
	Dwarf_Half version;
	size_t header_size;
	uint64_t signature;
	bool is_types;
	const uint8_t *start = w->root.addr, *end = section_end(dwarf, start, &is_types);
	if (!end || dwarf_next_unit(dwarf, header, &next, &header_size, &version, NULL,
				    &w->address_size, &w->offset_size,
				    is_types ? &signature : NULL, NULL) != 0)
		return;
	w->version = version;
	w->unit = start - in_unit;
	w->pos = start;
	w->end = end;
	if (next > header && next - header < (uint64_t)(end - w->unit))
		w->end = w->unit + (next - header);
	Dwarf_Die root;
	int tag;
	if (w->pos >= w->end || !die_walk_next(w, &root, &tag)) /* skips the root itself */
		w->pos = w->end;
}

/* Skips the attributes of a DIE; *sibling_out: its next sibling, or NULL if not given. */
static bool skip_attributes(struct die_walk *w, const struct die_shape *shape,
			    const uint8_t **sibling_out)
{
	*sibling_out = NULL;
	for (uint32_t i = 0; i < shape->form_count; i++) {
		const struct die_form *f = &w->forms.data[shape->first_form + i];
		if (f->attribute == DW_AT_sibling &&
		    (f->form == DW_FORM_ref4 || f->form == DW_FORM_ref2)) {
			uint64_t offset = read_fixed(w, f->form == DW_FORM_ref4 ? 4 : 2);
			if (offset < (uint64_t)(w->end - w->unit))
				*sibling_out = w->unit + offset;
		} else if (!skip_value(w, f->form)) {
			return false;
		}
	}
	return true;
}

bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out)
{
	while (w->pos < w->end) {
		const uint8_t *start = w->pos, *sibling;
		uint64_t code = read_uleb(w);
		if (code == 0) { /* the end of a level */
			if (w->open <= 1)
				break;
			w->open--;
			continue;
		}
		Dwarf_Die die = {.addr = (void *)(uintptr_t)start, .cu = w->root.cu};
		const struct die_shape *shape = get_shape(w, &die, code);
		if (!shape || !skip_attributes(w, shape, &sibling))
			break;
		*die_out = die;
		*tag_out = shape->tag;
		w->depth = w->open;
		if (shape->has_children && sibling && sibling > w->pos && w->open > 0 &&
		    (w->target ? sibling <= w->target : !w->is_entered(shape->tag)))
			w->pos = sibling;
		else if (shape->has_children)
			w->open++;
		return true;
	}
	w->pos = w->end;
	return false;
}

void die_walk_deinit(struct die_walk *w)
{
	vec_deinit(&w->shapes);
	vec_deinit(&w->forms);
}

bool die_walk_seek(struct die_walk *w, const Dwarf_Die *die)
{
	const uint8_t *at = die->addr;

	if (die->cu != w->root.cu || at < w->unit || at >= w->end)
		return false;
	w->pos = at;
	w->open = 0;
	return true;
}
