/*
 * The CPU, as data and a few functions. No code outside arch/ refers to a register or an
 * instruction; a second CPU takes one new directory and one more const object.
 *
 * Registers of a stopped thread are passed as struct arch_regs, the words of the kernel's
 * NT_PRSTATUS set in the kernel's order; struct arch defines their meaning. The unwinder has its
 * own view, struct arch_unwind_regs, in DWARF numbering. arch_cpu.h has the sizes of both.
 */
#ifndef PTMEM_ARCH_ARCH_H
#define PTMEM_ARCH_ARCH_H

#include <sys/types.h>

#include "arch/arch_cpu.h"
#include "base/types.h"

struct arch_regs {
	uint64_t word[ARCH_REG_WORDS];
};

struct arch_unwind_regs {
	uint64_t reg[ARCH_DWARF_REGS]; /* by DWARF number */
};

/* Code to be moved: the request, and the result. */
struct arch_move {
	const uint8_t *code; /* the bytes at from */
	size_t code_size;
	taddr_t from, to;
	size_t min_bytes;    /* displace at least these */
	bool refuse_call;    /* fail if a call would be displaced */
	bool is_inside;      /* the code is inside of a function, whose frame is there */
	uint8_t *out;
	size_t out_size;
	/* results */
	size_t moved, size;  /* bytes displaced at from, bytes written to out */
	bool pushes_return;  /* as in struct arch_stub */
	const char *why;     /* for -ENOTSUP: a static string */
};

/* The code through which a stopped thread is sent instead of a probed function. */
struct arch_stub {
	taddr_t call;    /* calls the moved instructions, then traps at call_trap, then returns */
	taddr_t trap;    /* address of the trap that reports the return */
	taddr_t jump;    /* the moved instructions, then a jump back into the function */
	uint32_t size;   /* size of the stub, bytes */
	/* where to write the trap (or later a jump): at the entry, or after an endbr64 */
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
	taddr_t at;              /* address of the bytes */
	const uint32_t *entry;   /* offsets that other code branches to, besides the start */
	size_t entry_count;
};

/* What is known about the value of a register or a word of the stack. */
enum arch_value_kind {
	ARCH_VALUE_UNKNOWN,
	ARCH_VALUE_CONSTANT,
	ARCH_VALUE_REGISTER, /* the initial value of a register at the function's start */
	/* the initial value of the word at that distance from the stack pointer: the caller's */
	ARCH_VALUE_STACK,
	ARCH_VALUE_ADDRESS,  /* the stack pointer at the start plus a constant */
};

struct arch_value {
	uint8_t kind;     /* enum arch_value_kind */
	/* lower half of the constant; the register, in the CPU directory's numbering; bytes */
	int32_t number;
};

/* A system call instruction. */
#define ARCH_SYSCALL_ANY (-1)
struct arch_syscall {
	uint32_t offset;  /* offset in its function */
	/* its number; ARCH_SYSCALL_ANY: varies or is unknown */
	int32_t number;
	/* its number as a value: a constant, the caller's value, or unknown */
	struct arch_value value;
};

/* How the instructions of a function refer to a range of addresses. */
enum arch_reference {
	ARCH_REFERS_BRANCH = 1,  /* direct branches or calls to its start */
	ARCH_REFERS_COMPARE = 2, /* it, or its contents, is only compared */
	/* anything else: its address is taken, it is read, or preceding code runs into it */
	ARCH_REFERS_OTHER = 4,
};

/* What an instruction does, for analyses that look for known functions in code without symbols. */
enum arch_fact_kind {
	ARCH_FACT_OTHER,   /* none of these */
	ARCH_FACT_CALL,    /* calls value */
	ARCH_FACT_JUMP,    /* always jumps to value */
	ARCH_FACT_BRANCH,  /* may jump to value */
	ARCH_FACT_VALUE,   /* value is a constant, or an address that is taken or accessed */
	ARCH_FACT_STORE,   /* stores the byte value, at this offset from a pointer in a register */
	ARCH_FACT_PRODUCT, /* multiplies two registers: 64 bits */
	ARCH_FACT_STOP,    /* an instruction by which a program kills itself */
	ARCH_FACT_PADDING, /* does nothing */
};

struct arch_fact {
	uint8_t kind;      /* enum arch_fact_kind */
	int32_t offset;    /* ARCH_FACT_STORE */
	taddr_t at;
	uint64_t value;
};

/*
 * The place of a probe's argument (.note.stapsdt): a constant, a register or a word of memory, as
 * recorded by the compiler.
 */
enum arch_operand_kind { OPERAND_CONSTANT = 1, OPERAND_REGISTER, OPERAND_MEMORY };

#define ARCH_NO_REG 0xff

struct arch_operand {
	uint8_t kind;         /* enum arch_operand_kind */
	uint8_t size;         /* size of the value, bytes: 1, 2, 4, 8 */
	bool is_signed;
	uint8_t base, index;  /* word of arch_regs, or ARCH_NO_REG; for memory: base */
	uint8_t scale;        /* index register */
	uint8_t shift;        /* for a register: the first bit of the value */
	int64_t value;        /* the constant; for memory: added to base and index */
};

/* How long a system call waits at most. */
enum arch_timeout {
	TIMEOUT_NEVER,
	TIMEOUT_MS,      /* argument time_arg is an int; negative = never */
	TIMEOUT_POINTER, /* argument time_arg leads to it; 0 = never */
	TIMEOUT_HIDDEN,  /* no argument has it */
};

/*
 * A system call that fails with EINTR after a mere stop, signal(7), and does nothing then, so that
 * it can be repeated. Arguments are counted from 1 on; 0 = it has none.
 */
struct arch_stopped_call {
	long nr;
	enum arch_timeout timeout;
	uint8_t time_arg;
	uint8_t mask_arg; /* leads to a signal mask; 0 there = none */
};

struct arch {
	const char *name;
	uint32_t audit_arch;                 /* for seccomp filters */
	uint16_t elf_machine;
	uint8_t elf_class;
	/* type of the relocation that adds the object's base */
	uint32_t elf_relative;
	/* indexes into arch_regs.word */
	uint8_t pc, sp, fp, ret, arg[6], syscall_arg[6];
	/*
	 * the system call that the thread is in, -1 if none; its result; and where the instruction
	 * takes the number from
	 */
	uint8_t syscall_nr, syscall_ret, syscall_insn_nr;
	/* words of arch_regs that are not in NT_PRSTATUS; note 0 = none */
	struct {
		uint16_t note;               /* NT_* of the set that consists of it */
		uint8_t word;                /* signed, if smaller than a word */
		uint8_t size;                /* bytes */
		bool is_written;             /* with the other registers */
	} more_words[2];
	uint8_t thread_pointer;
	/* from where it points: a pointer to the vector of the thread's TLS blocks */
	int8_t thread_vector;
	uint16_t vector_note;                /* NT_* of the set with the vector registers */
	uint8_t red_zone;                    /* bytes below sp that code may use */
	/*
	 * bytes that a call pushes and a return pops; 0: a call leaves the return address in the
	 * word `link`
	 */
	uint8_t return_size;
	uint8_t link;
	uint8_t dwarf_word[ARCH_DWARF_REGS]; /* DWARF number -> index into arch_regs.word */
	uint8_t dwarf_sp, dwarf_fp, dwarf_pc;
	uint8_t dwarf_return;                /* DWARF number of the return address in CFI */
	/* DWARF number -> number among perf's sampled registers */
	uint8_t dwarf_perf[ARCH_DWARF_REGS];
	/* RULE_SAVED_REGS: DWARF numbers, frame pointer first */
	uint8_t dwarf_saved[RULE_SAVED_REGS];
	/*
	 * The frame of a stub (struct arch_stub) in terms of CFI: its CFA is the stack pointer plus
	 * the offset, and at most one callee-saved register is saved, in that word from the CFA
	 */
	uint8_t stub_cfa_offset;
	int8_t stub_saved_slot;
	uint8_t trap[4];                     /* breakpoint instruction */
	uint8_t trap_size;
	uint8_t trap_pc_offset;              /* pc at its stop = its address + this */
	int trap_code;                       /* si_code of its SIGTRAP */
	/* index of the word with the single-step flag */
	unsigned flags;
	uint64_t step_flag;
	uint8_t syscall_insn[4];
	uint8_t syscall_insn_size;
	const struct arch_stopped_call *stopped_calls; /* terminated by the number -1 */
	/* ptrace request that writes one word of arch_regs, at its offset; 0 = none */
	int set_word;
	/* clock sources of Linux: the counter of arch_ticks, and those of hypervisors that read it;
	 * terminated by NULL */
	const char *const *ticks_clocksources;
	uint8_t nop_insn[4];                 /* no-op, as large as the trap */
	uint8_t jump_size;                   /* bytes of the jump that relocate appends */
	uint32_t reach;                      /* bytes that jumps cover to stubs and pads */
	bool has_pads;                       /* else probes are breakpoints */
	bool has_self_pointer;               /* the thread pointer leads to a copy of itself */
	/*
	 * at a stop that interrupted a system call the pc is at its instruction already, whether
	 * the kernel will repeat it as restart_syscall is seen only at its entry, and of one that
	 * failed the result has replaced the first argument
	 */
	bool hides_restart;
	/* a step over a system call ends by a SIGTRAP as if process 0 had sent it */
	bool sends_call_step;
	/* libunwind's unw_is_signal_frame() is about a frame itself, not about the step to it */
	bool libunwind_names_frame;
	/* an instruction without effect, large enough for a jump */
	uint8_t long_nop[8];
	uint8_t long_nop_size;
	/* The code sequence without effect that marks a client request of valgrind.h */
	uint8_t marker[24];
	uint8_t marker_size;
	/* words: the address of the request; its default and result */
	uint8_t request_arg, request_result;

	/*
	 * Moves the instructions that contain the first min_bytes bytes at @m->from to @m->to: out
	 * receives them, followed by a jump back. -ENOTSUP if an instruction is not on the list of
	 * those known to be safe.
	 */
	int (*relocate)(struct arch_move *m);

	/*
	 * Assembles the stub for the function at @m->from, to be placed at @m->to; decides what to
	 * displace. -ENOTSUP as for relocate.
	 */
	int (*make_stub)(struct arch_move *m, struct arch_stub *stub_out);

	/*
	 * Finds the system call instructions of a function, in order. Returns their number; stores
	 * at most @max (0: quick). -EILSEQ if bytes after undecodable code look like one.
	 */
	ssize_t (*find_syscalls)(const struct arch_code *code, struct arch_syscall *out,
				 size_t max);

	/*
	 * Whether the bytes at @offset of @code, which does not decode from its start, are likely a
	 * system call instruction. Decoding from a wrong start soon synchronizes with the right one
	 * (in code, unlike tables and text), so most starts lead to a real instruction.
	 */
	bool (*is_likely_syscall)(const struct arch_code *code, size_t offset);

	/*
	 * Calls @fn for the target of each direct branch or call that leaves @code. -EILSEQ as for
	 * find_passed.
	 */
	int (*each_branch_out)(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			       void *ctx);

	/*
	 * Calls @fn for the address of each unconditional jump to offset @start of @code, where a
	 * function begins, that is reached from there by direct jumps, without a call. False: code
	 * behind the ends of @code may be reached, too, and was not read.
	 */
	bool (*each_again)(const struct arch_code *code, size_t start,
			   void (*fn)(void *ctx, taddr_t at), void *ctx);

	/*
	 * The arguments that @code passes where it calls or jumps to @target: the value of @wanted
	 * at each of these instructions, in order. Returns their number (stores at most @max),
	 * -EILSEQ if @code does not decode to its end.
	 */
	ssize_t (*find_passed)(const struct arch_code *code, taddr_t target,
			       struct arch_value wanted,
			       struct arch_value *out, size_t max);

	/*
	 * Calls @fn for the address of each byte of @code at which a branch to [@start, @end), or
	 * an operand with an address in it, may begin, decoded or not: has false positives, but no
	 * false negatives.
	 */
	void (*each_hint)(const struct arch_code *code, taddr_t start, taddr_t end,
			  void (*fn)(void *ctx, taddr_t at), void *ctx);

	/*
	 * Whether bytes of @code, decoded or not, are a direct call of @target: other bytes look
	 * like one by chance once in 4 GiB.
	 */
	bool (*has_call)(const struct arch_code *code, taddr_t target);

	/*
	 * Collects the enum arch_reference of all instructions of @code at or after @from to
	 * [@start, @end), which may be code itself; -EILSEQ as for find_passed.
	 */
	int (*refers)(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end);

	/*
	 * Calls @fn for each instruction of @code, in order; an instruction with a branch's or a
	 * data address and a constant is several facts. Bytes that do not decode are skipped.
	 */
	void (*each_fact)(const struct arch_code *code,
			  void (*fn)(void *ctx, const struct arch_fact *fact), void *ctx);

	/*
	 * Assembles code for @at that has the effect of the system call instruction at @from and
	 * continues after it; the instruction comes first. Returns its size, 0: out of reach.
	 */
	size_t (*make_syscall_stub)(taddr_t from, taddr_t at, uint8_t *out, size_t out_size);

	/*
	 * Parses one argument of a note, such as "-4@8(%base)": 0; -EINVAL if malformed; -ENOTSUP
	 * if its value is not available from general registers and memory. Sets *out only on
	 * success.
	 */
	int (*parse_operand)(const char *text, size_t size, struct arch_operand *out);

	/*
	 * Whether a branch in the function at @code (@code_size bytes, at address @at) leads into
	 * [@start + 1, @start + @size).
	 */
	bool (*is_entered)(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
			   size_t size);

	/*
	 * Whether the function at the start of @code uses arguments that its caller passed on the
	 * stack. @code may be longer: only what is reached from its start matters.
	 * *jumps_to_out: another function that it continues with, which gets the same stack; 0 =
	 * none.
	 */
	bool (*uses_stack_arguments)(const struct arch_code *code, taddr_t *jumps_to_out);
};

/* The CPU for which this ptmem was built. */
extern const struct arch *const arch_native;

/* The CPU's counter, as pads read it. */
uint64_t arch_ticks(void);

/* A return address as an address: functions may sign theirs, in bits that no address has. */
#ifdef ARCH_SIGNS_RETURNS
taddr_t arch_return_address(uint64_t word);
#else
static inline taddr_t arch_return_address(uint64_t word)
{
	return word;
}
#endif

/* Converts the kernel's registers to the unwinder's. */
void arch_unwind_regs(const struct arch *arch, const struct arch_regs *regs,
		      struct arch_unwind_regs *out);

#endif
