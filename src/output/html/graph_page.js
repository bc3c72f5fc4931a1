/* A page that has only a heap graph: its head, its state, and the view. */
"use strict";

const GRAPH_STATE = { graph: "", held: "", gfind: "", gtable: "",
	gsort: "", theme: "" };

class GraphPage {
	constructor(json) {
		this.json = json;
		this.state = { ...GRAPH_STATE };
		this.view = new GraphView(this, json, null);
		for (const card of document.querySelectorAll("main > .card:not(#tables)"))
			card.remove();
		byId("tabs").remove();
		document.querySelector(".skip").remove();
		byId("editor").parentNode.remove();
		this.head();
		byId("theme").addEventListener("click", () => this.go({
			theme: document.documentElement.dataset.theme === "dark" ? "light" :
				"dark" }));
		byId("panel").replaceChildren(this.view.make());
		window.addEventListener("hashchange", () => { this.read(); this.show(); });
		matchMedia("(prefers-color-scheme: dark)").addEventListener(
			"change", () => this.show());
		new ResizeObserver(() => this.view.draw()).observe(byId("report"));
		this.read();
		this.show();
	}

	head() {
		const { command, pid, core, bytes, blocks, states } = this.json;
		const stopped = this.json.stopped_ms;
		const fact = (name, value, exact) => el("div", { title: exact },
			el("dt", {}, name), el("dd", {}, value));
		const lost = states["definitely lost"].bytes + states["indirectly lost"].bytes;

		byId("command").textContent = command || "(unknown command)";
		byId("command").title = command || "";
		document.title = `${command || "heap graph"} \u2013 ptmem`;
		byId("origin").textContent = [core, `pid ${pid}`].filter(Boolean).join(" \u00b7 ");
		byId("facts").replaceChildren(fact("in use", format.bytes(bytes),
			format.exactBytes(bytes)), fact("blocks", format.count(blocks), null),
		fact("lost", format.bytes(lost), format.exactBytes(lost)),
		...stopped ? [fact("stopped", format.seconds(stopped / 1000), null)] : []);
		byId("made").textContent = "From a heap graph of ptmem.";
		byId("tables").setAttribute("aria-label", "Heap graph");
	}

	read() {
		const given = new URLSearchParams(location.hash.slice(1));

		for (const [name, value] of Object.entries(GRAPH_STATE))
			this.state[name] = given.has(name) ? given.get(name) : value;
	}

	go(changes) {
		const out = new URLSearchParams();

		Object.assign(this.state, changes);
		for (const [name, value] of Object.entries(GRAPH_STATE))
			if (this.state[name] !== value)
				out.set(name, this.state[name]);
		history.replaceState(null, "", `#${out}`);
		this.show();
	}

	show() {
		const { theme } = this.state, isDark = theme ? theme === "dark" :
			matchMedia("(prefers-color-scheme: dark)").matches;

		document.documentElement.setAttribute("data-theme", isDark ? "dark" : "light");
		this.view.show();
	}
}
