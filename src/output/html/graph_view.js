/*
 * The heap graph: a treemap of one level and what is below it, a table that opens level by level,
 * and how the selected row is held. The level and the row are part of the address.
 */
"use strict";

const TILE_DEPTH = 3, TILE_HEAD = 17, TILE_MIN = 3, TILES_MOST = 4000;
const MAP_LOW = 240, MAP_HIGH = 460, LEVEL_ROWS = 30, FOUND_ROWS = 100;
const NO_TYPE = "no type is known";

class GraphView {
	/* @app: {state, go(changes)}; @request: an element at the top, or null */
	constructor(app, json, request) {
		this.app = app;
		this.json = json;
		this.graph = json ? new HeapGraph(json) : null;
		this.request = request;
		this.opened = new Set();
		this.limits = new Map();
		this.tiles = [];
		this.focus = 0;
	}

	make() {
		const { state } = this.app;

		if (!this.graph)
			return el("div", { id: "graph" }, this.request);
		this.canvas = el("canvas", { id: "treemap", tabindex: 0, role: "application",
			"aria-label": "Treemap of retained bytes: arrow keys move, Enter opens, " +
				"Escape goes back", "aria-describedby": "graph-status" });
		this.find = el("input", { id: "graph-find", type: "search", autocomplete: "off",
			placeholder: "Find: text or /regex/", spellcheck: "false",
			oninput: (e) => this.app.go({ gfind: e.target.value }) });
		this.find.value = state.gfind;
		this.parts = { crumbs: el("nav", { class: "crumbs", "aria-label": "Levels" }),
			status: el("p", { class: "muted", id: "graph-status",
				"aria-live": "polite" }, "\u00a0"),
			held: el("div", { id: "held" }), table: el("div", { id: "graph-table" }) };
		this.tables = new GraphTables(this.app, this.json,
			el("div", { id: "graph-types" }));
		this.parts.tables = el("div", { class: "group", role: "group",
			"aria-label": "What is shown" });
		this.box = el("div", { class: "canvas-box" }, this.canvas);
		this.listen();
		return el("div", { id: "graph" }, this.request, this.sentence(),
			el("div", { class: "bar" }, this.parts.tables,
				el("span", { class: "grow" }), el("label", { class: "find" },
					el("span", { class: "sr" }, "Find names and types"),
					this.find)),
			this.parts.crumbs, this.box, this.parts.status,
			this.parts.held, this.parts.table, this.tables.place);
	}

	/* Owners and what is below, or a table of types. */
	showTables() {
		const { tables } = this, { current, tabs } = tables, isTree = current === "tree";

		this.parts.tables.replaceChildren(...tabs.length < 2 ? [] : tabs.map(
			([id, title]) => el("button", { type: "button", "data-value": id,
				"aria-pressed": String(id === current),
				onclick: () => this.choose(id) }, title)));
		for (const part of [this.parts.crumbs, this.box, this.parts.status,
			this.parts.held, this.parts.table])
			part.hidden = !isTree;
		tables.place.hidden = isTree;
		if (!isTree)
			tables.show();
		return isTree;
	}

	choose(id) {
		this.app.go({ gtable: id === "tree" ? "" : id, gsort: "" });
		this.parts.tables.querySelector(`[data-value="${id}"]`).focus();
	}

	sentence() {
		const { bytes, blocks, stopped_ms: stopped, states } = this.json;
		const lost = states["definitely lost"].bytes + states["indirectly lost"].bytes;
		const parts = [`${format.bytes(bytes)} in ${format.blocks(blocks)} in use.`];

		if (lost)
			parts.push(`Nothing leads to ${format.bytes(lost)} of them.`);
		if (stopped)
			parts.push("The process was stopped for " +
				`${format.seconds(stopped / 1000)}.`);
		parts.push("Retained: what would be free without the row, to the byte.");
		return el("p", { class: "note", id: "graph-sum", title: format.exactBytes(bytes) },
			parts.join(" "));
	}

	/* After make(), when it is in the page, and whenever the state changes. */
	show() {
		const { graph, app: { state } } = this;

		if (!graph)
			return;
		this.level = graph.read(state.graph);
		this.held = graph.read(state.held);
		if (this.find.value !== state.gfind)
			this.find.value = state.gfind;
		if (!this.showTables())
			return;
		this.showCrumbs();
		this.draw();
		this.showHeld();
		this.showTable();
	}

	go(changes) {
		this.focus = 0;
		this.app.go(changes);
	}

	/* Opens the level of a row, or selects one that has nothing below. */
	openLevel(i) {
		const held = i === TOP ? "" : String(i);

		this.go(held && !this.graph.children(i).length ? { held } : { graph: held, held });
	}

	showCrumbs() {
		const { graph, level } = this, parts = [];
		const short = (i) => i === TOP ? "All blocks" : graph.short(i, 40);
		const crumb = (i) => i === level ?
			el("span", { class: "here", title: graph.name[i] || null }, short(i)) :
			el("button", { type: "button", title: graph.name[i] || null,
				onclick: () => this.openLevel(i) }, short(i));

		for (const i of [TOP, ...graph.path(level)])
			parts.push(parts.length ? el("span", { "aria-hidden": "true" }, "\u203a") :
				null, crumb(i));
		parts.push(el("span", { class: "muted" },
			` ${format.bytes(graph.bytes(level))} ` +
			`in ${format.blocks(graph.blockCount(level))}`));
		this.parts.crumbs.replaceChildren(...parts.filter(Boolean));
	}

	/* -- the treemap -- */

	/* The children of @i, and its own bytes, as items of squarify. */
	items(i) {
		const { graph } = this;
		const out = graph.children(i).map((row) => ({ row, size: graph.retained[row] }));

		if (i !== TOP && out.length && graph.own[i])
			out.push({ row: i, size: graph.own[i], isOwn: true });
		return out.sort((a, b) => b.size - a.size);
	}

	layout(i, box, depth) {
		for (const item of squarify(this.items(i), box)) {
			const { w, h } = item.box;

			if (w < TILE_MIN || h < TILE_MIN || this.tiles.length >= TILES_MOST)
				continue;
			this.tiles.push(Object.assign(item, { depth, parent: i }));
			if (!item.isOwn && depth < TILE_DEPTH && w > 26 && h > TILE_HEAD + 12)
				this.layout(item.row, { x: item.box.x + 3, w: w - 6,
					y: item.box.y + TILE_HEAD, h: h - TILE_HEAD - 3 },
				depth + 1);
		}
	}

	draw() {
		const width = this.graph ? this.canvas.parentNode.clientWidth : 0;
		const height = Math.max(MAP_LOW, Math.min(MAP_HIGH, Math.round(width * 0.42)));

		if (!width)
			return;
		const c = canvasContext(this.canvas, width, height);
		const style = getComputedStyle(document.documentElement);
		const color = (name) => style.getPropertyValue(name).trim();

		this.isDark = document.documentElement.dataset.theme === "dark";
		this.look = { panel: color("--panel"), text: color("--text"), soft: color("--soft"),
			frame: color("--frame-text"), match: color("--match") };
		c.font = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", " +
			"\"DejaVu Sans\", sans-serif";
		c.textBaseline = "middle";
		this.tiles = [];
		if (this.graph.children(this.level).length)
			this.layout(this.level, { x: 0, y: 0, w: width, h: height }, 1);
		else
			this.tiles.push({ row: this.level, depth: 1, isOwn: true,
				box: { x: 0, y: 0, w: width, h: height } });
		this.match = matcher(this.app.state.gfind);
		for (const tile of this.tiles)
			this.drawTile(c, tile);
		this.drawFocus(c);
	}

	color({ row, isOwn }) {
		const { graph, look } = this, kind = graph.kind[row], text = graph.type[row];

		if (row === TOP || kind === "rest" || isOwn)
			return look.soft;
		if (this.match && (this.match(graph.name[row]) || this.match(text)))
			return look.match;
		if (kind === "shared" || !text)
			return this.hsl(215, 8, 84);
		if (text === "lost")
			return this.hsl(6, 66, 76);
		return this.hsl(GraphView.hue(text), 48, 77);
	}

	hsl(hue, saturation, light) {
		return `hsl(${hue}, ${saturation}%, ${this.isDark ? light - 14 : light}%)`;
	}

	/* Of a type's name: the same in all pages. Red is for what is lost. */
	static hue(text) {
		let h = 0x811c9dc5;

		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		return 30 + ((h ^ h >>> 15) >>> 0) % 300;
	}

	drawTile(c, tile) {
		const { x, y, w, h } = tile.box, fill = this.color(tile);

		c.fillStyle = fill;
		c.fillRect(x, y, w, h);
		c.strokeStyle = this.look.panel;
		c.lineWidth = tile.depth === 1 ? 2 : 1;
		c.strokeRect(x, y, w, h);
		if (tile.isOwn || w < 34 || h < TILE_HEAD - 2)
			return;
		c.fillStyle = fill === this.look.soft ? this.look.text : this.look.frame;
		this.drawLabel(c, tile.row, { x: x + 4, y: y + TILE_HEAD / 2, width: w - 8 });
	}

	drawLabel(c, row, { x, y, width }) {
		const size = format.bytes(this.graph.retained[row]);
		const character = this.character || (this.character =
			c.measureText("nnnnnnnnnn").width / 10);
		const beside = c.measureText(`  ${size}`).width, hasSize = width > beside + 40;
		const room = Math.floor((width - (hasSize ? beside : 0)) / character);
		let text = room > 1 ? this.graph.short(row, room) : "";

		while (text && c.measureText(text).width > width - (hasSize ? beside : 0))
			text = text.length > 2 ? `${[...text].slice(0, -2).join("")}\u2026` : "";
		c.fillText(text, x, y);
		if (hasSize)
			c.fillText(size, x + width - c.measureText(size).width, y);
	}

	drawFocus(c) {
		const tile = this.tiles[this.focus];

		if (document.activeElement !== this.canvas || !tile)
			return;
		c.strokeStyle = this.look.text;
		c.lineWidth = 2;
		c.strokeRect(tile.box.x + 1, tile.box.y + 1, tile.box.w - 2, tile.box.h - 2);
	}

	/* The innermost tile there. */
	tileAt(x, y) {
		let found = null;

		for (const tile of this.tiles) {
			const b = tile.box;

			if (x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h)
				found = tile;
		}
		return found;
	}

	listen() {
		const { canvas } = this;

		canvas.addEventListener("pointermove", (e) =>
			this.tip(this.tileAt(e.offsetX, e.offsetY), e));
		canvas.addEventListener("pointerleave", () => this.tip(null));
		canvas.addEventListener("click", (e) => this.click(e));
		canvas.addEventListener("keydown", (e) => this.key(e));
		canvas.addEventListener("focus", () => this.setFocus(this.focus));
		canvas.addEventListener("blur", () => this.draw());
	}

	/* One level at a time: the outermost tile there is opened. */
	click(e) {
		const tile = this.tileAt(e.offsetX, e.offsetY);
		let row = tile ? tile.row : TOP;

		this.tip(null);
		while (row !== TOP && row !== this.level && this.graph.parent[row] !== this.level)
			row = this.graph.parent[row];
		if (row !== TOP && row !== this.level)
			this.openLevel(row);
	}

	/* Tiles of the first level. */
	setFocus(i) {
		const tile = this.tiles[i];

		this.focus = i;
		this.draw();
		if (tile && tile.row !== TOP)
			this.say(tile);
	}

	key(e) {
		const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
		const first = [...this.tiles.keys()].filter((i) => this.tiles[i].depth === 1);
		const tile = this.tiles[this.focus];

		if (step) {
			const at = first.indexOf(this.focus) + step;

			this.setFocus(first[Math.max(0, Math.min(first.length - 1, at))]);
		} else if (e.key === "Enter" && tile && !tile.isOwn) {
			this.openLevel(tile.row);
		} else if (e.key === "Escape" && this.level !== TOP) {
			this.openLevel(this.graph.parent[this.level]);
		} else {
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	}

	say({ row, isOwn }) {
		const { graph } = this, share = format.percent(graph.bytes(row), this.json.bytes);

		this.parts.status.textContent = graph.describe(row) + (isOwn ? ": its own bytes" :
			` retains ${format.exactBytes(graph.bytes(row))} in ` +
			`${format.blocks(graph.blockCount(row))}, ${share}`);
	}

	tip(tile, e) {
		const box = byId("tip"), { graph } = this;

		box.hidden = !tile || tile.row === TOP;
		if (box.hidden)
			return;
		const { row, isOwn } = tile, bytes = graph.bytes(row);
		const list = [["retained", `${format.bytes(bytes)} (${format.count(bytes)})`],
			["share", format.percent(bytes, this.json.bytes)],
			["blocks", format.count(graph.blockCount(row))]];

		if (graph.kind[row] === "block")
			list.unshift(["type", graph.type[row] || NO_TYPE],
				[isOwn ? "own bytes" : "block", format.exactBytes(graph.own[row])],
				["address", graph.address[row]]);
		box.replaceChildren(el("strong", {}, graph.name[row]), el("dl", {}, ...list.flatMap(
			([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
		placeTip(box, e.clientX, e.clientY, innerWidth, innerHeight);
		this.say(tile);
	}

	/* -- how a row is held -- */

	showHeld() {
		const { graph, held } = this;

		if (held === TOP) {
			this.parts.held.replaceChildren();
			return;
		}
		const way = graph.way[held], steps = graph.path(held);
		const item = (i) => el("li", {}, el("button", { class: "link", type: "button",
			title: graph.describe(i), onclick: () => this.openLevel(i) },
		cutText(graph.describe(i), 90)),
		el("span", { class: "muted" }, ` retains ${format.bytes(graph.bytes(i))} in ` +
			format.blocks(graph.blockCount(i))));

		this.parts.held.replaceChildren(el("section", { class: "detail" },
			el("h3", {}, "All ways to it pass"),
			el("ol", { class: "held" }, ...steps.map(item)),
			way ? el("p", {}, el("span", { class: "muted" }, "The shortest way: "),
				el("code", {}, way)) : null));
	}

	/* -- the table -- */

	showTable() {
		const { graph, app: { state } } = this, match = matcher(state.gfind);
		const body = el("tbody"), found = match ? graph.search(match) : null;

		if (found)
			this.addFound(body, found);
		else
			this.addLevel(body, this.level, 0);
		const head = [["Owner or type", ""], ["Kind", "less"], ["Own bytes", "n less"],
			["Retained", "n"], ["Share", "n less"], ["Blocks", "n"]];

		this.parts.table.replaceChildren(...found ? [el("p", { class: "note",
			id: "graph-found" }, `${format.count(found.length)} of ` +
			`${format.count(graph.count)} rows. What is in rows of others is not ` +
			"searched.")] : [], el("table", { class: "graph" },
			el("thead", {}, el("tr", {}, ...head.map(([title, look]) => el("th",
				{ scope: "col", class: look || null }, title)))), body));
	}

	addFound(body, found) {
		const limit = this.limits.get("found") || FOUND_ROWS;

		for (const i of found.slice(0, limit))
			this.addRow(body, i, 0, this.graph.path(this.graph.parent[i]));
		this.addMore(body, "found", found.length, limit, 0);
	}

	addLevel(body, level, indent) {
		const list = this.graph.children(level);
		const limit = this.limits.get(level) || LEVEL_ROWS;

		for (const i of list.slice(0, limit)) {
			this.addRow(body, i, indent, null);
			if (this.opened.has(i))
				this.addLevel(body, i, indent + 1);
		}
		this.addMore(body, level, list.length, limit, indent);
		if (!list.length && !indent)
			body.append(el("tr", {}, el("td", { colspan: 6, class: "muted" },
				"Nothing is below it.")));
	}

	addMore(body, key, count, limit, indent) {
		if (count > limit)
			body.append(el("tr", {}, el("td", { colspan: 6 }, el("button", {
				type: "button", style: `margin-left: ${indent * 16}px`,
				onclick: () => {
					this.limits.set(key, limit * 4);
					this.showTable();
				} }, `Show more (${format.count(count - limit)} left)`))));
	}

	/* @above: of a row that was searched for: what it is in. */
	addRow(body, i, indent, above) {
		const { graph } = this, isOpen = !above && this.opened.has(i);
		const hasMore = !above && graph.children(i).length > 0, name = graph.name[i];
		const kind = graph.kind[i];
		const where = above ? above.map((k) => graph.name[k]).join(" \u203a ") :
			kind === "block" && name !== graph.address[i] ? graph.address[i] : "";
		const tr = el("tr", { class: [isOpen ? "open" : "", i === this.held ? "chosen" : ""]
			.join(" ").trim() || null, "data-row": i });
		const number = (text, title, more) => el("td", { class: `n ${more}`, title }, text);

		tr.append(el("th", { scope: "row", class: "name" }, el("span", { class: "held",
			style: `--depth: ${Math.min(indent, 20)}` },
		hasMore ? this.twist(i, isOpen) : el("span", { class: "twist-room" }),
		el("span", { class: "what" }, el("button", { class: "link function", type: "button",
			title: name, onclick: () => this.openLevel(i) }, graph.short(i, 70)),
		where ? el("span", { class: "where", title: where }, cutText(where, 60)) : null))),
		el("td", { class: "less" }, kind === "owner" ? graph.type[i] : kind),
		number(graph.own[i] ? format.bytes(graph.own[i]) : "",
			graph.own[i] ? format.exactBytes(graph.own[i]) : null, "less"),
		number(format.bytes(graph.bytes(i)), format.exactBytes(graph.bytes(i)), ""),
		number(format.percent(graph.bytes(i), this.json.bytes), null, "less"),
		number(format.count(graph.blockCount(i)), null, ""));
		tr.addEventListener("click", (e) => {
			if (!e.target.closest("button"))
				this.app.go({ held: String(i) });
		});
		body.append(tr);
	}

	twist(i, isOpen) {
		return el("button", { class: "twist", type: "button",
			"aria-expanded": String(isOpen),
			"aria-label": `What is below ${this.graph.name[i]}`, onclick: () => {
				if (isOpen)
					this.opened.delete(i);
				else
					this.opened.add(i);
				this.showTable();
				const again = this.parts.table.querySelector(
					`[data-row="${i}"] .twist`);

				if (again)
					again.focus({ preventScroll: true });
			} });
	}
}
