/* A table: sortable columns, a limited number of rows, expandable rows. */
"use strict";

const PAGE = 50;

class TableView {
	/*
	 * @columns: {id, title, help, value(row), text(row) or node(row), isText}
	 * @on: {sort({id, up}), open(row): element, choose(row), limit: rows shown at first}
	 */
	constructor(place, columns, on) {
		this.place = place;
		this.columns = columns;
		this.on = on;
		this.limit = on.limit || PAGE;
		this.opened = new Set();
	}

	show(rows, sort, filter) {
		this.rows = rows;
		this.sort = this.columns.some((c) => c.id === sort.id) ? sort : this.defaultSort();
		const shown = filter ? rows.filter(filter) : rows.slice();

		this.order(shown);
		this.render(shown);
	}

	defaultSort() {
		const column = this.columns.find((c) => c.isDefault) || this.columns[1];

		return { id: column.id, up: false };
	}

	order(rows) {
		const { id, up } = this.sort, sign = up ? 1 : -1;
		const column = this.columns.find((c) => c.id === id);

		rows.sort((a, b) => {
			const x = column.value(a), y = column.value(b);

			if (x !== y)
				return (x < y || x === null ? -1 : 1) * sign;
			return a.name < b.name ? -1 : a.name > b.name ? 1 : a.key - b.key;
		});
	}

	render(rows) {
		const body = el("tbody");

		for (const row of rows.slice(0, this.limit))
			this.addRow(body, row);
		if (!rows.length)
			body.append(el("tr", {}, el("td",
				{ colspan: this.columns.length, class: "muted" },
				"Nothing here.")));
		const table = el("table", {}, this.head(), body), parts = [table];

		if (rows.length > this.limit)
			parts.push(el("p", { class: "more" },
				el("button", { onclick: () => this.showMore(rows) },
					`Show more (${format.count(rows.length - this.limit)} ` +
					"left)")));
		if (rows.length)
			parts.push(el("p", { class: "copy" }, el("button",
				{ onclick: (e) => this.copy(rows, e.target) }, "Copy as CSV")));
		this.place.replaceChildren(...parts);
		this.fit();
	}

	/* All @rows, with numbers as they are: bytes, seconds. */
	csv(rows) {
		const columns = this.columns.filter((c) => c.value);
		const lines = rows.map((row) => columns.map((c) => csvField(c.value(row)))
			.concat(csvField(row.detail)));

		lines.unshift(columns.map((c) => csvField(c.title)).concat(csvField("where")));
		return lines.map((line) => line.join(",") + "\r\n").join("");
	}

	async copy(rows, button) {
		button.textContent = await copyText(this.csv(rows)) ?
			`Copied ${format.count(rows.length)} row${rows.length === 1 ? "" : "s"}` :
			"The browser does not allow it";
	}

	/* Shortens the names to their cells; the source line beside or below stays whole. */
	fit() {
		if (!this.place.isConnected)
			return;
		const names = [...this.place.querySelectorAll("th.name .function")];

		for (const span of names)
			span.textContent = span.title;
		const rooms = names.map((span) => this.room(span));

		names.forEach((span, i) => {
			if (span.title.length > rooms[i])
				span.textContent = shorten(span.title, rooms[i]);
		});
	}

	/* Characters that fit in the line of @span. */
	room(span) {
		const cell = span.closest("th"), style = getComputedStyle(cell);
		const where = cell.querySelector(".where"), twist = cell.querySelector(".twist");
		const beside = where && getComputedStyle(where);
		const left = cell.clientWidth - parseFloat(style.paddingLeft) -
			parseFloat(style.paddingRight) - (twist ? twist.offsetWidth : 0) -
			(beside && beside.display !== "block" ?
				where.offsetWidth + parseFloat(beside.marginLeft) : 0);

		if (!span.title.length)
			return 0;
		const width = span.offsetWidth / span.title.length;

		return Math.max(4, Math.floor(left / width - 0.5));
	}

	showMore(rows) {
		this.limit *= 4;
		this.render(rows);
	}

	head() {
		const row = el("tr");

		for (const column of this.columns) {
			const isSorted = this.sort.id === column.id;
			const order = this.sort.up ? "ascending" : "descending";

			row.append(el("th", { scope: "col", class: column.isText ? "" : "n",
				"aria-sort": isSorted ? order : null },
			column.value ? this.sortButton(column, isSorted) : column.title));
		}
		return el("thead", {}, row);
	}

	sortButton(column, isSorted) {
		const arrow = !isSorted ? "" : this.sort.up ? " \u25b4" : " \u25be";

		return el("button", { title: column.help || null, "data-sort": column.id,
			onclick: () => this.sortBy(column) },
		column.title, el("span", { class: "arrow", "aria-hidden": "true" }, arrow));
	}

	sortBy(column) {
		const isSame = this.sort.id === column.id;
		const up = isSame ? !this.sort.up : Boolean(column.isText);

		this.on.sort({ id: column.id, up });
		this.place.querySelector(`[data-sort="${column.id}"]`).focus();
	}

	addRow(body, row) {
		const isOpen = this.opened.has(row.key);
		const tr = el("tr", { class: isOpen ? "open" : row.isChosen ? "chosen" : null });

		for (const column of this.columns)
			tr.append(this.cell(column, row, isOpen));
		body.append(tr);
		tr.addEventListener("click", (e) => {
			if (e.target.closest("button, a"))
				return;
			if (this.on.open)
				this.toggle(tr, row);
			else if (this.on.choose)
				this.on.choose(row);
		});
		if (isOpen)
			this.open(tr, row);
	}

	cell(column, row, isOpen) {
		if (column.id === "name")
			return el("th", { scope: "row", class: "name" },
				this.on.open ? this.twist(row, isOpen) : null,
				el("span", { class: "function", title: row.name }, row.name),
				row.detail ? this.where(row) : null);
		if (column.isWide)
			return el("th", { scope: "row", class: "name" }, column.node(row));
		if (column.node)
			return el("td", { class: column.isText ? "" : "n" }, column.node(row));
		return el("td", { class: column.isText ? "" : "n" }, column.text(row));
	}

	where(row) {
		const { file, line } = row.source || {};
		const href = editorLink(this.on.editor ? this.on.editor() : "", file, line);

		return href ?
			el("a", { class: "where", href, title: `${file}:${line}` }, row.detail) :
			el("span", { class: "where" }, row.detail);
	}

	twist(row, isOpen) {
		return el("button", { class: "twist", "aria-expanded": String(isOpen),
			"aria-label": `Details of ${row.name}`,
			onclick: (e) => this.toggle(e.target.closest("tr"), row) });
	}

	toggle(tr, row) {
		const isOpen = this.opened.has(row.key);

		tr.classList.toggle("open", !isOpen);
		tr.querySelector(".twist").setAttribute("aria-expanded", String(!isOpen));
		if (isOpen) {
			this.opened.delete(row.key);
			tr.nextSibling.remove();
		} else {
			this.opened.add(row.key);
			this.open(tr, row);
		}
	}

	open(tr, row) {
		tr.after(el("tr", { class: "details" },
			el("td", { colspan: this.columns.length }, this.on.open(row))));
	}
}
