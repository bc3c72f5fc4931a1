"""Functions of Lua programs in stacks: targets/lua_chains.lua knows the chain of functions of each of its allocations, and all
must be in the recording: with the calls and bytes of each, from the start or attached, in coroutines, in a fork, and in programs
that embed Lua."""

import os

import harness
from chains_lib import check_chains, check_started, run_attached, sum_chains
from harness import Skip, test

SOURCE = os.path.join(harness.ROOT, "tests", "targets", "lua_chains.c")
POOLS = os.path.join(harness.ROOT, "tests", "targets", "lua_pools.c")
SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "lua_chains.lua")
LATE = """
#include <stddef.h>
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
int luaL_loadstring(lua_State *L, const char *s);
int lua_callk(lua_State *L, int n, int r, ptrdiff_t c, void *k);
int lua_pcallk(lua_State *L, int n, int r, int h, ptrdiff_t c, void *k);
int main(void)
{
	lua_State *L = luaL_newstate();

	luaL_loadstring(L, "local t = {} for i = 1, 100 do t[i] = {i} end");
	lua_callk(L, 0, 0, 0, NULL);
	luaL_loadstring(L, "local t = {} for i = 1, 2500 do t[i] = {i} end");
	return lua_pcallk(L, 0, 0, 0, 0, NULL);
}
"""
NATIVE = ("main", "run_script", "thread_main")


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what take_block allocated."""
    def chain_of(functions):
        names = ["%s:%d" % (name, max(line, 0)) for name, line in functions if name not in NATIVE]
        if len(names) < 2 or functions[0][0] != "take_block" or functions[1][0] != "obtain":
            return None
        return "<".join(names[1:]).replace('"', "'")
    return sum_chains(t, path, chain_of, SOURCE)


def library(t):
    path = os.path.join(t.subdirectory(), "chains.so")
    t.equal("compiling", t.run([t.program("gcc"), "-g", "-O1", "-fPIC", "-shared", "-o", path, SOURCE]).status, 0)
    return path


def embedding(t, options):
    path = os.path.join(t.subdirectory(), "embeds")
    built = t.run([t.program("gcc"), "-g", "-O1", "-DEMBEDDED", "-pthread", "-rdynamic", "-o", path, SOURCE, *options, "-lm", "-ldl"])
    if built.status:
        raise Skip("no Lua to be linked with: %s" % built.err.decode()[:200])
    return path


def add_tests(version):
    program = "lua" + version

    @test("lua/%s/chains" % version)
    def started(t):
        check_started(t, [t.program(program), SCRIPT, library(t), "chains"], [], found_chains, "started")

    @test("lua/%s/chains/attached" % version)
    def attached(t):
        cwd, pid, _ = run_attached(t, [t.program(program), SCRIPT, library(t), "chains"], ["--record=recording.%p"])
        check_chains(t, cwd, pid, found_chains, "attached")

    @test("lua/%s/embedded" % version)
    def embedded(t):
        """The library, and a copy of it in the program; a call that is not protected."""
        ways = [("the library", [embedding(t, ["-l:liblua%s.so.0" % version]), "protected"])]
        if version == "5.4":  # how a state is found in a program does not depend on what it has
            static = embedding(t, ["-l:liblua%s.a" % version])
            ways += [("linked statically", [static, "protected"]), ("a call without protection", [static, "call"])]
        for what, argv in ways:
            check_started(t, [*argv, SCRIPT, library(t), "chains", "few"], [], found_chains, what)

    @test("lua/%s/embedded/late" % version)
    def late(t):
        """Lua is found in calls that are not protected: protected ones after them use jumps, also where the library has no symbols."""
        path = os.path.join(t.directory, "late")
        built = t.run([t.program("gcc"), "-g", "-O1", "-o", path, t.file("late.c", LATE), "-l:liblua%s.so.0" % version])
        if built.status:
            raise Skip("no Lua to be linked with: %s" % built.err.decode()[:200])
        profile = t.profile([path], ["-v"])
        t.equal("exit status", profile.status, 0)
        stops = [int(m.split(" at ")[1].split()[0].replace(",", "")) for m in profile.messages if "stopped " in m and " breakpoint" in m]
        t.check(len(stops) == 1 and stops[0] < 1000, "%s stops of 5,000 calls: %s" % (stops, profile.messages))

    @test("lua/%s/pools" % version)
    def pools(t):
        """States whose memory is gone, which frees do not show: pads read none of it."""
        path = os.path.join(t.directory, "pools")
        built = t.run([t.program("gcc"), "-g", "-O1", "-o", path, POOLS, "-l:liblua%s.so.0" % version])
        if built.status:
            raise Skip("no Lua to be linked with: %s" % built.err.decode()[:200])
        for probes in ("auto", "jump"):
            run = t.profile([path], ["--probes=" + probes])
            t.equal("the program: %s" % run.messages, (run.status, run.out), (0, b"7500 calls\n"))


for each_version in ("5.4", "5.3"):
    add_tests(each_version)


@test("lua/5.4/chains/breakpoints")
def by_breakpoints(t):
    """What differs between versions is read alike in both ways."""
    check_started(t, [t.program("lua5.4"), SCRIPT, library(t), "chains", "few"], ["--probes=break"], found_chains, "by breakpoints")
