/*
 * A refined site is shown as a chain of functions, "fill ← load ← main". A site without a name is
 * named after its nearest caller that has one.
 */
#include "report/massif_labels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "report/massif_frame.h"

static bool is_named(const char *function)
{
	return strcmp(function, "???") != 0 && strcmp(function, "(below main)") != 0;
}

/* The name of the function of @node in a chain: its last identifier, or its address. */
static char *link_name(const struct massif_merged *m, uint32_t node)
{
	_cleanup_free_ char *function = NULL, *ignored = NULL;
	struct massif_frame frame;

	massif_merged_name(m, node, &function, &ignored);
	if (is_named(function))
		return text_identifier(function);
	massif_file_frame(&m->file->node[m->sample[node]], &frame);
	return xasprintf("0x%" PRIX64, frame.address);
}

/* From the first named function to @node, all or only the ends: "fill \u2190 main". */
static char *chain_name(const struct massif_merged *m, uint32_t node,
			bool is_whole)
{
	uint32_t parent = path_tree_node(m->tree, node)->parent;
	_cleanup_free_ char *own = link_name(m, node);

	while (parent && !is_whole && path_tree_node(m->tree, parent)->parent)
		parent = path_tree_node(m->tree, parent)->parent;
	if (!parent)
		return_ptr(own);
	_cleanup_free_ char *inner = chain_name(m, parent, is_whole);

	if (!strncmp(inner, "0x", 2) && strncmp(own, "0x", 2) != 0)
		return_ptr(own);
	return xasprintf("%s \u2190 %s", inner, own);
}

/* A nameless function is identified by the nearest named one of its sole callers. */
static uint32_t named_caller(const struct massif_merged *m, uint32_t node)
{
	for (uint32_t at = node; at; at = massif_merged_only_caller(m, at)) {
		_cleanup_free_ char *function = NULL, *ignored = NULL;

		massif_merged_name(m, at, &function, &ignored);
		if (is_named(function))
			return at;
	}
	return node;
}

static void set_name(const struct massif_merged *m, uint32_t node, char **function,
		     char **location)
{
	_cleanup_free_ char *ignored = NULL;
	uint32_t named = named_caller(m, node);

	massif_merged_name(m, named, &ignored, location);
	if (path_tree_node(m->tree, named)->parent || !is_named(ignored)) {
		*function = chain_name(m, named, false);
		return;
	}
	*function = ignored;
	ignored = NULL;
}

static bool is_same(const struct massif_sites *s, size_t i, size_t j)
{
	return !strcmp(s->function[i], s->function[j]) &&
	       !strcmp(s->location[i] ? s->location[i] : "", s->location[j] ? s->location[j] : "");
}

static bool is_double(const struct massif_sites *s, size_t i)
{
	for (size_t j = 0; j < s->count; j++)
		if (j != i && is_same(s, i, j))
			return true;
	return false;
}

/* Sites with equal labels get all their functions, and then the address. */
static void make_distinct(const struct massif_merged *m, const uint32_t *node,
			  struct massif_sites *out)
{
	bool needs_more[MASSIF_SITES_MAX];

	for (size_t i = 0; i < out->count; i++)
		needs_more[i] = is_double(out, i);
	for (size_t i = 0; i < out->count; i++) {
		if (!needs_more[i])
			continue;
		free(out->function[i]);
		out->function[i] = chain_name(m, named_caller(m, node[i]), true);
	}
	for (size_t i = 0; i < out->count; i++)
		needs_more[i] = is_double(out, i);
	for (size_t i = 0; i < out->count; i++) {
		struct massif_frame frame;
		char *function = out->function[i];

		if (!needs_more[i])
			continue;
		massif_file_frame(&m->file->node[m->sample[node[i]]], &frame);
		out->function[i] = xasprintf("%s at 0x%" PRIX64, function, frame.address);
		free(function);
	}
}

void massif_labels_set(const struct massif_merged *m, const uint32_t *node,
		       struct massif_sites *out)
{
	for (size_t i = 0; i < out->count; i++)
		set_name(m, node[i], &out->function[i], &out->location[i]);
	make_distinct(m, node, out);
}
