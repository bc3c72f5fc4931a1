/*
 * Line tables from libdw, flattened. As in Valgrind (checked with 3.19) all rows count, also those
 * that do not begin a statement, and of several rows at one address the last one wins.
 */
#include "symbols/lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"

/*
 * libdw may return relative directories in DWARF 5. As in Valgrind 3.19 (checked), they are
 * relative to the directory of the compilation, even if they are that directory: a file of "./csu"
 * is in "./csu/./csu".
 */
static char *whole_path(const char *path, const char *comp_dir)
{
	if (!comp_dir || *path == '/')
		return xstrdup(path);
	return xasprintf("%s/%s", comp_dir, path);
}

static struct source_file split_path(const char *path, struct string_pool *strings)
{
	if (!path) /* libdw's "???", file 0 of old DWARF */
		return (struct source_file){0};
	const char *slash = strrchr(path, '/');
	if (!slash)
		return (struct source_file){.name = string_pool_add(strings, path)};
	return (struct source_file){
		.dir = string_pool_add_n(strings, path, slash == path ? 1 : (size_t)(slash - path)),
		.name = string_pool_add(strings, slash + 1),
	};
}

void source_files_init(struct source_files *f, Dwarf_Die *cu_die, struct string_pool *strings)
{
	*f = (struct source_files){0};
	Dwarf_Files *files;
	size_t count;
	if (dwarf_getsrcfiles(cu_die, &files, &count) != 0)
		return;
	Dwarf_Attribute attr;
	const char *comp_dir = dwarf_formstring(dwarf_attr(cu_die, DW_AT_comp_dir, &attr));
	vec_reserve(f, count);
	for (size_t i = 0; i < count; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);
		_cleanup_free_ char *whole =
			path && strcmp(path, "???") != 0 ? whole_path(path, comp_dir) : NULL;
		*vec_add(f) = split_path(whole, strings);
	}
}

void source_files_deinit(struct source_files *f)
{
	vec_deinit(f);
}

struct source_file source_files_get(const struct source_files *f, uint64_t i)
{
	return i < f->count ? f->data[i] : (struct source_file){0};
}

/* The row of @line; false if it cannot be read. */
static bool read_row(Dwarf_Line *line, struct line_row *row_out)
{
	Dwarf_Addr addr;
	Dwarf_Files *files;
	size_t file;
	int number;
	bool is_end;
	if (dwarf_lineaddr(line, &addr) != 0 || dwarf_lineendsequence(line, &is_end) != 0)
		return false;
	if (is_end) {
		*row_out = (struct line_row){.addr = addr};
		return true;
	}
	if (dwarf_lineno(line, &number) != 0 || dwarf_line_file(line, &files, &file) != 0)
		return false;
	*row_out =
		(struct line_row){.addr = addr, .file = (uint32_t)file, .line = (uint32_t)number};
	return true;
}

/* The end of a sequence counts only if no other one begins there. */
static void add_row(struct line_table *t, const struct line_row *row)
{
	struct line_row *last = t->count ? &t->data[t->count - 1] : NULL;
	if (!last || last->addr < row->addr)
		*vec_add(t) = *row;
	else if (row->line != 0)
		*last = *row;
}

void line_table_init(struct line_table *t, Dwarf_Die *cu_die, struct string_pool *strings)
{
	*t = (struct line_table){0};
	Dwarf_Lines *lines;
	size_t count;
	if (dwarf_getsrclines(cu_die, &lines, &count) != 0)
		return;
	vec_reserve(t, count);
	for (size_t i = 0; i < count; i++) {
		struct line_row row;
		if (read_row(dwarf_onesrcline(lines, i), &row))
			add_row(t, &row);
	}
	source_files_init(&t->files, cu_die, strings);
}

void line_table_deinit(struct line_table *t)
{
	source_files_deinit(&t->files);
	vec_deinit(t);
}

const struct line_row *line_table_find(const struct line_table *t, uint64_t addr)
{
	size_t n = vec_search(t, row, row->addr <= addr);
	return n > 0 && t->data[n - 1].line != 0 ? &t->data[n - 1] : NULL;
}
