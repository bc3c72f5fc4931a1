/* The languages that are known. */
#include "languages/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct language *const languages[] = {&language_python, &language_ruby};

bool interpreter_open(const char *path, struct elf_file *elf, taddr_t bias,
		      struct interpreter *out)
{
	const char *name = text_base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		struct interpreter found = {.language = languages[i]};

		if (!languages[i]->is_object(name) || !languages[i]->open(elf, bias, &found))
			continue;
		*out = found;
		return true;
	}
	return false;
}

void virtual_function_deinit(struct virtual_function *f)
{
	free(f->name);
	free(f->file);
	free(f->table);
	*f = (struct virtual_function){0};
}

uint32_t virtual_function_line(const struct virtual_function *f, uint64_t offset, uint32_t unit)
{
	uint64_t i = offset / unit;
	uint32_t line;

	if (i >= f->table_size / sizeof(line))
		return 0;
	memcpy(&line, f->table + i * sizeof(line), sizeof(line));
	return line <= INT32_MAX ? line : 0;
}
