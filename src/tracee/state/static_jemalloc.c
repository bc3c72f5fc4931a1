/* jemalloc 5. */
#include "tracee/state/static_family.h"

bool static_jemalloc_find(struct elf_file *file, struct static_code *code,
			  struct static_family *out)
{
	(void)file;
	(void)code;
	(void)out;
	return false;
}
