/*
 * Checks a CFI section in one pass before libdw reads it.
 *
 * Every entry is parsed up to its instructions, and these are searched for the registers they name
 * and the depth of saved states. What libdw rejects itself (unknown operations, truncated entries)
 * may pass, but anything that this file does not understand is rejected: no compiler generates it.
 *
 * Entries are also reached through the search table of .eh_frame_hdr, so each of its rows must
 * point to the start of a known entry. Linear in the size of the section: some ten milliseconds for
 * the largest libraries, once per file.
 */
#include "unwind/cfi_check.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/vec.h"

#define MAX_REGISTER 255
#define MAX_STATES 64 /* remember_state without restore_state; compilers nest one or two */
#define HDR_TABLE 12  /* offset of the first row, in the only form that linkers generate */

struct cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

struct section {
	const uint8_t *data;
	uint64_t size, vaddr, offset;
	bool is_eh;
};

struct cie {
	uint64_t at;          /* offset in the section */
	uint8_t address_size; /* of the addresses in its FDEs */
	bool is_sized;        /* its FDEs have augmentation data */
};

struct check {
	struct section section;
	VEC(struct cie) cies;     /* ascending */
	VEC(uint64_t) fdes;       /* offsets, ascending */
	unsigned int states;      /* remember_state depth of the program being read */
};

static uint64_t take_bytes(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < size || size > 8) {
		c->is_bad = true;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static uint64_t take_leb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take_bytes(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !c->is_bad);
	return value;
}

static void skip(struct cursor *c, uint64_t size)
{
	if ((uint64_t)(c->end - c->at) < size)
		c->is_bad = true;
	else
		c->at += size;
}

static bool take_register(struct cursor *c)
{
	return take_leb(c) <= MAX_REGISTER;
}

/* Reads one instruction. False if libdw must not execute it; is_bad if libdw itself stops there. */
static bool check_instruction(struct check *check, struct cursor *c, uint8_t address_size)
{
	uint8_t op = (uint8_t)take_bytes(c, 1);

	switch (op & 0xc0) {
	case DW_CFA_offset: take_leb(c); return true;
	case DW_CFA_advance_loc: case DW_CFA_restore: return true;
	}
	switch (op) {
	case DW_CFA_nop: case DW_CFA_GNU_window_save: return true;
	case DW_CFA_set_loc: skip(c, address_size); return true;
	case DW_CFA_advance_loc1: skip(c, 1); return true;
	case DW_CFA_advance_loc2: skip(c, 2); return true;
	case DW_CFA_advance_loc4: skip(c, 4); return true;
	case DW_CFA_MIPS_advance_loc8: skip(c, 8); return true;
	case DW_CFA_remember_state: return ++check->states <= MAX_STATES;
	case DW_CFA_restore_state: check->states -= check->states > 0; return true;
	case DW_CFA_def_cfa_offset: case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size: take_leb(c); return true;
	case DW_CFA_def_cfa_expression: skip(c, take_leb(c)); return true;
	case DW_CFA_restore_extended: case DW_CFA_undefined: case DW_CFA_same_value:
	case DW_CFA_def_cfa_register: return take_register(c);
	case DW_CFA_offset_extended: case DW_CFA_offset_extended_sf: case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf: case DW_CFA_def_cfa: case DW_CFA_def_cfa_sf:
	case DW_CFA_GNU_negative_offset_extended:
		if (!take_register(c))
			return false;
		take_leb(c);
		return true;
	case DW_CFA_register: return take_register(c) && take_register(c);
	case DW_CFA_expression: case DW_CFA_val_expression:
		if (!take_register(c))
			return false;
		skip(c, take_leb(c));
		return true;
	}
	c->is_bad = true;
	return true;
}

static bool check_program(struct check *check, struct cursor *c, uint8_t address_size)
{
	check->states = 0;
	while (c->at < c->end && !c->is_bad)
		if (!check_instruction(check, c, address_size))
			return false;
	return true;
}

/* Size of an address in DW_EH_PE form @encoding; 0 for forms that no compiler uses. */
static uint8_t encoded_size(uint8_t encoding)
{
	switch (encoding & 7) {
	case DW_EH_PE_absptr: case DW_EH_PE_udata8: return 8;
	case DW_EH_PE_udata4: return 4;
	case DW_EH_PE_udata2: return 2;
	default: return 0;
	}
}

/* Parses augmentation data to find the encoding of addresses. */
static bool check_augmentation(struct cursor *c, const char *letters, struct cie *cie)
{
	uint64_t size = take_leb(c);

	if (c->is_bad || size > (uint64_t)(c->end - c->at))
		return false;
	struct cursor data = {c->at, c->at + size, false};
	c->at += size;
	for (letters++; *letters && !data.is_bad; letters++) {
		switch (*letters) {
		case 'R': cie->address_size = encoded_size((uint8_t)take_bytes(&data, 1)); break;
		case 'P': skip(&data, encoded_size((uint8_t)take_bytes(&data, 1))); break;
		case 'L': skip(&data, 1); break;
		case 'S': case 'B': break;
		default: return false;
		}
	}
	return !data.is_bad && cie->address_size != 0;
}

static bool check_cie(struct check *check, struct cursor *c, uint64_t at)
{
	struct cie cie = {.at = at, .address_size = 8};
	uint8_t version = (uint8_t)take_bytes(c, 1);
	const char *letters = (const char *)c->at;

	while (take_bytes(c, 1) != 0 && !c->is_bad)
		;
	if (c->is_bad || (*letters && *letters != 'z'))
		return false;
	if (version >= 4)
		skip(c, 2);
	take_leb(c);
	take_leb(c);
	if ((version == 1 ? take_bytes(c, 1) : take_leb(c)) > MAX_REGISTER)
		return false;
	cie.is_sized = *letters == 'z';
	if (cie.is_sized && !check_augmentation(c, letters, &cie))
		return false;
	*vec_add(&check->cies) = cie;
	return !c->is_bad && check_program(check, c, cie.address_size);
}

static bool check_fde(struct check *check, struct cursor *c, uint64_t at, uint64_t cie_at)
{
	const struct cie *cie = NULL;

	for (size_t i = check->cies.count; i > 0 && !cie; i--)
		if (check->cies.data[i - 1].at == cie_at)
			cie = &check->cies.data[i - 1];
	if (!cie)
		return false;
	skip(c, 2u * cie->address_size);
	if (cie->is_sized)
		skip(c, take_leb(c));
	*vec_add(&check->fdes) = at;
	return check_program(check, c, cie->address_size);
}

static bool check_entries(struct check *check)
{
	const struct section *s = &check->section;

	for (uint64_t at = 0; s->size - at >= 4;) {
		struct cursor c = {s->data + at, s->data + s->size, false};
		uint64_t length = take_bytes(&c, 4);
		if (length == 0) { /* a terminator; more may follow */
			at += 4;
			continue;
		}
		if (length < 4 || length > s->size - at - 4)
			return false;
		c.end = c.at + length;
		uint64_t id = take_bytes(&c, 4);
		bool is_cie = s->is_eh ? id == 0 : id == 0xffffffff;
		if (!(is_cie ? check_cie(check, &c, at)
			     : check_fde(check, &c, at, s->is_eh ? at + 4 - id : id)))
			return false;
		at += 4 + length;
	}
	return true;
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * .eh_frame_hdr: {1, pcrel sdata4, udata4, datarel
 * sdata4, where .eh_frame is, rows, {code, FDE}...}.
 */
static bool check_table(const struct check *check, const struct section *hdr)
{
	static const uint8_t form[4] = {1, 0x1b, 0x03, 0x3b};
	int32_t to_frame, to_fde;
	uint32_t rows;

	if (hdr->size < HDR_TABLE || memcmp(hdr->data, form, sizeof(form)) != 0)
		return false;
	memcpy(&to_frame, hdr->data + 4, 4);
	memcpy(&rows, hdr->data + 8, 4);
	if (hdr->vaddr + 4 + (uint64_t)(int64_t)to_frame != check->section.vaddr ||
	    rows > (hdr->size - HDR_TABLE) / 8)
		return false;
	for (uint32_t i = 0; i < rows; i++) {
		memcpy(&to_fde, hdr->data + HDR_TABLE + 8 * (size_t)i + 4, 4);
		uint64_t at = hdr->vaddr + (uint64_t)(int64_t)to_fde - check->section.vaddr;
		if (!bsearch(&at, check->fdes.data, check->fdes.count, sizeof(at), compare_offsets))
			return false;
	}
	return true;
}

static bool find_section(Elf *elf, const char *name, struct section *out)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_file_section(elf, name, &header);

	if (!scn)
		return false;
	if (header.sh_flags & SHF_COMPRESSED)
		elf_compress(scn, 0, 0);
	Elf_Data *data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf)
		return false;
	*out = (struct section){data->d_buf, data->d_size, header.sh_addr, header.sh_offset,
				strcmp(name, ".eh_frame") == 0};
	return true;
}

/* libdw uses the program header if there is one: it must describe the section that was checked. */
static bool is_same_hdr(Elf *elf, const struct section *hdr, bool has_hdr)
{
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
			continue;
		if (!has_hdr || header.p_vaddr != hdr->vaddr || header.p_offset != hdr->offset)
			return false;
	}
	return true;
}

static void check_deinit(struct check *check)
{
	vec_deinit(&check->cies);
	vec_deinit(&check->fdes);
}

bool cfi_check_eh_frame(Elf *elf)
{
	struct check check = {0};
	struct section hdr = {0};
	bool has_hdr = find_section(elf, ".eh_frame_hdr", &hdr), is_sane;

	is_sane = find_section(elf, ".eh_frame", &check.section) &&
		  is_same_hdr(elf, &hdr, has_hdr) && check_entries(&check) &&
		  (!has_hdr || check_table(&check, &hdr));
	check_deinit(&check);
	return is_sane;
}

bool cfi_check_debug_frame(Elf *elf)
{
	struct check check = {0};
	bool is_sane = !find_section(elf, ".debug_frame", &check.section) || check_entries(&check);

	check_deinit(&check);
	return is_sane;
}
