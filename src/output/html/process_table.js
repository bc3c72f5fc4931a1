/* The table of processes: a click shows the report of one, "All together" that of all. */
"use strict";

const ROWS = 12;        /* before "Show more" */
const TREE_ROWS = 25;   /* more are sorted by their peaks */


class ProcessTable {
	constructor(app) {
		const { processes } = app;

		this.app = app;
		this.processes = processes;
		this.sort = processes.rows.length > TREE_ROWS ? { id: "peak", up: false } :
			{ id: "tree", up: true };
		byId("processes").hidden = false;
		byId("processes-all").addEventListener("click", () => app.go({ process: "" }));
		this.find = byId("process-find");
		this.find.addEventListener("input", () => app.go({ which: this.find.value }));
		this.table = new TableView(byId("process-table"), this.columns(), {
			sort: (sort) => { this.sort = sort; this.show(); },
			choose: (row) => row.meta && this.choose(row),
			limit: ROWS });
	}

	choose(row) {
		const index = String(this.processes.rows.indexOf(row));

		this.app.go({ process: this.app.state.process === index ? "" : index });
	}

	show() {
		const { rows } = this.processes, { process, which } = this.app.state;
		const match = matcher(which);

		rows.forEach((row, i) => {
			row.key = i;
			row.name = row.command || row.file || "";
			row.detail = `${row.pid} ${row.name}`; /* in the copy as CSV */
			row.isChosen = String(i) === process;
		});
		byId("processes-all").setAttribute("aria-pressed", String(!process));
		byId("processes-text").textContent = this.text();
		if (this.find.value !== which)
			this.find.value = which;
		this.find.setAttribute("aria-invalid",
			String(Boolean(which) && !match && which !== "/"));
		this.table.show(rows, this.sort, match && ((row) => match(row.detail)));
	}

	/* "37, one cannot be read" */
	text() {
		const { rows, known } = this.processes, missing = rows.length - known.length;
		const killed = known.filter((r) => /^killed/.test(r.meta.exit || "")).length;
		const cut = known.filter((r) => r.meta.incomplete).length;
		const parts = [[missing, "cannot be read"], [killed, "killed by a signal"],
			[cut, "incomplete"]];

		return [String(rows.length), ...parts.filter(([n]) => n).map(
			([n, what]) => `${n} ${what}`)].join(", ");
	}

	columns() {
		const bytes = (id, title, help) => ({ id, title, help,
			value: (r) => r[`${id}_bytes`],
			text: (r) => r.meta ? format.bytes(r[`${id}_bytes`]) : "" });
		const seconds = (id, title, help) => ({ id, title, help, value: (r) => r[id],
			text: (r) => r.meta ? format.seconds(r[id] / 1000) : "" });
		const hasLeaks = this.processes.known.some((r) => r.leaks);

		return [
			{ id: "tree", title: "Process", isText: true, value: (r) => r.key,
				help: "In the order of the tree of processes",
				node: (r) => this.name(r), isWide: true },
			{ ...bytes("peak", "Peak", "The most that it held at one time"),
				isDefault: true },
			bytes("end", "At its end", "What it held when it ended"),
			...hasLeaks ? [bytes("leaked", "Leaked")] : [],
			{ id: "allocations", title: "Allocations", value: (r) => r.allocations,
				text: (r) => r.meta ? format.short(r.allocations) : "" },
			seconds("start", "Begin", "After the first process began"),
			seconds("duration", "Length"),
			{ id: "curve", title: "Over time", node: (r) => this.curve(r) },
			{ id: "exit", title: "End", isText: true,
				value: (r) => this.end(r), text: (r) => this.end(r) },
		];
	}

	end(row) {
		return row.problem || row.meta.exit ||
			(row.meta.incomplete ? "not known: incomplete" : "");
	}

	name(row) {
		const indent = this.sort.id === "tree" ? Math.min(row.depth, 12) : 0;
		const part = row.meta && row.meta.part ? ` part ${row.meta.part}` : "";
		const text = row.meta ? this.processes.words(row) : row.name;

		return el("span", { class: "process", style: `--depth: ${indent}`,
			title: row.name },
		row.meta ? el("button", { class: "link",
			"aria-current": row.isChosen ? "true" : null,
			onclick: () => this.choose(row) }, text) : text,
		row.pid ? el("span", { class: "where" }, `${row.pid}${part}`) : null);
	}

	curve(row) {
		if (!row.meta)
			return "";
		row.values = row.values || this.processes.curve(row);
		return sparkline(row.values, row.values.reduce((m, v) => Math.max(m, v), 0));
	}
}
