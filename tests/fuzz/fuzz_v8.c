/*
 * Memory of a process with V8, whatever it holds: functions, scopes, scripts and strings, by the
 * offsets of two versions. The input is the memory from an address on; it repeats, so that most
 * references lead somewhere.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_memory.h"

#include <string.h>

#include "base/log.h"
#include "languages/v8.h"

/* Words: references to the start and behind it; small integers; types, and lengths of strings. */
#define P "\1\0\1\0\0\0\0\0"
#define Q "\41\0\1\0\0\0\0\0"
#define ONE "\0\0\0\0\1\0\0\0"
#define TEN "\0\0\0\0\12\0\0\0"
#define TYPE(t) "\0\0\0\0" t "\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	/* objects that are their own map; a string of its own, of two others, a part, a forwarder */
	FUZZ_TEXT(P TYPE("\10") P P Q TYPE("\10") TEN TEN),
	FUZZ_TEXT(P TYPE("\11") P P Q TYPE("\11") P P),
	FUZZ_TEXT(P TYPE("\13") P ONE Q TYPE("\3") P ONE),
	FUZZ_TEXT(P TYPE("\15") P P ONE ONE TEN TEN P P),
	FUZZ_TEXT("\40\0\1\0\0\0\0\0" TYPE("\2") P P P TYPE("\2") P P),
	FUZZ_TEXT(P ONE ONE ONE P ONE ONE TEN P P P P),
	{0},
};

static const struct v8_layout layouts[] = {
	{.frame_context = -8, .frame_closure = -16, .closure_function = 24, .function_name = 16,
	 .function_script = 32, .function_flags = 48, .function_metadata = 24, .script_name = 16,
	 .script_source = 8, .map = 0, .map_type = 12, .string_length = 12, .one_byte = 16,
	 .two_byte = 16, .cons_first = 16, .cons_second = 24, .sliced_parent = 16,
	 .sliced_offset = 24, .thin_actual = 16, .external_resource = 16, .scope_locals = 2,
	 .scope_names = 3},
	{.frame_context = -8, .frame_closure = -16, .closure_function = 32, .function_name = 24,
	 .function_script = 40, .function_flags = 56, .function_metadata = 32, .script_name = 16,
	 .script_source = 8, .map = 0, .map_type = 12, .string_length = 12, .one_byte = 16,
	 .two_byte = 16, .cons_first = 16, .cons_second = 24, .sliced_parent = 16,
	 .sliced_offset = 24, .thin_actual = 16, .external_resource = 16, .scope_locals = 2,
	 .scope_names = 5},
};

static void read_function(struct v8 *v, const struct language_memory *m, taddr_t at)
{
	struct v8_function f;
	uint16_t type;

	/* whatever type is there is taken for those that are wanted */
	if (!m->read(m->ctx, at + 12, &type, sizeof(type)))
		return;
	v->layout.type_function = v->layout.type_scope = v->layout.type_script = type;
	v8_function_stamp(v, m, at);
	v8_frame_function(v, m, at);
	if (v8_function_read(v, m, at, &f) != 0)
		return;
	CHECK(f.name && *f.name);
	v8_function_deinit(&f);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct fuzz_memory memory = {data, size};
	const struct language_memory m = {fuzz_memory_read, &memory};

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct v8 v = {.layout = layouts[i]};

		for (taddr_t at = START; at < START + MIN(size, 128u); at += 8)
			read_function(&v, &m, at);
		v8_deinit(&v);
	}
}
