/*
 * V8, the JavaScript engine of Node.js, from outside: which function a stack frame of it runs, and
 * its name, file and line. Nothing is executed in the program.
 *
 *	v8dbg_*: variables with offsets and types, for debuggers of core files, in node itself
 *	frame pointer -> closure (JSFunction) -> SharedFunctionInfo -> name, Script -> name, source
 *
 * Interpreted functions all run in one piece of code, so their frames tell what runs, not their
 * addresses; those of compiled functions have the same layout. Objects move when garbage is
 * collected, closures often, SharedFunctionInfos rarely. So a function is identified by the address
 * of the latter, together with a stamp, and is read while a frame of it is on a stack.
 *
 * Functions that the compiler has inlined have no frame.
 */
#ifndef PTMEM_LANGUAGES_V8_H
#define PTMEM_LANGUAGES_V8_H

#include "arch/pad_virtual.h"
#include "base/alloc.h"
#include "languages/virtual_frames.h"

struct elf_file;

/* Offsets in objects, from their beginning; -1 = unknown. */
struct v8_layout {
	int32_t frame_context, frame_closure; /* from the frame pointer */
	int32_t closure_function;
	int32_t function_name, function_script, function_flags, function_metadata;
	int32_t script_name, script_source;
	int32_t map, map_type;
	int32_t string_length, one_byte, two_byte, cons_first, cons_second, sliced_parent,
		sliced_offset, thin_actual, external_resource;
	/* in words, from the first behind the map */
	int32_t scope_locals, scope_names;
	/* types of objects */
	int32_t type_function, type_scope, type_script;
};

/* The ends of a script's lines, as long as the script is where it was. */
struct v8_lines {
	taddr_t script, source;
	uint32_t length;
	VEC(uint32_t) end; /* positions of line feeds, ascending */
};

#define V8_LINES 16u

struct v8 {
	struct v8_layout layout;
	uint64_t loop, loop_end; /* virtual addresses of the interpreter's code in the file */
	struct v8_lines lines[V8_LINES];
	uint32_t next_lines;
};

/*
 * Fills in @out from the symbols of @elf, which is mapped with @bias. -ENOENT: V8 is not in it;
 * -ENODATA: it is, but without what is needed; -EINVAL: it is of an unknown version. v8_deinit
 * frees @out.
 */
int v8_open(struct elf_file *elf, taddr_t bias, const struct language_memory *m, struct v8 *out);
void v8_deinit(struct v8 *v);

/* What pads need to know, but for the ranges of the code. */
void v8_fill_pad_layout(const struct v8 *v, struct pad_virtual_layout *out);

/* The function of the frame with frame pointer @fp, by its address; 0 = none. */
uint64_t v8_frame_function(const struct v8 *v, const struct language_memory *m, taddr_t fp);

/* The stamp of the function @at, as pads compute it. 0 if it cannot be read. */
uint64_t v8_function_stamp(const struct v8 *v, const struct language_memory *m, uint64_t at);

struct v8_function {
	char *name;    /* "(anonymous)" if it has none. Owned, visible */
	char *path;    /* "/srv/shop.js", "node:fs"; NULL = unknown. Owned, visible */
	uint32_t line; /* where it begins; 0 = unknown */
};

/* Reads the function @at. -EINVAL if there is none. v8_function_deinit frees @out. */
int v8_function_read(struct v8 *v, const struct language_memory *m, uint64_t at,
		     struct v8_function *out);
void v8_function_deinit(struct v8_function *f);

#endif
