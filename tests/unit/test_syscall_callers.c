/*
 * Numbers of system calls that come from callers: functions of this program, which are
 * found in its file. Each row says which numbers its function may call by; those without
 * any have one doubt each, and nothing else that would hinder the proof.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracee/syscalls/syscall_sites.h"

#define PROOF_FUNCTION(name, body)                                              \
	__asm__(".text\n.balign 16\n.type " #name ",@function\n" #name ":\n"    \
		".cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", .-" #name "\n")
#define BY_REGISTER "mov %rsi, %rax; syscall; ret"
#define BY_STACK "push %rbx; mov 0x10(%rsp), %rax; syscall; pop %rbx; ret"

/* not a round address: numbers that occur in the program anyway (1 MiB) would look like theirs */
__asm__(".text\n.balign 4096\n.skip 0x5c5, 0xcc\n");
PROOF_FUNCTION(proof_begin, "ret");
PROOF_FUNCTION(by_register, BY_REGISTER);
PROOF_FUNCTION(by_register_1, "xor %esi, %esi; call by_register; ret");
PROOF_FUNCTION(by_register_2, "mov $9, %esi; test %edi, %edi; je by_register; mov $11, %esi; jmp by_register");
PROOF_FUNCTION(by_stack, BY_STACK);
PROOF_FUNCTION(by_stack_on, "sub $0x10, %rsp; push 0x18(%rsp); call by_stack; pop %rdx; pop %rcx;"
			    "cmp $-4096, %rax; ja 1f; add $8, %rsp; ret; .balign 8; 1: add $8, %rsp; ret");
PROOF_FUNCTION(by_stack_1, "push $1; call by_stack_on; pop %rdx; ret");
PROOF_FUNCTION(by_stack_2, "sub $8, %rsp; movq $3, (%rsp); call by_stack; add $8, %rsp; ret");
PROOF_FUNCTION(by_stack_3, "push %rsi; push $12; push %rdi; pop %rdi; call by_stack; pop %rdx; pop %rdx; ret");
/* as glibc's futex: an error ends in a call that does not return, with a larger frame */
PROOF_FUNCTION(by_stack_4, "cmp %rdi, %rsi; jne 2f; 1: push $202; call by_stack; pop %rcx; ret; 3: push %rax;"
			   "call abort; .balign 16; 2: cmp %edi, %edi; jne 3b; jmp 1b");
PROOF_FUNCTION(by_itself, "test %edi, %edi; je 1f; call by_itself; ret; 1: mov %esi, %eax; syscall; ret");
PROOF_FUNCTION(by_itself_1, "mov $39, %esi; jmp by_itself");
PROOF_FUNCTION(compared, BY_REGISTER);
PROOF_FUNCTION(compared_1, "mov $4, %esi; cmp compared@GOTPCREL(%rip), %rdi; jb 1f; call compared; 1: ret");

PROOF_FUNCTION(taken, BY_REGISTER);
PROOF_FUNCTION(taken_1, "mov $5, %esi; call taken; lea taken(%rip), %rax; ret");
PROOF_FUNCTION(in_got, BY_REGISTER);
PROOF_FUNCTION(in_got_1, "mov $5, %esi; call in_got; mov in_got@GOTPCREL(%rip), %r9; movq %r9, %xmm0; ret");
PROOF_FUNCTION(in_table, BY_REGISTER);
PROOF_FUNCTION(in_table_1, "mov $5, %esi; jmp in_table");
__asm__(".data\n.balign 8\n.quad in_table\n.long 0\n.quad in_packed + 3\n.text\n");
PROOF_FUNCTION(in_packed, BY_REGISTER);
PROOF_FUNCTION(in_packed_1, "mov $5, %esi; jmp in_packed");
PROOF_FUNCTION(in_distance, BY_REGISTER);
PROOF_FUNCTION(in_distance_1, "mov $5, %esi; jmp in_distance");
__asm__(".section .rodata\n.balign 4\n.long in_distance - .\n.text\n");
PROOF_FUNCTION(entered, "mov %rsi, %rax; entered_middle: syscall; ret");
PROOF_FUNCTION(entered_1, "mov $5, %esi; call entered; test %eax, %eax; jne entered_middle; ret");
PROOF_FUNCTION(runs_on, "mov $5, %esi; call run_into; mov $9, %esi");
PROOF_FUNCTION(run_into, BY_REGISTER);
/* adjacent, and no byte of it looks like a branch: only its end distinguishes it */
PROOF_FUNCTION(falls_into, "mov $0x7f000003, %esi; mov $0x7f000003, %edi; mov $0x7f000003, %edx; nop");
PROOF_FUNCTION(fallen_into, BY_REGISTER);
PROOF_FUNCTION(fallen_into_1, "mov $5, %esi; jmp fallen_into");
PROOF_FUNCTION(changed, BY_REGISTER);
PROOF_FUNCTION(changed_1, "mov $5, %esi; mov (%rdi), %sil; jmp changed");
PROOF_FUNCTION(changed_inside, "mov $7, %esi; mov (%rdi), %esi; " BY_REGISTER);
PROOF_FUNCTION(changed_inside_1, "mov $5, %esi; jmp changed_inside");
PROOF_FUNCTION(written, BY_STACK);
PROOF_FUNCTION(written_1, "push $5; mov %rsi, (%rdi); call written; pop %rdx; ret");
PROOF_FUNCTION(overwritten, BY_STACK);
PROOF_FUNCTION(overwritten_1, "push $5; movw %si, 4(%rsp); call overwritten; pop %rdx; ret");
PROOF_FUNCTION(written_inside, "mov %rsi, (%rdi); mov 8(%rsp), %rax; syscall; ret");
PROOF_FUNCTION(written_inside_1, "push $5; call written_inside; pop %rdx; ret");
PROOF_FUNCTION(called_over, BY_STACK);
PROOF_FUNCTION(called_over_1, "push $5; call proof_begin; call called_over; pop %rdx; ret");
PROOF_FUNCTION(moved, BY_STACK);
PROOF_FUNCTION(moved_1, "push %rbp; mov %rsp, %rbp; push $5; and $-16, %rsp; call moved; leave; ret");
PROOF_FUNCTION(from_table, BY_REGISTER);
PROOF_FUNCTION(from_table_1, "mov $5, %esi; jmp *(%rdi,%rax,8); call from_table; ret");
PROOF_FUNCTION(handed_on, BY_REGISTER);
PROOF_FUNCTION(handed_on_1, "mov %rdi, %rsi; jmp handed_on"); /* whose own callers are unknown */
PROOF_FUNCTION(handed_on_2, "lea handed_on_1(%rip), %rax; ret");
PROOF_FUNCTION(jumped_back, BY_REGISTER);
PROOF_FUNCTION(jumped_back_1, "mov $5, %esi; jumped_back_middle: nop; call jumped_back; ret");
PROOF_FUNCTION(jumped_back_2, "mov %rdx, %rsi; jmp jumped_back_middle");
PROOF_FUNCTION(proof_end, "ret");

struct proof {
	const char *name;
	int32_t number[4];
	size_t count;      /* 0: not known */
};

static const struct proof proofs[] = {
	{"by_register", {0, 9, 11}, 3}, {"by_stack", {1, 3, 12, 202}, 4}, {"by_itself", {39}, 1}, {"compared", {4}, 1},
	{.name = "taken"}, {.name = "in_got"}, {.name = "in_table"}, {.name = "in_packed"}, {.name = "in_distance"},
	{.name = "entered"}, {.name = "run_into"}, {.name = "fallen_into"}, {.name = "changed"},
	{.name = "changed_inside"}, {.name = "written"},
	{.name = "overwritten"}, {.name = "written_inside"}, {.name = "called_over"}, {.name = "moved"},
	{.name = "from_table"}, {.name = "handed_on"}, {.name = "jumped_back"},
};

struct wanted_proof {
	const struct proof *proof;
	const struct syscall_sites *sites;
	const struct syscall_site *site;
};

static int look_for_proof(void *ctx, const struct elf_symbol *sym)
{
	struct wanted_proof *w = ctx;

	if (strcmp(sym->name, w->proof->name) != 0)
		return 0;
	for (size_t i = 0; i < w->sites->list.count; i++) {
		if (w->sites->list.data[i].vaddr - sym->vaddr < sym->size)
			w->site = &w->sites->list.data[i];
	}
	return 1;
}

static bool has_number(const struct wanted_proof *w, int32_t number)
{
	for (size_t i = 0; i < w->site->count; i++) {
		if (w->sites->numbers.data[w->site->first + i] == number)
			return true;
	}
	return false;
}

static bool is_number(const void *number, long asked)
{
	return asked == *(const long *)number;
}

static void check_proof(const struct syscall_sites *sites, const struct proof *p)
{
	struct wanted_proof w = {.proof = p, .sites = sites};
	struct elf_file *file = NULL;
	const long other = 777;

	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	elf_file_each_symbol(file, look_for_proof, &w);
	elf_file_release(file);
	if (!w.site)
		fail_msg("%s has no system call", p->name);
	if (w.site->number != ARCH_SYSCALL_ANY || w.site->count != p->count)
		fail_msg("%s: %zu numbers instead of %zu", p->name, w.site->count, p->count);
	for (size_t i = 0; i < p->count; i++) {
		const long number = p->number[i];
		if (!has_number(&w, p->number[i]))
			fail_msg("%s: not number %d", p->name, p->number[i]);
		assert_true(syscall_site_may_call(sites, w.site, is_number, &number));
	}
	assert_int_equal(syscall_site_may_call(sites, w.site, is_number, &other), p->count == 0);
}

static void test_numbers_from_callers(void **state)
{
	struct elf_file *file = NULL;
	struct syscall_sites sites;

	(void)state;
	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	syscall_sites_find(arch_native, file, &sites);
	for (size_t i = 0; i < ARRAY_SIZE(proofs); i++)
		check_proof(&sites, &proofs[i]);
	syscall_sites_deinit(&sites);
	elf_file_release(file);
}

/* -- descriptions of frames -- */

static uint8_t *read_self(size_t *size_out)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	uint8_t *bytes = NULL;

	assert_non_null(f);
	for (size_t room = *size_out = 0; room == *size_out; room += 1 << 20) {
		assert_non_null(bytes = realloc(bytes, room + (1 << 20)));
		*size_out += fread(bytes + room, 1, 1 << 20, f);
	}
	fclose(f);
	return bytes;
}

struct found_symbol {
	const char *name;
	uint64_t vaddr;
};

static int find_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct found_symbol *s = ctx;

	s->vaddr = strcmp(sym->name, s->name) == 0 ? sym->vaddr : s->vaddr;
	return 0;
}

/* How many numbers by_register has if @word of the last FDE of this program leads to its start. */
static size_t numbers_with(unsigned word)
{
	const struct proof *p = &proofs[0];
	struct found_symbol start = {.name = p->name};
	struct wanted_proof w = {.proof = p};
	struct elf_file *file;
	struct syscall_sites sites;
	GElf_Shdr frames;
	size_t size, last = 0;
	uint8_t *bytes = read_self(&size);
	uint32_t length;
	char path[40];

	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	elf_file_each_symbol(file, find_symbol, &start);
	assert_true(start.vaddr && elf_file_section(file->elf, ".eh_frame", &frames));
	elf_file_release(file);
	for (size_t i = 0; memcpy(&length, bytes + frames.sh_offset + i, 4) && length; i += 4 + length)
		last = i;
	uint32_t distance = (uint32_t)(start.vaddr - (frames.sh_addr + last + 4 * word));
	memcpy(bytes + frames.sh_offset + last + (size_t)4 * word, &distance, sizeof(distance));

	int fd = memfd_create("changed", 0);
	assert_int_equal(write(fd, bytes, size), size);
	free(bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(elf_file_open(NULL, path, NULL, &file), 0);
	close(fd);
	syscall_sites_find(arch_native, file, &sites);
	w.sites = &sites;
	elf_file_each_symbol(file, look_for_proof, &w);
	assert_non_null(w.site);
	size_t count = w.site->count;
	syscall_sites_deinit(&sites);
	elf_file_release(file);
	return count;
}

/* lld puts the frames before the text, so that distances back to a CIE lead to functions. */
static void test_frames(void **state)
{
	(void)state;
	assert_int_equal(numbers_with(1), proofs[0].count); /* of the CIE */
	assert_int_equal(numbers_with(2), 0); /* the function it describes, a second time */
	assert_int_equal(numbers_with(4), 0); /* its instructions */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_from_callers),
		cmocka_unit_test(test_frames),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
