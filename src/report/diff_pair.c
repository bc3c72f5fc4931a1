/* See diff_pair.h. */
#include "report/diff_pair.h"

#include "report/massif_diff.h"
#include "report/recording_diff.h"

struct frame_match *diff_pair_match(const struct input *input)
{
	struct frame_match *m = frame_match_new();

	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct input *this = &input[side], *other = &input[!side];

		if (this->kind == INPUT_RECORDING)
			recording_diff_match(m, (enum path_side)side, this->recording,
					     other->recording);
		else
			massif_diff_match(m, (enum path_side)side, this->massif);
	}
	frame_match_finish(m);
	return m;
}

struct path_tree *diff_pair_tree(const struct diff_pair *pair, enum diff_order order)
{
	struct diff_paths *p = diff_paths_new(pair->match, order);

	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct input *this = &pair->input[side];

		if (this->kind == INPUT_RECORDING)
			recording_diff_add(p, (enum path_side)side, this->recording,
					   &pair->view[side]);
		else
			massif_diff_add(p, (enum path_side)side, this->massif,
					pair->snapshot[side]);
	}
	return diff_paths_finish(p);
}
