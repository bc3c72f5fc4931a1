/*
 * The rule table, and the compiler from CFI rows to rules.
 *
 * Each return address seen so far has one slot of 32 bytes that describes how to leave its frame. A
 * look-up in libdw takes a microsecond, in the table some nanoseconds. The table is in our memory
 * and grows as needed. It may have a copy, slot by slot, in memory that a recorder in the target
 * reads at the same time. A slot's body is written first and its pc last, and its pc never changes
 * except to FORGOTTEN, so a reader sees either a complete rule or none. The program can write to
 * the copy, so we never read it, and with a copy the table does not grow.
 *
 * A rule must not depend on register values: it holds for every visit.
 */
#include "unwind/frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "arch/unwind_code.h"
#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/go_table.h"
#include "base/text.h"
#include "unwind/cfi.h"

#define FIRST_BITS 10
#define ENTRY_SIZE 64 /* bytes; the code at an ELF entry point is shorter in all C libraries */
#define FORGOTTEN UINT64_MAX /* pc of a slot whose code is gone; never the address of code */

void rules_init(struct rules *r, const struct arch *arch, const struct unwind_ops *ops)
{
	*r = (struct rules){.arch = arch, .ops = ops};
	r->table.bits = FIRST_BITS;
	r->table.slot = xcalloc(1u << FIRST_BITS, sizeof(*r->table.slot));
}

void rules_deinit(struct rules *r)
{
	free(r->table.slot);
	vec_deinit(&r->live);
}

/* ---- from a row to a rule ---- */

/* Whether @ops is the memory at CFA + *offset_out. */
static bool is_at_cfa(const Dwarf_Op *ops, size_t count, int64_t *offset_out)
{
	if (count < 1 || count > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (count == 2 && ops[1].atom != DW_OP_plus_uconst)
		return false;
	*offset_out = count == 2 ? (int64_t)ops[1].number : 0;
	return true;
}

/* Whether @op is a register plus an offset. */
static bool is_based(const Dwarf_Op *op, uint64_t *reg_out, int64_t *offset_out)
{
	if (op->atom == DW_OP_bregx) {
		*reg_out = op->number;
		*offset_out = (int64_t)op->number2;
		return true;
	}
	if (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)
		return false;
	*reg_out = op->atom - DW_OP_breg0;
	*offset_out = (int64_t)op->number;
	return true;
}

static bool compile_cfa(const struct arch *arch, Dwarf_Frame *row, struct unwind_rule *rule)
{
	Dwarf_Op *ops;
	size_t count;
	uint64_t reg;
	int64_t offset;

	if (dwarf_frame_cfa(row, &ops, &count) != 0 || count < 1 || count > 2 ||
	    !is_based(&ops[0], &reg, &offset) || offset < INT32_MIN || offset > INT32_MAX)
		return false;
	rule->cfa_offset = (int32_t)offset;
	if (count == 2) {
		rule->kind = RULE_FP_DEREF;
		return reg == arch->dwarf_fp && ops[1].atom == DW_OP_deref;
	}
	if (reg == arch->dwarf_sp) {
		rule->kind = RULE_SP;
		return true;
	}
	for (uint8_t i = 0; i < RULE_SAVED_REGS; i++) {
		if (reg != arch->dwarf_saved[i])
			continue;
		rule->kind = i == 0 ? RULE_FP : RULE_REG;
		rule->reg = i;
		return true;
	}
	return false;
}

/* Where callee-saved register @i is saved; false if a rule cannot express it. */
static bool compile_saved(const struct arch *arch, Dwarf_Frame *row, uint8_t i,
			  struct unwind_rule *rule)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	uint64_t reg;
	int64_t offset;

	if (cfi_register(row, arch->dwarf_saved[i], memory, &ops, &count) != 0)
		return false;
	if (count == 0) /* unchanged, or lost: then no outer frame may need it */
		return true;
	if (rule->kind == RULE_FP_DEREF) {
		/* {CFA pushed by libdw, frame pointer + offset}: see unwind_rule.h */
		if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa ||
		    !is_based(&ops[1], &reg, &offset) || reg != arch->dwarf_fp)
			return false;
	} else if (!is_at_cfa(ops, count, &offset)) {
		return false;
	}
	if (offset % 8 != 0 || offset / 8 < INT16_MIN || offset / 8 > INT16_MAX)
		return false;
	rule->saved |= (typeof(rule->saved))(1u << i);
	rule->slot[i] = (int16_t)(offset / 8);
	return true;
}

/* Where @row has its return address: false if a rule cannot express it. */
static bool compile_return_slot(const Dwarf_Op *ops, size_t count, struct unwind_rule *rule)
{
	int64_t offset;

	if (count == 0)
		return unwind_set_return_slot(rule, RULE_LINK);
	return is_at_cfa(ops, count, &offset) && offset % 8 == 0 &&
	       unwind_set_return_slot(rule, offset / 8);
}

/* False if only the fallback can handle the row. */
static bool compile_row(const struct arch *arch, Dwarf_Frame *row, struct unwind_rule *rule)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	bool is_signal;

	if (dwarf_frame_info(row, NULL, NULL, &is_signal) != arch->dwarf_return || is_signal ||
	    cfi_register(row, arch->dwarf_return, memory, &ops, &count) != 0)
		return false;
	if (count == 0 && ops) {
		rule->kind = RULE_END;
		return true;
	}
	if (!compile_return_slot(ops, count, rule) || !compile_cfa(arch, row, rule))
		return false;
	/* A rule assumes that the caller's stack pointer is the CFA. */
	if (cfi_register(row, arch->dwarf_sp, memory, &ops, &count) != 0 || count != 2 ||
	    ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_stack_value)
		return false;
	for (uint8_t i = 0; i < RULE_SAVED_REGS; i++)
		if (!compile_saved(arch, row, i, rule))
			return false;
	return true;
}

/* Whether a call instruction precedes @vaddr of the file. */
static bool follows_call(struct elf_file *file, uint64_t vaddr)
{
	size_t size;
	const uint8_t *code = vaddr < ARCH_MAX_CALL ? NULL :
						      cfi_code(file, vaddr - ARCH_MAX_CALL,
							       ARCH_MAX_CALL, &size);

	return code && size >= ARCH_MAX_CALL && arch_ends_in_call(code, ARCH_MAX_CALL);
}

/* Whether a function may begin at @vaddr: it is aligned, and not inside of one. */
static bool may_be_entry(struct elf_file *file, uint64_t vaddr)
{
	uint64_t start;

	return vaddr % 16 == 0 &&
	       (cfi_code_start(file, vaddr, &start) != CFI_START_FUNCTION || start == vaddr);
}

#define RETURN_BEFORE 2048u /* bytes before and after a return address, for compile_return */
#define RETURN_AFTER 4096u

/* The rule for the return address @vaddr from what follows it: V8's builtins share prologues. */
static bool compile_return(struct elf_file *file, uint64_t vaddr, struct unwind_rule *rule)
{
	for (uint64_t before = MIN(RETURN_BEFORE, vaddr);; before = 0) {
		size_t size = 0;
		const uint8_t *code = cfi_code(file, vaddr - before, before + RETURN_AFTER, &size);

		if (code && size > before)
			return arch_scan_return(code, MIN(size, before + RETURN_AFTER), before,
						rule) == 0;
		if (!before)
			return false;
	}
}

/* Bytes before an address in which an entry is searched: most functions are short. */
#define ENTRY_NEAR 2048u
#define ENTRY_FAR 8192u
#define ENTRY_FARTHEST 65536u

/*
 * The last evident entry of a function before @vaddr, not before @lowest: *entry_out, and the code
 * from there on, which extends beyond @vaddr.
 */
static const uint8_t *find_entry(struct elf_file *file, uint64_t vaddr, uint64_t lowest,
				 uint64_t *entry_out)
{
	const struct elf_segment *segment = elf_file_segment(file, vaddr);
	const uint32_t far[] = {ENTRY_NEAR, ENTRY_FAR, ENTRY_FARTHEST};
	size_t size, at;

	lowest = segment ? MAX(lowest, segment->vaddr) : vaddr;

	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		uint64_t start = MAX(lowest, vaddr - MIN(vaddr, far[i]));
		const uint8_t *code = cfi_code(file, start, vaddr - start + 1, &size);

		if (code && size > vaddr - start &&
		    arch_find_entry(code, vaddr - start, start, &at)) {
			*entry_out = start + at;
			return code + at;
		}
	}
	return NULL;
}

/* Whether @rule leads from a call to a stack pointer that is aligned as the ABI says. */
static bool is_aligned(const struct unwind_rule *rule)
{
	return rule->kind != RULE_SP || rule->cfa_offset % 16 == 0;
}

/* The rule for @vaddr by the code of its function before it. */
static bool scan_function(struct elf_file *file, uint64_t vaddr, bool is_exact,
			  struct unwind_rule *rule)
{
	uint64_t start, entry;
	size_t size;
	enum cfi_start kind = cfi_code_start(file, vaddr, &start);
	const uint8_t *code = NULL;

	if (kind == CFI_START_NONE)
		return false;
	if (kind != CFI_START_FUNCTION)
		code = find_entry(file, vaddr, kind == CFI_START_GAP ? start : 0, &entry);
	if (code && arch_scan_function(code, vaddr - entry, ARCH_SCAN_ALIGNED, rule) == 0 &&
	    (is_exact || is_aligned(rule)))
		return true;
	code = cfi_code(file, start, vaddr - start + 1, &size);
	return code && vaddr - start < size &&
	       arch_scan_function(code, vaddr - start,
				  kind == CFI_START_FUNCTION ? ARCH_SCAN_ONE :
				  kind == CFI_START_GAP	     ? ARCH_SCAN_MANY :
							       ARCH_SCAN_UNSYNCED,
				  rule) == 0;
}

/* Compiles a rule by reading the function's instructions, for code without CFI. */
static bool compile_code(struct elf_file *file, uint64_t vaddr, bool is_exact,
			 struct unwind_rule *rule)
{
	size_t size;
	const uint8_t *code = cfi_code(file, vaddr + !is_exact, ARCH_SIGRETURN_SIZE, &size);

	if (!code || arch_is_sigreturn(code, size))
		return false;
	if (!is_exact && !follows_call(file, vaddr + 1)) {
		/*
		 * Detects the end of a stack whose bottom holds a function's entry instead of a
		 * return address (makecontext). A stripped file has no name for it, but entries are
		 * aligned.
		 */
		rule->kind = RULE_END;
		return may_be_entry(file, vaddr + 1);
	}
	if (vaddr >= file->entry && vaddr - file->entry < ENTRY_SIZE) {
		rule->kind =
			RULE_END; /* above the program's or ld.so's first frame is argc */
		return true;
	}
	if (scan_function(file, vaddr, is_exact, rule))
		return true;
	return !is_exact && compile_return(file, vaddr + 1, rule);
}

/*
 * A call on another stack than its caller's, which no CFI describes: Go's runtime.asmcgocall. The
 * code of other files is not read.
 */
static bool compile_switch(struct elf_file *file, uint64_t vaddr, bool is_exact,
			   struct unwind_rule *rule)
{
	uint64_t start = vaddr + 1 - MIN(vaddr + 1, (uint64_t)ARCH_SWITCH_BEFORE);
	size_t size;

	if (is_exact || !go_table_of(file))
		return false;
	const uint8_t *code =
		cfi_code(file, start, ARCH_SWITCH_BEFORE + ARCH_SWITCH_AFTER, &size);

	return code && arch_returns_to_other_stack(code, vaddr + 1 - start, size, rule);
}

/* By the table that a Go program has for its own tracebacks. */
static bool compile_go(struct elf_file *file, uint64_t vaddr, bool is_exact,
		       struct unwind_rule *rule)
{
	/* The rule counts from the return address that a call has pushed. */
	const struct go_table *t = arch_native->return_size ? go_table_of(file) : NULL;
	struct go_function f;
	uint32_t bytes = 0;
	bool is_found = t && (is_exact ? go_table_find(t, vaddr, &f) :
					 go_table_find_caller(t, vaddr, &f));

	if (!is_found || (!f.is_outermost && !f.sets_sp && f.entry <= vaddr &&
			  !go_table_frame(t, &f, vaddr, &bytes)))
		return false;
	*rule = (struct unwind_rule){.kind = f.is_outermost ? RULE_END :
					     f.sets_sp	? RULE_LOST : RULE_SP,
				     .cfa_offset = (int32_t)bytes + 8};
	return true;
}

/*
 * The function with which a greenlet begins, by its symbol. Greenlets take each other's place on
 * the stack of their thread, so what follows its frame in memory belongs to whichever runs there.
 */
struct greenlet_root {
	uint64_t vaddr;
	bool is_found;
};

static int find_root(void *ctx, const struct elf_symbol *sym)
{
	static const char name[] = "_ZN8greenlet12UserGreenlet15inner_bootstrap";
	struct greenlet_root *root = ctx;

	root->is_found = elf_symbol_is_function(sym) && root->vaddr >= sym->vaddr &&
			 root->vaddr - sym->vaddr < sym->size &&
			 strncmp(sym->name, name, sizeof(name) - 1) == 0;
	return root->is_found;
}

static bool compile_greenlet(struct elf_file *file, uint64_t vaddr, struct unwind_rule *rule)
{
	struct greenlet_root root = {.vaddr = vaddr};

	if (!strstr(text_base_name(file->path), "greenlet"))
		return false;
	elf_file_each_symbol(file, find_root, &root);
	if (root.is_found)
		*rule = (struct unwind_rule){.kind = RULE_END};
	return root.is_found;
}

static struct cached_rule compile_anew(const struct rules *r, struct elf_file *file, uint64_t vaddr,
				      bool is_exact)
{
	struct cached_rule k = {.vaddr = vaddr, .is_exact = is_exact};

	if (compile_switch(file, vaddr, is_exact, &k.rule) ||
	    compile_go(file, vaddr, is_exact, &k.rule) || compile_greenlet(file, vaddr, &k.rule))
		return k;

	Dwarf_Frame *row = cfi_find(file, vaddr);
	bool is_done = row ? compile_row(r->arch, row, &k.rule) :
			     compile_code(file, vaddr, is_exact, &k.rule);

	free(row);
	if (!is_done)
		k.rule = (struct unwind_rule){.kind = RULE_SLOW};
	k.is_guess = !row && is_done && k.rule.kind != RULE_END;
	return k;
}

static void count_frame(struct elf_file *file, const struct unwind_rule *rule)
{
	struct frame_counts *counts = cfi_frame_counts(file);

	if (rule_is_framed(rule))
		counts->framed++;
	else
		counts->others++;
}

bool rules_compile(const struct rules *r, taddr_t pc, bool is_exact, struct unwind_rule *rule_out)
{
	taddr_t lookup_pc = pc - !is_exact;
	const struct module *module = r->ops->module(r->ops->ctx, lookup_pc);
	struct cached_rule k = {.rule.kind = RULE_SLOW};

	if (module && module->file) {
		struct rule_cache *all = cfi_rule_cache(module->file);
		uint64_t vaddr = lookup_pc - module->bias;
		const struct cached_rule *known = rule_cache_find(all, vaddr, is_exact);

		k = known ? *known : compile_anew(r, module->file, vaddr, is_exact);
		if (!known)
			rule_cache_add(all, &k);
		if (!known && k.is_guess)
			count_frame(module->file, &k.rule);
	}
	*rule_out = k.rule;
	rule_out->pc = pc;
	rule_out->flags = k.is_guess ? RULE_GUESSED : 0;
	return k.is_guess;
}

bool rules_compile_return(const struct rules *r, taddr_t pc, struct unwind_rule *rule_out)
{
	const struct module *module = r->ops->module(r->ops->ctx, pc - 1);
	struct unwind_rule rule = {.pc = pc, .flags = RULE_GUESSED};

	if (!module || !module->file || !compile_return(module->file, pc - module->bias, &rule))
		return false;
	*rule_out = rule;
	return true;
}

/* ---- the table ---- */

static struct unwind_rule *free_slot(struct unwind_rule *slot, uint32_t bits, uint64_t pc)
{
	uint32_t mask = (1u << bits) - 1, i = unwind_rule_hash(pc, bits);

	while (slot[i].pc != 0)
		i = (i + 1) & mask;
	return &slot[i];
}

/* Copies slot @i of the table. */
static void share(const struct rules *r, size_t i)
{
	struct unwind_rule body = r->table.slot[i];

	if (!r->shared)
		return;
	body.pc = 0;
	r->shared[i] = body;
	__atomic_store_n(&r->shared[i].pc, r->table.slot[i].pc, __ATOMIC_RELEASE);
}

/* Rebuilds the table with 1 << @bits slots, without forgotten ones. */
static void resize_table(struct rules *r, uint32_t bits)
{
	struct unwind_rule *to = xcalloc((size_t)1 << bits, sizeof(*to));
	size_t count = MIN(r->live.count, ((size_t)1 << bits) - 1);

	for (size_t i = 0; i < count; i++) {
		const struct unwind_rule *from = &r->table.slot[r->live.data[i]];
		struct unwind_rule *slot = free_slot(to, bits, from->pc);
		*slot = *from;
		r->live.data[i] = (uint32_t)(slot - to);
	}
	free(r->table.slot);
	r->live.count = count;
	r->table = (struct unwind_rule_table){.slot = to, .bits = bits, .used = (uint32_t)count};
}

static bool is_filled(const struct rules *r)
{
	return r->table.used >= (3u << r->table.bits) / 4;
}

static void make_room(struct rules *r)
{
	if (!is_filled(r))
		return;
	if (!r->shared) {
		resize_table(r, r->table.bits + 1);
	} else if (r->on_full && !r->is_full_reported) {
		r->is_full_reported = true;
		r->on_full(r->on_full_ctx);
	}
}

const struct unwind_rule *rules_enter(struct rules *r, const struct unwind_rule *rule)
{
	struct unwind_rule *slot;

	r->compiled++;
	r->has_switch |= rule->kind == RULE_SWITCH;
	make_room(r);
	/*
	 * Addresses outside of modules and in changing code are not entered: rules_forget would not
	 * be called for them. The last empty slot must stay, since look-ups end there.
	 */
	if (rule->pc == 0 || rule->pc == FORGOTTEN || r->table.used + 1 >= 1u << r->table.bits ||
	    (rule->kind == RULE_SLOW && !r->ops->module(r->ops->ctx, rule->pc - 1))) {
		r->spare = *rule;
		return &r->spare;
	}
	slot = free_slot(r->table.slot, r->table.bits, rule->pc);
	*slot = *rule;
	share(r, (size_t)(slot - r->table.slot));
	*vec_add(&r->live) = (uint32_t)(slot - r->table.slot);
	r->table.used++;
	return slot;
}

/* Most slots of a large table were never used: skip them quickly. */
void rules_forget(struct rules *r, taddr_t start, taddr_t end)
{
	for (size_t i = r->live.count; i-- > 0;) {
		uint32_t index = r->live.data[i];
		struct unwind_rule *slot = &r->table.slot[index];
		/* A call at the very end of a range returns to the address after it. */
		if (slot->pc < start || slot->pc > end)
			continue;
		slot->kind = RULE_NONE;
		slot->pc = FORGOTTEN;
		/* The body stays: a reader may just have found the slot. */
		if (r->shared) {
			__atomic_store_n(&r->shared[index].kind, RULE_NONE, __ATOMIC_RELEASE);
			__atomic_store_n(&r->shared[index].pc, FORGOTTEN, __ATOMIC_RELEASE);
		}
		vec_take_swap(&r->live, i);
	}
}

void rules_set_memory(struct rules *r, struct unwind_rule *memory, uint32_t bits)
{
	r->shared = memory;
	r->is_full_reported = false;
	if (!memory)
		return;
	resize_table(r, bits);
	for (size_t i = 0; i < r->live.count; i++)
		share(r, r->live.data[i]);
}
