/*
 * The forms of gates. For reviewers: tables in GitHub's and GitLab's Markdown, and GitHub's
 * workflow commands
 *
 *	::error file=FILE,line=LINE,title=CHECK::MESSAGE
 *
 * in which "%" and line ends are escaped as %25, %0D and %0A, in properties also ":" and "," as %3A
 * and %2C. Of names only what is visible is left (gate.h), so none begins a line.
 *
 * For machines: JUnit's XML, as the reporters of GitLab and Jenkins read it; SARIF 2.1.0 (OASIS,
 * 2020), of which code scanning shows the results at their lines; and JSON: doc/format.md.
 */
#include "output/gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"

/* -- Markdown -- */

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
	const char *of_all = g->processes > 1 ? "most of one process" : "value";

	if (g->is_diff)
		fputs("\n| metric | old | new | change |\n| --- | ---: | ---: | ---: |\n", out);
	else
		fprintf(out, "\n| metric | %s |\n| --- | ---: |\n", of_all);
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
		markdown_put_code(out, c->text);
		fputs(c->message ? " | **failed**: " : " | passed", out);
		markdown_put_words(out, c->message ? c->message : "");
		for (size_t k = 0; c->message && k < c->site.count; k++) {
			_cleanup_free_ char *of = gate_site_amount(g, c->metric, &c->site.data[k]);

			fputs("<br>", out);
			markdown_put_code(out, c->site.data[k].label);
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
		markdown_put_code(out, s->label);
		for (int side = PATH_OLD; g->is_diff && side <= PATH_NEW; side++) {
			_cleanup_free_ char *text = limit_amount(g->site_metric, s->value[side]);

			fprintf(out, " | %s", text);
		}
		fprintf(out, " | %s |\n", change);
	}
}

static void write_markdown(FILE *out, const struct gate *g)
{
	size_t failed = gate_failures(g);

	fputs("### Memory", out);
	if (g->title) {
		fputs(" of ", out);
		markdown_put_code(out, g->title);
	}
	if (g->check.count)
		fprintf(out, failed ? ": %zu of %zu check%s failed" : ": passed", failed,
			g->check.count, plural(g->check.count));
	putc('\n', out);
	if (g->runs > 1)
		fprintf(out, "\n%u runs.\n", g->runs);
	for (size_t i = 0; i < g->warning.count; i++) {
		fputs("\n**Warning**: ", out);
		markdown_put_words(out, g->warning.data[i]);
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

static void write_github(FILE *out, const struct gate *g)
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

/* -- JUnit -- */

static void put_case(FILE *out, const struct gate *g, const struct gate_check *c)
{
	const struct gate_site *first = c->site.count ? c->site.data : NULL;

	fputs("<testcase classname=\"ptmem\" name=\"", out);
	xml_put_text(out, c->text);
	if (first && first->file) {
		fputs("\" file=\"", out);
		xml_put_text(out, first->file);
		if (first->line)
			fprintf(out, "\" line=\"%" PRIu64, first->line);
	}
	if (!c->message) {
		fputs("\"/>\n", out);
		return;
	}
	fputs("\"><failure type=\"memory\" message=\"", out);
	xml_put_text(out, c->message);
	fputs("\">", out);
	for (size_t k = 0; k < c->site.count; k++) {
		_cleanup_free_ char *of = gate_site_amount(g, c->metric, &c->site.data[k]);

		xml_put_text(out, c->site.data[k].label);
		fprintf(out, ": %s\n", of);
	}
	fputs("</failure></testcase>\n", out);
}

static void write_junit(FILE *out, const struct gate *g)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"", out);
	xml_put_text(out, g->title ? g->title : "memory");
	fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"0\">\n",
		g->check.count, gate_failures(g));
	for (size_t i = 0; i < g->check.count; i++)
		put_case(out, g, &g->check.data[i]);
	if (g->warning.count)
		fputs("<system-err>", out);
	for (size_t i = 0; i < g->warning.count; i++) {
		xml_put_text(out, g->warning.data[i]);
		putc('\n', out);
	}
	fputs(g->warning.count ? "</system-err>\n" : "", out);
	fputs("</testsuite>\n</testsuites>\n", out);
}

/* -- SARIF -- */

/* A relative reference or a file URI (RFC 3986): what is not unreserved is "%XX". */
static char *uri_of(const char *path)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	fputs(*path == '/' ? "file://" : "", f);
	for (; *path; path++) {
		if (strchr("/-._~", *path) || ((unsigned char)*path < 128 &&
					       (strchr("0123456789", *path) ||
						((*path | 32) >= 'a' && (*path | 32) <= 'z'))))
			putc(*path, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*path);
	}
	CHECK(!fclose(f));
	return text;
}

static void put_message(struct json_writer *w, const char *name, const char *text)
{
	json_write_open(w, name, '{');
	json_write_text(w, "text", text);
	json_write_close(w, 1);
}

static void put_location(struct json_writer *w, const struct gate_site *s)
{
	json_write_open(w, NULL, '{');
	if (s->file) {
		_cleanup_free_ char *uri = uri_of(s->file);

		json_write_open(w, "physicalLocation", '{');
		json_write_open(w, "artifactLocation", '{');
		json_write_text(w, "uri", uri);
		if (*s->file != '/')
			json_write_text(w, "uriBaseId", "%SRCROOT%");
		json_write_close(w, 1);
		if (s->line)
			json_write_record(w, "region", {"startLine", s->line});
		json_write_close(w, 1);
	}
	json_write_open(w, "logicalLocations", '[');
	json_write_open(w, NULL, '{');
	json_write_text(w, "fullyQualifiedName", s->label);
	json_write_text(w, "kind", "function");
	json_write_close(w, 3);
}

static void put_result(struct json_writer *w, const struct gate *g, const struct gate_check *c)
{
	_cleanup_free_ char *text = xasprintf("%s: %s", c->text, c->message);

	json_write_open(json_write_line(w, 0), NULL, '{');
	json_write_text(w, "ruleId", limit_info[c->metric].name);
	json_write_number(w, "ruleIndex", c->metric);
	json_write_text(w, "level", "error");
	for (size_t k = 0; k < c->site.count; k++) {
		_cleanup_free_ char *of = gate_site_amount(g, c->metric, &c->site.data[k]);
		char *longer = xasprintf("%s\n%s: %s", text, c->site.data[k].label, of);

		free(text);
		text = longer;
	}
	put_message(w, "message", text);
	json_write_open(w, "locations", '[');
	for (size_t k = 0; k < c->site.count; k++)
		put_location(w, &c->site.data[k]);
	json_write_close(w, 1);
	/* the same violation at another line is the same alert */
	json_write_open(w, "partialFingerprints", '{');
	json_write_text(w, "ptmemCheck/v1", c->text);
	json_write_close(w, 2);
}

/* Nothing has failed to run: what failed is among the results. */
static void put_invocation(struct json_writer *w, const struct gate *g)
{
	json_write_open(json_write_line(w, 0), "invocations", '[');
	json_write_open(w, NULL, '{');
	json_write_bool(w, "executionSuccessful", true);
	json_write_open(w, "toolExecutionNotifications", '[');
	for (size_t i = 0; i < g->warning.count; i++) {
		json_write_open(json_write_line(w, 0), NULL, '{');
		json_write_text(w, "level", "warning");
		put_message(w, "message", g->warning.data[i]);
		json_write_close(w, 1);
	}
	json_write_close(w, 3);
}

static void write_sarif(FILE *out, const struct gate *g)
{
	struct json_writer w = {.out = out, .escape = JSON_EXACT};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_write_text(&w, "version", "2.1.0");
	json_write_open(json_write_line(&w, 0), "runs", '[');
	json_write_open(&w, NULL, '{');
	json_write_open(&w, "tool", '{');
	json_write_open(&w, "driver", '{');
	json_write_text(&w, "name", "ptmem");
	json_write_text(&w, "version", PTMEM_VERSION);
	json_write_open(json_write_line(&w, 0), "rules", '[');
	for (int m = 0; m < LIMIT_METRICS; m++) {
		_cleanup_free_ char *text = xasprintf("more memory than allowed: %s",
						      limit_info[m].name);

		json_write_open(&w, NULL, '{');
		json_write_text(&w, "id", limit_info[m].name);
		put_message(&w, "shortDescription", text);
		json_write_close(&w, 1);
	}
	json_write_close(&w, 3);
	put_invocation(&w, g);
	json_write_open(json_write_line(&w, 0), "results", '[');
	for (size_t i = 0; i < g->check.count; i++)
		if (g->check.data[i].message)
			put_result(&w, g, &g->check.data[i]);
	json_write_close(&w, 4);
	putc('\n', out);
}

/* -- JSON -- */

static void put_value(struct json_writer *w, const char *name, enum limit_metric metric,
		      double value)
{
	bool is_percent = limit_info[metric].unit == LIMIT_PERCENT;

	json_write_format(w, name, is_percent ? "%.3f" : "%.0f", value);
}

static void put_json_metrics(struct json_writer *w, const struct gate *g)
{
	static const char *const units[] = {"bytes", "number", "percent"};

	json_write_open(json_write_line(w, 0), "metrics", '[');
	for (size_t i = 0; i < g->value.count; i++) {
		const struct gate_value *v = &g->value.data[i];

		json_write_open(json_write_line(w, 0), NULL, '{');
		json_write_text(w, "metric", limit_info[v->metric].name);
		json_write_text(w, "unit", units[limit_info[v->metric].unit]);
		for (int side = g->is_diff ? PATH_OLD : PATH_NEW; side <= PATH_NEW; side++) {
			json_write_open(w, side == PATH_OLD ? "old" : "new", '{');
			put_value(w, "min", v->metric, v->min[side]);
			put_value(w, "max", v->metric, v->max[side]);
			json_write_close(w, 1);
		}
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void put_json_sites(struct json_writer *w, const struct gate *g, const gate_sites *sites)
{
	json_write_open(w, "sites", '[');
	for (size_t i = 0; i < sites->count; i++) {
		const struct gate_site *s = &sites->data[i];

		json_write_open(json_write_line(w, 0), NULL, '{');
		json_write_text(w, "call_site", s->label);
		json_write_text(w, "file", s->file);
		json_write_number(w, "line", s->line);
		if (g->is_diff)
			put_value(w, "old", LIMIT_ALLOCATIONS, s->value[PATH_OLD]);
		put_value(w, "new", LIMIT_ALLOCATIONS, s->value[PATH_NEW]);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void put_json_checks(struct json_writer *w, const struct gate *g)
{
	json_write_open(json_write_line(w, 0), "checks", '[');
	for (size_t i = 0; i < g->check.count; i++) {
		const struct gate_check *c = &g->check.data[i];

		json_write_open(json_write_line(w, 0), NULL, '{');
		json_write_text(w, "check", c->text);
		json_write_text(w, "metric", limit_info[c->metric].name);
		json_write_bool(w, "passed", !c->message);
		json_write_text(w, "message", c->message);
		put_json_sites(w, g, &c->site);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void put_warnings(struct json_writer *w, const struct gate *g)
{
	json_write_open(json_write_line(w, 0), "warnings", '[');
	for (size_t i = 0; i < g->warning.count; i++)
		json_write_text(w, NULL, g->warning.data[i]);
	json_write_close(w, 1);
}

char *gate_json_members(const struct gate *g)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct json_writer w = {.out = f, .escape = JSON_EXACT, .has_value = true};

	CHECK(f);
	put_json_metrics(&w, g);
	put_warnings(&w, g);
	put_json_checks(&w, g);
	CHECK(!fclose(f));
	return text;
}

static void write_json(FILE *out, const struct gate *g)
{
	struct json_writer w = {.out = out, .escape = JSON_EXACT};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-gate");
	json_write_number(&w, "version", 1);
	json_write_text(&w, "title", g->title);
	json_write_number(&w, "runs", g->runs ? g->runs : 1);
	put_json_metrics(&w, g);
	put_warnings(&w, g);
	put_json_checks(&w, g);
	json_write_open(json_write_line(&w, 0), "sites", '{');
	json_write_text(&w, "metric", limit_info[g->site_metric].name);
	put_json_sites(&w, g, &g->site);
	json_write_close(&w, 2);
	putc('\n', out);
}

/* -- all of them -- */

enum gate_form gate_form_of(const char *path)
{
	static const struct {
		const char *end;
		enum gate_form form;
	} ends[] = {
		{".md", GATE_MARKDOWN}, {".xml", GATE_JUNIT}, {".sarif", GATE_SARIF},
		{".sarif.json", GATE_SARIF}, {".json", GATE_JSON},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (text_ends_in(path, ends[i].end))
			return ends[i].form;
	return GATE_NONE;
}

void gate_write(FILE *out, enum gate_form form, const struct gate *g)
{
	static void (*const writers[])(FILE *out, const struct gate *g) = {
		[GATE_MARKDOWN] = write_markdown, [GATE_GITHUB] = write_github,
		[GATE_JUNIT] = write_junit, [GATE_SARIF] = write_sarif,
		[GATE_JSON] = write_json,
	};

	if (form != GATE_NONE)
		writers[form](out, g);
}
