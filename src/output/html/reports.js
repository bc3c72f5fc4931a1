/* The tabs: their columns, and the contents of expanded rows. */
"use strict";

class Reports {
	/* @app: {stacks, profile, old, state, now, before, trie(), go(changes)} */
	constructor(app) {
		this.app = app;
		this.tables = new Map();
		this.renew();
		byId("tabs").addEventListener("keydown", (e) => this.key(e));
	}

	/* Another profile is there. */
	renew() {
		this.life = Tables.lifetimes(this.app.stacks);
		this.tabs = this.makeTabs();
		this.curves = new Map();
		this.leakSums = null;
	}

	get merged() {
		return this.app.trie("down").merged;
	}

	makeTabs() {
		const p = this.app.profile, out = [["sites", "Call sites"],
			["functions", "Functions"]];

		this.memory = this.makeMemory();
		this.graph = this.makeGraph();
		if (p.isMassif)
			return out;
		out.push(["leaks", "Leaks"]);
		if (p.hasTemporary)
			out.push(["temporary", "Temporary"]);
		return out.concat([["threads", "Threads"], ["sizes", "Sizes"]],
			p.raw.releases ? [["releases", "Releases"]] : [],
			this.memory ? [["memory", "Memory"]] : [],
			this.graph ? [["graph", "Heap graph"]] : []);
	}

	/* The same one until something else is to be seen. A live page may get it later. */
	makeMemory() {
		const p = this.app.profile, { inspection, live } = p.raw;

		if (!inspection && !live)
			return null;
		return this.memory && this.memory.id === MemoryView.idOf(p) ? this.memory :
			new MemoryView(this.app);
	}

	/* The same one until something else is to be seen. */
	makeGraph() {
		const { live, graph } = this.app.profile.raw, old = this.graph;

		if (live)
			this.request = this.request || new GraphRequest(this.app, live);
		if (!graph && !live)
			return null;
		const id = live ? this.request.id : graph;

		if (old && old.id === id)
			return old;
		const view = live ?
			new GraphView(this.app, this.request.json, this.request.element()) :
			new GraphView(this.app, graph, null);

		view.id = id;
		if (old && old.json === view.json)
			view.opened = old.opened;
		return view;
	}

	/* Something came of a request. */
	renewGraph() {
		this.graph = this.makeGraph();
		if (this.current === "graph")
			this.showGraph();
	}

	showTabs(current) {
		byId("tabs").replaceChildren(...this.tabs.map(([id, title]) => {
			const isCurrent = id === current;

			return el("button", {
				role: "tab", id: `tab-${id}`, tabindex: isCurrent ? 0 : -1,
				"aria-selected": String(isCurrent), "aria-controls": "panel",
				onclick: () => this.app.go({ tab: id, sort: "" }),
			}, title);
		}));
		byId("panel").setAttribute("aria-labelledby", `tab-${current}`);
	}

	key(event) {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		const ids = this.tabs.map((t) => t[0]);

		if (!step)
			return;
		const next = ids[(ids.indexOf(this.current) + step + ids.length) % ids.length];

		this.app.go({ tab: next, sort: "" });
		byId(`tab-${next}`).focus();
		event.preventDefault();
	}

	show() {
		const { state } = this.app, known = this.tabs.some(([id]) => id === state.tab);

		this.current = known ? state.tab : "sites";
		this.showTabs(this.current);
		if (this.current === "memory") {
			this.showMemory();
			return;
		}
		if (this.current === "graph") {
			this.showGraph();
			return;
		}
		const table = this.tables.get(this.current) || this.makeTable(this.current);
		const up = !state.sort.startsWith("-");
		const isMatched = this.current !== "threads" && this.current !== "sizes";
		const match = isMatched ? matcher(state.find) : null;

		table.columns = this.columns(this.current); /* another profile may have others */
		table.place.remove();
		byId("panel").replaceChildren(...[this.note(), table.place].filter(Boolean));
		table.show(this.rows(this.current), { id: state.sort.replace("-", ""), up },
			match && ((row) => match(row.name)));
	}

	/* It depends on nothing that can be selected. The page keeps its height meanwhile. */
	showMemory() {
		const panel = byId("panel");

		if (byId("memory") && this.shownMemory === this.memory) {
			this.memory.draw();
			return;
		}
		panel.style.minHeight = `${panel.offsetHeight}px`;
		panel.replaceChildren(this.memory.make());
		this.memory.draw();
		panel.style.minHeight = "";
		this.shownMemory = this.memory;
	}

	showGraph() {
		if (!byId("graph") || this.shownGraph !== this.graph)
			byId("panel").replaceChildren(this.graph.make());
		this.shownGraph = this.graph;
		this.graph.show();
		if (this.request)
			this.request.look();
	}

	resize() {
		const table = this.tables.get(this.current);

		if (this.current === "memory")
			this.memory.draw();
		else if (this.current === "graph")
			this.graph.draw();
		else if (table)
			table.fit();
	}

	makeTable(id) {
		const onSort = ({ id: column, up }) =>
			this.app.go({ sort: (up ? "" : "-") + column });
		const table = new TableView(el("div"), this.columns(id),
			{ sort: onSort, open: (row) => this.open(id, row),
				editor: () => byId("editor").value });

		this.tables.set(id, table);
		return table;
	}

	rows(id) {
		const { stacks, profile: p, now, before } = this.app;

		if (id === "functions")
			return Tables.functionRows(this.merged, now, before, this.life);
		if (id === "sites")
			return Tables.siteRows(stacks, now, before, this.life,
				this.untouched() && ((row, leaf) => this.addCold(row, leaf)));
		if (id === "leaks")
			return Tables.siteRows(stacks, this.leaked(), null, this.life,
				(row, leaf) => this.addLeak(row, leaf));
		if (id === "temporary")
			return this.temporaryRows();
		if (id === "threads")
			return Tables.threadSums(p, stacks.site.keys()).map((t) =>
				Object.assign(t, this.threadName(t.key)));
		return id === "releases" ? this.releaseRows() : this.sizeRows();
	}

	spread(bytes, blocks, variance) {
		return new Selected(this.app.stacks).spread({ bytes, blocks, variance }, 0);
	}

	/* Blocks that a leak check reported as lost; without one, those live at the end. */
	leaked() {
		const p = this.app.profile, leaks = p.leaks;

		if (this.leakSums)
			return this.leakSums;
		this.lostKind = new Map();
		if (!leaks) {
			const end = p.atEnd();

			this.leakSums = this.spread(end.bytes, end.blocks, end.variance);
			return this.leakSums;
		}
		const sum = p.lost();

		leaks.leaf.forEach((leaf, k) => {
			if (leaks.kind[k] === "reachable")
				return;
			const kinds = this.lostKind.get(leaf) || {};

			kinds[leaks.kind[k]] = (kinds[leaks.kind[k]] || 0) + leaks.bytes[k];
			this.lostKind.set(leaf, kinds);
		});
		this.findLeakAges();
		this.leakSums = this.spread(sum.bytes, sum.blocks);
		return this.leakSums;
	}

	/* By leaf: the least and the greatest age of what is lost, in milliseconds. */
	findLeakAges() {
		const ages = this.app.profile.leakAges;

		this.lostAge = new Map();
		if (!ages)
			return;
		ages.leaf.forEach((leaf, k) => {
			const [least, most] = this.lostAge.get(leaf) || [Infinity, 0];

			if (ages.kind[k] !== "reachable")
				this.lostAge.set(leaf, [Math.min(least, ages.at_least[k]),
					Math.max(most, ages.at_most[k])]);
		});
	}

	/* By leaf, what --cold found: [at least, at most], bytes. */
	untouched() {
		const found = this.app.profile.cold;

		if (found && this.coldOf !== found) {
			this.coldOf = found;
			this.coldBytes = new Map(found.leaf.map((leaf, k) =>
				[leaf, [found.at_least[k], found.at_most[k]]]));
		}
		return found && this.coldBytes;
	}

	addCold(row, leaf) {
		const [least, most] = this.coldBytes.get(leaf) || [0, 0];

		row.cold = (row.cold || 0) + least;
		row.coldMost = (row.coldMost || 0) + most;
	}

	coldColumn() {
		const range = (r) => `${format.exactBytes(r.cold)} to ` +
			`${format.exactBytes(r.coldMost)}: blocks share pages`;

		return { id: "cold", title: "Not touched",
			help: "Bytes on pages that were neither read nor written in the time of " +
				"--cold, when it was looked", value: (r) => r.cold,
			node: (r) => el("span", { title: range(r) }, format.bytes(r.cold)) };
	}

	addLeak(row, leaf) {
		const age = this.lostAge && this.lostAge.get(leaf);

		if (age)
			row.age = [Math.min(age[0], row.age ? row.age[0] : Infinity),
				Math.max(age[1], row.age ? row.age[1] : 0)];
		row.kinds = row.kinds || {};
		for (const [kind, bytes] of Object.entries(this.lostKind.get(leaf) || {}))
			row.kinds[kind] = (row.kinds[kind] || 0) + bytes;
	}

	temporaryRows() {
		const p = this.app.profile;
		const { allocations, reallocs, temporary, bytes, moved } = p.leaves;
		const columns = Object.entries({ temporary, reallocs, moved });
		const now = this.spread(Float64Array.from(bytes), Float64Array.from(allocations));

		return Tables.siteRows(this.app.stacks, now, null, this.life, (row, leaf) => {
			for (const [name, column] of columns)
				row[name] = (row[name] || 0) + (leaf < p.count ? column[leaf] : 0);
		});
	}

	threadName(index) {
		const thread = this.app.profile.threads[index] || { id: index, name: "unknown" };

		return { name: thread.name || "thread", detail: String(thread.id) };
	}

	releaseRows() {
		const { blocks, bytes } = this.app.profile.raw.releases, rows = new Map();
		const site = this.app.profile.releaseSite;

		site.forEach((n, i) => {
			const name = this.frameText(this.app.profile.frameOf(n));
			const row = rows.get(name) || { key: name, name, detail: "",
				bytes: 0, blocks: 0 };

			row.bytes += bytes[i];
			row.blocks += blocks[i];
			rows.set(name, row);
		});
		return [...rows.values()];
	}

	/* Callers of a releasing call site. */
	releaseCallers(site) {
		const p = this.app.profile, sums = new Map();
		const { bytes } = p.raw.releases, sites = p.releaseSite;

		sites.forEach((n, i) => {
			if (this.frameText(p.frameOf(n)) !== site)
				return;
			const parent = n >= 0 ? p.nodeParent[n] : -1;
			const caller = parent >= 0 ?
				this.frameText(p.nodeFrame[parent]) : "(outermost)";

			sums.set(caller, (sums.get(caller) || 0) + bytes[i]);
		});
		const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 12);

		return bars("Called by", top.map(([name, v]) => [name, v, format.bytes(v)]));
	}

	sizeRows() {
		const sum = Tables.histogram(this.app.profile.leaves.sizes), out = [];

		sum.forEach((blocks, i) => {
			const name = format.sizeBucket(i);

			if (blocks)
				out.push({ key: i, name, detail: "", blocks });
		});
		return out;
	}

	/* Introductions of some tables. */
	note() {
		const p = this.app.profile, sentence = {
			sites: "Call sites: the innermost lines of your code that allocate.",
			functions: "Self: what the function allocates itself. Inclusive: also " +
				"what the functions that it calls allocate.",
			leaks: p.leaks ?
				"Blocks that no pointer of the program led to when the leak " +
					"check ran." :
				p.isRunning ? "These blocks are live now." :
					"No leak check ran. These blocks were still live " +
					`when the ${p.left ? "process" : "profile"} ended.`,
			temporary: `Temporary: ${p.temporaryText}. Whole run.`,
			threads: "What each thread allocated in the whole run. Reallocs are " +
				"among its allocations.",
			sizes: "Sizes of all allocations and reallocs in the whole run.",
			releases: "Which call sites released blocks, in the whole run. " +
				"A realloc releases the bytes by which its block shrinks, " +
				"and no block.",
		}[this.current];

		return sentence ? el("p", { class: "note" }, sentence) : null;
	}

	/* Columns. */

	columns(id) {
		const title = { threads: "Thread", sizes: "Size", sites: "Call site",
			leaks: "Call site", temporary: "Call site", releases: "Released by",
		}[id] || "Function";
		const name = { id: "name", title, value: (r) => r.name, isText: true };

		if (id === "sizes")
			return [Object.assign(name, { value: (r) => r.key }),
				this.countColumn("blocks", "Allocations", true)];
		if (id === "releases")
			return [name, this.bytesColumn("bytes", "Released"),
				this.countColumn("blocks", "Blocks", false)];
		if (id === "threads")
			return [name, this.bytesColumn("bytes", "Allocated"),
				this.countColumn("blocks", "Allocations", true)];
		if (id === "temporary")
			return [name, this.countColumn("temporary", "Temporary", true),
				this.ratioColumn(), this.countColumn("blocks", "Allocations"),
				this.bytesColumn("inclusive", "Allocated"),
				this.countColumn("reallocs", "Reallocs"),
				this.countColumn("moved", "Moved"), this.lifetimeColumn()];
		if (id === "leaks")
			return [name, ...this.leakColumns(), this.countColumn("blocks", "Blocks"),
				this.meanColumn()];
		return [name, ...this.liveColumns(id)];
	}

	liveColumns(id) {
		const p = this.app.profile, out = [];

		if (id === "functions")
			out.push(this.bytesColumn("self", "Self",
				"Bytes of blocks that this function allocated itself"));
		out.push(this.bytesColumn("inclusive",
			id === "functions" ? "Inclusive" : "Bytes",
			id === "functions" ?
				"Bytes of blocks allocated by this function and what it called" :
				null, true));
		out[0].isDefault = true;
		if (this.app.old)
			out.push(this.bytesColumn("old", "Old"), this.changeColumn());
		if (!p.isMassif)
			out.push(this.countColumn("blocks", "Blocks"), this.meanColumn(),
				this.lifetimeColumn());
		if (id === "sites" && this.untouched())
			out.push(this.coldColumn());
		out.push(this.curveColumn(id));
		return out;
	}

	total(id) {
		const { values, stacks } = this.app;

		return this.rowsTotal && this.rowsTotal[id] ||
			values.of(values.bytes, { lo: 0, hi: stacks.count });
	}

	bytesColumn(id, title, help, hasShare) {
		const text = (r) =>
			format.bytes(r[id]) + format.error(r[id], r.variance && r.variance[id]);

		if (!hasShare)
			return { id, title, help, value: (r) => r[id], text,
				isDefault: id === "bytes" };
		return { id, title, help, value: (r) => r[id],
			node: (r) => el("span", { title: format.exactBytes(r[id]) }, text(r),
				el("span", { class: "share" },
					format.percent(r[id], this.total(id)))) };
	}

	changeColumn() {
		const color = (r) => r.change > 0 ? "grew" : r.change < 0 ? "shrank" : "";
		const text = (r) => format.signed(r.change, format.bytes) +
			format.error(Math.abs(r.change), r.variance && r.variance.change);
		const exact = (r) => format.signed(r.change, format.exactBytes);

		return { id: "change", title: "Change", value: (r) => r.change, isDefault: false,
			node: (r) => el("span", { class: color(r), title: exact(r) }, text(r)) };
	}

	countColumn(id, title, isDefault) {
		return { id, title, value: (r) => r[id], text: (r) => format.count(r[id]),
			isDefault };
	}

	meanColumn() {
		const mean = (r) => r.blocks ? r.inclusive / r.blocks : null;

		return { id: "mean", title: "Mean size", value: mean,
			text: (r) => mean(r) === null ? "" : format.bytes(mean(r)) };
	}

	ratioColumn() {
		const all = (r) => r.blocks + r.reallocs;

		return { id: "ratio", title: "Share",
			help: "of this call site's allocations and reallocs",
			value: (r) => all(r) ? r.temporary / all(r) : 0,
			text: (r) => format.percent(r.temporary, all(r)) };
	}

	lifetimeColumn() {
		return { id: "lifetime", title: "Lifetime",
			help: "Mean of the released blocks, from a histogram; share and mean " +
				"age of those that are live at the end; whole run. " +
				(this.app.profile.isSampled ?
					"With samples a realloc is a release, too" :
					"The age of a block begins again when it is resized"),
			value: (r) => Tables.meanLife(r.life),
			text: (r) => Tables.lifetimeText(r.life) };
	}

	ageText(age) {
		const [least, most] = (age || [0, 0]).map((ms) => format.seconds(ms / 1000));

		return !age ? "" : least === most ? most : `${least} to ${most}`;
	}

	leakColumns() {
		if (!this.app.profile.leaks) {
			const { isRunning } = this.app.profile;
			const column = this.bytesColumn(
				"inclusive", isRunning ? "Live now" : "Live at the end");

			return [Object.assign(column, { isDefault: true })];
		}
		const kinds = [["definite", "Definite"], ["indirect", "Indirect"],
			["possible", "Possible"]];

		const columns = kinds.map(([kind, title], i) =>
			({ id: kind, title, isDefault: !i, value: (r) => r.kinds[kind] || 0,
				text: (r) => format.bytes(r.kinds[kind] || 0) }));

		if (this.app.profile.leakAges)
			columns.push({ id: "age", title: "Age",
				help: "Of the youngest and of the oldest lost block; a lost " +
					"tree is as old as the block that leads to it",
				value: (r) => (r.age ? r.age[1] : 0),
				text: (r) => this.ageText(r.age) });
		return columns;
	}

	curveColumn(id) {
		return { id: "curve", title: "Over time", node: (r) => {
			const curve = this.curve(id, r.key);

			return sparkline(curve, curve.reduce((m, v) => Math.max(m, v), 0));
		} };
	}

	leaves(id, key) {
		const { stacks } = this.app;

		return id === "functions" ? this.merged.leavesOf(key) : stacks.leavesOfSite(key);
	}

	curve(id, key) {
		const name = `${id}:${key}`, p = this.app.profile;

		if (!this.curves.has(name)) {
			const leaves = this.leaves(id, key).filter((l) => l < p.count);

			this.curves.set(name, p.curve(leaves));
		}
		return this.curves.get(name);
	}

	/* Expanded rows. */

	open(id, row) {
		const { threads, sizes } = this.app.profile.leaves;

		if (id === "releases")
			return el("div", { class: "grid" }, this.releaseCallers(row.name));
		if (id === "threads")
			return el("div", { class: "grid" },
				this.sitesOf("Allocates most in", (leaf) => {
					const own = threads[leaf].find((t) => t[0] === row.key);

					return own ? own[2] : 0;
				}, format.bytes));
		if (id === "sizes")
			return el("div", { class: "grid" },
				this.sitesOf("Call sites of this size", (leaf) => {
					const [first, ...counts] = sizes[leaf];

					return counts[row.key - first] || 0;
				}, format.count));
		const leaves = this.leaves(id === "functions" ? id : "sites", row.key);
		const fn = id === "functions" ? row.key : row.fn;
		const grid = el("div", { class: "grid" }, ...this.callers(leaves, fn),
			...this.histograms(leaves), this.lines(leaves, fn));

		return el("div", {}, el("p", { class: "note" }, el("button", { onclick: () =>
			this.app.go({ find: row.name }) }, "Find in the flame graph")), grid,
		this.source(id, leaves, fn, row));
	}

	/* The annotated lines of a function, if the page has its source. */
	source(id, leaves, fn, row) {
		if (!this.app.profile.raw.sources)
			return null;
		return new SourceView(this.app, this.total("sites")).make(leaves, fn,
			row.source ? row.source.line : 0);
	}

	/* The call sites with the largest sums of @value(leaf). */
	sitesOf(title, value, print) {
		const { stacks, profile } = this.app, sums = new Map();

		for (let leaf = 0; leaf < profile.count; leaf++) {
			const v = value(leaf);

			if (v)
				sums.set(stacks.site[leaf], (sums.get(stacks.site[leaf]) || 0) + v);
		}
		const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 12);

		return bars(title, top.map(([frame, v]) => [this.frameText(frame), v, print(v)]));
	}

	frameText(frame) {
		const f = this.app.stacks.names.frames[frame], place = Tables.place(f);

		return this.app.stacks.names.functions[f.fn].name + (place ? ` (${place})` : "");
	}

	callers(leaves, fn) {
		const { now, stacks } = this.app, trie = this.app.trie("down");
		const shown = ({ key, bytes }, none) => key < 0 ?
			[none, bytes, format.bytes(bytes), null] :
			[stacks.names.functions[key].name, bytes, format.bytes(bytes),
				() => this.goTo(key)];
		const rows = (step, none) => Tables.neighbours(trie, now, leaves, fn, step)
			.slice(0, 10).map((row) => shown(row, none));

		return [bars("Called by", rows(-1, "(outermost)"), "nothing"),
			bars("Calls", rows(1, "(allocates here)"), "nothing")];
	}

	/* Shows function @fn in its own row. */
	goTo(fn) {
		const table = this.tables.get("functions") || this.makeTable("functions");

		table.opened.clear();
		table.opened.add(fn);
		this.app.go({ tab: "functions", find: this.app.stacks.names.functions[fn].name });
	}

	histograms(leaves) {
		const p = this.app.profile, own = [...leaves].filter((leaf) => leaf < p.count);
		const rows = (column, label) => Tables.histogram(own.map((leaf) => column[leaf]))
			.map((n, i) => [label(i), n, format.count(n)]).filter((row) => row[1]);

		if (p.isMassif)
			return [];
		return [bars("Sizes, whole run", rows(p.leaves.sizes, format.sizeBucket)),
			bars("Lifetimes, whole run" +
				(p.isSampled ? "; a realloc is a release, too" : ""),
				rows(p.leaves.lifetimes, Tables.lifetimeBucket),
				"nothing was released"),
			bars("Threads, whole run", this.threadBars(own))];
	}

	threadBars(leaves) {
		const sums = Tables.threadSums(this.app.profile, leaves).slice(0, 10);

		return sums.map((t) => {
			const { name, detail } = this.threadName(t.key);

			return [`${name} (${detail})`, t.bytes, format.bytes(t.bytes)];
		});
	}

	lines(leaves, fn) {
		const rows = Tables.lines(this.app.stacks, this.app.now, leaves, fn).slice(0, 12);

		return bars("Source lines",
			rows.map(([label, v]) => [label, v, format.bytes(v)]), "unknown");
	}
}
