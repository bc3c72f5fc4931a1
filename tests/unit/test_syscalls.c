/*
 * System call instructions and their numbers: in code written for it, and in the
 * C library, where the functions that make them are known by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracee/os/maps.h"
#include "tracee/syscalls/syscall_sites.h"

#define ASM_FUNCTION(name, body)                                              \
	__asm__(".text\n.balign 16\n" #name ":\n" body "\n" #name "_end:\nnop\n"); \
	extern const uint8_t name[], name##_end[]

ASM_FUNCTION(code_plain, "mov $9, %eax; mov %rcx, %r10; syscall; ret");
ASM_FUNCTION(code_zero, "xor %eax, %eax; syscall; ret");
ASM_FUNCTION(code_long, "mov $0xf, %rax; syscall; ret");
ASM_FUNCTION(code_copied, "mov $202, %r9d; 1: mov %r9d, %eax; syscall; test %rax, %rax; jne 1b; ret");
ASM_FUNCTION(code_over_call, "mov $12, %ebp; call code_zero; mov %ebp, %eax; syscall; ret");
ASM_FUNCTION(code_lost_in_call, "mov $12, %edx; call code_zero; mov %edx, %eax; syscall; ret");
ASM_FUNCTION(code_argument, "mov %rdi, %rax; syscall; ret");
ASM_FUNCTION(code_memory, "mov $9, %eax; mov (%rdi), %eax; syscall; ret");
ASM_FUNCTION(code_two_ways, "mov $9, %eax; test %edi, %edi; je 1f; mov $11, %eax; 1: syscall; ret");
ASM_FUNCTION(code_same_ways, "mov $9, %eax; test %edi, %edi; je 1f; mov $9, %eax; 1: syscall; ret");
ASM_FUNCTION(code_part, "mov $9, %eax; mov %dil, %al; syscall; ret");
ASM_FUNCTION(code_loop, "mov $9, %eax; 1: syscall; dec %edi; jne 1b; ret"); /* 2nd time: a result */
ASM_FUNCTION(code_table, "mov $9, %eax; jmp *%rdx; mov $11, %eax; syscall; ret");
ASM_FUNCTION(code_entered, "mov $9, %eax; nop; syscall; ret");
ASM_FUNCTION(code_behind, "ret; mov $3, %eax; syscall; syscall; ret");
ASM_FUNCTION(code_inside, "mov $0x0000050f, %ecx; ret"); /* only looks like one */
ASM_FUNCTION(code_broken, ".byte 0x06; syscall");
ASM_FUNCTION(code_harmless, "syscall; .byte 0x06; ret");

static ssize_t find(const uint8_t *start, const uint8_t *end, struct arch_syscall *out)
{
	const struct arch_code code = {.bytes = start, .size = (size_t)(end - start), .at = (taddr_t)(uintptr_t)start};

	return arch_native->find_syscalls(&code, out, 8);
}

#define ASSERT_NUMBER(name, wanted)                                                      \
	do {                                                                             \
		struct arch_syscall one[8];                                              \
		assert_int_equal(find(name, name##_end, one), 1);                        \
		assert_memory_equal(name + one[0].offset, arch_native->syscall_insn, 2); \
		assert_int_equal(one[0].number, wanted);                                 \
	} while (0)

static void test_numbers(void **state)
{
	(void)state;
	ASSERT_NUMBER(code_plain, 9);
	ASSERT_NUMBER(code_zero, 0);
	ASSERT_NUMBER(code_long, 15);
	ASSERT_NUMBER(code_copied, 202);
	ASSERT_NUMBER(code_over_call, 12);
	ASSERT_NUMBER(code_same_ways, 9);
	ASSERT_NUMBER(code_harmless, ARCH_SYSCALL_ANY);
}

static void test_unknown_numbers(void **state)
{
	(void)state;
	ASSERT_NUMBER(code_lost_in_call, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_argument, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_memory, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_two_ways, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_part, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_loop, ARCH_SYSCALL_ANY);
	ASSERT_NUMBER(code_table, ARCH_SYSCALL_ANY);
}

ASM_FUNCTION(code_again, "test %edi, %edi; je 1f; ret; .balign 16; 1: jmp 2f; .balign 16; ret; 2: cmp $1, %esi; je 3f; "
			 "call code_zero; 3: jmp code_again");
ASM_FUNCTION(code_not_again, "test %edi, %edi; je code_not_again; call code_not_again; jmp *%rax; jmp code_not_again");
ASM_FUNCTION(code_then_another, "test %edi, %edi; je 1f; ret; 1: call code_zero; nop; jmp code_then_another");
ASM_FUNCTION(code_back_inside, "nop; 1: dec %edi; jne 1b; jmp 1b");
ASM_FUNCTION(code_elsewhere, "test %edi, %edi; je code_zero; ret");
ASM_FUNCTION(code_runs_out, "test %edi, %edi; je code_runs_out");

static void note_again(void *ctx, taddr_t at)
{
	taddr_t *found = ctx;

	assert_int_equal(*found, 0);
	*found = at;
}

static taddr_t find_again(const uint8_t *start, const uint8_t *end)
{
	const struct arch_code code = {.bytes = start, .size = (size_t)(end - start), .at = (taddr_t)(uintptr_t)start};
	taddr_t found = 0;

	arch_native->each_again(&code, 0, note_again, &found);
	return found;
}

/* Only unconditional jumps that are reached, not what follows a call that does not return. */
static void test_jumps_to_the_start(void **state)
{
	taddr_t found = find_again(code_again, code_again_end);

	(void)state;
	assert_true(found && found < (taddr_t)(uintptr_t)code_again_end);
	const uint8_t jump = *(const uint8_t *)(uintptr_t)found;
	assert_true(jump == 0xeb || jump == 0xe9); /* as the assembler chooses */
	assert_int_equal(find_again(code_not_again, code_not_again_end), 0);
	assert_int_equal(find_again(code_then_another, code_then_another_end), 0);
	assert_int_equal(find_again(code_back_inside, code_back_inside_end), 0);
}

static void ignore(void *ctx, taddr_t at)
{
	(void)ctx, (void)at;
}

static bool is_all_read(const uint8_t *start, const uint8_t *end)
{
	const struct arch_code code = {.bytes = start, .size = (size_t)(end - start), .at = (taddr_t)(uintptr_t)start};

	return arch_native->each_again(&code, 0, ignore, NULL);
}

/* What is behind the ends of the code may jump back to the start, too. */
static void test_code_that_leaves(void **state)
{
	(void)state;
	assert_true(is_all_read(code_again, code_again_end));
	assert_true(is_all_read(code_back_inside, code_back_inside_end));
	assert_false(is_all_read(code_again, code_again_end - 1));
	assert_false(is_all_read(code_elsewhere, code_elsewhere_end));
	assert_false(is_all_read(code_runs_out, code_runs_out_end));
}

/* A byte before the code, as the FDE of glibc's trampoline has: data read there is unrelated. */
ASM_FUNCTION(code_return, ".byte 0; mov $15, %rax; syscall");
ASM_FUNCTION(code_short_return, ".byte 0; mov $15, %eax; syscall");
ASM_FUNCTION(code_return_inside, "jmp *%rdx; mov $15, %eax; syscall");
ASM_FUNCTION(code_no_return, "jmp *%rdx; mov $15, %eax; 1: syscall; mov $9, %eax; jmp 1b");

static void test_returns_from_handlers(void **state)
{
	(void)state;
	ASSERT_NUMBER(code_return, SYS_rt_sigreturn);
	ASSERT_NUMBER(code_short_return, SYS_rt_sigreturn);
	ASSERT_NUMBER(code_return_inside, SYS_rt_sigreturn);
	ASSERT_NUMBER(code_no_return, ARCH_SYSCALL_ANY);
}

static void test_entered_from_elsewhere(void **state)
{
	const uint32_t entry = 5; /* after the number */
	const struct arch_code code = {.bytes = code_entered, .size = (size_t)(code_entered_end - code_entered),
				       .entry = &entry, .entry_count = 1};
	struct arch_syscall found;

	(void)state;
	ASSERT_NUMBER(code_entered, 9);
	assert_int_equal(arch_native->find_syscalls(&code, &found, 1), 1);
	assert_int_equal(found.number, ARCH_SYSCALL_ANY);
}

static void test_no_way_leads_there(void **state)
{
	struct arch_syscall found[8];

	(void)state;
	assert_int_equal(find(code_behind, code_behind_end, found), 2);
	assert_int_equal(found[0].number, 3);
	assert_int_equal(found[1].number, ARCH_SYSCALL_ANY);
}

static void test_what_only_looks_like_one(void **state)
{
	struct arch_syscall found[8];

	(void)state;
	assert_int_equal(find(code_inside, code_inside_end, found), 0);
	assert_int_equal(find(code_broken, code_broken_end, found), -EILSEQ);
}

ASM_FUNCTION(code_behind_data, ".fill 40, 1, 0x06; .rept 15; mov %rcx, %r10; xor %r9d, %r9d; nop; .endr; mov $9, %eax; syscall; ret");
ASM_FUNCTION(code_around, ".fill 8, 1, 0x06; .rept 40; mov $0x0000050f, %ecx; .endr; ret");
ASM_FUNCTION(code_data, ".rept 24; .quad 0x06061f1e06050f06; .endr");
ASM_FUNCTION(code_at_once, "syscall; .byte 0x06");

static bool is_last_likely(const uint8_t *start, const uint8_t *end)
{
	const struct arch_code code = {.bytes = start, .size = (size_t)(end - start)};
	const uint8_t *p = end;

	/* the last one: enough code precedes it for a decision */
	while (memcmp(--p, arch_native->syscall_insn, arch_native->syscall_insn_size) != 0)
		;
	return arch_native->is_likely_syscall(&code, (size_t)(p - start));
}

static void test_what_is_likely_one(void **state)
{
	(void)state;
	assert_true(is_last_likely(code_behind_data, code_behind_data_end));
	assert_true(is_last_likely(code_at_once, code_at_once_end));
	assert_false(is_last_likely(code_around, code_around_end));
	assert_false(is_last_likely(code_data, code_data_end));
}

ASM_FUNCTION(code_passes_broken, "mov $5, %esi; call code_zero; .byte 0x06; ret");

static void test_code_that_does_not_decode(void **state)
{
	const struct arch_code code = {.bytes = code_passes_broken,
				       .size = (size_t)(code_passes_broken_end - code_passes_broken),
				       .at = (taddr_t)(uintptr_t)code_passes_broken};
	const struct arch_value wanted = {.kind = ARCH_VALUE_REGISTER, .number = 6};
	struct arch_value out[2];
	taddr_t target = (taddr_t)(uintptr_t)code_zero;

	(void)state;
	assert_int_equal(arch_native->find_passed(&code, target, wanted, out, 2), -EILSEQ);
	assert_int_equal(arch_native->refers(&code, code.at, target, target + 4), -EILSEQ);
}

static struct elf_file *open_libc(void)
{
	struct elf_file *file = NULL;
	struct maps maps;

	assert_int_equal(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.list.count && !file; i++) {
		if (strstr(maps.list.data[i].path, "/libc.so.6") || strstr(maps.list.data[i].path, "/libc-"))
			assert_int_equal(elf_file_open(NULL, maps.list.data[i].path, NULL, &file), 0);
	}
	maps_deinit(&maps);
	return file;
}

struct wanted {
	const char *name;
	int number;
	const struct syscall_sites *sites;
	bool is_found;
};

static int look_for(void *ctx, const struct elf_symbol *sym)
{
	struct wanted *w = ctx;

	if (!sym->is_defined || strcmp(sym->name, w->name) != 0)
		return 0;
	for (size_t i = 0; i < w->sites->list.count; i++) {
		const struct syscall_site *site = &w->sites->list.data[i];
		if (site->vaddr - sym->vaddr < sym->size && site->number == w->number &&
		    site->count == 0)
			w->is_found = true;
	}
	return 1;
}

static void test_library(void **state)
{
	static const struct wanted all[] = {
		{.name = "mmap", .number = SYS_mmap}, {.name = "munmap", .number = SYS_munmap},
		{.name = "mremap", .number = SYS_mremap}, {.name = "brk", .number = SYS_brk},
		{.name = "shmat", .number = SYS_shmat}, {.name = "getpid", .number = SYS_getpid},
		{.name = "dup", .number = SYS_dup}, {.name = "syscall", .number = ARCH_SYSCALL_ANY},
	};
	struct elf_file *file = open_libc();
	struct syscall_sites sites;

	(void)state;
	if (!file)
		skip(); /* linked statically */
	syscall_sites_find(arch_native, file, &sites);
	assert_true(sites.is_whole);
	/* its trampoline has no name, and no other instruction makes this call */
	size_t returns = 0;
	for (size_t i = 0; i < sites.list.count; i++)
		returns += sites.list.data[i].number == SYS_rt_sigreturn;
	assert_int_equal(returns, 1);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct wanted w = all[i];
		w.sites = &sites;
		elf_file_each_symbol(file, look_for, &w);
		if (!w.is_found)
			fail_msg("%s has no system call of number %d", w.name, w.number);
	}
	syscall_sites_deinit(&sites);
	elf_file_release(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_unknown_numbers),
		cmocka_unit_test(test_returns_from_handlers),
		cmocka_unit_test(test_entered_from_elsewhere),
		cmocka_unit_test(test_no_way_leads_there),
		cmocka_unit_test(test_what_only_looks_like_one),
		cmocka_unit_test(test_what_is_likely_one),
		cmocka_unit_test(test_jumps_to_the_start),
		cmocka_unit_test(test_code_that_leaves),
		cmocka_unit_test(test_code_that_does_not_decode),
		cmocka_unit_test(test_library),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
