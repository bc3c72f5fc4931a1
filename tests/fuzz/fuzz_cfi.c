/*
 * Unwinds with damaged CFI: fuzz_cfi LIBRARY ROUNDS [SEED]
 *
 * Each round flips some bytes of .eh_frame, .eh_frame_hdr or the headers in a copy
 * of a small library and asks for the rule of many of its addresses, then walks a
 * made-up stack from each, by the rules and with libunwind. Nothing may crash, and no round may take longer than
 * ROUND_SECONDS or more memory than MEMORY_LIMIT: the kernel sees to both. The
 * seed of a round that fails is printed before it runs.
 * Built and run by tests/fuzz/run_cfi.sh.
 */
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "unwind/unwind.h"

#define BIAS 0x10000000u
#define STACK_WORDS 512
#define ROUND_SECONDS 5
#define MEMORY_LIMIT (1ull << 30)

struct range {
	size_t start, size;
};

static struct range targets[4]; /* headers, then sections */
static size_t target_count;
static uint64_t code_start, code_size;
static struct module module = {.id = 1, .bias = BIAS};

static const struct module *find_module(void *ctx, taddr_t pc)
{
	return pc >= module.start && pc < module.end ? &module : NULL;
}

static uint8_t *read_whole(const char *path, size_t *size_out)
{
	FILE *f = fopen(path, "rb");
	uint8_t *image = xmalloc(1 << 24);

	if (!f)
		return NULL;
	*size_out = fread(image, 1, 1 << 24, f);
	fclose(f);
	return image;
}

/* Finds the bytes to damage and the code in the whole file. */
static void find_targets(uint8_t *image, size_t size)
{
	Elf *elf = elf_memory((char *)image, size);
	Elf_Scn *scn = NULL;
	size_t names = 0;

	elf_getshdrstrndx(elf, &names);
	targets[target_count++] = (struct range){0, 64 + 56 * 12};
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		gelf_getshdr(scn, &header);
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (strcmp(name, ".eh_frame") == 0 || strcmp(name, ".eh_frame_hdr") == 0)
			targets[target_count++] = (struct range){header.sh_offset, header.sh_size};
		if (strcmp(name, ".text") == 0) {
			code_start = header.sh_addr;
			code_size = header.sh_size;
		}
	}
	elf_end(elf);
}

static void damage(uint8_t *image, unsigned int *seed)
{
	int flips = 1 + rand_r(seed) % 200;
	/* the headers rarely: a file that cannot be opened tests nothing else */
	size_t which = rand_r(seed) % 16 == 0 ? 0 : 1 + (size_t)rand_r(seed) % (target_count - 1);
	const struct range *t = &targets[which];

	for (int i = 0; i < (which ? flips : 2); i++) {
		uint8_t *byte = &image[t->start + (size_t)rand_r(seed) % t->size];
		*byte = rand_r(seed) % 2 ? (uint8_t)rand_r(seed) : *byte ^ (uint8_t)(1u << rand_r(seed) % 8);
	}
}

static void round_of(const uint8_t *whole, size_t size, unsigned int seed)
{
	static const struct unwind_ops ops = {.module = find_module};
	uint64_t stack[STACK_WORDS];
	taddr_t pcs[100];
	enum unwind_end end;

	uint8_t *image = xmemdup(whole, size);
	damage(image, &seed);
	if (elf_file_open_memory(image, size, "fuzz", &module.file) != 0)
		return;
	module.start = BIAS;
	module.end = BIAS + code_start + code_size;
	struct unwind *u = unwind_new(arch_native, &ops);
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = BIAS + code_start + (unsigned int)rand_r(&seed) % code_size;
	for (uint64_t pc = code_start; pc < code_start + code_size; pc += 13) {
		struct stack_view view = {.start = 0x7ff000000000, .data = (uint8_t *)stack,
					  .size = sizeof(stack)};
		for (size_t i = 0; i < ARCH_DWARF_REGS; i++)
			view.regs.reg[i] = view.start + 8 * ((unsigned int)rand_r(&seed) % STACK_WORDS);
		view.regs.reg[16] = BIAS + pc;
		unwind_walk(u, &view, pcs, ARRAY_SIZE(pcs), &end);
	}
	unwind_free(u);
	elf_file_release(module.file);
}

/* In a process of its own, under limits. */
static bool round_survives(const uint8_t *whole, size_t size, unsigned int seed)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit cpu = {ROUND_SECONDS, ROUND_SECONDS};
		setrlimit(RLIMIT_CPU, &cpu);
#ifndef __SANITIZE_ADDRESS__ /* its shadow is larger than any limit */
		struct rlimit memory = {MEMORY_LIMIT, MEMORY_LIMIT};
		setrlimit(RLIMIT_AS, &memory);
#endif
		round_of(whole, size, seed);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (status == 0)
		return true;
	printf("seed %u: status %#x\n", seed, status);
	return false;
}

int main(int argc, char **argv)
{
	size_t size = 0;
	unsigned int failed = 0, seed = argc > 3 ? (unsigned int)atoi(argv[3]) : 1;

	elf_version(EV_CURRENT);
	setvbuf(stdout, NULL, _IOLBF, 0); /* or children would print it again */
	uint8_t *whole = argc > 2 ? read_whole(argv[1], &size) : NULL;
	if (!whole)
		return 2;
	find_targets(whole, size);
	if (target_count < 2 || code_size == 0)
		return 2;
	int rounds = atoi(argv[2]);
	for (int i = 0; i < rounds; i++)
		failed += !round_survives(whole, size, seed + (unsigned int)i);
	printf("%d rounds, %u failed\n", rounds, failed);
	free(whole);
	return failed != 0;
}
