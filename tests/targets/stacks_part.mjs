// A module of stacks.js.
const inner = (i, take) => take() + i;

export function imported(i, take) {
	return inner(i, take);
}
