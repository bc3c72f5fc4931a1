/*
 * The recorder's part for labels of variables: reads them, and records those that differ from the
 * thread's last ones. See arch/pad_label.h.
 */
#include "arch/recorder/recorder_ring.h"

/* All loads of labels, since a fault of this one is known by its address. */
static KEEPS __attribute__((noinline)) int load_word(uint64_t at, uint64_t *out)
{
	return cpu_label_load(at, out);
}

/* A thread that reads its labels. */
struct label_walk {
	struct pad_slot *slot;
	int has_passed;         /* the word that was not there last time */
};

/* A pad_label_load. A word that was not there is not tried again as long as it is asked for. */
INLINE int load(void *ctx, uint64_t at, uint64_t *out)
{
	struct label_walk *w = ctx;

	if (unlikely(at == w->slot->label_fault)) {
		w->has_passed = 1;
		return 0;
	}
	if (likely(load_word(at, out)))
		return 1;
	w->slot->label_fault = at;
	w->has_passed = 1;
	return 0;
}

INLINE int is_same_value(const struct pad_label_value *a, const struct pad_label_value *b)
{
	uint64_t differs = a->size ^ b->size;

	if (a->state != b->state)
		return 0;
	for (uint32_t i = 0; i < pad_label_words(a); i++)
		differs |= a->word[i] ^ b->word[i];
	return !differs || a->state != PAD_LABEL_PRESENT;
}

static KEEPS __attribute__((noinline)) int send_label(struct pad_control *c, struct pad_slot *slot,
						      uint32_t label,
						      const struct pad_label_value *v)
{
	struct pad_label_value *last = &slot->label[label];
	uint32_t words = pad_label_words(v);
	uint64_t size = record_size(c, sizeof(struct pad_record_label) + 8ull * words);
	struct pad_record_label *r;
	struct ring_place place;

	WRITE(slot->dirty, 1); /* up to the slot's copy */
	if (unlikely(!reserve(c, slot, size, &place))) {
		WRITE(slot->dirty, 0);
		return 0;
	}
	r = (struct pad_record_label *)place.word;
	r->size = (uint32_t)size;
	r->label = (uint8_t)label;
	r->state = (uint8_t)v->state;
	r->bytes = (uint16_t)(v->state == PAD_LABEL_PRESENT ? v->size : 0);
	for (uint32_t i = 0; i < words; i++)
		WRITE(place.word[sizeof(*r) / 8 + i], v->word[i]);
	*place.word = pad_mark(place.number, 0, PAD_RECORD_LABEL);
	set_head(place.ring, place.ring->head + size);
	last->state = v->state;
	last->size = v->size;
	for (uint32_t i = 0; i < words; i++)
		WRITE(last->word[i], v->word[i]);
	barrier();
	WRITE(slot->dirty, 0);
	return 1;
}

API int pad_take_labels(struct pad_control *c, struct pad_slot *slot)
{
	struct label_walk walk = {.slot = slot};
	const struct pad_label_reader reader = {load, &walk};
	uint64_t thread = cpu_thread_pointer();

	for (uint32_t i = 0; i < PAD_LABELS && READ(c->label[i].kind); i++) {
		struct pad_label_value v;

		v.size = 0;
		pad_label_read(&c->label[i], &reader, thread, &v);
		if (likely(is_same_value(&v, &slot->label[i])))
			continue;
		if (!send_label(c, slot, i, &v))
			return 0;
	}
	if (!walk.has_passed)
		slot->label_fault = 0;
	return 1;
}
