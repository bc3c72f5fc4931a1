/*
 * What ptmem takes for an interpreter of a kind that it does not read, by its symbols: with PYTHON
 * 3.14, whose _Py_DebugOffsets are zeros but for PYTHON, 1 = a free-threaded build; with ZTS PHP for
 * threads, with OLD_LUA Lua 5.1. Its loop allocates. PYTHON: prints PYTHONMALLOC of its environment.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PYTHON
#define LOOP _PyEval_EvalFrameDefault
__attribute__((section(".PyRuntime"))) uint64_t _PyRuntime[128] = {
	0x7970677562656478 /* "xdebugpy" */, 0x030e00f0, PYTHON};
#elif defined(ZTS)
#define LOOP execute_ex
const char header[] = "X-Powered-By: PHP/8.2.0";
uint64_t executor_globals_offset = 64;
#else
#define LOOP luaV_execute
const char lua_ident[] = "$Lua: Lua 5.1.5 Copyright (C) 1994-2012 Lua.org, PUC-Rio $";
#endif

__attribute__((noinline)) void LOOP(void *volatile *out)
{
	for (int i = 0; i < 10; i++)
		out[i] = malloc(1000);
}

int Py_BytesMain(void);

int Py_BytesMain(void)
{
	static void *volatile block[10];
	const char *variable = getenv("PYTHONMALLOC");

	LOOP(block);
	for (int i = 0; i < 10; i++)
		free(block[i]);
	printf("%s\n", variable ? variable : "none");
	return 0;
}

#ifndef LIBRARY
int main(void)
{
	return Py_BytesMain();
}
#endif
