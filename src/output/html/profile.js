/*
 * Profiles in memory.
 *
 * Names     functions and frames of all profiles; two that are compared share those that are
 *           matched
 * Profile   one recording or massif file: its timeline, and what each leaf of its call tree (a
 *           stack that allocated) held or allocated at a moment or in a range
 *
 * A recording has cells: blocks of a leaf by the intervals in which they were allocated and
 * released. A massif file has states: the bytes of each leaf at the snapshots with a tree. Both
 * have the same interface.
 */
"use strict";

const KIND = { PROGRAM: 0, LIBRARY: 1, ALLOCATOR: 2, RUNTIME: 3, NONE: 4 };

function baseName(path) {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

/* Without what a compiler appends to the names of a function's clones. */
function withoutClone(name) {
	const at = name.indexOf(" [clone ");

	return at > 0 ? name.slice(0, at) : name;
}

class Names {
	constructor() {
		this.functions = []; /* {name, object, kind} */
		/*
		 * {fn, file, line, kind, site, name, object, rank, role}; site: the site's first;
		 * name: "" if it has none; kind: by what the user says, without that `ownKind`
		 */
		this.frames = [];
		this.byName = new Map();
		this.byFrame = new Map();
		this.bySite = new Map();
	}

	internFunction(name, object, kind, key) {
		let fn = this.byName.get(key);

		if (fn === undefined) {
			fn = this.functions.push({ name, object, kind }) - 1;
			this.byName.set(key, fn);
		}
		return fn;
	}

	/* @site: key for frames of one call site; undefined: only identical frames are one site. */
	internFrame(fn, data, site) {
		const { line, file, kind, rank } = data;
		const key = `${fn}\u0000${line}\u0000${file}\u0000${kind}\u0000${rank}`;
		let frame = this.byFrame.get(key);

		if (frame === undefined) {
			frame = this.frames.length;
			this.frames.push({ ...data, fn, ownKind: kind, site: frame });
			this.byFrame.set(key, frame);
			if (site !== undefined)
				this.joinSite(frame, site);
		}
		return frame;
	}

	joinSite(frame, site) {
		if (!this.bySite.has(site))
			this.bySite.set(site, frame);
		this.frames[frame].site = this.bySite.get(site);
	}

	/*
	 * Adds the frames of a file: maps its numbers to ours. @match: for a file in a comparison,
	 * what each of its frames is matched with, {names, function, site}; otherwise functions
	 * differ in name or object.
	 */
	add(columns, objects, match) {
		return Int32Array.from(columns.function, (name, i) => {
			const object = objects[columns.object[i]], kind = columns.kind[i];
			const path = object ? String(object.path) : "";
			const shown = match ? match.names[match.function[i]] :
				String(name || (path ? `[${baseName(path)}]` : "[unknown]"));
			const key = match ? match.function[i] : `${shown}\u0000${path}`;

			const file = String(columns.file[i] || ""), line = columns.line[i] || 0;
			const rank = columns.rank ? columns.rank[i] : RANK.SITE;
			const site = match ? match.site[i] :
				[withoutClone(shown), path, line, file, kind, rank].join("\u0000");

			return this.internFrame(this.internFunction(shown, path, kind, key), {
				file, line, kind, name: String(name || ""), object: path, rank,
				role: columns.role ? columns.role[i] : 0,
			}, site);
		});
	}

	/* Kinds of frames and functions by @rules of my_code.js. */
	judge(rules) {
		const seen = new Uint8Array(this.functions.length);

		for (const frame of this.frames) {
			frame.kind = MyCode.judge(rules, { ...frame, kind: frame.ownKind }).kind;
			if (!seen[frame.fn])
				this.functions[frame.fn].kind = frame.kind;
			seen[frame.fn] = 1;
		}
	}

	/* The frame of leaves without a stack. */
	unknown() {
		const fn = this.internFunction("[no stack]", "", KIND.NONE, "[no stack]");

		return this.internFrame(fn, { file: "", line: 0, kind: KIND.NONE,
			name: "[no stack]", object: "", rank: RANK.UNNAMED, role: ROLE.FIXED });
	}

	/* Call it after the last add: ranks functions by name, the order of siblings. */
	finish() {
		const order = this.functions.map((f, i) => i);

		order.sort((a, b) => {
			const x = this.functions[a], y = this.functions[b];

			return x.name < y.name ? -1 : x.name > y.name ? 1 :
				x.object < y.object ? -1 : 1;
		});
		this.rank = new Int32Array(order.length);
		order.forEach((fn, i) => { this.rank[fn] = i; });
	}
}

class Profile {
	constructor(json, names, match) {
		const leaves = json.leaves;

		this.names = names;
		this.meta = json.meta || {};
		this.isRunning = Boolean(json.live &&
			["running", "leaving"].includes(json.live.state));
		this.isMassif = json.format === "ptmem-report-massif";
		this.isSampled = !this.isMassif && this.meta.heap_sample > 0;
		this.count = leaves.node.length;
		this.setTimes(json.timeline, this.meta.time_unit || "ms");
		this.setStacks(json, names, match);
		this.leaves = leaves;
		this.cells = json.cells || null;
		this.states = json.states || null;
		this.peak = json.peak || {};
		this.processes = json.processes || null; /* of all processes together */
		this.peaks = json.peaks || null;         /* then: of each one */
		this.left = json.left || null;           /* what was live at the end of each */
		this.markers = json.markers || [];
		this.threads = json.threads || [];
		this.leaks = json.leaks || null;
		this.leakAges = json.leak_ages || null;
		this.findStops();
		this.findPeak();
	}

	/*
	 * time[i]: the time for which the timeline's values at i are valid; for an interval its
	 * end.
	 */
	setTimes(timeline, unit) {
		const interval = timeline.interval || 0, end = this.meta.duration || Infinity;

		this.timeline = timeline;
		this.unit = unit === "ms" ? "s" : unit;
		this.scale = unit === "ms" ? 1e-3 : 1;
		this.time = Float64Array.from(timeline.time, (t) =>
			(interval ? Math.max(t, Math.min(t + interval, end)) : t) * this.scale);
		this.intervals = this.time.length;
		this.begin = this.intervals && !interval ? Math.min(0, this.time[0]) : 0;
		this.end = this.intervals ? this.time[this.intervals - 1] : 0;
		/* in seconds since 1970; 0: unknown */
		this.clockStart = this.unit === "s" && this.meta.start || 0;
	}

	/*
	 * The call tree: parents and frames of nodes; for each leaf the innermost node and that of
	 * its call site; -1: none.
	 */
	setStacks(json, names, match) {
		this.unknownFrame = names.unknown();
		if (json.shared) {
			this.nodeParent = json.shared.parent;
			this.nodeFrame = json.shared.frame;
		} else {
			const frame = names.add(json.frames, json.objects || [], match);

			this.nodeParent = Int32Array.from(json.nodes.parent);
			this.nodeFrame = Int32Array.from(json.nodes.frame, (f) => frame[f]);
		}
		this.leafNode = Int32Array.from(json.leaves.node);
		this.givenRules = json.my_code || [];
		this.givenSite = this.leafSite = Int32Array.from(json.leaves.site);
		this.releases = json.releases || { node: [], site: [] };
		this.releaseSite = this.releases.site;
	}

	/* Call sites by what the user says in the page, too. */
	findSites(mine, notMine) {
		const rules = MyCode.all(this.givenRules, mine, notMine);
		const judged = this.names.frames.map(
			(frame) => ({ ...frame, rank: MyCode.judge(rules, frame).rank }));

		const find = (node) => this.findSite(judged, node), isAsked = mine || notMine;

		this.leafSite = isAsked ? Int32Array.from(this.leafNode, find) : this.givenSite;
		this.releaseSite = isAsked ? this.releases.node.map(find) : this.releases.site;
	}

	findSite(judged, leaf) {
		const nodes = [];

		for (let node = leaf; node >= 0; node = this.nodeParent[node])
			nodes.push(node);
		const stack = nodes.map((n) => judged[this.nodeFrame[n]]);

		return nodes.length ? nodes[MyCode.site(stack)] : -1;
	}

	/* The frame of @node; -1: no stack. */
	frameOf(node) {
		return node < 0 ? this.unknownFrame : this.nodeFrame[node];
	}

	/* The intervals that can be selected: all, or the snapshots with a tree. */
	findStops() {
		this.stateAt = new Map((this.states || []).map((s) => [s.snapshot, s]));
		this.stops = this.states ? this.states.map((s) => s.snapshot) :
			Array.from(this.time, (t, i) => i);
	}

	findPeak() {
		const live = this.timeline.live_bytes;
		let best = this.peak.snapshot;

		if (best === undefined && this.peak.time !== undefined)
			best = this.firstEnd(this.peak.time * this.scale);
		if (best === undefined || best < 0)
			best = live.reduce((b, v, i) => v > live[b] ? i : b, 0);
		this.peakAt = this.stops.length ? this.snap(best) : 0;
		this.peakTime = this.peak.time !== undefined ? this.peak.time * this.scale :
			this.time[best] || 0;
		this.peakBytes = this.peak.bytes !== undefined ? this.peak.bytes : live[best] || 0;
	}

	/* Live bytes, with the overhead that Massif counts. */
	total(i) {
		const { live_bytes: live, extra, stacks } = this.timeline;

		return live[i] + (extra ? extra[i] : 0) + (stacks ? stacks[i] : 0);
	}

	/* The interval with its end nearest to @time. */
	nearest(time) {
		const i = this.firstEnd(time);

		return i && time - this.time[i - 1] < this.time[i] - time ? i - 1 : i;
	}

	/* The first interval that does not end before @time. */
	firstEnd(time) {
		let low = 0, high = this.intervals - 1;

		while (low < high) {
			const middle = low + high >> 1;

			if (this.time[middle] < time)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	/* The selectable interval nearest to interval @i. */
	snap(i) {
		if (!this.states || this.stateAt.has(i))
			return i;
		return this.stops.reduce((best, s) => Math.abs(this.time[s] - this.time[i]) <
			Math.abs(this.time[best] - this.time[i]) ? s : best, this.stops[0]);
	}

	empty(hasBlocks) {
		return { bytes: new Float64Array(this.count),
			blocks: hasBlocks ? new Float64Array(this.count) : null,
			variance: this.isSampled ? new Float64Array(this.count) : null };
	}

	fromState(state) {
		const out = this.empty(Boolean(state && state.blocks));

		if (state)
			state.leaf.forEach((leaf, k) => {
				out.bytes[leaf] += state.bytes[k];
				if (out.blocks)
					out.blocks[leaf] += state.blocks[k];
				if (out.variance)
					out.variance[leaf] += state.variance[k];
			});
		return out;
	}

	/* Cells allocated in [@from, @to] and live at the end of @at. */
	fromCells(from, to, at) {
		const { leaf, born, died, blocks, bytes, variance } = this.cells;
		const out = this.empty(true);

		for (let k = 0; k < leaf.length; k++) {
			if (born[k] < from || born[k] > to || (died[k] >= 0 && died[k] <= at))
				continue;
			out.bytes[leaf[k]] += bytes[k];
			out.blocks[leaf[k]] += blocks[k];
			if (out.variance)
				out.variance[leaf[k]] += variance[k];
		}
		return out;
	}

	/* The values of each leaf at the end of interval @i. */
	live(i) {
		if (this.states)
			return this.fromState(this.stateAt.get(i));
		return this.fromCells(-1, i, i); /* -1: from before the beginning */
	}

	/* At the exact peak, which may be inside an interval. */
	livePeak() {
		if (!this.peak.leaf)
			return this.live(this.peakAt);
		return this.fromTable(this.peak);
	}

	/*
	 * Allocated in the intervals [@a, @b] and live at the end of @b; for states the
	 * difference.
	 */
	growth(a, b) {
		if (!this.states)
			return this.fromCells(a, b, b);
		const out = this.live(b), before = this.live(a);

		for (let i = 0; i < this.count; i++) {
			out.bytes[i] -= before.bytes[i];
			if (out.blocks && before.blocks)
				out.blocks[i] -= before.blocks[i];
		}
		return out;
	}

	/* The sum of what each process held at its own peak. */
	eachPeak() {
		return this.fromTable(this.peaks);
	}

	/* Live at the end, of all processes at the end of each. */
	atEnd() {
		if (this.left)
			return this.fromTable(this.left);
		return this.intervals ? this.live(this.intervals - 1) : this.empty(true);
	}

	fromTable({ leaf, bytes_of: bytes, blocks_of: blocks, variance_of: variance }) {
		return this.fromState({ leaf, bytes, blocks, variance });
	}

	/* By all threads, or by those with id or name @thread. */
	allocated(thread) {
		if (thread)
			return this.fromThreads(this.threads.map((t) =>
				String(t.id) === thread || t.name === thread));
		return { bytes: Float64Array.from(this.leaves.bytes),
			blocks: Float64Array.from(this.leaves.allocations),
			variance: this.isSampled ? Float64Array.from(this.leaves.variance) : null };
	}

	fromThreads(isWanted) {
		const out = this.empty(true);

		this.leaves.threads.forEach((rows, leaf) => {
			for (const [thread, blocks, bytes, variance] of rows) {
				if (!isWanted[thread])
					continue;
				out.bytes[leaf] += bytes;
				out.blocks[leaf] += blocks;
				if (out.variance)
					out.variance[leaf] += variance;
			}
		});
		return out;
	}

	temporary() {
		const blocks = Float64Array.from(this.leaves.temporary);

		return { bytes: new Float64Array(this.count), blocks };
	}

	/* Blocks that a leak check reported as lost; null: there was none. */
	lost() {
		const { leaks } = this, sum = this.empty(true);

		if (!leaks)
			return null;
		leaks.leaf.forEach((leaf, k) => {
			if (leaks.kind[k] === "reachable")
				return;
			sum.bytes[leaf] += leaks.bytes[k];
			sum.blocks[leaf] += leaks.blocks[k];
		});
		return { bytes: sum.bytes, blocks: sum.blocks };
	}

	/* What --cold found, by leaf; null: it did not look. */
	get cold() {
		const { inspection } = this.raw, found = inspection && inspection.untouched;

		return found && found.leaf.length ? found : null;
	}

	/* Bytes that were not touched, at least; null: it is not known. */
	untouched() {
		const { cold } = this, sum = this.empty(true);

		if (!cold)
			return null;
		cold.leaf.forEach((leaf, k) => {
			sum.bytes[leaf] += cold.at_least[k];
		});
		return { bytes: sum.bytes, blocks: sum.blocks };
	}

	/* What counts as temporary. */
	get temporaryText() {
		const below = this.meta.temporary_below;

		return below ? `released within ${format.seconds(below / 1e6)}` :
			"released by the same thread before it allocated again";
	}

	/* Not with samples, which do not show whether the next allocation was later. */
	get hasTemporary() {
		return Boolean(this.leaves.temporary);
	}

	/* Live bytes of each group of leaves over time; @groupOf: group of each leaf, -1 = none. */
	series(groupOf, groups) {
		const out = Array.from({ length: groups }, () => new Float64Array(this.intervals));

		if (this.states)
			this.sumStates(groupOf, out);
		else
			this.sumCells(groupOf, out);
		return out;
	}

	sumCells(groupOf, out) {
		const { leaf, born, died, bytes } = this.cells;

		for (let k = 0; k < leaf.length; k++) {
			const group = groupOf[leaf[k]];

			if (group < 0)
				continue;
			out[group][Math.max(born[k], 0)] += bytes[k];
			if (died[k] >= 0)
				out[group][died[k]] -= bytes[k];
		}
		for (const row of out)
			for (let i = 1; i < row.length; i++)
				row[i] += row[i - 1];
	}

	/* Until the next snapshot with a tree each group keeps its last value. */
	sumStates(groupOf, out) {
		for (const state of this.states)
			state.leaf.forEach((leaf, k) => {
				if (groupOf[leaf] >= 0)
					out[groupOf[leaf]][state.snapshot] += state.bytes[k];
			});
		for (const row of out)
			this.hold(row);
	}

	/* Copies the values of @row at snapshots with a tree to those that follow them. */
	hold(row) {
		let last = 0;

		for (let i = 0; i < this.intervals; i++)
			row[i] = last = this.stateAt.has(i) ? row[i] : last;
	}

	/* Live bytes of @leaves over time. */
	curve(leaves) {
		const { start, at, died, bytes } = this.byLeaf();
		const out = new Float64Array(this.intervals);

		for (const leaf of leaves)
			for (let k = start[leaf]; leaf < this.count && k < start[leaf + 1]; k++) {
				out[at[k]] += bytes[k];
				if (died && died[k] >= 0)
					out[died[k]] -= bytes[k];
			}
		if (this.states)
			this.hold(out);
		else
			for (let i = 1; i < out.length; i++)
				out[i] += out[i - 1];
		return out;
	}

	/* Cells, or the values of states, sorted by leaf; start: index by leaf. */
	byLeaf() {
		if (this.sorted)
			return this.sorted;
		const { leaf, at, died, bytes } = this.cells ? this.flatCells() : this.flatStates();
		const start = new Int32Array(this.count + 1);

		for (const l of leaf)
			start[l + 1]++;
		for (let l = 0; l < this.count; l++)
			start[l + 1] += start[l];
		const next = start.slice(), from = new Int32Array(leaf.length);

		leaf.forEach((l, k) => { from[next[l]++] = k; });
		this.sorted = { start,
			at: Int32Array.from(from, (k) => at[k]),
			died: died && Int32Array.from(from, (k) => died[k]),
			bytes: Float64Array.from(from, (k) => bytes[k]) };
		return this.sorted;
	}

	/* Blocks from before the beginning are there in the first interval. */
	flatCells() {
		return { ...this.cells, at: this.cells.born.map((i) => Math.max(i, 0)) };
	}

	flatStates() {
		const out = { leaf: [], at: [], bytes: [], died: null };

		for (const state of this.states)
			state.leaf.forEach((leaf, k) => {
				out.leaf.push(leaf);
				out.at.push(state.snapshot);
				out.bytes.push(state.bytes[k]);
			});
		return out;
	}
}
