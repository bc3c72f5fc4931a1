/*
 * What a gate has found, a profile with its limits or a comparison with its conditions, and its
 * forms for reviewers and machines:
 *
 *	markdown   tables, for a comment in a pull request
 *	github     GitHub's workflow commands: an annotation at each call site at fault
 *	junit      a test case for each limit or condition
 *	sarif      SARIF 2.1.0: a result for each violation, with its locations
 *	json       all of it
 *
 * A metric of several runs is a band, from its least to its largest value; of one run both are
 * equal. Values are bytes, numbers or percent, as limit_info says. Texts are made visible
 * (text_clean) when they are added, so forms need only their own escapes.
 */
#ifndef PTMEM_OUTPUT_GATE_H
#define PTMEM_OUTPUT_GATE_H

#include <stdio.h>

#include "base/alloc.h"
#include "output/limit.h"
#include "output/path_tree.h"

/* A call site, with its values by enum path_side; without a comparison it has only the new one. */
struct gate_site {
	char *label;     /* "f (a.c:7)" */
	char *file;      /* of its source, relative if it is below "."; NULL = unknown */
	uint64_t line;   /* 0 = unknown */
	double value[2];
};

typedef VEC(struct gate_site) gate_sites;

#define GATE_SITES 10u /* at most, of a check that failed */

struct gate_value {
	enum limit_metric metric;
	double min[2], max[2]; /* by enum path_side */
};

/* A limit or condition. */
struct gate_check {
	enum limit_metric metric;
	char *text;      /* as given: "peak<2M" */
	char *message;   /* "it is 2.4 MiB (2,476,016 bytes)"; NULL = it holds */
	bool is_unmeasured; /* nothing is known of it: the message says so */
	gate_sites site; /* those at fault, the worst first; GATE_SITES at most */
};

/* All of it is owned. Zeroed, it is one without anything. */
struct gate {
	bool is_diff;
	bool has_bands;        /* what is compared is of several runs */
	unsigned runs;         /* of the program; 0 = one */
	size_t processes;      /* in a run: values are of the one that has most; 0 = one */
	char *title;           /* what was profiled */
	VEC(struct gate_value) value;
	VEC(struct gate_check) check;
	VEC(char *) warning;   /* what makes a result doubtful; owned */
	enum limit_metric site_metric; /* what the values of `site` are */
	gate_sites site;       /* the largest ones, or those that changed most */
};

void gate_deinit(struct gate *g);

void gate_set_title(struct gate *g, const char *title);
/* Takes ownership of @message; NULL: it holds. Valid until the next check. */
struct gate_check *gate_add_check(struct gate *g, const char *text, enum limit_metric metric,
				  char *message);
/* Logs a warning, and adds it. Takes ownership of @text. */
void gate_warn(struct gate *g, char *text);
/* Adds a copy; its values are 0. */
struct gate_site *gate_add_site(gate_sites *sites, const char *label, const char *file,
				uint64_t line);
/* The number of checks that do not hold. */
size_t gate_failures(const struct gate *g);
/* Logs what does not hold, each after @prefix unless it is unmeasured, with its sites. */
void gate_log(const struct gate *g, const char *prefix);

/* "+312.5 KiB (320,000 bytes)", "-3", "2.4 MiB (2,476,016 bytes)": of @site. To be freed. */
char *gate_site_amount(const struct gate *g, enum limit_metric metric,
		       const struct gate_site *site);
/* "2.4 MiB (...)", or "A to B" of a band. To be freed. */
char *gate_band(enum limit_metric metric, double min, double max);

enum gate_form { GATE_NONE, GATE_MARKDOWN, GATE_GITHUB, GATE_JUNIT, GATE_SARIF, GATE_JSON };

/* By the extension of a file's name: .md, .xml, .sarif or .json; else GATE_NONE. */
enum gate_form gate_form_of(const char *path);

/* The caller checks the stream for errors. */
void gate_write(FILE *out, enum gate_form form, const struct gate *g);
/* ",\n\"metrics\":[...],\n\"checks\":[...]": members of a JSON object. To be freed. */
char *gate_json_members(const struct gate *g);

#endif
