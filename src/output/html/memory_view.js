/*
 * What --inspect found: resident memory as a bar, down to its parts; the map of the heap, a cell
 * for each page or group of pages; what pins pages, and what would return memory.
 */
"use strict";

/* The parts of the bar's middle row, each up to the row @last. */
const PARTS = [
	{ name: "malloc", last: "unknown_heap", color: "#d1e3f0" },
	{ name: "Python's allocator", last: "python_own", color: "#e6def5" },
	{ name: "threads", last: "tls", color: "#d4ede3" },
	{ name: "program and libraries", last: "text", color: "#f2deeb" },
	{ name: "files and shared memory", last: "shared", color: "#f5f2c7" },
	{ name: "other", last: "anonymous", color: "#e6e6e6" },
];
const ROW_COLORS = {
	live: "#0073b3", mmapped: "#57b5e8", tcache: "#ffde99", fastbins: "#facc66",
	unsorted: "#ed9933", bins: "#d65e00", top: "#f7b880", free_pages: "#e69e73",
	allocator: "#595959", unknown_heap: "#1a1a1a", python_live: "#5c3b99",
	python_free: "#9e85cc", python_pools: "#c7b5e6", python_own: "#786e8c",
	stacks: "#009e73",
	stacks_beyond: "#8cd1b8", tls: "#bfe6d1", data: "#cc78a6", text: "#e6b8d4",
	files: "#f0e342", shared: "#b8a833", profiler: "#cccccc", anonymous: "#9e9e9e",
};
/* Of cells, by the live part. */
const CELL_STEPS = [
	{ most: 0, color: "#fac266", text: "free" },
	{ most: 0.25, color: "#cce3f2", text: "up to 25 %" },
	{ most: 0.5, color: "#8cbfe3", text: "50 %" },
	{ most: 0.75, color: "#4794c9", text: "75 %" },
	{ most: 1, color: "#08548f", text: "100 % live" },
];
const CELL_MARK = "#cc1a1a", CELL_MARKED = 0.25, CELL_MAX = 22, CELL_MIN = 3;
const MAP_HEIGHT = 420, ARENAS_SHOWN = 16, CELLS_SHOWN = 100000, BARS_SHOWN = 12;

function isDark(color) {
	const n = parseInt(color.slice(1), 16);

	return 0.3 * (n >> 16) + 0.6 * (n >> 8 & 255) + 0.1 * (n & 255) < 115;
}

/* Cells of one arena: {address, pages, live, marked}, in address order. */
function cellsOf(inspection, arena) {
	const { heaps, cells, page, pages_per_cell: group } = inspection;
	const out = [], next = new Map();

	for (let k = 0; k < cells.heap.length && out.length < CELLS_SHOWN; k++) {
		const heap = cells.heap[k], i = next.get(heap) || 0;

		next.set(heap, i + 1);
		if (heaps.arena[heap] === arena)
			out.push({ address: Number(heaps.start[heap]) + i * page * group,
				pages: cells.pages[k], live: cells.live[k],
				marked: cells.nearly_empty[k] });
	}
	return out;
}

class MemoryView {
	/* @app: {profile, stacks} */
	constructor(app) {
		this.app = app;
		this.inspection = app.profile.raw.inspection;
		this.id = MemoryView.idOf(app.profile);
		this.maps = [];
	}

	/* What the view depends on. A program that runs may be read again. */
	static idOf({ raw, isRunning }) {
		return `${raw.inspection ? raw.inspection.time : "none"} ${isRunning}`;
	}

	/* All of it; draw() must follow when it is in the page. */
	make() {
		const { inspection: n } = this;

		if (!n)
			return el("div", { id: "memory" }, this.absent(), this.request());
		this.total = n.rows.resident.reduce((sum, b) => sum + b, 0);
		return el("div", { id: "memory" }, this.sentence(), this.request(),
			this.doubts(), this.bar(),
			this.table(), ...this.arenas(), el("div", { class: "grid" },
				this.advice(), this.pinned(), this.types(), this.pins()));
	}

	absent() {
		return el("p", { class: "note" }, this.app.profile.isRunning ?
			"What the memory of the process consists of has not been read yet." :
			"The memory of the process was not read.");
	}

	/* How to read it. */
	request() {
		const p = this.app.profile, again = this.inspection ? " again" : "";
		const command = `ptmem --monitor=${p.meta.pid} inspect`;

		return p.isRunning ? el("p", { class: "note", id: "request" }, "Run ",
			el("code", {}, command), ` to read it${again}; the result appears here. ` +
			"The process is stopped meanwhile, for some milliseconds in most cases. " +
			"A heap graph, which can be made in its own tab, reads it, too.") : null;
	}

	sentence() {
		const { inspection: n, total } = this, time = format.seconds(n.time / 1000);

		const malloc = n.malloc ? `malloc: ${n.malloc}.` :
			"malloc was not used, or is not known.";

		return el("p", { class: "note" }, `${format.bytes(total)} were resident after ` +
			`${time}, when the process was read. ${malloc}`);
	}

	doubts() {
		const { text } = this.inspection.doubts;

		return text.length ? el("ul", { class: "doubts" },
			...text.map((line) => el("li", {}, line))) : null;
	}

	/* -- the bar -- */

	segment(name, bytes, color) {
		const share = this.total ? 100 * bytes / this.total : 0;
		const text = `${name} ${format.bytes(bytes)}, ${format.percent(bytes, this.total)}`;

		return bytes ? el("span", { title: text, class: isDark(color) ? "dark" : null,
			style: `width: ${share}%; background: ${color}` }, text) : null;
	}

	bar() {
		const { name, text, resident } = this.inspection.rows, parts = [], rows = [];
		const known = Object.keys(ROW_COLORS);
		const ends = PARTS.map((part) => known.indexOf(part.last));
		const sums = PARTS.map(() => 0);

		name.forEach((row, i) => {
			const at = known.indexOf(row);
			const part = at < 0 ? PARTS.length - 1 : ends.findIndex((end) => at <= end);

			sums[part] += resident[i];
			rows.push([part, this.segment(
				text[i], resident[i], ROW_COLORS[row] || ROW_COLORS.anonymous)]);
		});
		rows.sort((a, b) => a[0] - b[0]);
		PARTS.forEach((part, i) =>
			parts.push(this.segment(part.name, sums[i], part.color)));
		return el("div", { class: "membar", role: "img",
			"aria-label": "Resident memory and its parts" },
		el("div", {}, this.segment("VmRSS", this.total, "#404040")),
		el("div", {}, ...parts), el("div", {}, ...rows.map((row) => row[1])));
	}

	table() {
		const { name, text, resident, swapped } = this.inspection.rows;
		const hasSwap = swapped.some((b) => b);
		const share = (b) => el("span", { class: "share" }, format.percent(b, this.total));
		const row = (color, title, bytes, swap) => el("tr", {},
			el("th", { scope: "row" }, color ? this.swatch(color) : null, title),
			el("td", { class: "n", title: format.exactBytes(bytes) },
				format.bytes(bytes), share(bytes)),
			hasSwap ? el("td", { class: "n" }, format.bytes(swap)) : null);
		const sum = (list) => list.reduce((all, b) => all + b, 0);

		return el("table", { class: "rows" }, el("thead", {}, el("tr", {},
			el("th", { scope: "col" }, "What"),
			el("th", { scope: "col", class: "n" }, "Resident"),
			hasSwap ? el("th", { scope: "col", class: "n" }, "Swapped") : null)),
		el("tbody", {}, ...name.map((id, i) => row(
			ROW_COLORS[id] || ROW_COLORS.anonymous, text[i], resident[i], swapped[i])),
		row(null, "all: VmRSS", this.total, sum(swapped))));
	}

	swatch(color) {
		return el("span", { class: "swatch", style: `background: ${color}` });
	}

	/* -- the map -- */

	arenas() {
		const { arenas: a, heaps } = this.inspection, python = a.address.length;
		const all = [...a.address.keys(), ...heaps.arena.includes(python) ? [python] : []];
		const size = (arena) => arena === python ? this.ofPython() : a.resident[arena];
		const order = all.sort((x, y) => size(y) - size(x));
		const shown = order.slice(0, ARENAS_SHOWN), rest = order.slice(ARENAS_SHOWN);

		this.maps = shown.map((arena) => ({ cells: cellsOf(this.inspection, arena),
			canvas: el("canvas", { class: "map", role: "img", tabindex: 0,
				"aria-label": `Map of ${this.nameOf(arena)}` }) }));
		this.maps.forEach((map) => this.listen(map));
		const parts = shown.flatMap((arena, i) =>
			[el("h3", {}, this.describe(arena)), this.maps[i].canvas]);
		const bytes = rest.reduce((sum, i) => sum + size(i), 0);

		if (!shown.length)
			return [];
		if (rest.length)
			parts.push(el("p", { class: "muted" }, `and ${rest.length} smaller ` +
				`arenas, ${format.bytes(bytes)} resident`));
		return [this.key(), ...parts, el("p", { class: "muted", id: "cell",
			"aria-live": "polite" }, "\u00a0")];
	}

	/* Resident bytes in its arenas: those of @rows, or all. */
	ofPython(...rows) {
		const { name, resident } = this.inspection.rows;
		const isIn = (row) => rows.length ? rows.includes(row) : row.startsWith("python_");

		return name.reduce((sum, row, i) => sum + (isIn(row) ? resident[i] : 0), 0);
	}

	nameOf(arena) {
		const { address, main } = this.inspection.arenas;

		if (arena === address.length)
			return "Python's arenas";
		return main[arena] ? "main arena" : `arena ${address[arena]}`;
	}

	describe(arena) {
		const a = this.inspection.arenas, of = (column) => format.bytes(a[column][arena]);

		if (arena === a.address.length) {
			const sum = (...rows) => format.bytes(this.ofPython(...rows));

			return `${this.nameOf(arena)}: ${sum()} resident, ${sum("python_live")} ` +
				`live, ${sum("python_free", "python_pools")} free`;
		}

		return `${this.nameOf(arena)}: ${of("resident")} resident, ${of("live_bytes")} ` +
			`live in ${format.blocks(a.live_blocks[arena])}, ${of("free")} free, of ` +
			`which malloc_trim would return ${of("trim")}`;
	}

	key() {
		const { page, pages_per_cell: group } = this.inspection;
		const item = (color, text) =>
			el("li", {}, this.swatch(color), el("span", {}, text));
		const cell = group === 1 ? "A cell is a page:" :
			`A cell is ${group} pages, ${format.bytes(group * page)}:`;

		return el("ul", { class: "legend" }, el("li", {}, cell),
		...CELL_STEPS.map((step) => item(step.color, step.text)),
		item(CELL_MARK, "at most 1 KiB live"), item("var(--soft)", "not in memory"));
	}

	/* The largest cells with which all arenas fit. */
	cellSize(width) {
		const height = (size) => this.maps.reduce((sum, map) => sum + size *
			Math.ceil(map.cells.length / Math.max(1, Math.floor(width / size))), 0);
		let size = CELL_MAX;

		while (size > CELL_MIN && height(size) > MAP_HEIGHT)
			size--;
		return size;
	}

	draw() {
		const width = this.maps.length ? this.maps[0].canvas.clientWidth : 0;

		if (!width)
			return;
		this.size = this.cellSize(width);
		this.columns = Math.max(1, Math.floor(width / this.size));
		for (const map of this.maps)
			this.drawMap(map, width);
	}

	drawMap({ canvas, cells }, width) {
		const { size, columns } = this, gap = size > 5 ? 1 : 0;
		const height = size * Math.ceil(cells.length / columns);
		const context = canvasContext(canvas, width, height);
		const soft = getComputedStyle(document.documentElement).getPropertyValue("--soft");

		cells.forEach((cell, i) => {
			const x = i % columns * size, y = Math.floor(i / columns) * size;
			const mark = Math.max(2, Math.round(size * 0.36));

			context.fillStyle = this.color(cell) || soft;
			context.fillRect(x, y, size - gap, size - gap);
			if (!cell.marked || cell.marked < CELL_MARKED * cell.pages)
				return;
			context.fillStyle = CELL_MARK;
			context.fillRect(x + (size - gap - mark) / 2, y + (size - gap - mark) / 2,
				mark, mark);
		});
	}

	/* null: nothing is in memory. */
	color(cell) {
		const part = cell.live / (cell.pages * this.inspection.page);

		return cell.pages ? (CELL_STEPS.find((step) => part <= step.most) ||
			CELL_STEPS[CELL_STEPS.length - 1]).color : null;
	}

	/* The pointer and the arrow keys select a cell; a line below the maps describes it. */
	listen(map) {
		const select = (i) => {
			map.selected = Math.min(map.cells.length - 1, Math.max(0, i));
			this.say(map.cells[map.selected]);
		};

		map.selected = 0;
		map.canvas.addEventListener("pointermove", (e) => select(
			Math.min(this.columns - 1, Math.floor(e.offsetX / this.size)) +
			Math.floor(e.offsetY / this.size) * this.columns));
		map.canvas.addEventListener("focus", () => select(map.selected));
		map.canvas.addEventListener("keydown", (e) => {
			const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns,
				ArrowDown: this.columns }[e.key];

			if (!step)
				return;
			select(map.selected + step);
			e.preventDefault();
		});
	}

	say(cell) {
		const { page } = this.inspection;

		if (!cell)
			return;
		const marked = cell.marked ? `; ${format.count(cell.marked)} of ` +
			`${format.count(cell.pages)} pages with at most 1 KiB live` : "";
		const content = cell.pages ? `${format.bytes(cell.live)} live of ` +
			format.bytes(cell.pages * page) + marked : "not in memory";

		byId("cell").textContent = `0x${cell.address.toString(16)}: ${content}`;
	}

	/* -- lists -- */

	advice() {
		const { text, bytes, limit } = this.inspection.advice;
		const amount = (i) => (limit[i] ? "up to " : "") + format.bytes(bytes[i]);

		return el("section", { class: "detail" }, el("h3", {}, "What would return memory"),
			text.length ? el("ul", { class: "advice" }, ...text.map((line, i) =>
				el("li", {}, el("strong", {}, amount(i)), ` ${line}`))) :
				el("p", { class: "muted" }, "nothing that is known"));
	}

	pinned() {
		const { live_bytes: live, pages } = this.inspection.pinned, sums = new Map();

		live.forEach((most, i) => sums.set(most, (sums.get(most) || 0) + pages[i]));
		return bars("Pages with live blocks, by live bytes", [...sums].map(([most, n]) =>
			[`${format.count(most)} or less`, n, format.count(n)]));
	}

	/* The largest rows of @values, with names. */
	largest(values, row) {
		return [...values.keys()].filter((i) => values[i])
			.sort((a, b) => values[b] - values[a]).slice(0, BARS_SHOWN).map(row);
	}

	types() {
		const { name, blocks, bytes } = this.inspection.types;

		return bars("Live blocks, by how they begin", this.largest(bytes, (i) => [name[i],
			bytes[i], `${format.bytes(bytes[i])} in ${format.count(blocks[i])}`]));
	}

	pins() {
		const { leaf, nearly_empty_pages: pages } = this.inspection.pins;

		return bars("Call paths whose blocks pin nearly empty pages",
			this.largest(pages, (i) =>
				[this.path(leaf[i]), pages[i], format.count(pages[i])]),
			"none are known");
	}

	/* The call site and its callers. */
	path(leaf) {
		const { names } = this.app.stacks, p = this.app.profile, out = [];

		for (let n = p.leafSite[leaf]; n >= 0 && out.length < 6; n = p.nodeParent[n])
			out.push(names.functions[names.frames[p.nodeFrame[n]].fn].name);
		return out.join(" \u2190 ") || "[no stack]";
	}
}
