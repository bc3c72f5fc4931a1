/*
 * Names of functions, shortened to a width as the C code does (base/text.h, text_shorten): used by
 * the flame graph's script and the report's page.
 */
"use strict";
const shorten = (function () {
	/* What is plain text, though it has brackets: */
	const LITERAL = /^(\(anonymous namespace\)|\(below main\)|->|operator(\(\)|[<=>-]*))/;

	/*
	 * Calls @visit(index, character, depth) for each that is plain text; stops where it returns
	 * true.
	 */
	function scan(name, visit) {
		let depth = 0;

		for (let i = 0; i < name.length; i++) {
			const literal = name.slice(i).match(LITERAL);

			if (visit(i, literal ? literal[0] : name[i], depth))
				return;
			if (literal)
				i += literal[0].length - 1;
			else if ("<([{".includes(name[i]))
				depth++;
			else if (">)]}".includes(name[i]) && depth)
				depth--;
		}
	}

	function afterScope(name) {
		let rest = null;

		if (name.startsWith("operator ")) /* of the type, not of the function */
			return null;
		scan(name, (i, part, depth) => {
			if (!depth && part === ":" && name[i + 1] === ":")
				rest = name.slice(i + 2);
			return rest !== null;
		});
		return rest;
	}

	function dropScopes(name, room) {
		let rest = name, next;

		while (rest.length + 3 > room && (next = afterScope(rest)) && next[0] !== "{")
			rest = next;
		return rest === name ? name : "\u2026::" + rest;
	}

	/* Behind the type that a template returns. */
	function qualified(name) {
		let start = 0;

		scan(name, (i, part, depth) => {
			if (part.startsWith("operator") || (part === "(" && !depth && i !== start))
				return true;
			if (part === " " && !depth)
				start = i + 1;
			return false;
		});
		return name.slice(start) || name;
	}

	function identifier(name) {
		let last = qualified(name), outer = last, next;

		for (; (next = afterScope(last)); last = next)
			outer = last;
		if (last[0] === "{")
			last = outer;
		const literal = last.match(LITERAL), begin = literal ? literal[0].length : 1;
		const end = literal && literal[0] === "operator" ? /\(/ : /[<(]/;
		const size = last.slice(begin).search(end);

		return (size < 0 ? last : last.slice(0, begin + size)).trimEnd();
	}

	/* Removes what is between the outermost brackets. */
	function collapse(name, open, close) {
		let out = "", depth = 0;

		for (let i = 0; i < name.length; i++) {
			const literal = name.slice(i).match(LITERAL);

			if (literal) {
				out += depth ? "" : literal[0];
				i += literal[0].length - 1;
				continue;
			}
			if (name[i] === close && depth && --depth === 0 && name[i - 1] !== open)
				out += "\u2026";
			if (!depth)
				out += name[i];
			if (name[i] === open && depth++ === 0 && !out.endsWith(open))
				out += open;
		}
		return depth ? name : out;
	}

	function shorten(whole, room) {
		let name = whole;

		if (room < 3)
			return "";
		if (name.length > room)
			name = collapse(name, "(", ")");
		if (name.length > room)
			name = collapse(name, "<", ">");
		if (name.length > room)
			name = dropScopes(name, room);
		if (name.length > room)
			name = identifier(whole);
		return name.length > room ? name.slice(0, room - 1) + "\u2026" : name;
	}

	/* "NAME (FILE:LINE)": the name is shortened, the line is kept. */
	shorten.site = (name, place, room) => {
		const tail = place ? ` (${place})` : "";

		if (name.length + tail.length <= room)
			return name + tail;
		if (tail && room - tail.length < 4)
			return place.length <= room ? place : shorten(name, room);
		return shorten(name, room - tail.length) + tail;
	};

	return shorten;
})();
