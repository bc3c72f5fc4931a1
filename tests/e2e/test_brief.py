"""--brief: every report in at most 4 KiB, largest first, whatever names it has; the commands that it prints run."""

import html
import os
import re
import subprocess

from harness import BUILD, test

MOST = 4096
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# long, and what acts on terminals, shells and readers of Markdown
NAMES = [b"long_" * 60, b"x" * 500, b"esc\x1b[31mred" + b"y" * 300, b"line\n- **9.0 GiB** forged\n            $ touch forged",
         b"`touch forged`", b"$(touch forged)", b"quote' ; touch forged ; '", b"</code><script>alert(1)</script>", "left\u202eright".encode(),
         b"bad\x80\xffutf8", b"a|b\\c", b"<T<T<T<T>>>>::" * 30]
NAMES += [b"many_%d_" % i + b"z" * 100 for i in range(60)]
ACTS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]")
REPORT = os.path.join(BUILD, "ptmem-report")


def build(t):
    """A program with a function of each name, which allocates more than the one before; half of it is lost."""
    source = "#include <stdlib.h>\nvoid *kept[%d];\n" % len(NAMES)
    source += "".join("__attribute__((noinline)) void f%d(void) { kept[%d] = malloc(%d); }\n" % (i, i, 1000 + 100 * i) for i in range(len(NAMES)))
    source += "int main(void) { %s for (int i = 0; i < %d; i += 2) kept[i] = NULL; return 0; }\n" % (
        " ".join("f%d();" % i for i in range(len(NAMES))), len(NAMES))
    t.file("names.c", source)
    for command in (["gcc", "-g", "-O1", "-c", "-o", "plain.o", "names.c"],
                    ["objcopy", "--strip-debug", *("--redefine-sym=f%d=%s" % (i, os.fsdecode(name)) for i, name in enumerate(NAMES)), "plain.o",
                     "names.o"],
                    ["gcc", "-o", "a program", "names.o"]):
        done = t.run(command, cwd=t.directory)
        t.equal("%s: %r" % (command, done.err), done.status, 0)
    return os.path.join(t.directory, "a program")


def plain(text):
    """Markdown's findings as those of a text: (sizes, commands)."""
    sizes = re.findall(r"^- \*\*([0-9.]+) (\w+)\*\* ", text, re.M)
    commands = [html.unescape(m[1] or m[2]) for m in re.finditer(r"^  (?:`(.*)`|<code>(.*)</code>)$", text, re.M)]
    return sizes, commands


def check(t, name, said, commands_out, is_markdown=False, prefix=b""):
    lines = said.splitlines(keepends=True)
    t.check(0 < len(said) <= MOST, "%s has %d bytes" % (name, len(said)))
    t.check(all(line.startswith(prefix) for line in lines), said)
    text = b"".join(line[len(prefix):] for line in lines).decode()
    t.equal("%s acts on terminals" % name, ACTS.findall(said), [])
    if is_markdown:
        sizes, commands = plain(text)
        t.check(text.startswith("### ") and "<script" not in text, text)
    else:
        sizes = re.findall(r"^ *([0-9.]+) ([KMG]?i?B)  ", text, re.M)
        commands = re.findall(r"^            \$ (.*)$", text, re.M)
    values = [float(value) * UNITS[unit] for value, unit in sizes]
    t.check(len(values) > 0 and values == sorted(values, reverse=True), "%s: %s\n%s" % (name, values, text))
    without = text.count("the same command without --brief")
    t.equal("%s: findings and commands\n%s" % (name, text), len(commands) + without, len(values) + 1)
    commands_out.update(commands)


def run_all(t, commands, cwd):
    """As a shell does, without a profile of more than once."""
    for command in sorted(commands):
        done = subprocess.run(["bash", "-c", command], cwd=cwd, env=t.environment(t.directory), capture_output=True, check=False)
        t.check(done.returncode == 0, "%s: %d %r" % (command, done.returncode, done.stderr[-500:]))
        t.check("--brief" not in command, command)
    t.check(len(commands) > 0, "no command")
    t.equal("made by names", [name for name in os.listdir(cwd) if name == "forged"], [])


@test("brief/profiles", limit=400)
def profiles(t):
    """Of a program that ptmem starts: leaks, inspection and graph, as text, Markdown and on standard error."""
    program, commands = build(t), set()
    for name, options, out in (("leaks", ["--leak-check", "--show-leak-kinds=all"], "--leaks-out="), ("inspection", ["--inspect-at-exit"], "--inspect-out="),
                               ("graph", ["--graph"], "--graph-out=")):
        for end in ("txt", "md"):
            path = "%s.%s" % (name, end)
            run = t.run([t.ptmem(), "-q", "-o", "none", "--brief", *options, out + path, "--", program, "--brief"], cwd=t.directory)
            t.equal("%s: %r" % (name, run.err), run.status, 0)
            with open(os.path.join(t.directory, path), "rb") as file:
                check(t, path, file.read(), commands, end == "md")
        run = t.run([t.ptmem(), "-q", "-o", "none", "--brief", *options, "--", program], cwd=t.directory)
        check(t, name + " on standard error", run.err, commands, prefix=b"ptmem: ")
    t.check(all(" --brief" not in command.split(" -- ")[0] for command in commands), str(commands))
    commands = {command for command in commands if not command.endswith(" --brief")}
    run_all(t, commands, t.directory)


def of_each_form(commands):
    """Of commands that differ in names and numbers only, the first and the last one: a block of the heap, and one beside it.
    What names do to a shell is tested with files."""
    forms = {}
    for command in sorted(commands):
        forms.setdefault(re.sub(r"'[^']*'|(?<==)[^' ]+|\d+", "#", command), []).append(command)
    return {command for found in forms.values() for command in (found[0], found[-1])}


@test("brief/running")
def running(t):
    """Of a running process, and what was not touched."""
    with subprocess.Popen([t.target("gcc-O2-pie", "toucher"), "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=t.environment(t.directory)) as program:
        for line in program.stdout:
            if line == b"ready\n":
                break
        commands = set()
        for options in (["--inspect"], ["--graph"], ["--cold=0.01"], ["--graph", "--cold=0.01"]):
            run = t.run([t.ptmem(), "-q", "--brief", "-p", str(program.pid), *options], cwd=t.directory)
            t.equal("%s: %r" % (options, run.err), run.status, 0)
            check(t, " ".join(options), run.out, commands)
            t.check((b"not touched" in run.out) == ("--cold=0.01" in options), run.out)
        run_all(t, of_each_form(commands), t.directory)
        program.stdin.close()


def inputs(t, program):
    """Files of each kind that ptmem-report reads."""
    made = (["--record=r", "--leak-check"], ["--massif-out-file=m", "--detailed-freq=1"], ["--inspect-at-exit", "--inspect-out=i.json"],
            ["--graph", "--graph-out=g"], ["--data=d"], ["--sample=1", "--sample-out=s"], ["--heap-sample=1K", "--record=sampled"])
    for options in made:
        own = [] if any(o.startswith("--massif") for o in options) else ["-o", "none"]
        run = t.run([t.ptmem(), "-q", *own, *options, program], cwd=t.directory)
        t.equal("%s: %r" % (options, run.err), run.status, 0)
    return [["r"], ["m"], ["i.json"], ["g"], ["d"], ["s"], ["sampled"], ["--diff", "r", "old"], ["--diff", "m", "oldm"], ["--diff", "g", "oldg"]]


@test("brief/files", limit=400)
def files(t):
    """ptmem-report of each kind of file, and of comparisons."""
    program, commands = build(t), set()
    kinds = inputs(t, program)
    other = [t.target("gcc-O2-pie", "owned")]
    for options in (["-o", "none", "--record=old"], ["--massif-out-file=oldm"], ["-o", "none", "--graph", "--graph-out=oldg"]):
        run = subprocess.run([t.ptmem(), "-q", *options, *other], cwd=t.directory, env=t.environment(t.directory), input=b"", check=False,
                             capture_output=True)
        t.check(run.returncode == 0, repr(run.stderr))
    for words in kinds:
        for form in ([], ["--format=markdown"]):
            run = t.run([REPORT, "--brief", *form, *words], cwd=t.directory)
            t.equal("%s: %r" % (words, run.err), run.status, 0)
            check(t, " ".join(form + words), run.out, commands, bool(form))
    run_all(t, commands, t.directory)
    # no command fits
    deep = os.path.join(t.directory, "d" * 250, "e" * 250)
    os.makedirs(deep)
    os.rename(os.path.join(t.directory, "r"), os.path.join(deep, "r"))
    for form in ([], ["--format=markdown"]):
        run = t.run([REPORT, "--brief", *form, os.path.join(deep, "r")])
        check(t, "a long path", run.out, set(), bool(form))


@test("brief/refused")
def refused(t):
    """What is no text."""
    for command, why in (([t.ptmem(), "--brief", "true"], "--brief needs"), ([t.ptmem(), "--brief", "--inspect", "-p", "1", "--inspect-out=x.json"], "ends in .txt or .md"),
                         ([t.ptmem(), "--brief", "--graph", "-p", "1", "--graph-out=x"], "ends in .txt or .md"),
                         ([REPORT, "--brief", "--html=x", "r"], "--html cannot be used"), ([REPORT, "--brief", "--format=json", "r"], "not json"),
                         ([REPORT, "--brief", "--merge", "r"], "--merge cannot be used")):
        run = t.run(command)
        t.check(run.status != 0 and why.encode() in run.err, "%s: %d %r" % (command, run.status, run.err))
