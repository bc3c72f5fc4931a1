/*
 * Implements libunwind's callbacks.
 *
 *	libunwind -> access_reg     the registers of the view
 *	          -> access_mem     CFI from the checked file; else libunwind-ptrace
 *	          -> find_proc_info libunwind-ptrace, if the row may be evaluated
 *
 * libunwind numbers registers as DWARF does on all supported CPUs (checked at set-up).
 */
#include "unwind/frame.h"

#include <dwarf.h>
#include <libunwind-ptrace.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "unwind/cfi.h"

#define MAX_READS 4096   /* words for one frame; the largest CFI program seen took 300 */

/* A section that libunwind reads, as bytes of the checked file. */
struct section {
	taddr_t start;
	const uint8_t *data;
	size_t size;
};

struct libunwind {
	const struct arch *arch;
	const struct unwind_ops *ops;
	unw_addr_space_t space;     /* with the callbacks below */
	unw_addr_space_t process;   /* with those of libunwind-ptrace */
	void *upt;                  /* what that knows about @tid; NULL = nothing yet */
	pid_t tid;
	const struct stack_view *view;
	struct section section[2];  /* .eh_frame_hdr and .eh_frame of the last module found */
	unsigned int reads;
	bool is_missing;            /* no CFI was found */
};

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

	if (dwarf_frame_info(row, NULL, NULL, NULL) != arch->dwarf_return ||
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
	       find_section(m, ".eh_frame", &l->section[1]);
}

/* ---- callbacks ---- */

static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t *info_out,
			  int need_unwind_info, void *ctx)
{
	struct libunwind *l = ctx;
	int ret = find_row(l, l->ops->module(l->ops->ctx, pc), pc) ?
		_UPT_find_proc_info(l->process, pc, info_out, need_unwind_info, l->upt) :
		-UNW_ENOINFO;

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
	return _UPT_access_mem(l->process, addr, value, 0, l->upt);
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int is_write,
		      void *ctx)
{
	struct libunwind *l = ctx;

	if (is_write || reg < 0 || reg >= ARCH_DWARF_REGS)
		return -UNW_EBADREG;
	*value = l->view->regs.reg[reg] - (reg == l->arch->dwarf_pc && !l->view->is_stopped);
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

	CHECK(arch->dwarf_return == UNW_TDEP_IP && arch->dwarf_sp == UNW_TDEP_SP);
	l->arch = arch;
	l->ops = ops;
	l->space = unw_create_addr_space(&callbacks, 0);
	l->process = unw_create_addr_space(&_UPT_accessors, 0);
	CHECK(l->space && l->process);
	/* A cached row would outlive its module. */
	unw_set_caching_policy(l->space, UNW_CACHE_NONE);
	unw_set_caching_policy(l->process, UNW_CACHE_NONE);
	return l;
}

static void forget_thread(struct libunwind *l)
{
	if (l->upt)
		_UPT_destroy(l->upt);
	l->upt = NULL;
}

void libunwind_free(struct libunwind *l)
{
	if (!l)
		return;
	forget_thread(l);
	unw_destroy_addr_space(l->space);
	unw_destroy_addr_space(l->process);
	free(l);
}

/* Whether @pc is in code of ptmem, whose frames the other walk hides. */
static bool is_own(const struct libunwind *l, taddr_t pc, bool is_exact)
{
	struct own_code own;

	return l->ops->own &&
	       l->ops->own(l->ops->ctx, &(struct own_place){pc, is_exact}, &own);
}

size_t libunwind_walk(struct libunwind *l, const struct stack_view *view, taddr_t *pcs, size_t max)
{
	unw_cursor_t cursor;
	unw_word_t pc = view->regs.reg[l->arch->dwarf_pc];
	size_t count = 0;

	if (l->tid != view->stopped)
		forget_thread(l);
	l->tid = view->stopped;
	if (!l->upt)
		l->upt = _UPT_create(l->tid);
	l->view = view;
	l->is_missing = false;
	memset(l->section, 0, sizeof(l->section));
	if (!l->upt || is_own(l, pc, view->is_stopped) ||
	    unw_init_remote(&cursor, l->space, l) != 0)
		return 0;
	pcs[count++] = pc - !view->is_stopped;
	while (count < max) {
		bool is_left_exact = l->arch->libunwind_names_frame &&
				     unw_is_signal_frame(&cursor) > 0;

		l->reads = 0;
		if (unw_step(&cursor) <= 0 || l->is_missing ||
		    unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0 || unwind_is_end(pc))
			break;
		/* whether the step that led here was from a signal frame */
		bool is_exact = l->arch->libunwind_names_frame ? is_left_exact :
								 unw_is_signal_frame(&cursor) > 0;
		if (is_own(l, pc, is_exact))
			break;
		pcs[count++] = pc - !is_exact;
	}
	return count;
}
