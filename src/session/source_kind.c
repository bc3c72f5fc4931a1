/* The names of the sources. */
#include "session/source_kind.h"

const struct source_info source_info[SOURCE_COUNT] = {
	[SOURCE_HEAP] = {"heap", "Heap", "bytes"},
	[SOURCE_BRK] = {"brk", "Heap growth by brk", "bytes"},
	[SOURCE_MMAP] = {"mmap", "Mapped memory", "bytes"},
	[SOURCE_FAULTS] = {"faults", "Page faults", "pages"},
};

const char *source_in_massif(enum source_kind kind)
{
	return kind == SOURCE_HEAP ? NULL : source_info[kind].name;
}

const char *source_in_paths(uint32_t traced, enum source_kind kind)
{
	bool is_one = !(traced & (traced - 1));

	return is_one ? NULL : source_info[kind].name;
}
