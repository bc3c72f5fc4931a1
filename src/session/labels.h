/*
 * Labels (--label): whom memory is for. While a call of the function lasts, its thread has a label:
 * what an argument, or a member of what that points to, says at the entry. Or it has one of a
 * variable: what that says at each allocation. A label is a frame at the root of the thread's
 * stacks, so every table, picture and file shows it as it shows functions.
 *
 *	--label=handle:arg1->tenant           [tenant: acme]
 *	--label=db=run_query:arg2:str         [db: orders]
 *	--label=tls:current_request->id       [id: 4711]
 *	--label=otel:http.route               [http.route: /orders]
 *
 * That of a function is read at the entry, that of a variable at each allocation; by pads
 * (arch/pad_label.h), or while the thread is stopped: a string, an integer, or the name of
 * an enumerator, as the debug information says; without it a pointer to text is a string, anything
 * else an integer. A text that cannot be read is "?".
 */
#ifndef PTMEM_SESSION_LABELS_H
#define PTMEM_SESSION_LABELS_H

#include <sys/types.h>

#include "base/hash.h"
#include "base/types.h"
#include "tracee/state/custom_probe.h"

struct heap_event;
struct leaf_amounts;
struct module;
struct options;
struct run;
struct session;
struct within_call;

/* Different texts of one option; what comes later is "other". */
#define LABEL_TEXTS_MAX 1000u

/* Why @text cannot be an option's value with @o; NULL: it can. */
const char *labels_check_text(const struct options *o, const char *text);
/* The same of all of them. */
const char *labels_check(const struct options *o);
/* Watches the functions of all options, which were checked. labels_close frees them. */
void labels_open(struct run *run);
void labels_close(struct run *run);

/* @m, which may have variables that are labels, was mapped; unmapped. */
void labels_add_module(struct session *s, const struct module *m);
void labels_remove_module(struct session *s, const struct module *m);
/* @child, a copy of @parent, gets its own labels. */
void labels_fork(struct session *parent, struct session *child);

/* For event_sink: a call of a function with labels begins, or ends. */
void labels_begin(struct session *s, pid_t tid, const struct within_call *call);
void labels_end(struct session *s, pid_t tid, const struct custom_probe *function);

/* The node for @node, the stack of @he: the same stack behind its thread's labels. */
uint32_t labels_node(struct session *s, const struct heap_event *he, uint32_t node,
		     bool is_complete);

/* What is in use, and was ever allocated, under a label; text "": without this label. */
struct label_amount {
	const char *name, *text; /* of the session */
	uint64_t live_bytes, allocated_bytes;
};

/* The largest of each option, and the rest of it as "other": at most @max in all. */
size_t labels_live(const struct session *s, struct label_amount *out, size_t max);
/* The largest labels, for the summary: of bytes by leaf at the peak, and their sum. */
void labels_print(const struct session *s, const struct leaf_amounts *at_peak, uint64_t peak);

/* What was allocated under a text. */
struct label_use {
	uint64_t held;           /* bytes in use, at the peak or now */
	uint64_t bytes, calls;   /* allocated */
};

/* What processes with a label had in use at their ends, and allocated; text "": none. */
struct label_total {
	uint32_t label;          /* number of the option */
	char *text;              /* owned */
	struct label_use use;
};

/* All zero at first. At most LABEL_TEXTS_MAX texts of each option, and "other". */
struct label_totals {
	HASH(struct label_total) total;
	VEC(uint32_t) texts;     /* by option: how many */
};

/* Adds those of @s, which ends, without what it inherited of allocations. */
void labels_add(const struct session *s, struct label_totals *to);
/* The largest of each option; @live: in use by all. */
void label_totals_print(const struct run *run, const struct label_totals *totals, uint64_t live);
void label_totals_deinit(struct label_totals *t);

void labels_thread_exit(struct session *s, uint32_t thread);
void labels_free(struct session *s);

#endif
