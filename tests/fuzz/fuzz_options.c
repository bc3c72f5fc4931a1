/* Text of PTMEM_OPTS: accepted or refused, never a crash. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command_line.h"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("--depth=3 --heap-admin=2 --ignore-fn='a b' # comment\n -v --color=never"),
	FUZZ_TEXT("-o file -qv --threshold=.5 --massif:alignment=16 --memcheck:x=y --ring=4M"),
	FUZZ_TEXT("--pid=12,34 -p \"56 78\" --duration=1.5 --time-unit=B --probes=jump"),
	{0},
};

void fuzz_one(const uint8_t *data, size_t size)
{
	char *argv[] = {(char[]){"ptmem"}, (char[]){"prog"}, NULL};
	char *text = strndup((const char *)data, size);
	struct options o;
	setenv("PTMEM_OPTS", text, 1);
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	if (options_parse(2, argv, &o) == 0)
		options_deinit(&o);
	free(text);
}
