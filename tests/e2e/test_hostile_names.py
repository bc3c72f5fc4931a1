"""Twelve names that forge lines, act on a terminal, a spreadsheet or a browser, in every output."""

import csv
import io
import json
import os
import re
import xml.etree.ElementTree

from harness import BUILD, test
from pprof_file import Pprof

NAMES = [b"esc\x1b[31mred", b"line\nfn=(1) forged\nsnapshot=7", b"cr\rover", b"=1+1", b"+cmd|' /C calc'!A0", b"-2", b"@SUM(A1)",
         b'quote","q', b"semi;colon 12", "left\u202eright".encode(), b"bad\x80\xffutf8", b"</script><script>alert(1)</script>"]
COMMAND = ["\x1b]0;title\x07", "line\nfn=(1) forged\nsnapshot=7", "=1+1", "left\u202eright", "</script><script>alert(1)</script>"]
# what acts on a terminal: controls of ASCII and of UTF-8, and what changes the order of characters
ACTS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]")
GATES = ("markdown", "github", "junit", "sarif", "json")
FORMATS = ("text", "json", "csv", "folded", "speedscope", "massif")


def build(t):
    """A program with a function of each name, which allocates 100 bytes and more."""
    source = "#include <stdlib.h>\nvoid *kept[%d];\n" % len(NAMES)
    source += "".join("__attribute__((noinline)) void f%d(void) { kept[%d] = malloc(%d); }\n" % (i, i, 100 + i) for i in range(len(NAMES)))
    source += "int main(void) { %s return 0; }\n" % " ".join("f%d();" % i for i in range(len(NAMES)))
    path = os.path.join(t.directory, "hostile.c")
    with open(path, "w", encoding="ascii") as file:
        file.write(source)
    for command in (["gcc", "-O1", "-c", "-o", "plain.o", "hostile.c"],
                    ["objcopy", *("--redefine-sym=f%d=%s" % (i, os.fsdecode(name)) for i, name in enumerate(NAMES)), "plain.o", "hostile.o"],
                    ["gcc", "-o", "hostile", "hostile.o"]):
        done = t.run(command, cwd=t.directory)
        t.equal("%s: %r" % (command, done.err), done.status, 0)
    return os.path.join(t.directory, "hostile")


def outputs(t):
    """All outputs, by name: (text, whether lines may end in CR)."""
    options = ["--massif-out-file=m", "--detailed-freq=1", "--record=r", "--folded=f", "--flame=f.svg", "--html=h", "--leak-check",
               "--xtree-memory=full", "--xtree-memory-file=x"]
    profile = t.profile([build(t), *COMMAND], options, cwd=t.directory)
    found = {"messages": "\n".join(profile.messages).encode("utf-8", "surrogateescape")}
    for name in ("m", "f", "f.svg", "h", "x"):
        with open(os.path.join(t.directory, name), "rb") as file:
            found[name] = file.read()
    found.update(more_files(t, os.path.join(t.directory, "hostile")))
    again = t.run([t.ptmem(), "-q", "-o", "none", "--record=r2", os.path.join(t.directory, "hostile"), *COMMAND], cwd=t.directory)
    t.equal("status: %r" % again.err, again.status, 0)
    given = ["--within=" + os.fsdecode(name) for name in NAMES] + ["--limit=peak@%s<1T" % os.fsdecode(name) for name in NAMES]
    found["calls"] = t.run([t.ptmem(), "-o", "none", *given, os.path.join(t.directory, "hostile"), *COMMAND], cwd=t.directory).err
    found["several runs"] = t.run([t.ptmem(), "-o", "none", "--repeat=2", *given, "--limit=allocations<1", os.path.join(t.directory, "hostile"), *COMMAND],
                                  cwd=t.directory).err
    program = os.path.join(BUILD, "ptmem-report")
    runs = {"massif's text": ["m"], "massif's folded": ["--folded=-", "m"], "a difference": ["--diff", "m", "m"],
            "diff.csv": ["--diff", "--format=csv", "r", "r"], "a difference's JSON": ["--diff", "--format=json", "r", "r"],
            "a recording's flame graph": ["--flame=-", "r"], "massif's page": ["--html=h2", "m"], "a difference's page": ["--diff", "--html=h3", "r", "r"],
            "massif's picture": ["--svg=s1", "m"], "a recording's picture": ["--svg=s2", "r"], "a difference's flame graph": ["--diff", "--flame=-", "r", "r"],
            "a recording's pprof": ["--format=pprof", "r"], "callers and callees": ["--peek=main", "r"],
            "an anonymous recording": ["--anonymize=a", "r"]}
    runs.update({"several processes' " + f if f != "csv" else "processes.csv": ["--merge", "--format=" + f, "r", "r2"]
                 for f in ("text", "json", "csv", "folded")})
    runs["several processes' flame graph"] = ["--merge", "--flame=-", "r", "r2"]
    runs["several processes' page"] = ["--merge", "--html=h4", "r", "r2"]
    runs.update({"a recording's " + f if f != "csv" else "recording.csv": ["--format=" + f, "r"] for f in FORMATS})
    for name, arguments in runs.items():
        result = t.run([program, *arguments], cwd=t.directory)
        t.equal("%s: %r" % (name, result.err), result.status, 0)
        found[name] = result.out
    for name in ("h2", "h3", "h4", "s1", "s2"):
        with open(os.path.join(t.directory, name), "rb") as file:
            found[name] = file.read()
    # its texts, which tools print
    found["a recording's pprof"] = b"\n".join(Pprof(found["a recording's pprof"]).strings)
    found.update(gates(t, program, json.loads(found["a recording's json"])))
    return found


def more_files(t, program):
    """Files of a second run, which exclude some of the first's."""
    limit = "--limit=peak@%s<=0" % os.fsdecode(NAMES[0])
    options = {"leaks": ["--leak-check", "--leaks-out=FILE", "--gen-suppressions=all"], "leaks.json": ["--leak-check", "--leaks-out=FILE"],
               "inspection": ["--inspect-at-exit", "--inspect-out=FILE"], "inspection.json": ["--inspect-at-exit", "--inspect-out=FILE"],
               "calls": ["--memusage", "--memusage-out=FILE"], "events": ["--events=FILE"]}
    options.update({"limits" + end: [limit, "--limits-out=FILE"] for end in (".md", ".xml", ".sarif", ".json", ".txt")})
    found = {}
    for name, words in options.items():
        result = t.run([t.ptmem(), "-q", "-o", "none", *(w.replace("FILE", "more-" + name) for w in words), program], cwd=t.directory)
        t.equal("%s: %r" % (name, result.err), result.status, 1 if name.startswith("limits") else 0)
        with open(os.path.join(t.directory, "more-" + name), "rb") as file:
            found[name] = file.read()
        found["messages with " + name] = result.err
    return found


def gates(t, program, recording):
    """The forms of gates, in which each function exceeds a limit, and a text of the user's is as bad."""
    names = [f for f in recording["frames"]["function"] if f and not re.fullmatch(r"\(below main\)|main|__libc_start_main.*", f)]
    t.equal("functions: %s" % names, len(names), len(NAMES))
    limits = ["--limit=allocations@%s<=0" % name for name in names] + ["--limit=peak@x\n::error ::\x1b|`<b>%0A<0"]
    found = {}
    for form in GATES:
        result = t.run([program, "--format=" + form, *(["--top=100"] if form != "json" else []), *limits, "r"], cwd=t.directory)
        t.equal("%s: %r" % (form, result.err), result.status, 3)
        found["gates' " + form] = result.out
    result = t.run([program, "--write-baseline=b", "r"], cwd=t.directory)
    t.equal("status", result.status, 0)
    with open(os.path.join(t.directory, "b"), "rb") as file:
        found["a baseline"] = file.read()
    result = t.run([program, "--baseline=b", "--fail-if=allocations>+0", "r"], cwd=t.directory)
    t.equal("its own names: %r" % result.out, (result.status, b"Each call site has the same peak" in result.out), (0, True))
    return found


def check_gates(t, found):
    """Each form is what it should be, with all names in it."""
    failures = {form: len(NAMES) + 1 for form in GATES}
    failures["junit"] = len(xml.etree.ElementTree.fromstring(found["gates' junit"]).findall(".//failure"))
    failures["sarif"] = len(json.loads(found["gates' sarif"])["runs"][0]["results"])
    failures["json"] = len([c for c in json.loads(found["gates' json"])["checks"] if not c["passed"]])
    lines = found["gates' github"].decode().splitlines()
    failures["github"] = len({re.search("title=([^:,]*)::", line)[1] for line in lines if line.startswith("::error ")})
    t.check(all(re.fullmatch("::(error|warning) [^:]*::[^\r\n]+", line) for line in lines), "annotations: %s" % lines)
    rows = [line for line in found["gates' markdown"].decode().split("\n") if "**failed**" in line]
    t.check(all(len(re.findall(r"\|", row)) == 3 for row in rows), "rows: %s" % rows)
    failures["markdown"] = len(rows)
    t.equal("failures", failures, {form: len(NAMES) + 1 for form in GATES})
    t.check(all(re.fullmatch(r"(#.*|ptmem-baseline 1|runs 1|program hostile|lines no|[a-z-]+ [0-9]+( .+)?)", line)
                for line in found["a baseline"].decode().splitlines()), "baseline: %s" % found["a baseline"])


@test("hostile-names/outputs")
def every_output(t):
    found = outputs(t)
    for name, text in found.items():
        if name.endswith(".csv"):
            text = text.replace(b"\r\n", b"\n")
        acts = ACTS.search(text)
        t.check(not acts, "%s: %r" % (name, text[max(0, acts.start() - 40):acts.end() + 20] if acts else b""))
        t.check(not re.search(rb"^(fn=\(1\) forged|snapshot=7$)", text, re.M) or (name in ("m", "a recording's massif") and
                text.count(b"snapshot=7\n") == 1 and b"fn=(1) forged\n" not in text), "%s: a name made a line" % name)
        if name in ("f.svg", "h", "h2", "h3", "h4", "s1", "s2") or name.endswith("flame graph"):
            t.check(b"<script>alert" not in text, "%s: a name is markup" % name)
    for name in ("recording.csv", "diff.csv"):
        fields = [field for row in csv.reader(io.StringIO(found[name].decode())) for field in row]
        formulas = [f for f in fields if f[:1] in tuple("=+-@") and not re.fullmatch("-[0-9]+", f)]
        t.check(not formulas and any(f.startswith("'=1+1") for f in fields), "%s: %s" % (name, formulas))
    check_gates(t, found)
    t.check(b"esc?[31mred" in found["m"] and b"esc?[31mred" in found["x"], "the names are not there")


@test("hostile-names/foreign-massif")
def foreign(t):
    """A massif file of another origin, whose command, description and names act on a terminal."""
    path = os.path.join(t.directory, "m")
    with open(path, "wb") as file:
        file.write(b"desc: --a\x1b]0;title\x07\ncmd: ./a\x1b[2J\ntime_unit: B\n#-----------\nsnapshot=0\n#-----------\ntime=0\n"
                   b"mem_heap_B=10\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\nn1: 10 (heap allocation functions) malloc\n"
                   b" n0: 10 0x1: f\x1b[31m\xc2\x9b1m (a\x7f.c:1)\n")
    result = t.run([os.path.join(BUILD, "ptmem-report"), path])
    t.equal("status", result.status, 0)
    t.check(not ACTS.search(result.out) and b"f?[31m" in result.out and b"./a?[2J" in result.out, "%r" % result.out)
