/* The code of a file, read in parts, is what the file has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/elf_file.h"
#include "unwind/cfi.h"

#define ROUNDS 20000
#define WANT_MAX 40000u /* more than is read at once, and less */

static struct elf_file *own_file(void)
{
	struct elf_file *file = NULL;
	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	return file;
}

static const struct elf_segment *code_of(const struct elf_file *file)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segment[i].is_exec)
			return &file->segment[i];
	}
	fail();
	return NULL;
}

static void test_parts(void **state)
{
	(void)state;
	struct elf_file *file = own_file();
	const struct elf_segment *code = code_of(file);
	uint8_t *want = elf_file_read(file, code->offset, code->filesz);
	assert_non_null(want);
	srandom(1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t at = (uint64_t)random() % code->filesz;
		uint64_t size = 1 + (uint64_t)random() % WANT_MAX, left = code->filesz - at;
		size_t got_size = 0;
		const uint8_t *got = cfi_code(file, code->vaddr + at, size, &got_size);
		assert_non_null(got);
		assert_true(got_size >= MIN(size, left) && got_size <= left);
		assert_memory_equal(got, want + at, got_size);
	}
	free(want);
	elf_file_release(file);
}

static void test_outside(void **state)
{
	(void)state;
	struct elf_file *file = own_file();
	const struct elf_segment *code = code_of(file);
	size_t size = 0;
	assert_non_null(cfi_code(file, code->vaddr, UINT64_MAX, &size));
	assert_int_equal(size, code->filesz);
	assert_null(cfi_code(file, code->vaddr + code->filesz, 1, &size));
	assert_null(cfi_code(file, code->vaddr - 1, 1, &size));
	assert_null(cfi_code(file, UINT64_MAX, 1, &size));
	elf_file_release(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_outside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
