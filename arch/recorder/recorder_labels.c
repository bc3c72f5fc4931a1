/*
 * The recorder's part for labels of variables: reads them, and records those that differ from the
 * thread's last ones. See arch/pad_label.h.
 */
#include "arch/recorder/recorder_ring.h"

/* Words that are compared, up to the first one that differs or is not there. */
struct word_scan {
	const struct pad_check *check;
	uint32_t left;          /* 0: all were as they should be */
	int is_there;
	uint64_t word;          /* the last one */
};

/* All loads of labels, since a fault of this one is known by its address. */
static KEEPS __attribute__((noinline)) void scan_words(struct word_scan *s)
{
	const struct pad_check *check = s->check;
	uint32_t left = s->left;
	uint64_t word = 0;
	int is_there = 0;

	for (; left; left--, check++) {
		is_there = cpu_label_load(check->at, &word);
		if (!is_there || word != check->value)
			break;
	}
	s->left = left;
	s->word = word;
	s->is_there = is_there;
}

/* A thread that reads its labels. */
struct label_walk {
	struct pad_slot *slot;
	uint32_t checks;        /* PAD_LABEL_CHECKS + 1: too many, or one cannot be kept */
	int has_passed;         /* the word that was not there last time */
};

/*
 * A pad_label_load. A word that was not there is not tried again as long as it is asked for. All
 * others are kept, to be compared next time.
 */
INLINE int load(void *ctx, uint64_t at, int is_fixed, uint64_t *out)
{
	struct label_walk *w = ctx;
	struct pad_check check = {at, 0};
	struct word_scan scan = {&check, 1, 0, 0};

	if (unlikely(at == w->slot->label_fault)) {
		w->has_passed = 1;
		w->checks = PAD_LABEL_CHECKS + 1;
		return 0;
	}
	scan_words(&scan);
	if (unlikely(!scan.is_there)) {
		w->slot->label_fault = at;
		w->has_passed = 1;
		w->checks = PAD_LABEL_CHECKS + 1;
		return 0;
	}
	*out = scan.word;
	if (is_fixed)
		return 1;
	if (w->checks < PAD_LABEL_CHECKS)
		w->slot->label_check[w->checks] = (struct pad_check){at, scan.word};
	w->checks += w->checks <= PAD_LABEL_CHECKS;
	return 1;
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

static KEEPS __attribute__((noinline)) int read_labels(struct pad_control *c, struct pad_slot *slot)
{
	struct label_walk walk = {.slot = slot};
	const struct pad_label_reader reader = {load, &walk};
	uint64_t thread = cpu_thread_pointer(), epoch = READ(c->label_epoch);

	WRITE(slot->label_epoch, 0);
	for (uint32_t i = 0; i < PAD_LABELS; i++) {
		struct pad_label_value v;
		uint32_t before = walk.checks;

		v.state = PAD_LABEL_ABSENT;
		v.size = 0;
		if (READ(c->label[i].kind))
			pad_label_read(&c->label[i], &reader, thread, &v);
		/* the thread has no block with the variable, but may get one */
		if (READ(c->label[i].kind) && walk.checks == before)
			walk.checks = PAD_LABEL_CHECKS + 1;
		if (!is_same_value(&v, &slot->label[i]) && !send_label(c, slot, i, &v))
			return 0;
	}
	if (!walk.has_passed)
		slot->label_fault = 0;
	slot->label_checks = walk.checks;
	if (walk.checks <= PAD_LABEL_CHECKS) {
		barrier();
		WRITE(slot->label_epoch, epoch);
	}
	return 1;
}

API int pad_take_labels(struct pad_control *c, struct pad_slot *slot)
{
	struct word_scan scan = {slot->label_check, slot->label_checks, 0, 0};

	if (likely(slot->label_epoch == READ(c->label_epoch))) {
		scan_words(&scan);
		if (likely(!scan.left))
			return 1;
	}
	return read_labels(c, slot);
}
