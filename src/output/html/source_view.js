/*
 * Source lines with what the call paths through them hold, as ptmem-report --annotate prints them:
 * of files that the page has (--embed-sources).
 */
"use strict";

const SOURCE_CONTEXT = 3; /* lines before and after one that counts */

class SourceView {
	/* @app: {stacks, profile, now, reports}; @total: bytes, of which lines have a share */
	constructor(app, total) {
		const { sources } = app.profile.raw;

		this.app = app;
		this.total = total;
		this.files = new Map((sources ? sources.file : []).map((file, i) => [file,
			{ file, lines: sources.lines[i], problem: sources.problem[i],
				isChanged: sources.changed[i] }]));
	}

	/*
	 * By line of @file: {bytes, blocks, allocations, life} of the call paths through it; a line
	 * counts for each once, however often recursion goes through it. @fn: only frames of that
	 * function; null: all.
	 */
	count(file, fn) {
		const { stacks, now, profile: p } = this.app, { life } = this.app.reports;
		const { frames } = stacks.names, sums = new Map();

		for (let leaf = 0; leaf < p.count; leaf++) {
			const seen = new Set();

			stacks.walk(leaf, (number) => {
				const { file: own, line, fn: of } = frames[number];

				if (own === file && line && (fn === null || of === fn))
					seen.add(line);
			});
			for (const line of seen)
				this.add(sums, line, { bytes: now.bytes[leaf],
					blocks: now.blocks ? now.blocks[leaf] : 0,
					allocations: p.leaves.allocations[leaf] }, life, leaf);
		}
		return sums;
	}

	add(sums, line, values, life, leaf) {
		const sum = sums.get(line) || { bytes: 0, blocks: 0, allocations: 0,
			life: Object.fromEntries(LIFE.map((key) => [key, 0])) };

		for (const [key, value] of Object.entries(values))
			sum[key] += value;
		for (const key of LIFE)
			sum.life[key] += life[key][leaf];
		sums.set(line, sum);
	}

	/* The files with lines of function @fn in @leaves, the one with most bytes first. */
	filesOf(leaves, fn) {
		const { stacks } = this.app, { frames } = stacks.names, found = new Map();

		for (const leaf of leaves)
			stacks.walk(leaf, (number) => {
				const { file, fn: of } = frames[number];
				const bytes = this.app.now.bytes[leaf];

				if (of === fn && file && this.files.has(file))
					found.set(file, (found.get(file) || 0) + bytes);
			});
		return [...found].sort((a, b) => b[1] - a[1]).map(([file]) =>
			this.files.get(file));
	}

	/* Of function @fn; null: the page has none of its files. @here: the line of a call site. */
	make(leaves, fn, here) {
		const [source] = this.filesOf(leaves, fn);

		if (!source)
			return null;
		const box = el("section", { class: "source" });

		this.show(box, source, fn, here);
		return box;
	}

	show(box, source, fn, here) {
		const isWhole = fn === null, name = el("code", {}, source.file);
		const other = el("button", { onclick: () =>
			this.show(box, source, isWhole ? box.fn : null, here) },
		isWhole ? "Only this function" : "The whole file");

		if (!isWhole)
			box.fn = fn;
		if (source.problem) {
			box.replaceChildren(el("h3", {}, name),
				el("p", { class: "muted" },
					`Not in the page: ${source.problem}.`));
			return;
		}
		const changed = (this.app.old ? " Lines and values of the new profile." : "") +
			(source.isChanged ?
				" It has changed since the profile: lines may have moved." : "");

		box.replaceChildren(el("div", { class: "bar" }, el("h3", {}, name),
			el("span", { class: "muted" }, changed),
			el("span", { class: "grow" }), other),
		el("div", { class: "lines", tabindex: 0 },
			this.table(source, this.count(source.file, fn), isWhole, here)));
	}

	table(source, sums, isWhole, here) {
		const shown = isWhole ? null : this.excerpt(sums, source.lines.length);
		const body = el("tbody"), titles = ["Bytes", "Share", "Blocks", "Allocations",
			"Lifetime", "Line"];
		let last = 0;

		source.lines.forEach((text, i) => {
			const line = i + 1;

			if (shown && !shown.has(line))
				return;
			if (line > last + 1)
				body.append(el("tr", {}, el("td",
					{ colspan: titles.length + 1, class: "gap" }, "\u2026")));
			last = line;
			body.append(this.row(source.file, line, text, sums.get(line), here));
		});
		return el("table", {}, el("thead", {}, el("tr", {},
			...titles.map((title) => el("th", { scope: "col", class: "n" }, title)),
			el("th", { scope: "col" }, "Source"))), body);
	}

	/* The lines that count, and some around them. */
	excerpt(sums, count) {
		const shown = new Set();

		for (const line of sums.keys())
			for (let i = Math.max(1, line - SOURCE_CONTEXT);
				i <= Math.min(count, line + SOURCE_CONTEXT); i++)
				shown.add(i);
		return shown;
	}

	row(file, line, text, sum, here) {
		const exact = sum && format.exactBytes(sum.bytes);
		const cells = !sum ? ["", "", "", "", ""] : [
			el("span", { title: exact }, format.bytes(sum.bytes)),
			format.percent(sum.bytes, this.total), format.count(sum.blocks),
			format.count(sum.allocations), Tables.lifetimeText(sum.life)];
		const href = editorLink(byId("editor").value, file, line);

		return el("tr", { class: sum ? line === here ? "counts here" : "counts" : null },
			...cells.map((cell) => el("td", { class: "n" }, cell)),
			el("th", { scope: "row", class: "n" },
				href ? el("a", { href }, String(line)) : String(line)),
			el("td", { class: "code" }, text));
	}
}
