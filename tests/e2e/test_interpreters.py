"""--interpreters: which functions stacks have with each value, in each language that it is for."""

import glob
import os
import shutil

import harness
from harness import report_json, test

# what allocates in a function `obtain` of its own, and the program that runs it
PROGRAMS = {
    "ruby": (["ruby", "--disable=gems"], {}, "def obtain\n  @all = (1..200).map { |i| i.to_s * 50 }\nend\nobtain\n"),
    "php": (["php", "-n"], {"USE_ZEND_ALLOC": "0"}, "<?php\nfunction obtain() {\n  return array_map(fn($i) => str_repeat('x', 1000 + $i), "
                                             "range(1, 200));\n}\n$all = obtain();\n"),
    "lua": (["lua5.4"], {}, "function obtain()\n  local all = {}\n  for i = 1, 200 do\n    all[i] = string.rep('x', 1000 + i)\n  end\n"
                            "  return all\nend\nall = obtain()\n"),
    "perl": (["perl"], {}, "sub obtain {\n  my @all = map { 'x' x (1000 + $_) } 1 .. 200;\n  return \\@all;\n}\nmy $all = obtain();\n"),
}


def stacks(t, language, mode):
    """[[(function, is native)]] of the allocations of a program in @language, the innermost first; and the script's name."""
    command, environment, source = PROGRAMS[language]
    cwd = t.subdirectory()
    script = os.path.join(cwd, "obtain")
    with open(script, "w", encoding="utf-8") as file:
        file.write(source)
    argv = [t.program("env"), *["%s=%s" % v for v in environment.items()], t.program(command[0]), *command[1:], script]
    profile = t.profile(argv, ["--interpreters=" + mode, "--record=recording"], cwd=cwd)
    t.equal("%s, %s: exit status" % (language, mode), profile.status, 0)
    recording = report_json(t, os.path.join(cwd, "recording"))
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    found = []
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue
        stack = []
        while node >= 0:
            frame = nodes["frame"][node]
            internal = (frames["file"][frame] or "").startswith("<internal:")
            own = os.path.basename(frames["file"][frame] or "") == "obtain"
            stack.append((frames["function"][frame] or "", own, internal or own))
            node = nodes["parent"][node]
        found.append(stack)
    return found


def is_native(entry):
    return not entry[2]


def check(t, language, modes=("only", "mixed", "no")):
    """Functions in the place of the interpreter's, which is the default, are what tests of chains look at."""
    for mode in modes:
        found = stacks(t, language, mode)
        own = [s for s in found if any(entry[1] for entry in s)]
        if mode == "no":
            t.equal("%s: stacks with functions of the script, of %d" % (language, len(found)), len(own), 0)
            continue
        t.check(any(s for s in own if any("obtain" in name and mine for name, mine, _ in s)),
                "%s, %s: no stack has obtain" % (language, mode))
        native = [s for s in own if any(map(is_native, s))]
        if mode == "only":
            t.equal("%s, only: stacks with native functions" % language, native, [])
        if mode == "mixed":
            t.equal("%s, mixed: stacks with functions of the script, and with native ones" % language, len(own), len(native))
        if mode == "auto":
            interpreter = [s for s in own if any(entry[0] in ("main", "execute_ex", "perl_run", "ruby_run_node", "lua_callk", "lua_pcallk") for entry in s)]
            t.equal("%s, auto: stacks with functions of the interpreter" % language, interpreter, [])


@test("interpreters/ruby")
def ruby(t):
    check(t, "ruby")


@test("interpreters/php")
def php(t):
    check(t, "php")


@test("interpreters/perl")
def perl(t):
    check(t, "perl", ("auto", "only", "mixed", "no"))


@test("interpreters/lua")
def lua(t):
    check(t, "lua", ("auto", "only", "mixed", "no"))


@test("interpreters/refused")
def refused(t):
    """Builds that are not read: native functions, and a sentence that says why."""
    source = os.path.join(harness.ROOT, "tests", "targets", "forged_interpreter.c")
    for name, define, loop, sentence in (
            ("python3.14t", "PYTHON=1", "_PyEval_EvalFrameDefault", "the structs of python3.14t are not as Python 3.14 has them"),
            ("php-zts", "ZTS", "execute_ex", "php-zts is built for threads (ZTS)"),
            ("luaprogram", "OLD_LUA", "luaV_execute", "luaprogram has a Lua before 5.3")):
        cwd = t.subdirectory()
        path = os.path.join(cwd, name)
        t.equal("compiling", t.run([t.program("gcc"), "-g", "-O1", "-rdynamic", "-D" + define, "-o", path, source]).status, 0)
        profile = t.profile([path], ["--record=recording"], cwd=cwd)
        t.equal("%s: exit status" % name, profile.status, 0)
        t.check(any("functions of the interpreter are shown instead of the program's: " + sentence in m for m in profile.messages),
                "%s: %s" % (name, profile.messages))
        recording = report_json(t, os.path.join(cwd, "recording"))
        t.check(loop in recording["frames"]["function"], "%s: %s" % (name, recording["frames"]["function"]))


@test("interpreters/free-threaded")
def free_threaded(t):
    """PYTHONMALLOC=malloc is not for free-threaded builds of Python, which end at it: by the program, or by its library's name."""
    gcc, cwd = t.program("gcc"), t.subdirectory()
    source = os.path.join(harness.ROOT, "tests", "targets", "forged_interpreter.c")
    main = t.file("main.c", "int Py_BytesMain(void);\nint main(void)\n{\n\treturn Py_BytesMain();\n}\n")
    for kind, library, want in (("1", None, "none"), ("0", None, "malloc"), ("1", "libpython3.14t.so.1.0", "none"),
                                ("1", "libpython3.14td.so", "none"), ("0", "libpython3.14.so.1.0", "malloc"),
                                ("0", "libpython3.14d.so", "malloc")):
        path = os.path.join(cwd, "python3")
        command = [gcc, "-O1", "-rdynamic", "-DPYTHON=" + kind, "-o", path, source]
        if library:
            t.equal("compiling", t.run([*command[:-2], os.path.join(cwd, library), source, "-DLIBRARY", "-shared", "-fPIC",
                                        "-Wl,-soname," + library]).status, 0)
            command = [gcc, "-O1", "-o", path, main, os.path.join(cwd, library), "-Wl,-rpath," + cwd]
        t.equal("linking", t.run(command).status, 0)
        profile = t.profile([path], ["-o", "none"])
        t.equal("%s, %s: PYTHONMALLOC" % (kind, library), profile.out.decode().strip(), want)
        t.equal("%s, %s: the hint" % (kind, library), any("free-threaded Python has no allocator but its own" in m for m in profile.messages),
                want == "none")


RUNTIME = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
char area[1 << 16];
char *saved;
/* no unwind information says where it was called, since it has a stack of its own */
__asm__(".text\\n.globl generated\\n.type generated, @function\\ngenerated:\\n\\tmov %rsp, saved(%rip)\\n\\tlea area+65536(%rip), %rsp\\n"
	"\\tmov $100, %edi\\n\\tcall malloc@PLT\\n\\tmov saved(%rip), %rsp\\n\\tret\\n.size generated, . - generated\\n"
	".section .note.GNU-stack,\\"\\",@progbits\\n.text\\n");
void *generated(void);
int main(int argc, char **argv)
{
	size_t size = argc > 1 ? 20 << 20 : 1 << 20;
	char *heap = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(heap, 1, size);
	return !generated() || !malloc(1000);
}
"""

# name of the program, its symbol, whether its heap is large, what the summary says
RUNTIMES = (
    ("shop", "NimMain", True, ["Nim's objects are in its own heap: of 20", "useMalloc"]),
    ("shop", "NimMain", False, []),
    ("shop", "hs_init_ghc", True, ["Haskell's objects are in GHC's own heap", "call paths end in Haskell code, which has no unwind"]),
    ("shop", "caml_alloc_shr", True, ["OCaml's objects are in its own heap", "Gc.Memprof"]),
    ("shop", "other", True, []),
    ("sbcl", "other", False, ["Lisp functions have no names here"]),
    ("luajit-2.1", "other", False, ["Lua functions are not shown, but those of the interpreter"]),
    ("mono-sgen", "other", True, [".NET objects are in mono's own heap", "MONO_ENV_OPTIONS=--jitmap"]),
)


@test("interpreters/runtimes")
def runtimes(t):
    """Run-time systems whose objects or functions are not shown are recognized by name or symbol, and a sentence says which."""
    compiled = os.path.join(t.directory, "runtime.o")
    t.equal("compiling", t.run([t.program("gcc"), "-O1", "-c", "-o", compiled, t.file("runtime.c", RUNTIME)]).status, 0)
    for name, symbol, is_large, expected in RUNTIMES:
        path = os.path.join(t.subdirectory(), name)
        t.equal("linking", t.run([t.program("gcc"), "-Wl,--defsym=%s=main" % symbol, "-o", path, compiled]).status, 0)
        profile = t.profile([path, *["large"] * is_large], ["-o", "none"])
        t.equal("%s, %s: exit status" % (name, symbol), profile.status, 0)
        said = [m for m in profile.messages if "hint: " in m]
        t.check(all(any(e in m for m in said) for e in expected), "%s, %s: %s" % (name, symbol, said))
        t.equal("%s, %s: hints %s" % (name, symbol, said), bool(said), bool(expected))


@test("interpreters/two-libraries")
def two_libraries(t):
    """Python twice in a process: functions of the library that was mapped first, native ones of the other, and a sentence."""
    found = glob.glob(harness.LIBRARIES + "libpython3.*.so.1.0")
    if not found:
        raise harness.Skip("no library of Python")
    cwd = t.subdirectory()
    other, program = os.path.join(cwd, "libpython3-other.so"), os.path.join(cwd, "two")
    shutil.copy(found[0], other)
    source = os.path.join(harness.ROOT, "tests", "targets", "two_libraries.c")
    t.equal("compiling", t.run([t.program("gcc"), "-g", "-O1", "-o", program, source, "-ldl"]).status, 0)
    script = "def %s(n):\n    return [str(i) * 100 for i in range(n)]\nkeep = %s(200)\n"
    argv = [t.program("env"), "PYTHONMALLOC=malloc", program, found[0], script % ("one", "one"), other, script % ("two", "two")]
    profile = t.profile(argv, ["--record=recording"], cwd=cwd)
    t.equal("exit status (%s)" % profile.err.decode()[-300:], profile.status, 0)
    functions = report_json(t, os.path.join(cwd, "recording"))["frames"]["function"]
    t.check("one" in functions and "two" not in functions, "functions: %s" % functions)
    t.check("_PyEval_EvalFrameDefault" in functions, "no function of the other interpreter")
    t.check(any("functions of %s are shown, of %s the interpreter's" % (os.path.basename(found[0]), other) in m for m in profile.messages),
            "messages: %s" % profile.messages)
