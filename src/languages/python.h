/*
 * CPython 3.8 to 3.15 from outside: finds the interpreter in a process, its threads, the list of
 * their frames as data (virtual_frames.h), and reads names and lines from code objects. Nothing is
 * executed in the program, and nothing is imported.
 *
 *	_PyRuntime -> interpreters -> thread states -> frames -> code objects -> names, lines
 *
 * Offsets come from _Py_DebugOffsets, with which _PyRuntime begins from 3.13 on, and from a table
 * before. Neither is believed before one walk makes sense: states lead back to their interpreters,
 * and a frame to a code object with names.
 *
 * The functions that run are identified by the addresses of their code objects. These die, and
 * addresses are used again: virtual_stamp tells whether it is still the same one.
 *
 * A free-threaded build differs by its offsets, which it publishes; and its threads run copies of
 * the instructions, to which positions then lead.
 */
#ifndef PTMEM_LANGUAGES_PYTHON_H
#define PTMEM_LANGUAGES_PYTHON_H

#include "languages/interpreter.h"

#define PYTHON_VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))
#define PYTHON_OLDEST PYTHON_VERSION(3, 8)
#define PYTHON_NEWEST PYTHON_VERSION(3, 15)

/* How a code object maps positions to lines. */
enum python_lines {
	PYTHON_LNOTAB,    /* to 3.9: pairs of steps */
	PYTHON_LINETABLE, /* 3.10: pairs (length, step or none) */
	PYTHON_LOCATIONS, /* since 3.11: PEP 626's successor, Objects/locations.md */
};

/* How a frame's position leads to an offset in its code. */
enum python_position {
	PYTHON_BYTES,   /* to 3.9: an index of bytes; -1 = before the first instruction */
	PYTHON_UNITS,   /* 3.10: of instructions, two bytes each */
	PYTHON_POINTER, /* since 3.11: the address of an instruction */
};

/* Offsets in the structs of a version; what a row of the table has. */
struct python_layout {
	uint32_t version;              /* PYTHON_VERSION */
	enum python_lines lines;
	enum python_position positions;
	/* _PyRuntime, interpreters, thread states */
	uint32_t interpreters, interp_next, interp_threads, state_next, state_interp,
		state_thread, current_state; /* current_state: in _PyRuntime; 0 = thread-local */
	/* code objects */
	uint32_t code_file, code_name, code_qualname, code_line, code_table, code_args, code_start,
		code_copies; /* code_copies: co_tlbc; 0 = none */
	/* objects of all types, texts, bytes */
	uint32_t type, size, type_name, text_length, text_state, text_ascii, text_compact,
		text_kind_bit, bytes_data;
};

/* An interpreter library in a process. */
struct python {
	struct python_layout layout;
	struct virtual_layout frames; /* for recorders */
	taddr_t runtime;       /* _PyRuntime */
	taddr_t code_type;     /* PyCode_Type; 0 = no code object was met */
	bool is_free_threaded;
	bool has_loop;         /* frames.loops is known; else nothing can be merged */
	char *path;            /* the object that it is in, as in the maps; owned */
};

struct pythons {
	VEC(struct python) list;
	/* why an interpreter that is there cannot be read; NULL = nothing to say. Owned */
	char *problem;
};

/*
 * Finds all interpreters of @in, which must be stopped. Looks at the executable and at objects with
 * "python" in their names. None is found before it was initialized and a thread runs Python
 * code: call it again after more was executed, @out->problem says what is missing. pythons_deinit
 * frees @out. Takes milliseconds: files are opened and their symbols read.
 */
void python_find(const struct interpreter_process *in, struct pythons *out);
void pythons_deinit(struct pythons *p);

/*
 * Finds in thread-local memory where threads have their states, from 3.12 on, so that a pad can
 * (frames.thread). @pointers: the thread pointers of all threads. A place counts that holds in each
 * of them its own state or nothing, and a state in one at least. False if there is none: threads
 * wait for the interpreter's lock now, or it was loaded later and has no fixed place.
 */
bool python_find_place(struct python *p, const struct language_memory *m, const taddr_t *pointers,
		       size_t count);

/*
 * Fills in the layouts of @version for the runtime at p->runtime: from the table, or by what is
 * there. False if that is of another version, or nonsense. Part of python_find, for tests.
 */
bool python_layout_use(struct python *p, const struct language_memory *m, uint32_t version);

/*
 * The frames of a thread, innermost first: as virtual_frames_walk, of all its states. What @states
 * has from an earlier call is checked, and found again if it does not hold, for which the states of
 * all threads are read: keep it with the thread. 0: the thread runs no Python. If the result does
 * not merge with the native stack, or leaves a loop bare, clear @states->count and try again once:
 * a sub-interpreter is new.
 */
ssize_t python_stack(const struct python *p, const struct language_memory *m,
		     struct interpreter_thread *states, struct virtual_frame *out, size_t max);

/* -- texts -- */

/*
 * Fills in the offsets of texts, of a version whose class str has objects of @size bytes, which
 * changed with them. False: none is known.
 */
bool python_text_layout(uint64_t size, struct python_layout *out);

/*
 * The str object at @addr, visible, in UTF-8; of a long one the beginning. NULL if it is none. The
 * caller frees it.
 */
char *python_text_read(const struct python_layout *l, const struct language_memory *m,
		       taddr_t addr);

/* -- code objects -- */

/*
 * Reads the code object at @code. -EINVAL if it is none, or has parts that cannot be read.
 * virtual_function_deinit frees @out.
 */
int python_code_read(const struct python *p, const struct language_memory *m, taddr_t code,
		     struct virtual_function *out);

/*
 * The offset in @c of the frame's position @position, in bytes; -1 = before the first instruction.
 * @m may be NULL: then copies of instructions (free-threaded builds) are not known.
 */
int64_t python_code_offset(const struct python *p, const struct language_memory *m,
			   const struct virtual_function *c, uint64_t position);

/* The line of the instruction at @offset; 0 if it has none. */
uint32_t python_code_line(const struct python_layout *l, const struct virtual_function *c,
			  int64_t offset);

#endif
