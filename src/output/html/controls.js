/* Buttons, fields and keys, the texts next to them, and the tooltip. */
"use strict";

const LEGEND_WIDTH = 44; /* characters */

class Controls {
	constructor(app) {
		this.app = app;
		this.groups = this.makeGroups();
		byId("hide").addEventListener(
			"change", (e) => app.go({ hide: e.target.checked ? "1" : "" }));
		byId("stack").addEventListener("change", (e) => app.go({ stack: e.target.value }));
		byId("find").addEventListener("input", (e) => app.go({ find: e.target.value }));
		for (const id of ["mine", "other"])
			byId(id).addEventListener(
				"change", (e) => app.go({ [id]: e.target.value }));
		byId("theme").addEventListener("click", () => app.go({
			theme: document.documentElement.getAttribute("data-theme") === "dark" ?
				"light" : "dark" }));
		byId("timeline").addEventListener("keydown", (e) => this.timelineKey(e));
		byId("span").addEventListener("click", () => this.zoomTime());
		this.makeEditor();
		document.addEventListener("keydown", (e) => this.key(e));
		matchMedia("(prefers-color-scheme: dark)").addEventListener(
			"change", () => app.showAll());
		window.addEventListener("beforeprint", () => this.print(true));
		window.addEventListener("afterprint", () => this.print(false));
		if (!app.processes)
			byId("stack").querySelector("[value=process]").remove();
		this.profile = app.profile;
		if (app.profile.isMassif)
			byId("stack").querySelector("[value=thread]").remove();
	}

	/* The address of an editor is the reader's, not part of what is shared. */
	makeEditor() {
		const field = byId("editor");

		try {
			field.value = localStorage.getItem("ptmem-editor") || "";
		} catch (e) {
			/* a browser that keeps nothing */
		}
		field.addEventListener("change", () => {
			try {
				localStorage.setItem("ptmem-editor", field.value);
			} catch (e) {
				/* for this page only */
			}
			this.app.showTables();
		});
	}

	/* To the selected range; back if that is so already. */
	zoomTime() {
		const { span, selection: s } = this.app.state;

		if (span)
			this.app.go({ span: "" });
		else if (s.kind === "range")
			this.app.go({ span: `${s.a}-${s.b}` });
	}

	/* Paper is white. */
	print(isBefore) {
		const { app } = this;

		if (isBefore) {
			this.theme = app.state.theme;
			app.state.theme = "light";
		} else {
			app.state.theme = this.theme;
		}
		app.showAll();
	}

	makeGroups() {
		const p = this.app.profile, all = !p.isMassif, out = [];
		const modes = [["live", "Live"], ["growth", "Growth"]];

		if (p.peaks)
			modes.splice(1, 0, ["peaks", "Peak of each"]);
		if (all)
			modes.push(["allocated", "Allocated"]);
		if (all && p.hasTemporary)
			modes.push(["temporary", "Temporary"]);
		if (p.leaks)
			modes.push(["leaked", "Leaked"]);
		if (p.cold)
			modes.push(["cold", "Not touched"]);
		out.push(this.group("mode", "mode", modes));
		if (all)
			out.push(this.group("unit", "unit",
				[["bytes", "Bytes"], ["blocks", "Blocks"]]));
		out.push(this.group("direction", "dir",
			[["down", "Top-down"], ["up", "Bottom-up"]]));
		if (!this.app.old)
			out.push(this.group("color", "color",
				[["object", "By object"], ["change", "By change"]]));
		return out;
	}

	group(id, name, choices) {
		const buttons = choices.map(
			([value, title]) => el("button", { type: "button", "data-value": value,
			onclick: () => this.choose(name, value) }, title));

		byId(id).replaceChildren(...buttons);
		return { name, buttons };
	}

	choose(name, value) {
		const { app } = this, s = app.state;

		if (name === "mode" && value === "growth" && s.selection.kind !== "range")
			app.go({ mode: value, color: "object", selection: this.untilNow() });
		else if (name === "color" && value === "change" && s.selection.kind !== "range")
			app.go({ color: value, mode: "live", selection: this.untilNow() });
		else if (name === "mode" && value !== "live" && !app.old)
			app.go({ mode: value, color: "object" });
		else
			app.go({ [name]: value });
	}

	/* From the start to the selected moment. */
	untilNow() {
		const p = this.app.profile, s = this.app.state.selection;

		return { kind: "range", a: p.stops[0] || 0,
			b: s.kind === "moment" ? s.i : p.peakAt };
	}

	show() {
		const s = this.app.state;

		if (this.profile !== this.app.profile && this.app.processes)
			this.groups = this.makeGroups();
		this.profile = this.app.profile;
		if (this.app.processes)
			byId("stack").querySelector("[value=process]").hidden =
				!this.profile.processes;
		for (const { name, buttons } of this.groups)
			for (const button of buttons)
				button.setAttribute(
					"aria-pressed", String(button.dataset.value === s[name]));
		byId("mode-help").textContent = this.modeHelp(s.mode);
		byId("hide").checked = Boolean(s.hide);
		byId("stack").value = s.stack;
		if (!byId("stack").value)
			byId("stack").value = s.stack = "site";
		byId("span").hidden = !s.span && s.selection.kind !== "range";
		byId("span").textContent = s.span ? "Show the whole time" : "Zoom to the range";
		for (const id of ["mine", "other"])
			if (byId(id).value !== s[id])
				byId(id).value = s[id];
		if (byId("find").value !== s.find)
			byId("find").value = s.find;
		byId("find").setAttribute("aria-invalid",
			String(Boolean(s.find) && !matcher(s.find) && s.find !== "/"));
	}

	/* What the graph and the tables show. */
	modeHelp(mode) {
		const p = this.app.profile;

		return {
			live: "Live: what is in use at the selected moment, or at the end " +
				"of the range.",
			peaks: "Peak of each: what each process held at its own peak, as a sum; " +
				"these are different moments.",
			growth: p.isMassif ?
				"Growth: how much more is in use at the end of the range " +
					"than at its start." :
				"Growth: what was allocated in the range, and is in use at " +
					"its end.",
			allocated: "Allocated: all that was allocated in the range, " +
				"released or not.",
			temporary: `Temporary: ${p.temporaryText}. Whole run.`,
			leaked: "Leaked: what no pointer of the program led to when the " +
				"leak check ran.",
			cold: "Not touched: bytes on pages that were neither read nor written " +
				"in the time of --cold.",
		}[mode] || "";
	}

	showAreas() {
		const { areas, timeline, old } = this.app;
		const items = areas.names.map(
			(name, i) => this.legendItem(areas.colors[i], name, "swatch",
				areas.places[i]));

		if (timeline.hasPeaks)
			items.push(this.legendItem("var(--muted)", "highest within each interval",
				"swatch line dotted"));
		if (timeline.hasRss)
			items.push(this.legendItem(
				"var(--rss)", "resident memory", "swatch line dashed"));
		if (old)
			items.push(this.legendItem(
				"var(--old)", "old profile", "swatch line dashed"));
		if (timeline.rssMax && !timeline.hasRss)
			items.push(el("li", {},
				`Resident memory was up to ${format.bytes(timeline.rssMax)}.`));
		byId("areas").replaceChildren(...items);
		this.showClock();
	}

	/* The time of day at both ends of the timeline, for comparing with logs. */
	showClock() {
		const { profile: p, timeline } = this.app, start = p.clockStart;

		byId("clock").hidden = !start || Boolean(this.app.old);
		if (!start)
			return;
		const from = timeline.span ? start + timeline.from : start;

		byId("clock-start").textContent = `${format.date(from)} ${format.zone(from)}`;
		byId("clock-end").textContent = format.clock(start + timeline.to, from);
	}

	/* @name: of a function, called at source line @place, or a text. */
	legendItem(color, name, kind, place) {
		const style = kind === "swatch" ? `background: ${color}` : `border-color: ${color}`;
		const title = place ? `${name} (${place})` : name;


		return el("li", { title }, el("span", { class: kind, style }),
			el("span", {}, shorten.site(name, place, LEGEND_WIDTH)));
	}

	/* "at 3.21 s: 45.2 MiB in 123,456 blocks" */
	showSelection() {
		const { values, selected, state: s } = this.app,
			all = { lo: 0, hi: this.app.stacks.count };
		const bytes = values.of(values.bytes, all), blocks = values.of(values.blocks, all);
		const isTemporary = s.mode === "temporary";
		const print = s.mode === "growth" ?
			(n) => format.signed(n, format.bytes) : format.bytes;
		let sum = isTemporary ? format.count(blocks) : print(bytes) + values.error(all);

		if (blocks !== null && !isTemporary)
			sum += ` in ${values.variance ? "about " : ""}${format.blocks(blocks)}`;
		byId("selection").replaceChildren(
			el("span", { class: "muted" }, `${selected.when(s.selection, s.mode)}: `),
			el("span", { id: "sum",
				title: isTemporary ? null : format.exactBytes(bytes) }, sum),
			el("span", { class: "muted" },
				` ${selected.what(s)}${this.comparison(values)}` +
					selected.beside(s)));
		byId("timeline").setAttribute(
			"aria-label",
			`Timeline of memory; selected: ${byId("selection").textContent}`);
	}

	/* ", 12.0 MiB before (+3.00 MiB)" */
	comparison(values) {
		const all = { lo: 0, hi: this.app.stacks.count };

		if (!values.isCompared)
			return "";
		const old = values.of(values.old, all), change = values.of(values.main, all) - old;
		if (this.app.state.unit === "blocks")
			return `; before: ${format.count(old)}, ` +
				format.signed(change, format.count);
		return `; before: ${format.bytes(old)}${values.oldError(all)}, ` +
			format.signed(change, format.bytes) + values.changeError(all);
	}

	showFlame() {
		this.showCrumbs();
		this.showMatched();
		const { app } = this, { values } = app,
			isEmpty = !(values.width[app.stacks.count] > 0);

		byId("flame-box").hidden = isEmpty;
		byId("flame-empty").hidden = !isEmpty;
		byId("flame-empty").textContent = app.state.mode === "growth" ?
			"Nothing has grown here." : "Nothing is live here.";
		byId("kinds").replaceChildren(...(app.state.color === "change" ?
			[[app.colors.byChange(1), "grew"], [app.colors.byChange(0), "as before"],
				[app.colors.byChange(-1), "shrank"]] :
			app.colors.legend()).map(
				([color, name]) => this.legendItem(color, name, "swatch")));
		app.tips.status(null);
	}

	showCrumbs() {
		const { app } = this, { node } = app.flame, { functions } = app.stacks.names,
			parts = [];

		node.path.forEach((fn, i) => {
			parts.push(el("span", { "aria-hidden": "true" }, "\u203a"));
			parts.push(el("button", { title: functions[fn].name, onclick: () =>
				app.go({ zoom: node.path.slice(0, i + 1) }) },
				shorten(functions[fn].name, 40)));
		});
		byId("crumbs").replaceChildren(...(parts.length ?
			[el("button", { onclick: () => app.go({ zoom: [] }) }, "all"),
				...parts] : []));
	}

	showMatched() {
		const { values, matches } = this.app, sum = matches ? values.matched(matches) : 0;

		byId("matched").textContent = matches ?
			`Matched ${this.amount(sum)} (${format.percent(sum, values.total)})` : "";
	}

	amount(value) {
		return this.app.state.unit === "blocks" ? format.blocks(value) :
			format.bytes(value);
	}

	/* Keys. */

	timelineKey(event) {
		const { app } = this, p = app.profile, s = app.state.selection,
			step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		const move = (i, by) => {
			const at = p.stops.indexOf(p.snap(i)) + by;

			return p.stops[Math.max(0, Math.min(p.stops.length - 1, at))];
		};
		const now = s.kind === "range" ? s.b : s.kind === "moment" ? s.i : p.peakAt;
		let next = null;

		if (!p.stops.length)
			return;
		if (step && event.shiftKey)
			next = s.kind === "range" ?
				{ kind: "range", a: s.a, b: Math.max(s.a, move(s.b, step)) } :
				{ kind: "range", a: Math.min(now, move(now, step)),
					b: Math.max(now, move(now, step)) };
		else if (step && s.kind === "range")
			next = this.shifted(s, move(s.a, step), move(s.b, step));
		else if (step)
			next = { kind: "moment", i: move(now, step) };
		else if (event.key === "Home" || event.key === "End")
			next = {
				kind: "moment",
				i: event.key === "Home" ? p.stops[0] : p.stops[p.stops.length - 1],
			};
		if (!next)
			return;
		event.preventDefault();
		app.select(next);
	}

	/* A range keeps its length at the ends. */
	shifted(s, a, b) {
		return a === s.a || b === s.b ? s : { kind: "range", a, b };
	}

	key(event) {
		const isField = event.target.closest("input, select, textarea");

		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key === "Escape" && event.target.id === "find")
			this.app.go({ find: "" });
		else if (isField)
			return;
		else if (event.key === "/" || event.key === "f")
			byId("find").focus();
		else if (event.key === "p" || event.key === "P" || event.key === "Escape")
			this.app.select({ kind: "peak" });
		else if (event.key === "z" || event.key === "Z")
			this.zoomTime();
		else
			return;
		event.preventDefault();
	}
}

/* The tooltip. */
class Tips {
	constructor(app) {
		this.app = app;
	}

	rows(list) {
		return el("dl", {}, ...list.flatMap(
			([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
	}

	timeline(i, x) {
		const tip = byId("timeline-tip"), p = this.app.profile, t = p.timeline;

		if (i < 0) {
			tip.hidden = true;
			return;
		}
		const list = [["live", format.bytes(t.live_bytes[i]) +
			format.error(t.live_bytes[i], t.live_variance && t.live_variance[i])]];

		if (t.live_blocks)
			list.push(["blocks", format.count(t.live_blocks[i])]);
		if (t.rss && t.rss[i])
			list.push(["resident", format.bytes(t.rss[i])]);
		if (t.allocations)
			list.push(["allocations",
				`${format.count(t.allocations[i])}, ` +
				format.bytes(t.allocated_bytes[i]) +
				format.error(t.allocated_bytes[i], t.allocated_variance &&
					t.allocated_variance[i])]);
		for (const m of this.markersNear(i))
			list.push([m.kind, m.text || ""]);
		const clock = p.clockStart ? ` \u00b7 ${format.clock(p.clockStart + p.time[i],
			p.clockStart, p.end < 600)}` : "";

		tip.replaceChildren(el("strong", {}, format.time(p.time[i], p.unit) + clock),
			this.rows(list));
		placeTip(tip, x, 8, byId("timeline").clientWidth, 1e6);
	}

	markersNear(i) {
		const p = this.app.profile, from = i ? p.time[i - 1] : -Infinity;

		return p.markers.filter((m) => m.time * p.scale > from &&
			m.time * p.scale <= p.time[i]).slice(0, 5);
	}

	/* [name, value] of a frame. */
	facts(box) {
		const { values: v, state, stacks } = this.app, out = [], bytes = v.of(v.bytes, box),
			blocks = v.of(v.blocks, box);
		const all = { lo: 0, hi: stacks.count };

		if (state.mode !== "temporary")
			out.push(
				["bytes",
				`${format.bytes(bytes)}${v.error(box)} (${format.count(bytes)})`]);
		out.push(["share", format.percent(v.of(v.main, box), v.of(v.main, all))]);
		if (v.isCompared) {
			const old = v.of(v.old, box), change = v.of(v.main, box) - old;
			if (state.unit === "blocks")
				out.push(["before", format.count(old)],
					["change", format.signed(change, format.count)]);
			else
				out.push(["before", format.bytes(old) + v.oldError(box)],
					["change", format.signed(change, format.bytes) +
						v.changeError(box)]);
		}
		if (blocks !== null)
			out.push([state.mode === "temporary" ? "temporary" : "blocks",
				format.count(blocks)]);
		if (blocks && bytes > 0 && state.mode !== "temporary")
			out.push(["mean size", format.bytes(bytes / blocks)]);
		const lifetime = this.lifetime(box);

		if (lifetime)
			out.push(["mean lifetime", lifetime]);
		return out;
	}

	lifetime(box) {
		const { trie } = this.app.values, { life } = this.app.reports;
		const sum = { released: 0, lived: 0, live: 0, aged: 0 };

		for (let pos = box.lo; pos < box.hi; pos++)
			for (const key of LIFE)
				sum[key] += life[key][trie.order[pos]];
		return Tables.lifetimeText(sum);
	}

	/*
	 * "fill.c:12, fill.c:20 in libfill.so": the lines of this frame with the most bytes; in a
	 * comparison those of the new profile, if it has any.
	 */
	where(box) {
		const { trie, width } = this.app.values,
			{ frames, functions } = this.app.stacks.names;
		const ours = new Map(), others = new Map();

		if (box.fn < 0)
			return "";
		for (let pos = box.lo; pos < box.hi; pos++) {
			const frame = trie.frameAt(pos, box.depth),
				sums = trie.order[pos] < this.app.profile.count ? ours : others;

			sums.set(frame, (sums.get(frame) || 0) + width[pos + 1] - width[pos]);
		}
		const top = [...(ours.size ? ours : others)].sort((a, b) => b[1] - a[1]).map(
			([frame]) => Tables.place(frames[frame])).filter(Boolean);
		const lines = top.slice(0, 3).join(", ") + (top.length > 3 ? ", \u2026" : ""),
			{ object } = functions[box.fn];

		return lines + (object ? `${lines ? " in " : ""}${baseName(object)}` : "");
	}

	flame(box, x, y) {
		const tip = byId("tip");

		if (!box) {
			tip.hidden = true;
			return;
		}
		if (this.box !== box) {
			const where = this.where(box);

			this.box = box;
			tip.replaceChildren(...[el("strong", {}, this.app.flame.label(box)),
				where ? el("span", { class: "muted" }, where) : null,
					this.rows(this.facts(box))].filter(Boolean));
		}
		placeTip(tip, x, y, innerWidth, innerHeight);
	}

	/* The line below the flame graph: the focused frame, or the total. */
	status(box) {
		const facts = box ? this.facts(box).map(
			([name, value]) => `${value} ${name === "share" ? "" : name}`.trim()) : [];

		byId("flame-status").textContent = box ?
			`${this.app.flame.label(box)}: ${facts.join(", ")}` :
			"Click a frame to zoom.";
	}
}
