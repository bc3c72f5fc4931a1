/*
 * Blocks of sizes that occur once, from all kinds of functions, and which ones were on the stack by
 * V8's own account, to the file "truth". Arguments: rounds, and how often the functions run before.
 *
 *	S SIZE             a block
 *	F FILE FUNCTION    a function on its stack, innermost first; "-" = it has none
 *	L LINE FUNCTION    where those with a name begin
 *
 * Says "warm" between the warm-up and the rounds, and "end" before its end, and waits for a line.
 */
"use strict";
const fs = require("fs");
const path = require("path");
const [rounds, warm] = process.argv.slice(2).map(Number);

Error.stackTraceLimit = 100;
const kept = [];
let size = 0, lines = [];

/* Callers that only wait are not on the stack. */
function note(_, sites) {
	return sites.filter((s) => !s.isAsync()).map((s) => [s.getFileName() || "-", s.getFunctionName()]);
}

function take() { // def take
	if (!size) {
		Buffer.allocUnsafeSlow(64);
		return 1;
	}
	const before = Error.prepareStackTrace;

	Error.prepareStackTrace = note;
	const sites = new Error().stack;

	Error.prepareStackTrace = before;
	kept.push(Buffer.allocUnsafeSlow(size));
	lines.push("S " + size);
	for (const [file, name] of sites)
		if (!file.startsWith("node:"))
			lines.push("F " + path.basename(file) + " " + (name || "-").replace(/ /g, "_"));
	size++;
	return 1;
}

function plain(n) { // def plain
	return n > 0 ? plain(n - 1) + 1 : take();
}

class Shop {
	add(i) { // def add
		return plain(i % 5);
	}
	static open(i) { // def open
		return new Shop().add(i);
	}
	constructor() { // def Shop
		this.first = take();
	}
	get total() {
		return take();
	}
}

const arrow = (i) => Shop.open(i); // def arrow

function makeClosure(i) {
	return function closure() { // def closure
		return arrow(i);
	};
}

function* generator(i) { // def generator
	yield take();
	yield makeClosure(i)();
}

function sorted(i) { // def sorted
	return [3, 1, 2].sort((a, b) => (take(), a - b)).length + i;
}

function mapped(i) { // def mapped
	return [i].map((x) => new Shop().total + x).reduce((a, b) => a + b + take(), 0);
}

function evaluated(i) { // def evaluated
	const name = "made" + i;

	return new Function("take", `return function ${name}() { return take() + ${i}; }`)(take)();
}

const ünïcödé = (i) => take() + i; // def ünïcödé

/* A function with more locals than V8 keeps in a scope's own description. */
const wide = new Function("take", "let " + Array.from({length: 90}, (_, i) => `v${i} = ${i}`).join(", ") +
	"; return function wide() { return take() + " + Array.from({length: 90}, (_, i) => `v${i}`).join(" + ") + "; }")(take);

async function later(i) { // def later
	await null;
	return take() + i;
}

function oneRound(i, imported) { // def oneRound
	plain(i % 3);
	Shop.open(i);
	makeClosure(i)();
	for (const x of generator(i))
		kept.length += x - x;
	sorted(i);
	mapped(i);
	ünïcödé(i);
	wide();
	imported.imported(i, take);
	evaluated(i % 50);
}

function waitForLine() {
	return fs.readSync(0, Buffer.alloc(1), 0, 1);
}

async function main() { // def main
	const imported = await import("./stacks_part.mjs");

	for (let i = 0; i < warm; i++)
		oneRound(i, imported);
	console.log("warm");
	waitForLine();
	size = 100000;
	for (let i = 0; i < rounds; i++) {
		oneRound(i, imported);
		await later(i);
		if (global.gc && i % 10 === 0)
			global.gc();
	}
	const last = size;

	size = 0;
	fs.readFileSync(__filename, "utf8").split("\n").forEach((text, i) => {
		const def = /\/\/ def (\S+)$/.exec(text);

		if (def)
			lines.push("L " + (i + 1) + " " + def[1]);
	});
	fs.writeFileSync("truth", lines.join("\n") + "\n");
	console.log("end");
	waitForLine();
	return last;
}
main();
