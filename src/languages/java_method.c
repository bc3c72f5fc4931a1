/*
 * Java methods: which ones run at an address, their names and lines.
 *
 *	PcDesc      {offset in the code, position in the scopes}, ascending
 *	scope       {position of the caller's, or 0; index of the method; bci + 1; ...}
 *	line table  behind the bytecode: a byte {5 bits of bci, 3 bits of line} added to the last
 *	            ones, or 0xff and two signed numbers; 0 ends it
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "languages/java.h"

#define WORD ((uint32_t)sizeof(uint64_t))

/* -- numbers -- */

#define HIGH_BITS 6u     /* of each further byte */
#define NUMBER_BYTES 5u

bool java_read_number(const uint8_t *data, size_t size, size_t *at, bool has_zero, uint32_t *out)
{
	/* a byte below that is the last one; since 20 bytes are larger by 1, and 0 is none */
	uint32_t more = 256 - (1u << HIGH_BITS) - !has_zero, sum = 0;

	for (uint32_t i = 0; i < NUMBER_BYTES; i++) {
		if (*at >= size || (!has_zero && !data[*at]))
			return false;
		uint32_t byte = data[(*at)++] - (uint32_t)!has_zero;

		sum += byte << (i * HIGH_BITS);
		if (byte < more)
			break;
	}
	*out = sum;
	return true;
}

static int32_t signed_number(uint32_t n)
{
	return (int32_t)(n >> 1 ^ -(n & 1));
}

static bool has_zero(const struct java *j)
{
	return j->version < 20;
}

/* -- what runs at an address -- */

#define DESCS_AT_ONCE 256u
#define DESCS_MAX (1u << 20)
#define SCOPE_BYTES 16u   /* of the numbers that are read: 3 of 5 */
#define METADATA_MAX (1u << 16)

/* The position of the scope of @pc; 0 = none. A descriptor's address is a return address. */
static uint32_t find_scope(const struct java *j, const struct language_memory *m,
			   const struct java_blob *b, const struct java_place *place)
{
	const struct java_layout *l = &j->layout;
	int64_t want = (int64_t)(place->pc - b->start);
	uint8_t entry[64];
	uint64_t low = 0, high = 0;

	if (b->descs_end > b->descs && l->desc_size >= 8 && l->desc_size <= sizeof(entry) &&
	    l->desc_pc <= l->desc_size - 4 && l->desc_scope <= l->desc_size - 4)
		high = MIN((b->descs_end - b->descs) / l->desc_size, (uint64_t)DESCS_MAX);
	/* the first one that is not before it */
	for (uint64_t end = high; low < high;) {
		uint64_t mid = low + (high - low) / 2;

		if (!m->read(m->ctx, b->descs + mid * l->desc_size, entry, l->desc_size))
			return 0;
		if ((int32_t)load_u32(entry + l->desc_pc) < want)
			low = mid + 1;
		else
			high = mid;
		if (low == high && low == end)
			return 0;
	}
	if (!b->descs || !m->read(m->ctx, b->descs + low * l->desc_size, entry, l->desc_size) ||
	    (place->is_return && (int32_t)load_u32(entry + l->desc_pc) != want))
		return 0;
	return load_u32(entry + l->desc_scope);
}

bool java_is_described(const struct java *j, const struct language_memory *m,
		       const struct java_blob *blob, taddr_t pc)
{
	const struct java_place place = {.pc = pc, .is_return = true};

	return find_scope(j, m, blob, &place) != 0;
}

/* Reads the scope at *@at, which becomes its caller's, or 0. False if it is none. */
static bool read_scope(const struct java *j, const struct language_memory *m,
		       const struct java_blob *b, uint32_t *at, struct java_frame *out)
{
	uint8_t data[SCOPE_BYTES];
	size_t n = 0;
	uint32_t caller, index, bci;

	if (!m->read(m->ctx, b->scopes + *at, data, sizeof(data)) ||
	    !java_read_number(data, sizeof(data), &n, has_zero(j), &caller) ||
	    !java_read_number(data, sizeof(data), &n, has_zero(j), &index) ||
	    !java_read_number(data, sizeof(data), &n, has_zero(j), &bci) ||
	    !index || index > METADATA_MAX)
		return false;
	*at = caller < *at ? caller : 0; /* callers are written first */
	out->bci = (int32_t)bci - 1;
	return language_read_word(m, b->metadata + (index - 1) * (uint64_t)WORD, &out->method) &&
	       java_method_stamp(j, m, out->method);
}

static uint32_t compiled_frames(const struct java *j, const struct language_memory *m,
				const struct java_blob *b, const struct java_place *place,
				struct java_frame *out)
{
	struct java_place at = *place;
	uint32_t scope, n = 0;

	if ((at.pc == b->deopt || at.pc == b->deopt_mh) && at.pc && b->original &&
	    !language_read_word(m, at.sp + b->original, &at.pc))
		return 0;
	scope = b->metadata && b->scopes ? find_scope(j, m, b, &at) : 0;
	while (scope && n < JAVA_FRAMES_MAX && read_scope(j, m, b, &scope, &out[n]))
		n++;
	if (!n && b->method)
		out[n++] = (struct java_frame){b->method, -1};
	return n;
}

/* Words of an interpreted frame below the saved stack pointer: method, mirror, data, cache, ... */
#define FRAME_METHOD 1
#define FRAME_BYTECODE 6

bool java_running(const struct java *j, const struct language_memory *m,
		  const struct java_place *place, struct java_running *out)
{
	int64_t last = j->layout.frame_last;

	return place->fp &&
	       language_read_word(m, place->fp + (uint64_t)(last - FRAME_METHOD) * WORD,
				  &out->method) &&
	       language_read_word(m, place->fp + (uint64_t)(last - FRAME_BYTECODE) * WORD,
				  &out->bytecode);
}

static uint32_t interpreted_frame(const struct java *j, const struct language_memory *m,
				  const struct java_place *place, struct java_frame *out)
{
	const struct java_layout *l = &j->layout;
	struct java_running r;
	taddr_t code, start;
	uint16_t size;

	if (!java_running(j, m, place, &r) || !java_method_stamp(j, m, r.method) ||
	    !language_read_word(m, r.method + l->method_const, &code))
		return 0;
	*out = (struct java_frame){r.method, -1};
	start = code + l->const_size;
	if (m->read(m->ctx, code + l->const_code_size, &size, sizeof(size)) &&
	    r.bytecode >= start && r.bytecode - start < size)
		out->bci = (int32_t)(r.bytecode - start);
	return 1;
}

uint32_t java_frames(const struct java *j, const struct language_memory *m,
		     const struct java_blob *blob, const struct java_place *place,
		     struct java_frame *out)
{
	switch (blob->kind) {
	case JAVA_COMPILED:
	case JAVA_NATIVE:
		return compiled_frames(j, m, blob, place, out);
	case JAVA_INTERPRETER:
		return interpreted_frame(j, m, place, out);
	case JAVA_STUB:
		break;
	}
	return 0;
}

/* -- names -- */

#define NAME_MAX_BYTES 1024u
#define LINES_MAX (1u << 20)
#define LINES_AT_ONCE 256u

/* The text of the symbol at @symbol; NULL if there is none. The caller frees it. */
static char *symbol_text(const struct java *j, const struct language_memory *m, taddr_t symbol)
{
	const struct java_layout *l = &j->layout;
	uint32_t first;
	uint16_t length;
	char text[NAME_MAX_BYTES];

	if (!symbol || symbol % WORD)
		return NULL;
	if (l->symbol_length != JAVA_ABSENT) {
		if (!m->read(m->ctx, symbol + l->symbol_length, &length, sizeof(length)))
			return NULL;
	} else {
		if (!m->read(m->ctx, symbol, &first, sizeof(first)))
			return NULL;
		length = (uint16_t)(first >> 16);
	}
	size_t size = MIN((size_t)length, sizeof(text));

	if (!size || !m->read(m->ctx, symbol + l->symbol_text, text, size))
		return NULL;
	return text_clean(text, size);
}

/* Entry @index of a constant pool, which is a symbol. */
static char *pool_text(const struct java *j, const struct language_memory *m, taddr_t pool,
		       uint16_t index)
{
	taddr_t symbol;

	if (!index ||
	    !language_read_word(m, pool + j->layout.pool_size + (uint64_t)index * WORD, &symbol))
		return NULL;
	return symbol_text(j, m, symbol & ~UINT64_C(1));
}

/*
 * Makes a class's name what source code has: dots, and without the address that a hidden class
 * (lambda) has at its end, since it differs from run to run.
 */
static void shorten_class(char *name)
{
	static const char *const address[] = {"/0x", "+0x"};

	for (size_t i = 0; i < ARRAY_SIZE(address); i++) {
		char *end = strstr(name, address[i]);

		if (end)
			*end = '\0';
	}
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '.';
}

static uint16_t read_short(const struct language_memory *m, taddr_t addr)
{
	uint16_t n;

	return m->read(m->ctx, addr, &n, sizeof(n)) ? n : 0;
}

static char *source_file(const struct java *j, const struct language_memory *m, taddr_t pool,
			 taddr_t class)
{
	const struct java_layout *l = &j->layout;
	uint16_t index = l->pool_source != JAVA_ABSENT	? read_short(m, pool + l->pool_source) :
			 l->class_source != JAVA_ABSENT ? read_short(m, class + l->class_source) :
							  0;

	return pool_text(j, m, pool, index);
}

/* Reads the line table, which has no length: up to its end, or to what cannot be read. */
static void read_lines(const struct java *j, const struct language_memory *m, taddr_t code,
		       struct java_method *out)
{
	const struct java_layout *l = &j->layout;
	taddr_t at = code + l->const_size + out->code_size;
	uint32_t flags;
	size_t capacity = 0;

	if (l->const_flags == JAVA_ABSENT || l->const_has_lines == JAVA_ABSENT ||
	    !m->read(m->ctx, code + l->const_flags, &flags, sizeof(flags)) ||
	    !(flags & l->const_has_lines))
		return;
	for (size_t i = 0; out->lines_size < LINES_MAX; i = out->lines_size) {
		size_t more = LINES_AT_ONCE;

		out->lines = xgrow(out->lines, &capacity, i + more, 1);
		while (more && !m->read(m->ctx, at + i, out->lines + i, more))
			more /= 2;
		out->lines_size += more;
		/* a 0 may be a part of a number: those that are wrong in this are longer */
		if (!more || memchr(out->lines + i, 0, more))
			break;
	}
	/* the number of which that 0 is a part, and what follows it */
	size_t more = LINES_AT_ONCE;

	out->lines = xgrow(out->lines, &capacity, out->lines_size + more, 1);
	while (more && !m->read(m->ctx, at + out->lines_size, out->lines + out->lines_size, more))
		more /= 2;
	out->lines_size += more;
}

uint64_t java_method_stamp(const struct java *j, const struct language_memory *m, taddr_t method)
{
	const struct java_layout *l = &j->layout;
	taddr_t code, pool;

	if (!method || method % WORD || !language_read_word(m, method + l->method_const, &code) ||
	    !code || code % WORD || !language_read_word(m, code + l->const_pool, &pool) || !pool ||
	    pool % WORD)
		return 0;
	uint64_t names = read_short(m, code + l->const_name) |
			 (uint64_t)read_short(m, code + l->const_code_size) << 16;

	return hash_u64(hash_u64(hash_u64(code) ^ pool) ^ names) | 1;
}

int java_method_read(const struct java *j, const struct language_memory *m, taddr_t method,
		     struct java_method *out)
{
	const struct java_layout *l = &j->layout;
	struct java_method x = {.has_zero = has_zero(j)};
	taddr_t code, pool, class, symbol;

	x.stamp = java_method_stamp(j, m, method);
	if (!x.stamp || !language_read_word(m, method + l->method_const, &code) ||
	    !language_read_word(m, code + l->const_pool, &pool) ||
	    !language_read_word(m, pool + l->pool_holder, &class) || !class || class % WORD ||
	    !language_read_word(m, class + l->class_name, &symbol))
		return -EINVAL;
	_cleanup_free_ char *class_name = symbol_text(j, m, symbol);
	_cleanup_free_ char *name = pool_text(j, m, pool, read_short(m, code + l->const_name));

	if (!class_name || !name)
		return -EINVAL;
	shorten_class(class_name);
	x.name = xasprintf("%s.%s", class_name, name);
	x.file = source_file(j, m, pool, class);
	x.code_size = read_short(m, code + l->const_code_size);
	read_lines(j, m, code, &x);
	*out = x;
	return 0;
}

void java_method_deinit(struct java_method *x)
{
	free(x->name);
	free(x->file);
	free(x->lines);
	*x = (struct java_method){0};
}

uint32_t java_method_line(const struct java_method *x, int32_t bci)
{
	int64_t at = 0, line = 0, best_bci = -1, best_line = 0;

	if (bci < 0)
		return 0;
	for (size_t i = 0; i < x->lines_size && x->lines[i];) {
		uint8_t byte = x->lines[i++];

		if (byte != 0xff) {
			at += byte >> 3;
			line += byte & 7;
		} else {
			uint32_t more, lines;

			if (!java_read_number(x->lines, x->lines_size, &i, x->has_zero, &more) ||
			    !java_read_number(x->lines, x->lines_size, &i, x->has_zero, &lines))
				break;
			at += signed_number(more);
			line += signed_number(lines);
		}
		if (at <= bci && at >= best_bci) {
			best_bci = at;
			best_line = line;
		}
	}
	return best_line > 0 && best_line <= UINT16_MAX ? (uint32_t)best_line : 0;
}
