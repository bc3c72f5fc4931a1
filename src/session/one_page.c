/* See one_page.h. The page is made as ptmem-report --merge makes it, from the same files. */
#include "session/one_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "recording/embedded_sources.h"
#include "recording/processes_page.h"
#include "recording/recording_format.h"
#include "recording/recording_json.h"
#include "recording/recording_reduce.h"
#include "session/out.h"
#include "session/session.h"

/* When so much is kept, further recordings are thinned: a page has no room for their detail. */
#define MUCH (UINT64_C(64) << 20)

static char *pack(const struct recording *r, size_t *size_out)
{
	char *data = NULL;
	FILE *file = open_memstream(&data, size_out);

	CHECK(file && recording_write(file, r) == 0 && fclose(file) == 0);
	return data;
}

bool one_page_add(struct session *s, const struct recording *r)
{
	struct one_page *p = &s->run->page;
	const char *pattern = out_pattern(s->run->options, OUT_HTML);

	if (file_name_has(pattern, "pn") || (!p->part.count && session_is_alone(s)))
		return false;
	if (s->end.is_draft) /* of the last process; the others are there already */
		return true;
	struct recording *thin = p->bytes > MUCH ? recording_limit(r, RECORDING_LEAST_LIMIT) : NULL;
	struct one_page_part part = {0};

	part.data = pack(thin ? thin : r, &part.size);
	recording_free(thin);
	if (!p->part.count)
		p->pid = s->process.pid;
	p->bytes += part.size;
	*vec_add(&p->part) = part;
	return true;
}

static void read_parts(const struct one_page *p, struct processes *all)
{
	for (size_t i = 0; i < p->part.count; i++) {
		struct recording *r;
		_cleanup_free_ char *why = NULL;

		if (recording_read(p->part.data[i].data, p->part.data[i].size, &r, &why) == 0)
			processes_add(all, r, NULL);
		else
			processes_add_unread(all, "", why);
	}
}

char *one_page_sources(const struct options *o, const struct recording *const *r, size_t count)
{
	return o->files.embeds_sources && count ?
		       embedded_sources_json(r, count, &o->files.sources) :
		       xstrdup("");
}

static char *sources_of(const struct options *o, const struct processes *all)
{
	_cleanup_free_ const struct recording **r = xcalloc(all->row.count + 1, sizeof(*r));
	size_t count = 0;

	for (size_t i = 0; i < all->row.count; i++)
		if (all->row.data[i].recording)
			r[count++] = all->row.data[i].recording;
	return one_page_sources(o, r, count);
}

struct page_content {
	const struct processes *all;
	const struct options *options;
};

static int put_page(FILE *file, const void *ctx)
{
	const struct page_content *c = ctx;
	const struct processes *all = c->all;
	const struct processes_row *only = all->row.data;
	_cleanup_free_ char *json = NULL, *sources = sources_of(c->options, all);
	size_t size;

	if (all->row.count > 1 || !only->recording) {
		processes_page_write(file, all, sources);
		return 0;
	}
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	recording_json_write(memory, only->recording, sources);
	CHECK(!fclose(memory));
	html_page_write(file, json, size, false);
	return 0;
}

void one_page_finish(struct run *run)
{
	const struct one_page *p = &run->page;
	const struct out_name name = {
		.which = OUT_HTML, .pid = p->pid, .needs_pid = run->is_repeated};
	struct processes all = {0};
	_cleanup_free_ char *path = NULL;

	if (!p->part.count)
		return;
	read_parts(p, &all);
	processes_finish(&all);
	const struct page_content page = {&all, run->options};
	const struct out_content content = {.put = put_page, .ctx = &page, .end = ".html"};
	int rc = out_path(run, &name, &path);

	if (rc == 0)
		rc = out_put(OUT_HTML, p->pid, path, &content);
	if (rc == 0)
		out_note(run, OUT_HTML, path);
	run->files_failed += rc != 0;
	processes_deinit(&all);
}

void one_page_deinit(struct one_page *p)
{
	vec_release(&p->part, e, free(e->data));
}
