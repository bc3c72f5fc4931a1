/* Elements. Text from profiles is untrusted: it is only ever set as text, never as markup. */
"use strict";

function byId(id) {
	return document.getElementById(id);
}

/* el("td", {class: "n", title: t, onclick: f}, "text", child, ...) */
function el(tag, attributes, ...children) {
	const element = document.createElement(tag);

	setAttributes(element, attributes);
	element.append(...children.filter((child) => child !== null && child !== undefined));
	return element;
}

function svg(tag, attributes, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag);

	setAttributes(element, attributes);
	element.append(...children);
	return element;
}

function setAttributes(element, attributes) {
	for (const [name, value] of Object.entries(attributes || {}))
		if (typeof value === "function")
			element.addEventListener(name.slice(2), value);
		else if (value !== null && value !== false)
			element.setAttribute(name, value === true ? "" : value);
}

/* Puts @text on the clipboard, also in pages that may not ask for it; false: that failed. */
async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch (e) {
		const area = el("textarea", { style: "position: fixed; opacity: 0" });

		area.value = text;
		document.body.append(area);
		area.select();
		const done = document.execCommand("copy");

		area.remove();
		return done;
	}
}

/* A field of CSV. Spreadsheets take one that begins with "=", "+", "-" or "@" for a formula. */
function csvField(value) {
	if (typeof value === "number")
		return Number.isFinite(value) ? String(value) : "";
	const text = value === null || value === undefined ? "" : String(value);

	return `"${/^[=+\-@]/.test(text) ? "'" : ""}${text.replace(/"/g, '""')}"`;
}

/* The address that opens a source line, "vscode://file/{file}:{line}"; null: there is none. */
function editorLink(template, file, line) {
	const known = /^[a-z][a-z0-9+.-]*:/i.test(template) &&
		!/^(javascript|data|vbscript|blob|file):/i.test(template);

	return known && file && file.startsWith("/") && line ?
		template.replace("{file}", encodeURI(file).replace(/[?#]/g, encodeURIComponent))
			.replace("{line}", line) :
		null;
}

/* Shows @tip beside the place @x, @y of a box of @width and @height. */
function placeTip(tip, x, y, width, height) {
	tip.hidden = false;
	const w = tip.offsetWidth, h = tip.offsetHeight;

	tip.style.left = `${Math.max(4, x + 14 + w > width ? x - w - 10 : x + 14)}px`;
	tip.style.top = `${Math.max(4, y + 16 + h > height ? y - h - 10 : y + 16)}px`;
}

/* A sparkline of @values, at most @max high. */
function sparkline(values, max) {
	const width = 110, height = 20, step = Math.max(1, Math.ceil(values.length / width));
	let points = `0,${height}`, last = 0;

	for (let i = 0; i < values.length; i += step) {
		let v = 0;

		for (let k = i; k < Math.min(values.length, i + step); k++)
			v = Math.max(v, values[k]);
		last = values.length > 1 ? i / (values.length - 1) * width : 0;
		const y = height - 1 - (height - 2) * (max > 0 ? v / max : 0);

		points += ` ${last.toFixed(1)},${y.toFixed(1)}`;
	}
	return svg("svg", {
		class: "spark", width, height, viewBox: `0 0 ${width} ${height}`,
		"aria-hidden": "true",
	}, svg("polyline", { points: `${points} ${last.toFixed(1)},${height}` }));
}

/* The beginning of @text, at most @room characters. */
function cutText(text, room) {
	const all = [...text];

	return all.length <= room ? text : all.slice(0, Math.max(0, room - 1)).join("") + "\u2026";
}

/* A function's name, shortened, or a path; the source line at its end is never cut off. */
function label(text) {
	const site = text.match(/^([^]*?) \(([^()]*:\d+)\)$/);
	const path = text.match(/^(?:.*\/)?([^/]+:\d+)$/);

	const room = Math.max(28, Math.min(60, Math.floor(innerWidth / 14)));

	if (!site && path)
		return [el("span", { class: "place" }, path[1])];
	return [el("span", { class: "cut" }, shorten(site ? site[1] : text, room)),
		site ? el("span", { class: "place" }, ` (${site[2]})`) : null];
}

/* Rows of [label, value, shown text] as horizontal bars. */
function bars(title, rows, empty) {
	const max = rows.reduce((m, row) => Math.max(m, Math.abs(row[1])), 0);
	const list = el("ul", { class: "bars" });

	for (const [name, value, text, onclick] of rows) {
		const share = max ? (100 * Math.abs(value) / max).toFixed(1) : 0;

		list.append(el("li", {},
			el("span", { class: "bar", style: `--share: ${share}%` }),
			onclick ? el("button",
				{ class: "link label", title: name, onclick }, ...label(name)) :
				el("span", { class: "label", title: name }, ...label(name)),
			el("span", { class: "n" }, text)));
	}
	return el("section", { class: "detail" }, el("h3", {}, title),
		rows.length ? list : el("p", { class: "muted" }, empty || "none"));
}
