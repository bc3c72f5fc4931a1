/*
 * Names for addresses on standard input, for comparisons with other tools. Input lines:
 * "PATH OFFSET" (offset in the file, hexadecimal); for each the frames as massif writes
 * them, innermost first, then an empty line. Options: --no-inline --no-demangle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "symbols/symbols.h"

#define MODULE_MAX 256

static struct module modules[MODULE_MAX];
static uint32_t module_count;

static struct module *get_module(const char *path)
{
	for (uint32_t i = 0; i < module_count; i++) {
		if (strcmp(modules[i].path, path) == 0)
			return &modules[i];
	}
	if (module_count == MODULE_MAX)
		return NULL;
	struct module *m = &modules[module_count];
	*m = (struct module){.id = ++module_count, .users = 1, .path = strdup(path)};
	if (elf_file_open(NULL, path, NULL, &m->file) != 0)
		fprintf(stderr, "cannot read %s\n", path);
	return m;
}

static uint64_t offset_to_vaddr(const struct elf_file *file, uint64_t offset)
{
	for (size_t i = 0; file && i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segment[i];
		if (s->is_exec && offset >= s->offset && offset - s->offset < s->filesz)
			return offset - s->offset + s->vaddr;
	}
	return 0;
}

static void print_symbol(const struct symbol *sym)
{
	for (uint32_t i = 0; i < sym->count; i++) {
		const struct symbol_frame *f = &sym->frame[i];
		printf("%s", f->name ? f->name : "???");
		if (f->file)
			printf(" (%s:%u)", f->file, f->line);
		else if (sym->object)
			printf(" (in %s)", sym->object);
		printf("\n");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct symbols_options options = {.show_below_main = true};
	for (int i = 1; i < argc; i++) {
		options.no_inline |= strcmp(argv[i], "--no-inline") == 0;
		options.no_demangle |= strcmp(argv[i], "--no-demangle") == 0;
	}
	struct symbols *s = symbols_new(&options);
	char path[4096];
	uint64_t offset;
	while (scanf("%4095s %" SCNx64, path, &offset) == 2) {
		struct module *m = get_module(path);
		print_symbol(symbols_find(s, m, m ? offset_to_vaddr(m->file, offset) : 0));
	}
	symbols_free(s);
	for (uint32_t i = 0; i < module_count; i++) {
		elf_file_release(modules[i].file);
		free(modules[i].path);
	}
	return 0;
}
