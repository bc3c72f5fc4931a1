/*
 * The CPU, as data and a few functions. Nothing outside arch/ names a register
 * or an instruction; a second CPU is one new directory and one more const object.
 *
 * Registers of a stopped thread travel as struct arch_regs, the words of the
 * kernel's NT_PRSTATUS set in the kernel's order; struct arch says which word is
 * which. The unwinder has its own view, struct arch_unwind_regs, numbered as
 * DWARF numbers them.
 */
#ifndef PTMEM_ARCH_ARCH_H
#define PTMEM_ARCH_ARCH_H

#include <sys/types.h>

#include "base/types.h"

#define ARCH_REG_WORDS 27   /* words of the largest NT_PRSTATUS set */
#define ARCH_DWARF_REGS 17  /* DWARF columns that unwinding needs; the last is the pc */
#define ARCH_MAX_INSN 16    /* longest instruction, bytes */
#define ARCH_ADDRESS_BITS 47 /* of addresses in user space */

struct arch_regs {
	uint64_t word[ARCH_REG_WORDS];
};

struct arch_unwind_regs {
	uint64_t reg[ARCH_DWARF_REGS]; /* by DWARF number */
};

/* Code being moved: what is requested, and the result. */
struct arch_move {
	const uint8_t *code; /* bytes read at from */
	size_t code_size;
	taddr_t from, to;
	size_t min_bytes;    /* displace at least these */
	bool refuse_call;    /* a call among the displaced instructions is an error */
	uint8_t *out;
	size_t out_size;
	/* results */
	size_t moved, size;  /* bytes displaced at from, bytes written to out */
	bool pushes_return;  /* as in struct arch_stub */
	const char *why;     /* of -ENOTSUP: a static string */
};

/* The code that a stopped thread is sent through instead of a probed function. */
struct arch_stub {
	taddr_t call;    /* calls the moved instructions, then traps at call_trap, then returns */
	taddr_t trap;    /* address of the trap that reports the return */
	taddr_t jump;    /* the moved instructions; then back into the function */
	uint32_t size;   /* bytes of the whole stub */
	/* where to write the trap (or later a jump): the entry, or after an endbr64 */
	taddr_t patch;
	uint32_t moved;  /* bytes displaced at patch; 5 or more = a jump fits there */
	/* the stub's return address is at the entry's stack pointer minus this */
	uint8_t return_below;
	uint8_t trap_below;   /* at the trap the stack pointer is the entry's minus this */
	/* the moved code pushes a return address by hand: not under a shadow stack */
	bool pushes_return;
};

/* Bytes of a function. */
struct arch_code {
	const uint8_t *bytes;
	size_t size;
	taddr_t at;              /* where they stand */
	const uint32_t *entry;   /* offsets where code from elsewhere enters, besides the start */
	size_t entry_count;
};

/* What a register or a word of the stack holds, as far as a function's code tells. */
enum arch_value_kind {
	ARCH_VALUE_UNKNOWN,
	ARCH_VALUE_CONSTANT,
	ARCH_VALUE_REGISTER, /* what that one held at the function's start */
	/* what the word at that distance from the stack pointer held then: from the caller */
	ARCH_VALUE_STACK,
	ARCH_VALUE_ADDRESS,  /* the stack pointer at that time, and that many bytes more */
};

struct arch_value {
	uint8_t kind;     /* enum arch_value_kind */
	/* the constant's lower half; the register, as the CPU's directory numbers them; bytes */
	int32_t number;
};

/* A system call instruction. */
#define ARCH_SYSCALL_ANY (-1)
struct arch_syscall {
	uint32_t offset;  /* in its function */
	/* that it always calls by; ARCH_SYSCALL_ANY: not the same always, or not known */
	int32_t number;
	/* that it calls by: a constant, or what the caller brings, or unknown */
	struct arch_value value;
};

/* What the instructions of a function have to do with a range of addresses. */
enum arch_reference {
	ARCH_REFERS_BRANCH = 1,  /* direct branches or calls to its start */
	ARCH_REFERS_COMPARE = 2, /* it, or what it holds, is compared and no more */
	/* anything else: its address is taken; it is read; run into from before it */
	ARCH_REFERS_OTHER = 4,
};

/*
 * Where an argument of a probe in the text is (.note.stapsdt): a constant, a
 * register or a word of memory, as the compiler wrote it down.
 */
enum arch_operand_kind { OPERAND_CONSTANT = 1, OPERAND_REGISTER, OPERAND_MEMORY };

#define ARCH_NO_REG 0xff

struct arch_operand {
	uint8_t kind;         /* enum arch_operand_kind */
	uint8_t size;         /* of the value, bytes: 1, 2, 4, 8 */
	bool is_signed;
	uint8_t base, index;  /* words of arch_regs, or ARCH_NO_REG; of a register: base */
	uint8_t scale;        /* of the index */
	uint8_t shift;        /* of a register: the value begins at this bit */
	int64_t value;        /* the constant; of memory: added to base and index */
};

struct arch {
	const char *name;
	uint32_t audit_arch;                 /* as seccomp filters see it */
	uint16_t elf_machine;
	uint8_t elf_class;
	/* type of the relocation that adds where the object is */
	uint32_t elf_relative;
	/* indexes into arch_regs.word */
	uint8_t pc, sp, fp, ret, syscall_nr, syscall_ret, arg[6], syscall_arg[6];
	uint8_t thread_pointer;
	uint16_t vector_note;                /* NT_* of the set that holds the vector registers */
	uint8_t red_zone;                    /* bytes below sp that code may use */
	uint8_t return_size;                 /* bytes that a call pushes and a return pops */
	uint8_t dwarf_word[ARCH_DWARF_REGS]; /* DWARF number -> index into arch_regs.word */
	uint8_t dwarf_sp, dwarf_fp, dwarf_pc;
	/* DWARF number -> number among perf's sampled registers */
	uint8_t dwarf_perf[ARCH_DWARF_REGS];
	/* RULE_SAVED_REGS: DWARF numbers, frame pointer first */
	uint8_t dwarf_saved[6];
	/*
	 * The frame of a stub (struct arch_stub) as CFI would describe it: its CFA is the stack
	 * pointer plus the offset, and it holds at most one callee-saved register, in that word
	 * from the CFA
	 */
	uint8_t stub_cfa_offset;
	int8_t stub_saved_slot;
	uint8_t trap[4];                     /* breakpoint instruction */
	uint8_t trap_size;
	uint8_t trap_pc_offset;              /* pc after the trap = its address + this */
	/* index of the word with the flag that makes a CPU step */
	unsigned flags;
	uint64_t step_flag;
	uint8_t syscall_insn[4];
	uint8_t syscall_insn_size;
	/* system calls that a mere stop interrupts, signal(7); ended by -1 */
	const long *stop_interrupts;
	/* the ptrace request that writes one word of arch_regs, at its offset; 0 = there is none */
	int set_word;
	uint8_t return_insn;                 /* one byte: return */
	uint8_t nop_insn;                    /* one byte: no operation */
	uint8_t jump_size;                   /* bytes of the jump that relocate appends */
	/* an instruction without effect that a jump fits into */
	uint8_t long_nop[8];
	uint8_t long_nop_size;
	/*
	 * valgrind.h's marker of a client request: code
	 * without effect, none of which does a thing alone
	 */
	uint8_t marker[24];
	uint8_t marker_size;
	/* words: the address of the request; its default and result */
	uint8_t request_arg, request_result;

	/*
	 * Moves the instructions that hold the first min_bytes bytes at @m->from to @m->to: out
	 * receives them and the jump back after them. -ENOTSUP when an instruction is not on the
	 * list of those known to be safe.
	 */
	int (*relocate)(struct arch_move *m);

	/*
	 * Assembles the stub of tier 1 for the function at @m->from, to be placed at @m->to; it
	 * decides what to displace. -ENOTSUP as relocate.
	 */
	int (*make_stub)(struct arch_move *m, struct arch_stub *stub_out);

	/*
	 * Finds the system call instructions of a function, in order. Returns how many; at
	 * most @max are written (none: it is cheap). -EILSEQ when bytes after what does not decode
	 * look like one.
	 */
	ssize_t (*find_syscalls)(const struct arch_code *code, struct arch_syscall *out,
				 size_t max);

	/*
	 * Of @code that does not decode from its start: whether the bytes at @offset, which look
	 * like a system call instruction, are likely one. Code that is read from a wrong start soon
	 * falls into step with the right one (table look-ups and texts do not), so that most ways
	 * to read it lead there.
	 */
	bool (*is_likely_syscall)(const struct arch_code *code, size_t offset);

	/*
	 * Calls @fn for the target of each direct branch or call that leaves @code. -EILSEQ as
	 * find_passed.
	 */
	int (*each_branch_out)(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			       void *ctx);

	/*
	 * What @code passes on where it calls or jumps to @target: for each of these instructions,
	 * in order, what @wanted of that function is, as known from @code. Returns how many (at
	 * most @max are written), -EILSEQ when @code does not decode to its end.
	 */
	ssize_t (*find_passed)(const struct arch_code *code, taddr_t target,
			       struct arch_value wanted,
			       struct arch_value *out, size_t max);

	/*
	 * Calls @fn for the address of each byte of @code at which, whatever it is part of, a
	 * branch to [@start, @end) or an operand with an address in it may begin: many that are
	 * none, but none is left out.
	 */
	void (*each_hint)(const struct arch_code *code, taddr_t start, taddr_t end,
			  void (*fn)(void *ctx, taddr_t at), void *ctx);

	/*
	 * The enum arch_reference of all instructions of @code at @from or after it to
	 * [@start, @end), which may be code itself; -EILSEQ as find_passed.
	 */
	int (*refers)(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end);

	/*
	 * Assembles code for @at that does what the system call instruction at @from
	 * does, and continues after it: the instruction first. Returns its size, 0: out of reach.
	 */
	size_t (*make_syscall_stub)(taddr_t from, taddr_t at, uint8_t *out, size_t out_size);

	/*
	 * Reads one argument of a note, as "-4@8(%base)": 0; -EINVAL when it is none, -ENOTSUP when
	 * its value cannot be had from general registers and memory. *out is untouched then.
	 */
	int (*parse_operand)(const char *text, size_t size, struct arch_operand *out);

	/*
	 * Whether a branch in the function that begins with @code (@code_size bytes, at address
	 * @at) leads into [@start + 1, @start + @size).
	 */
	bool (*is_entered)(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
			   size_t size);
};

/* The CPU that this ptmem was built for. */
extern const struct arch *const arch_native;

/* The unwinder's registers from the kernel's. */
void arch_unwind_regs(const struct arch *arch, const struct arch_regs *regs,
		      struct arch_unwind_regs *out);

#endif
