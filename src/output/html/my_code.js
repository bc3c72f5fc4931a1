/*
 * Whose code a frame is, and the call site of a stack: the rules of symbols/code_owner.h and
 * symbols/wrapper.h. ptmem has judged each frame by names and paths (rank, role); what the user
 * says in the page is applied to that here.
 */
"use strict";

const RANK = { SITE: 0, UNNAMED: 1, FUNCTION: 2, THREAD: 5, INSTANCE: 6, CALLER: 7 };
const ROLE = { ALLOCATOR: 1, FIXED: 2, START: 4 };

const MyCode = (function () {
	const specials = /[.+^${}()|[\]\\]/g;

	function matcherOf(pattern) {
		const text = pattern.replace(specials, "\\$&").replace(/\*/g, "[^]*")
			.replace(/\?/g, "[^]");
		const regex = new RegExp(`^${text}$`);

		return (path) => Boolean(path) &&
			regex.test(pattern.includes("/") ? path : baseName(path));
	}

	/* From "+PATTERN" and "-PATTERN", the last one first. */
	function rules(list) {
		return list.map((rule) => ({ isMine: rule[0] === "+",
			matches: matcherOf(rule.slice(1)) })).reverse();
	}

	/* true, false, or null: the user says nothing. */
	function owner(list, frame) {
		const rule = list.find((r) => r.matches(frame.file) || r.matches(frame.object));

		return rule ? rule.isMine : null;
	}

	function rankOfWrapper(name) {
		const isNamed = name && name !== "???" && name !== "(below main)";

		return isNamed ? RANK.FUNCTION : RANK.UNNAMED;
	}

	/* The {rank, kind} of a {name, file, object, rank, role, kind}. */
	function judge(list, frame) {
		const isMine = list.length ? owner(list, frame) : null;
		const { rank, role, kind } = frame, isFixed = Boolean(role & ROLE.FIXED);

		if (isMine === null || (isMine && isFixed) || (frame.name || "").startsWith("["))
			return { rank, kind };
		if (isMine)
			return { rank: RANK.SITE, kind: KIND.PROGRAM };
		return { rank: rankOfWrapper(frame.name),
			kind: kind === KIND.ALLOCATOR ? kind : KIND.RUNTIME };
	}

	function isBetter(rank, best) {
		const isInnermost = [RANK.UNNAMED, RANK.INSTANCE, RANK.CALLER].includes(rank);

		return rank > best || (rank === best && !isInnermost);
	}

	/* Whether the nearest named frame from @i on is an allocator's. */
	function isPartOfAllocator(stack, i) {
		const named = stack.slice(i).find((f) => f.name);

		return Boolean(named && named.role & ROLE.ALLOCATOR);
	}

	const objectOf = (frame) => frame.role & ROLE.START ? "" : frame.object;

	/* Which frame represents the unnamed frame @i. */
	function representative(stack, i) {
		const object = objectOf(stack[i]);

		for (let k = i; object && k < stack.length && objectOf(stack[k]) === object; k++)
			if (stack[k].name)
				return k;
		return i;
	}

	/* The index of the call site in @stack, {name, object, role, rank} innermost first. */
	function site(stack) {
		let best = 0, bestRank = RANK.SITE;

		for (let i = 0; i < stack.length; i++) {
			let { rank } = stack[i];

			/* generated code, of the run-time system in it */
			if (rank === RANK.SITE && !stack[i].name && !objectOf(stack[i]) && bestRank === RANK.CALLER)
				rank = RANK.UNNAMED;
			if (rank === RANK.SITE && stack[i].name)
				return i;
			if (rank === RANK.SITE && !isPartOfAllocator(stack, i))
				return representative(stack, i);
			if (rank === RANK.SITE)
				rank = RANK.UNNAMED;
			if (i === 0 || isBetter(rank, bestRank)) {
				best = i;
				bestRank = rank;
			}
			if (rank === RANK.THREAD)
				break;
		}
		return best;
	}

	/* "a*, b" of a field: its patterns. */
	function patterns(text) {
		return text.split(",").map((x) => x.trim()).filter(Boolean);
	}

	/* The rules of a file, followed by those of the fields. */
	function all(given, mine, notMine) {
		return rules([...given, ...patterns(notMine).map((x) => `-${x}`),
			...patterns(mine).map((x) => `+${x}`)]);
	}

	return { all, judge, site };
})();
