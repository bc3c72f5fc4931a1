/* See path_files.h. */
#include "report/path_files.h"

#include <string.h>

#include "base/log.h"
#include "output/folded.h"
#include "output/outfile.h"

static int log_unwritten(const char *path, int err)
{
	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

int path_files_folded(const char *path, const struct path_tree *t, bool is_diff)
{
	struct outfile out;
	int err = outfile_open(path, &out);

	if (!err) {
		folded_write(out.file, t, is_diff);
		err = outfile_commit(&out);
	}
	return log_unwritten(path, err);
}

static int write_flame(const struct report_request *r, const struct path_tree *t,
		       const struct path_words *words)
{
	const struct flame_options options = {
		.title = r->title ? r->title : words->title,
		.subtitle = words->subtitle,
		.unit = "bytes",
		.width = r->x_size ? r->x_size : FLAME_WIDTH_DEFAULT,
		.is_fixed = r->x_size,
		.min_frame = FLAME_MIN_FRAME,
		.is_diff = r->is_diff,
	};
	struct outfile out;
	int err = outfile_open(r->flame, &out);

	if (!err) {
		flame_write(out.file, t, &options);
		err = outfile_commit(&out);
	}
	return log_unwritten(r->flame, err);
}

int path_files_write(const struct report_request *r, const struct path_tree *t,
		     const struct path_words *words)
{
	int status = r->folded ? path_files_folded(r->folded, t, r->is_diff) : 0;

	return !status && r->flame ? write_flame(r, t, words) : status;
}
