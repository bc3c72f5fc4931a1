/* One look at each block; an entry for each content, with the first block that has it. */
#include "graph/equal_strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#define ROWS_MAX 1000u
#define SHOWN_BYTES 48u

struct known_string {
	uint32_t length;        /* EQUAL_STRINGS_LENGTH at most */
	uint32_t block;         /* the first one */
	uint32_t copies;
	uint64_t bytes, least;  /* of their blocks; of the smallest one */
};

struct string_search {
	const struct typed_walk *walk;
	struct graph_strings *out;
	VEC(struct known_string) known;
	HASH(uint32_t) by_text; /* numbers of known ones */
	uint8_t *data, *other;  /* EQUAL_STRINGS_LENGTH + 1 bytes each */
};

static struct typed_extent extent_of(const struct typed_walk *w, uint32_t block)
{
	struct typed_extent e;

	w->heap->extent(w->heap->ctx, block, &e);
	return e;
}

static bool is_bytes(const struct typed_walk *w, uint32_t type)
{
	const struct type_table *t = w->heap->types;
	const struct data_type *e = type_table_get(t, type);
	const struct data_type *element = type_table_get(t, e->target);

	return e->kind == DATA_ARRAY && element->kind == DATA_BASE && element->size == 1;
}

static bool is_text(const uint8_t *data, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if ((data[i] < ' ' && !strchr("\t\n\r", data[i])) || data[i] == 0 ||
		    data[i] == 0x7f)
			return false;
	return length > 0;
}

/* Reads the string in @block, which has @size bytes if a container says so; false: it has none. */
static bool read_string(struct string_search *s, uint32_t block, const uint64_t *size,
			uint64_t *length_out)
{
	const struct typed_extent e = extent_of(s->walk, block);
	uint64_t most = MIN(size ? *size : e.size, e.size);
	uint64_t bytes = MIN(most, EQUAL_STRINGS_LENGTH + 1);

	if (!memory_read(s->walk->heap->memory, e.start, s->data, bytes))
		return false;
	const uint8_t *zero = memchr(s->data, 0, bytes);
	uint64_t length = zero ? (uint64_t)(zero - s->data) : bytes;

	if ((zero == NULL && !size) || (size && length < bytes))
		return false;
	if (length > EQUAL_STRINGS_LENGTH) {
		s->out->skipped++;
		return false;
	}
	*length_out = length;
	return is_text(s->data, length);
}

static bool is_equal(struct string_search *s, const struct known_string *k, uint64_t length)
{
	return k->length == length &&
	       memory_read(s->walk->heap->memory, extent_of(s->walk, k->block).start, s->other,
			   length) &&
	       memcmp(s->data, s->other, length) == 0;
}

static void add_string(struct string_search *s, uint32_t block, uint64_t length)
{
	uint64_t hash = hash_bytes((const char *)s->data, length);
	uint64_t size = extent_of(s->walk, block).size;
	const struct known_string *list = s->known.data;
	const uint32_t *number =
		hash_find(&s->by_text, hash, i, is_equal(s, &list[*i], length));

	if (!number && s->known.count >= EQUAL_STRINGS_MAX) {
		s->out->skipped++;
		return;
	}
	if (!number) {
		*vec_add(&s->known) = (struct known_string){
			.length = (uint32_t)length, .block = block, .least = size};
		*hash_add(&s->by_text, hash) = (uint32_t)s->known.count - 1;
	}
	struct known_string *k = &s->known.data[number ? *number : s->known.count - 1];

	s->out->blocks++;
	s->out->bytes += size;
	k->copies++;
	k->bytes += size;
	k->least = MIN(k->least, size);
}

static int compare_rows(const void *a, const void *b)
{
	const struct graph_string *x = a, *y = b;

	if (x->saved != y->saved)
		return x->saved > y->saved ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static char *shown_text(struct string_search *s, const struct graph_string *r)
{
	uint64_t length = MIN(r->length, (uint64_t)SHOWN_BYTES);

	if (!memory_read(s->walk->heap->memory, extent_of(s->walk, r->block).start, s->data,
			 length))
		return NULL;
	return text_clean((const char *)s->data, length);
}

static void list_rows(struct string_search *s)
{
	struct graph_strings *out = s->out;

	for (size_t i = 0; i < s->known.count; i++) {
		const struct known_string *k = &s->known.data[i];

		out->different++;
		out->saved += k->bytes - k->least;
		if (k->copies > 1)
			*vec_add(&out->list) = (struct graph_string){
				.length = k->length, .copies = k->copies, .bytes = k->bytes,
				.saved = k->bytes - k->least, .block = k->block};
	}
	vec_sort(&out->list, compare_rows);
	out->list.count = MIN(out->list.count, ROWS_MAX);
	for (size_t i = 0; i < out->list.count; i++)
		out->list.data[i].text = shown_text(s, &out->list.data[i]);
}

void equal_strings_find(const struct typed_walk *w, struct graph_strings *out)
{
	struct string_search s = {.walk = w, .out = out,
				  .data = xmalloc(EQUAL_STRINGS_LENGTH + 1),
				  .other = xmalloc(EQUAL_STRINGS_LENGTH + 1)};
	size_t at = 0;

	for (uint32_t block = 0; block < w->heap->blocks; block++) {
		const struct typed_string *given;
		uint64_t length;

		while (at < w->strings.count && w->strings.data[at].block < block)
			at++;
		given = at < w->strings.count && w->strings.data[at].block == block ?
				&w->strings.data[at] : NULL;
		if (is_bytes(w, w->type[block]) &&
		    read_string(&s, block, given ? &given->bytes : NULL, &length))
			add_string(&s, block, length);
	}
	list_rows(&s);
	vec_deinit(&s.known);
	hash_deinit(&s.by_text);
	free(s.data);
	free(s.other);
}
