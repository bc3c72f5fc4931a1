/*
 * Lua states in pools that are unmapped with their state: 50 of them, one after the other, whose
 * scripts allocate in coroutines. What is used of Lua is declared here, alike for 5.3 and 5.4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POOL ((size_t)16 << 20)
#define ALL_RESULTS (-1)

typedef struct lua_State lua_State;

lua_State *lua_newstate(void *(*allocate)(void *, void *, size_t, size_t), void *data);
void luaL_openlibs(lua_State *L);
void lua_pushcclosure(lua_State *L, int (*function)(lua_State *), int values);
void lua_setglobal(lua_State *L, const char *name);
int luaL_loadstring(lua_State *L, const char *text);
int lua_pcallk(lua_State *L, int arguments, int results, int handler, long context, void *after);
void lua_close(lua_State *L);

static char *pool;
static size_t used;
static int calls;

/* Nothing is used again. */
static void *allocate(void *data, void *block, size_t before, size_t size)
{
	char *new = pool + used;

	(void)data;
	if (!size || (block && size <= before))
		return size ? block : NULL;
	used += (size + 15) & ~(size_t)15;
	if (used > POOL)
		abort();
	return block ? memcpy(new, block, before) : new;
}

static int grab(lua_State *L)
{
	void *volatile block = malloc(1234);

	(void)L;
	free(block);
	calls++;
	return 0;
}

static void run(void)
{
	static const char script[] =
		"local function f(n) for i = 1, 50 do grab() end end\n"
		"local co = coroutine.wrap(function() f(1) coroutine.yield() f(2) end)\n"
		"co() f(3) co()";

	pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	used = 0;
	lua_State *L = lua_newstate(allocate, NULL);

	luaL_openlibs(L);
	lua_pushcclosure(L, grab, 0);
	lua_setglobal(L, "grab");
	if (luaL_loadstring(L, script) || lua_pcallk(L, 0, ALL_RESULTS, 0, 0, NULL))
		abort();
	lua_close(L);
	/* so that the next pool has another address */
	mprotect(pool, POOL, PROT_NONE);
	free(malloc(77));
}

int main(void)
{
	for (int i = 0; i < 50; i++)
		run();
	printf("%d calls\n", calls);
	return 0;
}
