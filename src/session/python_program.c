/*
 * What is executed decides, not how it is called: the profile is of the last program, to which a
 * script's first line, env, a shell or a version manager may have led. Only that one gets the
 * variable.
 */
#include "session/python_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/options.h"
#include "session/run.h"
#include "tracee/state/space.h"

#define VARIABLE "PYTHONMALLOC="

static int is_python_symbol(void *ctx, const struct elf_symbol *sym)
{
	(void)ctx;
	return sym->name && strcmp(sym->name, "Py_BytesMain") == 0;
}

/* It has the interpreter, or calls that of its library. */
static bool is_python(pid_t pid)
{
	_cleanup_free_ char *exe = xasprintf("/proc/%d/exe", (int)pid);
	_cleanup_free_ char *path = proc_read_link(pid, "exe");
	struct elf_file *elf;

	if (elf_file_open(NULL, exe, NULL, &elf) != 0)
		return false;
	bool is_named = path && strncmp(text_base_name(path), "python", strlen("python")) == 0;
	bool result = elf_file_section(elf->elf, ".PyRuntime", NULL) ||
		      (is_named && elf_file_each_symbol(elf, is_python_symbol, NULL));

	elf_file_release(elf);
	return result;
}

/*
 * Whether the arguments have -E or -I, with which Python ignores its variables. Its options end
 * with the script, or with one that takes the rest.
 */
static bool ignores_variables(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool is_value = false;

	for (int i = 0; f && getdelim(&line, &size, '\0', f) > 0; i++) {
		if (i == 0 || is_value) {
			is_value = false;
			continue;
		}
		if (line[0] != '-' || !line[1])
			return false;
		if (line[1] == '-') {
			is_value = strcmp(line, "--check-hash-based-pycs") == 0;
			continue;
		}
		size_t flags = strcspn(line + 1, "cmWX");

		for (size_t j = 1; j <= flags; j++)
			if (line[j] == 'E' || line[j] == 'I')
				return true;
		if (line[flags + 1] == 'c' || line[flags + 1] == 'm')
			return false;
		is_value = line[flags + 1] && !line[flags + 2]; /* it follows */
	}
	return false;
}

bool python_program_has_variable(const struct address_space *s, bool *is_malloc_out)
{
	_cleanup_fclose_ FILE *f = proc_open(s->processes.reader, "environ");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	*is_malloc_out = !f;
	while (f && getdelim(&line, &size, '\0', f) > 0) {
		if (strncmp(line, VARIABLE, strlen(VARIABLE)) != 0)
			continue;
		*is_malloc_out = strncmp(line + strlen(VARIABLE), "malloc", 6) == 0;
		return true;
	}
	return !f;
}

const char *python_program_variable(void *ctx, const struct address_space *s)
{
	const struct options *o = ((const struct run *)ctx)->options;
	const pid_t pid = s->processes.reader;
	bool is_malloc;
	bool is_wanted = o->children.python_malloc == PYTHON_MALLOC && o->command &&
			 o->profile.heap && o->tracing.sources & 1u << SOURCE_HEAP &&
			 !o->profile.pages_as_heap && !options_count_calls(o);

	return is_wanted && is_python(pid) && !ignores_variables(pid) &&
			       !python_program_has_variable(s, &is_malloc) ?
		       VARIABLE "malloc" : NULL;
}
