/* See html_run.h. */
#include "session/html_run.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "recording/recording_json.h"
#include "recording/recording_read.h"
#include "recording/recording_write.h"
#include "session/final_file.h"
#include "session/rescue.h"
#include "session/session.h"
#include "session/session_files.h"

/*
 * Converts @r to the form in which readers of its file get it: intervals of one length, each block
 * once (recording_read.h). So ptmem and ptmem-report make the same page.
 */
static int reread(const struct recording *r, struct recording **out)
{
	_cleanup_free_ char *data = NULL, *why = NULL;
	size_t size;
	FILE *memory = open_memstream(&data, &size);

	CHECK(memory);
	int rc = recording_write(memory, r);

	CHECK(!fclose(memory));
	return rc != 0 ? rc : recording_read(data, size, out, &why);
}

static char *make_json(const struct recording *r, size_t *size_out)
{
	char *json = NULL;
	FILE *memory = open_memstream(&json, size_out);

	CHECK(memory);
	recording_json_write(memory, r, "");
	CHECK(!fclose(memory));
	return json;
}

struct page {
	const char *json;
	size_t size;
};

static int write_page(FILE *file, const void *ctx)
{
	const struct page *page = ctx;

	html_page_write(file, page->json, page->size, false);
	return 0;
}

int html_run_write(struct session *s, const struct recording *unread)
{
	const struct session_file file = {.option = "--html",
					  .pattern = s->run->options->files.html};
	struct recording *r;
	struct page page;
	int rc = reread(unread, &r);

	if (rc != 0) {
		log_error("cannot write the page of --html: %s", strerror(-rc));
		return rc;
	}
	_cleanup_free_ char *json = make_json(r, &page.size);
	_cleanup_free_ char *name = xasprintf("page.%u.html", s->process.pid);
	const struct result result = {"page", name, write_page, &page};

	page.json = json;
	recording_free(r);
	return final_file_put(s, &file, &result);
}
