/*
 * Values of the selection, by leaf of all shown profiles: {bytes, blocks, variance}, and of what it
 * is compared with. variance: of the bytes, null if they are exact.
 */
"use strict";

class Selected {
	/* @stacks: of one profile, or of a new and an old one. */
	constructor(stacks) {
		this.stacks = stacks;
		[this.profile, this.old] = stacks.profiles;
	}

	/* The old profile's selection: the same moments, by time. */
	mapped(s) {
		const p = this.profile, old = this.old;
		const at = (i) => old.snap(old.nearest(p.time[i]));

		if (s.kind === "range")
			return { kind: "range", a: at(s.a), b: at(s.b) };
		return s.kind === "moment" ? { kind: "moment", i: at(s.i) } : s;
	}

	of(profile, { selection: s, mode, thread }) {
		if (mode === "allocated")
			return profile.allocated(thread);
		if (mode === "temporary")
			return profile.temporary();
		if (mode === "leaked")
			return profile.lost() || profile.empty(true);
		if (mode === "cold")
			return profile.untouched() || profile.empty(true);
		if (mode === "peaks")
			return profile.eachPeak();
		if (s.kind === "range")
			return mode === "growth" ? profile.growth(s.a, s.b) : profile.live(s.b);
		return s.kind === "moment" ? profile.live(s.i) : profile.livePeak();
	}

	/* The values that were live at the start of range @s. */
	atBegin(s) {
		const p = this.profile;

		if (p.states)
			return p.live(s.a);
		return s.a ? p.live(s.a - 1) : p.empty(true);
	}

	/* @values of a profile whose first leaf has number @first, among all leaves. */
	spread(values, first) {
		const place = (list) => {
			const out = new Float64Array(this.stacks.count);

			out.set(list, first);
			return out;
		};

		return { bytes: place(values.bytes), blocks: values.blocks && place(values.blocks),
			variance: values.variance && place(values.variance) };
	}

	/* @state: the view. {now, before}; before: null unless it is a comparison. */
	values(state) {
		const { selection: s, mode, color } = state;
		const now = this.spread(this.of(this.profile, state), 0);
		let before = null;

		if (this.old) {
			const mapped = { ...state, selection: this.mapped(s) };

			before = this.spread(this.of(this.old, mapped), this.profile.count);
		} else if (color === "change" && s.kind === "range" && mode === "live") {
			before = this.spread(this.atBegin(s), 0);
		}
		return { now, before };
	}

	newest(time) {
		return `${this.profile.isRunning ? "now" : "at the end"}, ` +
			format.time(time, this.profile.unit);
	}

	/* "at 3.21 s" */
	when(s, mode) {
		const p = this.profile, unit = p.unit;

		if (mode === "peaks")
			return "each process at its own peak";
		if (s.kind === "peak")
			return "at the peak, " + (unit === "B" ? "time " : "") +
				format.time(p.peakTime, unit);
		if (s.kind === "moment")
			return s.isNewest ? this.newest(p.time[s.i]) : p.isMassif ?
				`snapshot ${this.number(s.i)}, ${format.time(p.time[s.i], unit)}` :
				`at ${format.time(p.time[s.i], unit)}`;
		const from = p.states || !s.a ? (p.states ? p.time[s.a] : 0) : p.time[s.a - 1];

		return `${format.time(from, unit)} to ${format.time(p.time[s.b], unit)}`;
	}

	number(i) {
		const numbers = this.profile.timeline.number;

		return numbers ? numbers[i] : i;
	}

	/* Bytes that a massif file counts in addition to the blocks of its trees. */
	beside({ selection: s, mode }) {
		const p = this.profile;
		const i = s.kind === "range" ? s.b : s.kind === "moment" ? s.i : p.peakAt;
		const rest = p.isMassif && p.intervals && mode === "live" ?
			p.total(i) - p.timeline.live_bytes[i] : 0;
		const stacks = p.timeline.stacks ? " and stacks" : "";

		return rest ? `, ${format.bytes(rest)} of overhead${stacks}` : "";
	}

	/* A phrase for the mode. */
	what({ selection: s, mode, thread }) {
		if (mode === "allocated")
			return `allocated${thread ? ` by thread ${thread}` : ""} in the whole run`;
		if (mode === "temporary")
			return "temporary allocations in the whole run";
		if (mode === "leaked")
			return "lost when leaks were checked";
		if (mode === "cold")
			return "not touched when it was looked (--cold)";
		if (mode === "peaks")
			return "as a sum, not at one time";
		if (mode === "growth")
			return this.profile.isMassif ? "net growth" :
				"allocated in the range and live at its end";
		return s.kind === "range" ? "live at the end of the range" : "live";
	}
}
