/*
 * Tier 1's stubs can be made, though they are not run here, for every allocation function of the C
 * and C++ libraries and allocators that are installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"

#define STUB_ROOM 96
#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

static bool is_heap_function(const char *name)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "reallocarray", "memalign",
		"posix_memalign", "aligned_alloc", "valloc", "pvalloc", "free", "cfree", "free_sized",
		"free_aligned_sized", "__libc_malloc", "__libc_free" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "_Znw", 4) || !strncmp(name, "_Zna", 4) || !strncmp(name, "_Zdl", 4) ||
	       !strncmp(name, "_Zda", 4);
}

/* The code of @sym in @elf, or NULL. */
static const uint8_t *symbol_code(Elf *elf, const Elf64_Sym *sym)
{
	size_t count = 0, size = 0;
	const uint8_t *file = (const uint8_t *)elf_rawfile(elf, &size);
	const Elf64_Phdr *ph = elf64_getphdr(elf);
	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++)
		if (ph[i].p_type == PT_LOAD && sym->st_value - ph[i].p_vaddr < ph[i].p_filesz)
			return file + ph[i].p_offset + (sym->st_value - ph[i].p_vaddr);
	return NULL;
}

static void check_symbol(const char *path, const char *name, const Elf64_Sym *sym, const uint8_t *code)
{
	uint8_t out[STUB_ROOM];
	struct arch_stub stub;
	struct arch_move m = {code, sym->st_size, sym->st_value, 0x8000000, .out = out, .out_size = sizeof(out)};
	if (arch_native->make_stub(&m, &stub) != 0)
		fail_msg("%s: %s: %s", path, name, m.why);
	if (stub.moved < arch_native->jump_size)
		fail_msg("%s: %s: only %u bytes displaced", path, name, stub.moved);
	assert_true(stub.patch == sym->st_value || stub.patch == sym->st_value + 4);
	assert_false(stub.pushes_return);
}

static size_t check_library(const char *path)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	size_t found = 0;
	Elf_Scn *section = NULL;
	while ((section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *sh = elf64_getshdr(section);
		if (sh->sh_type != SHT_DYNSYM)
			continue;
		const Elf_Data *data = elf_getdata(section, NULL);
		const Elf64_Sym *sym = data->d_buf;
		for (size_t i = 0; i < data->d_size / sizeof(*sym); i++) {
			const char *name = elf_strptr(elf, sh->sh_link, sym[i].st_name);
			if (sym[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC ||
			    !is_heap_function(name))
				continue;
			check_symbol(path, name, &sym[i], symbol_code(elf, &sym[i]));
			found++;
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}

static void test_real_allocators(void **state)
{
	static const char *const paths[] = {
		"/lib/" MACHINE "-linux-gnu/libc.so.6",
		"/usr/lib/" MACHINE "-linux-gnu/libstdc++.so.6",
		"/usr/lib/" MACHINE "-linux-gnu/libjemalloc.so.2",
		"/usr/lib/" MACHINE "-linux-gnu/libtcmalloc_minimal.so.4",
		"/usr/lib/" MACHINE "-linux-gnu/libmimalloc.so.2.0",
		"/lib/ld-musl-" MACHINE ".so.1",
	};
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		size_t found = check_library(paths[i]);
		print_message("%s: %zu functions\n", paths[i], found);
		assert_true(found >= 9 || access(paths[i], F_OK) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_allocators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
