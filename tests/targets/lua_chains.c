/*
 * For lua_chains.lua: functions that allocate and fork, loaded by package.loadlib, and, with
 * EMBEDDED, a program that embeds Lua and runs a script: lua_chains [call|threads] SCRIPT ARGUMENT...
 * "call": without a protected call; "threads": in three threads, each with a state of its own.
 *
 * What is used of Lua is declared here, alike for 5.3 and 5.4, whose headers need not be there.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct lua_State lua_State;

long long lua_tointegerx(lua_State *L, int index, int *is_number);
void lua_pushinteger(lua_State *L, long long n);

static void *volatile kept[64];
static unsigned next;

/* take_block(bytes) */
int take_block(lua_State *L)
{
	void *block = malloc((size_t)lua_tointegerx(L, 1, NULL));

	kept[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 64] = block;
	return 0;
}

/* The process of the child, or 0 in it. */
int fork_now(lua_State *L)
{
	lua_pushinteger(L, fork());
	return 1;
}

int kill_self(lua_State *L)
{
	(void)L;
	return kill(getpid(), SIGKILL);
}

int wait_for_child(lua_State *L)
{
	(void)L;
	while (wait(NULL) >= 0)
		;
	return 0;
}

#ifdef EMBEDDED
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
int luaL_loadfilex(lua_State *L, const char *path, const char *mode);
int lua_pcallk(lua_State *L, int arguments, int results, int handler, long context, void *k);
void lua_callk(lua_State *L, int arguments, int results, long context, void *k);
const char *lua_tolstring(lua_State *L, int index, size_t *size);
void lua_createtable(lua_State *L, int elements, int records);
const char *lua_pushstring(lua_State *L, const char *text);
void lua_rawseti(lua_State *L, int index, long long n);
void lua_setglobal(lua_State *L, const char *name);
void lua_close(lua_State *L);

static char **arguments;
static int is_protected = 1;

static __attribute__((noinline)) int run_script(const char *name)
{
	lua_State *L = luaL_newstate();
	int status;

	luaL_openlibs(L);
	lua_createtable(L, 0, 0);
	for (int i = 0; arguments[i]; i++) {
		lua_pushstring(L, arguments[i]);
		lua_rawseti(L, -2, i);
	}
	if (name) {
		lua_pushstring(L, name);
		lua_rawseti(L, -2, 2);
	}
	lua_setglobal(L, "arg");
	status = luaL_loadfilex(L, arguments[0], NULL);
	if (status == 0 && is_protected)
		status = lua_pcallk(L, 0, 0, 0, 0, NULL);
	else if (status == 0)
		lua_callk(L, 0, 0, 0, NULL);
	if (status)
		fprintf(stderr, "%s\n", lua_tolstring(L, -1, NULL));
	lua_close(L);
	return status;
}

static void *thread_main(void *name)
{
	return run_script(name) ? name : NULL;
}

int main(int argc, char **argv)
{
	static char name[3][64];
	pthread_t thread[3];
	void *failed = NULL, *result;

	if (argc < 4)
		return 2;
	arguments = argv + 2;
	is_protected = strcmp(argv[1], "call") != 0;
	if (strcmp(argv[1], "threads") != 0)
		return run_script(NULL) != 0;
	for (int i = 0; i < 3; i++) {
		snprintf(name[i], sizeof(name[i]), "%.50s.%d", arguments[2] ? "chains" : "", i);
		pthread_create(&thread[i], NULL, thread_main, name[i]);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &result);
		failed = failed ? failed : result;
	}
	return failed != NULL;
}
#endif
