/*
 * Gates for reviewers: tables in GitHub's and GitLab's Markdown, and GitHub's workflow commands
 *
 *	::error file=FILE,line=LINE,title=CHECK::MESSAGE
 *
 * in which "%" and line ends are escaped as %25, %0D and %0A, in properties also ":" and "," as %3A
 * and %2C. Of names only what is visible is left (gate.h), so none begins a line.
 */
#include "output/gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"

/* -- Markdown -- */

/*
 * @text as code in a cell of a table. In a code span a backslash, a "|" or a backtick would not be
 * itself in every reader: names with them are <code> with entities, of which none is markup.
 */
static void put_code(FILE *out, const char *text)
{
	size_t size = strlen(text);

	if (size && !strpbrk(text, "`|\\") && text[0] != ' ' && text[size - 1] != ' ') {
		fprintf(out, "`%s`", text);
		return;
	}
	fputs("<code>", out);
	for (; *text; text++) {
		if (strchr("`|\\<>&*_[]~$@#:!\"'", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
	fputs("</code>", out);
}

/* Words between codes: messages of checks have names of programs in them. */
static void put_words(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("`|\\<>&*_[]~$@#!", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
}

/* "+13.0", or "+<0.1" of what would be rounded to nothing. */
static void put_signed(FILE *out, double change, int digits, double least)
{
	if (fabs(change) * 2 < least)
		fprintf(out, "%c&lt;%.*f", change < 0 ? '-' : '+', digits, least);
	else
		fprintf(out, "%+.*f", digits, change);
}

/* "+13.00 %"; of bands that of their middles. */
static void put_change(FILE *out, const struct gate_value *v)
{
	double old = (v->min[PATH_OLD] + v->max[PATH_OLD]) / 2;
	double new = (v->min[PATH_NEW] + v->max[PATH_NEW]) / 2;

	if (new == old) {
		fputs("0", out);
	} else if (limit_info[v->metric].unit == LIMIT_PERCENT) {
		put_signed(out, new - old, 1, 0.1);
	} else if (old > 0) {
		put_signed(out, 100 * (new - old) / old, 2, 0.01);
		fputs(" %", out);
	} else {
		fputs("new", out);
	}
}

static void put_metrics(FILE *out, const struct gate *g)
{
	fputs(g->is_diff ? "\n| metric | old | new | change |\n| --- | ---: | ---: | ---: |\n" :
			   "\n| metric | value |\n| --- | ---: |\n", out);
	for (size_t i = 0; i < g->value.count; i++) {
		const struct gate_value *v = &g->value.data[i];

		fprintf(out, "| %s", limit_info[v->metric].name);
		for (int side = g->is_diff ? PATH_OLD : PATH_NEW; side <= PATH_NEW; side++) {
			_cleanup_free_ char *text =
				gate_band(v->metric, v->min[side], v->max[side]);

			fprintf(out, " | %s", text);
		}
		if (g->is_diff) {
			fputs(" | ", out);
			put_change(out, v);
		}
		fputs(" |\n", out);
	}
}

static void put_checks(FILE *out, const struct gate *g)
{
	if (g->check.count)
		fputs("\n| check | result |\n| --- | --- |\n", out);
	for (size_t i = 0; i < g->check.count; i++) {
		const struct gate_check *c = &g->check.data[i];

		fputs("| ", out);
		put_code(out, c->text);
		fputs(c->message ? " | **failed**: " : " | passed", out);
		put_words(out, c->message ? c->message : "");
		for (size_t k = 0; c->message && k < c->site.count; k++) {
			_cleanup_free_ char *of = gate_site_amount(g, c->metric, &c->site.data[k]);

			fputs("<br>", out);
			put_code(out, c->site.data[k].label);
			fprintf(out, " %s", of);
		}
		fputs(" |\n", out);
	}
}

static void put_sites(FILE *out, const struct gate *g)
{
	const char *metric = limit_info[g->site_metric].name;

	if (!g->site.count && g->is_diff)
		fprintf(out, g->has_bands ? "\nThe bands of %s overlap at each call site.\n" :
					    "\nEach call site has the same %s.\n", metric);
	if (!g->site.count)
		return;
	if (g->is_diff)
		fprintf(out, "\nLargest changes of %s by call site:\n\n| call site | old | new | "
			"change |\n| --- | ---: | ---: | ---: |\n", metric);
	else
		fprintf(out, "\nCall sites with most %s:\n\n| call site | %s |\n| --- | ---: |\n",
			metric, metric);
	for (size_t i = 0; i < g->site.count; i++) {
		const struct gate_site *s = &g->site.data[i];
		_cleanup_free_ char *change = gate_site_amount(g, g->site_metric, s);

		fputs("| ", out);
		put_code(out, s->label);
		for (int side = PATH_OLD; g->is_diff && side <= PATH_NEW; side++) {
			_cleanup_free_ char *text = limit_amount(g->site_metric, s->value[side]);

			fprintf(out, " | %s", text);
		}
		fprintf(out, " | %s |\n", change);
	}
}

void gate_write_markdown(FILE *out, const struct gate *g)
{
	size_t failed = gate_failures(g);

	fputs("### Memory", out);
	if (g->title) {
		fputs(" of ", out);
		put_code(out, g->title);
	}
	if (g->check.count)
		fprintf(out, failed ? ": %zu of %zu check%s failed" : ": passed", failed,
			g->check.count, plural(g->check.count));
	putc('\n', out);
	if (g->runs > 1)
		fprintf(out, "\n%u runs.\n", g->runs);
	for (size_t i = 0; i < g->warning.count; i++) {
		fputs("\n**Warning**: ", out);
		put_words(out, g->warning.data[i]);
		putc('\n', out);
	}
	put_metrics(out, g);
	put_checks(out, g);
	put_sites(out, g);
}

/* -- GitHub -- */

static void put_escaped(FILE *out, const char *text, bool is_property)
{
	for (; *text; text++) {
		if (strchr(is_property ? "%\r\n:," : "%\r\n", *text))
			fprintf(out, "%%%02X", (unsigned char)*text);
		else
			putc(*text, out);
	}
}

static void put_annotation(FILE *out, const struct gate *g, const struct gate_check *c,
			   const struct gate_site *site)
{
	fputs("::error ", out);
	if (site && site->file) {
		fputs("file=", out);
		put_escaped(out, site->file, true);
		if (site->line)
			fprintf(out, ",line=%" PRIu64, site->line);
		putc(',', out);
	}
	fputs("title=", out);
	put_escaped(out, c->text, true);
	fputs("::", out);
	if (site) {
		_cleanup_free_ char *of = gate_site_amount(g, c->metric, site);

		put_escaped(out, site->label, false);
		fputs(": ", out);
		put_escaped(out, of, false);
		fputs(" of ", out);
		/* of resident memory only the heap's part has call sites */
		fputs(limit_info[c->metric == LIMIT_RSS ? LIMIT_PEAK : c->metric].name, out);
		fputs("; ", out);
	}
	put_escaped(out, c->message, false);
	putc('\n', out);
}

void gate_write_github(FILE *out, const struct gate *g)
{
	for (size_t i = 0; i < g->warning.count; i++) {
		fputs("::warning title=ptmem::", out);
		put_escaped(out, g->warning.data[i], false);
		putc('\n', out);
	}
	for (size_t i = 0; i < g->check.count; i++) {
		const struct gate_check *c = &g->check.data[i];

		for (size_t k = 0; c->message && k < MAX(c->site.count, (size_t)1); k++)
			put_annotation(out, g, c, c->site.count ? &c->site.data[k] : NULL);
	}
}
