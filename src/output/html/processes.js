/*
 * Several processes in one page: the profile of each, and that of all of them together, which is
 * computed here from theirs. Both are of the form that Profile reads.
 *
 * A process has its own timeline. The one of all has moments (recording/processes.h): at each the
 * process is in a state, the end of one of its own intervals, or its exact peak (-1). So its cells
 * become cells of these moments, and at its peak they are changed so that each leaf holds what it
 * held then: sums at a moment are exact.
 */
"use strict";

const AT_PEAK = -1;
const COMMAND = 52;     /* characters of a command */
const WORD = 20;        /* of a word of one */

class Processes {
	constructor(json, names) {
		const nodes = json.nodes;
		const frame = names.add(json.frames, json.objects);

		this.rows = json.processes;
		this.known = this.rows.filter((row) => row.meta);
		this.count = this.countWords();
		this.total = json.total;
		this.thinned = json.thinned;
		this.rules = json.my_code;
		this.sources = json.sources; /* or undefined */
		this.shared = { parent: Int32Array.from(nodes.parent),
			frame: Int32Array.from(nodes.frame, (f) => frame[f]) };
		this.largest = this.known.reduce(
			(best, row) => row.peak_bytes > best.peak_bytes ? row : best);
	}

	/* @which: the index of a row as a text; else of all. */
	json(which) {
		const row = this.row(which);

		return { ...row ? { ...row, shared: this.shared, my_code: this.rules } : this.all(),
			sources: this.sources };
	}

	row(which) {
		const row = /^\d+$/.test(which) ? this.rows[Number(which)] : null;

		return row && row.meta ? row : null;
	}

	/* How many commands of each program have each word: "cc1", "cc1\0lvm.c" */
	countWords() {
		const out = new Map();

		for (const { command } of this.known) {
			const [program, ...words] = command.split(" ");

			for (const key of ["", ...new Set(words)].map((w) => `${program}\0${w}`))
				out.set(key, (out.get(key) || 0) + 1);
		}
		return out;
	}

	/* The program's base name, and its words that few other processes of the program have. */
	rareWords(row) {
		const [program, ...words] = row.command.split(" ");
		const count = (word) => this.count.get(`${program}\0${word}`);
		const isRare = (word, i) => word && words.indexOf(word) === i &&
			count(word) <= Math.max(1, count("") / 4);

		return [baseName(program) || "process", words.map(
			(word, i) => isRare(word, i) ? word : null)];
	}

	/* "cc1 \u2026 lvm.c \u2026": a command, shortened to what makes it different. */
	words(row) {
		const [program, rare] = this.rareWords(row), [first] = row.command.split(" ", 1);
		const whole = program + row.command.slice(first.length);
		const parts = [program];

		if (whole.length <= COMMAND)
			return whole;
		for (const word of rare)
			if (word || parts[parts.length - 1] !== "\u2026")
				parts.push(word || "\u2026");
		const text = parts.join(" ");

		if (!rare.some(Boolean))
			return whole.slice(0, COMMAND / 2) + "\u2026" +
				whole.slice(1 - COMMAND / 2);
		return text.length <= COMMAND ? text : `${text.slice(0, COMMAND - 1)}\u2026`;
	}

	/* "cc1 lvm.c (4711)" */
	name(row) {
		const [program, rare] = this.rareWords(row);
		const word = rare.find((w) => w && w[0] !== "-" && w.length <= WORD);

		return `${program}${word ? ` ${word}` : ""} (${row.pid})`;
	}

	/* The forked children, and the bytes that they began with. */
	forks() {
		const forked = this.known.filter((r) => r.markers.some((m) => m.kind === "fork"));
		const inherited = ({ cells: { born, bytes } }) =>
			bytes.reduce((sum, n, i) => sum + (born[i] < 0 ? n : 0), 0);

		return { count: forked.length,
			bytes: forked.reduce((sum, row) => sum + inherited(row), 0) };
	}

	sum(column) {
		return this.known.reduce((sum, row) => sum + row[column], 0);
	}

	/* Live bytes of @row at each moment. */
	curve(row) {
		const out = new Float64Array(this.total.time.length);

		row.state.forEach((state, i) => {
			out[row.first + i] = state === AT_PEAK ? row.peak.bytes :
				row.timeline.live_bytes[state];
		});
		return out;
	}

	/* -- all together -- */

	all() {
		const out = { shared: this.shared, my_code: this.rules, processes: this,
			meta: this.meta(), threads: [], leaves: this.joinLeaves(),
			timeline: { interval: 0, time: this.total.time,
				live_bytes: this.total.live_bytes } };

		out.leaks = this.join("leaks");
		out.leak_ages = this.join("leak_ages");
		out.releases = this.joinReleases();
		out.cells = this.joinCells();
		out.peak = this.peak(out.cells);
		out.peaks = this.joinColumns((row) => row.peak, ["leaf", "bytes_of", "blocks_of",
			"variance_of"]);
		out.left = this.left();
		for (const row of this.known)
			out.threads.push(...row.threads);
		return out;
	}

	meta() {
		const [first] = this.known, starts = this.known.map((row) => row.meta.start);

		return { ...first.meta, pid: 0, exit: null, lost: [], attached: false,
			incomplete: false, corrupt: false, times: null, overhead: undefined,
			start: Math.min(...starts.filter(Boolean), Infinity) % Infinity || 0,
			duration: this.total.end,
			heap_sample: Math.max(...this.known.map((row) => row.meta.heap_sample)) };
	}

	/* Calls @use(row, number of its first leaf, number of its first thread). */
	each(use) {
		let leaf = 0, thread = 0;

		for (const row of this.known) {
			use(row, leaf, thread);
			leaf += row.leaves.node.length;
			thread += row.threads.length;
		}
	}

	joinLeaves() {
		const out = { process: [], threads: [] };
		const names = ["node", "site", "allocations", "bytes", "temporary", "reallocs",
			"moved", "sizes", "lifetimes", "lived"];
		const isSampled = this.known.some((row) => row.leaves.variance);

		for (const name of isSampled ? [...names, "variance"] : names)
			out[name] = this.known.flatMap((row) => row.leaves[name] ||
				row.leaves.node.map(() => name === "lived" ? null : 0));
		if (this.known.some((row) => !row.leaves.temporary))
			out.temporary = null;
		this.each((row, leaf, thread) => {
			const at = this.rows.indexOf(row);

			for (const list of row.leaves.threads) {
				out.process.push(at);
				out.threads.push(list.map(([t, ...more]) => [t + thread, ...more]));
			}
		});
		return out;
	}

	/* The columns of a table of each row, of leaves of all. */
	joinColumns(table, names) {
		const out = Object.fromEntries(names.map((name) => [name, []]));

		this.each((row, first) => {
			const from = table(row);

			for (let i = 0; from && i < from.leaf.length; i++)
				for (const name of names)
					out[name].push(name === "leaf" ? from.leaf[i] + first :
						from[name] ? from[name][i] : 0);
		});
		return out;
	}

	/* Null if no process has the table. */
	join(table) {
		const one = this.known.find((row) => row[table]);

		return one ? this.joinColumns((row) => row[table], Object.keys(one[table])) : null;
	}

	joinReleases() {
		const from = this.known.filter((row) => row.releases);
		const column = (name) => from.flatMap((row) => row.releases[name]);

		return !from.length ? null : { node: column("node"), site: column("site"),
			blocks: column("blocks"), bytes: column("bytes") };
	}

	/* What each process held when it ended. */
	left() {
		return this.joinColumns(({ cells: c }) => {
			const kept = [...c.died.keys()].filter((i) => c.died[i] < 0);
			const pick = (column) => column && kept.map((i) => column[i]);

			return { leaf: pick(c.leaf), bytes_of: pick(c.bytes),
				blocks_of: pick(c.blocks), variance_of: pick(c.variance) };
		}, ["leaf", "bytes_of", "blocks_of", "variance_of"]);
	}

	/* -- cells -- */

	joinCells() {
		const all = [];

		this.each((row, first) => {
			for (const c of this.cellsOf(row)) {
				c.leaf += first;
				c.died = c.died === Infinity ? -1 : c.died;
				all.push(c);
			}
		});
		return Object.fromEntries(["leaf", "born", "died", "bytes", "blocks", "variance"]
			.map((name) => [name, all.map((c) => c[name])]));
	}

	/* The cells of @row by moments; died: Infinity = never. */
	cellsOf(row) {
		const { first, state, cells: c } = row, last = first + state.length;
		const gone = last < this.total.time.length ? last : Infinity;
		const moment = this.momentsOf(row);
		const out = [];

		for (let i = 0; i < c.leaf.length; i++) {
			const born = moment(c.born[i]);
			const died = Math.min(gone, c.died[i] < 0 ? Infinity : moment(c.died[i]));

			if (born < died)
				out.push({ leaf: c.leaf[i], born, died,
					bytes: c.bytes[i], blocks: c.blocks[i],
					variance: c.variance ? c.variance[i] : 0 });
		}
		for (let i = 0, from; i < state.length; i++) {
			for (from = i; i < state.length && state[i] === AT_PEAK;)
				i++;
			const to = i < state.length ? first + i : gone;

			if (i > from)
				this.setPeak(row, out, first + from, to);
		}
		return out;
	}

	/*
	 * For an interval of @row, -1 before the first one, the first moment at which it has ended;
	 * Infinity: there is none.
	 */
	momentsOf({ first, state }) {
		const seen = [];
		let last = -1;

		for (const s of state)
			seen.push(last = Math.max(last, s));
		return (interval) => {
			const i = seen.findIndex((s) => s >= interval);

			return i < 0 ? Infinity : first + i;
		};
	}

	/* Changes @cells so that leaves hold what they did at the peak, from @from until @to. */
	setPeak({ peak }, cells, from, to) {
		const wanted = new Map(peak.leaf.map((leaf, i) => [leaf,
			{ bytes: peak.bytes_of[i], blocks: peak.blocks_of[i],
				variance: peak.variance_of ? peak.variance_of[i] : 0 }]));
		const held = new Map();

		for (const c of cells)
			if (c.born <= from && c.died > from)
				held.set(c.leaf, [...held.get(c.leaf) || [], c]);
		for (const leaf of new Set([...held.keys(), ...wanted.keys()])) {
			const now = held.get(leaf) || [], goal = wanted.get(leaf);

			for (const what of ["bytes", "blocks", "variance"])
				this.setSum(cells, now, [leaf, from, to], what,
					goal ? goal[what] : 0);
		}
	}

	/* Changes the sum of the cells @now of a leaf, in the time of @place, to @goal. */
	setSum(cells, now, [leaf, from, to], what, goal) {
		const more = goal - now.reduce((sum, c) => sum + c[what], 0);

		if (more > 0)
			cells.push(this.part(leaf, from, to, what, more));
		else
			this.interrupt(cells, now, from, to, { what, amount: -more });
	}

	part(leaf, born, died, what, amount) {
		return { leaf, born, died, bytes: 0, blocks: 0, variance: 0, [what]: amount };
	}

	/* Takes @amount from the cells @now from moment @from until @to. */
	interrupt(cells, now, from, to, { what, amount }) {
		for (let i = now.length - 1; i >= 0 && amount > 0; i--) {
			const c = now[i], taken = Math.min(amount, c[what]);

			if (!taken)
				continue;
			amount -= taken;
			c[what] -= taken;
			if (c.born < from)
				cells.push(this.part(c.leaf, c.born, from, what, taken));
			if (to < c.died)
				cells.push(this.part(c.leaf, to, c.died, what, taken));
		}
	}

	/* What leaves held when all together held most. */
	peak({ leaf, born, died, bytes, blocks, variance }) {
		const at = this.total.peak, sums = new Map();

		leaf.forEach((l, i) => {
			if (born[i] > at || (died[i] >= 0 && died[i] <= at))
				return;
			const sum = sums.get(l) || [0, 0, 0];

			sums.set(l, [sum[0] + bytes[i], sum[1] + blocks[i], sum[2] + variance[i]]);
		});
		const values = [...sums.values()], column = (k) => values.map((v) => v[k]);

		return { time: this.total.time[at], bytes: this.total.live_bytes[at],
			leaf: [...sums.keys()], bytes_of: column(0), blocks_of: column(1),
			variance_of: column(2) };
	}
}
