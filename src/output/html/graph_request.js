/*
 * The heap graph of a program that runs: asked for by a button, or fetched when another client had
 * it made. The server stops the program for it, and says for how long.
 */
"use strict";

class GraphRequest {
	/* @app: {profile, state, reports} */
	constructor(app, { url }) {
		this.app = app;
		this.url = url.replace("profile.json", "graph.json");
		this.number = 0;        /* of the graph that is shown */
		this.json = null;
		this.isAsking = false;
		this.problem = "";
	}

	/* What is above the graph, also when there is none. */
	element() {
		const isOver = !this.app.profile.isRunning, { isAsking, problem } = this;
		const text = isAsking ? "The program is being looked at\u2026" : problem ||
			"The program is stopped while its memory is read.";

		return isOver ? this.json ? null : el("p", { class: "note" },
			"No heap graph was made.") :
			el("p", { class: "note", id: "graph-request" },
				el("button", { type: "button", disabled: isAsking,
					onclick: () => this.fetch("POST") },
				this.json ? "Make it again" : "Make a heap graph"),
				el("span", { role: "status" }, ` ${text}`));
	}

	/* Whether the view changes: also with what element() says. */
	get id() {
		return `${this.number} ${this.isAsking} ${this.problem} ` +
			this.app.profile.isRunning;
	}

	/* A graph that another client had made is fetched when the tab is looked at. */
	look() {
		const { graph } = this.app.profile.raw.live;

		if (graph > this.number && !this.isAsking)
			this.fetch("GET");
	}

	async fetch(method) {
		this.isAsking = true;
		this.problem = "";
		this.app.reports.renewGraph();
		try {
			const answer = await fetch(this.url, { method, cache: "no-store" });

			if (!answer.ok)
				throw new Error((await answer.text()).trim() ||
					`status ${answer.status}`);
			this.json = await answer.json();
			this.number = Number(answer.headers.get("X-Graph")) || this.number;
		} catch (error) {
			this.problem = `There is no new graph: ${error.message}`;
			if (method === "GET")
				this.number = this.app.profile.raw.live.graph;
		}
		this.isAsking = false;
		this.app.reports.renewGraph();
	}
}
