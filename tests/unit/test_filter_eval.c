/*
 * Answers of seccomp filters: allow-lists as libseccomp makes them, in sequence and as a binary
 * tree; conditions on arguments; programs that the kernel would not accept.
 */
#include "tracee/inject/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"

#include <cmocka.h>

#define AT(field) offsetof(struct seccomp_data, field)
#define LOW(n) (AT(args) + 8 * (n)) /* the lower half of an argument */
#define HIGH(n) (LOW(n) + 4)
#define LOAD(k) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, k)
#define EQUAL(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)
#define LEAST(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, k, yes, no)
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, k)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define KILL RETURN(SECCOMP_RET_KILL_PROCESS)
#define FAIL RETURN(SECCOMP_RET_ERRNO | 1)
#define COUNT(code) (sizeof(code) / sizeof(*(code)))

/* What @code answers to call @nr, of which nothing else is known. */
static bool allows_call(const struct sock_filter *code, size_t count, uint32_t nr)
{
	struct filter_input input = {.word = {nr, AUDIT_ARCH_X86_64}, .known = 3};
	return filter_allows(code, count, &input);
}

/* The same with its third and fourth argument. */
static bool allows_args(const struct sock_filter *code, size_t count, uint32_t nr,
			const uint32_t arg[2])
{
	struct filter_input input = {.word = {nr, AUDIT_ARCH_X86_64}, .known = 3 | 0xf00};
	input.word[8] = arg[0];
	input.word[10] = arg[1];
	return filter_allows(code, count, &input);
}

#define ALLOWS(code, nr) allows_call(code, COUNT(code), nr)
#define ALLOWS_ARGS(code, nr, a, b) allows_args(code, COUNT(code), nr, (const uint32_t[2]){a, b})
#define SAYS(...) allows_call((const struct sock_filter[]){__VA_ARGS__}, \
			      COUNT(((const struct sock_filter[]){__VA_ARGS__})), 1)

static void test_sequence(void **state)
{
	const struct sock_filter code[] = {
		LOAD(AT(arch)), EQUAL(AUDIT_ARCH_X86_64, 0, 8),
		LOAD(AT(nr)), LEAST(0x40000000, 6, 0),
		EQUAL(SYS_mmap, 4, 0), EQUAL(SYS_munmap, 3, 0), EQUAL(SYS_close, 2, 0),
		FAIL,
		KILL,
		ALLOW,
		KILL,
	};
	assert_true(ALLOWS(code, SYS_mmap));
	assert_true(ALLOWS(code, SYS_munmap));
	assert_true(ALLOWS(code, SYS_close));
	assert_false(ALLOWS(code, SYS_read));
	assert_false(ALLOWS(code, SYS_mmap | 0x40000000));
	struct filter_input other = {.word = {SYS_mmap, AUDIT_ARCH_I386}, .known = 3};
	assert_false(filter_allows(code, COUNT(code), &other));
	struct filter_input unknown = {.word = {0, AUDIT_ARCH_X86_64}, .known = 2};
	assert_false(filter_allows(code, COUNT(code), &unknown));
	unknown = (struct filter_input){.word = {SYS_mmap, 0}, .known = 1};
	assert_false(filter_allows(code, COUNT(code), &unknown));
}

static void test_tree(void **state)
{
	const struct sock_filter code[] = {
		LOAD(AT(arch)), EQUAL(AUDIT_ARCH_X86_64, 0, 10),
		LOAD(AT(nr)), LEAST(0x40000000, 8, 0),
		LEAST(11, 0, 3),
		LEAST(100, 0, 4), EQUAL(SYS_memfd_create, 4, 0), EQUAL(SYS_gettid, 3, 4),
		EQUAL(SYS_mmap, 2, 0), EQUAL(SYS_close, 1, 2),
		EQUAL(SYS_munmap, 0, 1),
		ALLOW,
		FAIL,
	};
	for (uint32_t nr = 0; nr < 400; nr++) {
		bool is_listed = nr == SYS_memfd_create || nr == SYS_gettid || nr == SYS_mmap ||
				 nr == SYS_close || nr == SYS_munmap;
		assert_int_equal(ALLOWS(code, nr), is_listed);
	}
}

static void test_actions(void **state)
{
	assert_true(SAYS(ALLOW));
	assert_true(SAYS(RETURN(SECCOMP_RET_LOG)));
	assert_true(SAYS(RETURN(SECCOMP_RET_ALLOW | 77)));
	assert_false(SAYS(RETURN(SECCOMP_RET_TRACE)));
	assert_false(SAYS(RETURN(SECCOMP_RET_USER_NOTIF)));
	assert_false(SAYS(RETURN(SECCOMP_RET_ERRNO)));
	assert_false(SAYS(RETURN(SECCOMP_RET_TRAP)));
	assert_false(SAYS(RETURN(SECCOMP_RET_KILL_THREAD)));
	assert_false(SAYS(RETURN(SECCOMP_RET_KILL_PROCESS)));
	assert_false(SAYS(RETURN(0x12340000)));
	assert_false(SAYS(RETURN(0x80000000 | SECCOMP_RET_ALLOW)));
	assert_false(SAYS(BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_A, 0)));
}

/* As systemd's MemoryDenyWriteExecute has it, and a sandbox that kills for new code. */
static void test_arguments(void **state)
{
	const struct sock_filter writable[] = {
		LOAD(AT(nr)), EQUAL(SYS_mmap, 0, 4),
		LOAD(LOW(2)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
		EQUAL(PROT_WRITE | PROT_EXEC, 0, 1), FAIL, ALLOW,
	}, code[] = {
		LOAD(AT(nr)), EQUAL(SYS_mmap, 0, 5),
		LOAD(LOW(2)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3),
		LOAD(LOW(3)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1), KILL, ALLOW,
	};
	assert_true(ALLOWS_ARGS(writable, SYS_mmap, PROT_READ | PROT_EXEC, 0));
	assert_true(ALLOWS_ARGS(writable, SYS_mmap, PROT_READ | PROT_WRITE, 0));
	assert_false(ALLOWS_ARGS(writable, SYS_mmap, PROT_EXEC | PROT_WRITE, 0));
	assert_false(ALLOWS(writable, SYS_mmap)); /* the argument is not known */
	assert_true(ALLOWS(writable, SYS_munmap));
	assert_false(ALLOWS_ARGS(code, SYS_mmap, PROT_EXEC, MAP_ANONYMOUS | MAP_PRIVATE));
	assert_true(ALLOWS_ARGS(code, SYS_mmap, PROT_EXEC, MAP_PRIVATE));
	assert_true(ALLOWS_ARGS(code, SYS_mmap, PROT_READ, MAP_ANONYMOUS));
	assert_false(ALLOWS(code, SYS_mmap));

	assert_null(injected_calls_find_forbidden(writable, COUNT(writable), AUDIT_ARCH_X86_64));
	assert_string_equal(
		injected_calls_find_forbidden(code, COUNT(code), AUDIT_ARCH_X86_64)->name, "mmap");
	const struct sock_filter file[] = {LOAD(AT(nr)), EQUAL(SYS_memfd_create, 0, 1), FAIL, ALLOW},
		high[] = {LOAD(AT(nr)), EQUAL(SYS_mmap, 0, 3), LOAD(HIGH(2)), EQUAL(0, 1, 0), FAIL, ALLOW},
		address[] = {LOAD(AT(nr)), EQUAL(SYS_close, 0, 3), LOAD(AT(instruction_pointer)),
			     LEAST(4096, 0, 1), FAIL, ALLOW},
		number[] = {LOAD(AT(nr)), EQUAL(SYS_close, 0, 3), LOAD(LOW(0)), EQUAL(0, 1, 0), FAIL, ALLOW};
	assert_null(injected_calls_find_forbidden(high, COUNT(high), AUDIT_ARCH_X86_64));
	assert_string_equal(
		injected_calls_find_forbidden(file, COUNT(file), AUDIT_ARCH_X86_64)->name,
		"memfd_create");
	assert_string_equal(
		injected_calls_find_forbidden(address, COUNT(address), AUDIT_ARCH_X86_64)->name,
		"close");
	assert_string_equal(
		injected_calls_find_forbidden(number, COUNT(number), AUDIT_ARCH_X86_64)->name, "close");
}

/* Each of these sequences leaves A at 5 for those that must allow. */
#define IS_5 EQUAL(5, 0, 1), ALLOW, KILL
#define LDI(k) BPF_STMT(BPF_LD | BPF_IMM, k)
#define LDXI(k) BPF_STMT(BPF_LDX | BPF_IMM, k)
#define ALU_K(op, k) BPF_STMT(BPF_ALU | (op) | BPF_K, k)
#define ALU_X(op) BPF_STMT(BPF_ALU | (op) | BPF_X, 0)

static void test_arithmetic(void **state)
{
	assert_true(SAYS(LDI(2), ALU_K(BPF_ADD, 3), IS_5));
	assert_true(SAYS(LDI(2), ALU_K(BPF_SUB, 0xfffffffd), IS_5));
	assert_true(SAYS(LDI(0x80000005), ALU_K(BPF_MUL, 0x33333335), ALU_K(BPF_AND, 0xf),
			 ALU_K(BPF_XOR, 0xc), IS_5));
	assert_true(SAYS(LDI(17), ALU_K(BPF_DIV, 3), IS_5));
	assert_true(SAYS(LDI(4), ALU_K(BPF_OR, 1), IS_5));
	assert_true(SAYS(LDI(0x50), ALU_K(BPF_RSH, 4), IS_5));
	assert_true(SAYS(LDI(5), ALU_K(BPF_LSH, 30), ALU_K(BPF_RSH, 30), EQUAL(1, 0, 1), ALLOW, KILL));
	assert_true(SAYS(LDI(0xfffffffb), BPF_STMT(BPF_ALU | BPF_NEG, 0), IS_5));
	assert_true(SAYS(LDI(2), LDXI(3), ALU_X(BPF_ADD), IS_5));
	assert_true(SAYS(LDI(17), LDXI(3), ALU_X(BPF_DIV), IS_5));
	assert_true(SAYS(LDXI(5), BPF_STMT(BPF_MISC | BPF_TXA, 0), IS_5));
	assert_true(SAYS(LDI(5), BPF_STMT(BPF_MISC | BPF_TAX, 0), LDI(0),
			 BPF_STMT(BPF_MISC | BPF_TXA, 0), IS_5));
	assert_true(SAYS(LDI(5), BPF_STMT(BPF_ST, 15), LDI(0), BPF_STMT(BPF_LD | BPF_MEM, 15), IS_5));
	assert_true(SAYS(LDXI(5), BPF_STMT(BPF_STX, 0), LDXI(0), BPF_STMT(BPF_LDX | BPF_MEM, 0),
			 BPF_STMT(BPF_MISC | BPF_TXA, 0), IS_5));
	assert_true(SAYS(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), EQUAL(64, 0, 1), ALLOW, KILL));
	assert_true(SAYS(BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_MISC | BPF_TXA, 0),
			 EQUAL(64, 0, 1), ALLOW, KILL));
	assert_true(SAYS(LDI(5), LDXI(5), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1), ALLOW, KILL));
	assert_true(SAYS(LDI(5), LDXI(4), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1), ALLOW, KILL));
	assert_false(SAYS(LDI(5), LDXI(5), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1), ALLOW, KILL));
	/* A and X are 0 at first */
	assert_true(SAYS(EQUAL(0, 0, 1), ALLOW, KILL));
	assert_true(SAYS(LDI(1), BPF_STMT(BPF_MISC | BPF_TXA, 0), EQUAL(0, 0, 1), ALLOW, KILL));
}

/* Values that are not known, and values of paths that meet. */
static void test_unknown(void **state)
{
	assert_false(SAYS(LOAD(16), IS_5));
	assert_false(SAYS(LOAD(16), ALU_K(BPF_MUL, 2), EQUAL(4, 0, 1), ALLOW, KILL));
	assert_false(SAYS(LOAD(16), BPF_STMT(BPF_ST, 3), LDI(0), BPF_STMT(BPF_LD | BPF_MEM, 3), IS_5));
	assert_false(SAYS(BPF_STMT(BPF_LD | BPF_MEM, 2), EQUAL(0, 0, 1), ALLOW, KILL));
	assert_false(SAYS(LDI(5), LDXI(32), ALU_X(BPF_LSH), IS_5));
	assert_false(SAYS(LDI(5), ALU_K(BPF_LSH, 32), IS_5));
	assert_true(SAYS(LOAD(16), EQUAL(1, 0, 1), ALLOW, RETURN(SECCOMP_RET_LOG)));
	/* both ways set A to 5, or one to 6 */
	assert_true(SAYS(LOAD(16), EQUAL(1, 0, 2), LDI(5), BPF_STMT(BPF_JMP | BPF_JA, 1), LDI(5), IS_5));
	assert_false(SAYS(LOAD(16), EQUAL(1, 0, 2), LDI(6), BPF_STMT(BPF_JMP | BPF_JA, 1), LDI(5), IS_5));
	assert_false(SAYS(LOAD(16), EQUAL(1, 0, 2), LDI(5), BPF_STMT(BPF_JMP | BPF_JA, 1), LDI(6), IS_5));
	/* one of them leaves it unknown; the divisor is 5 or 0 */
	assert_false(SAYS(LOAD(16), EQUAL(1, 0, 2), LDI(0), BPF_STMT(BPF_JMP | BPF_JA, 1), LOAD(20),
			  EQUAL(0, 0, 1), ALLOW, KILL));
	assert_false(SAYS(LOAD(16), EQUAL(1, 0, 2), LDXI(5), BPF_STMT(BPF_JMP | BPF_JA, 1), LDXI(0),
			  ALU_X(BPF_DIV), ALLOW));
	/* the path that kills is not taken */
	assert_true(SAYS(LDI(1), EQUAL(1, 1, 0), KILL, ALLOW));
}

static void test_not_valid(void **state)
{
	struct filter_input input = {.known = 0};
	static struct sock_filter many[BPF_MAXINSNS + 1];
	const struct sock_filter allow = ALLOW;
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = allow;
	assert_true(filter_allows(many, BPF_MAXINSNS, &input));
	assert_false(filter_allows(many, BPF_MAXINSNS + 1, &input));
	assert_false(filter_allows(many, 0, &input));
	assert_false(SAYS(LDI(1)));
	assert_false(SAYS(EQUAL(0, 0, 1), ALLOW));
	assert_false(SAYS(EQUAL(0, 255, 0), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_JMP | BPF_JA, 1), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_JMP | BPF_JA, 0)));
	assert_false(SAYS(LOAD(64), ALLOW));
	assert_false(SAYS(LOAD(2), ALLOW));
	assert_false(SAYS(LOAD(0xfffffffc), ALLOW));
	assert_false(SAYS(LDI(5), ALU_K(BPF_DIV, 0), ALLOW));
	assert_false(SAYS(LDI(5), ALU_X(BPF_DIV), ALLOW));
	assert_false(SAYS(LOAD(16), BPF_STMT(BPF_MISC | BPF_TAX, 0), LDI(5), ALU_X(BPF_DIV), ALLOW));
	assert_false(SAYS(LDI(5), ALU_K(BPF_MOD, 3), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_ST, 16), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_LD | BPF_MEM, 16), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), ALLOW));
	assert_false(SAYS(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW));
	assert_false(SAYS({BPF_JMP | 0x50, 0, 0, 0}, ALLOW));
	assert_false(SAYS({0x115, 0, 0, 0}, ALLOW));
	assert_false(SAYS({0x104, 0, 0, 0}, ALLOW));
	assert_false(SAYS({0xffff, 0, 0, 0}, ALLOW));
}

/* -- random programs -- */

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33);
}

static struct sock_filter random_insn(uint64_t *seed, uint32_t left)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_IMM,
		BPF_LDX | BPF_IMM, BPF_LD | BPF_W | BPF_LEN, BPF_LDX | BPF_W | BPF_LEN,
		BPF_ST, BPF_STX, BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM, BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA, BPF_ALU | BPF_ADD | BPF_K, BPF_ALU | BPF_SUB | BPF_X,
		BPF_ALU | BPF_MUL | BPF_K, BPF_ALU | BPF_DIV | BPF_X, BPF_ALU | BPF_AND | BPF_K,
		BPF_ALU | BPF_OR | BPF_X, BPF_ALU | BPF_XOR | BPF_K, BPF_ALU | BPF_LSH | BPF_X,
		BPF_ALU | BPF_RSH | BPF_K, BPF_ALU | BPF_NEG, BPF_RET | BPF_K, BPF_JMP | BPF_JA,
		BPF_JMP | BPF_JEQ | BPF_K, BPF_JMP | BPF_JGT | BPF_X, BPF_JMP | BPF_JGE | BPF_K,
		BPF_JMP | BPF_JSET | BPF_K, BPF_JMP | BPF_JEQ | BPF_X,
	};
	static const uint32_t values[] = {0, 1, 4, 5, 16, 40, SYS_getppid, 0x7fffffff, 0xffffffff};
	struct sock_filter insn = {codes[random_next(seed) % COUNT(codes)], 0, 0, 0};
	insn.k = values[random_next(seed) % COUNT(values)];
	if (BPF_CLASS(insn.code) == BPF_JMP) {
		insn.jt = (uint8_t)(random_next(seed) % 4 % left);
		insn.jf = (uint8_t)(random_next(seed) % 4 % left);
		if (insn.code == (BPF_JMP | BPF_JA))
			insn.k = insn.jt;
	} else if (insn.code == (BPF_LD | BPF_W | BPF_ABS)) {
		insn.k = random_next(seed) % 16 * 4;
	} else if (insn.code == BPF_ST || insn.code == BPF_STX || BPF_MODE(insn.code) == BPF_MEM) {
		insn.k %= 16;
	} else if (insn.code == (BPF_RET | BPF_K)) {
		insn.k = random_next(seed) % 2 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | 7;
	}
	return insn;
}

#define HEAD 3
#define MOST 16

/* A program that allows all calls but getppid, for which it does something at random. */
static size_t random_program(uint64_t *seed, struct sock_filter code[HEAD + MOST])
{
	const struct sock_filter head[HEAD] = {LOAD(AT(nr)), EQUAL(SYS_getppid, 1, 0), ALLOW},
				 end = ALLOW;
	size_t count = 2 + random_next(seed) % (MOST - 2);
	memcpy(code, head, sizeof(head));
	for (size_t i = 0; i < count - 1; i++)
		code[HEAD + i] = random_insn(seed, (uint32_t)(count - i - 1));
	code[HEAD + count - 1] = end;
	return HEAD + count;
}

enum answer { NOT_VALID = 2 };

/* The kernel's answer to getppid: 0 = it was allowed. */
static int ask_kernel(struct sock_filter *code, size_t count)
{
	const struct sock_fprog program = {(unsigned short)count, code};
	int status = -1;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			_exit(NOT_VALID);
		_exit(syscall(SYS_getppid, 1, 2, 3, 4, 5, 6) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What is allowed here is allowed by the kernel; the reverse need not be so, but mostly is. */
static void test_as_the_kernel(void **state)
{
	uint64_t seed = 1;
	unsigned both = 0, kernel_only = 0, refused = 0;
	struct filter_input input = {.word = {SYS_getppid, AUDIT_ARCH_X86_64}, .known = 0xfff3};
	for (unsigned i = 1; i <= 6; i++)
		input.word[2 + 2 * i] = i;
	for (int i = 0; i < 1000; i++) {
		struct sock_filter code[HEAD + MOST];
		size_t count = random_program(&seed, code);
		int answer = ask_kernel(code, count);
		bool is_allowed = filter_allows(code, count, &input);
		both += is_allowed && answer == 0;
		kernel_only += !is_allowed && answer == 0;
		refused += !is_allowed && answer == 1;
		if (is_allowed && answer == 1)
			fail_msg("program %d is not allowed by the kernel", i);
	}
	assert_true(both > 100 && refused > 100 && kernel_only < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),   cmocka_unit_test(test_tree),
		cmocka_unit_test(test_actions),    cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_not_valid),  cmocka_unit_test(test_as_the_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
