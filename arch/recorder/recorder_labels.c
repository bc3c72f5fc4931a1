/*
 * The recorder's part for labels: reads variables, and the arguments of functions at their entries,
 * and records what differs from the thread's last ones. See arch/pad_label.h.
 */
#include "arch/recorder/recorder_ring.h"
#include "arch/recorder/recorder_walk.h"

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

/* The aligned word at @at. 0: it is not there. */
INLINE int load_word(uint64_t at, uint64_t *out)
{
	struct pad_check check = {at, 0};
	struct word_scan scan = {&check, 1, 0, 0};

	scan_words(&scan);
	*out = scan.word;
	return scan.is_there;
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
	uint32_t words = pad_label_words(v), more = v->sp ? 2 : 0;
	uint64_t size = record_size(c, sizeof(struct pad_record_label) + 8ull * (words + more));
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
	r->state = (uint8_t)(v->state | (more ? PAD_LABEL_OF_CALL : 0));
	r->bytes = (uint16_t)(v->state == PAD_LABEL_PRESENT ? v->size : 0);
	for (uint32_t i = 0; i < words; i++)
		WRITE(place.word[sizeof(*r) / 8 + i], v->word[i]);
	if (more) {
		WRITE(place.word[sizeof(*r) / 8 + words], v->sp);
		WRITE(place.word[sizeof(*r) / 8 + words + 1], v->return_pc);
	}
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

/* Whether @call, of a label, is on the current stack. */
INLINE int is_own_stack(const struct pad_slot *slot, const struct pad_label_value *call)
{
	return call->sp >= slot->stack_low && call->sp < slot->stack_high;
}

/*
 * Whether @call, of a label, has not returned, as far as its return address shows. That the stack
 * pointer is above it would not tell: the handler of a signal may run there.
 */
INLINE int is_open(const struct pad_label_value *call)
{
	uint64_t word;

	return call->sp && load_word(call->sp, &word) && word == call->return_pc;
}

/* The value of label @i, of a call: NULL if it is not open, else it is compared from now on. */
INLINE const struct pad_label_value *take_call(struct pad_slot *slot, uint32_t i,
					       struct label_walk *walk)
{
	const struct pad_label_value *call = &slot->call[i];

	if (!is_open(call))
		return 0;
	if (walk->checks < PAD_LABEL_CHECKS)
		slot->label_check[walk->checks] = (struct pad_check){call->sp, call->return_pc};
	walk->checks += walk->checks <= PAD_LABEL_CHECKS;
	return call;
}

/* The value of label @i, that of a variable, in *@v. */
INLINE void take_variable(const struct pad_label *label, struct label_walk *walk,
			  struct pad_label_value *v)
{
	const struct pad_label_reader reader = {load, walk};
	uint32_t before = walk->checks;

	pad_label_read(label, &reader, cpu_thread_pointer(), v);
	/* the thread has no block with the variable, but may get one */
	if (walk->checks == before)
		walk->checks = PAD_LABEL_CHECKS + 1;
}

/* Records label @i, if it is not as it was, or of another call. 0: the ring has no room. */
INLINE int pass_label(struct pad_control *c, struct pad_slot *slot, uint32_t i,
		      const struct pad_label_value *v)
{
	uint32_t is_new = slot->call_is_new & 1u << i;

	if (likely(is_same_value(v, &slot->label[i])) && !(is_new && v->sp))
		return 1;
	if (!send_label(c, slot, i, v))
		return 0;
	slot->call_is_new &= ~is_new;
	return 1;
}

static KEEPS __attribute__((noinline)) int read_labels(struct pad_control *c, struct pad_slot *slot)
{
	struct label_walk walk = {.slot = slot};
	uint64_t epoch = READ(c->label_epoch);

	WRITE(slot->label_epoch, 0);
	for (uint32_t i = 0; i < PAD_LABELS; i++) {
		const struct pad_label_value *value = 0;
		struct pad_label_value v;

		v.state = PAD_LABEL_ABSENT;
		v.size = 0;
		v.sp = 0;
		if (READ(c->label[i].kind) && c->label[i].base == PAD_LABEL_CALL)
			value = take_call(slot, i, &walk);
		else if (READ(c->label[i].kind))
			take_variable(&c->label[i], &walk, &v);
		if (!pass_label(c, slot, i, value ? value : &v))
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

/* -- entries of functions -- */

/* A pad_label_load of what is read once. */
INLINE int load_once(void *ctx, uint64_t at, int is_fixed, uint64_t *out)
{
	(void)ctx;
	(void)is_fixed;
	return load_word(at, out);
}

/*
 * The call with return slot @at is the last one of label @i now. The handler of a signal may begin
 * another one meanwhile, which has returned when this goes on.
 */
static KEEPS __attribute__((noinline)) void note_call(const struct pad_label *label,
						      const uint64_t *argument, uint64_t at,
						      struct pad_label_value *call)
{
	const struct pad_label_reader reader = {load_once, 0};

	WRITE(call->sp, 0);
	barrier();
	call->state = PAD_LABEL_ABSENT;
	call->size = 0;
	pad_label_read(label, &reader, (uint64_t)argument, call);
	call->return_pc = READ(*(const uint64_t *)at);
	barrier();
	WRITE(call->sp, at);
}

#define OUTER_FRAMES 256 /* maximum between a nested call and one that is known to be open */

/*
 * Whether the call with the frame @s is inside that of label @i, which seems to be open: UNSURE if
 * rules are missing. What a call that has returned has left on the stack looks the same.
 */
static KEEPS __attribute__((noinline)) int is_nested(const struct pad_control *c,
						     struct pad_slot *slot, uint32_t i,
						     struct pad_step *s)
{
	uint64_t high = slot->stack_high, own = s->at, outer = slot->call[i].sp;
	struct pad_step next; /* set by a step outwards */

	for (uint32_t n = 0; n < OUTER_FRAMES; n++) {
		if (s->at == outer || (s->at == slot->call_inner[i] && n)) {
			WRITE(slot->call_inner[i], own);
			return NESTED;
		}
		if (s->at > outer)
			return PASSED_BY;
		if (step(c, &high, s, &next) != STEP_OUT)
			return UNSURE;
		*s = next;
	}
	return UNSURE;
}

/*
 * Label @i at the entry of its function. 0: ptmem has to find out whether the call is inside of
 * another one.
 */
INLINE int enter_label(const struct pad_control *c, struct pad_slot *slot, uint32_t i,
		       const struct pad_stack *stack, uint64_t fp)
{
	const struct pad_label *label = &c->label[i];
	uint64_t at = cpu_place(stack), argument;
	struct pad_label_value *call = &slot->call[i];

	if (unlikely(call->sp != at && is_open(call))) {
		struct pad_step s = {.at = at, .pc = stack->return_slot, .fp = fp};
		int way = is_own_stack(slot, call) ? is_nested(c, slot, i, &s) : UNSURE;

		if (way != PASSED_BY)
			return way == NESTED; /* the outermost one counts */
	}
	argument = cpu_argument(stack, (uint8_t)label->argument);
	note_call(label, &argument, at, call);
	WRITE(slot->call_inner[i], 0);
	slot->call_is_new |= 1u << i;
	WRITE(slot->label_epoch, 0);
	return 1;
}

API int pad_enter_labelled(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	struct pad_slot *slot;
	int has_any = 0, way = enter_slot(c, cpu_place(stack), &slot);

	if (way != GO_CALL)
		return way;
	if (unlikely(READ(c->traps_calls) || !pad_has_call_site(c->call_site, stack->return_slot)))
		return trap(slot, PAD_REASON_CALL);
	for (uint32_t i = 0; i < PAD_LABELS; i++) {
		const struct pad_label *label = &c->label[i];

		if (!READ(label->kind) || label->base != PAD_LABEL_CALL ||
		    label->function != head->probe.fixed_align)
			continue;
		has_any = 1;
		if (unlikely(!enter_label(c, slot, i, stack, fp)))
			return trap(slot, PAD_REASON_CALL);
	}
	return likely(has_any) ? GO_STRAIGHT : trap(slot, PAD_REASON_CALL);
}
