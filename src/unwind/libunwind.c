/*
 * Implements libunwind's callbacks and the two uses of it.
 *
 *	libunwind -> access_reg     the frame at which it starts
 *	          -> access_mem     CFI from the checked file; else the view, then the process
 *	          -> find_proc_info the search table of the module's .eh_frame_hdr
 *
 * libunwind numbers registers as DWARF does on all supported CPUs (checked at set-up).
 */
#include "unwind/frame.h"

#include <dwarf.h>
#include <libunwind-ptrace.h>
#include <stdlib.h>

#include "arch/unwind_code.h"
#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "unwind/cfi.h"

#define MAX_READS 4096   /* words for one frame; the largest CFI program seen took 300 */
#define TABLE_OFFSET 12  /* of the rows in .eh_frame_hdr, as cfi.c requires */
#define ROW_SIZE 8

/* A section that libunwind reads, as bytes of the checked file. */
struct section {
	taddr_t start;
	const uint8_t *data;
	size_t size;
};

struct libunwind {
	const struct arch *arch;
	const struct unwind_ops *ops;
	unw_addr_space_t space;
	const struct stack_view *view;
	const struct frame *frame;  /* at which the cursor started */
	struct section section[2];  /* .eh_frame_hdr and .eh_frame of the last module found */
	unsigned int reads;
	bool is_guess;              /* CFI must not be used */
	bool is_missing;            /* no CFI was found */
};

/* Exported by libunwind for callers with their own tables (perf uses it), but not declared. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *info,
					      int need_unwind_info, void *ctx);

/* ---- rows that are safe to evaluate ---- */

static bool are_plain(const Dwarf_Op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t atom = ops[i].atom;
		if (atom == DW_OP_div || atom == DW_OP_mod || atom == DW_OP_bra ||
		    atom == DW_OP_skip)
			return false;
	}
	return true;
}

static bool is_plain_row(const struct arch *arch, Dwarf_Frame *row)
{
	Dwarf_Op *ops, memory[3];
	size_t count;

	if (dwarf_frame_info(row, NULL, NULL, NULL) != arch->dwarf_pc ||
	    dwarf_frame_cfa(row, &ops, &count) != 0 || !are_plain(ops, count))
		return false;
	for (int i = 0; i < ARCH_DWARF_REGS; i++)
		if (dwarf_frame_register(row, i, memory, &ops, &count) != 0 ||
		    !are_plain(ops, count))
			return false;
	return true;
}

static bool find_section(const struct module *m, const char *name, struct section *out)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_file_section(m->file->elf, name, &header);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (!data || !data->d_buf)
		return false;
	*out = (struct section){m->bias + header.sh_addr, data->d_buf, data->d_size};
	return true;
}

/* Whether libunwind may evaluate the row of @pc in @m. Sets the sections. */
static bool find_row(struct libunwind *l, const struct module *m, taddr_t pc)
{
	Dwarf_Frame *row = m && m->file ? cfi_find_eh_frame(m->file, pc - m->bias) : NULL;
	bool is_plain = row && is_plain_row(l->arch, row);

	free(row);
	return is_plain && find_section(m, ".eh_frame_hdr", &l->section[0]) &&
	       find_section(m, ".eh_frame", &l->section[1]) &&
	       l->section[0].size >= TABLE_OFFSET;
}

/* ---- callbacks ---- */

static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t *info_out,
			  int need_unwind_info, void *ctx)
{
	struct libunwind *l = ctx;
	const struct module *m = l->is_guess ? NULL : l->ops->module(l->ops->ctx, pc);

	if (!find_row(l, m, pc)) {
		l->is_missing = true;
		return -UNW_ENOINFO;
	}
	const struct section *table = &l->section[0];
	size_t rows = (table->size - TABLE_OFFSET) / ROW_SIZE;
	unw_dyn_info_t search = {
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.start_ip = m->start,
		.end_ip = m->end,
		.u.rti = {
			.segbase = table->start,
			.table_data = table->start + TABLE_OFFSET,
			.table_len = rows * ROW_SIZE / sizeof(unw_word_t),
		},
	};
	int ret = UNW_OBJ(dwarf_search_unwind_table)(space, pc, &search, info_out, need_unwind_info,
						     ctx);
	l->is_missing |= ret != 0;
	return ret;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *ctx)
{
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list_out, void *ctx)
{
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int is_write,
		      void *ctx)
{
	struct libunwind *l = ctx;

	if (is_write || ++l->reads > MAX_READS)
		return -UNW_EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(l->section); i++) {
		const struct section *s = &l->section[i];
		uint64_t at = addr - s->start;
		if (at >= s->size)
			continue;
		*value = 0; /* its last word may end after the section */
		memcpy(value, s->data + at, MIN(s->size - at, sizeof(*value)));
		return 0;
	}
	return frame_read_word(l->view, addr, value) == 0 ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int is_write,
		      void *ctx)
{
	struct libunwind *l = ctx;

	if (is_write || reg < 0 || reg >= ARCH_DWARF_REGS || !(l->frame->known >> reg & 1))
		return -UNW_EBADREG;
	*value = reg == l->arch->dwarf_pc ? frame_lookup_pc(l->arch, l->frame) :
					    l->frame->regs.reg[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int is_write,
			void *ctx)
{
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *ctx)
{
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t addr, char *name, size_t size,
			 unw_word_t *offset_out, void *ctx)
{
	return -UNW_ENOINFO;
}

/* ---- use ---- */

struct libunwind *libunwind_new(const struct arch *arch, const struct unwind_ops *ops)
{
	unw_accessors_t callbacks = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct libunwind *l = xcalloc(1, sizeof(*l));

	CHECK(arch->dwarf_pc == UNW_TDEP_IP && arch->dwarf_sp == UNW_TDEP_SP);
	l->arch = arch;
	l->ops = ops;
	l->space = unw_create_addr_space(&callbacks, 0);
	CHECK(l->space);
	/* A cached row would outlive its module. */
	unw_set_caching_policy(l->space, UNW_CACHE_NONE);
	return l;
}

void libunwind_free(struct libunwind *l)
{
	if (!l)
		return;
	unw_destroy_addr_space(l->space);
	free(l);
}

static int start(struct libunwind *l, const struct stack_view *view, const struct frame *frame,
		 unw_cursor_t *cursor_out)
{
	l->view = view;
	l->frame = frame;
	l->reads = 0;
	l->is_missing = false;
	memset(l->section, 0, sizeof(l->section));
	return unw_init_remote(cursor_out, l->space, l);
}

/*
 * Checks a guessed frame: libunwind counts two words for it whatever its size. The caller's stack
 * pointer must be above the saved frame pointer and the return address next to it.
 */
static void correct_sp(const struct arch *arch, unw_cursor_t *cursor, struct frame *caller)
{
	uint64_t *sp = &caller->regs.reg[arch->dwarf_sp];
	unw_save_loc_t saved;

	if (unw_get_save_loc(cursor, arch->dwarf_fp, &saved) == 0 && saved.type == UNW_SLT_MEMORY)
		*sp = MAX(*sp, saved.u.addr + 2 * sizeof(uint64_t));
}

int libunwind_guess(struct libunwind *l, const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = l->arch;
	const uint32_t needed = 1u << arch->dwarf_pc | 1u << arch->dwarf_sp;
	struct frame caller = {0};
	unw_cursor_t cursor;
	unw_word_t value;

	l->is_guess = true;
	if (start(l, view, frame, &cursor) != 0 || unw_step(&cursor) <= 0)
		return -ENODATA;
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		if (unw_get_reg(&cursor, i, &value) != 0)
			continue;
		caller.regs.reg[i] = value;
		caller.known |= 1u << i;
	}
	if ((caller.known & needed) != needed)
		return -ENODATA;
	correct_sp(arch, &cursor, &caller);
	*frame = caller;
	return 0;
}

size_t libunwind_walk(struct libunwind *l, const struct stack_view *view, taddr_t *pcs, size_t max)
{
	const struct frame first = {
		.regs = view->regs, .known = FRAME_KNOWS_ALL, .is_exact = view->is_stopped};
	unw_cursor_t cursor;
	unw_word_t pc;
	size_t count = 0;

	pcs[count++] = frame_lookup_pc(l->arch, &first);
	l->is_guess = false;
	if (start(l, view, &first, &cursor) != 0)
		return count;
	while (count < max) {
		l->reads = 0;
		if (unw_step(&cursor) <= 0 || l->is_missing ||
		    unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0 || unwind_is_end(pc))
			break;
		/* what this says is about the step that led here: from a signal frame */
		pcs[count++] = pc - !(unw_is_signal_frame(&cursor) > 0);
	}
	return count;
}
