/*
 * Folded stacks; the grammar is in folded.h. Walks iteratively, since paths may have ten thousand
 * frames; the text of the path so far grows and shrinks with it.
 */
#include "output/folded.h"

#include <inttypes.h>

#include "base/vec.h"

struct walk {
	uint32_t node;
	size_t text_size; /* length of the path up to the parent */
};

struct folded_writer {
	FILE *out;
	const struct path_tree *tree;
	bool is_diff;
	VEC(char) text;       /* names of the path, separated by ';' */
	VEC(struct walk) todo;
	uint32_t *child;
	size_t child_capacity;
};

static void add_name(struct folded_writer *f, const char *name)
{
	if (f->text.count)
		*vec_add(&f->text) = ';';
	for (; *name; name++)
		*vec_add(&f->text) = *name == ';' ? ':' : *name;
}

static void put_line(struct folded_writer *f, const struct path_node *n)
{
	if (!n->own[PATH_NEW] && !(f->is_diff && n->own[PATH_OLD]))
		return;
	fwrite(f->text.data, 1, f->text.count, f->out);
	if (f->is_diff)
		fprintf(f->out, " %" PRIu64, n->own[PATH_OLD]);
	fprintf(f->out, " %" PRIu64 "\n", n->own[PATH_NEW]);
}

/* In reverse, since the last one pushed is the first one popped. */
static void push_children(struct folded_writer *f, uint32_t node, size_t text_size)
{
	for (uint32_t i = path_tree_children(f->tree, node, &f->child, &f->child_capacity);
	     i-- > 0;)
		*vec_add(&f->todo) = (struct walk){.node = f->child[i], .text_size = text_size};
}

void folded_write(FILE *out, const struct path_tree *t, bool is_diff)
{
	struct folded_writer f = {.out = out, .tree = t, .is_diff = is_diff};

	add_name(&f, "[unknown]");
	put_line(&f, path_tree_node(t, 0));
	push_children(&f, 0, 0);
	while (f.todo.count) {
		struct walk w = f.todo.data[--f.todo.count];
		const struct path_node *n = path_tree_node(t, w.node);

		f.text.count = w.text_size;
		add_name(&f, n->name);
		put_line(&f, n);
		push_children(&f, w.node, f.text.count);
	}
	vec_deinit(&f.text);
	vec_deinit(&f.todo);
	free(f.child);
}
