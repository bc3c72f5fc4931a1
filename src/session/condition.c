/* See condition.h. */
#include "session/condition.h"

#include <math.h>
#include <string.h>

#include "base/amount.h"

#define PAGE 4096
#define REST_MIN_NS UINT64_C(1000000000)
#define REST_MAX_NS (3600 * REST_MIN_NS)

static const char *const names[CONDITION_KINDS] = {
	[CONDITION_HEAP] = "heap", [CONDITION_RSS] = "rss", [CONDITION_GROWTH] = "growth",
	[CONDITION_PRESSURE] = "pressure", [CONDITION_LIMIT] = "limit",
};

static const char *const actions[CONDITION_ACTIONS] = {
	[ACTION_RECORD] = "record", [ACTION_INSPECT] = "inspect", [ACTION_DETACH] = "detach",
	[ACTION_END] = "end",
};

static const struct {
	const char *text;
	uint64_t ns;
} periods[] = {{"/s", UINT64_C(1000000000)}, {"/min", UINT64_C(60000000000)},
	       {"/h", UINT64_C(3600000000000)}};

/* The index of [@text, @text + @size) in @list; @count if it is not there. */
static int find(const char *const *list, int count, const char *text, size_t size)
{
	int i = 0;

	while (i < count && (strlen(list[i]) != size || strncmp(list[i], text, size) != 0))
		i++;
	return i;
}

/* Digits with an optional point. Returns the end; @text if there is no number. */
static const char *parse_number(const char *text, double *out)
{
	const char *s = text;
	double value = 0, unit = 1;
	bool is_fraction = false, has_digit = false;

	for (; (*s >= '0' && *s <= '9') || (*s == '.' && !is_fraction); s++) {
		if (*s == '.') {
			is_fraction = true;
			continue;
		}
		value = value * 10 + (*s - '0');
		unit *= is_fraction ? 10 : 1;
		has_digit = true;
	}
	*out = value / unit;
	return has_digit ? s : text;
}

/* K, M, G, T after a number of bytes, or %. */
static const char *parse_unit(const char *s, struct condition *c)
{
	bool has_bytes = c->kind <= CONDITION_GROWTH;

	if (*s == '%' && (c->kind == CONDITION_RSS || c->kind == CONDITION_PRESSURE)) {
		c->is_percent = true;
		return s + 1;
	}
	return has_bytes ? amount_parse_unit(s, 1024, &c->threshold) : s;
}

static const char *parse_period(const char *s, struct condition *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		size_t n = strlen(periods[i].text);

		if (strncmp(s, periods[i].text, n) != 0 || (s[n] && s[n] != ':'))
			continue;
		c->period_ns = periods[i].ns;
		return s + n;
	}
	return s;
}

static const char *find_fault(const struct condition *c)
{
	bool has_period = c->kind == CONDITION_GROWTH || c->kind == CONDITION_LIMIT;

	if (has_period && !c->period_ns)
		return "growth and limit are per time: /s, /min or /h, as in growth>100M/min";
	if (c->kind == CONDITION_PRESSURE && !c->is_percent)
		return "pressure is in percent, as in pressure>10%";
	if (c->is_percent && c->threshold > 100)
		return "there are no more than 100%";
	if (c->kind == CONDITION_RSS && !c->is_percent && c->threshold < PAGE)
		return "that is less than a page of memory: a percentage needs %, as in rss>80%, "
		       "a size its unit, as in rss>8G";
	if (c->kind <= CONDITION_GROWTH && c->threshold > ldexp(1, 47))
		return "no process can have more than 128T";
	return NULL;
}

const char *condition_parse(const char *text, struct condition *out)
{
	struct condition c = {0};
	size_t size = strcspn(text, ">");
	int kind = find(names, CONDITION_KINDS, text, size);

	if (!text[size] || kind == CONDITION_KINDS)
		return "a condition is heap>SIZE, rss>SIZE, rss>PERCENT%, growth>SIZE/min, "
		       "pressure>PERCENT% or limit>COUNT/min";
	c.kind = (enum condition_kind)kind;
	const char *s = parse_number(&text[size + 1], &c.threshold);

	if (s == &text[size + 1])
		return "after > comes a number, as in heap>2G or rss>80%";
	s = parse_unit(s, &c);
	if (c.kind == CONDITION_GROWTH || c.kind == CONDITION_LIMIT)
		s = parse_period(s, &c);
	const char *why = find_fault(&c);

	if (why)
		return why;
	if (*s && *s != ':')
		return "only K, M, G, T, % or, of growth and limit, /s, /min or /h may follow the "
		       "number, and then :ACTION";
	c.text_size = (size_t)(s - text);
	int action = *s ? find(actions, CONDITION_ACTIONS, s + 1, strlen(s + 1)) : ACTION_RECORD;

	if (action == CONDITION_ACTIONS)
		return "the action is record, detach or end";
	c.action = (enum condition_action)action;
	*out = c;
	return NULL;
}

bool condition_note(struct condition_state *s, bool is_above, uint64_t now_ns)
{
	bool did_hold = s->holds;

	s->holds = is_above && (did_hold || now_ns >= s->ready_ns);
	if (s->holds && !did_hold) {
		s->rest_ns = MIN(MAX(2 * s->rest_ns, REST_MIN_NS), REST_MAX_NS);
		s->ready_ns = now_ns + s->rest_ns;
	}
	return s->holds != did_hold;
}
