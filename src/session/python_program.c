/*
 * What is executed decides, not how it is called: an ELF file that has an interpreter of Python or
 * its library, or a script whose interpreter is one, also through env. Only for other scripts, such
 * as the wrappers of version managers, the name decides.
 */
#include "session/python_program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/files.h"
#include "base/text.h"
#include "session/options.h"

#define SCRIPTS_MAX 4 /* each of which is the interpreter of the one before */
#define LINE_SIZE 256u

/* The file that execvp would execute. NULL: there is none. The caller frees it. */
static char *find_command(const char *name)
{
	if (!strchr(name, '/'))
		return program_find(name);
	return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
}

static bool has_python_name(const char *path)
{
	return strncmp(text_base_name(path), "python3", strlen("python3")) == 0;
}

static int is_python_symbol(void *ctx, const struct elf_symbol *sym)
{
	(void)ctx;
	return sym->name && strcmp(sym->name, "Py_BytesMain") == 0;
}

/* It has the interpreter, or calls that of its library. */
static bool is_python_file(const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	struct elf_file *elf;

	if (!real || elf_file_open(NULL, real, NULL, &elf) != 0)
		return false;
	bool is_python = elf_file_section(elf->elf, ".PyRuntime", NULL) ||
			 (has_python_name(real) &&
			  elf_file_each_symbol(elf, is_python_symbol, NULL));

	elf_file_release(elf);
	return is_python;
}

/* The next word of *@line; NULL: there is none. */
static char *next_word(char **line)
{
	*line += strspn(*line, " \t");
	if (!**line)
		return NULL;
	char *word = *line, *end = word + strcspn(word, " \t");

	*line = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

/* The interpreter of the script @path, in env's place the one it looks for. The caller frees it. */
static char *find_interpreter(const char *path)
{
	char line[LINE_SIZE], *rest = line + 2;
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	if (!f || !fgets(line, sizeof(line), f) || strncmp(line, "#!", 2) != 0)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	char *word = next_word(&rest);

	if (!word)
		return NULL;
	if (strcmp(text_base_name(word), "env") != 0)
		return xstrdup(word);
	do
		word = next_word(&rest);
	while (word && (*word == '-' || strchr(word, '=')));
	return word ? find_command(word) : NULL;
}

static bool is_python(const char *command)
{
	_cleanup_free_ char *path = find_command(command);

	for (int i = 0; path && i < SCRIPTS_MAX; i++) {
		char *interpreter = find_interpreter(path);

		if (!interpreter)
			return is_python_file(path);
		if (has_python_name(path)) { /* it will execute one */
			free(interpreter);
			return true;
		}
		free(path);
		path = interpreter;
	}
	return false;
}

bool python_program_gets_malloc(const struct options *o)
{
	return o->children.python_malloc == PYTHON_MALLOC && o->command && o->command[0] &&
	       o->profile.heap && o->tracing.sources & 1u << SOURCE_HEAP &&
	       !o->profile.pages_as_heap && !options_count_calls(o) && !o->files.replay &&
	       !getenv(PYTHON_MALLOC_VARIABLE) && is_python(o->command[0]);
}
