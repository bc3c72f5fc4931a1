/*
 * Hash tables, and the functions that hash numbers and bytes. Hides: probing, growth, and how a gap
 * is closed. Tables on the path of every event have their own code: blocks, cells, call tree,
 * unwind rules, pad slots.
 */
#ifndef PTMEM_BASE_HASH_H
#define PTMEM_BASE_HASH_H

#include "base/alloc.h"
#include "base/types.h"

/* Mixes all bits of @x (the finaliser of MurmurHash3). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* FNV-1a, then mixed, since its low bits are weak. */
static inline uint64_t hash_bytes(const char *s, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3ull;
	return hash_u64(h);
}

/*
 * A typed table with open addressing: of elements, or of their numbers in an array. All zeros:
 * empty. The caller hashes and compares. An element's address is valid until the next one is added
 * or removed.
 *
 *	HASH(struct block) h = {0};
 *	struct block *b = hash_find(&h, hash_u64(addr), e, e->addr == addr); // NULL: there is none
 *	*hash_add(&h, hash_u64(addr)) = (struct block){addr};  // which is not in it yet
 *	for (size_t i = 0; hash_next(&h.index, &i); i++) use(&h.slot[i]);    // in no order
 *	hash_remove(&h, b);
 *	hash_deinit(&h);
 */
struct hash_index {
	uint32_t *code;  /* by slot: of its element; 0 = free. Owned */
	size_t count;    /* of elements: at most 3/4 of the slots */
	size_t capacity; /* of slots: a power of two, or 0 */
};

#define HASH(type) struct { type *slot; struct hash_index index; }

/*
 * The element with the hash @hash_of for which @is_equal is true: an expression that uses @e, a
 * pointer to an element. NULL if there is none.
 */
#define hash_find(h, hash_of, e, is_equal)                                             \
	({                                                                             \
		const uint32_t code_ = hash_code(hash_of);                             \
		const size_t mask_ = (h)->index.capacity - 1;                          \
		__typeof__(&*(h)->slot) found_ = NULL;                                 \
		for (size_t i_ = code_; (h)->index.capacity; i_++) {                   \
			__typeof__(&*(h)->slot) e = &(h)->slot[i_ & mask_];            \
			if (!(h)->index.code[i_ & mask_])                              \
				break;                                                 \
			if ((h)->index.code[i_ & mask_] == code_ && (is_equal)) {      \
				found_ = e;                                            \
				break;                                                 \
			}                                                              \
		}                                                                      \
		found_;                                                                \
	})

/* Adds an element with the hash @hash_of, zeroed; returns its address. */
#define hash_add(h, hash_of)                                                           \
	((h)->slot = hash_reserve(&(h)->index, (h)->slot, sizeof(*(h)->slot)),         \
	 &(h)->slot[hash_take(&(h)->index, (hash_of))])

#define hash_remove(h, e) \
	hash_drop(&(h)->index, (h)->slot, sizeof(*(h)->slot), (size_t)((e) - (h)->slot))

/* Copies the elements of @from to @to, which has none. */
#define hash_copy(to, from)                                                            \
	((to)->slot = hash_copy_index(&(to)->index, &(from)->index, (from)->slot,      \
				      sizeof(*(to)->slot)))

#define hash_deinit(h)                                                                 \
	(free((h)->slot), free((h)->index.code), (h)->slot = NULL,                     \
	 (h)->index = (struct hash_index){0})

/* Advances *@i to the first slot from there on that has an element; false at the end. */
static inline bool hash_next(const struct hash_index *x, size_t *i)
{
	while (*i < x->capacity && !x->code[*i])
		++*i;
	return *i < x->capacity;
}

/* -- used by the macros -- */

static inline uint32_t hash_code(uint64_t hash)
{
	return (uint32_t)hash ? (uint32_t)hash : 1;
}

/* Makes room for one more in @slot, elements of @size bytes; returns where they are then. */
void *hash_reserve(struct hash_index *x, void *slot, size_t size);
/* A free slot for an element with that hash, which counts as used then. */
size_t hash_take(struct hash_index *x, uint64_t hash);
/* Frees slot @i; elements that collided with it move up. */
void hash_drop(struct hash_index *x, void *slot, size_t size, size_t i);
/* Copies codes and slots; returns the slots of @to. */
void *hash_copy_index(struct hash_index *to, const struct hash_index *from, const void *slot,
		      size_t size);

#endif
