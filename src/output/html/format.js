/*
 * Formats numbers: bytes in binary units, counts with thousands separators, times, shares, and axis
 * ticks.
 */
"use strict";
const format = (function () {
	const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	const DECIMAL = ["", " k", " M", " G", " T"];
	const MINUS = "\u2212";
	/* Seconds that are round numbers of seconds, minutes and hours. */
	const DAY = 86400;
	const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
		43200, DAY];

	function digits(value) {
		return value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
	}

	function scaled(value, base, units, gap) {
		let i = 0, v = Math.abs(value);

		/* 1023.7 would be printed as "1024" */
		while (i + 1 < units.length && v >= base - 0.5) {
			v /= base;
			i++;
		}
		return (value < 0 ? MINUS : "") +
			(i ? v.toFixed(digits(v)) : String(Math.round(v))) + gap + units[i];
	}

	const bytes = (n) => scaled(n, 1024, BINARY, " ");

	const two = (n) => String(Math.floor(n)).padStart(2, "0");

	function count(n) {
		const text = String(Math.round(Math.abs(n))).replace(/\B(?=(\d{3})+$)/g, ",");

		return (n < 0 ? MINUS : "") + text;
	}

	const short = (n) => Math.abs(n) < 10000 ? count(n) : scaled(n, 1000, DECIMAL, "");
	const signed = (n, print) => (n > 0 ? "+" : "") + print(n);
	const exactBytes = (n) => `${count(n)} ${Math.abs(n) === 1 ? "byte" : "bytes"}`;
	const blocks = (n) => `${count(n)} ${Math.abs(n) === 1 ? "block" : "blocks"}`;

	/* " \u00b1 10 %", the standard error after an estimate; "" if exact: no @variance. */
	function error(estimate, variance) {
		if (typeof variance !== "number" || !(estimate > 0))
			return "";
		/* more than that of three small samples */
		if (3 * variance > estimate * estimate * (1 + 1e-9))
			return " (below resolution)";
		const share = 100 * Math.sqrt(variance) / estimate;

		return ` \u00b1 ${share.toFixed(share < 9.95 ? 1 : 0)} %`;
	}

	function percent(part, whole) {
		const share = whole ? 100 * part / whole : 0;

		return (share < 0 ? MINUS : "") +
			Math.abs(share).toFixed(Math.abs(share) < 9.95 ? 2 : 1) + " %";
	}

	function seconds(s) {
		if (s === 0)
			return "0 s";
		if (s < 1e-6)
			return `${Math.round(s * 1e9)} ns`;
		if (s < 1e-3)
			return `${(s * 1e6).toFixed(digits(s * 1e6))} \u00b5s`;
		if (s < 1)
			return `${(s * 1e3).toFixed(digits(s * 1e3))} ms`;
		if (s < 60)
			return `${s.toFixed(s < 10 ? 2 : 1)} s`;
		if (s < 3600)
			return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
		return `${Math.floor(s / 3600)} h ${two(s % 3600 / 60)} min`;
	}

	/* A time of the profile in its unit: seconds, instructions, or bytes allocated. */
	function time(value, unit) {
		if (unit === "s")
			return seconds(value);
		return unit === "B" ? bytes(value) : `${short(value)} instructions`;
	}

	function clockTime(d, hasMs) {
		return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}` +
			(hasMs ? `.${String(d.getMilliseconds()).padStart(3, "0")}` : "");
	}

	/* "2026-11-23 18:02:41", @time in seconds since 1970, in local time. */
	function date(time) {
		const d = new Date(time * 1000);

		return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
			clockTime(d);
	}

	/* "UTC+1", that of this place at @time. */
	function zone(time) {
		const minutes = -new Date(time * 1000).getTimezoneOffset();
		const hours = Math.floor(Math.abs(minutes) / 60), rest = Math.abs(minutes) % 60;

		return "UTC" + (minutes ? (minutes < 0 ? MINUS : "+") + hours : "") +
			(rest ? `:${two(rest)}` : "");
	}

	/* "18:02:41", with the day if it is not that of @from. */
	function clock(time, from, hasMs) {
		const d = new Date(time * 1000);
		const isSameDay = d.toDateString() === new Date(from * 1000).toDateString();

		return isSameDay ? clockTime(d, hasMs) : date(time);
	}

	/* For an axis that is labelled with its unit. */
	function tick(value, unit) {
		if (unit === "B")
			return tickBytes(value);
		if (unit === "s")
			return trim(seconds(value));
		return unit === "i" ? `${short(value).replace(/\.0+ /, " ")}` : time(value, unit);
	}

	/* Round times from 0 to @max seconds, at most about @room. */
	function timeTicks(max, room) {
		const rough = max / Math.max(1, room), step = STEPS.find((s) => s >= rough);

		if (rough > 0.5 && step)
			return multiples(step, max);
		const unit = rough > 0.5 ? DAY : 1;

		return ticks(max / unit, room, false).map((v) => v * unit);
	}

	/* Round numbers from 0 to @max, at most about @room. */
	function ticks(max, room, isBinary) {
		if (!(max > 0))
			return [0];
		const rough = max / Math.max(1, room);
		const power = isBinary ?
			Math.pow(1024, Math.floor(Math.log2(Math.max(1, max)) / 10)) :
			Math.pow(10, Math.floor(Math.log10(rough)));
		const steps = isBinary ?
			[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] :
			[1, 2, 5, 10];
		const step = Math.max(isBinary ? 1 : 0,
			power * steps.find((s) => s * power >= rough));

		return multiples(step, max);
	}

	function multiples(step, max) {
		const out = [];

		for (let i = 0; i * step <= max * (1 + 1e-9); i++)
			out.push(i * step);
		return out;
	}

	/*
	 * "128 to 255 B", the range of bucket @i of a histogram of sizes: 2^(i-1) .. 2^i - 1,
	 * bucket 0 is 0.
	 */
	function sizeBucket(i) {
		if (i < 2)
			return `${i} B`;
		const low = Math.pow(2, i - 1);

		return low < 1024 ? `${low} to ${2 * low - 1} B` :
			`${tickBytes(low)} to ${tickBytes(2 * low)}`;
	}

	/* @text of a tick, without zeros at its end: "2.5 s", "1 min". */
	const trim = (text) => text.replace(/ 00 (s|min)$/, "")
		.replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");

	const tickBytes = (value) => trim(bytes(value));

	return { bytes, tickBytes, count, short, signed, exactBytes, blocks, error, percent,
		seconds, time, tick, ticks, timeTicks, date, clock, zone, sizeBucket };
})();
