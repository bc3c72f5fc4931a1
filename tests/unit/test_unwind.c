/*
 * Unwinds this very process: at known places of known call chains the registers
 * and the stack are captured and walked, and the result is held against libgcc's
 * unwinder and, for the ends, against made-up stacks.
 */
#include <alloca.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unwind.h>

#include <cmocka.h>

#include "arch/unwind_code.h"
#include "base/alloc.h"
#include "base/elf_file.h"
#include "unwind/unwind.h"
#include "unwind_cpu.h"

#define MAX_PCS 12000
#define SP arch_native->dwarf_sp
#define PC arch_native->dwarf_pc
#define FP arch_native->dwarf_fp
#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#define OMIT_FP
#define KEEP_FP
#else
#define OMIT_FP __attribute__((optimize("O2", "omit-frame-pointer")))
#define KEEP_FP __attribute__((optimize("no-omit-frame-pointer")))
#endif
/* Prevents tail calls. */
#define HERE() __asm__ volatile("" ::: "memory")

/* ---- the modules of this process ---- */

static VEC(struct module) modules;

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct module m = {.start = UINT64_MAX, .bias = info->dlpi_addr};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		m.start = MIN(m.start, info->dlpi_addr + p->p_vaddr);
		m.end = MAX(m.end, info->dlpi_addr + p->p_vaddr + p->p_memsz);
	}
	elf_file_open(NULL, info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", NULL, &m.file);
	*vec_add(&modules) = m;
	return 0;
}

static const struct module *find_module(void *ctx, taddr_t pc)
{
	for (size_t i = 0; i < modules.count; i++)
		if (pc >= modules.data[i].start && pc < modules.data[i].end)
			return &modules.data[i];
	return NULL;
}

static const struct unwind_ops ops = {.module = find_module};

/* ---- capture ---- */

static int read_self(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)addr, size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

struct trace {
	void **pc;
	int count, skip;
};

static _Unwind_Reason_Code add_reference(struct _Unwind_Context *context, void *data)
{
	struct trace *trace = data;

	if (trace->skip-- > 0)
		return _URC_NO_REASON;
	if (trace->count == MAX_PCS || _Unwind_GetIP(context) == 0)
		return _URC_END_OF_STACK;
	int is_exact;
	uintptr_t pc = _Unwind_GetIPInfo(context, &is_exact);

	trace->pc[trace->count++] = (void *)(pc - !is_exact);
	return _URC_NO_REASON;
}

/* As backtrace(), which sanitizers replace, but return addresses minus 1: [0] is in the caller. */
static NOINLINE int reference_trace(void **pc)
{
	struct trace trace = {.pc = pc, .skip = 1};

	_Unwind_Backtrace(add_reference, &trace);
	HERE();
	return trace.count;
}

static struct unwind *u;
static taddr_t pcs[MAX_PCS];
static void *reference[MAX_PCS];
static size_t pc_count;
static enum unwind_end walk_end;
static int mismatch;        /* index + 1 of the first difference */
static size_t copy_size;    /* bytes of stack in the view; the rest by read */
static taddr_t outer_sp;    /* from unwind_in_signal */
static bool was_in_signal;
static taddr_t second[MAX_PCS]; /* libunwind's result */
static size_t second_count;

/* A fork has this stack, and stops with it. */
static pid_t fork_stopped(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void end_fork(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static NOINLINE void take(void)
{
	struct stack_view view = {.read = read_self};
	int count;

	capture(&view.regs);
	view.start = view.regs.reg[SP];
	view.data = (const uint8_t *)view.start;
	view.size = copy_size;
	pc_count = unwind_walk(u, &view, pcs, MAX_PCS, &walk_end);
	view.stopped = fork_stopped();
	second_count = unwind_walk_again(u, &view, second, MAX_PCS);
	end_fork(view.stopped);
	was_in_signal = unwind_in_signal(u, &view, outer_sp);
	count = reference_trace(reference);
	mismatch = 0;
	if ((size_t)count != pc_count)
		mismatch = (int)MIN((size_t)count, pc_count) + 1;
	for (size_t i = 1; i < MIN((size_t)count, pc_count); i++) {
		if (pcs[i] != (taddr_t)reference[i]) {
			mismatch = (int)i + 1;
			break;
		}
	}
	HERE();
}

static void check_taken(size_t least)
{
	if (mismatch) {
		for (size_t i = 0; i < pc_count && i < (size_t)mismatch + 2; i++)
			print_message("%zu: %lx %p\n", i, pcs[i], reference[i]);
		print_message("end: %s, %zu frames\n", unwind_end_text[walk_end], pc_count);
	}
	assert_int_equal(mismatch, 0);
	/* libunwind may end before us, but not at another frame. */
	assert_true(second_count > 1 && second_count <= pc_count);
	assert_memory_equal(second, pcs, second_count * sizeof(*pcs));
	assert_int_equal(walk_end, UNWIND_COMPLETE);
	assert_true(pc_count >= least);
}

/* ---- chains ---- */

static NOINLINE OMIT_FP int chain_omit(int n)
{
	volatile int keep[5] = {n};
	if (n > 0)
		keep[1] = chain_omit(n - 1);
	else
		take();
	HERE();
	return keep[0] + keep[1];
}

static NOINLINE KEEP_FP int chain_keep(int n)
{
	volatile int keep[9] = {n};
	if (n > 0)
		keep[1] = chain_keep(n - 1);
	else
		chain_omit(3);
	HERE();
	return keep[0] + keep[1];
}

static NOINLINE int chain_alloca(int n)
{
	volatile char *p = alloca((size_t)n * 24 + 100);
	p[0] = (char)n;
	if (n > 0)
		chain_alloca(n - 1);
	else
		chain_keep(2);
	HERE();
	return p[0];
}

/* Arguments on the stack and an over-aligned local: gcc addresses them through a saved old stack pointer. */
static NOINLINE OMIT_FP int chain_realigned(int a, int b, int c, int d, int e, int f, int g, int h, int n)
{
	volatile int big[16] __attribute__((aligned(64))) = {a, b, c, d, e, f, g, h};
	volatile char *p = alloca((size_t)n + 10);
	p[1] = 1;
	if (n > 0)
		big[0] = chain_realigned(a, b, c, d, e, f, g, h + 1, n - 1);
	else
		chain_alloca(2);
	HERE();
	return big[0] + h + g + p[1];
}

static void test_chains(void **state)
{
	for (copy_size = 0; copy_size <= 4096; copy_size += 1024) {
		chain_omit(0);
		check_taken(3);
		chain_keep(3);
		check_taken(8);
		chain_alloca(5);
		check_taken(12);
		chain_realigned(1, 2, 3, 4, 5, 6, 7, 8, 4);
		check_taken(15);
	}
}

#if defined(__x86_64__)
static void test_realigned_is_a_rule(void **state)
{
	const struct unwind_rule_table *table = unwind_rules(u);
	size_t count[RULE_SLOW + 1] = {0};

	chain_realigned(1, 2, 3, 4, 5, 6, 7, 8, 4);
	check_taken(5);
	for (size_t i = 0; i < (size_t)1 << table->bits; i++)
		count[table->slot[i].kind]++;
	assert_true(count[RULE_SP] + count[RULE_FP] > 5);
	assert_true(count[RULE_END] >= 1);
#ifndef __clang__
	assert_true(count[RULE_FP_DEREF] >= 1);
#endif
}
#endif

static int compare_taking(const void *a, const void *b)
{
	take();
	HERE();
	return *(const int *)a - *(const int *)b;
}

static void test_callback(void **state)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, ARRAY_SIZE(numbers), sizeof(numbers[0]), compare_taking);
	check_taken(4);
}

static NOINLINE void recurse(int n)
{
	volatile int keep = n;
	if (n > 0)
		recurse(n - 1);
	else
		take();
	HERE();
	(void)keep;
}

static void test_deep(void **state)
{
	recurse(5000);
	check_taken(5000);
}

static void *thread_main(void *arg)
{
	chain_keep(3);
	HERE();
	return NULL;
}

static void test_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
	check_taken(8);
}

/* ---- signals ---- */

static void on_signal(int number)
{
	chain_omit(1);
	HERE();
}

static NOINLINE void raise_below(int n)
{
	struct arch_unwind_regs regs;

	capture(&regs);
	outer_sp = regs.reg[SP] + 4096;
	raise(SIGUSR1);
	HERE();
}

static void test_signal(void **state)
{
	static char stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, off = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	raise_below(1);
	check_taken(7);
	assert_true(was_in_signal);
	assert_true(unwind_stats(u)->slow_frames > 0);
	outer_sp = 0;
	on_signal(0);
	check_taken(4);
	assert_false(was_in_signal);

	action.sa_flags = SA_ONSTACK;
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise_below(1);
	check_taken(7);
	assert_true(was_in_signal);
	sigaltstack(&off, NULL);
}

static sigjmp_buf back;

static void on_fault(int number)
{
	take();
	siglongjmp(back, 1);
}

/* The interrupted pc is the first byte of a function, whose CFI is not that of the byte before. */
static void test_fault_at_first_instruction(void **state)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

	sigaction(SIGILL, &action, NULL);
	if (sigsetjmp(back, 1) == 0)
		fault_at_entry();
	check_taken(5);
	signal(SIGILL, SIG_DFL);
}

static void take_and_leave(void)
{
	take();
	siglongjmp(back, 1);
}

/* A call that never returns ends its function: the return address lies in the next one. */
static void test_call_at_end_of_function(void **state)
{
	if (sigsetjmp(back, 1) == 0)
		last_call(take_and_leave);
	check_taken(5);
}

/* ---- ends ---- */

static void on_own_stack(void)
{
	take();
	HERE();
}

static void test_ucontext_ends(void **state)
{
	static char stack[1 << 19];
	static ucontext_t inner, outer;

	getcontext(&inner);
	inner.uc_stack.ss_sp = stack;
	inner.uc_stack.ss_size = sizeof(stack);
	inner.uc_link = &outer;
	makecontext(&inner, on_own_stack, 0);
	swapcontext(&outer, &inner);
	/* libgcc continues with garbage beyond the bottom of the stack */
	assert_int_equal(walk_end, UNWIND_COMPLETE);
	assert_int_equal(pc_count, 3); /* take, on_own_stack, glibc's entry that calls setcontext */
}

static int read_nothing(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return -EFAULT;
}

static struct unwind_rule *own_rule(struct unwind *unwind, taddr_t pc)
{
	return (struct unwind_rule *)unwind_rule_get(unwind, pc);
}

static void test_ends(void **state)
{
	struct stack_view view = {.read = read_self};
	taddr_t out[64] = {0};
	enum unwind_end end;

	capture(&view.regs);
	view.start = view.regs.reg[SP];
	view.data = (const uint8_t *)view.start;
	assert_int_equal(unwind_walk(u, &view, out, 1, &end), 1);
	assert_int_equal(end, UNWIND_TOO_DEEP);
	assert_int_equal(out[0], view.regs.reg[PC] - 1);
	assert_int_equal(out[1], 0);

	view.read = read_nothing;
	assert_int_equal(unwind_walk(u, &view, out, 64, &end), 1);
	assert_int_equal(end, UNWIND_NO_MEMORY);

	view.read = read_self;
	struct unwind *other = unwind_new(arch_native, &ops);
	unwind_walk(other, &view, out, 64, &end); /* enters the rules that are then found */
	struct unwind_rule *rule = own_rule(other, view.regs.reg[PC]);
	rule->kind = RULE_SP;
	rule->cfa_offset = 0;
	assert_int_equal(unwind_walk(other, &view, out, 64, &end), 1);
	assert_int_equal(end, UNWIND_LOOP);
	unwind_free(other);

	view.regs.reg[PC] = 0;
	assert_int_equal(unwind_walk(u, &view, out, 64, &end), 1);
	assert_int_equal(end, UNWIND_COMPLETE);
	view.regs.reg[PC] = 0x1234;
	view.regs.reg[FP] = 1;
	assert_int_equal(unwind_walk(u, &view, out, 64, &end), 1);
	assert_int_equal(end, UNWIND_NO_CFI);
}

/* ---- code of ptmem ---- */

/* An address in no object, which represents code of ptmem; its frame is that of a stub. */
#define OWN_ADDRESS 0x1234

static bool find_own(void *ctx, const struct own_place *place, struct own_code *out)
{
	const taddr_t *moved = ctx;

	*out = (struct own_code){.kind = place->is_exact ? OWN_MOVED : OWN_CALL};
	out->pc = place->is_exact ? *moved : 0;
	out->up = place->is_exact ? 0 : 2 * sizeof(uint64_t);
	return place->pc == OWN_ADDRESS;
}

/*
 * A return address in code of ptmem is skipped: the caller's is below the end of that frame. An
 * instruction there is shown as the one that it was copied from.
 */
static void test_own_code(void **state)
{
	struct stack_view view = {.read = read_self};
	taddr_t moved, alone[64], own[64];
	enum unwind_end end;

	capture(&view.regs);
	view.start = view.regs.reg[SP];
	moved = view.regs.reg[PC];
	const struct unwind_ops with_own = {.module = find_module, .own = find_own, .ctx = &moved};
	struct unwind *other = unwind_new(arch_native, &with_own);
	size_t n = unwind_walk(u, &view, alone, 64, &end);
	assert_int_equal(end, UNWIND_COMPLETE);

	struct stack_view inside = view;
	uint64_t frame[2] = {0xabc, moved}; /* a callee-saved register, the return address */
	inside.start = inside.regs.reg[SP] = view.regs.reg[SP] - sizeof(frame);
	inside.data = (const uint8_t *)frame;
	inside.size = sizeof(frame);
	inside.regs.reg[PC] = OWN_ADDRESS;
	assert_int_equal(unwind_walk(other, &inside, own, 64, &end), n);
	assert_int_equal(end, UNWIND_COMPLETE);
	assert_memory_equal(own, alone, n * sizeof(*own));
	inside.size = sizeof(*frame); /* as where the kernel's copy of the stack ends */
	inside.read = read_nothing;
	unwind_walk(other, &inside, own, 64, &end);
	assert_int_equal(end, UNWIND_NO_MEMORY);

	view.regs.reg[PC] = OWN_ADDRESS;
	assert_int_equal(unwind_walk_stopped(other, &view, own, 64, &end), n + 1);
	assert_int_equal(end, UNWIND_COMPLETE);
	assert_int_equal(own[0], OWN_ADDRESS);
	unwind_free(other);
}

/* ---- code without CFI ---- */

static void test_jit_frame_pointers(void **state)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before = unwind_stats(u)->generated_frames;
	size_t i, n;

	memcpy(page, jit_code, sizeof(jit_code));
	__builtin___clear_cache((char *)page, (char *)page + sizeof(jit_code));
	((void (*)(void (*)(void)))page)(on_own_stack);
	HERE();
	/* libgcc may or may not pass such code; this file knows what is beyond. */
	assert_int_equal(walk_end, UNWIND_COMPLETE);
	assert_int_equal(unwind_stats(u)->generated_frames, before + 2 * JIT_RULE); /* walk and in_signal */
	for (i = 0; i < pc_count && pcs[i] + 1 != (taddr_t)page + JIT_RETURN; i++)
		;
	assert_true(i + 2 < pc_count);
	n = (size_t)reference_trace(reference);
	assert_int_equal(pc_count - i - 2, n - 1); /* what lies above this function is the same */
	for (size_t j = 1; j < n; j++)
		assert_int_equal(pcs[i + 1 + j], (taddr_t)reference[j]);
	munmap(page, 4096);
}

#if defined(__x86_64__) /* others do not analyse code without CFI */

/* What the code from a return address to a return says of the frame. */
static void check_return(const char *code, size_t size, int kind, int cfa, int saved_fp)
{
	struct unwind_rule rule = {0};
	int rc = arch_scan_return((const uint8_t *)code, size, 0, &rule);

	assert_int_equal(rc, kind ? 0 : -ENOTSUP);
	assert_int_equal(rule.kind, kind);
	assert_int_equal(rule.cfa_offset, cfa);
	assert_int_equal(rule.saved & 1, saved_fp != 0);
	if (saved_fp)
		assert_int_equal(rule.slot[0], saved_fp);
}
#define RETURN(code, ...) check_return(code, sizeof(code) - 1, __VA_ARGS__)

static void test_scan_return(void **state)
{
	RETURN("\x48\x83\xc4\x08\xc3", RULE_SP, 16, 0);              /* add $8, %rsp; ret */
	RETURN("\xc9\xc3", RULE_FP, 16, -2);                          /* leave; ret */
	RETURN("\x48\x89\xec\x5d\xc2\x10\x00", RULE_FP, 16, -2);     /* mov %rbp, %rsp; pop %rbp; ret 16 */
	RETURN("\x48\x83\xc4\x30\x5d\xc3", RULE_SP, 64, -2);         /* add $48; pop %rbp; ret */
	RETURN("\x5b\x5d\x41\x5c\xc3", RULE_SP, 32, -3);             /* pop %rbx, %rbp, %r12; ret */
	RETURN("\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3", RULE_SP, 32, -2); /* mov 16(%rsp), %rbp; add $24 */
	RETURN("\x48\x8d\x65\xf8\x5b\x5d\xc3", RULE_FP, 16, -2);     /* lea -8(%rbp), %rsp; pop %rbx, %rbp */
	RETURN("\x57\x5f\x58\xc3", RULE_SP, 16, 0);                    /* push %rdi; pop %rdi; pop %rax; ret */
	RETURN("\xc3", 0, 0, 0);                                      /* no frame */
	RETURN("\x53\x5b\x58\xc3", 0, 0, 0);                         /* push %rbx: another function */
	RETURN("\x74\x02\x0f\x0b\x58\xc3", RULE_SP, 16, 0);           /* je 1f; ud2; 1: pop %rax; ret */
	RETURN("\xeb\x01\x90\x58\xc3", RULE_SP, 16, 0);              /* jmp 1f; nop; 1: pop %rax; ret */
	RETURN("\xeb\xfe", 0, 0, 0);                                  /* jmp . */
	RETURN("\xff\xe0\xc3", 0, 0, 0);                             /* jmp *%rax */
	RETURN("\x31\xed\xc9\xc3", 0, 0, 0);                         /* xor %ebp, %ebp; leave: of what? */
	RETURN("\x48\x89\xc4\xc3", 0, 0, 0);                         /* mov %rax, %rsp */
	RETURN("\x48\x83\xec\x08\xc3", 0, 0, 0);                     /* sub $8, %rsp; ret */
	RETURN("\x48\x83\xc4", 0, 0, 0);                             /* cut off */
	RETURN("\x48\x8b\x45\xf0\xff\xe0", RULE_FP, 16, -2);            /* mov -16(%rbp), %rax; jmp *%rax */
	RETURN("\x48\x8b\x45\x10\xff\xe0", 0, 0, 0);                  /* mov 16(%rbp), %rax; jmp *%rax */
	RETURN("\xc9\x59\x48\x8d\x24\xd4\x51\xc3", RULE_FP, 16, -2);  /* leave; pop %rcx; lea (%rsp,%rdx,8), %rsp... */
	RETURN("", 0, 0, 0);
}

/* Where libc has CFI, code says the same. Calls that do not return are followed by other functions. */
static void test_scan_return_in_libc(void **state)
{
	const struct module *m = find_module(NULL, (taddr_t)malloc);
	uint32_t same = 0, other = 0, none = 0;

	for (size_t i = 0; i < m->file->segment_count; i++) {
		const struct elf_segment *g = &m->file->segment[i];
		uint8_t *code = g->is_exec ? elf_file_read(m->file, g->offset, g->filesz) : NULL;

		for (size_t at = ARCH_MAX_CALL; code && at + 4096 < g->filesz; at++) {
			struct unwind_rule cfi, found = {0};

			int32_t to = 0;

			memcpy(&to, code + at - 4, 4);
			/* a call to the entry of a function, most probably */
			if (code[at - 5] != 0xe8 || (int64_t)at + to < 0 || (at + (size_t)to) % 16 ||
			    at + (size_t)to >= g->filesz)
				continue;
			cfi = *unwind_rule_get(u, m->bias + g->vaddr + at);
			if (cfi.kind != RULE_SP && cfi.kind != RULE_FP)
				continue;
			if (cfi.kind == RULE_SP && cfi.cfa_offset % 16)
				continue;
			size_t before = MIN(at, 2048);

			if (arch_scan_return(code + at - before, before + 4096, before, &found) != 0 ||
			    found.kind != cfi.kind)
				none++;
			else if (found.cfa_offset == cfi.cfa_offset &&
				 (found.saved == cfi.saved || (found.kind == RULE_FP && found.saved == 1)) &&
				 (!(cfi.saved & 1) || found.slot[0] == cfi.slot[0]))
				same++;
			else
				other++;
		}
		free(code);
	}
	print_message("%u returns like the CFI, %u others, %u not understood\n", same, other, none);
	assert_true(same > 1000);
	assert_true(other * 200 < same);
}

/* A function in an object, without CFI and without a frame pointer, with an early return before the call. */
void bare(void (*callback)(void));
__asm__(".text\n.globl bare\n.type bare,@function\nbare:\n"
	"	push %rbx\n	push %rbp\n	sub $40, %rsp\n	test %rdi, %rdi\n	jnz 1f\n"
	"	add $40, %rsp\n	pop %rbp\n	pop %rbx\n	ret\n"
	"1:	mov $77, %ebp\n	mov $78, %ebx\n	call *%rdi\n"
	"	add $40, %rsp\n	pop %rbp\n	pop %rbx\n	ret\n.size bare,.-bare\n");

static void test_bare_code(void **state)
{
	size_t n;

	bare(on_own_stack);
	HERE();
	n = (size_t)reference_trace(reference);
	assert_int_equal(walk_end, UNWIND_COMPLETE);
	assert_int_equal(pc_count, n + 3); /* take, on_own_stack, bare */
	assert_true(pcs[2] > (taddr_t)bare && pcs[2] < (taddr_t)bare + 60);
	for (size_t j = 1; j < n; j++)
		assert_int_equal(pcs[j + 3], (taddr_t)reference[j]);
}

#endif

/* ---- the table ---- */

static void test_forget(void **state)
{
	const struct module *m = find_module(NULL, (taddr_t)take);
	const struct unwind_rule_table *table = unwind_rules(u);
	uint32_t used = table->used, gone = 0;
	taddr_t others[64];
	size_t count = 0;

	chain_keep(3);
	used = table->used;
	for (size_t i = 0; i < (size_t)1 << table->bits; i++)
		if (table->slot[i].pc && find_module(NULL, table->slot[i].pc) != m && count < 64)
			others[count++] = table->slot[i].pc;
	assert_true(count > 0);
	unwind_forget(u, m->start, m->end);
	assert_int_equal(table->used, used);
	for (size_t i = 0; i < (size_t)1 << table->bits; i++)
		gone += table->slot[i].pc != 0 && table->slot[i].kind == RULE_NONE;
	assert_true(gone > 3);
	for (size_t i = 1; i < pc_count; i++)
		if (pcs[i] >= m->start && pcs[i] < m->end)
			assert_null(unwind_rule_find(table->slot, table->bits, pcs[i] + 1));
	for (size_t i = 0; i < count; i++)
		if (others[i] != UINT64_MAX)
			assert_non_null(unwind_rule_find(table->slot, table->bits, others[i]));
	chain_keep(3);
	check_taken(8);
}

static struct unwind_rule bigger[1 << 12];
static struct unwind *moving;
static int full_calls;

static void on_full(void *ctx)
{
	full_calls++;
	assert_ptr_equal(ctx, &full_calls);
	unwind_set_memory(moving, bigger, 12, on_full, &full_calls);
}

static void test_memory(void **state)
{
	static struct unwind_rule small[1 << 4];
	struct unwind *before = u;

	moving = u = unwind_new(arch_native, &ops);
	unwind_set_memory(u, small, 4, on_full, &full_calls);
	chain_realigned(1, 2, 3, 4, 5, 6, 7, 8, 4);
	check_taken(15);
	assert_int_equal(full_calls, 1);
	assert_memory_equal(unwind_rules(u)->slot, bigger, sizeof(bigger));
	for (size_t i = 1; i + 1 < pc_count; i++)
		assert_non_null(unwind_rule_find(bigger, 12, pcs[i] + 1));
	/* forged rules are not used: all of these would end the stack or give wrong frames */
	for (size_t i = 0; i < ARRAY_SIZE(bigger); i++)
		bigger[i] = (struct unwind_rule){.pc = bigger[i].pc, .cfa_offset = 16, .kind = i % 7,
						 .reg = 0xff, .saved = 0xff, .slot = {99, 99}};
	chain_realigned(1, 2, 3, 4, 5, 6, 7, 8, 4);
	check_taken(15);
	/* rules are removed there, too */
	unwind_forget(u, 1, UINT64_MAX - 1);
	for (size_t i = 1; i + 1 < pc_count; i++)
		assert_null(unwind_rule_find(bigger, 12, pcs[i] + 1));
	unwind_free(u);
	u = before;
}

static void ignore_full(void *ctx)
{
	full_calls++;
}

static void test_memory_stays_full(void **state)
{
	static struct unwind_rule small[1 << 2];
	struct unwind *before = u;

	u = unwind_new(arch_native, &ops);
	full_calls = 0;
	unwind_set_memory(u, small, 2, ignore_full, &full_calls);
	chain_realigned(1, 2, 3, 4, 5, 6, 7, 8, 4);
	check_taken(15);
	assert_int_equal(full_calls, 1);
	assert_true(unwind_rules(u)->used < 4);
	unwind_free(u);
	u = before;
}

static int setup(void **state)
{
	dl_iterate_phdr(add_module, NULL);
	u = unwind_new(arch_native, &ops);
	return 0;
}

static int teardown(void **state)
{
	unwind_free(u);
	for (size_t i = 0; i < modules.count; i++)
		elf_file_release(modules.data[i].file);
	vec_deinit(&modules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),
#if defined(__x86_64__)
		cmocka_unit_test(test_realigned_is_a_rule),
#endif
		cmocka_unit_test(test_callback),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_fault_at_first_instruction),
		cmocka_unit_test(test_call_at_end_of_function),
		cmocka_unit_test(test_ucontext_ends),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_jit_frame_pointers),
#if defined(__x86_64__)
		cmocka_unit_test(test_scan_return),
		cmocka_unit_test(test_scan_return_in_libc),
		cmocka_unit_test(test_bare_code),
#endif
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_stays_full),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
