/*
 * The flame graph: the tree of a selection from its root down, on a canvas. Only frames that are
 * wide enough to be visible, and within the visible part, are laid out and drawn.
 */
"use strict";

const FRAME_HEIGHT = 18;
const NARROWEST = 0.4;   /* pixels */
const MAX_ROWS = 2000;   /* maximum depth */
const BOX_MIN = 120, BOX_MAX = 460;

class FlameView {
	/* @on: {zoom(path), tip(box or null, x, y), focus(box)} */
	constructor(box, canvas, spacer, on) {
		this.box = box;
		this.canvas = canvas;
		this.spacer = spacer;
		this.on = on;
		this.hover = this.focus = null;
		this.shortened = new Map();
		box.addEventListener("scroll", () => this.draw());
		canvas.addEventListener("pointermove", (e) => this.move(e));
		canvas.addEventListener("pointerleave", () => this.setHover(null, 0, 0));
		canvas.addEventListener("click", (e) => this.click(e));
		canvas.addEventListener("keydown", (e) => this.key(e));
		canvas.addEventListener("blur", () => { this.focus = null; this.draw(); });
	}

	/* @search: matches(fn), or null. @color: color(box). */
	show(values, path, search, color) {
		this.values = values;
		this.trie = values.trie;
		this.search = search;
		this.color = color;
		this.node = this.trie.find(path);
		this.focus = this.hover = null;
		this.layout();
	}

	/* The box of the functions of @path that is shown, or null. */
	boxAt(path) {
		let box = this.rows[0][0];

		path.forEach((fn, i) => {
			const row = this.rows[i + 1] || [];

			box = row.find((b) => b.fn === fn && b.parent === box);
		});
		return box || null;
	}

	/* Calls @show, which shows other values. The pointer may be at another box then. */
	renew(show) {
		const focus = this.focus && this.pathOf(this.focus);
		const isAtBox = this.hover;

		show();
		this.focus = focus && this.boxAt(focus);
		this.draw();
		if (isAtBox)
			this.move(this.pointer);
	}

	root() {
		return { fn: -1, lo: 0, hi: this.trie.count, depth: 0,
			parent: null, isCaller: this.node.depth > 0 };
	}

	/* Boxes by row; begin and end are fractions of the width. */
	layout() {
		const width = Math.max(1, this.box.clientWidth);

		this.width = width;
		this.rows = [];
		let last = Object.assign(this.root(), { x: 0, w: width });

		this.add(last);
		this.node.path.forEach((fn, i) => {
			const node = this.trie.find(this.node.path.slice(0, i + 1));

			last = { fn, lo: node.lo, hi: node.hi, depth: i + 1, parent: last,
				x: 0, w: width, isCaller: i + 1 < this.node.depth };
			this.add(last);
		});
		const total = this.values.of(this.values.width, last);

		this.unit = total > 0 ? width / total : 0;
		for (let row = [last]; row.length && this.rows.length < MAX_ROWS;)
			row = this.addChildren(row);
		this.fit();
	}

	add(box) {
		(this.rows[box.depth] = this.rows[box.depth] || []).push(box);
	}

	addChildren(row) {
		const out = [];

		for (const box of row) {
			let x = box.x;

			this.trie.children(box.lo, box.hi, box.depth, (fn, lo, hi) => {
				const w = this.values.of(this.values.width, { lo, hi }) * this.unit;

				if (w >= NARROWEST) {
					const child = { fn, lo, hi, depth: box.depth + 1,
						parent: box, x, w, isCaller: false };

					this.add(child);
					out.push(child);
				}
				x += w;
			});
		}
		return out;
	}

	/* The element is as high as its rows, within limits; beyond these it scrolls. */
	fit() {
		const height = this.rows.length * FRAME_HEIGHT + 1;

		this.height = Math.min(BOX_MAX, Math.max(BOX_MIN, height));
		this.box.style.height = `${this.height}px`;
		this.spacer.style.height = `${height}px`;
		this.draw();
	}

	label(box) {
		return box.fn < 0 ? "all" : this.trie.stacks.names.functions[box.fn].name;
	}

	shorten(name, room) {
		const key = room + name;
		let text = this.shortened.get(key);

		if (text === undefined) {
			if (this.shortened.size > 50000)
				this.shortened.clear();
			text = shorten(name, room);
			this.shortened.set(key, text);
		}
		return text;
	}

	draw() {
		const c = canvasContext(this.canvas, this.box.clientWidth, this.height);
		const top = this.box.scrollTop;
		const style = getComputedStyle(document.documentElement);

		this.look = {
			gap: style.getPropertyValue("--panel").trim(),
			text: style.getPropertyValue("--frame-text").trim(),
			dim: style.getPropertyValue("--frame-dim").trim(),
			accent: style.getPropertyValue("--text").trim(),
			match: style.getPropertyValue("--match").trim(),
		};
		c.font = "12px ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace";
		this.character = this.character || c.measureText("mmmmmmmmmm").width / 10;
		c.textBaseline = "middle";
		const first = Math.floor(top / FRAME_HEIGHT);

		for (let row = first; row < this.rows.length; row++) {
			if (row * FRAME_HEIGHT >= top + this.height)
				break;
			for (const box of this.rows[row])
				this.drawBox(c, box, row * FRAME_HEIGHT - top);
		}
		for (const box of [this.hover, this.focus])
			if (box)
				this.outline(c, box, box.depth * FRAME_HEIGHT - top);
	}

	drawBox(c, box, y) {
		const isMatch = this.search && box.fn >= 0 && this.search(box.fn);

		c.globalAlpha = box.isCaller ? 0.55 : this.search && !isMatch ? 0.45 : 1;
		c.fillStyle = isMatch ? this.look.match : this.color(box);
		c.fillRect(box.x, y, Math.max(0.4, box.w - (box.w > 2 ? 0.8 : 0)),
			FRAME_HEIGHT - 1);
		c.globalAlpha = box.isCaller ? 0.7 : 1;
		if (box.w > 3 * this.character + 6) {
			c.fillStyle = this.search && !isMatch ? this.look.dim : this.look.text;
			const room = Math.floor((box.w - 7) / this.character);

			c.fillText(this.shorten(this.label(box), room), box.x + 4,
				y + FRAME_HEIGHT / 2);
		}
		c.globalAlpha = 1;
	}

	outline(c, box, y) {
		c.strokeStyle = this.look.accent;
		c.lineWidth = 1.5;
		c.strokeRect(box.x + 0.75, y + 0.5, Math.max(1, box.w - 2), FRAME_HEIGHT - 2);
		c.lineWidth = 1;
	}

	at(event) {
		const rect = this.canvas.getBoundingClientRect(), x = event.clientX - rect.left;
		const y = event.clientY - rect.top + this.box.scrollTop;
		const row = this.rows[Math.floor(y / FRAME_HEIGHT)] || [];

		return row.find((box) => x >= box.x && x < box.x + Math.max(box.w, 1)) || null;
	}

	setHover(box, x, y) {
		if (box !== this.hover) {
			this.hover = box;
			this.draw();
		}
		this.canvas.style.cursor = box ? "pointer" : "default";
		this.on.tip(box, x, y);
	}

	move(event) {
		this.pointer = event;
		this.setHover(this.at(event), event.clientX, event.clientY);
	}

	click(event) {
		const box = this.at(event);

		if (box)
			this.on.zoom(this.pathOf(box));
	}

	pathOf(box) {
		const path = [];

		for (; box && box.fn >= 0; box = box.parent)
			path.unshift(box.fn);
		return path;
	}

	setFocus(box) {
		if (!box)
			return;
		this.focus = box;
		const y = box.depth * FRAME_HEIGHT;

		if (y < this.box.scrollTop)
			this.box.scrollTop = y;
		if (y + FRAME_HEIGHT > this.box.scrollTop + this.height)
			this.box.scrollTop = y + FRAME_HEIGHT - this.height;
		this.draw();
		this.on.focus(box);
	}

	/* The box next to, above or below the focused one. */
	neighbour(key) {
		const f = this.focus, row = this.rows[f.depth];

		if (key === "ArrowUp")
			return f.parent;
		if (key === "ArrowDown") {
			const below = (this.rows[f.depth + 1] || []).filter((b) => b.parent === f);

			return below.reduce((best, b) => !best || b.w > best.w ? b : best, null);
		}
		return row[row.indexOf(f) + (key === "ArrowRight" ? 1 : -1)];
	}

	key(event) {
		const zoomed = this.rows[this.node.depth][0];

		if (event.key.startsWith("Arrow"))
			this.setFocus(this.focus ? this.neighbour(event.key) : zoomed);
		else if ((event.key === "Enter" || event.key === " ") && this.focus)
			this.on.zoom(this.pathOf(this.focus));
		else if ((event.key === "Backspace" || event.key === "Escape") && this.node.depth)
			this.on.zoom(event.key === "Escape" ? [] : this.node.path.slice(0, -1));
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	}
}

/* Colours of frames: by object, or by change. */
class FrameColors {
	constructor(stacks) {
		this.functions = stacks.names.functions;
		this.isDark = false;
		this.cache = new Map();
		this.hues = new Map();
		this.add(stacks);
	}

	/* Libraries keep their colours. */
	add(stacks) {
		for (const object of this.libraries(stacks))
			if (!this.hues.has(object)) {
				const next = this.hues.size % FrameColors.HUES.length;

				this.hues.set(object, FrameColors.HUES[next]);
			}
	}

	/* Objects with the most frames in the call tree get their own colours. */
	libraries(stacks) {
		const frames = new Map();

		for (const p of stacks.profiles)
			for (const frame of p.nodeFrame) {
				const { kind, object } =
					this.functions[stacks.names.frames[frame].fn];

				if (kind === KIND.LIBRARY)
					frames.set(object, (frames.get(object) || 0) + 1);
			}
		return [...frames.keys()].sort((a, b) => frames.get(b) - frames.get(a));
	}

	hash(text) {
		let h = 0x811c9dc5;

		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		return (h ^ h >>> 15) >>> 0;
	}

	hsl(hue, saturation, light) {
		return `hsl(${hue}, ${saturation}%, ${this.isDark ? light - 14 : light}%)`;
	}

	/* [hue, saturation] of a function's object. */
	tone(f) {
		if (f.kind === KIND.PROGRAM)
			return [135, 38];
		if (f.kind === KIND.LIBRARY)
			return [this.hues.get(f.object), 62];
		if (f.kind === KIND.ALLOCATOR)
			return [48, 58];
		return f.kind === KIND.RUNTIME ? [210, 45] : [0, 0];
	}

	byObject(fn) {
		let color = this.cache.get(fn);

		if (color === undefined) {
			const f = fn < 0 ? { name: "", kind: KIND.NONE } : this.functions[fn];
			const h = this.hash(f.name), [hue, saturation] = this.tone(f);

			color = this.hsl(hue + h % 13 - 6, saturation, 70 + (h >>> 8) % 10);
			this.cache.set(fn, color);
		}
		return color;
	}

	/* Red for growth, blue for shrinkage, paler if it is small. @share: -1 .. 1. */
	byChange(share) {
		const strength = Math.sqrt(Math.min(1, Math.abs(share)));

		if (!share)
			return this.hsl(0, 0, 85);
		return this.hsl(share > 0 ? 4 : 213, 35 + 45 * strength, 86 - 26 * strength);
	}

	setDark(isDark) {
		if (isDark !== this.isDark)
			this.cache.clear();
		this.isDark = isDark;
	}

	/* [colour, label] for the kinds that occur. */
	legend() {
		const used = new Set(this.functions.map((f) => f.kind)), out = [];
		const add = (kind, hue, saturation, label) => {
			if (used.has(kind))
				out.push([this.hsl(hue, saturation, 74), label]);
		};

		add(KIND.PROGRAM, 135, 38, "program");
		for (const [object, hue] of [...this.hues].slice(0, FrameColors.HUES.length))
			add(KIND.LIBRARY, hue, 62, baseName(object) || "libraries");
		add(KIND.ALLOCATOR, 48, 58, "allocators");
		add(KIND.RUNTIME, 210, 45, "libc, runtimes, not my code");
		return out;
	}
}
FrameColors.HUES = [24, 275, 340, 178, 75, 245];
