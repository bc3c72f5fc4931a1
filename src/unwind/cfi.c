/*
 * Whether a file's CFI is safe for libdw, which does not limit two things: the register numbers
 * that instructions name (it allocates that many, up to gigabytes), and the number of saved states.
 */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/types.h"

static uint64_t hash_rule(uint64_t vaddr, bool is_exact)
{
	return hash_u64(2 * vaddr + is_exact);
}

const struct cached_rule *rule_cache_find(const struct rule_cache *k, uint64_t vaddr,
					  bool is_exact)
{
	return hash_find(&k->rules, hash_rule(vaddr, is_exact), e,
			 e->vaddr == vaddr && e->is_exact == is_exact);
}

void rule_cache_add(struct rule_cache *k, const struct cached_rule *rule)
{
	*hash_add(&k->rules, hash_rule(rule->vaddr, rule->is_exact)) = *rule;
}

void rule_cache_deinit(struct rule_cache *k)
{
	hash_deinit(&k->rules);
}

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

#define MAX_REGISTER 255
#define MAX_STATES 64 /* remember_state without restore_state; compilers nest one or two */
#define HDR_TABLE 12  /* offset of the first row, in the only form that linkers generate */

struct cfi_cursor {
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

static uint64_t take_bytes(struct cfi_cursor *c, size_t size)
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

static uint64_t take_leb(struct cfi_cursor *c)
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

static void skip(struct cfi_cursor *c, uint64_t size)
{
	if ((uint64_t)(c->end - c->at) < size)
		c->is_bad = true;
	else
		c->at += size;
}

static bool take_register(struct cfi_cursor *c)
{
	return take_leb(c) <= MAX_REGISTER;
}

/* Reads one instruction. False if libdw must not execute it; is_bad if libdw itself stops there. */
static bool check_instruction(struct check *check, struct cfi_cursor *c, uint8_t address_size)
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

static bool check_program(struct check *check, struct cfi_cursor *c, uint8_t address_size)
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
static bool check_augmentation(struct cfi_cursor *c, const char *letters, struct cie *cie)
{
	uint64_t size = take_leb(c);

	if (c->is_bad || size > (uint64_t)(c->end - c->at))
		return false;
	struct cfi_cursor data = {c->at, c->at + size, false};
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

static bool check_cie(struct check *check, struct cfi_cursor *c, uint64_t at)
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

static bool check_fde(struct check *check, struct cfi_cursor *c, uint64_t at, uint64_t cie_at)
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
		struct cfi_cursor c = {s->data + at, s->data + s->size, false};
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

/*
 * Checks .eh_frame completely, and that .eh_frame_hdr points to nothing else. False: do not use
 * them.
 */
static bool cfi_check_eh_frame(Elf *elf)
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

/* The same for .debug_frame. True if there is none. */
static bool cfi_check_debug_frame(Elf *elf)
{
	struct check check = {0};
	bool is_sane = !find_section(elf, ".debug_frame", &check.section) || check_entries(&check);

	check_deinit(&check);
	return is_sane;
}

/*
 * Looks up a function's CIE by the search table of .eh_frame_hdr (LSB Core, 10.6), as the program's
 * own unwinder does. All offsets are untrusted.
 */

#define HDR_TABLE 12 /* offset of the first row, in the form that linkers generate */
#define ROW_SIZE 8   /* code, entry: both relative to the section */

struct section_bytes {
	const uint8_t *data;
	uint64_t size, vaddr;
};

static bool find_bytes(Elf *elf, const char *name, struct section_bytes *out)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(elf, name, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;

	if (!data || !data->d_buf)
		return false;
	*out = (struct section_bytes){data->d_buf, data->d_size, header.sh_addr};
	return true;
}

static bool read_word(const struct section_bytes *b, uint64_t at, uint32_t *out)
{
	if (b->size < sizeof(*out) || at > b->size - sizeof(*out))
		return false;
	memcpy(out, b->data + at, sizeof(*out));
	return true;
}

/* The address stored in word @at of @hdr, which is relative to the section. */
static uint64_t read_address(const struct section_bytes *hdr, uint64_t at)
{
	uint32_t word = 0;

	read_word(hdr, at, &word);
	return hdr->vaddr + (uint64_t)(int64_t)(int32_t)word;
}

/* The address of the last entry that begins at or before @vaddr; 0 = none. */
static uint64_t find_entry(const struct section_bytes *hdr, uint64_t vaddr)
{
	static const uint8_t form[4] = {1, 0x1b, 0x03, 0x3b};
	uint32_t rows = 0, low = 0;

	if (hdr->size < HDR_TABLE || memcmp(hdr->data, form, sizeof(form)) != 0 ||
	    !read_word(hdr, 8, &rows) || rows > (hdr->size - HDR_TABLE) / ROW_SIZE)
		return 0;
	for (uint32_t high = rows; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (read_address(hdr, HDR_TABLE + (uint64_t)middle * ROW_SIZE) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? read_address(hdr, HDR_TABLE + (uint64_t)(low - 1) * ROW_SIZE + 4) : 0;
}

bool personality_is_absent(Elf *elf, uint64_t vaddr)
{
	struct section_bytes hdr, frame;
	uint32_t back = 0, id = 1;

	if (!find_bytes(elf, ".eh_frame_hdr", &hdr) || !find_bytes(elf, ".eh_frame", &frame))
		return false;
	uint64_t entry = find_entry(&hdr, vaddr), at = entry - frame.vaddr + 4;
	if (!entry || !read_word(&frame, at, &back) || back > at)
		return false;
	/* CIE: length, 0, version, augmentation */
	uint64_t cie = at - back, text = cie + 9;
	if (!read_word(&frame, cie + 4, &id) || id != 0 || text >= frame.size)
		return false;
	const char *letters = (const char *)frame.data + text;
	size_t length = strnlen(letters, frame.size - text);
	return length < frame.size - text && !memchr(letters, 'P', length);
}

/*
 * CFI of one ELF file, through libdw.
 *
 * .eh_frame is tried first: nearly every file has it, and libdw finds a row in it by the table of
 * .eh_frame_hdr. .debug_frame, here or in the file that the build-id names below /usr/lib/debug, is
 * opened only if a row is missing.
 *
 * Files are untrusted. libdw checks what it reads but allocates as many
 * registers as an instruction names, up to gigabytes; so a file's CFI passes
 * through cfi.c before libdw may use it.
 */

#define MAX_GAP (uint64_t)8192 /* bytes of code to read if no symbol is near */
#define WINDOW (uint64_t)8192 /* bytes of code to read at least, and at most */
#define WINDOW_MAX ((uint64_t)64 << 20)
#define WINDOW_BEFORE (uint64_t)4096 /* of these, before what is wanted */
#define WINDOWS 64u

struct function_span {
	uint64_t start, end;
};

/* A part of the file's code. A whole text of 100 MB and more would take as much of our memory. */
struct code_window {
	uint64_t vaddr, size;
	uint8_t *bytes;     /* owned; NULL = nothing read */
};

struct cfi {
	Dwarf_CFI *eh;
	Dwarf *dwarf;       /* of the file itself, for .debug_frame */
	Dwarf *separate;    /* of the separate debug file */
	int separate_fd;
	Dwarf_CFI *debug[2]; /* of dwarf and separate; libdw's */
	bool has_debug;     /* debug[] were searched for */
	bool has_functions; /* the list of functions was built */
	VEC(struct function_span) functions; /* ascending, for code without CFI */
	struct rule_cache rules;
	struct stub_epilogue epilogue;
	struct frame_counts counts;
	struct code_window code[WINDOWS]; /* those read last: callers are in other places */
	unsigned next_window; /* the oldest */
};

static void cfi_free(void *user)
{
	struct cfi *cfi = user;

	if (cfi->eh)
		dwarf_cfi_end(cfi->eh);
	if (cfi->dwarf)
		dwarf_end(cfi->dwarf);
	if (cfi->separate)
		dwarf_end(cfi->separate);
	if (cfi->separate_fd >= 0)
		close(cfi->separate_fd);
	vec_deinit(&cfi->functions);
	rule_cache_deinit(&cfi->rules);
	for (size_t i = 0; i < WINDOWS; i++)
		free(cfi->code[i].bytes);
	free(cfi);
}

static struct cfi *cfi_of(struct elf_file *file)
{
	struct cfi *cfi = file->cfi_user;

	if (cfi)
		return cfi;
	cfi = xcalloc(1, sizeof(*cfi));
	cfi->separate_fd = -1;
	if (cfi_check_eh_frame(file->elf))
		cfi->eh = dwarf_getcfi_elf(file->elf);
	file->cfi_user = cfi;
	file->cfi_user_free = cfi_free;
	return cfi;
}

struct rule_cache *cfi_rule_cache(struct elf_file *file)
{
	return &cfi_of(file)->rules;
}

struct frame_counts *cfi_frame_counts(struct elf_file *file)
{
	return &cfi_of(file)->counts;
}

struct stub_epilogue *cfi_stub_epilogue(struct elf_file *file)
{
	return &cfi_of(file)->epilogue;
}

/* "/usr/lib/debug/.build-id/ab/cdef.debug", or -1. */
static int open_separate(const struct elf_file *file)
{
	char path[160] = "/usr/lib/debug/.build-id/";
	size_t n = strlen(path);

	if (!file->build_id || file->build_id_size < 2 || file->build_id_size > 40)
		return -1;
	for (size_t i = 0; i < file->build_id_size; i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, i == 0 ? "%02x/" : "%02x",
				      file->build_id[i]);
	snprintf(path + n, sizeof(path) - n, ".debug");
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* libdw decompresses all sections of a file that it opens: some 30 ms for the C library's. */
static Dwarf *open_with_frames(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool has_frames = elf && elf_file_section(elf, ".debug_frame", NULL);

	elf_end(elf);
	return has_frames ? dwarf_begin(fd, DWARF_C_READ) : NULL;
}

/* Once. */
static void find_debug_frames(struct cfi *cfi, const struct elf_file *file)
{
	if (cfi->has_debug)
		return;
	cfi->has_debug = true;
	if (elf_file_section(file->elf, ".debug_frame", NULL) && cfi_check_debug_frame(file->elf))
		cfi->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (cfi->dwarf)
		cfi->debug[0] = dwarf_getcfi(cfi->dwarf);
	cfi->separate_fd = open_separate(file);
	if (cfi->separate_fd >= 0)
		cfi->separate = open_with_frames(cfi->separate_fd);
	if (cfi->separate && cfi_check_debug_frame(dwarf_getelf(cfi->separate)))
		cfi->debug[1] = dwarf_getcfi(cfi->separate);
}

int cfi_register(Dwarf_Frame *row, int number, Dwarf_Op memory[3], Dwarf_Op **ops_out,
		 size_t *count_out)
{
	bool is_signal = false;
	int rc = dwarf_frame_register(row, number, memory, ops_out, count_out);
	const Dwarf_Op *op = *ops_out;
	size_t count = *count_out;

	if (rc != 0 || arch_native->return_size || count < 1 || count > 2 ||
	    op[0].atom != DW_OP_call_frame_cfa ||
	    (count == 2 && (op[1].atom != DW_OP_plus_uconst || (int64_t)op[1].number < 0)) ||
	    dwarf_frame_info(row, NULL, NULL, &is_signal) < 0 || is_signal)
		return rc;
	*ops_out = NULL;
	*count_out = 0;
	if (number == arch_native->dwarf_sp) { /* the CFA */
		memory[0] = (Dwarf_Op){.atom = DW_OP_call_frame_cfa};
		memory[1] = (Dwarf_Op){.atom = DW_OP_stack_value};
		*ops_out = memory;
		*count_out = 2;
	}
	return 0;
}

Dwarf_Frame *cfi_find_eh_frame(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);
	Dwarf_Frame *frame = NULL;

	if (file->elf_class != ELFCLASS64 || !cfi->eh ||
	    dwarf_cfi_addrframe(cfi->eh, vaddr, &frame) != 0)
		return NULL;
	return frame;
}

Dwarf_Frame *cfi_find(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);
	Dwarf_Frame *frame = cfi_find_eh_frame(file, vaddr);

	if (frame || file->elf_class != ELFCLASS64)
		return frame;
	find_debug_frames(cfi, file);
	for (size_t i = 0; i < ARRAY_SIZE(cfi->debug); i++)
		if (cfi->debug[i] && dwarf_cfi_addrframe(cfi->debug[i], vaddr, &frame) == 0)
			return frame;
	return NULL;
}

static const struct elf_segment *code_segment(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segment[i];
		if (s->is_exec && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return s;
	}
	return NULL;
}

static bool has_code(const struct code_window *w, uint64_t vaddr, uint64_t size)
{
	return w->bytes && vaddr >= w->vaddr && vaddr - w->vaddr <= w->size &&
	       size <= w->size - (vaddr - w->vaddr);
}

/* Reads @size bytes at @vaddr at least, and what is around them. NULL if the file ends before. */
static const struct code_window *read_code(struct elf_file *file, const struct elf_segment *segment,
					   uint64_t vaddr, uint64_t size)
{
	struct cfi *cfi = cfi_of(file);
	struct code_window *w = &cfi->code[cfi->next_window++ % WINDOWS];
	uint64_t before = MIN(vaddr - segment->vaddr, WINDOW_BEFORE);
	uint64_t left = segment->vaddr + segment->filesz - vaddr;

	free(w->bytes);
	w->vaddr = vaddr - before;
	w->size = before + MIN(left, MIN(MAX(size, WINDOW - before), WINDOW_MAX));
	w->bytes = elf_file_read(file, segment->offset + (w->vaddr - segment->vaddr), w->size);
	return w->bytes ? w : NULL;
}

const uint8_t *cfi_code(struct elf_file *file, uint64_t vaddr, uint64_t want, size_t *size_out)
{
	const struct elf_segment *segment = code_segment(file, vaddr);
	const struct code_window *w = NULL;
	struct cfi *cfi = cfi_of(file);

	if (!segment)
		return NULL;
	want = MIN(want, MIN(segment->vaddr + segment->filesz - vaddr, WINDOW_MAX));
	for (size_t i = 0; i < WINDOWS && !w; i++)
		if (has_code(&cfi->code[i], vaddr, want))
			w = &cfi->code[i];
	if (!w)
		w = read_code(file, segment, vaddr, want);
	if (!w)
		return NULL;
	*size_out = w->size - (vaddr - w->vaddr);
	return w->bytes + (vaddr - w->vaddr);
}

static int add_function(void *ctx, const struct elf_symbol *sym)
{
	struct cfi *cfi = ctx;

	if (sym->is_defined && sym->type == STT_FUNC && sym->vaddr &&
	    sym->vaddr + sym->size >= sym->vaddr)
		*vec_add(&cfi->functions) =
			(struct function_span){sym->vaddr, sym->vaddr + sym->size};
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct function_span *x = a, *y = b;

	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->end > y->end) - (x->end < y->end);
}

/* Once. */
static void read_functions(struct cfi *cfi, struct elf_file *file)
{
	if (cfi->has_functions)
		return;
	cfi->has_functions = true;
	elf_file_each_symbol(file, add_function, cfi);
	vec_sort(&cfi->functions, compare_spans);
}

void cfi_prepare(struct elf_file *file)
{
	struct cfi *cfi = cfi_of(file);

	find_debug_frames(cfi, file);
	read_functions(cfi, file);
}

/* The last function that starts at or before @vaddr, or NULL. */
static const struct function_span *function_before(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);

	read_functions(cfi, file);
	size_t n = vec_search(&cfi->functions, f, f->start <= vaddr);
	return n > 0 ? &cfi->functions.data[n - 1] : NULL;
}

enum cfi_start cfi_code_start(struct elf_file *file, uint64_t vaddr, uint64_t *start_out)
{
	const struct function_span *span = function_before(file, vaddr);
	const struct elf_segment *segment = elf_file_segment(file, vaddr);

	if (!segment)
		return CFI_START_NONE;
	if (span && vaddr < span->end) {
		*start_out = span->start;
		return CFI_START_FUNCTION;
	}
	*start_out = vaddr - MIN(vaddr - segment->vaddr, MAX_GAP);
	if (span && span->end >= *start_out) {
		*start_out = span->end;
		return CFI_START_GAP;
	}
	return CFI_START_SOMEWHERE;
}
