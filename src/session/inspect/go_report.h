/* The heap profile of a Go program among the objects of a process (output/inspect_go.h). */
#ifndef PTMEM_SESSION_INSPECT_GO_REPORT_H
#define PTMEM_SESSION_INSPECT_GO_REPORT_H

#include "languages/go_heap.h"
#include "malloc/memory.h"
#include "output/inspect_go.h"
#include "session/inspect/malloc_module.h"

/* What is read while the process is stopped. */
struct go_state {
	const struct module *module; /* with Go's runtime; NULL = none */
	bool has_heap;               /* heap was read */
	struct go_heap heap;
};

/* @source: the memory of the process; @modules must outlive @out. */
void go_state_read(const struct held_modules *modules, const struct memory_source *source,
		   struct go_state *out);
void go_state_deinit(struct go_state *s);

/* With names, which takes no memory of the process. @modules and their files must outlive @out. */
void go_report_make(const struct go_state *s, const struct held_modules *modules,
		    struct inspect_go *out);

#endif
