/*
 * A heap graph (doc/format.md): the rows of its dominator tree, and their places in a treemap. The
 * rows on top add up to the heap; those below a row, with its own bytes, to what it retains.
 */
"use strict";

const TOP = -1; /* above all rows */

class HeapGraph {
	constructor(json) {
		const { texts, rows } = json, n = rows.parent.length;

		this.json = json;
		this.count = n;
		this.kind = rows.row;
		this.parent = rows.parent;
		this.retained = rows.retained_bytes;
		this.blocks = rows.retained_blocks;
		this.own = rows.bytes;
		this.address = rows.address;
		this.type = rows.type.map((i) => texts[i]);
		this.way = rows.way.map((i) => texts[i]);
		this.name = rows.row.map((kind, i) => this.nameOf(kind, i, texts[rows.name[i]]));
		this.below = new Map([[TOP, []]]);
		for (let i = 0; i < n; i++)
			this.add(this.parent[i], i);
		for (const list of this.below.values())
			list.sort((a, b) => this.isRest(a) - this.isRest(b) ||
				this.retained[b] - this.retained[a] || a - b);
	}

	add(parent, row) {
		if (!this.below.has(parent))
			this.below.set(parent, []);
		this.below.get(parent).push(row);
	}

	nameOf(kind, i, name) {
		const count = format.count(this.json.rows.count[i]);

		if (kind === "rest")
			return `${count} other${count === "1" ? "" : "s"}`;
		if (kind === "shared")
			return `${name || "shared by several owners"}, ${count} at the top`;
		return name || this.type[i] || this.address[i] || "unknown";
	}

	isRest(i) {
		return Number(this.kind[i] === "rest");
	}

	children(i) {
		return this.below.get(i) || [];
	}

	bytes(i) {
		return i === TOP ? this.json.bytes : this.retained[i];
	}

	blockCount(i) {
		return i === TOP ? this.json.blocks : this.blocks[i];
	}

	/* The rows from the top down to @i. */
	path(i) {
		const out = [];

		for (let at = i; at !== TOP; at = this.parent[at])
			out.push(at);
		return out.reverse();
	}

	/* A row's number as a text; TOP if there is no such row. */
	read(text) {
		const i = /^\d+$/.test(text) ? Number(text) : TOP;

		return i < this.count ? i : TOP;
	}

	/* "Session, 104 bytes at 0x5581..." */
	describe(i) {
		if (this.kind[i] !== "block")
			return this.name[i];
		return `${this.type[i] || "block"}, ${format.exactBytes(this.own[i])} at ` +
			this.address[i];
	}

	/* Its name in at most @room characters: of types the innermost parts stay. */
	short(i, room) {
		const name = this.name[i];

		return this.kind[i] === "block" ? shorten(name, room) : cutText(name, room);
	}

	/* Those whose name, type or address matches, the largest first. */
	search(match) {
		const is = (text) => text && match(text), out = [];

		for (let i = 0; i < this.count; i++)
			if (is(this.name[i]) || is(this.type[i]) || is(this.address[i]))
				out.push(i);
		return out.sort((a, b) => this.retained[b] - this.retained[a] || a - b);
	}
}

/*
 * Rectangles with areas in the ratio of @items' sizes, as near to squares as they get (Bruls,
 * Huizing and van Wijk, Squarified Treemaps, 2000). @items: {size}, largest first; @box: {x, y, w,
 * h}. Each gets a box.
 */
function squarify(items, box) {
	const shown = items.filter((item) => item.size > 0);
	let rest = shown.reduce((sum, item) => sum + item.size, 0), { x, y, w, h } = box, i = 0;

	while (i < shown.length && w > 0 && h > 0) {
		const unit = w * h / rest, side = Math.min(w, h);
		const count = bestCount(shown, i, unit, side), row = shown.slice(i, i + count);
		const sum = row.reduce((total, item) => total + item.size, 0);
		const depth = sum * unit / side, isColumn = w >= h;
		let at = isColumn ? y : x;

		for (const item of row) {
			const length = side * item.size / sum;

			item.box = isColumn ? { x, y: at, w: depth, h: length } :
				{ x: at, y, w: length, h: depth };
			at += length;
		}
		if (isColumn) {
			x += depth;
			w -= depth;
		} else {
			y += depth;
			h -= depth;
		}
		rest -= sum;
		i += count;
	}
	return shown.filter((item) => item.box);
}

/* How many of @items from @from on make the best row along @side. */
function bestCount(items, from, unit, side) {
	let sum = 0, best = Infinity, count = 0;

	for (let i = from; i < items.length; i++) {
		sum += items[i].size;
		const depth = sum * unit / side;
		const ratio = (size) => {
			const length = size * unit / depth;

			return Math.max(depth / length, length / depth);
		};
		const worst = Math.max(ratio(items[from].size), ratio(items[i].size));

		if (worst > best)
			break;
		best = worst;
		count++;
	}
	return Math.max(1, count);
}
