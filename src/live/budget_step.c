/*
 * A window in which ptmem was busy with something else, such as symbols at the start or a file,
 * must not lengthen the interval: what few samples there were cannot have caused it. If a halved
 * interval turns out to be too short again, the next attempt is made after twice the time, so that
 * a program that needs something in between does not alternate forever.
 */
#include "live/budget_step.h"

#include <math.h>

#include "profile/estimate.h"

#define CALM_MIN 10u
#define CALM_MAX 600u
#define STOPS_LEAST 100u       /* in a window: fewer may be those before the jumps are placed */
#define STOP_LEAST_NS 20000.0
#define RECORD_MOST_NS 50000.0 /* of ptmem and the program, if each record wakes ptmem up */

void budget_init(struct budget *b, double share, uint64_t interval)
{
	*b = (struct budget){.share = share, .calm_needed = CALM_MIN};
	while (b->shift_max < ESTIMATE_SHIFT_MAX &&
	       interval << (b->shift_max + 1) <= ESTIMATE_INTERVAL_MAX)
		b->shift_max++;
}

double budget_cost(const struct budget_window *w)
{
	return ((double)w->cpu_ns + (double)w->records * BUDGET_RECORD_NS) / (double)w->wall_ns;
}

bool budget_is_out_of_reach(const struct budget *b, const struct budget_window *w, uint64_t stops)
{
	return stops >= STOPS_LEAST && budget_cost(w) > b->share &&
	       (double)stops * STOP_LEAST_NS > b->share * (double)w->wall_ns;
}

static bool lengthen(struct budget *b, double cost)
{
	uint32_t steps = (uint32_t)fmin(ceil(log2(cost / b->share)), ESTIMATE_SHIFT_MAX);
	uint32_t shift = MIN(b->shift + MAX(steps, 1u), b->shift_max);
	bool is_changed = shift != b->shift;

	if (is_changed && b->was_halved)
		b->calm_needed = MIN(2 * b->calm_needed, CALM_MAX);
	b->was_halved &= !is_changed;
	b->calm = 0;
	b->shift = shift;
	return is_changed;
}

bool budget_step(struct budget *b, const struct budget_window *w)
{
	double cost = w->wall_ns ? budget_cost(w) : 0;

	if (cost > b->share) {
		b->calm = 0;
		return (double)w->records * RECORD_MOST_NS > b->share * (double)w->wall_ns &&
		       lengthen(b, cost);
	}
	b->calm = cost < b->share / 4 ? b->calm + 1 : 0;
	if (b->shift == 0 || b->calm < b->calm_needed)
		return false;
	b->shift--;
	b->calm = 0;
	b->was_halved = true;
	return true;
}
