/* The kinds of memory that a profile counts. */
#include "output/report.h"

#include <string.h>

static const struct {
	const char *root, *name;
} kinds[MEMORY_KINDS] = {
	[MEMORY_HEAP] = {"(heap allocation functions) malloc/new/new[], --alloc-fns, etc.",
			 "heap blocks"},
	[MEMORY_PAGES] = {"(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.",
			  "mapped pages"},
	[MEMORY_BRK] = {"(program break) brk, sbrk", "the program break"},
	[MEMORY_MAPPED] = {"(mappings) mmap, mremap, shmat", "mappings"},
	[MEMORY_FAULTS] = {"(page faults) first access to each page", "page faults"},
};

const char *memory_kind_root(enum memory_kind kind)
{
	return kinds[kind].root;
}

enum memory_kind memory_kind_of_root(const char *root, size_t size)
{
	for (; size && *root == ' '; root++)
		size--;
	for (int kind = MEMORY_HEAP; kind < MEMORY_KINDS; kind++) {
		size_t n = strcspn(kinds[kind].root, ")") + 1;

		if (size >= n && memcmp(root, kinds[kind].root, n) == 0)
			return (enum memory_kind)kind;
	}
	return MEMORY_HEAP;
}

const char *memory_kind_name(enum memory_kind kind)
{
	return kinds[kind].name;
}
