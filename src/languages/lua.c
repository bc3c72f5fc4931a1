/*
 * Where a thread has its Lua states, and their functions. See lua.h. What is read is the program's,
 * and may have been freed: everything is bounded, and checked as far as it can be.
 */
#include "languages/lua.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"

/* -- layouts -- */

static const struct lua_code code_5_3 = {
	.op_bits = 6, .b_shift = 23, .c_shift = 14, .jump_shift = 14, .jump_bits = 18,
	.move = 0, .get_upvalue = 5, .get_global = 6, .get_index = 7, .get_field = 7, .self = 12,
	.load_nil = 4, .jump = 30, .call = 36, .tail_call = 37, .iterate = 41,
	/* SETTABUP, SETUPVAL, SETTABLE; JMP to TEST; RETURN; TFORCALL, SETLIST, EXTRAARG */
	.without_result = {UINT64_C(7) << 8 | UINT64_C(31) << 30 | UINT64_C(1) << 38 |
			   UINT64_C(1) << 41 | UINT64_C(1) << 43 | UINT64_C(1) << 46},
};

static const struct lua_code code_5_4 = {
	.op_bits = 7, .b_shift = 16, .c_shift = 24, .jump_shift = 7, .jump_bits = 25,
	.move = 0, .get_upvalue = 9, .get_global = 11, .get_index = 12, .get_field = 14, .self = 20,
	.load_nil = 8, .jump = 56, .call = 68, .tail_call = 69, .iterate = 76,
	/* SETUPVAL; SETTABUP to SETFIELD; MMBIN to MMBINK; CLOSE to GEI; and TEST; RETURNs, ... */
	.without_result = {UINT64_C(1) << 10 | UINT64_C(15) << 15 | UINT64_C(7) << 46 |
			   UINT64_C(1023) << 54,
			   3 | 1 << 2 | 7 << 6 | 3 << 11 | 1 << 14 | 1 << 18},
};

#define PROTO_5_4 \
	.proto = 10, .first_line = 44, .constants = 56, .code = 64, .upvalues = 80, .lines = 88, \
	.far_lines = 96, .locals = 104, .source = 112, .instructions = &code_5_4, \
	.position = 32, .flags = 62, .fresh = 4, .tail = 32, .unnamed = 0x88, .status = 10, \
	.stack_end = 40, .stack = 48

static const struct lua_layout layouts[] = {
	{LUA_RELEASE(5, 3, 3), LUA_RELEASE(5, 3, 6), .status = 12, .stack_end = 48, .stack = 56,
	 .jump = 88, .base = 96, .position = 40, .flags = 66, .fresh = 8, .tail = 32,
	 .unnamed = 0x104, .proto = 9, .first_line = 40, .constants = 48, .code = 56, .lines = 72,
	 .locals = 80, .upvalues = 88, .source = 104, .instructions = &code_5_3},
	{LUA_RELEASE(5, 4, 2), LUA_RELEASE(5, 4, 2), .jump = 80, .base = 88, PROTO_5_4},
	{LUA_RELEASE(5, 4, 3), LUA_RELEASE(5, 4, 8), .jump = 88, .base = 96, PROTO_5_4},
};

/* The same in all of these. */
enum {
	OBJECT_TAG = 8, TAG_STATE = 8,
	STATE_GLOBAL = 24, STATE_CALL = 32, STATE_BYTES = 104,
	GLOBAL_REGISTRY_TAG = 72, TAG_TABLE = 0x45,
	CALL_FUNCTION = 0, CALL_PREVIOUS = 16, CALL_BYTES = 72,
	VALUE_BYTES = 16,
	PROTO_CODES = 24,
	JUMP_PREVIOUS = 0, /* in a lua_longjmp */
};

/* The block of a state begins with LUA_EXTRASPACE, a pointer. It is what pads see freed. */
#define STATE_IN_BLOCK 8u
#define STACK_EXTRA 5u /* values beyond stack_last; in 5.3 some of these are before it */

bool lua_layout_use(struct lua *l, uint32_t release)
{
	struct virtual_layout *f = &l->frames;
	size_t i = 0;

	while (i < ARRAY_SIZE(layouts) && (release < layouts[i].first || release > layouts[i].last))
		i++;
	if (i == ARRAY_SIZE(layouts))
		return false;
	l->layout = layouts[i];
	f->heads = 1;
	f->head[0] = STATE_IN_BLOCK + STATE_CALL;
	f->next = CALL_PREVIOUS;
	f->identity = CALL_FUNCTION;
	f->identity_mask = UINT64_MAX;
	f->position = l->layout.position;
	f->position_size = sizeof(uint64_t);
	f->entry_kind = VIRTUAL_ENTRY_FLAG;
	f->entry = l->layout.flags;
	f->entry_mask = (uint8_t)l->layout.fresh;
	f->has_base = true;
	f->has_callers_runs = true; /* those that a coroutine had when it yielded */
	f->values = (struct pad_virtual_values){
		.is_used = 1, .tag = LUA_VALUE_TAG, .function_tag = LUA_TAG_CLOSURE,
		.function = LUA_CLOSURE_PROTO,
		.state_size = STATE_IN_BLOCK + l->layout.base + CALL_BYTES,
		.stack = STATE_IN_BLOCK + l->layout.stack,
		.stack_end = STATE_IN_BLOCK + l->layout.stack_end,
		.extra = STACK_EXTRA * VALUE_BYTES,
		.jump = STATE_IN_BLOCK + l->layout.jump, .jump_outer = JUMP_PREVIOUS,
	};
	f->kinds = 1;
	f->kind[0] = (struct pad_function_kind){
		.type = OBJECT_TAG, .type_mask = 0xff, .type_value = l->layout.proto,
		.name = l->layout.source, .name_hash = LUA_TEXT_DATA,
		.file = l->layout.code, .file_hash = 0,
		.line = l->layout.first_line, .table = l->layout.lines,
	};
	return true;
}

/* -- functions -- */

#define CODE_MAX (1u << 20)

#define CHUNK_TEXT 40u

/* The file of a chunk named @source; what is no file is in brackets, without its rest. */
static char *file_of(const char *source)
{
	if (source[0] == '@' || source[0] == '=')
		return xstrdup(source[1] ? source + 1 : "?");
	size_t size = strcspn(source, "\n\\/");

	return xasprintf("[string \"%.*s%s\"]", (int)MIN(size, CHUNK_TEXT), source,
			 source[MIN(size, CHUNK_TEXT)] ? "..." : "");
}

static char *name_of(const struct lua *l, const struct language_memory *m,
		     const struct virtual_frame *frame, const struct virtual_function *f)
{
	char *name = NULL;

	if (!f->first_line)
		return xstrdup("{main}");
	if (frame->at)
		name = lua_called_name(l, m, frame->at);
	return name ? name : xasprintf("<%s:%u>", text_base_name(f->file), f->first_line);
}

static int function_read(const struct lua *l, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	const taddr_t proto = frame->identity;
	taddr_t source;
	uint32_t count, line;
	uint8_t tag;

	if (!proto || proto % sizeof(proto) || !m->read(m->ctx, proto + OBJECT_TAG, &tag, 1) ||
	    tag != l->layout.proto || !language_read_word(m, proto + l->layout.source, &source) ||
	    !m->read(m->ctx, proto + PROTO_CODES, &count, sizeof(count)) || !count ||
	    count > CODE_MAX ||
	    !m->read(m->ctx, proto + l->layout.first_line, &line, sizeof(line)))
		return -EINVAL;
	struct virtual_function f = {
		.object = proto, .size = (uint64_t)count * sizeof(uint32_t),
		.first_line = line <= INT32_MAX ? line : 0,
		.stamp = virtual_stamp(&l->frames, m, proto),
	};
	_cleanup_free_ char *text = lua_read_text(m, source);

	if (!text || !language_read_word(m, proto + l->layout.code, &f.start))
		return -EINVAL;
	f.file = file_of(text);
	f.name = name_of(l, m, frame, &f);
	lua_read_lines(l, m, &f);
	*out = f;
	return 0;
}

static int read_function(const struct interpreter *i, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	return function_read(i->own, m, frame, out);
}

/* A frame's position is the address of the next instruction. */
static uint32_t line_at(const struct interpreter *i, const struct language_memory *m,
			const struct virtual_function *f, uint64_t position)
{
	uint64_t offset = position - f->start;

	(void)i;
	(void)m;
	if (offset < sizeof(uint32_t) || offset > f->size)
		return 0;
	return virtual_function_line(f, offset - sizeof(uint32_t), sizeof(uint32_t));
}

/* -- states -- */

#define STATES_MAX 256u /* Lua itself allows fewer nested ones */

struct found_state {
	taddr_t block, jump; /* jump: its errorJmp; 0 = none */
	size_t first;        /* of its frames in a frame_list */
};

/* States that run in a thread. */
struct state_search {
	const struct lua *lua;
	const struct language_memory *memory;
	struct addr_range stack; /* of the thread */
	struct found_state *found; /* STATES_MAX */
	uint32_t count;
	taddr_t last; /* what was looked at before */
};

/* Whether the @size bytes at @state begin a lua_State that runs in the thread. */
static bool is_running(const struct state_search *s, taddr_t state, const uint8_t *bytes)
{
	const struct lua_layout *l = &s->lua->layout;
	const struct language_memory *m = s->memory;
	taddr_t call = load_u64(bytes + STATE_CALL), jump = load_u64(bytes + l->jump), previous;
	uint8_t tag, status = bytes[l->status];

	if (bytes[OBJECT_TAG] != TAG_STATE || !call || call % sizeof(call) ||
	    !load_u64(bytes + l->stack) || status > 1)
		return false;
	if (jump ? !range_has(&s->stack, jump) : status || call == state + l->base)
		return false;
	return m->read(m->ctx, load_u64(bytes + STATE_GLOBAL) + GLOBAL_REGISTRY_TAG, &tag, 1) &&
	       tag == TAG_TABLE &&
	       language_read_word(m, state + l->base + CALL_PREVIOUS, &previous) && !previous;
}

/* Innermost first: by errorJmp, and what has none is outermost. */
static void insert_state(struct state_search *s, struct found_state new)
{
	uint32_t i = s->count;

	for (uint32_t k = 0; k < s->count; k++)
		if (s->found[k].block == new.block)
			return;
	if (s->count == STATES_MAX)
		return;
	for (; i > 0 && s->found[i - 1].jump - 1 > new.jump - 1; i--)
		s->found[i] = s->found[i - 1];
	s->found[i] = new;
	s->count++;
}

static void look_at(struct state_search *s, uint64_t word)
{
	uint8_t bytes[STATE_BYTES];

	if (word == s->last || word % sizeof(word) || word < PAGE_SIZE_MIN ||
	    word >> ARCH_ADDRESS_BITS || range_has(&s->stack, word))
		return;
	s->last = word;
	if (s->memory->read(s->memory->ctx, word, bytes, sizeof(bytes)) &&
	    is_running(s, word, bytes))
		insert_state(s, (struct found_state){
			.block = word - STATE_IN_BLOCK,
			.jump = load_u64(bytes + s->lua->layout.jump),
		});
}

#define STACK_READ_MAX (1u << 20)
#define STACK_PART 512u

/* From the stack pointer outwards; a word more than what is pushed there is no loss. */
static void search_stack(struct state_search *s, const struct interpreter_thread *t)
{
	uint64_t word[STACK_PART / sizeof(uint64_t)];
	taddr_t at = ROUND_DOWN(t->sp, STACK_PART), end = at + STACK_READ_MAX;

	if (t->thread_pointer > at && t->thread_pointer < end)
		end = t->thread_pointer;
	s->stack = (struct addr_range){t->sp, end};
	for (size_t i = 0; i < ARRAY_SIZE(t->regs.word); i++)
		look_at(s, t->regs.word[i]);
	for (; at < end && s->memory->read(s->memory->ctx, at, word, sizeof(word));
	     at += sizeof(word))
		for (size_t i = 0; i < ARRAY_SIZE(word); i++)
			if (at + i * sizeof(word[0]) >= t->sp)
				look_at(s, word[i]);
}

/* Where the value at @value of the state @bytes is now: its stack may have been moved. */
static taddr_t moved_value(const struct lua *l, const struct interpreter_thread *t,
			   const uint8_t *bytes, taddr_t value)
{
	taddr_t stack = load_u64(bytes + l->layout.stack);
	bool is_moved = t->moved_from && t->moved_from == stack;
	uint64_t size = load_u64(bytes + l->layout.stack_end) - stack + STACK_EXTRA * VALUE_BYTES;

	/* from 5.4.5 on it is an offset meanwhile */
	if (value - stack < size)
		value -= stack;
	else if (value >= size)
		return 0;
	return value + (is_moved ? t->moved_to : stack);
}

struct frame_list {
	const struct lua *lua;
	const struct language_memory *memory;
	const struct interpreter_thread *thread;
	struct virtual_frame *out;
	size_t count, max;
};

/*
 * Adds the frames of the state in @block, up to the one that is a part of it. 0, -EFAULT or -E2BIG,
 * as of virtual_frames_walk.
 */
static ssize_t add_frames(struct frame_list *list, taddr_t block)
{
	const struct language_memory *m = list->memory;
	const struct lua_layout *layout = &list->lua->layout;
	uint8_t state[STATE_BYTES], call[CALL_BYTES];
	taddr_t at, last = 0;

	if (!m->read(m->ctx, block + STATE_IN_BLOCK, state, sizeof(state)))
		return -EFAULT;
	for (at = load_u64(state + STATE_CALL); at; at = load_u64(call + CALL_PREVIOUS)) {
		if (list->count == list->max)
			return -E2BIG;
		if (at % sizeof(at) || !m->read(m->ctx, at, call, layout->flags + 2u))
			return -EFAULT;
		taddr_t value = moved_value(list->lua, list->thread, state,
					    load_u64(call + CALL_FUNCTION));

		list->out[list->count++] = (struct virtual_frame){
			.at = at, .identity = value ? lua_proto_in(m, value) : 0,
			.position = load_u64(call + layout->position),
			.is_entry = call[layout->flags] & layout->fresh,
		};
		last = at;
	}
	return last == block + STATE_IN_BLOCK + layout->base ? 0 : -EFAULT;
}

/*
 * Adds the frames of the states that run in the thread, which it searches. What only looks like one
 * is left out: the memory of a coroutine that is gone. -EFAULT if there is nothing else, or -E2BIG.
 */
static ssize_t add_states(struct frame_list *list, struct state_search *s)
{
	uint32_t count = 0, loose = 0;

	search_stack(s, list->thread);
	for (uint32_t k = 0; k < s->count; k++) {
		size_t first = list->count;
		ssize_t err = add_frames(list, s->found[k].block);

		if (err == -E2BIG)
			return err;
		if (err != 0) {
			list->count = first;
			continue;
		}
		s->found[count] = s->found[k];
		s->found[count++].first = first;
	}
	if (count == 0 && s->count > 0)
		return -EFAULT;
	/* of several without a place in the stack no one knows which is this thread's */
	while (loose < count && !s->found[count - 1 - loose].jump)
		loose++;
	if (loose > 1) {
		count -= loose;
		list->count = s->found[count].first;
	}
	s->count = count;
	return 0;
}

static ssize_t stack_of(const struct interpreter *i, const struct language_memory *m,
			struct interpreter_thread *t, struct virtual_frame *out, size_t max)
{
	const struct lua *l = i->own;
	struct found_state found[STATES_MAX];
	struct state_search s = {.lua = l, .memory = m, .found = found};
	struct frame_list list = {l, m, t, out, 0, max};
	ssize_t err;

	t->count = 0;
	err = add_states(&list, &s);
	if (err != 0)
		return err;
	/* pads follow what counts, if there is room for all */
	for (uint32_t k = 0; k < s.count && s.count <= INTERPRETER_STATES_MAX; k++)
		t->state[t->count++] = found[k].block;
	return (ssize_t)list.count;
}

/* -- finding -- */

/*
 * Which function luaD_rawrunprotected is, if it has no symbol: the innermost longjmp buffer of a
 * state is in its frame, at the lower end of which is the address to which what it calls returns.
 */
#define FRAME_WORDS 64u

static bool find_runner(struct lua *l, const struct language_memory *m, taddr_t jump)
{
	uint64_t word;

	for (uint32_t n = 1; jump && n <= FRAME_WORDS; n++) {
		if (!language_read_word(m, jump - n * sizeof(word), &word))
			return false;
		for (uint32_t i = 0; i < l->runners; i++) {
			if (!range_has(&l->runner[i], word - 1))
				continue;
			l->runner[0] = l->runner[i];
			l->runners = 1;
			return true;
		}
	}
	return false;
}

/* 5.4 at the end of "$LuaVersion: Lua 5.4.4"; 0: it is none. */
static uint32_t read_release(const struct lua *l, const struct language_memory *m)
{
	static const char begin[] = "$LuaVersion: Lua ";
	char text[sizeof(begin) - 1 + 6];
	const char *at = text + sizeof(begin) - 1;

	if (!m->read(m->ctx, l->version_text, text, sizeof(text)) ||
	    memcmp(text, begin, sizeof(begin) - 1) != 0 || !isdigit(at[0]) || !isdigit(at[2]) ||
	    !isdigit(at[4]))
		return 0;
	return LUA_RELEASE(at[0] - '0', at[2] - '0', at[4] - '0');
}

/*
 * What pads need to know, once a call is protected by @jump, a longjmp buffer; 0 = none: until then
 * each call stops.
 */
static bool use_runner(struct lua *l, const struct language_memory *m, taddr_t jump)
{
	if (l->runners != 1 && !find_runner(l, m, jump))
		return false;
	l->frames.thread.kind = VIRTUAL_STATE_STACK;
	l->frames.values.runner_start = l->runner[0].start;
	l->frames.values.runner_end = l->runner[0].end;
	return true;
}

/* As of language.find_place: Lua was found in a call without protection. */
static bool find_protected(struct interpreter *i, const struct language_memory *m,
			   const struct interpreter_thread *t)
{
	struct lua *l = i->own;
	taddr_t jump;

	for (uint32_t k = 0; k < t->count; k++)
		if (language_read_word(m, t->state[k] + STATE_IN_BLOCK + l->layout.jump, &jump) &&
		    use_runner(l, m, jump))
			return true;
	return false;
}

/* Whether the functions of @list have names. */
static bool have_names(const struct frame_list *list)
{
	struct virtual_function f;
	size_t right = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!list->out[i].identity)
			continue;
		if (function_read(list->lua, list->memory, &list->out[i], &f) != 0)
			return false;
		right += list->out[i].position - f.start <= f.size;
		virtual_function_deinit(&f);
	}
	return right > 0;
}

#define TRIED_FRAMES 64u

/* Whether there is a state whose functions have names. */
static bool is_right(struct lua *l, const struct language_memory *m,
		     const struct interpreter_thread *t)
{
	struct virtual_frame frame[TRIED_FRAMES];
	struct found_state found[STATES_MAX];
	struct state_search s = {.lua = l, .memory = m, .found = found};
	struct frame_list list = {l, m, t, frame, 0, ARRAY_SIZE(frame)};

	search_stack(&s, t);
	for (uint32_t k = 0; k < s.count; k++) {
		list.count = 0;
		if (add_frames(&list, found[k].block) == -EFAULT || !have_names(&list))
			continue;
		use_runner(l, m, found[k].jump);
		return true;
	}
	return false;
}

static bool find_lua(struct interpreter *i, const struct interpreter_process *in,
		     char **problem_out)
{
	const char *name = text_base_name(in->path);
	struct lua *l = i->own;
	uint32_t release = read_release(l, &in->memory);

	if (!release)
		*problem_out = xasprintf("%s has a Lua before 5.3; known are 5.3.3 to 5.4.8", name);
	else if (!lua_layout_use(l, release))
		*problem_out = xasprintf("%s is Lua %u.%u.%u; known are 5.3.3 to 5.4.8, but for "
					 "5.4.0 and 5.4.1", name, release >> 16,
					 release >> 8 & 0xff, release & 0xff);
	else if (!is_right(l, &in->memory, in->thread))
		*problem_out = xasprintf("no stack was found that runs Lua code of %s, as Lua "
					 "%u.%u.%u has it", name, release >> 16,
					 release >> 8 & 0xff, release & 0xff);
	return !*problem_out;
}

/* -- the object -- */

#define LOOP "luaV_execute"
#define INSTRUCTIONS_MIN 4096u
#define EMBEDDED_MAX (UINT64_C(1) << 20) /* bytes of all of Lua's code */

struct lua_object {
	struct elf_file *elf;
	taddr_t bias;
	struct lua *lua;
	struct addr_range call, resume; /* lua_callk, lua_resume: in the file */
	struct addr_range all;          /* functions that only Lua has */
	struct elf_functions functions;
};

static void take_function(struct lua_object *s, const struct elf_symbol *sym)
{
	struct addr_range at = {sym->vaddr, sym->vaddr + sym->size};
	struct lua *l = s->lua;

	if (strcmp(sym->name, "lua_callk") == 0)
		s->call = at;
	if (strcmp(sym->name, "lua_resume") == 0)
		s->resume = at;
	if (strcmp(sym->name, "luaD_rawrunprotected") == 0 && !l->runners)
		l->runner[l->runners++] = (struct addr_range){s->bias + at.start,
							      s->bias + at.end};
	if (strcmp(sym->name, LOOP) == 0)
		virtual_loop_add(&l->frames, &(struct virtual_loop){
			s->bias + at.start, s->bias + at.end, VIRTUAL_LOOP});
}

/* Between these, each in another source file, is all of Lua's code in a program that embeds it. */
static const char *const own_functions[] = {
	"lua_callk", "lua_newstate", "luaV_execute", "luaD_rawrunprotected", "luaC_step",
	"luaH_resize", "luaM_realloc_", "luaS_new", "luaZ_fill", "luaL_newstate", "luaL_openlibs",
	"luaopen_base", "luaopen_coroutine", "luaopen_table", "luaopen_string", "luaopen_math",
	"luaopen_io", "luaopen_os", "luaopen_utf8", "luaopen_debug", "luaopen_package",
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct lua_object *s = ctx;

	if (!sym->is_defined || !sym->name || strncmp(sym->name, "lua", 3) != 0)
		return 0;
	if (strcmp(sym->name, "lua_ident") == 0)
		s->lua->version_text = s->bias + sym->vaddr;
	if (!elf_symbol_is_function(sym))
		return 0;
	take_function(s, sym);
	for (size_t i = 0; i < ARRAY_SIZE(own_functions); i++) {
		if (strcmp(sym->name, own_functions[i]) != 0)
			continue;
		s->all.start = s->all.end ? MIN(s->all.start, sym->vaddr) : sym->vaddr;
		s->all.end = MAX(s->all.end, sym->vaddr + sym->size);
	}
	return 0;
}

/* lua_callk calls luaD_call, which calls the loop, much the largest function that it calls. */
static void find_loop(struct lua_object *s)
{
	const struct elf_function *largest = NULL;
	struct interpreter_called called;

	interpreter_find_called(s->elf, &s->functions, s->call.start, s->call.end, &called);
	for (size_t i = 0; i < called.count; i++)
		largest = interpreter_largest_called(s->elf, &s->functions, called.list[i],
						     largest);
	if (largest && largest->end - largest->start >= INSTRUCTIONS_MIN)
		virtual_loop_add(&s->lua->frames, &(struct virtual_loop){
			s->bias + largest->start, s->bias + largest->end, VIRTUAL_LOOP});
}

/* lua_resume calls luaD_rawrunprotected, and others. */
static void find_runners(struct lua_object *s)
{
	struct lua *l = s->lua;
	struct interpreter_called called;

	interpreter_find_called(s->elf, &s->functions, s->resume.start, s->resume.end, &called);
	for (size_t i = 0; i < called.count && l->runners < ARRAY_SIZE(l->runner); i++)
		l->runner[l->runners++] = (struct addr_range){s->bias + called.list[i]->start,
							      s->bias + called.list[i]->end};
}

static bool is_lua_object(const char *name)
{
	(void)name; /* any program can embed Lua */
	return true;
}

static bool has_lua_name(const char *name)
{
	return strncmp(name, "lua", 3) == 0 || strncmp(name, "liblua", 6) == 0;
}

static bool open_lua(struct elf_file *elf, taddr_t bias, struct interpreter *out)
{
	struct lua *l = xcalloc(1, sizeof(*l));
	struct lua_object s = {.elf = elf, .bias = bias, .lua = l};
	bool is_own = has_lua_name(text_base_name(elf->path));

	interpreter_own(out, l, &l->frames);
	if (is_own || elf->has_interp)
		elf_file_each_symbol(elf, take_symbol, &s);
	if (!l->version_text) {
		interpreter_close_own(out);
		return false;
	}
	elf_functions_find(elf, &s.functions);
	if (!l->frames.loops.count)
		find_loop(&s);
	if (!l->runners)
		find_runners(&s);
	vec_deinit(&s.functions.list);
	if (l->frames.loops.count)
		interpreter_find_parts(elf, bias, &l->frames);
	else
		out->missing = LOOP;
	if (!is_own && s.all.end - s.all.start < EMBEDDED_MAX)
		out->embedded = (struct addr_range){bias + s.all.start, bias + s.all.end};
	return true;
}

static void copy_lua(const struct interpreter *from, struct interpreter *out)
{
	const struct lua *old = from->own;
	struct lua *l = xcalloc(1, sizeof(*l));

	l->version_text = old->version_text;
	memcpy(l->runner, old->runner, sizeof(l->runner));
	l->runners = old->runners;
	interpreter_own(out, l, &l->frames);
}

static bool is_lua_part(const char *path)
{
	return has_lua_name(text_base_name(path));
}

static char *version_of(const struct interpreter *i)
{
	const struct lua *l = i->own;

	return xasprintf("%u.%u", l->layout.first >> 16, l->layout.first >> 8 & 0xff);
}

const struct language language_lua = {
	.name = "Lua",
	.is_object = is_lua_object,
	.is_part = is_lua_part,
	.open = open_lua,
	.copy = copy_lua,
	.close = interpreter_close_own,
	.find = find_lua,
	.find_place = find_protected,
	.stack = stack_of,
	.read_function = read_function,
	.line = line_at,
	.version = version_of,
};
