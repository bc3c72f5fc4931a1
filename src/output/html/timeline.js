/*
 * The timeline: live bytes as areas of the largest call sites, objects or threads, resident memory
 * as a line, and below them the allocation rate. A click selects a moment, a drag a range; the
 * arrow keys move both.
 */
"use strict";

const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#e15759",
	"#9c755f"];
const OTHERS = "#b3aead";
const OVERHEAD = ["#8d8d93", "#c9c7c3"];

/* Sizes a canvas to its element, in device pixels; the context uses CSS pixels. */
function canvasContext(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	const w = Math.round(width * ratio), h = Math.round(height * ratio);

	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.height = `${height}px`;
	}
	const context = canvas.getContext("2d");

	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

/*
 * The areas of the timeline. The key of one by call site: function, source line, and the object if
 * that is unknown.
 */
class Areas {
	/* @last: the areas of an earlier profile of the same program, or null. */
	constructor(profile, stacks, by, last) {
		const keyOf = this.keys(profile, stacks, by);
		const groups = this.largest(profile, keyOf);
		const groupOf = new Int32Array(profile.count);

		for (let i = 0; i < profile.count; i++)
			groupOf[i] = groups.has(keyOf[i]) ? groups.get(keyOf[i]) : groups.size;
		this.groupOf = groupOf;
		this.rows = profile.series(groupOf, groups.size + 1);
		const keys = [...groups.keys()];

		this.names = keys.map((key) => this.label(profile, by, key));
		this.places = keys.map((key) => by === "site" ? key.split("\0")[1] : "");
		this.colorOf = this.chooseColors(keys, last ? last.colorOf : new Map());
		this.colors = [...this.colorOf.values()];
		this.names.push(groups.size ? "everything else" : "live");
		this.colors.push(OTHERS);
		if (profile.states)
			this.fit(profile);
		this.addOverhead(profile);
		this.dropEmpty();
	}

	keys(profile, stacks, by) {
		const { frames, functions } = stacks.names;

		return Array.from({ length: profile.count }, (x, i) => {
			if (by === "total")
				return -1;
			if (by === "thread")
				return this.mainThread(profile.leaves.threads[i]);
			if (by === "process")
				return profile.leaves.process[i];
			const frame = frames[stacks.siteFrame[i]];
			const { name, object } = functions[frame.fn], place = Tables.place(frame);

			return by === "object" ? object :
				[withoutClone(name), place, place ? "" : object].join("\0");
		});
	}

	/* The thread that allocated most of a leaf's bytes. */
	mainThread(threads) {
		const most = threads.reduce((best, t) => !best || t[2] > best[2] ? t : best, null);

		return most?.[0] ?? -1;
	}

	/* The keys with the largest maxima; key -> number of its area. */
	largest(profile, keyOf) {
		const index = new Map();
		const group = Int32Array.from(keyOf, (key) => {
			if (!index.has(key))
				index.set(key, index.size);
			return index.get(key);
		});
		const most = new Map();
		const held = this.most(profile, group, index.size);

		for (const [key, i] of index)
			if (key !== -1)
				most.set(key, held[i]);
		const keys = [...most.keys()].filter((key) => most.get(key) > 0)
			.sort((a, b) => most.get(b) - most.get(a)).slice(0, PALETTE.length);

		return new Map(keys.map((key, i) => [key, i]));
	}

	/* A key keeps its colour; the others get those that are free. */
	chooseColors(keys, last) {
		const kept = new Set(keys.map((key) => last.get(key)));
		const free = PALETTE.filter((color) => !kept.has(color));

		return new Map(keys.map((key) => [key, last.get(key) || free.shift()]));
	}

	/* The most that each group held at about forty moments and at the peak. */
	most(profile, group, groups) {
		const out = new Float64Array(groups), stops = profile.stops;
		const step = Math.max(1, Math.floor(stops.length / 40));
		const states = stops.filter((s, i) => i % step === 0).map((s) => profile.live(s));

		if (stops.length)
			states.push(profile.livePeak());
		for (const state of states) {
			const sums = new Float64Array(groups);

			state.bytes.forEach((bytes, leaf) => { sums[group[leaf]] += bytes; });
			sums.forEach((sum, i) => { out[i] = Math.max(out[i], sum); });
		}
		return out;
	}

	label(profile, by, key) {
		if (by === "process")
			return profile.processes.name(profile.processes.rows[key]);
		if (by === "thread") {
			const thread = profile.threads[key];

			return thread ? `${thread.name || "thread"} (${thread.id})` :
				"unknown thread";
		}
		return by === "object" ? baseName(key) || "[unknown]" :
			key.split("\0")[0];
	}

	/* Between snapshots with a tree only the sum is known: the areas keep their proportions. */
	fit(profile) {
		const others = this.rows[this.rows.length - 1];

		for (let i = 0; i < profile.intervals; i++) {
			const sum = this.rows.reduce((s, row) => s + row[i], 0);
			const live = profile.timeline.live_bytes[i];

			if (sum > 0)
				this.rows.forEach((row) => { row[i] *= live / sum; });
			else
				others[i] = live;
		}
	}

	/* Massif's overhead in addition to the heap's blocks. */
	addOverhead(profile) {
		const kinds = [["extra", "overhead of the allocator"], ["stacks", "stacks"]];

		kinds.forEach(([column, name], i) => {
			if (!profile.timeline[column])
				return;
			this.rows.push(Float64Array.from(profile.timeline[column]));
			this.names.push(name);
			this.colors.push(OVERHEAD[i]);
		});
	}

	dropEmpty() {
		const used = this.rows.map((row) => row.some((v) => v > 0));

		for (const list of ["rows", "names", "colors", "places"])
			this[list] = this[list].filter((x, i) => used[i]);
	}
}

class Timeline {
	/* @on: {moment(i), range(a, b), hover(i or -1, x)} */
	constructor(canvas, on) {
		this.canvas = canvas;
		this.on = on;
		this.hover = -1;
		this.pointer = 0; /* where it is, from the left of the canvas */
		this.drag = null;
		canvas.addEventListener("pointerdown", (e) => this.down(e));
		canvas.addEventListener("pointermove", (e) => this.move(e));
		canvas.addEventListener("pointerup", (e) => this.up(e));
		canvas.addEventListener("pointercancel", () => { this.drag = null; });
		canvas.addEventListener("pointerleave", () => this.setHover(-1, 0));
	}

	show(profile, areas, old) {
		this.profile = profile;
		this.areas = areas;
		this.old = old; /* the timeline of the other profile in a comparison, or null */
		this.setSpan(this.span);
		if (this.hover >= 0 && profile.stops.length)
			this.hover = this.under(this.pointer);
		else
			this.hover = -1;
		this.on.hover(this.hover, this.pointer);
	}

	/* Shows the range of intervals @span alone; null: all. */
	setSpan(span) {
		const p = this.profile;

		this.span = span && span.b < p.intervals ? span : null;
		this.setScale();
		[this.from, this.to] = this.span ? this.rangeTimes(this.span) : [p.begin, this.end];
	}

	setScale() {
		const t = this.profile.timeline;
		const { a, b } = this.span || { a: 0, b: this.profile.intervals - 1 };
		let top = this.span ? 0 : this.profile.peakBytes, rss = 0;

		for (let i = a; i <= b; i++) {
			const sum = this.areas.rows.reduce((s, row) => s + row[i], 0);

			top = Math.max(top, sum, t.live_bytes[i],
				t.peak_bytes ? t.peak_bytes[i] : 0);
			rss = Math.max(rss, t.rss ? t.rss[i] || 0 : 0);
		}
		if (this.old)
			top = this.old.timeline.live_bytes.reduce((m, v) => Math.max(m, v), top);
		this.rssMax = rss;
		/* Resident memory far above the heap would make it flat. */
		const isAbove = (v, i) => v > 1.05 * t.live_bytes[i];

		this.hasPeaks = Boolean(t.peak_bytes && t.peak_bytes.some(isAbove));
		this.hasRss = rss > 0 && rss < 4 * top;
		this.max = this.axisEnd(Math.max(1, top, this.hasRss ? rss : 0));
		this.end = Math.max(this.profile.end, this.old ? this.old.end : 0) || 1;
		this.setRates(t);
	}

	/* The label at or above @most, so that all curves are below one, unless it is far up. */
	axisEnd(most) {
		const [, step] = format.ticks(most, 4, true);
		const end = step ? Math.ceil(most / step) * step : most;

		return end <= 1.25 * most ? end : most;
	}

	/* Allocations per second in each interval. */
	setRates(t) {
		const time = this.profile.time;

		this.rate = null;
		if (!t.allocations || this.profile.unit !== "s")
			return;
		this.rate = t.allocations.map((n, i) => {
			const span = time[i] - (i ? time[i - 1] : 0);

			return span > 0 ? n / span : 0;
		});
		const { a, b } = this.span || { a: 0, b: this.rate.length - 1 };

		this.maxRate = this.rate.slice(a, b + 1).reduce((m, v) => Math.max(m, v), 0) || 1;
	}

	layout(width) {
		const rate = this.rate ? 46 : 0;

		this.box = { left: 74, right: width - 14, top: 18, height: 168,
			rateTop: 18 + 168 + 12, rate };
		this.height = this.box.top + this.box.height + (rate ? rate + 12 : 0) + 24;
	}

	x(time) {
		const { left, right } = this.box;

		return left + (right - left) * (time - this.from) / (this.to - this.from || 1);
	}

	y(bytes) {
		return this.box.top + this.box.height * (1 - bytes / this.max);
	}

	draw(selection) {
		const width = this.canvas.parentNode.clientWidth;

		if (selection)
			this.selection = selection;
		this.layout(width);
		this.canvas.setAttribute("data-left", this.box.left);
		this.canvas.setAttribute("data-right", this.box.right);
		const c = canvasContext(this.canvas, width, this.height);

		this.style = getComputedStyle(document.documentElement);
		c.font = "11px system-ui, sans-serif";
		this.drawGrid(c);
		c.save();
		if (this.span) {
			const { left, right } = this.box;

			c.beginPath();
			c.rect(left, 0, right - left, this.height - 22);
			c.clip();
		}
		this.drawAreas(c);
		this.drawLines(c);
		this.drawBars(c);
		this.drawMarkers(c);
		this.drawSelection(c);
		c.restore();
		this.drawRate(c);
	}

	color(name) {
		return this.style.getPropertyValue(`--${name}`).trim();
	}

	drawGrid(c) {
		const { left, right } = this.box, p = this.profile;
		const bottom = this.height - 22;

		c.strokeStyle = this.color("grid");
		c.lineWidth = 1;
		c.fillStyle = this.color("muted");
		c.textAlign = "right";
		c.textBaseline = "middle";
		for (const v of format.ticks(this.max, 4, true)) {
			const y = Math.round(this.y(v)) + 0.5;

			c.beginPath();
			c.moveTo(left, y);
			c.lineTo(right, y);
			c.stroke();
			c.fillText(format.tickBytes(v), left - 8, y);
		}
		c.textBaseline = "top";
		for (const v of this.timeTicks((right - left) / 110)) {
			const x = Math.round(this.x(v)) + 0.5;

			c.beginPath();
			c.moveTo(x, bottom);
			c.lineTo(x, bottom + 4);
			c.stroke();
			c.textAlign = x > right - 30 ? "right" : x < left + 30 ? "left" : "center";
			c.fillText(this.tickText(v), x, bottom + 7);
		}
	}

	timeTicks(room) {
		const { unit } = this.profile, { from, to } = this;
		const length = this.span ? to - from : to;
		const ticks = unit === "s" ? format.timeTicks(length, room) :
			format.ticks(length, room, unit === "B");
		const step = ticks.length > 1 ? ticks[1] : length;

		return this.span ? ticks.map((v, i) => (Math.ceil(from / step) + i) * step)
			.filter((v) => v <= to) : ticks;
	}

	tickText(v) {
		const unit = this.profile.unit;

		return unit === "i" && v ? `${format.tick(v, unit)} instr.` : format.tick(v, unit);
	}

	/* Areas are stacked. */
	drawAreas(c) {
		const { time, intervals } = this.profile, sum = new Float64Array(intervals);

		this.areas.rows.forEach((row, area) => {
			c.beginPath();
			c.moveTo(this.x(this.profile.begin), this.y(0));
			for (const [x, y] of this.points(sum, time))
				c.lineTo(x, y);
			for (let i = 0; i < intervals; i++)
				sum[i] += row[i];
			for (const [x, y] of this.points(sum, time).reverse())
				c.lineTo(x, y);
			c.closePath();
			c.fillStyle = this.areas.colors[area];
			c.globalAlpha = 0.88;
			c.fill();
		});
		c.globalAlpha = 1;
	}

	/*
	 * The points of a curve, without unknown values: a massif file's values hold until its next
	 * snapshot.
	 */
	points(values, time) {
		const out = [];

		values.forEach((v, i) => {
			if (v === null || v === undefined)
				return;
			if (this.profile.isMassif && out.length)
				out.push([this.x(time[i]), out[out.length - 1][1]]);
			out.push([this.x(time[i]), this.y(v)]);
		});
		return out;
	}

	/*
	 * The total at the ends of intervals, and the peak: it is within one, and lies on the line.
	 */
	totalPoints() {
		const p = this.profile, at = this.x(p.peakTime);
		const points = this.points(p.timeline.live_bytes.map((v, i) => p.total(i)), p.time);

		if (!p.isMassif && p.intervals && p.peakBytes > 0) {
			const next = points.findIndex(([x]) => x >= at);

			points.splice(next < 0 ? points.length : next, 0,
				[at, this.y(p.peakBytes)]);
		}
		return points;
	}

	line(c, values, time, color, dash) {
		this.stroke(c, this.points(values, time), color, dash);
	}

	stroke(c, points, color, dash) {
		c.beginPath();
		for (const [x, y] of points)
			c.lineTo(x, y);
		c.strokeStyle = this.color(color);
		c.setLineDash(dash);
		c.lineWidth = 1.5;
		c.stroke();
		c.setLineDash([]);
		c.lineWidth = 1;
	}

	drawLines(c) {
		const p = this.profile, t = p.timeline;

		this.stroke(c, this.totalPoints(), "line", []);
		if (this.hasPeaks)
			this.line(c, t.peak_bytes, p.time, "muted", [1, 2]);
		if (this.hasRss)
			this.line(c, t.rss, p.time, "rss", [5, 3]);
		if (this.old)
			this.line(c, this.old.timeline.live_bytes, this.old.time, "old", [2, 3]);
	}

	drawBars(c) {
		if (!this.rate)
			return;
		const { rateTop, rate } = this.box, { time } = this.profile;

		c.fillStyle = this.color("rate");
		this.rate.forEach((v, i) => {
			const x = this.x(i ? time[i - 1] : 0), h = v / this.maxRate * rate;

			c.fillRect(x, rateTop + rate - h, Math.max(0.5, this.x(time[i]) - x), h);
		});
	}

	drawRate(c) {
		if (!this.rate)
			return;
		const { left, rateTop, rate } = this.box;

		c.fillStyle = this.color("muted");
		c.textAlign = "right";
		c.textBaseline = "top";
		c.fillText(`${format.short(this.maxRate)}/s`, left - 8, rateTop - 2);
		c.textBaseline = "bottom";
		c.fillText("allocations", left - 8, rateTop + rate + 2);
	}

	drawMarkers(c) {
		const { top, height } = this.box, p = this.profile;

		c.strokeStyle = c.fillStyle = this.color("muted");
		for (const m of p.markers) {
			const x = Math.round(this.x(m.time * p.scale)) + 0.5;

			if (m.kind === "peak")
				continue;
			c.setLineDash([1, 3]);
			c.beginPath();
			c.moveTo(x, top);
			c.lineTo(x, top + height);
			c.stroke();
			c.setLineDash([]);
			c.beginPath();
			c.moveTo(x - 4, top + height);
			c.lineTo(x + 4, top + height);
			c.lineTo(x, top + height - 6);
			c.fill();
		}
		this.drawPeak(c, p);
	}

	drawPeak(c, p) {
		const x = this.x(p.peakTime), y = this.y(p.peakBytes);
		const text = `peak ${format.bytes(p.peakBytes)}`;

		if (!p.intervals || p.peakTime < this.from || p.peakTime > this.to ||
			p.peakBytes > this.max)
			return;
		c.beginPath();
		c.arc(x, y, 3.5, 0, 2 * Math.PI);
		c.fillStyle = this.color("panel");
		c.strokeStyle = this.color("text");
		c.lineWidth = 1.5;
		c.fill();
		c.stroke();
		c.lineWidth = 1;
		c.fillStyle = this.color("text");
		c.textBaseline = "middle";
		c.textAlign = "left";
		c.strokeStyle = this.color("panel");
		c.lineWidth = 3;
		c.lineJoin = "round";
		const box = this.placeLabel(x, y, c.measureText(text).width);

		this.peakLabel = box;
		c.strokeText(text, box.left, box.top + 7);
		c.lineWidth = 1;
		c.fillText(text, box.left, box.top + 7);
	}

	/* The place for a label of @width next to (@x, @y) at which it covers the fewest lines. */
	placeLabel(x, y, width) {
		const p = this.profile, t = p.timeline, boxes = [];
		const lines = [t.live_bytes.map((v, i) => p.total(i))];

		if (this.hasRss)
			lines.push(t.rss);
		if (this.hasPeaks)
			lines.push(t.peak_bytes);
		const curves = lines.map((values) => this.points(values, p.time));

		for (const top of [Math.max(1, y - 16), y + 4, y + 18, y + 32])
			for (const left of [x + 7, x - 7 - width])
				boxes.push({ left, right: left + width, top, bottom: top + 14 });
		const covered = (box) => curves.filter((c) => this.meets(c, box)).length;
		const isInside = (box) => box.left >= this.box.left &&
			box.right <= this.box.right && box.bottom <= this.box.top + this.box.height;
		const inside = boxes.filter(isInside);

		return (inside.length ? inside : boxes).reduce(
			(best, box) => covered(box) < covered(best) ? box : best);
	}

	/* Whether the curve through @points passes through @box. */
	meets(points, box) {
		return points.some(([x1, y1], i) => {
			const [x0, y0] = points[Math.max(0, i - 1)];

			if (x1 < box.left || x0 > box.right)
				return false;
			const at = (x) => x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
			const from = x1 > x0 ? at(Math.max(x0, box.left)) : y0;
			const to = x1 > x0 ? at(Math.min(x1, box.right)) : y1;

			return Math.min(from, to) < box.bottom && Math.max(from, to) > box.top;
		});
	}

	drawSelection(c) {
		const { top } = this.box, bottom = this.height - 22, s = this.selection;

		if (this.hover >= 0) {
			const x = Math.round(this.x(this.profile.time[this.hover]));

			c.fillStyle = this.color("muted");
			c.fillRect(x, top, 1, bottom - top);
		}
		if (!s || !this.profile.intervals)
			return;
		c.fillStyle = this.color("accent");
		if (s.kind === "range") {
			const [a, b] = this.rangeTimes(s).map((t) => this.x(t));

			c.globalAlpha = 0.14;
			c.fillRect(a, top, b - a, bottom - top);
			c.globalAlpha = 1;
			c.fillRect(a - 1, top, 2, bottom - top);
			c.fillRect(b - 1, top, 2, bottom - top);
			return;
		}
		const p = this.profile;
		const x = this.x(s.kind === "peak" ? p.peakTime : p.time[s.i]);

		c.fillRect(x - 1, top, 2, bottom - top);
	}

	/* Start and end of the selected range. */
	rangeTimes(s) {
		const p = this.profile;

		return [p.states ? p.time[s.a] : s.a ? p.time[s.a - 1] : p.begin, p.time[s.b]];
	}

	place(event) {
		return event.clientX - this.canvas.getBoundingClientRect().left;
	}

	/* The interval at @x that can be selected as a moment. */
	under(x) {
		const { left, right } = this.box, p = this.profile;
		const share = Math.min(1, Math.max(0, (x - left) / (right - left)));

		return p.snap(p.nearest(this.from + share * (this.to - this.from)));
	}

	at(event) {
		return this.under(this.place(event));
	}

	setHover(i, x) {
		this.pointer = x;
		if (i !== this.hover) {
			this.hover = i;
			this.draw();
		}
		this.on.hover(i, x);
	}

	down(event) {
		if (event.button || !this.profile.stops.length)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = { i: this.at(event), x: event.clientX, isRange: false };
	}

	move(event) {
		if (!this.profile.stops.length)
			return;
		const i = this.at(event);

		if (this.drag) {
			this.drag.isRange = this.drag.isRange ||
				Math.abs(event.clientX - this.drag.x) > 4;
			if (this.drag.isRange && i !== this.drag.i)
				this.on.range(Math.min(i, this.drag.i), Math.max(i, this.drag.i),
					true);
		}
		this.setHover(i, this.place(event));
	}

	up(event) {
		if (!this.drag)
			return;
		const drag = this.drag, i = this.at(event);

		this.drag = null;
		if (!drag.isRange || i === drag.i)
			this.on.moment(i);
		else
			this.on.range(Math.min(i, drag.i), Math.max(i, drag.i), false);
	}
}
