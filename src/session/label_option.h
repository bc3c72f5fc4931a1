/*
 * The values of --label: what each says. Hides their grammar.
 *
 *	[NAME=]FUNCTION:argN[->MEMBER|->+OFFSET]...[:str|:int|:hex]
 *	[NAME=][tls:][FILE:]VARIABLE[->MEMBER|->+OFFSET]...[:str|:int|:hex]
 *	[NAME=]otel:KEY
 */
#ifndef PTMEM_SESSION_LABEL_OPTION_H
#define PTMEM_SESSION_LABEL_OPTION_H

#include "base/types.h"
#include "graph/data_value.h"

#define LABEL_STEPS_MAX 8u

enum label_kind {
	LABEL_ARGUMENT,         /* of a function, while its call lasts */
	LABEL_VARIABLE,         /* what it is at each allocation */
	LABEL_CONTEXT,          /* an attribute of OpenTelemetry's thread context */
};

/* From a pointer, or a struct, to a member of it. */
struct label_step {
	char *member;           /* NULL: what is at the offset. Owned */
	uint64_t offset;
};

struct label_option {
	const char *text;       /* as given */
	char *name;             /* owned */
	enum label_kind kind;
	char *object;           /* the function, the variable or the key; owned */
	unsigned arg;           /* of the function, from 0 */
	char *file;             /* that defines the variable; NULL: any. Owned */
	bool is_thread_local;   /* no other variable is meant */
	struct label_step step[LABEL_STEPS_MAX];
	unsigned steps;
	enum value_form form;
	const struct custom_probe *probe; /* of the function; NULL until labels_open */
	uint32_t first;         /* number of the first option with this name; of labels_open */
	unsigned number;        /* of those that pads read (arch/pad_label.h); PAD_LABELS: none */
	bool is_found;          /* the variable, in some process */
};

/* NULL, or why @text, which must outlive it, is none. @l is to be freed in both cases. */
const char *label_option_parse(const char *text, struct label_option *l);
void label_option_deinit(struct label_option *l);

#endif
