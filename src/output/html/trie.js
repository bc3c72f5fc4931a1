/*
 * All stacks, sorted, for flame graphs and tables.
 *
 * Stacks   the stacks of one profile or of two, as trees of frames
 * Merged   one tree of them by functions, outermost first, with or without hidden frames
 * Trie     the stacks in the order of that tree, or of the reversed stacks
 * Values   a selection: sums over that order
 *
 * Stacks that begin with the same functions are neighbours, so each node of the tree (of callees or
 * of callers) is a range of positions [lo, hi) at a depth, and its value is the difference of two
 * prefix sums. A new selection only needs new sums; a node is identified by its functions.
 */
"use strict";

/*
 * The stacks of one profile, or of two that are compared: the new one's leaves, then the old
 * one's.
 */
class Stacks {
	constructor(profiles, names) {
		this.names = names;
		this.profiles = profiles;
		this.count = profiles.reduce((sum, p) => sum + p.count, 0);
		this.hidden = Uint8Array.from(names.frames, ({ kind }) =>
			kind === KIND.ALLOCATOR || kind === KIND.RUNTIME ? 1 : 0);
		this.merged = new Map();
		this.findSites();
	}

	/* The profile that has @leaf, and its number there. */
	origin(leaf) {
		const [p, old] = this.profiles;

		return leaf < p.count ? [p, leaf] : [old, leaf - p.count];
	}

	/* Calls @use(frame) for the frames of @leaf, innermost first, until it returns true. */
	walk(leaf, use) {
		const [p, i] = this.origin(leaf);
		let node = p.leafNode[i];

		if (node < 0)
			use(p.unknownFrame);
		for (; node >= 0; node = p.nodeParent[node])
			if (use(p.nodeFrame[node]))
				return;
	}

	/* By leaf: siteFrame, the frame of its call site; site, the first of equal call sites. */
	findSites() {
		const { frames } = this.names;

		this.siteFrame = Int32Array.from({ length: this.count }, (_, leaf) => {
			const [p, i] = this.origin(leaf);

			return p.frameOf(p.leafSite[i]);
		});
		this.site = Int32Array.from(this.siteFrame, (frame) => frames[frame].site);
	}

	mergedTree(hide) {
		if (!this.merged.has(hide))
			this.merged.set(hide, new Merged(this, hide));
		return this.merged.get(hide);
	}

	leavesOfSite(frame) {
		const out = [];

		for (let leaf = 0; leaf < this.count; leaf++)
			if (this.site[leaf] === frame)
				out.push(leaf);
		return out;
	}
}

/* Node 0 is the root; parents precede their children. */
class Merged {
	constructor(stacks, hide) {
		this.stacks = stacks;
		this.hide = hide;
		this.fnOf = Int32Array.from(stacks.names.frames, (frame) => frame.fn);
		this.parent = [-1];
		this.fn = [-1];
		this.byKey = new Map();
		this.nodeOf = new Int32Array(stacks.count); /* by leaf */
		this.addProfiles();
		this.count = this.parent.length;
		this.parent = Int32Array.from(this.parent);
		this.fn = Int32Array.from(this.fn);
		this.setDepths();
		this.byKey = null;
	}

	child(parent, frame) {
		const fn = this.fnOf[frame], key = parent * this.stacks.names.functions.length + fn;
		let node = this.byKey.get(key);

		if (node === undefined) {
			node = this.parent.push(parent) - 1;
			this.fn.push(fn);
			this.byKey.set(key, node);
		}
		return node;
	}

	addProfiles() {
		let first = 0;

		for (const p of this.stacks.profiles) {
			const place = new Int32Array(p.nodeParent.length);

			for (let i = 0; i < place.length; i++) {
				const parent = p.nodeParent[i] < 0 ? 0 : place[p.nodeParent[i]];
				const isHidden = this.hide && this.stacks.hidden[p.nodeFrame[i]];

				place[i] = isHidden ? parent : this.child(parent, p.nodeFrame[i]);
			}
			for (let i = 0; i < p.count; i++) {
				const node = p.leafNode[i];

				this.nodeOf[first + i] = (node >= 0 && place[node]) ||
					this.whole(first + i);
			}
			first += p.count;
		}
	}

	/* A stack of only hidden frames is shown. */
	whole(leaf) {
		const frames = [];
		let node = 0;

		this.stacks.walk(leaf, (frame) => { frames.push(frame); });
		for (const frame of frames.reverse())
			node = this.child(node, frame);
		return node;
	}

	/* Depths, and which nodes have no ancestor of the same function. */
	setDepths() {
		this.depth = new Int32Array(this.count);
		this.isOutermost = new Uint8Array(this.count);
		for (let i = 1; i < this.count; i++) {
			let up = this.parent[i];

			this.depth[i] = this.depth[up] + 1;
			while (up && this.fn[up] !== this.fn[i])
				up = this.parent[up];
			this.isOutermost[i] = up ? 0 : 1;
		}
	}

	/* The leaves whose stacks contain function @fn. */
	leavesOf(fn) {
		if (!this.nodesOf) {
			this.nodesOf = this.stacks.names.functions.map(() => []);
			this.leavesAt = Array.from({ length: this.count }, () => []);
			this.children = Array.from({ length: this.count }, () => []);
			for (let i = 1; i < this.count; i++) {
				this.children[this.parent[i]].push(i);
				if (this.isOutermost[i])
					this.nodesOf[this.fn[i]].push(i);
			}
			this.nodeOf.forEach((node, leaf) => this.leavesAt[node].push(leaf));
		}
		const stack = [...this.nodesOf[fn]], out = [];

		while (stack.length) {
			const node = stack.pop();

			out.push(...this.leavesAt[node]);
			stack.push(...this.children[node]);
		}
		return out;
	}

	/* Sums of @values (by leaf) over the subtree of each node. */
	totals(values) {
		const out = this.own(values);

		for (let i = this.count - 1; i > 0; i--)
			out[this.parent[i]] += out[i];
		return out;
	}

	own(values) {
		const out = new Float64Array(this.count);

		for (let leaf = 0; leaf < values.length; leaf++)
			out[this.nodeOf[leaf]] += values[leaf];
		return out;
	}

	/* The rank of each node in the order of the tree: siblings by name. */
	downRanks() {
		const { rank } = this.stacks.names;
		const start = new Int32Array(this.count + 1), out = new Int32Array(this.count);

		for (let i = 1; i < this.count; i++)
			start[this.parent[i] + 1]++;
		for (let i = 0; i < this.count; i++)
			start[i + 1] += start[i];
		const next = start.slice(), children = new Int32Array(this.count);

		for (let i = 1; i < this.count; i++)
			children[next[this.parent[i]]++] = i;
		const stack = [0];

		for (let at = 0; stack.length; at++) {
			const node = stack.pop();

			out[node] = at;
			stack.push(...children.subarray(start[node], start[node + 1])
				.sort((a, b) => rank[this.fn[b]] - rank[this.fn[a]]));
		}
		return out;
	}

	/*
	 * The rank of each node's stack read from its end: by the last one, two, four, eight...
	 * functions until no two are equal.
	 */
	upRanks() {
		const n = this.count, { rank } = this.stacks.names;
		let ranks = Int32Array.from(this.fn, (fn) => fn < 0 ? 0 : rank[fn] + 1);
		let behind = Int32Array.from(this.parent);
		let most = ranks.reduce((m, r) => Math.max(m, r), 0);
		let order = Int32Array.from(ranks.keys());

		behind[0] = 0;
		for (;;) {
			const second = ranks, far = behind;

			order = this.countingSort(order, (i) => second[far[i]], most);
			order = this.countingSort(order, (i) => second[i], most);
			const next = new Int32Array(n);

			for (let k = 1; k < n; k++) {
				const a = order[k - 1], b = order[k];
				const same = second[a] === second[b] &&
					second[far[a]] === second[far[b]];

				next[b] = next[a] + (same ? 0 : 1);
			}
			ranks = next;
			most = ranks[order[n - 1]];
			if (most === n - 1)
				return ranks;
			behind = Int32Array.from(far, (i) => far[i]);
		}
	}

	countingSort(order, key, most) {
		const start = new Int32Array(most + 2), out = new Int32Array(order.length);

		for (const i of order)
			start[key(i) + 1]++;
		for (let k = 0; k <= most; k++)
			start[k + 1] += start[k];
		for (const i of order)
			out[start[key(i)]++] = i;
		return out;
	}
}

class Trie {
	/* @options: {up: callers below callees, hide: without frames of allocators and runtimes} */
	constructor(stacks, options) {
		this.stacks = stacks;
		this.count = stacks.count;
		this.up = options.up;
		this.merged = stacks.mergedTree(options.hide);
		const { merged } = this, { nodeOf } = merged;
		const ranks = this.up ? merged.upRanks() : merged.downRanks();
		const leaves = Int32Array.from({ length: this.count }, (x, i) => i);

		this.order = merged.countingSort(leaves, (leaf) => ranks[nodeOf[leaf]],
			merged.count - 1);
		this.setStacks();
	}

	/* The functions of all stacks in sorted order, so that walks access adjacent memory. */
	setStacks() {
		const { depth, parent, fn, nodeOf } = this.merged;

		this.start = new Int32Array(this.count + 1);
		/* equal stacks are one: the first position of each */
		this.group = new Int32Array(this.count);
		for (let pos = 0; pos < this.count; pos++) {
			const node = nodeOf[this.order[pos]];
			const isSame = pos && node === nodeOf[this.order[pos - 1]];

			this.start[pos + 1] = this.start[pos] + depth[node];
			this.group[pos] = isSame ? this.group[pos - 1] : pos;
		}
		this.fn = new Int32Array(this.start[this.count]);
		for (let pos = 0; pos < this.count; pos++) {
			const from = this.order[pos], step = this.up ? 1 : -1;
			let at = this.up ? this.start[pos] : this.start[pos + 1] - 1;

			for (let node = nodeOf[from]; node; node = parent[node], at += step)
				this.fn[at] = fn[node];
		}
	}

	/* Calls @visit(function, lo, hi) for each child of the node [@lo, @hi) at @depth. */
	children(lo, hi, depth, visit) {
		while (lo < hi && this.start[lo + 1] - this.start[lo] <= depth)
			lo++;
		while (lo < hi) {
			const fn = this.fn[this.start[lo] + depth];
			const end = this.endOf(fn, lo, hi, depth);

			visit(fn, lo, end);
			lo = end;
		}
	}

	/* The first position after @lo whose function at @depth is not @fn. */
	endOf(fn, lo, hi, depth) {
		let step = 1, same = lo, other = hi;

		while (same + step < hi && this.fn[this.start[same + step] + depth] === fn) {
			same += step;
			step *= 2;
		}
		other = Math.min(hi, same + step);
		while (same + 1 < other) {
			const middle = same + other >> 1;

			if (this.fn[this.start[middle] + depth] === fn)
				same = middle;
			else
				other = middle;
		}
		return other;
	}

	/* The node reached by the functions of @path, as far as it exists. */
	find(path) {
		const node = { lo: 0, hi: this.count, depth: 0, path: [] };

		for (const fn of path) {
			let found = null;

			this.children(node.lo, node.hi, node.depth, (f, lo, hi) => {
				if (f === fn)
					found = [lo, hi];
			});
			if (!found)
				break;
			[node.lo, node.hi] = found;
			node.depth++;
			node.path.push(fn);
		}
		return node;
	}

	/* The frame, with its line, of position @pos at @depth from 1. */
	frameAt(pos, depth) {
		const size = this.start[pos + 1] - this.start[pos], { hidden } = this.stacks;
		let left = this.up ? depth : size - depth + 1, found = -1, all = 0;

		this.stacks.walk(this.order[pos], (frame) => { all += hidden[frame] ? 0 : 1; });
		const isWhole = !this.merged.hide || !all;

		this.stacks.walk(this.order[pos], (frame) => {
			if ((isWhole || !hidden[frame]) && --left === 0)
				found = frame;
			return left === 0;
		});
		return found;
	}
}

/*
 * Values of a selection by position: prefix sums. @now and @before ({bytes, blocks} by leaf) are
 * the selection and the other side of a comparison, or null. @unit: "bytes" or "blocks".
 */
class Values {
	constructor(trie, now, before, unit) {
		this.trie = trie;
		this.unit = unit;
		this.isCompared = Boolean(before);
		this.bytes = this.sum(now.bytes);
		this.blocks = now.blocks && this.sum(now.blocks);
		this.variance = now.variance && this.sum(now.variance);
		this.oldVariance = before && before.variance && this.sum(before.variance);
		this.changeSums = this.isCompared && this.changeVariance(now, before);
		this.oldBytes = before && this.sum(before.bytes);
		this.oldBlocks = before && before.blocks && this.sum(before.blocks);
		this.main = unit === "blocks" ? this.blocks : this.bytes;
		this.old = unit === "blocks" ? this.oldBlocks : this.oldBytes;
		this.byLeaf = unit === "blocks" ? now.blocks : now.bytes;
		this.findWidths();
	}

	sum(values) {
		const { order, count } = this.trie, out = new Float64Array(count + 1);

		for (let pos = 0; pos < count; pos++)
			out[pos + 1] = out[pos] + values[order[pos]];
		return out;
	}

	/*
	 * Only for the difference of two runs, whose samples are independent; between two moments
	 * of one run it is unknown.
	 */
	changeVariance(now, before) {
		const { profiles, count } = this.trie.stacks;
		const of = (values, i) => values.variance ? values.variance[i] : 0;

		if (profiles.length < 2 || !(now.variance || before.variance))
			return null;
		const sum = (x, i) => of(now, i) + of(before, i);

		return this.sum(Float64Array.from({ length: count }, sum));
	}

	/* As wide as the value; in a comparison, as the larger one of each stack. */
	findWidths() {
		const { group, count } = this.trie;

		this.width = new Float64Array(count + 1);
		for (let pos = 0; pos < count;) {
			let end = pos + 1;

			while (end < count && group[end] === pos)
				end++;
			const now = this.main[end] - this.main[pos];
			const old = this.old ? this.old[end] - this.old[pos] : 0;

			for (let k = pos; k < end; k++)
				this.width[k + 1] = this.width[pos] + Math.max(0, now, old);
			pos = end;
		}
	}

	of(prefix, node) {
		return prefix ? prefix[node.hi] - prefix[node.lo] : null;
	}

	/* " \u00b1 10 %" after the bytes of @node. */
	error(node) {
		return format.error(this.of(this.bytes, node), this.of(this.variance, node));
	}

	oldError(node) {
		return format.error(this.of(this.oldBytes, node), this.of(this.oldVariance, node));
	}

	changeError(node) {
		const change = this.of(this.bytes, node) - this.of(this.oldBytes, node);

		return format.error(Math.abs(change), this.of(this.changeSums, node));
	}

	get total() {
		return this.main[this.trie.count];
	}

	/* The sum of all stacks that contain a function that @matches, an array by function. */
	matched(matches) {
		const { merged } = this.trie, own = merged.own(this.byLeaf);
		const isIn = new Uint8Array(merged.count);
		let sum = 0;

		for (let i = 1; i < merged.count; i++) {
			isIn[i] = matches[merged.fn[i]] || isIn[merged.parent[i]];
			sum += isIn[i] ? own[i] : 0;
		}
		return sum;
	}
}
