/*
 * Words of the program that say whom its memory is for (--label of a variable). ptmem publishes how
 * each is found, and pads compare it with that of the thread's last record, at each allocation.
 * What differs is recorded before that: also the text that a pointer leads to, so that nothing has
 * to be read later, when it may be gone.
 *
 *	where it begins   an address, or an offset from the thread pointer, or from the block of an
 *	                  object in the thread's vector; or an argument of a function
 *	steps             a pointer is loaded, and an offset added to it; NULL: there is no label
 *	what is there     a number, text, or an attribute of OpenTelemetry's thread context
 *
 * Pointers may be of memory that is gone, and everything may be the program's lie: loads may fail,
 * and nothing is followed without a bound. ptmem does the same with a thread that is stopped, so
 * this code is compiled into the recorder, too. All loads are of aligned words, which are on one
 * page.
 */
#ifndef PTMEM_ARCH_PAD_LABEL_H
#define PTMEM_ARCH_PAD_LABEL_H

#include <stdint.h>

#define PAD_LABELS 8u
#define PAD_LABEL_ARGUMENTS 3u /* the first ones of a function, in registers that pads save */
#define PAD_LABEL_STEPS 9u
#define PAD_LABEL_WORDS 10u /* of a text: 80 bytes */
#define PAD_LABEL_BYTES (8 * PAD_LABEL_WORDS)
#define PAD_LABEL_CHECKS 32u /* words that are compared; if there are more, all are read anew */

enum pad_label_kind {
	PAD_LABEL_NONE,
	PAD_LABEL_NUMBER,    /* of `size` bytes */
	PAD_LABEL_TEXT,      /* of at most `size` bytes, up to a 0 */
	PAD_LABEL_COUNTED,   /* the words at `data` and `length` from there say where it is */
	PAD_LABEL_ATTRIBUTE, /* of a thread context: that with the key `key` */
};

enum pad_label_base {
	PAD_LABEL_FIXED,     /* place is the address */
	PAD_LABEL_THREAD,    /* it is an offset from the thread pointer */
	PAD_LABEL_VECTOR,    /* from the word at `entry` of the thread's vector */
	/* from the word with the argument; it is read at the function's entry (PAD_LABELLED) */
	PAD_LABEL_CALL,
};

/* How a label is found. */
struct pad_label {
	uint32_t kind, base;
	int64_t place;
	/* offsets: of the vector's address from the thread pointer, of the entry, of the count */
	int64_t vector, entry, count;
	uint64_t number;     /* of the entry: it exists if the count is not less */
	uint32_t steps, size;
	uint64_t offset[PAD_LABEL_STEPS]; /* after each step's load */
	uint32_t data, length;
	uint32_t key;
	uint32_t has_null;   /* that the last step's pointer is NULL is a value: PAD_LABEL_NULL */
	uint64_t function;   /* PAD_LABEL_CALL: its address; which of its arguments, from 0 */
	uint64_t argument;
};

enum pad_label_state {
	PAD_LABEL_ABSENT,    /* the thread has none now */
	PAD_LABEL_PRESENT,
	PAD_LABEL_GONE,      /* it cannot be read */
	PAD_LABEL_NULL,      /* instead of a text there is a pointer that is NULL */
	PAD_LABEL_STATES,
};

struct pad_label_value {
	uint32_t state;
	uint32_t size;       /* bytes; those behind them are 0 */
	uint64_t word[PAD_LABEL_WORDS];
	/*
	 * PAD_LABEL_CALL: the stack pointer at the function's entry, where its return address is,
	 * and that; sp 0: the thread is in no such call
	 */
	uint64_t sp, return_pc;
};

/* OpenTelemetry's thread context record (OTEP 4947), version 1: offsets, and values. */
#define PAD_CONTEXT_VALID 24
#define PAD_CONTEXT_SIZE 26   /* 16 bits: bytes of the attributes */
#define PAD_CONTEXT_ATTRIBUTES 28 /* each: key, size, value */
#define PAD_CONTEXT_MAX 640u  /* bytes of attributes that are searched */

/*
 * Loads the aligned word at @at of the program: 0 if it is not there. @is_fixed: it is one of the
 * thread's vector, which stays as it is if it leads to a block.
 */
typedef int pad_label_load(void *ctx, uint64_t at, int is_fixed, uint64_t *out);

#define PAD_LABEL_INLINE static inline __attribute__((always_inline))

struct pad_label_reader {
	pad_label_load *load;
	void *ctx;
};

/* The @size bytes at @at, at most 8, of which the first is the lowest. */
PAD_LABEL_INLINE int pad_label_bytes(const struct pad_label_reader *r, uint64_t at, uint32_t size,
				     uint64_t *out)
{
	uint32_t shift = 8 * (uint32_t)(at % 8);
	uint64_t low, high = 0;

	if (!r->load(r->ctx, at - at % 8, 0, &low))
		return 0;
	low >>= shift;
	if (shift && 8 * size > 64 - shift) {
		if (!r->load(r->ctx, at - at % 8 + 8, 0, &high))
			return 0;
		low |= high << (64 - shift);
	}
	*out = size < 8 ? low & ((1ull << 8 * size) - 1) : low;
	return 1;
}

/* How many bytes of @word precede the first one that is 0; 8: none is. */
PAD_LABEL_INLINE uint32_t pad_label_end(uint64_t word)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t zeros = (word - ones) & ~word & (ones << 7);

	return zeros ? (uint32_t)__builtin_ctzll(zeros) / 8 : 8;
}

/* Text of at most @max bytes; up to a 0 if @is_ended. */
PAD_LABEL_INLINE void pad_label_text(const struct pad_label_reader *r, uint64_t at, uint64_t max,
				     int is_ended, struct pad_label_value *out)
{
	uint32_t end = 8;

	if (max > PAD_LABEL_BYTES)
		max = PAD_LABEL_BYTES;
	for (uint32_t i = 0; 8ull * i < max && end == 8; i++) {
		uint32_t left = (uint32_t)max - 8 * i, part = 8 - (uint32_t)(at % 8);
		uint64_t word;

		left = left < 8 ? left : 8;
		part = part < left ? part : left;
		if (!pad_label_bytes(r, at, part, &word)) {
			out->state = PAD_LABEL_GONE;
			return;
		}
		/* behind its end may be no memory */
		if (part < left && (!is_ended || pad_label_end(word | ~0ull << 8 * part) == 8) &&
		    !pad_label_bytes(r, at, left, &word)) {
			out->state = PAD_LABEL_GONE;
			return;
		}
		if (is_ended)
			end = pad_label_end(word);
		if (end < 8)
			word &= (1ull << 8 * end) - 1;
		out->word[i] = word;
		out->size += end < left ? end : left;
		at += 8;
	}
}

/* The value of attribute @key in the context at @at. */
PAD_LABEL_INLINE void pad_label_attribute(const struct pad_label_reader *r, uint64_t at,
					  uint32_t key, struct pad_label_value *out)
{
	uint64_t valid, size, head;

	out->state = PAD_LABEL_GONE;
	if (!pad_label_bytes(r, at + PAD_CONTEXT_VALID, 1, &valid) ||
	    !pad_label_bytes(r, at + PAD_CONTEXT_SIZE, 2, &size))
		return;
	out->state = PAD_LABEL_ABSENT;
	if (valid != 1)
		return;
	size = size < PAD_CONTEXT_MAX ? size : PAD_CONTEXT_MAX;
	at += PAD_CONTEXT_ATTRIBUTES;
	for (uint64_t i = 0; i + 2 <= size; i += 2 + (head >> 8)) {
		if (!pad_label_bytes(r, at + i, 2, &head)) {
			out->state = PAD_LABEL_GONE;
			return;
		}
		if ((head & 0xff) != key || i + 2 + (head >> 8) > size)
			continue;
		out->state = PAD_LABEL_PRESENT;
		pad_label_text(r, at + i + 2, head >> 8, 0, out);
		return;
	}
}

/* Where the steps of @l begin; 0: it cannot be read; 1: the thread has no such block yet. */
PAD_LABEL_INLINE uint64_t pad_label_start(const struct pad_label *l,
					  const struct pad_label_reader *r, uint64_t thread)
{
	uint64_t vector, count, block;

	if (l->base == PAD_LABEL_FIXED)
		return (uint64_t)l->place;
	if (l->base == PAD_LABEL_THREAD || l->base == PAD_LABEL_CALL)
		return thread + (uint64_t)l->place;
	if (!r->load(r->ctx, thread + (uint64_t)l->vector, 1, &vector) ||
	    !r->load(r->ctx, vector + (uint64_t)l->count, 1, &count))
		return 0;
	if (count < l->number)
		return 1;
	if (!r->load(r->ctx, vector + (uint64_t)l->entry, 1, &block))
		return 0;
	/* what has not been used has an odd number there */
	return block && block % 8 == 0 ? block + (uint64_t)l->place : 1;
}

/*
 * What @l is in the thread with the thread pointer @thread; PAD_LABEL_CALL: @thread is where a word
 * with the argument is. *@out is cleared. ptmem may be taking @l away meanwhile: the kind is read
 * once, and what belongs to it stays.
 */
PAD_LABEL_INLINE void pad_label_read(const struct pad_label *l, const struct pad_label_reader *r,
				     uint64_t thread, struct pad_label_value *out)
{
	uint32_t kind = __atomic_load_n(&l->kind, __ATOMIC_ACQUIRE);
	uint64_t at = kind == PAD_LABEL_NONE ? 1 : pad_label_start(l, r, thread), length;

	out->state = at ? PAD_LABEL_ABSENT : PAD_LABEL_GONE;
	if (at <= 1)
		return;
	for (uint32_t i = 0; i < l->steps && i < PAD_LABEL_STEPS; i++) {
		if (!pad_label_bytes(r, at, 8, &at)) {
			out->state = PAD_LABEL_GONE;
			return;
		}
		if (!at) {
			if (l->has_null && i + 1 == l->steps)
				out->state = PAD_LABEL_NULL;
			return;
		}
		at += l->offset[i];
	}
	out->state = PAD_LABEL_PRESENT;
	if (kind == PAD_LABEL_NUMBER) {
		out->size = l->size;
		if (!pad_label_bytes(r, at, l->size, &out->word[0]))
			out->state = PAD_LABEL_GONE;
	} else if (kind == PAD_LABEL_TEXT) {
		pad_label_text(r, at, l->size, 1, out);
	} else if (kind == PAD_LABEL_ATTRIBUTE) {
		pad_label_attribute(r, at, l->key, out);
	} else {
		if (!pad_label_bytes(r, at + l->length, 8, &length) ||
		    !pad_label_bytes(r, at + l->data, 8, &at))
			out->state = PAD_LABEL_GONE;
		else
			pad_label_text(r, at, length, 0, out);
	}
}

/* As it is recorded: what cannot be read has no bytes. */
PAD_LABEL_INLINE uint32_t pad_label_words(const struct pad_label_value *v)
{
	return v->state == PAD_LABEL_PRESENT ? (v->size + 7) / 8 : 0;
}

#endif
