/*
 * Labels that are variables, or attributes of OpenTelemetry's thread context: where they are in a
 * process, and what their values say. Hides: symbols and debug information, how threads find their
 * variables, and how OpenTelemetry's SDKs publish the keys of attributes.
 *
 * A variable is looked for in each object when that is mapped. How it is found then is data for the
 * pads (arch/pad_label.h), which follow it at each allocation; label_variable_read does it for a
 * thread that is stopped.
 */
#ifndef PTMEM_SESSION_LABEL_VARIABLE_H
#define PTMEM_SESSION_LABEL_VARIABLE_H

#include "arch/pad_label.h"
#include "base/types.h"
#include "graph/type_table.h"
#include "session/label_option.h"

struct address_space;
struct module;

/* Where a label is in a process. */
struct label_place {
	struct pad_label pad;   /* of no kind: not found so far */
	uint32_t type;          /* of what is there; TYPE_NONE: unknown */
	uint32_t module;        /* the object that has it; 0 = not found */
	bool is_pending;        /* found, but threads' variables of that object are not known yet */
};

/*
 * Looks for the variable of @l in @m, an object of @space. *@out is changed if it is found there.
 * NULL, or why it cannot be read.
 */
const char *label_variable_find(const struct address_space *space, const struct module *m,
				struct type_table *types, const struct label_option *l,
				struct label_place *out);
/*
 * Where the thread context's attribute of @l is, if @space publishes its keys by now. *@out is
 * changed if @m has the variable; if it is pending, it is of @m.
 */
void label_context_find(const struct address_space *space, const struct module *m,
			const struct label_option *l, struct label_place *out);

/*
 * How the label @l of the function at @entry is read from its argument, which has @type; the module
 * is the caller's. False: pads cannot, and *@out is not changed.
 */
bool label_argument_place(struct type_table *types, taddr_t entry, uint32_t type,
			  const struct label_option *l, struct label_place *out);

/* What @p, of label_argument_place, is in a call with @argument, which begins now. */
void label_argument_read(const struct address_space *space, uint64_t argument,
			 const struct pad_label *p, struct pad_label_value *out);
/* What @p is now in the thread of @space with that thread pointer; it should be stopped. */
void label_variable_read(const struct address_space *space, uint64_t thread_pointer,
			 const struct pad_label *p, struct pad_label_value *out);

/* The text of @v; NULL: it has no label. Malloc'ed. */
char *label_variable_text(struct type_table *types, const struct label_option *l,
			  const struct label_place *place, const struct pad_label_value *v);

#endif
