/*
 * Gates for machines. JUnit's XML, as the reporters of GitLab and Jenkins read it; SARIF 2.1.0
 * (OASIS, 2020), of which code scanning shows the results at their lines; and JSON:
 *
 *	{"format":"ptmem-gate","version":1,"title":TEXT,"runs":N,
 *	"metrics":[{"metric":"peak","unit":"bytes","old":BAND,"new":BAND},...],
 *	"warnings":[TEXT,...],
 *	"checks":[{"check":"peak>+5%","metric":"peak","passed":false,"message":TEXT,
 *	           "sites":[SITE,...]},...],
 *	"sites":{"metric":"allocations","sites":[SITE,...]}}
 *
 *	BAND := {"min":NUMBER,"max":NUMBER}       "old" is there in comparisons only
 *	SITE := {"call_site":TEXT,"file":TEXT|null,"line":NUMBER,"old":NUMBER,"new":NUMBER}
 */
#include "output/gate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"

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

void gate_write_junit(FILE *out, const struct gate *g)
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

void gate_write_sarif(FILE *out, const struct gate *g)
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

static void put_metrics(struct json_writer *w, const struct gate *g)
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

static void put_sites(struct json_writer *w, const struct gate *g, const gate_sites *sites)
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

static void put_checks(struct json_writer *w, const struct gate *g)
{
	json_write_open(json_write_line(w, 0), "checks", '[');
	for (size_t i = 0; i < g->check.count; i++) {
		const struct gate_check *c = &g->check.data[i];

		json_write_open(json_write_line(w, 0), NULL, '{');
		json_write_text(w, "check", c->text);
		json_write_text(w, "metric", limit_info[c->metric].name);
		json_write_bool(w, "passed", !c->message);
		json_write_text(w, "message", c->message);
		put_sites(w, g, &c->site);
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
	put_metrics(&w, g);
	put_warnings(&w, g);
	put_checks(&w, g);
	CHECK(!fclose(f));
	return text;
}

void gate_write_json(FILE *out, const struct gate *g)
{
	struct json_writer w = {.out = out, .escape = JSON_EXACT};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-gate");
	json_write_number(&w, "version", 1);
	json_write_text(&w, "title", g->title);
	json_write_number(&w, "runs", g->runs ? g->runs : 1);
	put_metrics(&w, g);
	put_warnings(&w, g);
	put_checks(&w, g);
	json_write_open(json_write_line(&w, 0), "sites", '{');
	json_write_text(&w, "metric", limit_info[g->site_metric].name);
	put_sites(&w, g, &g->site);
	json_write_close(&w, 2);
	putc('\n', out);
}
