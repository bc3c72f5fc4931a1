/*
 * Computes the tables below the flame graph from the leaves of a selection; table_view.js shows the
 * rows.
 *
 * A row: {key, name, detail, self, inclusive, blocks, ...}; key is a function or a frame.
 */
"use strict";

const MAX_PLACES = 4; /* of one call site */
/* of lifetimes(); seconds are sums over blocks; guessed: released ones that buckets alone know */
const LIFE = ["released", "lived", "guessed", "live", "aged"];

const Tables = (function () {
	/* Sums by function: stacks that end in it, and stacks that contain it. */
	function functionRows(merged, now, before, life) {
		const { names } = merged.stacks, n = names.functions.length;
		const sum = (values, isSelf) => {
			const out = new Float64Array(n);
			const total = values &&
				(isSelf ? merged.own(values) : merged.totals(values));

			for (let i = 1; values && i < merged.count; i++)
				if (isSelf || merged.isOutermost[i])
					out[merged.fn[i]] += total[i];
			return out;
		};
		const self = sum(now.bytes, true), inclusive = sum(now.bytes);
		const blocks = sum(now.blocks);
		const variance = now.variance &&
			{ self: sum(now.variance, true), inclusive: sum(now.variance) };
		const oldVariance = before && before.variance && sum(before.variance);
		const old = sum(before && before.bytes);
		const whole = sumLife(merged, life, n);

		return names.functions.map((f, fn) => ({
			key: fn, name: f.name, detail: f.object ? baseName(f.object) : "",
			self: self[fn],
			inclusive: inclusive[fn], blocks: blocks[fn], old: old[fn],
			change: inclusive[fn] - old[fn],
			life: Object.fromEntries(LIFE.map((key) => [key, whole[key][fn]])),
			variance: errors(variance ? variance.inclusive[fn] : null,
				oldVariance ? oldVariance[fn] : null,
				{ self: variance ? variance.self[fn] : null }),
		})).filter((row) => row.inclusive || row.blocks || row.old);
	}

	/* The lifetimes @life of leaves by function, of stacks that contain it. */
	function sumLife(merged, life, count) {
		const out = {};

		for (const key of LIFE) {
			const total = merged.totals(life[key]);

			out[key] = new Float64Array(count);
			for (let i = 1; i < merged.count; i++)
				if (merged.isOutermost[i])
					out[key][merged.fn[i]] += total[i];
		}
		return out;
	}

	/* Variances of a row's columns; null: exact. */
	function errors(now, old, more) {
		return now === null && old === null ? null :
			{ inclusive: now, old, change: now + old, ...more };
	}

	function place(frame) {
		const line = frame.line ? `:${frame.line}` : "";

		return frame.file ? baseName(frame.file) + line : "";
	}

	/* The lines of @row at @leaf; preferably those of the new profile. */
	function addPlace(row, stacks, leaf) {
		const isNew = leaf < stacks.profiles[0].count;
		const text = place(stacks.names.frames[stacks.siteFrame[leaf]]);

		if (isNew && !row.isNew) {
			row.isNew = true;
			row.places.clear();
		}
		if (isNew === row.isNew && text)
			row.places.add(text);
	}

	/* "a.c:7, 12, b.c:3" */
	function placesText(places) {
		const byNumber = (a, b) => a.localeCompare(b, "en", { numeric: true });
		const all = [...places].sort(byNumber), file = (text) => text.split(":")[0];
		const shown = all.slice(0, MAX_PLACES).map((text, i) =>
			i && file(text) === file(all[i - 1]) ?
				text.slice(file(text).length + 1) : text);

		return shown.concat(all.length > MAX_PLACES ? ["\u2026"] : []).join(", ");
	}

	function addErrors(variance, now, before, leaf) {
		const of = (values) => values && values.variance ? values.variance[leaf] : 0;

		if (!variance)
			return;
		variance.inclusive += of(now);
		variance.old += of(before);
		variance.change = variance.inclusive + variance.old;
	}

	/* Lifetimes are of the whole run: also of stacks that hold nothing now. */
	function addLives(rows, stacks, life) {
		for (let leaf = 0; leaf < stacks.count; leaf++) {
			const row = rows.get(stacks.site[leaf]);

			for (const key of row ? LIFE : [])
				row.life[key] += life[key][leaf];
		}
	}

	/* Sums by call site: a function and its line. @extra(row, leaf): further columns. */
	function siteRows(stacks, now, before, life, extra) {
		const rows = new Map(), { frames, functions } = stacks.names;

		for (let leaf = 0; leaf < stacks.count; leaf++) {
			const b = now.bytes[leaf], k = now.blocks ? now.blocks[leaf] : 0;
			const old = before ? before.bytes[leaf] : 0;

			if (!b && !k && !old)
				continue;
			const frame = stacks.site[leaf];
			let row = rows.get(frame);

			if (!row) {
				const f = functions[frames[frame].fn];

				row = { key: frame, fn: frames[frame].fn,
					name: withoutClone(f.name),
					detail: baseName(f.object), source: frames[frame],
					inclusive: 0, blocks: 0, old: 0,
					change: 0, places: new Set(), isNew: false, stacks: 0,
					life: Object.fromEntries(LIFE.map((key) => [key, 0])),
					variance: errors(now.variance ? 0 : null,
						before && before.variance ? 0 : null) };
				rows.set(frame, row);
			}
			addPlace(row, stacks, leaf);
			row.inclusive += b;
			row.blocks += k;
			addErrors(row.variance, now, before, leaf);
			row.old += old;
			row.change += b - old;
			row.stacks++;
			if (extra)
				extra(row, leaf);
		}
		addLives(rows, stacks, life);
		for (const row of rows.values())
			row.detail = placesText(row.places) || row.detail;
		return [...rows.values()];
	}

	/* Adds [first, n0, n1, ...] to @sum, which has all buckets from 0. */
	function addHistogram(sum, row) {
		for (let i = 1; row && i < row.length; i++)
			sum[row[0] + i - 1] = (sum[row[0] + i - 1] || 0) + row[i];
	}

	function histogram(rows) {
		const sum = [];

		for (const row of rows)
			addHistogram(sum, row);
		for (let i = 0; i < sum.length; i++)
			sum[i] = sum[i] || 0;
		return sum;
	}

	/*
	 * Blocks of each leaf: how many were released, and how long they lived in sum; how many are
	 * live at the end, and how old they are at least in sum. Where the sum of lifetimes is not
	 * known, buckets count with their middle, but no block lives longer than the program was
	 * watched.
	 */
	function lifetimes(stacks) {
		const p = stacks.profiles[0], out = {}, known = p.leaves.lived || [];
		const longest = p.meta.duration ? p.meta.duration / 1000 : Infinity;

		for (const key of LIFE)
			out[key] = new Float64Array(stacks.count);
		(p.leaves.lifetimes || []).forEach((row, leaf) => {
			for (let i = 1; i < row.length; i++) {
				const bucket = row[0] + i - 1;
				const middle = bucket ? 0.75e-6 * Math.pow(2, bucket) : 0.5e-6;

				out.released[leaf] += row[i];
				out.lived[leaf] += row[i] * Math.min(middle, longest);
			}
			if (typeof known[leaf] === "number")
				out.lived[leaf] = known[leaf] / 1e6;
			else
				out.guessed[leaf] = out.released[leaf];
		});
		if (p.cells && p.unit === "s")
			addAges(p, out);
		return out;
	}

	/* Adds what is live at the end of @p, or of each of its processes, to @out. */
	function addAges(p, out) {
		if (p.processes)
			p.processes.each(({ cells, timeline, duration }, first) =>
				addAgesOf(cells, first, timeline.time.map((ms) => ms / 1000),
					duration / 1000, out));
		else
			addAgesOf(p.cells, 0, p.time,
				p.meta.duration ? p.meta.duration / 1000 : p.end, out);
	}

	/* @first: number of the first leaf. @time: ends of intervals; cells are that exact. */
	function addAgesOf(cells, first, time, end, out) {
		const { born, died, blocks } = cells, leaf = cells.leaf.map((l) => l + first);

		for (let k = 0; k < leaf.length; k++) {
			if (died[k] !== -1)
				continue;
			const until = born[k] < 0 ? 0 : time[born[k]];

			out.live[leaf[k]] += blocks[k];
			out.aged[leaf[k]] += blocks[k] * Math.max(0, end - until);
		}
	}

	/* The mean lifetime, if what is live were released at the end; null: no block is known. */
	function meanLife({ released, lived, live, aged }) {
		return released + live ? (lived + aged) / (released + live) : null;
	}

	/* "12 ms · 90 % live, ≥ 3.2 s": of released blocks, and of those that are live. */
	function lifetimeText({ released, lived, guessed, live, aged }) {
		const parts = [];

		if (released && lived / released < 1e-6)
			parts.push("< 1 \u00b5s");
		else if (released)
			parts.push((guessed ? "\u2248 " : "") + format.seconds(lived / released));
		if (live)
			parts.push((released ? `${format.percent(live, released + live)} ` : "") +
				"live" + (aged ? `, \u2265 ${format.seconds(aged / live)}` : ""));
		return parts.join(" \u00b7 ");
	}

	function lifetimeBucket(i) {
		const low = Math.pow(2, i - 1) / 1e6;

		return i ? `${format.seconds(low)} to ${format.seconds(2 * low)}` : "< 1 \u00b5s";
	}

	/*
	 * Callers (@step -1) or callees (1) of function @fn in the stacks of @leaves: the frames
	 * before its outermost call, or after its innermost one.
	 */
	function neighbours(trie, now, leaves, fn, step) {
		const sums = new Map(), isLeaf = new Uint8Array(trie.count);

		for (const leaf of leaves)
			isLeaf[leaf] = 1;
		for (let pos = 0; pos < trie.count; pos++) {
			if (!isLeaf[trie.order[pos]])
				continue;
			const bytes = now.bytes[trie.order[pos]];
			const begin = trie.start[pos], end = trie.start[pos + 1];
			let at = step < 0 ? begin : end - 1;

			while (at >= begin && at < end && trie.fn[at] !== fn)
				at -= step;
			if (at < begin || at >= end || !bytes)
				continue;
			const isInside = at + step >= begin && at + step < end;
			const other = isInside ? trie.fn[at + step] : -1;

			sums.set(other, (sums.get(other) || 0) + bytes);
		}
		return [...sums].map(([key, bytes]) => ({ key, bytes }))
			.sort((a, b) => b.bytes - a.bytes);
	}

	/* [label, bytes] of the source lines of @row's function. */
	function lines(stacks, now, leaves, fn) {
		const sums = new Map(), { frames } = stacks.names;

		for (const leaf of leaves)
			stacks.walk(leaf, (number) => {
				const frame = frames[number];

				if (!now.bytes[leaf])
					return true;
				if (frame.fn !== fn || !frame.file)
					return false;
				const label = `${frame.file}${frame.line ? `:${frame.line}` : ""}`;

				sums.set(label, (sums.get(label) || 0) + now.bytes[leaf]);
				return true;
			});
		return [...sums].sort((a, b) => b[1] - a[1]);
	}

	/* Blocks and bytes that each thread allocated in @leaves. */
	function threadSums(profile, leaves) {
		const sums = new Map();

		for (const leaf of leaves) {
			const own = leaf < profile.count ? profile.leaves.threads[leaf] : [];

			for (const [thread, blocks, bytes, variance] of own) {
				const sum = sums.get(thread) || { key: thread, blocks: 0, bytes: 0,
					variance: profile.isSampled ? { bytes: 0 } : null };

				sum.blocks += blocks;
				sum.bytes += bytes;
				if (sum.variance)
					sum.variance.bytes += variance;
				sums.set(thread, sum);
			}
		}
		return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
	}

	return { functionRows, siteRows, histogram, lifetimes, meanLife, lifetimeText,
		lifetimeBucket, neighbours, lines, threadSums, place };
})();
