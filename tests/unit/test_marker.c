/*
 * Markers: arguments of notes, notes good and broken, requests taken apart, and those
 * of this program found in its own file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "include/ptmem.h"
#include "tracee/calls/client_request.h"

static int parse(const char *text, struct arch_operand *out)
{
	return arch_native->parse_operand(text, strlen(text), out);
}

/* Registers with distinct values. */
static struct arch_regs regs(void)
{
	struct arch_regs r;
	for (unsigned i = 0; i < ARCH_REG_WORDS; i++)
		r.word[i] = 0x1122334455667700ull + i;
	return r;
}

static uint64_t memory[16];

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	if (addr < 0x1000 || addr + size > 0x1000 + sizeof(memory))
		return -EFAULT;
	memcpy(buf, (const char *)memory + (addr - 0x1000), size);
	return 0;
}

static uint64_t value_of(const char *text, const struct arch_regs *r)
{
	struct arch_operand o;
	uint64_t value = 0;
	if (parse(text, &o) != 0)
		fail_msg("'%s' is refused", text);
	assert_int_equal(marker_value(&o, r, read_memory, NULL, &value), 0);
	return value;
}

static void constants(void **state)
{
	struct arch_regs r = regs();
	assert_int_equal(value_of("8@$5", &r), 5);
	assert_int_equal(value_of("4@$-1", &r), 0xffffffff);
	assert_int_equal(value_of("-4@$-1", &r), UINT64_MAX);
	assert_int_equal(value_of("8@$0x10", &r), 16);
	assert_int_equal(value_of("-8@$-0x10", &r), (uint64_t)-16);
	assert_int_equal(value_of("$77", &r), 77);
	assert_int_equal(value_of("1@$300", &r), 44);
	assert_int_equal(value_of("8@$18446744073709551615", &r), UINT64_MAX);
}

static void registers(void **state)
{
	struct arch_regs r = regs();
	const uint8_t *arg = arch_native->arg;
	r.word[arg[0]] = 0x8877665544332211;
	assert_int_equal(value_of("8@%rdi", &r), 0x8877665544332211);
	assert_int_equal(value_of("%rdi", &r), 0x8877665544332211);
	assert_int_equal(value_of("4@%edi", &r), 0x44332211);
	assert_int_equal(value_of("%edi", &r), 0x44332211);
	assert_int_equal(value_of("2@%di", &r), 0x2211);
	assert_int_equal(value_of("1@%dil", &r), 0x11);
	assert_int_equal(value_of("8@%edi", &r), 0x44332211); /* no more than exists */
	r.word[arg[0]] = (uint64_t)-7;
	assert_int_equal(value_of("-4@%edi", &r), (uint64_t)-7);
	assert_int_equal(value_of("4@%edi", &r), 0xfffffff9);
	r.word[arg[3]] = 0xabcd;
	assert_int_equal(value_of("1@%ch", &r), 0xab);
	assert_int_equal(value_of("1@%cl", &r), 0xcd);
	r.word[arg[4]] = 0x8000000180018082;
	assert_int_equal(value_of("8@%r8", &r), 0x8000000180018082);
	assert_int_equal(value_of("4@%r8d", &r), 0x80018082);
	assert_int_equal(value_of("-2@%r8w", &r), (uint64_t)(int16_t)0x8082);
	assert_int_equal(value_of("1@%r8b", &r), 0x82);
	r.word[arch_native->dwarf_word[15]] = 15;
	assert_int_equal(value_of("%r15", &r), 15);
	assert_int_equal(value_of("%r15d", &r), 15);
}

static void addresses(void **state)
{
	struct arch_regs r = regs();
	r.word[arch_native->fp] = 0x1010;
	r.word[arch_native->ret] = 0x1000;
	r.word[arch_native->arg[0]] = 2;
	for (unsigned i = 0; i < 16; i++)
		memory[i] = 0xf000000000000000 + i * 0x0101010101;
	assert_int_equal(value_of("8@(%rax)", &r), memory[0]);
	assert_int_equal(value_of("8@8(%rbp)", &r), memory[3]);
	assert_int_equal(value_of("8@-8(%rbp)", &r), memory[1]);
	assert_int_equal(value_of("4@-0x8(%rbp)", &r), (uint32_t)memory[1]);
	assert_int_equal(value_of("8@(%rax,%rdi,8)", &r), memory[2]);
	assert_int_equal(value_of("8@8(%rax,%rdi,4)", &r), memory[2]);
	assert_int_equal(value_of("8@6(%rax,%rdi)", &r), memory[1]);
	assert_int_equal(value_of("8@4096(,%rdi,8)", &r), memory[2]);
	assert_int_equal(value_of("-1@7(%rax)", &r), (uint64_t)(int8_t)0xf0);
	struct arch_operand o;
	uint64_t value = 77;
	assert_int_equal(parse("8@(%rdi)", &o), 0);
	assert_int_equal(marker_value(&o, &r, read_memory, NULL, &value), -EFAULT);
	assert_int_equal(value, 77);
}

static void refused(void **state)
{
	static const char *const broken[] = {
		"", "8@", "@", "3@%rdi", "-9223372036854775808@%rdi", "0@%rdi", "16@%rdi", "8@$", "8@%", "8@(%rax", "8@()", "8@(,)", "8@(%rax,", "8@$5x",
		"8@(%rax,%rdi,3)", "8@%rdi ", "8@%rdi,", "8@(%rax)8", "8@$99999999999999999999", "8@(%rax,%rdi,)",
	};
	static const char *const beyond[] = {
		"8@%xmm0", "8@symbol(%rip)", "8@8(%rip)", "8@symbol", "8@%fs:8(%rax)", "8@%rip", "8@1234", "8@(%eax)",
		"4@%r16", "4@%r08", "8@%rdii", "8@-8+symbol(%rip)", "8@%st", "-symbol",
	};
	struct arch_operand o = {.value = 42};
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		if (parse(broken[i], &o) != -EINVAL)
			fail_msg("'%s' gives %d", broken[i], parse(broken[i], &o));
	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
		if (parse(beyond[i], &o) != -ENOTSUP)
			fail_msg("'%s' gives %d", beyond[i], parse(beyond[i], &o));
	assert_int_equal(o.value, 42);
}

/* A note's descriptor: words, then texts with their zero bytes. */
struct note {
	uint8_t bytes[256];
	size_t size;
};

static struct note note(const uint64_t word[3], const char *texts, size_t size)
{
	struct note n = {.size = 24 + size};
	memcpy(n.bytes, word, 24);
	memcpy(n.bytes + 24, texts, size);
	return n;
}

#define NOTE(texts) note((const uint64_t[3]){0x1000, 0x5000, 0x6000}, texts, sizeof(texts))

static int read_note(const struct note *n, uint64_t base, struct marker *out)
{
	uint8_t *exact = xmemdup(n->bytes, n->size ? n->size : 1); /* a sanitizer sees reads beyond it */
	int rc = marker_read_note(arch_native, exact, n->size, base, out);
	free(exact);
	return rc;
}

static void notes(void **state)
{
	struct marker m;
	struct note n = NOTE("ptmem\0alloc\0008@%rdi -4@8(%rbp)");
	assert_int_equal(read_note(&n, 0x5000, &m), 0);
	assert_int_equal(m.kind, MARKER_ALLOC);
	assert_int_equal(m.vaddr, 0x1000);
	assert_int_equal(m.semaphore, 0x6000);
	assert_int_equal(m.block.kind, OPERAND_REGISTER);
	assert_int_equal(m.size.kind, OPERAND_MEMORY);
	assert_true(m.size.is_signed);
	assert_true(marker_is_argument(&m.block, arch_native, 0));
	assert_false(marker_is_argument(&m.size, arch_native, 1));
	/* moved since it was linked */
	assert_int_equal(read_note(&n, 0x7000, &m), 0);
	assert_int_equal(m.vaddr, 0x3000);
	assert_int_equal(m.semaphore, 0x8000);
	assert_int_equal(read_note(&n, 0, &m), 0);
	assert_int_equal(m.vaddr, 0x1000);
	n = NOTE("otel_memory\0free\0008@%rbx");
	assert_int_equal(read_note(&n, 0x5000, &m), 0);
	assert_int_equal(m.kind, MARKER_FREE);
	n = NOTE("otel_memory\0alloc\0008@%rbx 8@%rcx 8@%rdx");
	assert_int_equal(read_note(&n, 0x5000, &m), 0); /* a third argument is the weight of a sample */
	n = note((const uint64_t[3]){0x1000, 0x5000, 0}, "ptmem\0free\0 8@%rdi ", 20);
	assert_int_equal(read_note(&n, 0x9000, &m), 0);
	assert_int_equal(m.semaphore, 0);
}

static void broken_notes(void **state)
{
	struct marker m = {.vaddr = 42};
	struct note n = NOTE("libc\0alloc\0008@%rdi 8@%rsi");
	assert_int_equal(read_note(&n, 0, &m), -ENOENT);
	n = NOTE("ptmem\0other\0");
	assert_int_equal(read_note(&n, 0, &m), -ENOENT);
	n = NOTE("ptmem\0alloc\0008@%rdi");
	assert_int_equal(read_note(&n, 0, &m), -ENOTSUP);
	n = NOTE("ptmem\0alloc\0");
	assert_int_equal(read_note(&n, 0, &m), -ENOTSUP);
	n = NOTE("ptmem\0free\0008@%xmm1");
	assert_int_equal(read_note(&n, 0, &m), -ENOTSUP);
	/* cut anywhere: an error, and nothing after it is read */
	struct note whole = NOTE("ptmem\0alloc\0008@%rdi 8@%rsi");
	for (size_t size = 0; size + 2 < whole.size; size++) { /* NOTE adds a zero byte of its own */
		n = whole;
		n.size = size;
		assert_int_equal(read_note(&n, 0x5000, &m), -EINVAL);
	}
	assert_int_equal(m.vaddr, 42);
}

static size_t offsets[8], offset_count;

static void note_offset(void *ctx, size_t offset)
{
	(void)ctx;
	assert_true(offset_count < ARRAY_SIZE(offsets));
	offsets[offset_count++] = offset;
}

static void scanning(void **state)
{
	uint8_t text[200];
	size_t n = arch_native->marker_size;
	memset(text, 0x90, sizeof(text));
	memcpy(text + 3, arch_native->marker, n);
	memcpy(text + 3 + n, arch_native->marker, n);
	memcpy(text + 100, arch_native->marker, n - 1);        /* not a whole one */
	memcpy(text + sizeof(text) - n, arch_native->marker, n);
	offset_count = 0;
	marker_scan(arch_native, text, sizeof(text), note_offset, NULL);
	assert_int_equal(offset_count, 3);
	assert_int_equal(offsets[0], 3);
	assert_int_equal(offsets[1], 3 + n);
	assert_int_equal(offsets[2], sizeof(text) - n);
	marker_scan(arch_native, text, 2, note_offset, NULL);
	marker_scan(arch_native, text, 0, note_offset, NULL);
	assert_int_equal(offset_count, 3);
}

/* This program's own markers. */
__attribute__((noinline)) static void say(const char *p, size_t size)
{
	PTMEM_ALLOC(p, size);
	PTMEM_REALLOC(p, p, size);
	__asm__ volatile(".byte 0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d\n"
			 ".byte 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb" : : "a"((uint64_t[6]){0}), "d"(0) : "cc", "memory");
}

static void own_file(void **state)
{
	struct elf_file *file;
	struct marker_list found;
	unsigned count[MARKER_KIND_COUNT] = {0};
	say("", 0);
	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	marker_find(file, arch_native, &found);
	for (size_t i = 0; i < found.list.count; i++) {
		count[found.list.data[i].kind]++;
		assert_true(found.list.data[i].function_size > 0);
		assert_true(found.list.data[i].vaddr - found.list.data[i].function < found.list.data[i].function_size);
	}
	assert_int_equal(count[MARKER_REQUEST], 1);
	assert_int_equal(count[MARKER_ALLOC], 2);
	assert_int_equal(count[MARKER_FREE], 1);
	assert_int_equal(found.unknown, 0);
	vec_deinit(&found.list);
	elf_file_release(file);
}

/* This program's file with its notes changed at random. */
static void broken_file(void **state)
{
	FILE *f = fopen("/proc/self/exe", "re");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size_t size = (size_t)ftell(f);
	uint8_t *image = xmalloc(size);
	rewind(f);
	assert_int_equal(fread(image, 1, size, f), size);
	fclose(f);
	uint8_t *owner = memmem(image, size, "stapsdt\0", 8);
	uint32_t seed = 1;
	for (int round = 0; owner && round < 300; round++) {
		struct elf_file *file;
		struct marker_list found;
		uint8_t *copy = xmemdup(image, size), *at = copy + (owner - image) - 12;
		for (int i = 0; i < 4; i++) {
			seed = seed * 1103515245 + 12345;
			at[seed >> 16 & 127] = (uint8_t)(seed >> 8);
		}
		if (elf_file_open_memory(copy, size, "broken", &file) != 0)
			continue;
		marker_find(file, arch_native, &found);
		vec_deinit(&found.list);
		elf_file_release(file);
	}
	free(image);
}

static void requests(void **state)
{
	struct request r = request_decode((uint64_t[6]){0x1301, 0x10, 20, 30, 40});
	assert_int_equal(r.kind, REQUEST_ALLOC);
	assert_int_equal(r.addr, 0x10);
	assert_int_equal(r.size, 20);
	r = request_decode((uint64_t[6]){0x1302, 0x10, 20});
	assert_int_equal(r.kind, REQUEST_FREE);
	assert_int_equal(r.size, 0);
	r = request_decode((uint64_t[6]){0x130b, 0x10, 20, 30});
	assert_int_equal(r.kind, REQUEST_RESIZE);
	assert_int_equal(r.size, 30);
	r = request_decode((uint64_t[6]){0x1309, 1, 2, 3, 4});
	assert_int_equal(r.kind, REQUEST_POOL_CHANGE);
	assert_true(request_is_of_pool(&r) && r.pool == 1 && r.old_addr == 2 && r.addr == 3 && r.size == 4);
	r = request_decode((uint64_t[6]){0x1303, 1, 2, 3, REQUEST_POOL_AUTO_FREE});
	assert_true(r.kind == REQUEST_POOL_CREATE && r.flags == REQUEST_POOL_AUTO_FREE);
	static const uint64_t nothing[] = {0, 0x1002, 0x1101, 0x1201, 0x1401, 0x1501, 0x1601, 0x4d430000, UINT64_MAX,
					   0x100001301};
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++)
		assert_int_equal(request_decode((uint64_t[6]){nothing[i], 1, 2, 3, 4, 5}).kind, REQUEST_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants), cmocka_unit_test(registers), cmocka_unit_test(addresses),
		cmocka_unit_test(refused), cmocka_unit_test(notes), cmocka_unit_test(broken_notes),
		cmocka_unit_test(scanning), cmocka_unit_test(own_file), cmocka_unit_test(broken_file),
		cmocka_unit_test(requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
