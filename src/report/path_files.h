/* Files that are made from a tree of call paths. */
#ifndef PTMEM_REPORT_PATH_FILES_H
#define PTMEM_REPORT_PATH_FILES_H

#include "output/flame.h"
#include "report/show.h"

/* Text of a flame graph. */
struct path_words {
	const char *title, *subtitle;  /* --title goes before the first */
};

/* These log errors; 0 or an enum report_exit. */
int path_files_folded(const char *path, const struct path_tree *t, bool is_diff);
/* Those that @r asks for by --folded and --flame. */
int path_files_write(const struct report_request *r, const struct path_tree *t,
		     const struct path_words *words);

#endif
