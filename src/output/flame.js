/*
 * The script inside each flame graph: zoom, search, details. It is at the end of the picture, so
 * all elements exist when it runs, and it loads nothing. Frames have start and value in the graph's
 * own unit; only coordinates are in pixels.
 */
"use strict";
(function () {
	const byId = (id) => document.getElementById(id);
	const setting = byId("frames").dataset;
	const left = Number(setting.left), total = Number(setting.total);
	let width = Number(setting.width);
	const character = Number(setting.character), indent = Number(setting.indent);

	/*
	 * What is shown; the address of the page says it, too, so that a view can be kept and
	 * sent.
	 */
	const view = { target: null, text: "" };

	const frames = Array.from(document.querySelectorAll(".frame"), (element) => {
		const text = element.querySelector("title").textContent;

		return {
			element,
			details: text,
			name: text.slice(0, text.lastIndexOf(" (")),
			begin: Number(element.dataset.begin),
			value: Number(element.dataset.value),
			depth: Number(element.dataset.depth),
			rect: element.querySelector("rect"),
			text: element.querySelector("text"),
		};
	});

	if (!frames.length)
		return;

	function place(frame, x, w) {
		frame.rect.setAttribute("x", x.toFixed(2));
		frame.rect.setAttribute("width", w.toFixed(2));
		frame.text.setAttribute("x", (x + indent).toFixed(2));
		frame.text.textContent = shorten(frame.name,
			Math.floor((w - 2 * indent) / character));
	}

	/*
	 * Makes @target as wide as the picture, with what it calls above and its callers, paler,
	 * below.
	 */
	function zoom(target) {
		const end = target.begin + target.value;

		for (const f of frames) {
			const isCaller = f.depth < target.depth && f.begin <= target.begin &&
				f.begin + f.value >= end;
			const isInside = f.depth >= target.depth && f.begin >= target.begin &&
				f.begin + f.value <= end;

			f.element.classList.toggle("hidden", !isCaller && !isInside);
			f.element.classList.toggle("caller", isCaller);
			if (isCaller)
				place(f, left, width);
			else if (isInside)
				place(f, left + (f.begin - target.begin) / target.value * width,
					f.value / target.value * width);
		}
		byId("reset").classList.toggle("hidden", target === frames[0]);
		view.target = target === frames[0] ? null : target;
		note();
	}

	/* Makes subtitle and legend smaller where they are wider than the picture. */
	function squeeze() {
		const subtitle = byId("subtitle"), legend = byId("legend");

		subtitle.style.fontSize = "";
		legend.removeAttribute("transform");
		const size = parseFloat(getComputedStyle(subtitle).fontSize);
		const least = width / subtitle.getBBox().width;
		const { y, width: wide, height } = legend.getBBox();
		const scale = width / wide, middle = y + height / 2;

		if (least < 1)
			subtitle.style.fontSize = size * least + "px";
		if (scale < 1)
			legend.setAttribute("transform", "translate(" + left * (1 - scale) + " " +
				middle * (1 - scale) + ") scale(" + scale + ")");
	}

	/* Makes the picture as wide as the window. */
	function fit() {
		const svg = document.documentElement, height = svg.getAttribute("height");

		svg.setAttribute("width", "100%");
		const whole = Math.max(300, svg.getBoundingClientRect().width);

		svg.setAttribute("viewBox", "0 0 " + whole + " " + height);
		width = whole - 2 * left;
		for (const id of ["title", "subtitle"])
			byId(id).setAttribute("x", whole / 2);
		squeeze();
		byId("search").setAttribute("x", whole - left);
		byId("matched").setAttribute("x", whole - left - Number(setting.search));
		zoom(view.target || frames[0]);
	}

	/* #zoom=BEGIN,DEPTH&search=TEXT; what is left out is not zoomed, not searched. */
	function note() {
		const parts = new URLSearchParams();

		if (view.target)
			parts.set("zoom", view.target.begin + "," + view.target.depth);
		if (view.text)
			parts.set("search", view.text);
		try {
			history.replaceState(null, "", "#" + parts);
		} catch (error) {
			/* a page that may not: shown inside of another one */
		}
	}

	function restore() {
		const parts = new URLSearchParams(location.hash.slice(1));
		const [begin, depth] = (parts.get("zoom") || "0,0").split(",").map(Number);

		search(parts.get("search") || "");
		zoom(frames.find((f) => f.begin === begin && f.depth === depth) || frames[0]);
	}

	function pattern(text) {
		try {
			return new RegExp(text, "i");
		} catch (error) {
			return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
		}
	}

	/*
	 * Marks the frames whose names match; a match above another one counts once. "" takes the
	 * marks away.
	 */
	function search(text) {
		const regexp = text ? pattern(text) : null;
		const matches = frames.filter((f) => {
			const isMatch = regexp !== null && regexp.test(f.name);

			f.element.classList.toggle("match", isMatch);
			return isMatch;
		});
		let sum = 0, end = 0;

		matches.sort((a, b) => a.begin - b.begin || a.depth - b.depth);
		for (const f of matches) {
			if (f.begin >= end) {
				sum += f.value;
				end = f.begin + f.value;
			}
		}
		byId("matched").textContent =
			text ? "Matched: " + (sum * 100 / total).toFixed(2) + "%" : "";
		byId("search").textContent = text ? "Reset search" : "Search";
		view.text = text;
		note();
	}

	function ask() {
		const text = window.prompt(
			"Search for (part of a name, or a regular expression):", "");

		if (text)
			search(text);
	}

	const isSearching = () => byId("matched").textContent !== "";

	for (const f of frames) {
		f.element.addEventListener("click", () => zoom(f));
		f.element.addEventListener("mouseover", () => {
			byId("details").textContent = f.details;
		});
		f.element.addEventListener("mouseout", () => {
			byId("details").textContent = "";
		});
	}
	byId("reset").addEventListener("click", () => zoom(frames[0]));
	byId("search").addEventListener("click", () => isSearching() ? search("") : ask());
	byId("search").classList.remove("hidden");
	if (location.hash.length > 1)
		restore();
	if (!("fixed" in setting)) {
		fit();
		window.addEventListener("resize", fit);
	}
	window.addEventListener("hashchange", restore);
	window.addEventListener("keydown", (event) => {
		if (event.key === "F3" || (event.ctrlKey && event.key.toLowerCase() === "f")) {
			event.preventDefault();
			ask();
		} else if (event.key === "Escape") {
			search("");
			zoom(frames[0]);
		}
	});
})();
