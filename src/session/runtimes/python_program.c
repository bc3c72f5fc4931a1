/*
 * What is executed decides, not how it is called: the profile is of the last program, to which a
 * script's first line, env, a shell or a version manager may have led. Only that one gets the
 * variable.
 */
#include "session/runtimes/python_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/options.h"
#include "session/run.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"

#define VARIABLE "PYTHONMALLOC="

/* Its allocators: groups of functions. */
enum { PYTHON_PYMALLOC, PYTHON_MIMALLOC };

static bool wants_objects(const struct options *o)
{
	return o->profile.heap && o->tracing.sources & 1u << SOURCE_HEAP &&
	       !o->profile.pages_as_heap && !options_count_calls(o);
}

/*
 * From 3.8 to 3.15, where they are not called by name, but by pointers (struct PyMemAllocatorEx).
 * All else that has their addresses sets these pointers, or tells where they lead.
 */
void python_program_add_probes(struct run *run)
{
	static const struct {
		uint8_t group;
		const char *function;
	} functions[] = {
		{PYTHON_PYMALLOC, "alloc:_PyObject_Malloc:size=arg2"},
		{PYTHON_PYMALLOC, "alloc:_PyObject_Calloc:size=arg3,count=arg2"},
		{PYTHON_PYMALLOC, "realloc:_PyObject_Realloc:arg2,size=arg3"},
		{PYTHON_PYMALLOC, "free:_PyObject_Free:arg2"},
		/* since 3.13: of free-threaded builds, and with PYTHONMALLOC=mimalloc */
		{PYTHON_MIMALLOC, "alloc:_PyMem_MiMalloc:size=arg2"},
		{PYTHON_MIMALLOC, "alloc:_PyMem_MiCalloc:size=arg3,count=arg2"},
		{PYTHON_MIMALLOC, "realloc:_PyMem_MiRealloc:arg2,size=arg3"},
		{PYTHON_MIMALLOC, "free:_PyMem_MiFree:arg2"},
		{PYTHON_MIMALLOC, "alloc:_PyObject_MiMalloc:size=arg2"},
		{PYTHON_MIMALLOC, "alloc:_PyObject_MiCalloc:size=arg3,count=arg2"},
		{PYTHON_MIMALLOC, "realloc:_PyObject_MiRealloc:arg2,size=arg3"},
		{PYTHON_MIMALLOC, "free:_PyObject_MiFree:arg2"},
	};
	/* PyMem_SetupAllocators, get_current_allocator_name_unlocked, ... */
	static const char *const setters[] = {
		"llocator", "_PyObject_DebugMallocStats", "_PyMem_PymallocEnabled",
		"_PyMem_MimallocEnabled", "AllocatedBlocks", NULL};
	const struct options *o = run->options;

	if ((o->children.python_malloc != PYTHON_MALLOC_AUTO &&
	     o->children.python_malloc != PYTHON_MALLOC_PROBE) || !wants_objects(o))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		custom_probes_add_pointed(&run->probes, functions[i].function, setters,
					  functions[i].group);
}

static int is_python_symbol(void *ctx, const struct elf_symbol *sym)
{
	(void)ctx;
	return sym->name && strcmp(sym->name, "Py_BytesMain") == 0;
}

/* The library of a free-threaded build, "libpython3.13t.so.1.0"; its debug build is "3.13td". */
static bool is_free_threaded_name(const char *name)
{
	static const char prefix[] = "libpython3.";

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	return name[strspn(name, "0123456789")] == 't';
}

bool python_program_is_free_threaded(const struct elf_file *elf)
{
	uint64_t word[3]; /* _Py_DebugOffsets, of 3.13 and later */
	GElf_Shdr section;

	if (elf_file_section(elf->elf, ".PyRuntime", &section)) {
		_cleanup_free_ uint8_t *data = elf_file_read(elf, section.sh_offset, sizeof(word));

		if (!data)
			return false;
		memcpy(word, data, sizeof(word));
		return memcmp(word, "xdebugpy", sizeof(word[0])) == 0 && word[2];
	}
	Elf_Scn *dynamic = elf_file_section(elf->elf, ".dynamic", &section);
	Elf_Data *data = dynamic ? elf_getdata(dynamic, NULL) : NULL;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *name = elf_strptr(elf->elf, section.sh_link, entry.d_un.d_val);

		if (entry.d_tag == DT_NEEDED && name && is_free_threaded_name(name))
			return true;
	}
	return false;
}

bool python_program_watches(const struct module *m, bool is_free_threaded)
{
	return m->sites && m->sites->pointed >> (is_free_threaded ? PYTHON_MIMALLOC :
								    PYTHON_PYMALLOC) & 1;
}

/*
 * It has the interpreter, or calls that of its library. Not a free-threaded build, which has no
 * allocator but its own, and ends if the variable names another one.
 */
static bool takes_variable(const struct address_space *s)
{
	const pid_t pid = s->processes.reader;
	_cleanup_free_ char *exe = xasprintf("/proc/%d/exe", (int)pid);
	_cleanup_free_ char *path = proc_read_link(pid, "exe");
	struct elf_file *elf;

	if (elf_file_open(&s->registry->files, exe, NULL, &elf) != 0)
		return false;
	bool is_named = path && strncmp(text_base_name(path), "python", strlen("python")) == 0;
	bool result = elf_file_section(elf->elf, ".PyRuntime", NULL) ||
		      (is_named && elf_file_each_symbol(elf, is_python_symbol, NULL));

	result = result && !python_program_is_free_threaded(elf);
	elf_file_release(elf);
	return result;
}

/* What the interpreter's arguments say of its variables. */
struct arguments {
	bool ignores_variables; /* -E or -I */
	bool is_dev;            /* -X dev: Python's debug allocator */
};

/* Python's options end with the script, or with one that takes the rest. */
static struct arguments read_arguments(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *line = NULL;
	struct arguments a = {0};
	size_t size = 0;
	char option = '\0'; /* whose value follows */

	for (int i = 0; f && getdelim(&line, &size, '\0', f) > 0; i++) {
		if (i == 0 || option) {
			a.is_dev |= option == 'X' && strcmp(line, "dev") == 0;
			option = '\0';
			continue;
		}
		if (line[0] != '-' || !line[1])
			return a;
		if (line[1] == '-') {
			option = strcmp(line, "--check-hash-based-pycs") == 0 ? '-' : '\0';
			continue;
		}
		size_t flags = strcspn(line + 1, "cmWX");

		for (size_t j = 1; j <= flags; j++)
			a.ignores_variables |= line[j] == 'E' || line[j] == 'I';
		const char *last = &line[flags + 1];

		if (*last == 'c' || *last == 'm')
			return a;
		a.is_dev |= strcmp(last, "Xdev") == 0;
		option = *last && !last[1] ? *last : '\0';
	}
	return a;
}

/* The value of the variable @name, which ends with "="; NULL: none. The caller frees it. */
static char *read_variable(FILE *environment, const char *name)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (getdelim(&line, &size, '\0', environment) > 0)
		if (strncmp(line, name, strlen(name)) == 0)
			return xstrdup(line + strlen(name));
	return NULL;
}

static bool is_in_development_mode(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "environ");
	_cleanup_free_ char *value = f ? read_variable(f, "PYTHONDEVMODE=") : NULL;

	return value && *value;
}

bool python_program_has_variable(const struct address_space *s, bool *is_malloc_out)
{
	_cleanup_fclose_ FILE *f = proc_open(s->processes.reader, "environ");
	_cleanup_free_ char *value = f ? read_variable(f, VARIABLE) : NULL;

	*is_malloc_out = !f || (value && strncmp(value, "malloc", 6) == 0);
	return !f || value;
}

bool python_program_ignores_variables(const struct address_space *s)
{
	return read_arguments(s->processes.reader).ignores_variables;
}

const char *python_program_variable(void *ctx, const struct address_space *s)
{
	const struct options *o = ((const struct run *)ctx)->options;
	const pid_t pid = s->processes.reader;
	bool is_malloc;
	bool is_wanted = o->children.python_malloc == PYTHON_MALLOC_AUTO ||
			 o->children.python_malloc == PYTHON_MALLOC;

	if (!is_wanted || !o->command || !wants_objects(o) || !takes_variable(s) ||
	    python_program_has_variable(s, &is_malloc))
		return NULL;
	const struct arguments a = read_arguments(pid);

	if (a.ignores_variables)
		return NULL;
	return a.is_dev || is_in_development_mode(pid) ? VARIABLE "malloc_debug" :
							 VARIABLE "malloc";
}
