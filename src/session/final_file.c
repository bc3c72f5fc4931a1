/* See final_file.h. */
#include "session/final_file.h"

#include <stdlib.h>
#include <string.h>

#include "session/file_name.h"
#include "session/rescue.h"
#include "session/session.h"
#include "session/session_files.h"

static bool is_same(const struct final_file *f, const struct session_file *file)
{
	bool has_source = f->source && file->source;

	return strcmp(f->option, file->option) == 0 &&
	       (has_source ? strcmp(f->source, file->source) == 0 : f->source == file->source);
}

static const struct final_file *find(const struct session *s, const struct session_file *file)
{
	for (size_t i = 0; i < s->end.files.count; i++) {
		if (is_same(&s->end.files.data[i], file))
			return &s->end.files.data[i];
	}
	return NULL;
}

bool final_file_is_new(const struct session *s, const struct session_file *file)
{
	return !find(s, file);
}

int final_file_name(struct session *s, const struct session_file *file, const char **path_out)
{
	const struct final_file *known = find(s, file);
	char *path;
	int rc = known ? 0 : session_files_name(s, file, &path);

	if (rc != 0)
		return rc;
	if (!known)
		*vec_add(&s->end.files) = (struct final_file){file->option, file->source, path};
	*path_out = known ? known->path : path;
	return 0;
}

int final_file_write(const struct session *s, const struct result *r, const char *path)
{
	if (!s->end.is_draft)
		return rescue_write(r, path);
	if (!file_name_is_shared(path))
		result_write(r, path); /* if it fails, so will the next time */
	return 0;
}

int final_file_put(struct session *s, const struct session_file *file, const struct result *r)
{
	const char *path;
	int rc = final_file_name(s, file, &path);

	if (rc == 0)
		rc = final_file_write(s, r, path);
	if (rc == 0 && !s->end.is_draft)
		session_files_announce(s, path);
	return rc;
}

void final_files_deinit(struct session *s)
{
	for (size_t i = 0; i < s->end.files.count; i++)
		free(s->end.files.data[i].path);
	vec_deinit(&s->end.files);
}
