/* The page: reads the embedded profile, and keeps the views consistent with the selection. */
"use strict";

class App {
	constructor(json) {
		const isDiff = json.format === "ptmem-report-diff", names = new Names();
		const make = (j, match) => this.makeProfile(j, names, match);

		const { functions } = json.match || {}, matched = (side) =>
			({ names: functions, ...json.match[side] });

		this.names = names;
		this.processes = json.format === "ptmem-report-processes" ?
			new Processes(json, names) : null;
		this.profile = isDiff ? make(json.new, matched("new")) :
			make(this.processes ? this.processes.json("") : json);
		this.old = isDiff ? make(json.old, matched("old")) : null;
		names.finish();
		this.state = new State(this.profile);
		if (this.processes && this.state.process)
			this.useProcess();
		this.tries = new Map();
		this.judge();
		this.colors = new FrameColors(this.stacks);
		this.makeViews();
		this.controls = new Controls(this);
		this.reports = new Reports(this);
		this.processTable = this.processes ? new ProcessTable(this) : null;
		Header.show(this.profile, this.old);
		this.showAll();
		(window.requestIdleCallback || setTimeout)(() => this.trie("up"));
		this.live = json.live ? new Live(this, json.live) : null;
		window.addEventListener("hashchange", () => {
			const { process } = this.state;

			this.state.read();
			if (this.state.process !== process)
				this.showProcess();
			this.rejudge();
			this.showAll();
		});
		new ResizeObserver(() => this.resize()).observe(byId("report"));
	}

	makeProfile(json, names, match) {
		const profile = new Profile(json, names, match);

		profile.raw = json;
		return profile;
	}

	/* Shows a later profile of the same program. Functions keep their numbers. */
	update(json) {
		const focus = document.activeElement;

		this.profile = this.makeProfile(json, this.names);
		this.names.finish();
		this.state.follow(this.profile);
		this.judge();
		this.colors.add(this.stacks);
		this.reports.renew();
		this.lastAreas = this.areas;
		this.areas = null;
		Header.show(this.profile, null);
		this.flame.renew(() => this.show(Object.keys(DEFAULTS).concat("selection")));
		this.state.write();
		this.refocus(focus);
	}

	/* The profile of the process that the state names, or of all. */
	useProcess() {
		const json = this.processes.json(this.state.process);

		this.profile = this.makeProfile(json, this.names);
		this.state.change(this.profile);
	}

	showProcess() {
		this.useProcess();
		this.judge();
		this.reports.renew();
		this.areas = this.lastAreas = null;
		Header.show(this.profile, null);
		this.state.write();
		this.showAll();
	}

	/* Applies what the user says of their code: then stacks are others. */
	judge() {
		const { mine, other } = this.state;
		const profiles = [this.profile, this.old].filter(Boolean);
		const given = profiles.flatMap((p) => p.givenRules);

		this.judged = `${mine}\u0000${other}`;
		this.names.judge(MyCode.all(given, mine, other));
		for (const p of profiles)
			p.findSites(mine, other);
		this.stacks = new Stacks(profiles, this.names);
		this.selected = new Selected(this.stacks);
		this.tries.clear();
	}

	rejudge() {
		if (this.judged === `${this.state.mine}\u0000${this.state.other}`)
			return;
		this.judge();
		this.colors = new FrameColors(this.stacks);
		this.reports.renew();
	}

	/* Gives the focus to what has replaced @element. */
	refocus(element) {
		if (!element || element.isConnected)
			return;
		const { id, dataset } = element, label = element.getAttribute("aria-label");
		const query = id ? `#${id}` : dataset.sort ? `[data-sort="${dataset.sort}"]` :
			label ? `[aria-label="${CSS.escape(label)}"]` : null;
		const found = query && document.querySelector(query);

		if (found)
			found.focus({ preventScroll: true });
	}

	makeViews() {
		this.timeline = new Timeline(byId("timeline"), {
			moment: (i) => this.select({ kind: "moment", i }),
			range: (a, b) => this.select({ kind: "range", a, b }),
			hover: (i, x) => this.tips.timeline(i, x),
		});
		this.flame = new FlameView(byId("flame-box"), byId("flame"), byId("flame-spacer"), {
			zoom: (zoom) => this.go({ zoom }),
			tip: (box, x, y) => this.tips.flame(box, x, y),
			focus: (box) => this.tips.status(box),
		});
		this.tips = new Tips(this);
	}

	/* The sorted stacks in one direction, with or without hidden frames. */
	trie(dir) {
		const key = dir + this.state.hide;

		if (!this.tries.has(key))
			this.tries.set(key, new Trie(
				this.stacks, { up: dir === "up", hide: Boolean(this.state.hide) }));
		return this.tries.get(key);
	}

	/* A click selects a moment, a drag a range: the default view of each. */
	select(selection) {
		const { mode } = this.state, isRange = selection.kind === "range";
		const changes = { selection: this.withNewest(selection) };

		if (isRange && mode === "live" && this.state.color !== "change")
			changes.mode = "growth";
		if (!isRange && mode === "growth")
			changes.mode = "live";
		this.go(changes);
	}

	/* Who selects the last moment of a program that runs wants to see what comes. */
	withNewest(selection) {
		const isLast = selection.i === this.profile.intervals - 1;

		return this.live && selection.kind === "moment" && isLast ?
			this.state.newest() : selection;
	}

	/* Every change of what is shown. */
	go(changes) {
		Object.assign(this.state, changes);
		if ("dir" in changes || "hide" in changes)
			this.state.zoom = [];
		if (changes.mode)
			this.state.thread = "";
		if ("stack" in changes || "theme" in changes)
			this.areas = null;
		if ("process" in changes) {
			this.showProcess();
			return;
		}
		this.state.write();
		if ("mine" in changes || "other" in changes) {
			this.rejudge();
			this.showAll();
			return;
		}
		this.show(Object.keys(changes));
	}

	showAll() {
		this.areas = null;
		this.show(Object.keys(DEFAULTS).concat("selection"));
	}

	show(changed) {
		const has = (...names) => names.some((name) => changed.includes(name));

		this.check();
		this.controls.show();
		if (has("theme"))
			this.setTheme();
		if (has("process", "which") && this.processTable)
			this.processTable.show();
		if (has("selection", "stack", "theme", "span"))
			this.showTimeline();
		if (has("selection", "mode", "color", "hide", "dir", "unit", "theme"))
			this.measure();
		if (has("selection", "mode", "color", "hide", "dir", "unit", "theme", "find",
			"zoom"))
			this.showFlame();
		if (has("selection", "mode", "hide", "find", "tab", "sort", "color",
			"theme", "graph", "held", "gfind", "gtable", "gsort"))
			this.showTables();
	}

	/* Combinations that are impossible, or not in the profile, fall back to possible ones. */
	check() {
		const s = this.state, p = this.profile;

		if (!["live", "peaks", "growth", "allocated", "temporary", "leaked",
			"cold"].includes(s.mode) ||
			(s.mode === "peaks" && !p.peaks) ||
			(p.isMassif && !["live", "growth"].includes(s.mode)) ||
			(s.mode === "leaked" && !p.leaks) || (s.mode === "cold" && !p.cold))
			s.mode = "live";
		if (!s.spanRange())
			s.span = "";
		if (s.mode === "temporary" && !p.hasTemporary)
			s.mode = "allocated";
		if (s.mode === "growth" && s.selection.kind !== "range")
			s.selection = { kind: "range", a: p.stops[0] || 0,
				b: s.selection.kind === "moment" ? s.selection.i : p.peakAt };
		if (s.mode !== "allocated")
			s.thread = "";
		if (s.unit !== "blocks" || !this.hasBlocks)
			s.unit = s.mode === "temporary" ? "blocks" : "bytes";
		if (s.mode === "temporary")
			s.unit = "blocks";
		if (this.old)
			s.color = "change";
		else if (s.color !== "change" || s.selection.kind !== "range")
			s.color = "object";
		if (s.color === "change" && !this.old)
			s.mode = "live";
	}

	get hasBlocks() {
		return !this.profile.isMassif;
	}

	setTheme() {
		const wish = this.state.theme;
		const isDark = wish ? wish === "dark" :
			matchMedia("(prefers-color-scheme: dark)").matches;

		document.documentElement.setAttribute("data-theme", isDark ? "dark" : "light");
		this.colors.setDark(isDark);
	}

	showTimeline() {
		if (!this.areas) {
			this.areas = new Areas(
				this.profile, this.stacks, this.state.stack, this.lastAreas);
			this.lastAreas = null;
			this.timeline.show(this.profile, this.areas, this.old);
			this.controls.showAreas();
		}
		if (this.shownSpan !== this.state.span) {
			this.shownSpan = this.state.span;
			this.timeline.setSpan(this.state.spanRange());
			this.controls.showClock();
		}
		this.timeline.draw(this.state.selection);
	}

	measure() {
		const s = this.state, { now, before } = this.selected.values(s);

		this.now = now;
		this.before = before;
		this.values = new Values(
			this.trie(s.dir === "up" ? "up" : "down"), now, before, s.unit);
		this.controls.showSelection();
	}

	showFlame() {
		const match = matcher(this.state.find), { functions } = this.stacks.names;
		const matches = match && Uint8Array.from(functions, (f) => match(f.name) ? 1 : 0);

		this.matches = matches;
		this.flame.show(this.values, this.state.zoom, matches && ((fn) => matches[fn]),
			this.boxColor());
		this.controls.showFlame();
	}

	boxColor() {
		if (this.state.color !== "change")
			return (box) => this.colors.byObject(box.fn);
		const v = this.values, all = { lo: 0, hi: this.stacks.count };
		const most = Math.max(Math.abs(v.of(v.main, all) - v.of(v.old, all)),
			v.of(v.width, all) / 4, 1);

		return (box) => this.colors.byChange((v.of(v.main, box) - v.of(v.old, box)) / most);
	}

	/* Tables are updated a moment later, so that dragging is smooth. */
	showTables() {
		if (!this.isShown) {
			this.isShown = true;
			requestAnimationFrame(() => setTimeout(() => this.reports.show()));
			return;
		}
		clearTimeout(this.later);
		if (this.timeline.drag)
			this.later = setTimeout(() => this.reports.show(), 80);
		else
			this.reports.show();
	}

	resize() {
		this.timeline.draw();
		/* the line below the graph may wrap for a frame: the focus stays there */
		this.flame.renew(() => this.flame.layout());
		this.reports.resize();
	}
}

/* The embedded profile: gzipped JSON in base64. */
async function readProfile() {
	const text = byId("profile").textContent.trim();
	const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));

	return new Response(stream).json();
}

async function main() {
	try {
		const profile = await readProfile();

		performance.mark("read");
		document.documentElement.setAttribute("data-ready", "");
		window.ptmem = profile.format === "ptmem-graph" ?
			new GraphPage(profile) : new App(profile);
	} catch (error) {
		const isOld = typeof DecompressionStream === "undefined";

		document.body.replaceChildren(el("p", { class: "fatal" }, isOld ?
			"This browser is too old: the report needs Chromium 80, Firefox 113, " +
				"Safari 16.4 or later." :
			`This report cannot be shown: ${error.message}`));
		throw error;
	}
	performance.mark("ready");
}

main();
