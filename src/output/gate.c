/* What gates find, and messages about it. The forms are in other files (gate_form.c). */
#include "output/gate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

static void free_sites(gate_sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->data[i].label);
		free(sites->data[i].file);
	}
	vec_deinit(sites);
}

void gate_deinit(struct gate *g)
{
	for (size_t i = 0; i < g->check.count; i++) {
		free(g->check.data[i].text);
		free(g->check.data[i].message);
		free_sites(&g->check.data[i].site);
	}
	vec_release(&g->warning, e, free(*e));
	vec_deinit(&g->check);
	vec_deinit(&g->value);
	free_sites(&g->site);
	free(g->title);
	*g = (struct gate){0};
}

static char *visible(const char *text)
{
	return text_clean(text, strlen(text));
}

void gate_set_title(struct gate *g, const char *title)
{
	free(g->title);
	g->title = visible(title);
}

struct gate_check *gate_add_check(struct gate *g, const char *text, enum limit_metric metric,
				  char *message)
{
	struct gate_check *c = vec_add(&g->check);

	*c = (struct gate_check){.metric = metric, .text = visible(text)};
	if (message)
		c->message = visible(message);
	free(message);
	return c;
}

void gate_warn(struct gate *g, char *text)
{
	log_warn("%s", text);
	*vec_add(&g->warning) = visible(text);
	free(text);
}

/* The path of a source file, relative to the current directory if it is below it. */
static char *source_path(const char *file)
{
	_cleanup_free_ char *here = getcwd(NULL, 0), *path = visible(file);
	size_t size = here ? strlen(here) : 0;
	char *dot;

	while ((dot = strstr(path, "/./")) != NULL)
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
	if (size > 1 && strncmp(path, here, size) == 0 && path[size] == '/' && path[size + 1])
		return xstrdup(path + size + 1);
	return xstrdup(path);
}

struct gate_site *gate_add_site(gate_sites *sites, const char *label, const char *file,
				uint64_t line)
{
	struct gate_site *s = vec_add(sites);

	*s = (struct gate_site){.label = visible(label),
				.file = file && *file ? source_path(file) : NULL,
				.line = line};
	return s;
}

size_t gate_failures(const struct gate *g)
{
	size_t count = 0;

	for (size_t i = 0; i < g->check.count; i++)
		count += g->check.data[i].message != NULL;
	return count;
}

/* -- messages -- */

/* Call sites have no percentages: of them blocks are counted. */
static char *amount(enum limit_metric metric, double value)
{
	bool is_percent = limit_info[metric].unit == LIMIT_PERCENT;

	return limit_amount(is_percent ? LIMIT_ALLOCATIONS : metric, value);
}

char *gate_site_amount(const struct gate *g, enum limit_metric metric,
		       const struct gate_site *site)
{
	double old = site->value[PATH_OLD], new = site->value[PATH_NEW];

	if (!g->is_diff)
		return amount(metric, new);
	_cleanup_free_ char *change = amount(metric, new > old ? new - old : old - new);

	return xasprintf("%s%s", new > old ? "+" : new < old ? "-" : "", change);
}

char *gate_band(enum limit_metric metric, double min, double max)
{
	_cleanup_free_ char *low = limit_amount(metric, min), *high = NULL;

	if (min >= max)
		return_ptr(low);
	high = limit_amount(metric, max);
	return xasprintf("%s to %s", low, high);
}

void gate_log(const struct gate *g, const char *prefix)
{
	for (size_t i = 0; i < g->check.count; i++) {
		const struct gate_check *c = &g->check.data[i];

		if (c->message)
			log_error("%s%s: %s", c->is_unmeasured ? "limit not checked: " : prefix,
				  c->text, c->message);
		for (size_t k = 0; c->message && k < c->site.count; k++) {
			_cleanup_free_ char *of = gate_site_amount(g, c->metric, &c->site.data[k]);
			_cleanup_free_ char *label = text_site_label(c->site.data[k].label);

			log_error("  %s: %s", label, of);
		}
	}
}
