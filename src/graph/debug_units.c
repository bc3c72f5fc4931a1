/*
 * One walk through each unit notes what has a place or a name:
 *
 *	scopes       namespaces, classes and functions: [first, last byte of DIEs), parent
 *	variables    DIEs whose location is one address
 *	definitions  classes and numbers, by the hash of their qualified name; of equal ones the
 *	             first
 *
 * The scope of any other DIE is the innermost one whose bytes contain it, so names need neither
 * parents in DIEs nor another walk.
 */
#include "graph/debug_units.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "symbols/debug_files.h"
#include "symbols/debug_package.h"
#include "symbols/die_walk.h"

#define SCOPES_MAX 64       /* levels; deeper ones count as the last */
#define REFERENCES_MAX 16   /* from a DIE to the one that has its name */
#define NO_SCOPE UINT32_MAX
#define CHILDREN_MAX 65536u

struct unit_scope {
	const uint8_t *start, *end;
	uint32_t parent;        /* NO_SCOPE = the unit */
	uint16_t tag;
	uint64_t hash;          /* state of the hash of its qualified name */
};

struct debug_unit {
	Dwarf_Die root;         /* with the tree: of a split unit that in its .dwo */
	Dwarf_Die skeleton;     /* of a split unit; else as root */
	bool is_walked;
	VEC(struct unit_scope) scopes; /* ascending */
	struct die_walk *below; /* for lists of children; NULL = none was wanted. Owned */
};

struct definition {
	uint64_t hash;
	Dwarf_Die die;
};

struct debug_units {
	struct elf_file *file;
	const char *dirs;
	bool is_open, is_complete;
	struct elf_file *debug, *alt_file; /* owned; NULL = none */
	Dwarf *dwarf, *alt;
	struct debug_package *package;     /* owned; NULL = none */
	bool has_package;                  /* it was searched for */
	VEC(struct debug_unit *) units;    /* owned */
	HASH(uint32_t) by_cu;              /* numbers of units */
	VEC(struct debug_variable) variables;
	HASH(struct definition) definitions;
};

/* -- attributes -- */

const char *die_string(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;

	/* libdw 0.188 resolves a strp_sup in the wrong file */
	if (!dwarf_attr(die, attribute, &attr) || attr.form == DW_FORM_strp_sup)
		return NULL;
	return dwarf_formstring(&attr);
}

bool die_number(Dwarf_Die *die, unsigned attribute, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value) != 0)
		return false;
	*out = value;
	return true;
}

bool die_flag(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;
	bool is_set;

	return dwarf_attr(die, attribute, &attr) && dwarf_formflag(&attr, &is_set) == 0 && is_set;
}

bool die_reference(Dwarf_Die *die, unsigned attribute, Dwarf_Die *out)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, attribute, &attr) && dwarf_formref_die(&attr, out) &&
	       dwarf_tag(out) > 0;
}

/* -- names of types -- */

/* The next character of *@name that counts, after *@last; 0 at the end. */
static char next_character(const char **name, char *last, bool *in_number)
{
	for (;; (*name)++) {
		char c = **name;

		if (c == ' ')
			continue;
		if (*in_number && c && strchr("uUlL", c))
			continue;
		bool is_digit = c >= '0' && c <= '9';

		*in_number = is_digit && (*in_number || *last == '<' || *last == ',');
		*last = c;
		if (c)
			(*name)++;
		return c;
	}
}

#define NAME_HASH_START UINT64_C(0xcbf29ce484222325)

/* The state of a hash after @name. */
static uint64_t hash_more(uint64_t hash, const char *name)
{
	char last = 0, c;
	bool in_number = false;

	while ((c = next_character(&name, &last, &in_number)))
		hash = (hash ^ (uint8_t)c) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t type_name_hash(const char *name)
{
	return hash_more(NAME_HASH_START, name);
}

static bool type_name_is_same(const char *a, const char *b)
{
	char last_a = 0, last_b = 0, x, y;
	bool number_a = false, number_b = false;

	do {
		x = next_character(&a, &last_a, &number_a);
		y = next_character(&b, &last_b, &number_b);
	} while (x && x == y);
	return x == y;
}

/* -- files -- */

struct debug_units *debug_units_new(struct elf_file *file, const char *dirs)
{
	struct debug_units *d = xcalloc(1, sizeof(*d));

	d->file = file;
	d->dirs = dirs ? dirs : DEBUGLINK_DIRS;
	return d;
}

void debug_units_free(struct debug_units *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->units.count; i++) {
		struct debug_unit *u = d->units.data[i];

		if (u->below)
			die_walk_deinit(u->below);
		free(u->below);
		vec_deinit(&u->scopes);
		free(u);
	}
	vec_deinit(&d->units);
	vec_deinit(&d->variables);
	hash_deinit(&d->by_cu);
	hash_deinit(&d->definitions);
	if (d->dwarf)
		dwarf_end(d->dwarf);
	if (d->alt)
		dwarf_end(d->alt);
	debug_package_free(d->package);
	elf_file_release(d->alt_file);
	elf_file_release(d->debug);
	free(d);
}

static bool has_units(const struct elf_file *file)
{
	return elf_file_section(file->elf, ".debug_info", NULL) ||
	       elf_file_section(file->elf, ".zdebug_info", NULL);
}

static bool open_dwarf(struct debug_units *d)
{
	if (d->is_open)
		return d->dwarf != NULL;
	d->is_open = true;
	if (!has_units(d->file))
		d->debug = debuglink_find(d->file, d->dirs);
	struct elf_file *source = d->debug ? d->debug : d->file;

	if (!has_units(source))
		return false;
	d->dwarf = debuglink_begin(source, d->dirs, &d->alt_file, &d->alt);
	return d->dwarf != NULL;
}

bool debug_units_exist(struct debug_units *d)
{
	return open_dwarf(d);
}

/* -- units -- */

static struct debug_unit *find_unit(struct debug_units *d, const Dwarf_CU *cu)
{
	struct debug_unit **list = d->units.data;
	const uint32_t *known = hash_find(&d->by_cu, hash_u64((uintptr_t)cu), i,
					  list[*i]->root.cu == cu);

	return known ? list[*known] : NULL;
}

static struct debug_unit *add_unit(struct debug_units *d, const Dwarf_Die *root,
				   const Dwarf_Die *skeleton)
{
	struct debug_unit *u = xcalloc(1, sizeof(*u));

	u->root = *root;
	u->skeleton = *skeleton;
	*vec_add(&d->units) = u;
	*hash_add(&d->by_cu, hash_u64((uintptr_t)root->cu)) = (uint32_t)d->units.count - 1;
	return u;
}

/* -- locations -- */

/* Number @index of the addresses of the unit @skeleton. */
static bool indexed_address(struct debug_units *d, Dwarf_Die *skeleton, uint64_t index,
			    uint64_t *out)
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(skeleton->cu));
	Elf_Scn *scn = elf ? elf_file_section(elf, ".debug_addr", NULL) : NULL;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	Dwarf_Attribute attr;
	Dwarf_Word base = 0;

	if ((dwarf_attr(skeleton, DW_AT_addr_base, &attr) ||
	     dwarf_attr(skeleton, DW_AT_GNU_addr_base, &attr)) &&
	    dwarf_formudata(&attr, &base) != 0)
		return false;
	if (!data || !data->d_buf || base > data->d_size ||
	    index >= (data->d_size - base) / sizeof(*out))
		return false;
	*out = load_u64((const uint8_t *)data->d_buf + base + index * sizeof(*out));
	return true;
}

/* A location expression that is being read. */
struct place_code {
	const uint8_t *pos, *end;
};

/*
 * The place of a variable:
 *
 *	DW_OP_addr ADDRESS, DW_OP_addrx INDEX                of a static one
 *	DW_OP_const* OFFSET, DW_OP_form_tls_address          of a thread's
 *	... DW_OP_plus_uconst N                              N bytes further
 *
 * Of a variable in pieces the first one counts.
 */
static bool read_location(struct debug_units *d, struct debug_unit *u, struct place_code l,
			  struct debug_variable *out)
{
	uint64_t value;

	if (l.pos >= l.end)
		return false;
	switch (*l.pos++) {
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		value = dwarf_take_fixed(&l.pos, l.end, 8);
		break;
	case DW_OP_const4u:
		value = dwarf_take_fixed(&l.pos, l.end, 4);
		break;
	case DW_OP_constu:
		value = dwarf_take_uleb(&l.pos, l.end);
		break;
	case DW_OP_addrx:
	case DW_OP_constx:
	case DW_OP_GNU_addr_index:
	case DW_OP_GNU_const_index:
		if (!indexed_address(d, &u->skeleton, dwarf_take_uleb(&l.pos, l.end), &value))
			return false;
		break;
	default:
		return false;
	}
	out->address = value;
	out->is_thread_local = false;
	while (l.pos < l.end)
		switch (*l.pos++) {
		case DW_OP_form_tls_address:
		case DW_OP_GNU_push_tls_address:
			out->is_thread_local = true;
			break;
		case DW_OP_plus_uconst:
			out->address += dwarf_take_uleb(&l.pos, l.end);
			break;
		case DW_OP_piece:
			return true;
		default: /* a value, or a place that must be computed */
			return false;
		}
	return true;
}

/* GCC 12 indexes the address of a variable of threads in the file, not its offset in TLS. */
static uint64_t offset_in_block(const struct debug_units *d, uint64_t value)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(d->file->elf, &count) != 0)
		return value;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(d->file->elf, (int)i, &header) && header.p_type == PT_TLS &&
		    value >= header.p_memsz && value >= header.p_vaddr &&
		    value - header.p_vaddr < header.p_memsz)
			return value - header.p_vaddr;
	return value;
}

static void add_variable(struct debug_units *d, struct debug_unit *u, Dwarf_Die *die)
{
	struct debug_variable v = {.die = *die};
	Dwarf_Attribute attr;
	Dwarf_Block block;

	if (!dwarf_attr(die, DW_AT_location, &attr) || dwarf_formblock(&attr, &block) != 0)
		return;
	const struct place_code l = {block.data, block.data + block.length};

	if (!read_location(d, u, l, &v))
		return;
	if (v.is_thread_local)
		v.address = offset_in_block(d, v.address);
	else if (v.address == 0) /* the linker has dropped it */
		return;
	*vec_add(&d->variables) = v;
}

/* -- the walk -- */

/* Whether variables or definitions may be below a DIE with @tag. */
static bool is_entered(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

static bool is_class(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* Whether it is part of qualified names. */
static bool is_scope(int tag)
{
	return is_class(tag) || tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_module;
}

static const char *scope_text(Dwarf_Die *die, int tag)
{
	const char *name = die_string(die, DW_AT_name);

	return name ? name : tag == DW_TAG_namespace ? "(anonymous namespace)" : NULL;
}

struct unit_walk {
	struct debug_units *d;
	struct debug_unit *unit;
	struct { uint32_t scope, depth; } open[SCOPES_MAX];
	uint32_t levels;
};

static uint64_t hash_within(const struct unit_walk *w, const char *name)
{
	uint64_t hash = NAME_HASH_START;

	if (w->levels)
		hash = hash_more(
			w->unit->scopes.data[w->open[w->levels - 1].scope].hash, "::");
	return hash_more(hash, name);
}

static void close_scopes(struct unit_walk *w, const uint8_t *at, uint32_t depth)
{
	while (w->levels && w->open[w->levels - 1].depth >= depth)
		w->unit->scopes.data[w->open[--w->levels].scope].end = at;
}

static void add_definition(struct unit_walk *w, Dwarf_Die *die, uint64_t hash)
{
	uint64_t size;

	if (die_flag(die, DW_AT_declaration) || !die_number(die, DW_AT_byte_size, &size))
		return;
	if (!hash_find(&w->d->definitions, hash_u64(hash), e, e->hash == hash))
		*hash_add(&w->d->definitions, hash_u64(hash)) = (struct definition){hash, *die};
}

static void pass_scope(struct unit_walk *w, Dwarf_Die *die, int tag, uint32_t depth)
{
	const char *name = scope_text(die, tag);
	uint64_t hash = hash_within(w, name ? name : "");

	if (is_class(tag) && name && dwarf_hasattr(die, DW_AT_specification)) {
		_cleanup_free_ char *whole = debug_units_name(w->d, die, NULL);

		hash = hash_more(NAME_HASH_START, whole ? whole : name);
	}
	if (is_class(tag) && name)
		add_definition(w, die, hash);
	if (w->levels == SCOPES_MAX || dwarf_haschildren(die) <= 0)
		return;
	*vec_add(&w->unit->scopes) = (struct unit_scope){
		.start = die->addr, .end = die->addr, .tag = (uint16_t)tag, .hash = hash,
		.parent = w->levels ? w->open[w->levels - 1].scope : NO_SCOPE};
	w->open[w->levels].scope = (uint32_t)w->unit->scopes.count - 1;
	w->open[w->levels++].depth = depth;
}

static void walk_unit(struct debug_units *d, struct debug_unit *u)
{
	struct unit_walk w = {.d = d, .unit = u};
	struct die_walk walk;
	Dwarf_Die die;
	int tag;

	if (u->is_walked)
		return;
	u->is_walked = true;
	die_walk_init(&walk, &u->root, is_entered);
	while (die_walk_next(&walk, &die, &tag)) {
		close_scopes(&w, die.addr, walk.depth);
		if (tag == DW_TAG_variable)
			add_variable(d, u, &die);
		else if (tag == DW_TAG_base_type && dwarf_diename(&die))
			add_definition(&w, &die, hash_within(&w, dwarf_diename(&die)));
		else if (is_scope(tag))
			pass_scope(&w, &die, tag, walk.depth);
	}
	close_scopes(&w, walk.end, 0);
	die_walk_deinit(&walk);
}

/* The unit with the tree of the skeleton @cu_die: in its .dwo file, or in a package of them. */
static bool find_split(struct debug_units *d, Dwarf_Die *cu_die, Dwarf_Die *split_out)
{
	if (debuglink_find_split(d->debug ? d->debug : d->file, cu_die, split_out))
		return true;
	if (!d->has_package)
		d->package = debug_package_open(d->file);
	d->has_package = true;
	return d->package && debug_package_find(d->package, cu_die, split_out);
}

/* The unit with the tree of @cu_die. */
static void pass_unit(struct debug_units *d, Dwarf_Die *cu_die, uint8_t type)
{
	Dwarf_Die split;
	bool is_split = type == DW_UT_skeleton && find_split(d, cu_die, &split);
	Dwarf_Die *root = is_split ? &split : cu_die;
	struct debug_unit *u = find_unit(d, root->cu);

	walk_unit(d, u ? u : add_unit(d, root, cu_die));
}

static void walk_all(struct debug_units *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die cu_die;
	uint8_t type;
	Dwarf_Off read = 0;

	if (d->is_complete)
		return;
	d->is_complete = true;
	if (!open_dwarf(d))
		return;
	for (;;) {
		if (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &cu_die, NULL) != 0)
			break;
		if (cu_die.addr && dwarf_tag(&cu_die) > 0)
			pass_unit(d, &cu_die, type);
		read = dwarf_dieoffset(&cu_die);
		if (read > DEBUG_UNITS_BYTES_MAX && type != DW_UT_type)
			break;
	}
}

const struct debug_variable *debug_units_variables(struct debug_units *d, size_t *count_out)
{
	walk_all(d);
	*count_out = d->variables.count;
	return d->variables.data;
}

bool debug_units_find_type(struct debug_units *d, const char *name, Dwarf_Die *die_out)
{
	uint64_t hash = type_name_hash(name);

	walk_all(d);
	const struct definition *found =
		hash_find(&d->definitions, hash_u64(hash), e, e->hash == hash);

	if (!found)
		return false;
	Dwarf_Die die = found->die;
	_cleanup_free_ char *whole = debug_units_name(d, &die, NULL);

	if (!whole || !type_name_is_same(whole, name))
		return false;
	*die_out = die;
	return true;
}

/* -- names -- */

/* The unit of @die; NULL: it has none. */
static struct debug_unit *get_unit(struct debug_units *d, Dwarf_Die *die)
{
	struct debug_unit *u = find_unit(d, die->cu);
	Dwarf_Die root;

	if (!u && dwarf_diecu(die, &root, NULL, NULL))
		u = add_unit(d, &root, &root);
	return u;
}

static bool is_never_entered(int tag)
{
	return false;
}

void debug_units_children(struct debug_units *d, Dwarf_Die *die, struct child_dies *out)
{
	struct debug_unit *u = get_unit(d, die);
	Dwarf_Die at;
	int tag;

	*out = (struct child_dies){0};
	if (!u)
		return;
	if (!u->below) {
		u->below = xmalloc(sizeof(*u->below));
		die_walk_init(u->below, &u->root, is_never_entered);
	}
	if (!die_walk_seek(u->below, die) || !die_walk_next(u->below, &at, &tag) ||
	    u->below->open == 0)
		return;
	while (die_walk_next(u->below, &at, &tag) && out->list.count < CHILDREN_MAX)
		if (u->below->depth == 1)
			*vec_add(&out->list) = (struct child_die){at, tag};
}

/* Whether a part of the function @die begins at @address: compilers put rare code elsewhere. */
static bool begins_at(Dwarf_Die *die, uint64_t address)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0)
		if (start == address)
			return true;
	return false;
}

/* The function at @address in @u. */
static bool find_function(struct debug_unit *u, uint64_t address, Dwarf_Die *die_out)
{
	struct die_walk walk;
	bool is_found = false;
	int tag;

	if (dwarf_haspc(&u->skeleton, address) != 1)
		return false;
	die_walk_init(&walk, &u->root, is_entered);
	while (!is_found && die_walk_next(&walk, die_out, &tag))
		is_found = tag == DW_TAG_subprogram && begins_at(die_out, address);
	die_walk_deinit(&walk);
	return is_found;
}

bool debug_units_find_function(struct debug_units *d, uint64_t address, Dwarf_Die *die_out)
{
	walk_all(d);
	for (size_t i = 0; i < d->units.count; i++)
		if (find_function(d->units.data[i], address, die_out))
			return true;
	return false;
}

/* The unit of @die, which has been walked, and the innermost scope in it that contains @die. */
static struct debug_unit *find_scope(struct debug_units *d, Dwarf_Die *die, uint32_t *scope_out)
{
	struct debug_unit *u = get_unit(d, die);

	*scope_out = NO_SCOPE;
	if (!u)
		return NULL;
	walk_unit(d, u);
	const uint8_t *at = die->addr;
	size_t i = vec_search(&u->scopes, s, s->start < at);
	uint32_t scope = i ? (uint32_t)i - 1 : NO_SCOPE;

	while (scope != NO_SCOPE && u->scopes.data[scope].end <= at)
		scope = u->scopes.data[scope].parent;
	*scope_out = scope;
	return u;
}

static Dwarf_Die scope_die(const struct debug_unit *u, uint32_t scope)
{
	return (Dwarf_Die){.addr = (void *)(uintptr_t)u->scopes.data[scope].start,
			   .cu = u->root.cu};
}

/* The DIE with the name of @die: itself, or what it is an instance of. */
static void find_named(Dwarf_Die *die)
{
	Dwarf_Die next;

	for (int i = 0; i < REFERENCES_MAX && !die_string(die, DW_AT_name); i++) {
		if (!die_reference(die, DW_AT_specification, &next) &&
		    !die_reference(die, DW_AT_abstract_origin, &next))
			break;
		*die = next;
	}
}

/* @inner qualified with @scope and those around it; ends at a function, if @to_function. */
static char *qualify(struct debug_unit *u, uint32_t scope, const char *inner, bool to_function)
{
	char *out = xstrdup(inner);

	for (int i = 0; i < SCOPES_MAX && scope != NO_SCOPE; i++) {
		const struct unit_scope *s = &u->scopes.data[scope];
		Dwarf_Die die = scope_die(u, scope);

		if (s->tag == DW_TAG_subprogram && to_function)
			break;
		find_named(&die);
		const char *name = scope_text(&die, s->tag);

		if (!name && is_class(s->tag))
			name = "{unnamed}";
		if (name) {
			char *old = out;

			out = xasprintf("%s::%s", name, old);
			free(old);
		}
		scope = s->parent;
	}
	return out;
}

char *debug_units_name(struct debug_units *d, Dwarf_Die *die, const char *inner)
{
	Dwarf_Die declared;
	uint32_t scope;

	if (!inner)
		inner = die_string(die, DW_AT_name);
	if (!inner)
		return NULL;
	/* in a unit of its own the type refers to a declaration in its scope */
	if (!die_reference(die, DW_AT_specification, &declared))
		declared = *die;
	struct debug_unit *u = find_scope(d, &declared, &scope);

	if (!u || scope == NO_SCOPE || !dwarf_has_scopes(&u->root))
		return xstrdup(inner);
	return qualify(u, scope, inner, false);
}

/* "ns::parse()" of the function @scope. */
static char *function_text(struct debug_units *d, struct debug_unit *u, uint32_t scope)
{
	Dwarf_Die die = scope_die(u, scope);

	find_named(&die);
	_cleanup_free_ char *name = debug_units_name(d, &die, NULL);

	return name ? xasprintf("%s()", name) : NULL;
}

/* Its file: "cache.c". */
static char *unit_file(struct debug_unit *u)
{
	const char *path = die_string(&u->root, DW_AT_name);
	const char *slash = path ? strrchr(path, '/') : NULL;

	return path ? xstrdup(slash ? slash + 1 : path) : NULL;
}

static uint32_t enclosing_function(const struct debug_unit *u, uint32_t scope)
{
	while (scope != NO_SCOPE && u->scopes.data[scope].tag != DW_TAG_subprogram)
		scope = u->scopes.data[scope].parent;
	return scope;
}

/* Without the anonymous namespaces, since the file says more. */
static void drop_anonymous(char *name)
{
	static const char text[] = "(anonymous namespace)::";

	for (char *at; (at = strstr(name, text));)
		memmove(at, at + sizeof(text) - 1, strlen(at + sizeof(text) - 1) + 1);
}

char *debug_units_variable_name(struct debug_units *d, const struct debug_variable *v)
{
	Dwarf_Die die = v->die;
	uint32_t scope;

	find_named(&die);
	const char *own = die_string(&die, DW_AT_name);
	struct debug_unit *u = find_scope(d, &die, &scope);

	if (!own || !u)
		return NULL;
	uint32_t function = enclosing_function(u, scope);
	bool is_qualified = scope != NO_SCOPE && dwarf_has_scopes(&u->root);
	char *name = is_qualified ? qualify(u, scope, own, true) : xstrdup(own);
	_cleanup_free_ char *bare = name, *before = NULL;

	if (function != NO_SCOPE) {
		before = function_text(d, u, function);
		return before ? xasprintf("%s %s", before, bare) : NULL;
	}
	bool is_class_static = scope != NO_SCOPE && is_class(u->scopes.data[scope].tag);

	if (die_flag(&die, DW_AT_external) || is_class_static ||
	    dwarf_srclang(&u->root) == DW_LANG_Rust)
		return xstrdup(bare);
	before = unit_file(u);
	drop_anonymous(bare);
	return before ? xasprintf("%s: %s", before, bare) : xstrdup(bare);
}
