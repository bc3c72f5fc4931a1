/*
 *	ProcessContext  1: Resource  2: KeyValue (extra attributes), repeated
 *	Resource        1: KeyValue, repeated
 *	KeyValue        1: key  2: AnyValue
 *	AnyValue        1: string  5: ArrayValue
 *	ArrayValue      1: AnyValue, repeated
 *
 * The attribute threadlocal.attribute_key_map is the list of keys.
 */
#include "session/otel_keys.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/types.h"
#include "tracee/os/maps.h"
#include "tracee/state/space.h"

#define CONTEXT_NAME "OTEL_CTX"
#define CONTEXT_VERSION 2u
#define PAYLOAD_MAX (1u << 20)
#define KEYS_MAX 256

struct context_header {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns;  /* 0: it is being written */
	uint64_t payload;
};

/* A message, or the rest of one. */
struct key_message {
	const uint8_t *at, *end;
};

/* Takes a number of 7 bits a byte. False: the message ends. */
static bool take_number(struct key_message *m, uint64_t *out)
{
	uint64_t number = 0;

	for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
		uint8_t byte = *m->at++;

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = number;
			return true;
		}
	}
	return false;
}

/* Takes the next field that has a length to *@part; others are passed. False: there is none. */
static bool take_part(struct key_message *m, uint64_t *field_out, struct key_message *part)
{
	uint64_t tag, value;

	while (take_number(m, &tag)) {
		uint64_t left = (uint64_t)(m->end - m->at), fixed = 0;

		switch (tag & 7) {
		case 0:
			if (!take_number(m, &value))
				return false;
			continue;
		case 1:
			fixed = 8;
			break;
		case 5:
			fixed = 4;
			break;
		case 2:
			if (!take_number(m, &value) || value > (uint64_t)(m->end - m->at))
				return false;
			*part = (struct key_message){m->at, m->at + value};
			m->at += value;
			*field_out = tag >> 3;
			return true;
		default:
			return false;
		}
		if (fixed > left)
			return false;
		m->at += fixed;
	}
	return false;
}

static bool is_text(const struct key_message *m, const char *text)
{
	size_t size = strlen(text);

	return (size_t)(m->end - m->at) == size && memcmp(m->at, text, size) == 0;
}

/* The number of @key in the list @array; -1: it is not there. */
static int find_in_array(struct key_message array, const char *key)
{
	struct key_message value, text;
	uint64_t field;

	for (int i = 0; i < KEYS_MAX && take_part(&array, &field, &value); i++)
		if (field == 1 && take_part(&value, &field, &text) && field == 1 &&
		    is_text(&text, key))
			return i;
	return -1;
}

/* The same in the attribute @pair, if it is the list of keys. */
static int find_in_attribute(struct key_message pair, const char *key)
{
	struct key_message part, array;
	bool is_map = false;
	uint64_t field;

	while (take_part(&pair, &field, &part)) {
		if (field == 1)
			is_map = is_text(&part, "threadlocal.attribute_key_map");
		else if (field == 2 && is_map && take_part(&part, &field, &array) && field == 5)
			return find_in_array(array, key);
	}
	return -1;
}

int otel_keys_find_in(const uint8_t *payload, size_t size, const char *key)
{
	struct key_message context = {payload, payload + size};
	struct key_message part, inner;
	uint64_t field, inner_field;
	int found = -1;

	while (found < 0 && take_part(&context, &field, &part)) {
		if (field == 2)
			found = find_in_attribute(part, key);
		while (field == 1 && found < 0 && take_part(&part, &inner_field, &inner))
			if (inner_field == 1)
				found = find_in_attribute(inner, key);
	}
	return found;
}

static int find_at(const struct address_space *space, taddr_t at, const char *key)
{
	struct context_header h, after;

	if (space_read(space, at, &h, sizeof(h)) != 0 ||
	    memcmp(h.signature, CONTEXT_NAME, sizeof(h.signature)) != 0 ||
	    h.version != CONTEXT_VERSION || !h.published_ns || h.size > PAYLOAD_MAX)
		return -1;
	_cleanup_free_ uint8_t *payload = xmalloc(h.size + 1u);

	/* it is written again with another time */
	if (space_read(space, h.payload, payload, h.size) != 0 ||
	    space_read(space, at, &after, sizeof(after)) != 0 ||
	    after.published_ns != h.published_ns)
		return -1;
	return otel_keys_find_in(payload, h.size, key);
}

int otel_keys_find(const struct address_space *space, const char *key)
{
	struct maps maps = {0};
	int found = -1;

	if (maps_read(space->processes.reader, &maps) != 0)
		return -1;
	for (size_t i = 0; found < 0 && i < maps.list.count; i++)
		if (strstr(maps.list.data[i].path, CONTEXT_NAME))
			found = find_at(space, maps.list.data[i].start, key);
	maps_deinit(&maps);
	return found;
}
