/* The call tree: identity of nodes and frames, forgetting, clones, size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "profile/calltree.h"

static void the_root_is_node_0(void **state)
{
	struct calltree *t = calltree_new();
	assert_int_equal(calltree_node_count(t), 1);
	assert_int_equal(calltree_frame_count(t), 0);
	assert_int_equal(calltree_node_frame(t, 0), 0);
	assert_int_equal(calltree_node_depth(t, 0), 0);
	calltree_free(t);
}

static void a_path_gives_the_same_node_again(void **state)
{
	struct calltree *t = calltree_new();
	uint32_t main_frame = calltree_get_frame(t, 0x401000, 1), f = calltree_get_frame(t, 0x401100, 1);
	uint32_t outer = calltree_get_child(t, 0, main_frame);
	uint32_t inner = calltree_get_child(t, outer, f);
	assert_int_equal(calltree_get_child(t, calltree_get_child(t, 0, main_frame), f), inner);
	assert_int_not_equal(calltree_get_child(t, 0, f), inner);
	assert_int_equal(calltree_parent(t, inner), outer);
	assert_int_equal(calltree_parent(t, outer), 0);
	assert_int_equal(calltree_node_frame(t, inner), f);
	assert_int_equal(calltree_node_depth(t, inner), 2);
	assert_int_equal(calltree_node_count(t), 4);
	calltree_free(t);
}

static void frames_are_found_by_address(void **state)
{
	struct calltree *t = calltree_new();
	assert_int_equal(calltree_find_frame(t, 0), 0);
	uint32_t zero = calltree_get_frame(t, 0, 0);
	uint32_t top = calltree_get_frame(t, UINT64_MAX, 9);
	assert_int_equal(zero, 1);
	assert_int_equal(calltree_find_frame(t, 0), zero);
	assert_int_equal(calltree_find_frame(t, UINT64_MAX), top);
	assert_int_equal(calltree_get_frame(t, UINT64_MAX, 10), top);
	assert_int_equal(calltree_frame(t, top)->kind, FRAME_NATIVE);
	uint32_t named = calltree_get_frame(t, FRAME_NAMED_BASE | 5, 0);
	assert_int_equal(calltree_frame(t, named)->kind, FRAME_NAMED);
	assert_int_equal(calltree_frame(t, top)->module, 9);
	calltree_free(t);
}

static void forgotten_addresses_give_new_frames(void **state)
{
	struct calltree *t = calltree_new();
	uint32_t before = calltree_get_frame(t, 0x1fff, 1), first = calltree_get_frame(t, 0x2000, 2);
	uint32_t last = calltree_get_frame(t, 0x2fff, 2), after = calltree_get_frame(t, 0x3000, 3);
	uint32_t node = calltree_get_child(t, 0, first);
	calltree_forget(t, 0x2000, 0x3000);
	assert_int_equal(calltree_find_frame(t, 0x2000), 0);
	assert_int_equal(calltree_find_frame(t, 0x2fff), 0);
	assert_int_equal(calltree_find_frame(t, 0x1fff), before);
	assert_int_equal(calltree_find_frame(t, 0x3000), after);
	uint32_t again = calltree_get_frame(t, 0x2000, 4);
	assert_true(again > last && again > after);
	assert_int_equal(calltree_frame(t, again)->module, 4);
	assert_int_equal(calltree_frame(t, first)->module, 2);
	assert_int_not_equal(calltree_get_child(t, 0, again), node);
	assert_int_equal(calltree_node_frame(t, node), first);
	calltree_free(t);
}

static void recalled_addresses_give_the_same_frames(void **state)
{
	struct calltree *t = calltree_new();
	uint32_t first = calltree_get_frame(t, 0x2000, 2), last = calltree_get_frame(t, 0x2fff, 2);
	uint32_t node = calltree_get_child(t, 0, first), other;
	for (int i = 0; i < 1000; i++) {
		calltree_forget(t, 0x2000, 0x3000);
		other = calltree_get_frame(t, 0x2000, 3);
		calltree_forget(t, 0x2000, 0x2fff);
		calltree_recall(t, 2);
		assert_int_equal(calltree_get_frame(t, 0x2000, 2), first);
		assert_int_equal(calltree_get_frame(t, 0x2fff, 2), last);
		assert_int_equal(calltree_get_child(t, 0, calltree_find_frame(t, 0x2000)), node);
		calltree_forget(t, 0x2000, 0x3000);
		calltree_recall(t, 3);
		assert_int_equal(calltree_find_frame(t, 0x2000), other);
		assert_int_equal(calltree_find_frame(t, 0x2fff), 0);
	}
	assert_int_equal(calltree_node_count(t), 2);
	calltree_free(t);
}

static uint64_t key_below_3000(void *ctx, taddr_t pc)
{
	++*(int *)ctx;
	return pc < 0x3000 ? frame_named_key(0x700) : 0;
}

static void frames_of_no_module_get_names(void **state)
{
	struct calltree *t = calltree_new();
	uint32_t in_module = calltree_get_frame(t, 0x2000, 2), image = calltree_get_frame(t, 0, 0);
	uint32_t bare[3] = {calltree_get_frame(t, 0x2100, 0), calltree_get_frame(t, 0x2200, 0),
			    calltree_get_frame(t, 0x3100, 0)};
	int asked = 0;

	assert_int_equal(calltree_name_frames(t, key_below_3000, &asked), 2);
	assert_int_equal(asked, 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(calltree_frame(t, bare[i])->kind, FRAME_NAMED);
		assert_int_equal(calltree_frame(t, bare[i])->key, frame_named_key(0x700));
		assert_int_equal(calltree_find_frame(t, 0x2100 + 0x100 * i), 0);
	}
	uint32_t named = calltree_get_frame(t, frame_named_key(0x700), 0);
	assert_true(named == bare[0] || named == bare[1]);
	assert_int_equal(calltree_find_frame(t, 0x2000), in_module);
	assert_int_equal(calltree_find_frame(t, 0x3100), bare[2]);
	assert_int_equal(calltree_find_frame(t, 0), image);
	calltree_forget_code(t, 0x1000, 0x4000);
	assert_int_equal(calltree_find_frame(t, 0x3100), 0);
	assert_int_equal(calltree_find_frame(t, 0x2000), in_module);
	calltree_free(t);
}

static void many_nodes_stay_what_they_are(void **state)
{
	enum { FRAMES = 3000, NODES = 300000 };
	struct calltree *t = calltree_new();
	uint32_t *node = xcalloc(NODES, sizeof(*node));
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(calltree_get_frame(t, 0x400000 + 5 * i, 1), i + 1);
	for (uint32_t i = 1; i < NODES; i++)
		node[i] = calltree_get_child(t, node[i / 7], 1 + i % FRAMES);
	uint32_t count = calltree_node_count(t);
	for (uint32_t i = 1; i < NODES; i++) {
		assert_int_equal(calltree_get_child(t, node[i / 7], 1 + i % FRAMES), node[i]);
		assert_int_equal(calltree_node_depth(t, node[i]), calltree_node_depth(t, node[i / 7]) + 1);
	}
	assert_int_equal(calltree_node_count(t), count);
	assert_true(calltree_memory(t) / count <= 48);
	free(node);
	calltree_free(t);
}

static void a_clone_is_independent(void **state)
{
	struct calltree *t = calltree_new();
	uint32_t frame = calltree_get_frame(t, 0x1000, 1), node = calltree_get_child(t, 0, frame);
	struct calltree *c = calltree_clone(t);
	assert_int_equal(calltree_get_child(c, 0, calltree_find_frame(c, 0x1000)), node);
	for (uint32_t i = 0; i < 5000; i++)
		calltree_get_child(c, node, calltree_get_frame(c, 0x2000 + i, 1));
	assert_int_equal(calltree_node_count(t), 2);
	assert_int_equal(calltree_find_frame(t, 0x2000), 0);
	calltree_free(t);
	assert_int_equal(calltree_node_count(c), 5002);
	calltree_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_root_is_node_0),
		cmocka_unit_test(a_path_gives_the_same_node_again),
		cmocka_unit_test(frames_are_found_by_address),
		cmocka_unit_test(forgotten_addresses_give_new_frames),
		cmocka_unit_test(recalled_addresses_give_the_same_frames),
		cmocka_unit_test(frames_of_no_module_get_names),
		cmocka_unit_test(many_nodes_stay_what_they_are),
		cmocka_unit_test(a_clone_is_independent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
