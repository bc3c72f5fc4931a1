/*
 * Functions of malloc's family by their code: images of programs whose functions refer to each other
 * as those of glibc, musl and jemalloc do, and the same with bytes changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "rounds.h"
#include "tracee/state/probe.h"
#include "tracee/state/static_malloc.h"

/* Code without relocations: it is copied into images, with its texts. */
#define IMAGE(name, body)                                                                     \
	__asm__(".text\n.balign 4096\n.globl " #name "\n" #name ":\n" body "\n.balign 64\n"   \
		".globl " #name "_end\n" #name "_end:\n.text\n");                             \
	extern const uint8_t name[], name##_end[]

#define FUNCTION(name, body) ".balign 16\n" name ":\n" body "\n"
#define TEXT(name, text) name ": .asciz \"" text "\"\n"

/* All are called by their numbers: functions end where the next begins. */
#define USER(names) ".balign 16\n.irp f, " names "\ncall \\f\n.endr\nret\n"

/* glibc: malloc and calloc reach int_malloc through others, as since 2.42, if TWO is "2". */
#define GLIBC(P, MALLOC, CALLOC, IN_CALLOC, EXTRA)                                            \
	USER(P "malloc, " P "free, " P "calloc, " P "realloc, " P "memalign, " P "posix, "    \
	     P "int_free, " P "munmap_chunk, " P "int_realloc, " P "int_malloc, "             \
	     P "int_memalign, " P "tcache_init, " P "fail, " P "last")                        \
	FUNCTION(P "munmap_chunk", "lea " P "t_chunk(%rip), %rdi; jmp " P "fail")             \
	FUNCTION(P "int_malloc", "push %rbx; lea " P "t_top(%rip), %rdi; call " P "fail; ret") \
	FUNCTION(P "int_free", "call " P "fail; call " P "munmap_chunk; ret")                 \
	FUNCTION(P "int_realloc", "lea " P "t_old(%rip), %rdi; call " P "int_malloc; "        \
				  "call " P "int_free; ret")                                  \
	FUNCTION(P "int_memalign", "call " P "int_malloc; call " P "int_free; ret")           \
	FUNCTION(P "tcache_init", "call " P "int_malloc; ret")                                \
	EXTRA                                                                                 \
	FUNCTION(P "malloc", "test %rdi, %rdi; jz 1f; call " MALLOC "; 1: call " P            \
			     "tcache_init; ret")                                              \
	FUNCTION(P "free", "call " P "tcache_init; jmp " P "int_free")                        \
	FUNCTION(P "realloc", "lea " P "t_pointer(%rip), %rdi; lea " P "t_realloc(%rip), %rax; " \
			      "call " P "malloc; call " P "int_realloc; call " P "free; "     \
			      "call " P "munmap_chunk; call " P "tcache_init; call " P        \
			      "int_free; ret")                                                \
	FUNCTION(P "memalign", "lea " P "t_memalign(%rip), %rax; call " P "int_memalign; "    \
			       "call " P "malloc; ret")                                       \
	FUNCTION(P "posix", "call " P "memalign; ret")                                        \
	FUNCTION(P "calloc", "mov %rdi, %rax; mul %rsi; call " CALLOC "; ret" IN_CALLOC)      \
	FUNCTION(P "fail", "hlt")                                                             \
	FUNCTION(P "last", "ret")                                                             \
	TEXT(P "t_top", "malloc(): corrupted top size")                                       \
	TEXT(P "t_chunk", "munmap_chunk(): invalid pointer")                                  \
	TEXT(P "t_old", "realloc(): invalid old size")                                        \
	TEXT(P "t_pointer", "realloc(): invalid pointer")                                     \
	TEXT(P "t_realloc", "__libc_realloc")                                                 \
	TEXT(P "t_memalign", "_mid_memalign")

IMAGE(glibc_old, GLIBC("o_", "o_int_malloc", "o_int_malloc", "; lea o_t_calloc(%rip), %rax", "")
	TEXT("o_t_calloc", "__libc_calloc"));
IMAGE(glibc_new, GLIBC("n_", "n_malloc2", "n_calloc2", "",
	FUNCTION("n_malloc2", "call n_int_malloc; ret")
	FUNCTION("n_calloc2", "lea n_t_calloc(%rip), %rax; call n_int_malloc; ret"))
	TEXT("n_t_calloc", "__libc_calloc2"));
/* Two functions refer to the same message: neither may be taken. */
IMAGE(glibc_twice, GLIBC("w_", "w_int_malloc", "w_int_malloc", "; lea w_t_calloc(%rip), %rax",
	FUNCTION("w_other", "lea w_t_top(%rip), %rax; ret")) "call w_other\n"
	TEXT("w_t_calloc", "__libc_calloc"));

IMAGE(musl, USER("m_malloc, m_free, m_calloc, m_realloc, m_aligned, m_inner_malloc, m_inner_free, "
		 "m_allzero, m_libc_malloc, m_memset, m_last")
	FUNCTION("m_libc_malloc", "jmp m_inner_malloc")
	FUNCTION("m_malloc", "endbr64; jmp m_inner_malloc")
	FUNCTION("m_free", "jmp m_inner_free")
	FUNCTION("m_realloc", "jmp m_inner_realloc")
	FUNCTION("m_calloc", "mov %rdi, %rax; mul %rsi; call m_malloc; call m_allzero; jmp m_memset")
	FUNCTION("m_aligned", "call m_inner_malloc; movb $0xe0, -3(%rax); ret")
	FUNCTION("m_inner_malloc", "cmp $0x1ffeb, %rdi; ja 1f; movb $0xe0, -3(%rax); 1: ret")
	FUNCTION("m_inner_free", "test %rdi, %rdi; jz 1f; movb $0xff, -3(%r10); 1: ret")
	FUNCTION("m_inner_realloc", "cmp $0x1ffeb, %rsi; call m_inner_malloc; call m_inner_free; ret")
	FUNCTION("m_allzero", "hlt; hlt; hlt; hlt; hlt; hlt; ret")
	FUNCTION("m_memset", "ret")
	FUNCTION("m_last", "ret"));

struct image {
	const char *name;
	const uint8_t *start, *end;
	enum probe_guess guess; /* GUESS_NONE: nothing is found */
	size_t count;
};
static const struct image images[] = {
	{"glibc to 2.41", glibc_old, glibc_old_end, GUESS_GLIBC, 5},
	{"glibc from 2.42", glibc_new, glibc_new_end, GUESS_GLIBC, 5},
	{"ambiguous", glibc_twice, glibc_twice_end, GUESS_NONE, 0},
	{"musl", musl, musl_end, GUESS_MUSL, 5},
};

#define BASE UINT64_C(0x400000)
#define CODE 0x1000 /* offset in the file */

/* A static program of one segment, @size bytes of it at @code. */
static struct elf_file *make_program(const uint8_t *code, size_t size)
{
	uint8_t *file = xcalloc(1, CODE + size);
	const Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					     ELFDATA2LSB, EV_CURRENT},
				 .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
				 .e_phoff = sizeof(head), .e_ehsize = sizeof(head),
				 .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1};
	const Elf64_Phdr part = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = CODE,
				 .p_vaddr = BASE, .p_filesz = size, .p_memsz = size,
				 .p_align = CODE};
	struct elf_file *out = NULL;

	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), &part, sizeof(part));
	memcpy(file + CODE, code, size);
	assert_int_equal(elf_file_open_memory(file, CODE + size, "program", &out), 0);
	return out;
}

static bool find(const uint8_t *code, size_t size, struct probe_sites *sites)
{
	struct elf_file *file = make_program(code, size);
	bool is_found = static_malloc_find(file, sites);

	elf_file_release(file);
	return is_found;
}

static uint64_t where(const struct probe_sites *sites, const char *name)
{
	for (size_t i = 0; i < sites->list.count; i++) {
		if (strcmp(sites->list.data[i].probe->symbol, name) == 0)
			return sites->list.data[i].vaddr - BASE;
	}
	return 0;
}

static void test_images(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++) {
		const struct image *m = &images[i];
		struct probe_sites sites = {0};

		print_message("%s\n", m->name);
		assert_int_equal(find(m->start, (size_t)(m->end - m->start), &sites),
				 m->guess != GUESS_NONE);
		assert_int_equal(sites.list.count, m->count);
		for (size_t k = 0; k < sites.list.count; k++)
			assert_int_equal(sites.list.data[k].guess, m->guess);
		vec_deinit(&sites.list);
	}
}

#define CHECK_AT(sites, image, prefix, name)                                           \
	do {                                                                           \
		uint64_t at_;                                                          \
		__asm__("lea " prefix name "(%%rip), %0" : "=r"(at_));                 \
		assert_int_equal(where(sites, name), at_ - (uint64_t)(uintptr_t)image); \
	} while (0)

static void test_places(void **state)
{
	struct probe_sites sites = {0};

	(void)state;
	find(glibc_new, (size_t)(glibc_new_end - glibc_new), &sites);
	CHECK_AT(&sites, glibc_new, "n_", "malloc");
	CHECK_AT(&sites, glibc_new, "n_", "free");
	CHECK_AT(&sites, glibc_new, "n_", "calloc");
	CHECK_AT(&sites, glibc_new, "n_", "realloc");
	CHECK_AT(&sites, glibc_new, "n_", "memalign");
	vec_deinit(&sites.list);
	sites = (struct probe_sites){0};
	find(musl, (size_t)(musl_end - musl), &sites);
	CHECK_AT(&sites, musl, "m_", "malloc");
	CHECK_AT(&sites, musl, "m_", "free");
	CHECK_AT(&sites, musl, "m_", "calloc");
	CHECK_AT(&sites, musl, "m_", "realloc");
	vec_deinit(&sites.list);
}

/* Whatever is found lies in the program; all of it that has no symbol, or nothing. */
static void check_sites(struct probe_sites *sites, bool is_found, size_t size)
{
	assert_true(is_found == (sites->list.count > 0));
	for (size_t i = 0; i < sites->list.count; i++) {
		const struct probe_site *s = &sites->list.data[i];

		assert_true(s->vaddr >= BASE && s->size > 0 && s->vaddr + s->size <= BASE + size);
	}
	vec_deinit(&sites->list);
}

static void test_changed(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned i = 0; i < rounds(600); i++) {
		const struct image *m = &images[i % (sizeof(images) / sizeof(*images))];
		size_t size = (size_t)(m->end - m->start);
		uint8_t *code = xmemdup(m->start, size);
		struct probe_sites sites = {0};

		for (unsigned k = (unsigned)rand_r(&seed) % 8; k-- > 0;)
			code[(size_t)rand_r(&seed) % size] = (uint8_t)rand_r(&seed);
		if (i % 16 == 0)
			size = 1 + (size_t)rand_r(&seed) % size;
		bool is_found = find(code, size, &sites);
		check_sites(&sites, is_found, size);
		free(code);
	}
}

static void test_random(void **state)
{
	unsigned seed = 2;

	(void)state;
	for (unsigned i = 0; i < rounds(100); i++) {
		const struct image *m = &images[i % (sizeof(images) / sizeof(*images))];
		size_t size = 1 + (size_t)rand_r(&seed) % 8192;
		uint8_t *code = xmalloc(size);
		struct probe_sites sites = {0};

		for (size_t k = 0; k < size; k++)
			code[k] = (uint8_t)rand_r(&seed);
		for (size_t k = 0; i % 2 == 1 && k + 512 < size; k += 512) /* with the right texts */
			memcpy(code + k, m->end - 256, 256);
		bool is_found = find(code, size, &sites);
		check_sites(&sites, is_found, size);
		free(code);
	}
}

/* An image that takes long if each byte is looked at again: it is zeros, and a byte at its end. */
static void test_zeros(void **state)
{
	size_t size = (size_t)8 << 20;
	uint8_t *code = xcalloc(1, size);
	struct probe_sites sites = {0};

	(void)state;
	code[size - 1] = 0xc3;
	assert_false(find(code, size, &sites));
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_zeros),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
