/*
 * The state of the view, and its encoding in the address, so that a view can be bookmarked and
 * sent.
 */
"use strict";

const DEFAULTS = { at: "peak", mode: "live", unit: "bytes", dir: "down", color: "object", hide: "",
	find: "", zoom: "", tab: "sites", sort: "", stack: "site", theme: "", thread: "",
	mine: "", other: "", span: "", process: "", which: "", graph: "", held: "", gfind: "",
	gtable: "", gsort: "" };

/* The initial view, as requested by ptmem-report's options. */
function askedFor(view) {
	if (!view)
		return {};
	const out = {};

	if (view.quantity === "live")
		out.at = String(view.last);
	if (view.quantity === "growth")
		Object.assign(out, { at: `${view.first}-${view.last}`, mode: "growth" });
	if (view.quantity === "allocated")
		Object.assign(out, { mode: "allocated", thread: view.thread });
	return out;
}

class State {
	constructor(profile) {
		this.profile = profile;
		this.isLive = Boolean(profile.raw.live);
		this.defaults = { ...DEFAULTS, ...askedFor(profile.raw.view) };
		if (profile.processes)
			this.defaults.stack = "process";
		if (this.isLive)
			this.defaults.at = "end";
		this.read();
	}

	/* Everything that is missing or invalid in the address has its initial value. */
	read() {
		const given = new URLSearchParams(location.hash.slice(1));

		for (const [name, value] of Object.entries(this.defaults))
			this[name] = given.has(name) ? given.get(name) : value;
		this.selection = this.parseSelection(this.at);
		this.zoom = this.zoom.split(".").filter((x) => /^\d+$/.test(x)).map(Number);
	}

	parseSelection(text) {
		const p = this.profile, range = text.match(/^(\d+)-(\d+)$/), last = p.intervals - 1;
		const clip = (x) => p.snap(Math.min(last, Number(x)));

		if (text === "end" && this.isLive && p.stops.length)
			return this.newest();
		if (range && p.stops.length) {
			const a = clip(range[1]), b = clip(range[2]);

			return a <= b ? { kind: "range", a, b } : { kind: "range", a: b, b: a };
		}
		if (/^\d+$/.test(text) && p.stops.length)
			return { kind: "moment", i: clip(text) };
		return { kind: "peak" };
	}

	/* The intervals that the timeline is zoomed to; null: it shows all. */
	spanRange() {
		const range = this.span.match(/^(\d+)-(\d+)$/);
		const [a, b] = range ? [Number(range[1]), Number(range[2])] : [0, -1];

		return a <= b && b < this.profile.intervals ? { a, b } : null;
	}

	/* Another process is shown, or all. */
	change(profile) {
		const isAll = Boolean(profile.processes);

		this.profile = profile;
		this.selection = { kind: "peak" };
		this.zoom = [];
		this.span = "";
		this.thread = "";
		if (isAll || this.stack === "process")
			this.stack = isAll ? "process" : "site";
		this.defaults.stack = this.stack;
	}

	/* The last moment, and each later one as it comes. */
	newest() {
		return { kind: "moment", i: this.profile.intervals - 1, isNewest: true };
	}

	/* Changes to @profile, a later one of the same program. Its intervals may be longer. */
	follow(profile) {
		const s = this.selection, old = this.profile.timeline;
		const ratio = profile.timeline.interval / old.interval;
		const moved = (i) => Math.min(profile.intervals - 1, Math.floor(i / ratio));
		const span = this.spanRange();

		this.profile = profile;
		this.span = span ? `${moved(span.a)}-${moved(span.b)}` : "";
		if (s.isNewest)
			this.selection = this.newest();
		else if (s.kind === "moment")
			this.selection = { kind: "moment", i: moved(s.i) };
		else if (s.kind === "range")
			this.selection = { kind: "range", a: moved(s.a), b: moved(s.b) };
	}

	selectionText() {
		const s = this.selection;

		if (s.isNewest)
			return "end";
		return s.kind === "range" ? `${s.a}-${s.b}` :
			s.kind === "moment" ? String(s.i) : "peak";
	}

	write() {
		const out = new URLSearchParams();
		const own = { at: this.selectionText(), zoom: this.zoom.join(".") };
		const now = Object.assign({}, this, own);

		for (const [name, value] of Object.entries(this.defaults))
			if (now[name] !== value)
				out.set(name, now[name]);
		history.replaceState(null, "", `#${out}`);
	}
}

/* A predicate for names from "/regex/" or a text; null if @text is empty or invalid. */
function matcher(text) {
	const regex = text.match(/^\/(.+?)\/?$/);

	if (!text || text === "/")
		return null;
	if (!regex) {
		const lower = text.toLowerCase();

		return (name) => name.toLowerCase().includes(lower);
	}
	try {
		const r = new RegExp(regex[1], "i");

		return (name) => r.test(name);
	} catch (error) {
		return null;
	}
}
