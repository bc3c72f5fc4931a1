/*
 * Builds pprof messages. An address is one location: its frames are the row of the real function
 * and, after it, those of the functions inlined there. So the number of a location is that of its
 * row plus 1, and the number of a function that of its own row plus 1.
 */
#include "recording/recording_pprof.h"

#include <stdlib.h>
#include <string.h>

#include <src/recording/pprof_profile.pb-c.h> /* generated from pprof_profile.proto */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/text.h"

enum { SAMPLE_TYPES = PPROF_VALUES, LIVE_TYPES = 2 };

/* What a recording may know about the process, for comments. */
static const char *const labels[] = {"pid", "name", "cgroup", "container"};

struct pprof {
	const struct recording *r;
	struct recording *texts;   /* used for its texts only */
	size_t types;              /* of values that are shown: SAMPLE_TYPES or fewer */
	Pprof__Profile profile;
	int64_t comment[2 + ARRAY_SIZE(labels)];
};

/* Names from files may contain any bytes, a profile's texts are UTF-8. */
static int64_t text(struct pprof *p, const char *s)
{
	_cleanup_free_ char *clean = text_clean(s, strlen(s));

	return recording_string(p->texts, clean);
}

static int64_t text_of(struct pprof *p, enum recording_table_id id, size_t row, unsigned column)
{
	return text(p, p->r->text.data[recording_get(p->r, id, row, column)]);
}

/* @count zeroed messages of @size bytes, and pointers to them: the first one owns them. */
static void *make_messages(size_t count, size_t size, void ***pointers_out)
{
	char *all = xcalloc(count + 1, size);

	*pointers_out = xcalloc(count + 1, sizeof(**pointers_out));
	(*pointers_out)[0] = all;
	for (size_t i = 1; i < count; i++)
		(*pointers_out)[i] = all + i * size;
	return all;
}

#define MAKE(p, member, type, n)                                                              \
	({                                                                                    \
		void **pointers_;                                                             \
		type *all_ = make_messages(n, sizeof(type), &pointers_);                      \
		(p)->profile.member = (type **)pointers_;                                     \
		(p)->profile.n_##member = n;                                                  \
		all_;                                                                         \
	})

static void free_messages(void *pointers)
{
	void **all = pointers;

	if (all)
		free(all[0]);
	free(all);
}

/* -- names -- */

/*
 * The row of the program's object. That is the first one, unless it is a library: the dynamic
 * linker, which was executed to run the program, or in a recording that does not know its program.
 */
static size_t program_object(const struct recording *r)
{
	if (!recording_rows(r, RECORDING_OBJECTS) ||
	    !strstr(r->text.data[recording_get(r, RECORDING_OBJECTS, 0, OBJECT_PATH)], ".so"))
		return 0;
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		uint64_t object = recording_get(r, RECORDING_FRAMES, i, FRAME_OBJECT);

		if (object && recording_get(r, RECORDING_FRAMES, i, FRAME_KIND) == KIND_PROGRAM)
			return object - 1;
	}
	return 0;
}

static void fill_mapping(struct pprof *p, Pprof__Mapping *m, size_t row)
{
	pprof__mapping__init(m);
	m->id = row + 1;
	m->memory_start = recording_get(p->r, RECORDING_OBJECTS, row, OBJECT_START);
	m->memory_limit = recording_get(p->r, RECORDING_OBJECTS, row, OBJECT_END);
	m->file_offset = recording_get(p->r, RECORDING_OBJECTS, row, OBJECT_OFFSET);
	m->filename = text_of(p, RECORDING_OBJECTS, row, OBJECT_PATH);
	m->build_id = text_of(p, RECORDING_OBJECTS, row, OBJECT_BUILD_ID);
	m->has_functions = m->has_filenames = true;
	m->has_line_numbers = m->has_inline_frames = true;
}

/* Viewers take the first mapping for the program; the others keep their order. */
static void add_mappings(struct pprof *p)
{
	size_t n = recording_rows(p->r, RECORDING_OBJECTS), program = program_object(p->r);
	Pprof__Mapping *m = MAKE(p, mapping, Pprof__Mapping, n);

	for (size_t i = 0; i < n; i++)
		fill_mapping(p, &m[i == program ? 0 : i + (i < program)], i);
}

static void add_functions(struct pprof *p)
{
	size_t n = recording_rows(p->r, RECORDING_FRAMES);
	Pprof__Function *f = MAKE(p, function, Pprof__Function, n);

	for (size_t i = 0; i < n; i++) {
		pprof__function__init(&f[i]);
		f[i].id = i + 1;
		f[i].name = f[i].system_name = text_of(p, RECORDING_FRAMES, i, FRAME_FUNCTION);
		f[i].filename = text_of(p, RECORDING_FRAMES, i, FRAME_FILE);
	}
}

/* The number of functions at the address whose real function is @row. */
static size_t functions_at(const struct recording *r, size_t row)
{
	size_t end = row + 1;

	while (end < recording_rows(r, RECORDING_FRAMES) &&
	       recording_get(r, RECORDING_FRAMES, end, FRAME_INLINED))
		end++;
	return end - row;
}

static void fill_lines(struct pprof *p, Pprof__Location *l, size_t row)
{
	void **pointers;
	size_t n = functions_at(p->r, row);
	Pprof__Line *line = make_messages(n, sizeof(*line), &pointers);

	l->line = (Pprof__Line **)pointers;
	l->n_line = n;
	for (size_t i = 0; i < n; i++) {
		size_t frame = row + n - 1 - i;

		pprof__line__init(&line[i]);
		line[i].function_id = frame + 1;
		line[i].line = (int64_t)recording_get(p->r, RECORDING_FRAMES, frame, FRAME_LINE);
	}
}

static void add_locations(struct pprof *p)
{
	size_t n = recording_rows(p->r, RECORDING_FRAMES), used = 0;
	Pprof__Location *l = MAKE(p, location, Pprof__Location, n);

	for (size_t i = 0; i < n; i += functions_at(p->r, i), used++) {
		pprof__location__init(&l[used]);
		l[used].id = i + 1;
		l[used].mapping_id = recording_get(p->r, RECORDING_FRAMES, i, FRAME_OBJECT);
		l[used].address = recording_get(p->r, RECORDING_FRAMES, i, FRAME_ADDRESS);
		fill_lines(p, &l[used], i);
	}
	p->profile.n_location = used;
}

/* -- samples -- */

static void add_types(struct pprof *p, bool is_allocated)
{
	static const char *const types[SAMPLE_TYPES][2] = {
		{"inuse_space", "bytes"}, {"inuse_objects", "count"},
		{"alloc_space", "bytes"}, {"alloc_objects", "count"},
	};
	Pprof__ValueType *t = MAKE(p, sample_type, Pprof__ValueType, p->types);

	for (size_t i = 0; i < p->types; i++) {
		pprof__value_type__init(&t[i]);
		t[i].type = text(p, types[i][0]);
		t[i].unit = text(p, types[i][1]);
	}
	p->profile.default_sample_type = t[is_allocated ? 2 : 0].type;
}

/* The location of the address of @frame: that of its real function, which precedes it. */
static uint64_t location_of(const struct recording *r, uint64_t frame)
{
	while (frame > 0 && recording_get(r, RECORDING_FRAMES, frame, FRAME_INLINED))
		frame--;
	return frame + 1;
}

/* The label of @frame, "[KEY: VALUE]" without a place (session/labels.h); NULL: it is none. */
static Pprof__Label *label_of(struct pprof *p, uint64_t frame)
{
	const char *name = p->r->text.data[recording_get(p->r, RECORDING_FRAMES, frame,
							 FRAME_FUNCTION)];
	const char *colon = strstr(name, ": ");
	size_t size = strlen(name);

	if (name[0] != '[' || !colon || name[size - 1] != ']' ||
	    recording_get(p->r, RECORDING_FRAMES, frame, FRAME_OBJECT))
		return NULL;
	_cleanup_free_ char *key = xstrndup(name + 1, (size_t)(colon - name - 1));
	_cleanup_free_ char *value = xstrndup(colon + 2, (size_t)(name + size - colon - 3));
	Pprof__Label *label = xmalloc(sizeof(*label));

	pprof__label__init(label);
	label->key = text(p, key);
	label->str = text(p, value);
	return label;
}

static void fill_stack(struct pprof *p, Pprof__Sample *s, size_t leaf)
{
	VEC(uint64_t) location = {0};
	VEC(Pprof__Label *) found = {0};
	uint64_t n = recording_get(p->r, RECORDING_LEAVES, leaf, LEAF_NODE);

	while (n > 0) {
		uint64_t frame = recording_get(p->r, RECORDING_NODES, n - 1, NODE_FRAME);
		Pprof__Label *label = label_of(p, frame);

		if (label) {
			*vec_add(&found) = label;
			n = recording_get(p->r, RECORDING_NODES, n - 1, NODE_PARENT);
			continue;
		}
		*vec_add(&location) = location_of(p->r, frame);
		/* the frames of one address are one location */
		while (n > 0 && recording_get(p->r, RECORDING_FRAMES, frame, FRAME_INLINED)) {
			n = recording_get(p->r, RECORDING_NODES, n - 1, NODE_PARENT);
			if (n > 0)
				frame = recording_get(p->r, RECORDING_NODES, n - 1, NODE_FRAME);
		}
		if (n > 0)
			n = recording_get(p->r, RECORDING_NODES, n - 1, NODE_PARENT);
	}
	s->location_id = location.data;
	s->n_location_id = location.count;
	s->label = found.data;
	s->n_label = found.count;
}

static void add_samples(struct pprof *p, const struct pprof_value *value)
{
	size_t n = recording_rows(p->r, RECORDING_LEAVES), used = 0;
	Pprof__Sample *s = MAKE(p, sample, Pprof__Sample, n);

	for (size_t i = 0; i < n; i++) {
		const int64_t *of = value[i].of;

		if (!of[0] && !of[1] && !of[2] && !of[3])
			continue;
		pprof__sample__init(&s[used]);
		fill_stack(p, &s[used], i);
		s[used].value = xmemdup(of, sizeof(value[i].of));
		s[used].n_value = p->types;
		used++;
	}
	p->profile.n_sample = used;
}

struct pprof_value *recording_pprof_values(const struct recording *r,
					   const struct recording_view *v,
					   const struct recording_view *total)
{
	size_t n = recording_rows(r, RECORDING_LEAVES);
	struct pprof_value *value = xcalloc(n + 1, sizeof(*value));

	for (size_t i = 0; i < n; i++)
		value[i] = (struct pprof_value){{
			(int64_t)v->leaf[i].bytes,
			(int64_t)recording_count(r, v->leaf[i].blocks),
			(int64_t)total->leaf[i].bytes,
			(int64_t)recording_count(r, total->leaf[i].blocks)}};
	return value;
}

/* -- the whole -- */

/* A time in the file, which may be any text, in nanoseconds; 0 if invalid. */
static int64_t nanoseconds(const struct recording *r, const char *key, double unit)
{
	const char *value = recording_meta(r, key);
	double time = value ? strtod(value, NULL) * unit : 0;

	return time >= 0 && time < 9e18 ? (int64_t)time : 0;
}

static void add_comment(struct pprof *p, const char *s)
{
	p->profile.comment = p->comment;
	p->comment[p->profile.n_comment++] = text(p, s);
}

/* The format has the wall clock only. */
static void add_times(struct pprof *p)
{
	const char *monotonic = recording_meta(p->r, "start_monotonic");
	_cleanup_free_ char *comment = monotonic ? xasprintf("start_monotonic: %s", monotonic) :
						   NULL;

	p->profile.time_nanos = nanoseconds(p->r, "start", 1e9);
	p->profile.duration_nanos = nanoseconds(p->r, "duration", 1e6);
	if (comment)
		add_comment(p, comment);
}

/* Only of processes that ptmem attached to: others have no name in a recording. */
static void add_labels(struct pprof *p)
{
	for (size_t i = 0; recording_meta(p->r, "name") && i < ARRAY_SIZE(labels); i++) {
		const char *value = recording_meta(p->r, labels[i]);
		_cleanup_free_ char *comment =
			value ? xasprintf("%s: %s", labels[i], value) : NULL;

		if (comment)
			add_comment(p, comment);
	}
}

/*
 * As in Go's heap profiles, values are already scaled, and the period is the mean distance of the
 * samples in bytes.
 */
static void add_period(struct pprof *p, Pprof__ValueType *type)
{
	pprof__value_type__init(type);
	if (!p->r->interval)
		return;
	type->type = text(p, "space");
	type->unit = text(p, "bytes");
	p->profile.period_type = type;
	p->profile.period = (int64_t)p->r->interval;
	add_comment(p, "estimates from samples; values are scaled");
}

static void deinit(struct pprof *p)
{
	for (size_t i = 0; i < p->profile.n_sample; i++) {
		for (size_t k = 0; k < p->profile.sample[i]->n_label; k++)
			free(p->profile.sample[i]->label[k]);
		free(p->profile.sample[i]->label);
		free(p->profile.sample[i]->location_id);
		free(p->profile.sample[i]->value);
	}
	for (size_t i = 0; i < p->profile.n_location; i++)
		free_messages(p->profile.location[i]->line);
	free_messages(p->profile.sample_type);
	free_messages(p->profile.sample);
	free_messages(p->profile.mapping);
	free_messages(p->profile.location);
	free_messages(p->profile.function);
	recording_free(p->texts);
}

static void write_profile(FILE *out, struct pprof *p, const struct pprof_value *value,
			  bool is_allocated)
{
	Pprof__ValueType period;

	p->texts = recording_new();
	pprof__profile__init(&p->profile);
	add_types(p, is_allocated);
	add_mappings(p);
	add_functions(p);
	add_locations(p);
	add_samples(p, value);
	add_times(p);
	add_period(p, &period);
	add_labels(p);
	p->profile.string_table = p->texts->text.data;
	p->profile.n_string_table = p->texts->text.count;
	size_t size = pprof__profile__get_packed_size(&p->profile);
	_cleanup_free_ uint8_t *data = xmalloc(size + 1);
	_cleanup_free_ char *packed = NULL;

	size = gzip_pack(data, pprof__profile__pack(&p->profile, data), &packed);
	fwrite(packed, size, 1, out);
	deinit(p);
}

void recording_pprof_write(FILE *out, const struct recording *r, const struct pprof_value *value,
			   bool is_allocated)
{
	struct pprof p = {.r = r, .types = SAMPLE_TYPES};

	write_profile(out, &p, value, is_allocated);
}

void recording_pprof_write_live(FILE *out, const struct recording *r,
				const struct pprof_value *value)
{
	struct pprof p = {.r = r, .types = LIVE_TYPES};

	write_profile(out, &p, value, false);
}

/* -- the heap profile of a Go program, by way of a recording that has only what pprof shows -- */

struct known_frame {
	taddr_t pc;
	uint64_t row;
};

struct go_recording {
	struct recording *r;
	HASH(struct known_frame) frames;
};

static uint64_t frame_row(struct go_recording *g, const struct inspect_go_frame *f)
{
	uint64_t hash = hash_u64(f->pc);
	struct known_frame *known = hash_find(&g->frames, hash, e, e->pc == f->pc);

	if (known)
		return known->row;
	const uint64_t row[FRAME_COLUMNS] = {
		[FRAME_FUNCTION] = recording_string(g->r, f->name),
		[FRAME_FILE] = recording_string(g->r, f->file), [FRAME_LINE] = f->line,
		[FRAME_OBJECT] = 1, [FRAME_ADDRESS] = f->pc - 1};

	known = hash_add(&g->frames, hash);
	*known = (struct known_frame){f->pc, recording_rows(g->r, RECORDING_FRAMES)};
	recording_add(g->r, RECORDING_FRAMES, row);
	return recording_rows(g->r, RECORDING_FRAMES) - 1;
}

static void add_path(struct go_recording *g, const struct inspect_go *go,
		     const struct inspect_go_path *p)
{
	uint64_t node = 0;

	for (uint32_t i = p->frames; i-- > 0;) {
		const uint64_t row[NODE_COLUMNS] = {
			[NODE_PARENT] = node,
			[NODE_FRAME] = frame_row(g, &go->frames.data[p->frame + i])};

		recording_add(g->r, RECORDING_NODES, row);
		node = recording_rows(g->r, RECORDING_NODES);
	}
	const uint64_t leaf[LEAF_COLUMNS] = {[LEAF_NODE] = node};

	recording_add(g->r, RECORDING_LEAVES, leaf);
}

void recording_pprof_write_go(FILE *out, const struct inspect_go *g)
{
	struct go_recording to = {.r = recording_new()};
	struct pprof_value *value = xcalloc(g->paths.count + 1, sizeof(*value));
	const uint64_t object[OBJECT_COLUMNS] = {
		[OBJECT_PATH] = recording_string(to.r, g->path), [OBJECT_START] = g->start,
		[OBJECT_END] = g->end};

	recording_add(to.r, RECORDING_OBJECTS, object);
	to.r->interval = g->rate;
	for (size_t i = 0; i < g->paths.count; i++) {
		const struct go_estimate *e = &g->paths.data[i].counts;

		add_path(&to, g, &g->paths.data[i]);
		value[i] = (struct pprof_value){
			{e->live_bytes, e->live, e->allocated_bytes, e->allocated}};
	}
	recording_pprof_write(out, to.r, value, false);
	free(value);
	hash_deinit(&to.frames);
	recording_free(to.r);
}
