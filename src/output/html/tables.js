/*
 * Computes the tables below the flame graph from the leaves of a selection; table_view.js shows the
 * rows.
 *
 * A row: {key, name, detail, self, inclusive, blocks, ...}; key is a function or a frame.
 */
"use strict";

const MAX_PLACES = 4; /* of one call site */

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
		const released = sum(life.count), lived = sum(life.total);

		return names.functions.map((f, fn) => ({
			key: fn, name: f.name, detail: f.object ? baseName(f.object) : "",
			self: self[fn],
			inclusive: inclusive[fn], blocks: blocks[fn], old: old[fn],
			change: inclusive[fn] - old[fn],
			lifetime: released[fn] ? lived[fn] / released[fn] : null,
			variance: errors(variance ? variance.inclusive[fn] : null,
				oldVariance ? oldVariance[fn] : null,
				{ self: variance ? variance.self[fn] : null }),
		})).filter((row) => row.inclusive || row.blocks || row.old);
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

				row = { key: frame, fn: frames[frame].fn, name: f.name,
					detail: baseName(f.object), inclusive: 0, blocks: 0, old: 0,
					change: 0, places: new Set(), isNew: false, stacks: 0,
					released: 0, lived: 0, lifetime: null,
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
			row.released += life.count[leaf];
			row.lived += life.total[leaf];
			row.lifetime = row.released ? row.lived / row.released : null;
			if (extra)
				extra(row, leaf);
		}
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
	 * Released blocks of each leaf, and their lifetimes in seconds: buckets count with their
	 * middle, but no block lives longer than the program was watched.
	 */
	function lifetimes(stacks) {
		const empty = () => new Float64Array(stacks.count);
		const out = { count: empty(), total: empty() };
		const column = stacks.profiles[0].leaves.lifetimes || [];
		const longest = stacks.profiles[0].meta.duration || Infinity;

		column.forEach((row, leaf) => {
			for (let i = 1; i < row.length; i++) {
				const bucket = row[0] + i - 1;
				const middle = bucket ? 1.5 * Math.pow(2, bucket - 1) : 0;

				out.count[leaf] += row[i];
				out.total[leaf] += row[i] * Math.min(middle, longest) / 1000;
			}
		});
		return out;
	}

	function lifetimeText(mean) {
		if (mean === null)
			return "";
		return mean < 0.001 ? "< 1 ms" : `\u2248 ${format.seconds(mean)}`;
	}

	function lifetimeBucket(i) {
		if (!i)
			return "< 1 ms";
		const low = Math.pow(2, i - 1);

		return low < 1000 ? `${low} to ${2 * low} ms` :
			`${format.seconds(low / 1000)} to ${format.seconds(low / 500)}`;
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

	return { functionRows, siteRows, histogram, lifetimes, lifetimeText, lifetimeBucket,
		neighbours, lines, threadSums, place };
})();
