/* The tables of a heap graph's types: by type, by field, containers, padding, equal strings. */
"use strict";

const GRAPH_TABLES = [["tree", "Owners"], ["types", "Types"], ["fields", "Fields"],
	["containers", "Containers"], ["padding", "Padding"], ["strings", "Equal strings"]];

const GRAPH_TABLE_NOTES = {
	types: "Bytes of the blocks of each type.",
	fields: "What a field holds alone, in all objects. A field on the way to others contains " +
		"these; what it holds directly is in no other row.",
	containers: "Bytes that no element uses, and containers without elements.",
	padding: "Bytes that are lost between members, in all objects; in the order of members " +
		"that is given it would be less.",
	strings: "Equal strings in several blocks. What is in them is not in the page.",
};

class GraphTables {
	/* @app: {state, go(changes)}; @json: of the graph; @place: an element */
	constructor(app, json, place) {
		this.app = app;
		this.json = json;
		this.place = place;
		this.views = new Map();
	}

	/* [[id, title]], those that have rows. */
	get tabs() {
		return GRAPH_TABLES.filter(([id]) => id === "tree" || this.rows(id).length);
	}

	/* The table that is chosen; "tree" if it has no rows. */
	get current() {
		const { gtable } = this.app.state;

		return this.tabs.some(([id]) => id === gtable) ? gtable : "tree";
	}

	rows(id) {
		const { json } = this, strings = json.equal_strings || {};
		const list = (id === "strings" ? strings.rows : json[id]) || [];

		return list.map((row, key) => ({ ...row, key, name: row.type || row.field ||
			`${format.count(row.length)} bytes` }));
	}

	show() {
		const { state } = this.app, id = this.current;
		const [sort, direction] = state.gsort.split("-");

		if (!this.views.has(id))
			this.views.set(id, this.makeView(id));
		const { note, view } = this.views.get(id), match = matcher(state.gfind);

		this.place.replaceChildren(note, view.place);
		view.show(this.rows(id), { id: sort, up: direction === "up" },
			match ? (row) => match(row.name) || match(row.order || "") : null);
	}

	makeView(id) {
		return { note: el("p", { class: "note" }, GRAPH_TABLE_NOTES[id]),
			view: new TableView(el("div", { class: "graph-types" }), this.columns(id), {
				sort: ({ id: by, up }) => this.app.go({
					gsort: `${by}-${up ? "up" : "down"}` }) }) };
	}

	columns(id) {
		const name = (title) => ({ id: "what", title, isText: true, isWide: true,
			value: (row) => row.name, node: (row) => el("span", { class: "type",
				title: row.name }, cutText(row.name, 120)) });
		const bytes = (key, title, isDefault) => ({ id: key, title, isDefault,
			value: (row) => row[key] || 0, node: (row) => el("span", {
				title: format.exactBytes(row[key] || 0) },
			format.bytes(row[key] || 0)) });
		const count = (key, title) => ({ id: key, title, value: (row) => row[key],
			text: (row) => format.count(row[key]) });

		return {
			types: () => [name("Type"), bytes("bytes", "Bytes", true),
				count("blocks", "Blocks")],
			fields: () => [name("Field"), bytes("retained_bytes", "Retained", true),
				count("retained_blocks", "Blocks"), bytes("own_bytes", "Directly"),
				count("own_blocks", "Blocks directly")],
			containers: () => [name("Type"), count("containers", "Containers"),
				count("empty", "Empty"), bytes("empty_bytes", "In empty ones"),
				bytes("capacity_bytes", "Capacity"), bytes("used_bytes", "Used"),
				this.sum("unused", "Not used",
					(row) => row.capacity_bytes - row.used_bytes)],
			padding: () => [name("Type"), count("objects", "Objects"),
				count("size", "Size"), count("padding", "Padding"),
				this.sum("lost", "Lost in all",
					(row) => row.padding * row.objects),
				this.sum("less", "Can be less by",
					(row) => (row.size - row.best_size) * row.objects),
				{ id: "order", title: "In this order", isText: true,
					node: (row) => el("code", { class: "order" },
						row.order || "") }],
			strings: () => [name("Length"), count("copies", "Copies"),
				bytes("bytes", "Bytes"),
				bytes("saved_bytes", "Less if kept once", true)],
		}[id]();
	}

	/* A column that is computed; of padding, where it may be less, "up to". */
	sum(id, title, value) {
		return { id, title, value, isDefault: id === "unused" || id === "lost",
			node: (row) => el("span", { title: format.exactBytes(value(row)) },
				(row.is_upper_bound ? "up to " : "") + format.bytes(value(row))) };
	}
}
