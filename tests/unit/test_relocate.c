/*
 * Moved instructions and tier 1's stubs: executed in this process, where they
 * must compute what the originals compute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/arch.h"

#define STUB_ROOM 96

typedef uint64_t (*function)(uint64_t a, uint64_t b);

/*
 * Functions that begin as allocators do; the label NAME_end is after each.
 * Branches whose length matters are spelled as bytes: assemblers choose differently.
 */
#define ASM_FUNCTION(name, body)                                                 \
	__asm__(".text\n.balign 16\n" #name ":\n" body "\n" #name "_end:\nnop\n"); \
	uint64_t name(uint64_t a, uint64_t b);                                   \
	extern const uint8_t name##_end[]

uint64_t table_word = 77;
uint64_t callee(uint64_t a, uint64_t b);
uint64_t callee(uint64_t a, uint64_t b)
{
	return a * 3 + b;
}
function callee_pointer = callee;

ASM_FUNCTION(f_push, "push %rbp\npush %rbx\nmov %rdi,%rbx\nlea (%rbx,%rsi,2),%rax\npop %rbx\npop %rbp\nret");
ASM_FUNCTION(f_sub, "sub $0x18,%rsp\nmov %rdi,8(%rsp)\nadd %rsi,8(%rsp)\nmov 8(%rsp),%rax\nadd $0x18,%rsp\nret");
ASM_FUNCTION(f_test_near,
	     "test %rdi,%rdi\n.byte 0x0f,0x84\n.long 1f-.-4\nlea 5(%rsi),%rax\nret\n1: lea 9(%rsi),%rax\nret");
ASM_FUNCTION(f_test_short, "test %rdi,%rdi\n.byte 0x74,1f-.-1\nlea 5(%rsi),%rax\nret\n1: lea 9(%rsi),%rax\nret");
ASM_FUNCTION(f_rip_compare, "cmpq $77,table_word(%rip)\nmov $1,%eax\nje 1f\nret\n1: add %rdi,%rax\nret");
ASM_FUNCTION(f_rip_load, "mov table_word(%rip),%rax\nadd %rdi,%rax\nret");
ASM_FUNCTION(f_mul, "mov %rsi,%rax\nmul %rdi\nmov %rax,%rsi\njo 1f\nlea 1(%rsi),%rax\nret\n1: xor %eax,%eax\nret");
ASM_FUNCTION(f_endbr, "endbr64\npush %rbx\nmov %rdi,%rbx\nlea 3(%rbx,%rsi),%rax\npop %rbx\nret");
ASM_FUNCTION(f_endbr_jump, "endbr64\n.byte 0xe9\n.long callee-.-4\n");
ASM_FUNCTION(f_jump_near, ".byte 0xe9\n.long callee-.-4\n");
ASM_FUNCTION(f_jump_short, ".byte 0xeb,1f-.-1\nret\nnop\nnop\nnop\n1: lea (%rdi,%rsi),%rax\nret");
ASM_FUNCTION(f_jump_indirect, "jmp *callee_pointer(%rip)");
ASM_FUNCTION(f_call, "sub $8,%rsp\ncall callee\nadd $8,%rsp\nadd $1,%rax\nret");
ASM_FUNCTION(f_call_indirect, "sub $8,%rsp\ncall *callee_pointer(%rip)\nadd $8,%rsp\nadd $2,%rax\nret");
ASM_FUNCTION(f_endbr_call, "endbr64\nsub $8,%rsp\ncall callee\nadd $8,%rsp\nadd $3,%rax\nret");
ASM_FUNCTION(f_loop, "lea 1(%rdi),%rax\n1: add $2,%rax\ndec %rsi\njnz 1b\nret");
ASM_FUNCTION(f_to_entry, "lea (%rdi,%rdi),%rdi\ndec %rsi\njg f_to_entry\nmov %rdi,%rax\nret");
ASM_FUNCTION(f_short, "lea (%rdi,%rsi),%rax\nret");
ASM_FUNCTION(f_shorter, "push %rdi\npop %rax\nret");

struct known {
	const char *name;
	function fn;
	const uint8_t *end;
	uint32_t skipped, moved; /* bytes before the patch, bytes displaced */
	bool pushes_return;
};

#define KNOWN(name, ...) { #name, name, name##_end, __VA_ARGS__ }
static const struct known known[] = {
	KNOWN(f_push, 0, 5, false),
	KNOWN(f_sub, 0, 9, false),
	KNOWN(f_test_near, 0, 9, false),
	KNOWN(f_test_short, 0, 5, false),
	KNOWN(f_rip_compare, 0, 8, false),
	KNOWN(f_rip_load, 0, 7, false),
	KNOWN(f_mul, 0, 6, false),
	KNOWN(f_endbr, 4, 9, false),
	KNOWN(f_endbr_jump, 4, 5, false),
	KNOWN(f_jump_near, 0, 5, false),
	KNOWN(f_jump_short, 0, 2, false),
	KNOWN(f_jump_indirect, 0, 6, false),
	KNOWN(f_call, 0, 9, true),
	KNOWN(f_call_indirect, 0, 10, true),
	KNOWN(f_endbr_call, 0, 8, false), /* over the endbr64 rather than over the call */
	KNOWN(f_loop, 0, 4, false),       /* the target of the loop's branch is 4 */
	KNOWN(f_to_entry, 0, 7, false),
	KNOWN(f_short, 0, 5, false),
	KNOWN(f_shorter, 0, 1, false),    /* pop is not on the list */
};

/* A page that can be written and run, near this program's text. */
static uint8_t *code_page(void)
{
	uintptr_t text = (uintptr_t)callee;
	for (uintptr_t at = ROUND_DOWN(text, 0x10000) + 0x2000000; at < text + 0x60000000; at += 0x1000000) {
		void *p = mmap((void *)at, 0x10000, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (p != MAP_FAILED)
			return p;
	}
	fail_msg("no room near the text");
	return NULL;
}

static function as_function(taddr_t at)
{
	return (function)(uintptr_t)at; // NOLINT: code made at run time
}

static void compare(const struct known *k, function moved)
{
	static const uint64_t values[] = { 0, 1, 7, 1ull << 40, ~0ull };
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (uint64_t b = 1; b < 9; b++)
			if (k->fn(values[i], b) != moved(values[i], b))
				fail_msg("%s(%#llx, %llu) differs", k->name, (unsigned long long)values[i],
					 (unsigned long long)b);
}

static void test_stub_runs(void **state)
{
	uint8_t *page = code_page();
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct known *k = &known[i];
		const uint8_t *code = (const uint8_t *)(uintptr_t)k->fn;
		uint8_t *at = page + i * STUB_ROOM;
		struct arch_stub stub;
		struct arch_move m = {code, (size_t)(k->end - code), (taddr_t)code, (taddr_t)at,
				      .out = at, .out_size = STUB_ROOM};
		if (arch_native->make_stub(&m, &stub) != 0)
			fail_msg("%s: %s", k->name, m.why);
		if (stub.moved != k->moved || stub.patch != (taddr_t)code + k->skipped)
			fail_msg("%s: %u bytes displaced at +%u", k->name, stub.moved,
				 (unsigned)(stub.patch - (taddr_t)code));
		assert_int_equal(stub.pushes_return, k->pushes_return);
		assert_true(stub.size <= STUB_ROOM);
		compare(k, as_function(stub.jump));
		assert_int_equal(at[stub.trap - stub.call], arch_native->trap[0]);
		memcpy(&at[stub.trap - stub.call], arch_native->nop_insn, arch_native->trap_size);
		compare(k, as_function(stub.call));
	}
	munmap(page, 0x10000);
}

/* As the tracer patches: the displaced bytes are replaced by a jump to the moved ones. */
static void test_patched_original_runs(void **state)
{
	uint8_t *page = code_page();
	uint8_t *moved = page + 0x8000;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct known *k = &known[i];
		const uint8_t *code = (const uint8_t *)(uintptr_t)k->fn;
		size_t size = (size_t)(k->end - code);
		struct arch_stub stub;
		struct arch_move m = {page, size, (taddr_t)page, (taddr_t)moved, .out = moved, .out_size = STUB_ROOM};
		if (k->moved < 5 || k->fn == f_endbr_jump || strstr(k->name, "rip") || strstr(k->name, "call") ||
		    strstr(k->name, "jump"))
			continue; /* those that refer to outside addresses cannot be copied unchanged */
		memcpy(page, code, size);
		assert_int_equal(arch_native->make_stub(&m, &stub), 0);
		int32_t distance = (int32_t)(stub.jump - (stub.patch + 5));
		uint8_t *patch = page + (stub.patch - (taddr_t)page);
		memset(patch, 0xcc, stub.moved);
		patch[0] = 0xe9;
		memcpy(patch + 1, &distance, 4);
		compare(k, as_function((taddr_t)page));
	}
	munmap(page, 0x10000);
}

static int relocate(const uint8_t *code, size_t size, taddr_t to, size_t min, const char **why)
{
	uint8_t out[128];
	struct arch_move m = {code, size, 0x10000, to, min, .out = out, .out_size = sizeof(out)};
	int rc = arch_native->relocate(&m);
	*why = m.why;
	return rc;
}

static void test_refused(void **state)
{
	static const struct { uint8_t code[16]; size_t size; } bad[] = {
		{ { 0xe2, 0xfe }, 2 },                         /* loop */
		{ { 0xe3, 0x10 }, 2 },                         /* jrcxz */
		{ { 0xc7, 0xf8, 0x10, 0, 0, 0 }, 6 },          /* xbegin */
		{ { 0xcc }, 1 },                               /* int3 */
		{ { 0x0f, 0x05 }, 2 },                         /* syscall */
		{ { 0xf4 }, 1 },                               /* hlt */
		{ { 0x58 }, 1 },                               /* pop rax: the return address */
		{ { 0xc2, 0x08, 0x00 }, 3 },                   /* ret 8 */
		{ { 0x90, 0x90, 0xc3, 0x90, 0x90 }, 5 },       /* ret, then more */
		{ { 0xeb, 0x10, 0x90, 0x90, 0x90 }, 5 },       /* jmp, then more */
		{ { 0x90, 0x74, 0x01, 0x90, 0x90, 0x90 }, 6 }, /* je into the displaced bytes */
		{ { 0x48, 0x8b, 0x05 }, 3 },                   /* cut off */
		{ { 0x66, 0xe9, 0x10, 0x00 }, 4 },             /* 16-bit jump */
		{ { 0x67, 0x8b, 0x05, 0, 0, 0, 0 }, 7 },       /* mov eax, [eip+0] */
		{ { 0xff, 0xd0, 0x90, 0x90, 0x90 }, 5 },       /* call *rax */
		{ { 0x06 }, 1 },                               /* no valid instruction */
	};
	const char *why;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (relocate(bad[i].code, bad[i].size, 0x20000, 5, &why) != -ENOTSUP || !why)
			fail_msg("case %zu was not refused", i);
	}
	static const uint8_t ok[] = { 0x48, 0x8b, 0x05, 0, 0, 0, 0 };
	assert_int_equal(relocate(ok, sizeof(ok), 0x20000, 5, &why), 0);
	assert_int_equal(relocate(ok, sizeof(ok), 0x20000 + (1ull << 31), 5, &why), -ENOTSUP);
	static const uint8_t jump[] = { 0xe9, 0, 0, 0, 0 };
	assert_int_equal(relocate(jump, sizeof(jump), 0x10000 + (1ull << 32), 5, &why), -ENOTSUP);
	static const uint8_t nothing[1] = { 0 };
	assert_int_equal(relocate(nothing, 0, 0x20000, 5, &why), -ENOTSUP);
}

static void test_out_too_small(void **state)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)f_push;
	for (size_t room = 0; room < 18; room++) {
		uint8_t out[STUB_ROOM];
		struct arch_stub stub = { .size = 12345 };
		struct arch_move m = {code, 16, (taddr_t)code, (taddr_t)code + 0x1000,
				      .out = out, .out_size = room < 14 ? room : 13};
		memset(out, 0xaa, sizeof(out));
		assert_int_equal(arch_native->make_stub(&m, &stub), -ENOTSUP);
		assert_non_null(m.why);
		assert_int_equal(stub.size, 12345);
		for (size_t i = room; i < sizeof(out); i++)
			assert_int_equal(out[i], 0xaa);
	}
}

static void test_unwind_regs(void **state)
{
	struct arch_regs regs;
	struct arch_unwind_regs out;
	for (size_t i = 0; i < ARCH_REG_WORDS; i++)
		regs.word[i] = 100 + i;
	arch_unwind_regs(arch_native, &regs, &out);
	assert_int_equal(out.reg[arch_native->dwarf_pc], regs.word[arch_native->pc]);
	assert_int_equal(out.reg[arch_native->dwarf_sp], regs.word[arch_native->sp]);
	assert_int_equal(out.reg[arch_native->dwarf_fp], regs.word[arch_native->fp]);
	assert_int_equal(out.reg[0], 100 + 10); /* rax: the eleventh word of user_regs_struct */
	assert_int_equal(out.reg[3], 100 + 5);  /* rbx */
	assert_int_equal(out.reg[15], 100 + 0); /* r15 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stub_runs),
		cmocka_unit_test(test_patched_original_runs),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_out_too_small),
		cmocka_unit_test(test_unwind_regs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
