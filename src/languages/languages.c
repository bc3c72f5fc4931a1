/* The languages that are known. */
#include "base/text.h"
#include "languages/interpreter.h"

static const struct language *const languages[] = {&language_python, &language_ruby, &language_php,
						   &language_perl, &language_lua};

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
