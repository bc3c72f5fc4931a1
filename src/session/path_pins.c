/* See path_pins.h. */
#include "session/path_pins.h"

#include "output/call_sites.h"
#include "output/shown_stack.h"
#include "profile/blocks.h"
#include "session/session.h"

#define PATHS_SHOWN 5u

static uint32_t find_leaf(void *ctx, taddr_t addr)
{
	const struct path_pins *p = ctx;
	struct block b;

	/* threads that left malloc may have added others since they were counted */
	return blocks_find(profile_blocks(p->profile), addr, &b) && b.leaf < p->paths.count ?
	       b.leaf : 0;
}

void path_pins_init(struct path_pins *p, struct session *s)
{
	*p = (struct path_pins){0};
	if (options_sample_interval(s->run->options) || s->run->options->profile.pages_as_heap)
		return;
	p->profile = s->heap.profile;
	p->paths = (struct pinned_paths){
		.find = find_leaf, .ctx = p, .count = profile_leaf_count(s->heap.profile) + 1};
	p->paths.pages = xcalloc(p->paths.count, sizeof(*p->paths.pages));
}

void path_pins_deinit(struct path_pins *p)
{
	for (size_t i = 0; i < p->list.count; i++)
		for (size_t k = 0; k < p->list.data[i].depth; k++)
			free(p->list.data[i].frame[k]);
	vec_deinit(&p->list);
	free(p->paths.pages);
	p->paths.pages = NULL;
}

/* The leaf with most pages, which is not found again; 0 = none is left. */
static uint32_t take_largest(struct path_pins *p, uint64_t *pages_out)
{
	uint32_t best = 0;

	*pages_out = 0;
	for (uint32_t i = 1; i < p->paths.count; i++)
		if (p->paths.pages[i] > *pages_out) {
			best = i;
			*pages_out = p->paths.pages[i];
		}
	p->paths.pages[best] = 0;
	return best;
}

static void name_frames(const struct report *r, struct shown_stack *stack, struct inspect_pin *out)
{
	for (size_t i = 0; i < stack->count && out->depth < INSPECT_PIN_FRAMES; i++) {
		const struct symbol *sym = shown_stack_symbol(stack, stack->first + i);

		for (uint32_t k = 0; k < sym->count && out->depth < INSPECT_PIN_FRAMES; k++)
			out->frame[out->depth++] = call_site_text(
				r, (struct call_site){.frame = stack->frame.data[stack->first + i],
						      .inlined = k});
	}
}

void path_pins_name(struct path_pins *p, struct session *s)
{
	const struct report r = session_report(s);
	struct shown_stack stack = {.report = &r};
	uint64_t pages;
	uint32_t leaf;

	while (p->paths.pages && p->list.count < PATHS_SHOWN && (leaf = take_largest(p, &pages))) {
		struct inspect_pin *pin = vec_add(&p->list);

		*pin = (struct inspect_pin){.pages = pages};
		if (shown_stack_fill(&stack, profile_leaf(s->heap.profile, leaf)->node))
			name_frames(&r, &stack, pin);
	}
	shown_stack_deinit(&stack);
}
