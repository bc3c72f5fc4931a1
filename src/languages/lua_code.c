/*
 * What the instructions of Lua's functions say: lines, and how functions are called by others,
 * since functions have no names of their own. What is read is the program's: all is bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "languages/lua.h"

#define CODE_MAX (1u << 17)
#define LOCALS_MAX 4096u

enum {
	PROTO_CODES = 24, PROTO_LINES = 28, /* numbers of elements; the same in all versions */
	PROTO_LOCALS = 36, PROTO_FAR_LINES = 40,
	CALL_PREVIOUS = 16,
	VALUE_BYTES = 16,
	TEXT_TAG = 8, TEXT_SHORT = 11, TEXT_LENGTH = 16,
	TAG_SHORT = 4, TAG_LONG = 0x14,
	TAG_STRING_MASK = 0x4f, TAG_STRING = 0x44,
	NAME_BYTES = 16, /* of a local variable's description, and of an upvalue's */
};

/* -- values -- */

#define TEXT_MAX 4096u

char *lua_read_text(const struct language_memory *m, taddr_t addr)
{
	char data[TEXT_MAX];
	uint64_t size;
	uint8_t tag, length;

	if (!addr || addr % sizeof(addr) || !m->read(m->ctx, addr + TEXT_TAG, &tag, 1) ||
	    !m->read(m->ctx, addr + TEXT_SHORT, &length, 1))
		return NULL;
	size = length;
	if ((tag != TAG_SHORT && tag != TAG_LONG) ||
	    (tag == TAG_LONG && !language_read_word(m, addr + TEXT_LENGTH, &size)) || !size)
		return NULL;
	size = MIN(size, sizeof(data));
	return m->read(m->ctx, addr + LUA_TEXT_DATA, data, size) ? text_clean(data, size) : NULL;
}

taddr_t lua_proto_in(const struct language_memory *m, taddr_t value)
{
	taddr_t closure, proto;
	uint8_t tag;

	if (!m->read(m->ctx, value + LUA_VALUE_TAG, &tag, sizeof(tag)) || tag != LUA_TAG_CLOSURE ||
	    !language_read_word(m, value, &closure) ||
	    !language_read_word(m, closure + LUA_CLOSURE_PROTO, &proto))
		return 0;
	return proto;
}

/* The Proto of the function that runs in the CallInfo at @ci; 0: it is none of Lua's. */
static taddr_t running_proto(const struct language_memory *m, taddr_t ci)
{
	taddr_t value;

	return language_read_word(m, ci, &value) ? lua_proto_in(m, value) : 0;
}

/* -- lines -- */

/* A line that is too far from the one before is in a table of its own. */
#define FAR (-128)

static bool read_count(const struct language_memory *m, taddr_t at, uint32_t max, uint32_t *out)
{
	return m->read(m->ctx, at, out, sizeof(*out)) && *out && *out <= max;
}

struct far_line {
	int32_t pc, line;
};

static void decode_lines(const struct virtual_function *f, const int8_t *deltas, uint32_t count,
			 const struct far_line *far, uint32_t far_count)
{
	int64_t line = f->first_line;
	uint32_t next = 0, value;

	for (uint32_t i = 0; i < count; i++) {
		line += deltas[i];
		while (next < far_count && far[next].pc < (int64_t)i)
			next++;
		if (deltas[i] == FAR)
			line = next < far_count && far[next].pc == (int64_t)i ? far[next].line : 0;
		value = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
		memcpy(f->table + i * sizeof(value), &value, sizeof(value));
	}
}

/* 5.4: one byte for each instruction. */
static void read_deltas(const struct lua *l, const struct language_memory *m, taddr_t lines,
			uint32_t count, struct virtual_function *out)
{
	_cleanup_free_ int8_t *deltas = xmalloc(count);
	_cleanup_free_ struct far_line *far = NULL;
	taddr_t far_at;
	uint32_t far_count = 0;

	if (read_count(m, out->object + PROTO_FAR_LINES, count, &far_count) &&
	    language_read_word(m, out->object + l->layout.far_lines, &far_at)) {
		far = xcalloc(far_count, sizeof(*far));
		if (!m->read(m->ctx, far_at, far, far_count * sizeof(*far)))
			far_count = 0;
	} else {
		far_count = 0;
	}
	if (!m->read(m->ctx, lines, deltas, count))
		return;
	out->table = xcalloc(count, sizeof(uint32_t));
	out->table_size = count * sizeof(uint32_t);
	decode_lines(out, deltas, count, far, far_count);
}

void lua_read_lines(const struct lua *l, const struct language_memory *m,
		    struct virtual_function *out)
{
	uint32_t count;
	taddr_t lines;

	if (!read_count(m, out->object + PROTO_LINES, CODE_MAX, &count) ||
	    !language_read_word(m, out->object + l->layout.lines, &lines))
		return;
	if (l->layout.far_lines) {
		read_deltas(l, m, lines, count, out);
		return;
	}
	_cleanup_free_ uint8_t *table = xcalloc(count, sizeof(uint32_t));

	if (!m->read(m->ctx, lines, table, count * sizeof(uint32_t)))
		return;
	out->table = table;
	out->table_size = count * sizeof(uint32_t);
	table = NULL;
}

/* -- names -- */

/* The function that calls, up to the call. */
struct calling_code {
	const struct lua_layout *layout;
	const struct lua_code *code;
	const struct language_memory *memory;
	taddr_t proto;
	uint32_t *word;
	uint32_t pc; /* of the call */
};

static uint32_t bits(uint32_t word, uint8_t shift, uint8_t count)
{
	return word >> shift & ((1u << count) - 1);
}

static uint32_t op_of(const struct calling_code *c, uint32_t word)
{
	return bits(word, 0, c->code->op_bits);
}

static uint32_t arg_a(const struct calling_code *c, uint32_t word)
{
	return bits(word, c->code->op_bits, 8);
}

static uint32_t arg_b(const struct calling_code *c, uint32_t word)
{
	return bits(word, c->code->b_shift, c->code->c_shift > c->code->b_shift ? 8 : 9);
}

static char *constant_name(const struct calling_code *c, uint32_t index)
{
	const struct language_memory *m = c->memory;
	taddr_t constants, text;
	uint8_t tag;

	if (!language_read_word(m, c->proto + c->layout->constants, &constants) ||
	    !language_read_word(m, constants + (taddr_t)index * VALUE_BYTES, &text) ||
	    !m->read(m->ctx, constants + (taddr_t)index * VALUE_BYTES + LUA_VALUE_TAG, &tag,
		     1) ||
	    (tag & TAG_STRING_MASK) != TAG_STRING)
		return NULL;
	return lua_read_text(m, text);
}

static char *upvalue_name(const struct calling_code *c, uint32_t index)
{
	taddr_t names, text;

	if (!language_read_word(c->memory, c->proto + c->layout->upvalues, &names) ||
	    !language_read_word(c->memory, names + (taddr_t)index * NAME_BYTES, &text))
		return NULL;
	return lua_read_text(c->memory, text);
}

/* The variable in register @reg at @pc; NULL: it is none. */
static char *local_name(const struct calling_code *c, uint32_t reg, uint32_t pc)
{
	const struct language_memory *m = c->memory;
	struct { uint64_t name; uint32_t start, end; } local;
	taddr_t locals;
	uint32_t count;

	if (!read_count(m, c->proto + PROTO_LOCALS, LOCALS_MAX, &count) ||
	    !language_read_word(m, c->proto + c->layout->locals, &locals))
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		if (!m->read(m->ctx, locals + (taddr_t)i * NAME_BYTES, &local, sizeof(local)) ||
		    local.start > pc)
			return NULL;
		if (pc < local.end && reg-- == 0)
			return lua_read_text(m, local.name);
	}
	return NULL;
}

static bool sets_register(const struct calling_code *c, uint32_t word, uint32_t reg)
{
	const struct lua_code *code = c->code;
	uint32_t op = op_of(c, word), a = arg_a(c, word);

	if (op == code->load_nil)
		return a <= reg && reg <= a + arg_b(c, word);
	if (op == code->iterate)
		return reg >= a + 2;
	if (op == code->call || op == code->tail_call)
		return reg >= a;
	return reg == a && !(code->without_result[op / 64] >> op % 64 & 1);
}

/* The last instruction before @end that sets @reg for certain; -1: none. */
static int64_t find_setting(const struct calling_code *c, uint32_t end, uint32_t reg)
{
	const struct lua_code *code = c->code;
	int64_t found = -1, target = 0;

	for (uint32_t pc = 0; pc < end; pc++) {
		uint32_t word = c->word[pc];
		int64_t to = (int64_t)pc + 1 + bits(word, code->jump_shift, code->jump_bits) -
			     ((1 << (code->jump_bits - 1)) - 1);

		if (op_of(c, word) == code->jump) {
			if (to <= (int64_t)end && to > target)
				target = to;
		} else if (sets_register(c, word, reg)) {
			found = (int64_t)pc < target ? -1 : (int64_t)pc;
		}
	}
	return found;
}

/* The name of the key of an access by instruction @word; NULL: it is no constant. */
static char *key_name(const struct calling_code *c, uint32_t word)
{
	const struct lua_code *code = c->code;
	bool is_wide = code->c_shift < code->b_shift; /* 5.3: C has 9 bits, the first says so */
	uint32_t key = bits(word, code->c_shift, is_wide ? 9 : 8), op = op_of(c, word);

	if (is_wide)
		return key & 256 ? constant_name(c, key & 255) : NULL;
	if (op == code->get_index || (op == code->self && !(word >> 15 & 1)))
		return NULL;
	return constant_name(c, key);
}

static char *register_name(const struct calling_code *c, uint32_t pc, uint32_t reg)
{
	const struct lua_code *code = c->code;

	for (;;) {
		char *name = local_name(c, reg, pc);
		int64_t set = name ? -1 : find_setting(c, pc, reg);
		uint32_t word = set >= 0 ? c->word[set] : 0, op = op_of(c, word);

		if (set < 0)
			return name;
		if (op == code->get_global || op == code->get_index || op == code->get_field ||
		    op == code->self)
			return key_name(c, word);
		if (op == code->get_upvalue)
			return upvalue_name(c, arg_b(c, word));
		if (op != code->move || arg_b(c, word) >= arg_a(c, word))
			return NULL;
		reg = arg_b(c, word);
		pc = (uint32_t)set;
	}
}

static bool read_caller(const struct lua *l, const struct language_memory *m, taddr_t ci,
			struct calling_code *c)
{
	taddr_t code, position;
	uint32_t count;

	*c = (struct calling_code){.layout = &l->layout, .code = l->layout.instructions,
				   .memory = m, .proto = running_proto(m, ci)};
	if (!c->proto || !read_count(m, c->proto + PROTO_CODES, CODE_MAX, &count) ||
	    !language_read_word(m, c->proto + l->layout.code, &code) ||
	    !language_read_word(m, ci + l->layout.position, &position) || position <= code ||
	    position - code > (taddr_t)count * sizeof(uint32_t) || (position - code) % 4)
		return false;
	c->pc = (uint32_t)((position - code) / sizeof(uint32_t)) - 1;
	c->word = xcalloc(c->pc + 1, sizeof(uint32_t));
	return m->read(m->ctx, code, c->word, (c->pc + 1) * sizeof(uint32_t));
}

char *lua_called_name(const struct lua *l, const struct language_memory *m, taddr_t ci)
{
	uint16_t flags, outer_flags;
	struct calling_code c = {0};
	char *name = NULL;
	taddr_t outer;

	if (!language_read_word(m, ci + CALL_PREVIOUS, &outer) || !outer ||
	    !m->read(m->ctx, ci + l->layout.flags, &flags, sizeof(flags)) ||
	    !m->read(m->ctx, outer + l->layout.flags, &outer_flags,
		     sizeof(outer_flags)) ||
	    flags & l->layout.tail || outer_flags & l->layout.unnamed)
		return NULL;
	if (read_caller(l, m, outer, &c)) {
		uint32_t op = op_of(&c, c.word[c.pc]);

		if (op == c.code->call)
			name = register_name(&c, c.pc, arg_a(&c, c.word[c.pc]));
		else if (op == c.code->iterate)
			name = xstrdup("for iterator");
	}
	free(c.word);
	return name;
}
