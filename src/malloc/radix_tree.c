/* Finds the root of a radix tree by its leaves, and visits them all. */
#include "malloc/radix_tree.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
/* Pages that pointers in a program's data may lead to before they are no longer looked at. */
#define SEARCHED_MAX (1u << 14)

/* Calls @fn for each page of the leaf at @leaf that may not be all zeros, until that is false. */
static void each_page(struct radix_tree *t, taddr_t leaf, uint64_t number, radix_words_fn *fn,
		      uint64_t *number_out)
{
	const struct resident *pages = t->memory->pages;
	taddr_t end = leaf + RADIX_LEAF_SIZE, at = leaf;
	uint64_t word[PAGE_WORDS];

	for (size_t i = resident_find(pages, leaf); i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];

		if (r->start >= end)
			return;
		/* pages of a leaf need not begin where pages of memory do */
		if (r->start > at)
			at += ROUND_DOWN(r->start - at, PAGE);
		for (; at < MIN(r->end, end); at += PAGE) {
			if (t->pages_left == 0 || !memory_read(t->memory, at, word, sizeof(word)))
				return;
			t->pages_left--;
			if (!fn(t->ctx, word, number + (at - leaf) / sizeof(*word), number_out))
				return;
		}
	}
}

/* Whether @word may be a pointer to a leaf; *number_out: a page it is for, 0 = unknown. */
static bool probe_leaf(struct radix_tree *t, uint64_t word, uint64_t *number_out)
{
	const struct map *m =
		word % t->align == 0 ? maps_find(&t->memory->pages->maps, word) : NULL;

	*number_out = 0;
	if (!m || !m->is_write || m->end - word < RADIX_LEAF_SIZE)
		return false;
	each_page(t, word, 0, t->probe, number_out);
	return true;
}

/* Calls @fn for each leaf of @root, with the number of its first page. */
static bool each_leaf(struct radix_tree *t, taddr_t root,
		      bool (*fn)(struct radix_tree *t, uint64_t leaf, uint64_t number))
{
	uint64_t word[PAGE_WORDS];

	for (uint64_t n = 0; n < t->root_words; n += PAGE_WORDS) {
		if (!memory_read(t->memory, root + n * sizeof(*word), word, sizeof(word)))
			return false;
		for (uint32_t i = 0; i < PAGE_WORDS; i++)
			if (word[i] && !fn(t, word[i], (n + i) * RADIX_LEAF_WORDS))
				return false;
	}
	return true;
}

/* Whether @leaf is a leaf for the pages from @number on, as far as it says. */
static bool is_leaf(struct radix_tree *t, uint64_t leaf, uint64_t number)
{
	uint64_t found;

	return probe_leaf(t, leaf, &found) &&
	       (!found || ROUND_DOWN(found, RADIX_LEAF_WORDS) == number);
}

struct root_search {
	struct radix_tree *tree;
	const struct addr_range *data;
	taddr_t root;
};

/* Whether the word at @at is one of the root's pointers to leaves, and all of these are. */
static bool is_of_root(void *ctx, taddr_t at, const uint64_t *word)
{
	struct root_search *s = ctx;
	uint64_t number, size = s->tree->root_words * sizeof(*word);

	if (!*word || !probe_leaf(s->tree, *word, &number) || !number)
		return false;
	uint64_t offset = number / RADIX_LEAF_WORDS * sizeof(*word);

	s->root = at - offset;
	return offset <= at - s->data->start && s->data->end - s->root >= size &&
	       each_leaf(s->tree, s->root, is_leaf);
}

taddr_t radix_tree_find(struct radix_tree *t, const struct addr_range *data)
{
	struct root_search s = {t, data, 0};

	t->pages_left = SEARCHED_MAX;
	return data->end - data->start >= t->root_words * sizeof(uint64_t) &&
	       memory_find_word(t->memory, data, is_of_root, &s) ?
		       s.root : 0;
}

static bool visit_leaf(struct radix_tree *t, uint64_t leaf, uint64_t number)
{
	t->add_leaf(t->ctx, leaf);
	each_page(t, leaf, number, t->add, NULL);
	return true;
}

bool radix_tree_visit(struct radix_tree *t, taddr_t root)
{
	const struct resident *pages = t->memory->pages;

	t->pages_left = (pages->resident + pages->swapped) / PAGE * 2;
	each_leaf(t, root, visit_leaf);
	return t->pages_left > 0;
}
