/* See html_run.h. */
#include "session/html_run.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "output/outfile.h"
#include "recording/recording_json.h"
#include "recording/recording_read.h"
#include "recording/recording_write.h"
#include "session/session.h"
#include "session/session_files.h"

/*
 * @r as a reader of its file has it: only that is in intervals of one length and has each block
 * once (recording_read.h). So the page is the same whether ptmem or ptmem-report makes it.
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

static int write_page(const char *path, const struct recording *unread)
{
	struct recording *r;
	struct outfile out;
	size_t size;
	int rc = reread(unread, &r);

	if (rc != 0)
		return rc;
	_cleanup_free_ char *json = make_json(r, &size);

	recording_free(r);
	rc = outfile_open(path, &out);
	if (rc != 0)
		return rc;
	html_page_write(out.file, json, size);
	return outfile_commit(&out);
}

int html_run_write(struct session *s, const struct recording *r)
{
	_cleanup_free_ char *path = NULL;
	const struct session_file name = {.option = "--html",
					  .pattern = s->run->options->html_file};
	int rc = session_files_name(s, &name, &path);

	if (rc != 0)
		return rc;
	rc = write_page(path, r);
	if (rc != 0)
		log_error("cannot write %s: %s", path, strerror(-rc));
	else
		session_files_announce(s, path);
	return rc;
}
