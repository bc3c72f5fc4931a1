/* Rows are checked one by one by recording_read_rows; here, what they mean together. */
#include "recording/graph_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "leak/block_index.h"
#include "recording/recording.h"
#include "recording/recording_format.h"

#define HEAD_SIZE (sizeof(GRAPH_FILE_HEAD) - 1)
#define ADDRESS_END (UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS)

/* -- to a file -- */

static void add_blocks(struct recording *r, const struct heap_graph *g)
{
	for (size_t i = 0; i < g->types.count; i++) {
		const uint64_t row[] = {recording_string(r, g->types.data[i])};

		recording_add(r, RECORDING_GRAPH_TYPES, row);
	}
	for (uint32_t i = 0; i < g->blocks; i++) {
		const struct graph_block *b = &g->block[i];
		const uint64_t row[GRAPH_BLOCK_COLUMNS] = {
			[GRAPH_BLOCK_ADDRESS] = b->addr, [GRAPH_BLOCK_BYTES] = b->size,
			[GRAPH_BLOCK_TYPE] = b->type < g->types.count ? b->type + 1u : 0,
			[GRAPH_BLOCK_EDGES] = g->first[i + 1] - g->first[i]};

		recording_add(r, RECORDING_GRAPH_BLOCKS, row);
	}
}

/* Without the owner of lost blocks, which is found again. */
static uint32_t owners_of(const struct heap_graph *g)
{
	return (uint32_t)g->owners.count - 1;
}

static void add_owners(struct recording *r, const struct heap_graph *g)
{
	for (uint32_t i = 0; i < owners_of(g); i++) {
		const struct graph_owner *o = &g->owners.data[i];
		const uint32_t *first = &g->first[g->blocks + i];
		const uint64_t row[GRAPH_OWNER_COLUMNS] = {
			[GRAPH_OWNER_KIND] = o->kind, [GRAPH_OWNER_UNDER] = o->under,
			[GRAPH_OWNER_THREAD] = (uint64_t)o->tid, [GRAPH_OWNER_ADDRESS] = o->addr,
			[GRAPH_OWNER_NAME] = recording_string(r, o->name),
			[GRAPH_OWNER_OBJECT] = recording_string(r, o->object),
			[GRAPH_OWNER_EDGES] = first[1] - first[0]};

		recording_add(r, RECORDING_GRAPH_OWNERS, row);
	}
	for (uint32_t e = 0; e < g->first[g->blocks + owners_of(g)]; e++) {
		const uint64_t row[GRAPH_EDGE_COLUMNS] = {
			[GRAPH_EDGE_BLOCK] = g->edge[e] >> 1,
			[GRAPH_EDGE_INTERIOR] = g->edge[e] & GRAPH_IS_INTERIOR,
			[GRAPH_EDGE_PLACE] = g->place[e]};

		recording_add(r, RECORDING_GRAPH_EDGES, row);
	}
}

static void add_types(struct recording *r, const struct graph_types *t)
{
	for (size_t i = 0; i < t->words.count; i++) {
		const uint64_t row[] = {t->words.data[i]};

		recording_add(r, RECORDING_GRAPH_WORDS, row);
	}
	for (size_t i = 0; i < t->fields.count; i++) {
		const struct graph_field *f = &t->fields.data[i];
		const uint64_t row[GRAPH_FIELD_COLUMNS] = {
			[GRAPH_FIELD_OF] = f->of, [GRAPH_FIELD_WORD] = f->word,
			[GRAPH_FIELD_NAME] = recording_string(r, f->name)};

		if (f->name)
			recording_add(r, RECORDING_GRAPH_FIELDS, row);
	}
}

/* Without what is in strings: a file has no data of the program. */
static void add_tables(struct recording *r, const struct graph_types *t)
{
	for (size_t i = 0; i < t->containers.count; i++) {
		const struct graph_container *c = &t->containers.data[i];
		const uint64_t row[GRAPH_CONTAINER_COLUMNS] = {
			[GRAPH_CONTAINER_TYPE] = recording_string(r, c->name),
			[GRAPH_CONTAINER_COUNT] = c->containers, [GRAPH_CONTAINER_EMPTY] = c->empty,
			[GRAPH_CONTAINER_SIZE] = c->size, [GRAPH_CONTAINER_USED] = c->used,
			[GRAPH_CONTAINER_CAPACITY] = c->capacity};

		recording_add(r, RECORDING_GRAPH_CONTAINERS, row);
	}
	for (size_t i = 0; i < t->padding.count; i++) {
		const struct graph_padding *p = &t->padding.data[i];
		const uint64_t row[GRAPH_PADDING_COLUMNS] = {
			[GRAPH_PADDING_TYPE] = recording_string(r, p->name),
			[GRAPH_PADDING_OBJECTS] = p->objects, [GRAPH_PADDING_MOST] = p->is_most,
			[GRAPH_PADDING_SIZE] = p->size, [GRAPH_PADDING_BYTES] = p->padding,
			[GRAPH_PADDING_BEST] = p->best,
			[GRAPH_PADDING_ORDER] = recording_string(r, p->order)};

		recording_add(r, RECORDING_GRAPH_PADDINGS, row);
	}
	for (size_t i = 0; i < t->strings.list.count; i++) {
		const struct graph_string *s = &t->strings.list.data[i];
		const uint64_t row[GRAPH_STRING_COLUMNS] = {
			[GRAPH_STRING_LENGTH] = s->length, [GRAPH_STRING_COPIES] = s->copies,
			[GRAPH_STRING_BYTES] = s->bytes, [GRAPH_STRING_SAVED] = s->saved};

		recording_add(r, RECORDING_GRAPH_STRINGS, row);
	}
}

static void add_sites(struct recording *r, const struct heap_graph *g)
{
	const struct graph_sites *s = g->sites;

	for (size_t i = 0; i < s->functions.count; i++) {
		const uint64_t row[] = {recording_string(r, s->functions.data[i])};

		recording_add(r, RECORDING_GRAPH_FUNCTIONS, row);
	}
	for (size_t i = 0; i < s->calls.count; i++) {
		const uint64_t row[GRAPH_CALL_COLUMNS] = {
			[GRAPH_CALL_FUNCTION] = s->calls.data[i].function,
			[GRAPH_CALL_CALLER] = s->calls.data[i].caller};

		recording_add(r, RECORDING_GRAPH_CALLS, row);
	}
	for (size_t i = 0; i < s->paths.count; i++) {
		const uint64_t row[GRAPH_PATH_COLUMNS] = {
			[GRAPH_PATH_CALL] = s->paths.data[i].call,
			[GRAPH_PATH_SITE] = s->paths.data[i].site};

		recording_add(r, RECORDING_GRAPH_PATHS, row);
	}
	for (uint32_t i = 0; i < g->blocks; i++) {
		const uint64_t row[] = {s->of_block[i]};

		recording_add(r, RECORDING_GRAPH_ALLOCATED, row);
	}
}

int graph_file_write(FILE *file, const struct heap_graph *g, const struct graph_source *of)
{
	struct recording *r = recording_new();
	const uint64_t row[GRAPH_COLUMNS] = {
		[GRAPH_PID] = of->pid, [GRAPH_COMMAND] = recording_string(r, of->command),
		[GRAPH_STOPPED] = of->stopped_ns / 1000};

	recording_add(r, RECORDING_GRAPH, row);
	add_blocks(r, g);
	add_owners(r, g);
	if (g->typed)
		add_types(r, g->typed);
	if (g->typed)
		add_tables(r, g->typed);
	if (g->sites)
		add_sites(r, g);
	fputs(GRAPH_FILE_HEAD, file);
	int rc = recording_write(file, r);

	recording_free(r);
	return rc;
}

/* -- from a file -- */

bool graph_file_is(const char *data, size_t size)
{
	return size >= HEAD_SIZE && memcmp(data, GRAPH_FILE_HEAD, HEAD_SIZE) == 0;
}

static char *copy_text(const struct recording *r, enum recording_table_id id, size_t row,
		       unsigned column)
{
	const char *text = recording_get_text(r, id, row, column);

	return text ? text_clean(text, strlen(text)) : NULL;
}

static const char *take_blocks(const struct recording *r, struct heap_graph *g)
{
	const struct recording_table *t = &r->table[RECORDING_GRAPH_BLOCKS];
	size_t types = recording_rows(r, RECORDING_GRAPH_TYPES);
	uint64_t end = 0;

	if (t->rows >= GRAPH_BLOCKS_MAX || types > GRAPH_TYPE_MAX)
		return "too many blocks or types";
	for (size_t i = 0; i < types; i++)
		*vec_add(&g->types) = copy_text(r, RECORDING_GRAPH_TYPES, i, GRAPH_TYPE_NAME) ?:
				      xstrdup("?");
	g->blocks = (uint32_t)t->rows;
	g->block = huge_alloc(graph_block_bytes(g));
	for (size_t i = 0; i < t->rows; i++) {
		uint64_t addr = t->column[GRAPH_BLOCK_ADDRESS][i];
		uint64_t size = t->column[GRAPH_BLOCK_BYTES][i];
		uint64_t type = t->column[GRAPH_BLOCK_TYPE][i];

		if (addr < end || addr >= ADDRESS_END || size > ADDRESS_END - addr)
			return "blocks that overlap, or are not in order";
		end = addr + MAX(size, UINT64_C(1));
		g->block[i] = (struct graph_block){
			.addr = addr, .size = MIN(size, ADDRESS_END - 1),
			.type = type ? type - 1 : GRAPH_TYPE_MAX};
		g->bytes += g->block[i].size;
	}
	return NULL;
}

static const char *take_owners(const struct recording *r, struct heap_graph *g)
{
	const struct recording_table *t = &r->table[RECORDING_GRAPH_OWNERS];

	if (t->rows >= GRAPH_BLOCKS_MAX - 1)
		return "too many owners";
	for (size_t i = 0; i < t->rows; i++) {
		uint64_t kind = t->column[GRAPH_OWNER_KIND][i];
		uint64_t under = t->column[GRAPH_OWNER_UNDER][i];

		if (kind >= OWNER_LOST || under > i || (kind == OWNER_FRAME) != (under > 0) ||
		    (under && g->owners.data[under - 1].kind != OWNER_STACK))
			return "an owner of an unknown kind, or in the wrong place";
		*vec_add(&g->owners) = (struct graph_owner){
			.kind = (enum graph_owner_kind)kind, .under = (uint32_t)under,
			.tid = (pid_t)t->column[GRAPH_OWNER_THREAD][i],
			.addr = t->column[GRAPH_OWNER_ADDRESS][i],
			.name = copy_text(r, RECORDING_GRAPH_OWNERS, i, GRAPH_OWNER_NAME),
			.object = copy_text(r, RECORDING_GRAPH_OWNERS, i, GRAPH_OWNER_OBJECT)};
	}
	return NULL;
}

/* The edges of each node follow those of the one before. */
static const char *take_first(const struct recording *r, struct heap_graph *g)
{
	const uint64_t *of_block = r->table[RECORDING_GRAPH_BLOCKS].column[GRAPH_BLOCK_EDGES];
	const uint64_t *of_owner = r->table[RECORDING_GRAPH_OWNERS].column[GRAPH_OWNER_EDGES];
	uint64_t edges = recording_rows(r, RECORDING_GRAPH_EDGES), at = 0;

	if (edges >= UINT32_MAX - 1)
		return "too many pointers";
	g->first_room = (size_t)graph_nodes(g) + 2;
	g->first = huge_alloc(g->first_room * sizeof(*g->first));
	for (uint32_t i = 0; i < graph_nodes(g); i++) {
		uint64_t count = i < g->blocks ? of_block[i] : of_owner[i - g->blocks];

		if (count > edges - at)
			return "pointers that are missing";
		at += count;
		g->first[i + 1] = (uint32_t)at;
	}
	return at < edges ? "pointers of no block" : NULL;
}

static void take_edges(const struct recording *r, struct heap_graph *g)
{
	const struct recording_table *t = &r->table[RECORDING_GRAPH_EDGES];

	g->edge_room = t->rows + 1;
	g->edge = huge_alloc(g->edge_room * sizeof(*g->edge));
	g->place = huge_alloc(g->edge_room * sizeof(*g->place));
	for (size_t i = 0; i < t->rows; i++) {
		g->edge[i] = (uint32_t)t->column[GRAPH_EDGE_BLOCK][i] << 1 |
			     (uint32_t)t->column[GRAPH_EDGE_INTERIOR][i];
		g->place[i] = (uint32_t)MIN(t->column[GRAPH_EDGE_PLACE][i], (uint64_t)GRAPH_FAR);
	}
}

static bool has_tables(const struct recording *r)
{
	return recording_rows(r, RECORDING_GRAPH_CONTAINERS) ||
	       recording_rows(r, RECORDING_GRAPH_PADDINGS) ||
	       recording_rows(r, RECORDING_GRAPH_STRINGS);
}

static void take_containers(const struct recording *r, struct graph_types *t)
{
	const struct recording_table *c = &r->table[RECORDING_GRAPH_CONTAINERS];

	for (size_t i = 0; i < c->rows; i++)
		*vec_add(&t->containers) = (struct graph_container){
			.name = copy_text(r, RECORDING_GRAPH_CONTAINERS, i, GRAPH_CONTAINER_TYPE) ?:
				xstrdup("?"),
			.containers = c->column[GRAPH_CONTAINER_COUNT][i],
			.empty = c->column[GRAPH_CONTAINER_EMPTY][i],
			.size = c->column[GRAPH_CONTAINER_SIZE][i],
			.used = c->column[GRAPH_CONTAINER_USED][i],
			.capacity = c->column[GRAPH_CONTAINER_CAPACITY][i]};
}

static void take_padding(const struct recording *r, struct graph_types *t)
{
	const struct recording_table *p = &r->table[RECORDING_GRAPH_PADDINGS];

	for (size_t i = 0; i < p->rows; i++)
		*vec_add(&t->padding) = (struct graph_padding){
			.name = copy_text(r, RECORDING_GRAPH_PADDINGS, i, GRAPH_PADDING_TYPE) ?:
				xstrdup("?"),
			.objects = p->column[GRAPH_PADDING_OBJECTS][i],
			.is_most = p->column[GRAPH_PADDING_MOST][i],
			.size = p->column[GRAPH_PADDING_SIZE][i],
			.padding = p->column[GRAPH_PADDING_BYTES][i],
			.best = p->column[GRAPH_PADDING_BEST][i],
			.order = copy_text(r, RECORDING_GRAPH_PADDINGS, i, GRAPH_PADDING_ORDER)};
}

static void take_strings(const struct recording *r, struct graph_strings *out)
{
	const struct recording_table *s = &r->table[RECORDING_GRAPH_STRINGS];

	for (size_t i = 0; i < s->rows; i++) {
		const struct graph_string row = {
			.length = s->column[GRAPH_STRING_LENGTH][i],
			.copies = s->column[GRAPH_STRING_COPIES][i],
			.bytes = s->column[GRAPH_STRING_BYTES][i],
			.saved = s->column[GRAPH_STRING_SAVED][i]};

		*vec_add(&out->list) = row;
		out->different++;
		out->blocks += row.copies;
		out->bytes += row.bytes;
		out->saved += row.saved;
	}
}

/* The names of words, and tables; a file may have none. */
static const char *take_types(const struct recording *r, struct heap_graph *g)
{
	const struct recording_table *words = &r->table[RECORDING_GRAPH_WORDS];
	const struct recording_table *fields = &r->table[RECORDING_GRAPH_FIELDS];

	if (words->rows == 0 && fields->rows == 0 && !has_tables(r))
		return NULL;
	g->typed = xcalloc(1, sizeof(*g->typed));
	if (words->rows > g->types.count)
		return "words of no type";
	for (size_t i = 0; i < words->rows; i++)
		*vec_add(&g->typed->words) =
			(uint32_t)MIN(words->column[GRAPH_WORD_WORDS][i], UINT64_C(1) << 31);
	for (size_t i = 0; i < fields->rows; i++) {
		uint64_t of = fields->column[GRAPH_FIELD_OF][i];
		uint64_t word = fields->column[GRAPH_FIELD_WORD][i];
		const struct graph_field *last = 
			i ? &g->typed->fields.data[i - 1] : NULL;

		if (of >= UINT32_MAX || word >= UINT32_MAX ||
		    (last && (last->of > of || (last->of == of && last->word >= word))))
			return "names of words that are not in order";
		*vec_add(&g->typed->fields) = (struct graph_field){
			.of = (uint32_t)of, .word = (uint32_t)word,
			.name = copy_text(r, RECORDING_GRAPH_FIELDS, i, GRAPH_FIELD_NAME) ?:
				xstrdup("")};
	}
	take_containers(r, g->typed);
	take_padding(r, g->typed);
	take_strings(r, &g->typed->strings);
	return NULL;
}

static const char *take_calls(const struct recording *r, struct graph_sites *s)
{
	const struct recording_table *calls = &r->table[RECORDING_GRAPH_CALLS];
	const struct recording_table *paths = &r->table[RECORDING_GRAPH_PATHS];

	for (size_t i = 0; i < recording_rows(r, RECORDING_GRAPH_FUNCTIONS); i++)
		*vec_add(&s->functions) = copy_text(r, RECORDING_GRAPH_FUNCTIONS, i,
						    GRAPH_FUNCTION_NAME) ?: xstrdup("?");
	for (size_t i = 0; i < calls->rows; i++) {
		if (calls->column[GRAPH_CALL_CALLER][i] > i)
			return "a call that is before its caller";
		*vec_add(&s->calls) = (struct graph_call){
			(uint32_t)calls->column[GRAPH_CALL_FUNCTION][i],
			(uint32_t)calls->column[GRAPH_CALL_CALLER][i]};
	}
	for (size_t i = 0; i < paths->rows; i++)
		*vec_add(&s->paths) = (struct graph_path){
			(uint32_t)paths->column[GRAPH_PATH_CALL][i],
			(uint32_t)paths->column[GRAPH_PATH_SITE][i]};
	return NULL;
}

/* Where blocks were allocated: a file has it of each block, or nothing. */
static const char *take_sites(const struct recording *r, struct heap_graph *g)
{
	const struct recording_table *t = &r->table[RECORDING_GRAPH_ALLOCATED];

	if (t->rows == 0)
		return NULL;
	if (t->rows != g->blocks || recording_rows(r, RECORDING_GRAPH_CALLS) >= UINT32_MAX - 1)
		return "not one path for each block";
	g->sites = graph_sites_new(g->blocks);
	for (size_t i = 0; i < t->rows; i++)
		g->sites->of_block[i] = (uint32_t)t->column[GRAPH_ALLOCATED_PATH][i];
	return take_calls(r, g->sites);
}

static const char *take_graph(const struct recording *r, struct graph_file *f)
{
	if (recording_rows(r, RECORDING_GRAPH) != 1)
		return "not one graph";
	const char *why = take_blocks(r, &f->graph) ?: take_owners(r, &f->graph) ?:
			  take_first(r, &f->graph) ?: take_types(r, &f->graph) ?:
			  take_sites(r, &f->graph);

	if (why)
		return why;
	take_edges(r, &f->graph);
	f->pid = (uint32_t)recording_get(r, RECORDING_GRAPH, 0, GRAPH_PID);
	f->stopped_ns = recording_get(r, RECORDING_GRAPH, 0, GRAPH_STOPPED) * 1000;
	f->command = copy_text(r, RECORDING_GRAPH, 0, GRAPH_COMMAND);
	return NULL;
}

bool graph_file_is_in(const struct recording *r)
{
	return recording_rows(r, RECORDING_GRAPH) > 0;
}

/* Not solved. */
static const char *take(const struct recording *r, struct graph_file **out)
{
	struct graph_file *f = xcalloc(1, sizeof(*f));

	heap_graph_init(&f->graph);
	f->graph.keeps_edges = true;
	*out = f;
	return take_graph(r, f);
}

const char *graph_file_check(const struct recording *r)
{
	struct graph_file *f;
	const char *why = take(r, &f);

	graph_file_free(f);
	return why;
}

int graph_file_take(const struct recording *r, struct graph_file **out, char **why_out)
{
	struct graph_file *f;
	const char *why = take(r, &f);

	if (why) {
		*why_out = xasprintf("damaged: %s", why);
		graph_file_free(f);
		return -EINVAL;
	}
	heap_graph_solve(&f->graph);
	*out = f;
	return 0;
}

int graph_file_rows(const char *data, size_t size, struct recording **out, char **why_out)
{
	return recording_read_rows(data + HEAD_SIZE, size - HEAD_SIZE, out, why_out);
}

int graph_file_read(const char *data, size_t size, struct graph_file **out, char **why_out)
{
	struct recording *r;
	int rc = graph_file_rows(data, size, &r, why_out);

	if (rc != 0)
		return rc;
	rc = graph_file_take(r, out, why_out);
	recording_free(r);
	return rc;
}

void graph_file_copy(const struct recording *from, struct recording *r)
{
	for (int id = RECORDING_GRAPH; id < RECORDING_TABLES; id++)
		recording_copy(from, (enum recording_table_id)id, r);
}

struct graph_title graph_file_title(const struct graph_file *f)
{
	return (struct graph_title){
		.pid = f->pid, .command = f->command ?: "", .stopped_ns = f->stopped_ns};
}

void graph_file_free(struct graph_file *f)
{
	if (f) {
		heap_graph_deinit(&f->graph);
		free(f->command);
	}
	free(f);
}
