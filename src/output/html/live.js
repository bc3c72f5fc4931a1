/*
 * The report of a running program. Requests the profile every second, one request at a time, and
 * none while the page is hidden. What the user has selected stays selected.
 *
 *	running   the page shows the last answer
 *	leaving   ptmem detaches; the end will come
 *	ended     no more will come: the program has ended, or ptmem has detached from it
 *	lost      there was no answer; the page keeps what it shows and asks again
 */
"use strict";

const REFRESH = 1000;   /* ms from an answer to the next request */
const PATIENCE = 15000; /* ms for an answer */

const ENDS = { ended: "The program has ended.",
	left: "ptmem has detached; the program runs on.",
	gone: "ptmem does not profile this process any more." };

class Live {
	constructor(app, { url, state }) {
		this.app = app;
		this.url = url;
		this.start = app.profile.meta.start;
		this.isOver = false;
		this.timer = 0;
		this.isAsking = false;
		document.addEventListener("visibilitychange", () => this.wake());
		this.note(state);
		this.plan(REFRESH);
	}

	/* Shows the state of the connection. */
	say(state, text) {
		const line = byId("live");

		line.hidden = false;
		line.dataset.state = state;
		if (line.textContent !== text)
			line.textContent = text;
	}

	/* "3.21 s": the end of the profile that is shown. */
	get upTo() {
		return format.time(this.app.profile.end, this.app.profile.unit);
	}

	plan(delay) {
		clearTimeout(this.timer);
		if (!this.isOver && !document.hidden)
			this.timer = setTimeout(() => this.ask(), delay);
	}

	wake() {
		if (!this.isAsking)
			this.plan(0);
	}

	/* If an update takes long, the next request comes later. */
	async ask() {
		let took = 0;

		this.isAsking = true;
		try {
			const json = await this.fetch(), begin = performance.now();

			if (json)
				this.take(json);
			took = performance.now() - begin;
		} catch (error) {
			this.say("lost", `Connection lost (${error.message}): ` +
				`this is the profile up to ${this.upTo}. Trying again\u2026`);
		}
		this.isAsking = false;
		this.plan(Math.max(REFRESH, 4 * took));
	}

	/* The profile, or null if there is none of this process any more. */
	async fetch() {
		const answer = await fetch(this.url,
			{ cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });

		if (answer.status === 404) {
			this.note("gone");
			return null;
		}
		if (!answer.ok)
			throw new Error((await answer.text()).trim() || `status ${answer.status}`);
		return answer.json();
	}

	/* Another program may have the same pid now. */
	take(json) {
		if (json.meta.start !== this.start) {
			this.note("gone");
			return;
		}
		if (this.app.timeline.drag)
			return;
		this.app.update(json);
		this.note(json.live.state);
	}

	/* Shows the state of the profile, which may be its end. */
	note(state) {
		this.isOver = state in ENDS;
		if (this.isOver)
			this.say("ended", `${ENDS[state]} This is its profile up to ${this.upTo}.`);
		else if (state === "leaving")
			this.say(state, "ptmem is detaching. This is the profile up to " +
				`${this.upTo}.`);
		else
			this.say("running", "Live");
	}
}
