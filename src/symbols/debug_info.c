/* The line table of one compilation unit as a flat array that maps addresses to file and line. */
#include "symbols/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/types.h"
#include "symbols/debug_files.h"
#include "symbols/string_pool.h"

struct source_file {
	const char *dir, *name; /* in the string pool; NULL = unknown */
};

struct source_files {
	struct source_file *data; /* by DWARF file number */
	size_t count, capacity;
};

struct line_row {
	uint64_t addr; /* valid up to the next row's */
	uint32_t file; /* index into the files */
	uint32_t line; /* 0: no line information from here on */
};

struct line_table {
	struct line_row *data; /* ascending, one per address */
	size_t count, capacity;
	struct source_files files;
};

/*
 * Line tables from libdw, flattened. As in Valgrind (checked with 3.19) all rows count, also those
 * that do not begin a statement, and of several rows at one address the last one wins.
 */

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

/* The files of the unit @cu_die; empty if there are none. */
static void source_files_init(struct source_files *f, Dwarf_Die *cu_die,
			      struct string_pool *strings)
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

static void source_files_deinit(struct source_files *f)
{
	vec_deinit(f);
}

/* File number @i, or one without names if unknown. */
static struct source_file source_files_get(const struct source_files *f, uint64_t i)
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

/* Reads the table of the unit @cu_die; empty if missing or broken. */
static void line_table_init(struct line_table *t, Dwarf_Die *cu_die, struct string_pool *strings)
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

/* The row that contains @addr, or NULL. */
static const struct line_row *line_table_find(const struct line_table *t, uint64_t addr)
{
	size_t n = vec_search(t, row, row->addr <= addr);
	return n > 0 && t->data[n - 1].line != 0 ? &t->data[n - 1] : NULL;
}

/*
 * The compilation units of an object, and an index of each.
 *
 *   ranges: address -> unit -> { line table, inlined calls }
 *
 * The list of units is built at the first look-up, the index of a unit at the first look-up in it.
 * Memory is bounded. libdw's only grows while its handle is open, so the handle is closed at a
 * limit (units are identified by offset, and found again). The indexes are all dropped when they
 * get too large.
 */

/*
 * A line row or DIE takes up to 100 bytes in libdw; a line row or inlined call 16 to 40 in an
 * index.
 */
#define LIBDW_ITEMS_MAX 2000000
#define INDEX_ITEMS_MAX 8000000

/* Maximum nesting of inlined calls shown for one address. */
#define INLINE_MAX 200

struct unit {
	Dwarf_Off die;      /* offset of the unit's DIE in .debug_info */
	bool is_indexed;
	bool lacks_tree;    /* split DWARF whose .dwo was not found */
	struct line_table lines;
	struct inlines inlines;
	struct source_files call_files; /* split DWARF: of the calls; otherwise those of lines */
};

struct debug_info {
	const struct elf_file *file;
	struct elf_file *source;
	struct string_pool *strings;
	const char *debug_dirs;
	bool no_demangle;
	Dwarf *dwarf;             /* NULL: currently not open */
	struct elf_file *alt_file; /* common file of dwz, owned */
	Dwarf *alt;
	size_t libdw_items;       /* bytes read since dwarf was opened */
	bool is_listed;           /* units and ranges are complete */
	struct unit *unit;
	size_t unit_count, unit_capacity;
	struct ranges ranges;     /* value = index into unit */
	size_t index_items;       /* entries in all units */
};

struct debug_info *debug_info_new(const struct elf_file *file, struct elf_file *source,
				  struct string_pool *strings,
				  const struct symbols_options *options)
{
	struct debug_info *d = xcalloc(1, sizeof(*d));
	d->file = file;
	d->source = source;
	d->strings = strings;
	d->debug_dirs = options->debug_dirs;
	d->no_demangle = options->no_demangle;
	return d;
}

static void close_dwarf(struct debug_info *d)
{
	if (d->dwarf)
		dwarf_end(d->dwarf);
	if (d->alt)
		dwarf_end(d->alt);
	d->dwarf = d->alt = NULL;
	d->libdw_items = 0;
}

/*
 * libdw decompresses all sections of a file that it opens. Those that no look-up reads are a fifth
 * of the C library's: here they become empty.
 */
static void hide_unread(Elf *elf)
{
	static const char *const unread[] = {".debug_loc", ".debug_loclists", ".debug_aranges",
					     ".debug_macro"};
	GElf_Shdr header;
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++) {
		Elf_Scn *scn = elf_file_section(elf, unread[i], &header);
		header.sh_type = SHT_NOBITS;
		if (scn)
			gelf_update_shdr(scn, &header);
	}
}

static bool open_dwarf(struct debug_info *d)
{
	if (d->dwarf)
		return true;
	hide_unread(d->source->elf);
	d->dwarf = debuglink_begin(d->source, d->debug_dirs, &d->alt_file, &d->alt);
	return d->dwarf != NULL;
}

static void drop_indexes(struct debug_info *d)
{
	for (size_t i = 0; i < d->unit_count; i++) {
		struct unit *u = &d->unit[i];
		if (!u->is_indexed)
			continue;
		source_files_deinit(&u->lines.files);
		vec_deinit(&u->lines);
		inlines_deinit(&u->inlines);
		source_files_deinit(&u->call_files);
		u->is_indexed = false;
	}
	d->index_items = 0;
}

void debug_info_free(struct debug_info *d)
{
	if (!d)
		return;
	drop_indexes(d);
	close_dwarf(d);
	elf_file_release(d->alt_file);
	ranges_deinit(&d->ranges);
	free(d->unit);
	free(d);
}

/* Adds the unit of @cu_die if any of its code is mapped. */
static void add_unit(struct debug_info *d, Dwarf_Die *cu_die)
{
	Dwarf_Addr base, lo, hi;
	bool has_code = false;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(cu_die, at, &base, &lo, &hi)) > 0;) {
		const struct elf_segment *segment = elf_file_segment(d->file, lo);
		if (lo == 0 || !segment || !segment->is_exec) /* code discarded by the linker */
			continue;
		ranges_add(&d->ranges, lo, hi, (uint32_t)d->unit_count);
		has_code = true;
	}
	if (!has_code)
		return;
	d->unit = xgrow(d->unit, &d->unit_capacity, d->unit_count + 1, sizeof(*d->unit));
	d->unit[d->unit_count++] = (struct unit){.die = dwarf_dieoffset(cu_die)};
}

static void list_units(struct debug_info *d)
{
	d->is_listed = true;
	if (!open_dwarf(d))
		return;
	Dwarf_CU *cu = NULL;
	Dwarf_Die cu_die;
	uint8_t type;
	while (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &cu_die, NULL) == 0) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			add_unit(d, &cu_die);
	}
	ranges_sort(&d->ranges);
}

/* The DIE of @u in the open handle, and the one with the tree (split DWARF: in the .dwo). */
static bool unit_dies(struct debug_info *d, const struct unit *u, Dwarf_Die *cu_die_out,
		      Dwarf_Die *tree_out)
{
	Dwarf_Die cu_die, split;
	if (!open_dwarf(d) || !dwarf_offdie(d->dwarf, u->die, &cu_die))
		return false;
	*cu_die_out = *tree_out = cu_die;
	if (debuglink_find_split(d->source, &cu_die, &split))
		*tree_out = split;
	return true;
}

/* Of DWARF 4, too. Clang's skeletons may have the inlined calls themselves. */
static bool lacks_tree(Dwarf_Die *cu_die, const Dwarf_Die *tree)
{
	return tree->cu == cu_die->cu && dwarf_haschildren(cu_die) == 0 &&
	       (dwarf_hasattr(cu_die, DW_AT_dwo_name) ||
		dwarf_hasattr(cu_die, DW_AT_GNU_dwo_name));
}

static void index_unit(struct debug_info *d, struct unit *u)
{
	Dwarf_Die cu_die, tree;
	u->is_indexed = true;
	if (!unit_dies(d, u, &cu_die, &tree))
		return;
	u->lacks_tree = lacks_tree(&cu_die, &tree);
	line_table_init(&u->lines, &cu_die, d->strings);
	inlines_init(&u->inlines, &tree);
	if (tree.cu != cu_die.cu)
		source_files_init(&u->call_files, &tree, d->strings);
	d->index_items += u->lines.count + u->inlines.count;
	d->libdw_items += u->lines.count + u->inlines.die_count;
}

/* The unit that contains @vaddr, indexed; NULL if there is none. */
static struct unit *find_unit(struct debug_info *d, uint64_t vaddr)
{
	if (!d->is_listed)
		list_units(d);
	const struct range *r = ranges_find(&d->ranges, vaddr);
	if (!r)
		return NULL;
	struct unit *u = &d->unit[r->value];
	if (u->is_indexed)
		return u;
	if (d->index_items > INDEX_ITEMS_MAX)
		drop_indexes(d);
	if (d->libdw_items > LIBDW_ITEMS_MAX)
		close_dwarf(d);
	index_unit(d, u);
	return u;
}

static void set_place(struct symbol_frame *frame, struct source_file file, uint32_t line)
{
	frame->file = file.name;
	frame->dir = file.dir;
	frame->line = line;
}

/* Replaces the last frame of @frames with one for each inlined call at @vaddr. */
static void add_inlined(struct debug_info *d, const struct unit *u, uint64_t vaddr,
			struct symbol_frames *frames)
{
	Dwarf_Off die_offset[INLINE_MAX];
	Dwarf_Die cu_die, tree, die;
	size_t count = inlines_find(&u->inlines, vaddr, die_offset, INLINE_MAX);
	if (count == 0 || !unit_dies(d, u, &cu_die, &tree))
		return;
	const struct source_files *files = tree.cu != cu_die.cu ? &u->call_files : &u->lines.files;
	Dwarf *dwarf = dwarf_cu_getdwarf(tree.cu);
	for (size_t i = 0; i < count; i++) {
		struct inline_call call;
		if (!dwarf_offdie(dwarf, die_offset[i], &die))
			continue;
		inline_call_read(&die, d->no_demangle, &call);
		struct symbol_frame *inner = &frames->data[frames->count - 1];

		inner->name = string_pool_add(d->strings, call.name);
		inner->plain = string_pool_add(d->strings, call.plain);
		free(call.name);
		free(call.plain);
		struct symbol_frame *outer = vec_add(frames);
		*outer = (struct symbol_frame){0};
		set_place(outer, source_files_get(files, call.file), call.line);
	}
}

bool debug_info_find(struct debug_info *d, uint64_t vaddr, bool no_inline,
		     struct symbol_frames *frames_out)
{
	struct symbol_frame *frame = vec_add(frames_out);
	*frame = (struct symbol_frame){0};
	const struct unit *u = find_unit(d, vaddr);
	if (!u)
		return true;
	const struct line_row *row = line_table_find(&u->lines, vaddr);
	if (row)
		set_place(frame, source_files_get(&u->lines.files, row->file), row->line);
	if (!no_inline)
		add_inlined(d, u, vaddr, frames_out);
	return no_inline || !u->lacks_tree;
}
