#!/usr/bin/env python3
"""Checks scripts/layers: each of its rules finds a violation that is planted in a small tree of sources; and scripts/metrics:
it counts what is planted.

    tests/layers.py        prints "N passed, N failed"
"""
import collections
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A tree that keeps all rules: file: text.
CLEAN = {
    "arch/arch.h": "int arch_word_size(void);\n",
    "arch/x86_64/arch.c": '#include "arch/arch.h"\nint arch_word_size(void)\n{\n\treturn 8; /* of rax */\n}\n',
    "src/base/alloc.h": "void vec_grow(void);\n",
    "src/base/vec.c": '#include "base/alloc.h"\nvoid vec_grow(void)\n{\n}\n',
    "src/tracee/os/maps.h": "void maps_read(void);\n",
    "src/tracee/os/maps.c": '#include "tracee/os/maps.h"\n#include "base/alloc.h"\nvoid maps_read(void)\n{\n\tvec_grow();\n}\n',
    "src/tracee/control/control.h": "void loop_run(void);\n",
    "src/tracee/control/loop.c": '#include "tracee/os/maps.h"\nvoid loop_run(void)\n{\n\tmaps_read();\n}\n',
    "src/cli/main.c": '#include "arch/arch.h"\n#include "tracee/control/control.h"\n'
                      "int main(void)\n{\n\tloop_run();\n\treturn arch_word_size();\n}\n",
}
OF_TEST = {"src/base/sort.c": "void sort_words(void);\nvoid sort_words(void)\n{\n}\n",
           "tests/unit/test_sort.c": "/* calls sort_words */\n"}
LONG_FUNCTION = "static inline void f(void)\n{\n" + "\t;\n" * 61 + "}\n"

# name: (rule or None if all is well, {file: text}); what follows CLEAN is added to the file's text.
CASES = {
    "clean": (None, {}),
    "a function that a test calls": (None, OF_TEST),
    "lower includes higher": ("include", {"src/base/vec.c": '#include "cli/main.h"\n'}),
    "a stage that must not be known": ("include", {"src/profile/p.c": '#include "tracee/os/maps.h"\n'}),
    "a directory outside the order": ("include", {"src/other/x.c": "extern int x;\n"}),
    "an include of no directory": ("include", {"src/base/vec.c": '#include "nowhere/x.h"\n'}),
    "another stage's library": ("include", {"src/profile/p.c": "#include <sys/ptrace.h>\n"}),
    "tracee's lower includes higher": ("call", {"src/tracee/os/maps.c": '#include "tracee/control/control.h"\n'}),
    "lower calls higher": ("call", {"src/base/a.c": "void maps_read(void);\nvoid a(void);\nvoid a(void)\n{\n\tmaps_read();\n}\n",
                                    "tests/unit/t.c": "a"}),
    "a cycle of two": ("cycle", {"src/base/a.c": "void b(void);\nvoid a(void);\nvoid a(void)\n{\n\tb();\n}\n",
                                 "src/base/b.c": "void a(void);\nvoid b(void);\nvoid b(void)\n{\n\ta();\n}\n"}),
    "a cycle of three": ("cycle", {f"src/base/{x}.c": f"void {y}(void);\nvoid {x}(void);\nvoid {x}(void)\n{{\n\t{y}();\n}}\n"
                                   for x, y in ("ab", "bc", "ca")}),
    "a function without a caller": ("caller", {"src/base/a.c": "void a(void);\nvoid a(void)\n{\n}\n"}),
    "a static variable": ("global", {"src/base/vec.c": "static int last;\nint vec_next(void);\nint vec_next(void)\n{\n\treturn ++last;\n}\n",
                                     "tests/unit/t.c": "vec_next"}),
    "a variable that has a value": ("global", {"src/base/vec.c": "extern int vec_last;\nint vec_last = 1;\n"}),
    "a table of constants": (None, {"src/base/vec.c": "extern const char *const vec_names[];\nconst char *const vec_names[] = {\"a\"};\n"}),
    "a variable among the others": (None, {"src/base/globals.c": "extern int last;\nint last = 1;\n"}),
    "a list among the globals": ("global", {"src/base/globals.h": "struct globals {\n\tvolatile sig_atomic_t child;\n"
                                            "\tVEC(struct elf_file *) open_files;\n};\n"}),
    "a counter among the globals": ("global", {"src/base/globals.h": "struct globals {\n\tuint32_t last_id; /* of all */\n};\n"}),
    "globals of handlers and of the log": (None, {
        "src/base/globals.h": "struct log_globals {\n\tconst char *name;\n};\nstruct globals {\n\ttimer_t timer;\n"
                              "\tvolatile sig_atomic_t wake; /* call poll\n\tsoon */\n\tstruct log_globals log;\n};\n"}),
    "six parameters": ("parameters", {"src/base/alloc.h": "static inline void f(int a, int b, int c, int d, int e, void (*g)(int, int))\n{\n}\n"}),
    "five parameters": (None, {"src/base/alloc.h": "static inline void f(int a, int b, int c, int d, void (*g)(int, int))\n{\n}\n"}),
    "a named function of six": (None, {"src/listen/http.c":
        "static void on_request(int a, int b, int c, int d, int e, int f)\n{\n}\nvoid *use_it(void);\nvoid *use_it(void)\n{\n\treturn on_request;\n}\n",
                                       "tests/unit/t.c": "use_it"}),
    "two headers of a name": ("name", {"src/tracee/os/alloc.h": ""}),
    "two structs of a name": ("name", {"src/base/alloc.h": "struct vec {\n\tint n;\n};\n",
                                       "src/cli/main.c": "struct vec\n{\n\tint n;\n};\n"}),
    "a struct and an enum of a name": ("name", {"src/base/alloc.h": "struct vec {\n\tint n;\n};\n",
                                                "arch/arch.h": "enum vec { VEC };\n"}),
    "a struct that others use": (None, {"src/base/alloc.h": "struct vec {\n\tint n;\n}; /* struct vec { */\n",
                                        "src/cli/main.c": "struct vec;\nextern struct vec *const v;\n"}),
    "code without a header": (None, {"src/base/a.c": "extern const int a;\nconst int a = 1;\n"}),
    "a register": ("cpu", {"src/base/alloc.h": "/* in rdi */\n"}),
    "47 bits": ("assume", {"src/base/alloc.h": "#define TOP (1ul << 47)\n"}),
    "the highest address": ("assume", {"src/base/alloc.h": "#define TOP 0x7ffffffff000\n"}),
    "the highest address with a suffix": ("assume", {"src/base/alloc.h": "#define TOP 0x00007FFFFFFFFFFFull\n"}),
    "bits of an address": ("assume", {"src/base/alloc.h": "#define ADDR_BITS 48\n"}),
    "bits of an address in an enum": ("assume", {"src/base/alloc.h": "enum { VA_BITS = 48 };\n"}),
    "a field of 48 bits": ("assume", {"src/base/alloc.h": "struct rule {\n\tunsigned long addr : 48;\n};\n"}),
    "the first address above": ("assume", {"src/base/alloc.h": "#define TOP 0x800000000000ull\n"}),
    "a mask of 48 bits": ("assume", {"src/base/alloc.h": "#define LOW 0x0000FFFFFFFFFFFFul\n"}),
    "a mask of 64 bits": (None, {"src/base/alloc.h": "#define ALL 0xffffffffffffffffull\n"}),
    "2 to the power of 48": ("assume", {"src/base/alloc.h": "#define TOP 0x1000000000000\n"}),
    "a shift by 48 less a page": ("assume", {"src/base/alloc.h": "#define INDEX(addr) ((addr) >> (48 - 12))\n"}),
    "a return address below a CFA in brackets": ("assume", {"src/base/alloc.h": "#define BACK(cfa) ((cfa) - 8)\n"}),
    "a return address with a suffix": ("assume", {"src/base/alloc.h": "#define BACK(cfa_at) (cfa_at - 8ull)\n"}),
    "a return address below the CFA": ("assume", {"src/base/alloc.h": "#define BACK(cfa) (cfa - 8)\n"}),
    "a word from the CFA": (None, {"src/base/alloc.h": "#define WORD(cfa, i) (cfa + 8 * (i))\n"}),
    "a page of 4096": ("assume", {"src/base/alloc.h": "#define PAGE(x) ((x) & ~0xfff)\n"}),
    "a return address": ("assume", {"src/base/alloc.h": "#define BACK(sp) (sp + 8)\n"}),
    "a breakpoint of one byte": ("assume", {"src/base/alloc.h": "#define TRAP 0xcc\n"}),
    "a page of 4096ul": ("assume", {"src/base/alloc.h": "#define PAGE(x) ((x) & ~4095ul)\n"}),
    "a breakpoint's first byte": ("assume", {"src/base/alloc.h": "#define IS_TRAP(a, b) ((b) == arch->trap[0])\n"}),
    "a no-op of one byte": ("assume", {"src/base/alloc.h": "#define NOP(s, a) space_write(s, a, arch->nop_insn, 1)\n"}),
    "a return address that a call pushes": ("assume", {
        "src/base/alloc.h": "#define BACK(s, v) space_read(s, regs->word[arch->sp], v, 8)\n"}),
    "bytes below the stack pointer": ("assume", {"src/base/alloc.h": "#define FREE(sp) (sp - 128)\n"}),
    "six saved registers": ("assume", {"src/base/alloc.h": "struct saved {\n\tlong saved[6];\n};\n"}),
    "a set of registers in 32 bits": ("assume", {"src/base/alloc.h": "#define PC(arch) (1u << arch->dwarf_pc)\n"}),
    "the kernel's registers of a CPU": ("cpu", {"src/base/alloc.h": "struct user_regs_struct;\n"}),
    "a relocation of a CPU": ("cpu", {"src/base/alloc.h": "#define RELATIVE R_X86_64_RELATIVE\n"}),
    "a seccomp filter's CPU": ("cpu", {"src/base/alloc.h": "#define CPU AUDIT_ARCH_X86_64\n"}),
    "an intrinsic": ("cpu", {"src/base/alloc.h": "#define NOW __builtin_ia32_rdtsc()\n"}),
    "a header of intrinsics": ("include", {"src/base/alloc.h": "#include <emmintrin.h>\n"}),
    "POKEUSER": ("assume", {"src/base/alloc.h": "#define POKE PTRACE_POKEUSER\n"}),
    "an old system call": ("assume", {"src/base/alloc.h": "#define OPEN SYS_open\n"}),
    "a long function": ("size", {"src/base/alloc.h": LONG_FUNCTION}),
    "a long file": ("size", {"src/base/alloc.h": "\n" * 1000}),
    "a wide line": ("width", {"src/base/alloc.h": "/*" + "\t" * 12 + "xx */\n"}),
    "a line of 100": (None, {"src/base/alloc.h": "/*" + "x" * 96 + "*/\n"}),
    "a wide line of a script": ("width", {"src/output/html/app.js": "/*" + "x" * 97 + "*/\n"}),
    "a wide line of a style": ("width", {"src/output/html/style.css": "\t" * 13 + "\n"}),
    "a conflict marker": ("conflict", {"README": "<" * 7 + " HEAD\n"}),
}
# Those that run scripts/layers as a program; the others call it in this process.
AS_PROGRAM = {"clean", "a conflict marker"}
# A tree whose numbers are known: one static of two is used once, one export of two has one caller, one header is private.
MEASURED = {
    "src/base/vec.c": "static int once(int);\nstatic int twice(int n)\n{\n\treturn n; /* once( */\n}\n\n"
                      "void vec_use(void)\n{\n\tonce(twice(twice(1)));\n}\n\n"
                      "static int once(\n\tint n)\n{\n\treturn \"once\" != (void *)0 ? n : 0;\n}\n",
    "src/base/private.h": "\n",
    "src/base/sort.c": '#include "base/private.h"\n#include "base/alloc.h"\nint sort(void)\n{\n\tvec_grow();\n\treturn 0;\n}\n',
    "src/output/html/app.js": "1\n2\n3\n",
}
METRICS = """\
| files | 11 |
| lines | 58 |
| exports / with one caller | 4 / 3 |
| statics used once | 1 |
| files below 60 lines | 11 |
| largest directory (files) | 4 (src/base) |
| function length, median / max | 4 / 5 |
| functions | 9 |
| private headers | 1 |
"""


def plant(tree, files):
    for name, text in CLEAN.items():
        write(tree / name, text + files.get(name, ""))
    for name, text in files.items():
        if name not in CLEAN:
            write(tree / name, text)
    (tree / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/layers", tree / "scripts/layers")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def closure(tree, path, seen):
    """Adds to @seen the texts that the compiler reads of @tree for the file @path."""
    if path in seen or not (tree / path).is_file():
        return
    seen[path] = (tree / path).read_text()
    for name in re.findall(r'#include "([^"]+)"', seen[path]):
        for directory in (os.path.dirname(path), "", "src"):
            closure(tree, os.path.normpath(os.path.join(directory, name)), seen)


def without_unused(texts):
    """@texts without what no object file depends on: comments, and macros that nothing uses."""
    texts = [re.sub(r"/\*.*?\*/", " ", text, flags=re.S) for text in texts]
    words = collections.Counter(re.findall(r"\w+", " ".join(texts)))
    keep = lambda m: "" if words[m[1]] == 1 else m[0]
    return tuple(re.sub(r"^#define (\w+)\b[^\\\n]*$", keep, text, flags=re.M).strip() for text in texts)


def compile_tree(tree, known):
    """One object file for each source that compiles: those with an include of nowhere have no symbols to check.
    @known: the object, or None, of each source that was compiled already, by all texts that are read for it."""
    for source in [*tree.rglob("src/**/*.c"), *tree.rglob("arch/**/*.c")]:
        out = tree / "build/release" / source.relative_to(tree).with_suffix(".o")
        out.parent.mkdir(parents=True, exist_ok=True)
        texts = {}
        closure(tree, str(source.relative_to(tree)), texts)
        key = tuple(texts), without_unused(texts.values())
        if key not in known:
            subprocess.run(["cc", "-I.", "-Isrc", "-c", "-o", out, source], cwd=tree, stderr=subprocess.DEVNULL, check=False)
            known[key] = out.read_bytes() if out.exists() else None
        elif known[key] is not None:
            out.write_bytes(known[key])


def load_layers():
    """scripts/layers as a module: it has no suffix."""
    loader = importlib.machinery.SourceFileLoader("layers", str(ROOT / "scripts/layers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("layers", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def run_layers(layers, tree, is_program):
    """(exit status, what is printed) for @tree."""
    if is_program:
        done = subprocess.run([tree / "scripts/layers", "-v"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            status = layers.main(tree.resolve(), ["-v"])
    finally:
        os.chdir(ROOT)
    return status, out.getvalue()


def run_case(layers, name, known):
    """An empty string, or what is wrong."""
    rule, files = CASES[name]
    with tempfile.TemporaryDirectory(prefix="ptmem-layers.") as directory:
        tree = pathlib.Path(directory)
        plant(tree, files)
        compile_tree(tree, known)
        status, said = run_layers(layers, tree, name in AS_PROGRAM)
    rules = {line.split("]")[0][1:] for line in said.splitlines() if line.startswith("[")}
    wanted = {rule} if rule else set()
    if rules != wanted or (status != 0) != bool(rule):
        return f"exit {status}, rules {sorted(rules)} for {sorted(wanted)}: {said}"
    return ""


def run_metrics():
    """An empty string, or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="ptmem-metrics.") as directory:
        tree = pathlib.Path(directory)
        plant(tree, MEASURED)
        compile_tree(tree, {})
        done = subprocess.run([ROOT / "scripts/metrics", tree], capture_output=True, text=True, check=False)
    table = done.stdout.partition("|---|---|\n")[2]
    return "" if table == METRICS and done.returncode == 0 else f"exit {done.returncode}: {done.stdout}{done.stderr}"


def main():
    failed, known, layers = 0, {}, load_layers()
    for name in CASES:
        wrong = run_case(layers, name, known)
        failed += bool(wrong)
        print(f"FAIL layers/{name}: {wrong}" if wrong else f"ok layers/{name}")
    wrong = run_metrics()
    failed += bool(wrong)
    print(f"FAIL metrics: {wrong}" if wrong else "ok metrics")
    print(f"{len(CASES) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    sys.exit(main())
