/*
 * Has blocks with mappings of their own, then waits until standard input ends. The first argument
 * says which:
 *
 *	aligned    one whose alignment is 2 MiB, and no other block: the main arena stays empty
 *	fixed      likewise, with a fixed threshold
 *	advised    each with another kind of memory inside, by madvise
 *	protected  each with an alignment, and a page without access
 *	shrunk     each with an alignment, and made small by realloc
 *	untouched  a huge one, hardly written to, and one whose header is overwritten
 *
 * It prints a line "ADDRESS SIZE" for each of them that can be found, usable sizes, then "ready".
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BLOCKS 6
#define PAGE 4096u
#define LARGE (UINT64_C(8) << 20)

static void *block[BLOCKS];
static size_t usable[BLOCKS], count;

static void add(void *p)
{
	usable[count] = malloc_usable_size(p);
	block[count++] = p;
}

static void add_aligned(void)
{
	void *p = aligned_alloc(2 << 20, LARGE);

	memset(p, 1, LARGE / 2);
	add(p);
}

static void add_advised(void)
{
	static const int advice[BLOCKS] = {MADV_HUGEPAGE, MADV_DONTDUMP, MADV_DONTFORK,
					   MADV_HUGEPAGE, MADV_DONTDUMP, MADV_DONTFORK};

	for (size_t i = 0; i < BLOCKS; i++) {
		add(malloc(LARGE));
		memset(block[i], 1, LARGE);
		uintptr_t inside = ((uintptr_t)block[i] + PAGE) & ~(uintptr_t)(PAGE - 1);

		if (madvise((void *)inside, LARGE / 2, advice[i]) != 0 && advice[i] != MADV_HUGEPAGE)
			_exit(1);
	}
}

static void add_protected(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		add(aligned_alloc(PAGE, LARGE));
		memset(block[i], 1, LARGE);
		if (mprotect(block[i], PAGE, PROT_NONE) != 0)
			_exit(1);
	}
}

static void add_shrunk(void)
{
	for (size_t i = 0; i < BLOCKS; i++)
		add(realloc(aligned_alloc((size_t)64 << i, LARGE), 500));
}

static void add_untouched(void)
{
	char *huge = malloc(UINT64_C(1) << 33);
	volatile uint64_t *lost = malloc(LARGE);

	huge[0] = 1;
	huge[UINT64_C(1) << 32] = 1;
	add(huge);
	lost[-1] = 0;
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	char byte;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* page tables stay as they are */
	setvbuf(stdout, NULL, _IONBF, 0);
	if (strcmp(which, "fixed") == 0)
		mallopt(M_MMAP_THRESHOLD, 1 << 20);
	if (strcmp(which, "aligned") == 0 || strcmp(which, "fixed") == 0)
		add_aligned();
	else if (strcmp(which, "advised") == 0)
		add_advised();
	else if (strcmp(which, "protected") == 0)
		add_protected();
	else if (strcmp(which, "shrunk") == 0)
		add_shrunk();
	else
		add_untouched();
	for (size_t i = 0; i < count; i++)
		printf("%p %zu\n", block[i], usable[i]);
	printf("ready\n");
	return read(0, &byte, 1) == 0 ? 0 : 1;
}
