/* The head of the page: program, duration, totals, and what is missing or estimated. */
"use strict";

const Header = (function () {
	/* To the minute. */
	const date = (time) => format.date(time).slice(0, -3);

	function origin(p) {
		const m = p.meta, parts = [];

		if (m.start)
			parts.push(date(m.start));
		if (m.pid)
			parts.push(`pid ${m.pid}`);
		if (m.host)
			parts.push(m.host);
		if (m.exit)
			parts.push(m.exit);
		if (m.kernel)
			parts.push(m.kernel);
		if (m.ptmem)
			parts.push(`ptmem ${m.ptmem}`);
		if (m.options)
			parts.push(m.options);
		return parts.join(" \u00b7 ");
	}

	/*
	 * The exact numbers of a sampled recording: allocating calls, and the bytes that they
	 * requested.
	 */
	function counted(p) {
		const calls = p.raw.calls;

		if (!calls)
			return null;
		const sum = { count: 0, bytes: 0 };

		calls.function.forEach((name, i) => {
			if (/^(free|operator delete|own free)$/.test(name))
				return;
			sum.count += calls.calls[i];
			sum.bytes += calls.bytes[i];
		});
		return sum;
	}

	/* Of a live profile, which has no totals of the end. */
	function soFar(p) {
		const sum = (column) => column.reduce((total, n) => total + n, 0);

		if (!p.raw.live)
			return null;
		return { count: sum(p.leaves.allocations), bytes: sum(p.leaves.bytes) };
	}

	/* The same of all processes together. */
	function factsOfAll(p) {
		const all = p.processes, { largest } = all;
		const of = (name, value, exact) => [name, format.bytes(value),
			`${format.exactBytes(value)}, ${exact}`];

		return [of("largest process", largest.peak_bytes, all.name(largest)),
			of("peak of all together", p.peakBytes, "at one time"),
			of("sum of their peaks", all.sum("peak_bytes"), "each at another time"),
			of("live at their ends", all.sum("end_bytes"), "as a sum"),
			of("allocated", all.sum("allocated"), "as a sum"),
			["allocations", format.short(all.sum("allocations")),
				format.count(all.sum("allocations"))],
			["duration", format.seconds(all.total.end / 1000), null]];
	}

	/* [name, shown, exact] */
	function facts(p) {
		if (p.processes)
			return factsOfAll(p);
		const end = p.raw.end || {}, out = [];
		const add = (name, value, exact) => out.push([name, value, exact]);

		add("peak", format.bytes(p.peakBytes) + format.error(p.peakBytes, p.peak.variance),
			format.exactBytes(p.peakBytes) +
				(p.meta.heap_sample ? ", the highest of all estimates" : ""));
		const atEnd = p.intervals ? p.total(p.intervals - 1) : 0;
		const last = end.live_bytes !== undefined ? end.live_bytes : atEnd;

		add(p.isRunning ? "live now" : "live at the end",
			format.bytes(last) + format.error(last, end.live_variance),
			format.exactBytes(last));
		const exact = counted(p), calls = exact || soFar(p);
		const bytes = calls ? calls.bytes : end.allocated_bytes;
		const allocations = calls ? calls.count : end.allocations;
		const beside = !exact ? "" : p.meta.corrupt ?
			", counted in memory that the program overwrote" : ", counted exactly";

		if (bytes !== undefined)
			add("allocated", format.bytes(bytes), format.exactBytes(bytes) + beside);
		if (allocations !== undefined)
			add("allocations", format.short(allocations),
				format.count(allocations) + beside);
		if (typeof end.temporary === "number")
			add("temporary",
				format.percent(end.temporary,
					end.allocations + (end.reallocs || 0)),
				`${format.count(end.temporary)}, ${p.temporaryText}`);
		if (p.isMassif)
			add("snapshots", String(p.intervals), `${p.stops.length} with a call tree`);
		add(p.unit === "s" ? "duration" :
			p.unit === "B" ? "allocated and released" : "length",
			format.time(p.meta.duration ? p.meta.duration / 1000 : p.end, p.unit),
			null);
		if (p.meta.overhead !== undefined)
			add("stopped by ptmem", format.seconds(p.meta.overhead / 1000),
				"for which ptmem stopped the whole process");
		return out;
	}

	/* What is not as usual with some of the processes. */
	function warningsOfAll(all) {
		const { rows, known, thinned } = all, forks = all.forks();
		const out = rows.filter((r) => r.problem).map((r) =>
			`${r.file || "A recording"}: ${r.problem}. It is not in any sum.`);
		const lossy = known.filter((r) => r.meta.lost.length).length;
		const cut = known.filter((r) => r.meta.incomplete).length;

		if (cut)
			out.push(`${cut} recording${cut > 1 ? "s are" : " is"} incomplete: ptmem ` +
				"did not end normally, and what followed is missing.");
		if (lossy)
			out.push(`Of ${lossy} process${lossy > 1 ? "es" : ""} something is ` +
				"missing, as the page of each says.");
		if (forks.bytes)
			out.push(`${forks.count} forked process${forks.count > 1 ? "es" : ""} ` +
				`began with ${format.bytes(forks.bytes)} in sum, which counts in ` +
				"each: pages of it that they share are in memory once.");
		if (thinned)
			out.push(`${thinned}.`);
		return out;
	}

	function warnings(p) {
		const out = p.processes ? warningsOfAll(p.processes) : [];

		if (p.meta.incomplete && p.meta.copy && !p.meta.exit)
			out.push("So far: a copy of the recording made while the program ran.");
		else if (p.meta.incomplete && !p.meta.copy && !p.raw.live)
			out.push("Incomplete: ptmem did not end normally. " +
				"The recording ends at its last flush.");
		if (p.meta.corrupt)
			out.push("Corrupt: the program overwrote memory that it " +
				"shares with ptmem. The profile ends there.");
		if (p.meta.attached)
			out.push("ptmem attached to a running program: who allocated " +
				"the blocks from before is not known.");
		if (p.raw.view && p.raw.view.match)
			out.push(`Only call paths that match ${p.raw.view.match} are shown. ` +
				"The figures above, resident memory, the line over the areas and " +
				"the rate of allocations are of the whole process.");
		if (p.meta.heap_sample)
			out.push("Estimate, sampled every " +
				format.tickBytes(p.meta.heap_sample) +
				". Behind \u00b1 is the standard error.");
		if (p.raw.thinned)
			out.push(`${p.raw.thinned}.`);
		if (p.meta.times)
			out.push(`The times of events are ${p.meta.times}.`);
		for (const text of p.meta.lost || [])
			out.push(String(text));
		if (p.isMassif && !p.stops.length)
			out.push("No snapshot of this file has a call tree.");
		return out;
	}

	/* "make -j2, and 36 other processes" */
	function title(p) {
		const others = p.processes ? p.processes.rows.length - 1 : 0;

		return (p.meta.command || "(unknown command)") + (others ?
			`, and ${others} other process${others > 1 ? "es" : ""}` : "");
	}

	function show(p, old) {
		byId("command").textContent = title(p);
		byId("command").title = p.meta.command || "";
		document.title = `${p.meta.command ? title(p) : "profile"} \u2013 ptmem`;
		byId("origin").textContent = origin(p);
		byId("facts").replaceChildren(...facts(p).map(([name, value, exact]) =>
			el("div", { title: exact }, el("dt", {}, name), el("dd", {}, value))));
		const list = warnings(p);

		if (old)
			list.unshift(`Compared with ${old.meta.command || "another profile"}` +
				(old.meta.start ? ` of ${date(old.meta.start)}` : "") +
				`, peak ${format.bytes(old.peakBytes)}: ` +
				"red has grown, blue has shrunk.");
		byId("warnings").replaceChildren(...list.map((text) => el("li", {}, text)));
		byId("made").textContent = p.isMassif ?
			"From a Massif file." : p.processes ? "From recordings of ptmem." :
				"From a recording of ptmem.";
	}

	return { show };
})();
