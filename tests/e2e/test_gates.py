"""Forms of gates, baselines, and runs that are repeated. The program is that of test_limits.py; what forms say is checked
against their specifications: SARIF's schema as far as it is used, XML, GitHub's escapes."""

import html
import json
import os
import re
import subprocess
import xml.etree.ElementTree

from harness import BUILD, ROOT, run_report, test

REPORT = os.path.join(BUILD, "ptmem-report")
COUNT = 250
# sarif-schema-2.1.0.json: (required, allowed) properties of the objects that are written; none of them allows others
SARIF = {
    "log": ({"version", "runs"}, {"$schema", "version", "runs"}),
    "run": ({"tool"}, {"tool", "invocations", "results"}),
    "invocation": ({"executionSuccessful"}, {"executionSuccessful", "toolExecutionNotifications"}),
    "notification": ({"message"}, {"level", "message"}),
    "tool": ({"driver"}, {"driver"}),
    "driver": ({"name"}, {"name", "version", "rules"}),
    "rule": ({"id"}, {"id", "shortDescription"}),
    "message": ({"text"}, {"text"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}),
    "location": (set(), {"physicalLocation", "logicalLocations"}),
    "physicalLocation": ({"artifactLocation"}, {"artifactLocation", "region"}),
    "artifactLocation": (set(), {"uri", "uriBaseId"}),
    "region": (set(), {"startLine"}),
    "logicalLocation": (set(), {"fullyQualifiedName", "kind"}),
}
URI = re.compile(r"(file://)?(/?[A-Za-z0-9._~-]|%[0-9A-F]{2}|/)+")
ANNOTATION = re.compile(r"::error (?:file=([^:,\r\n]+)(?:,line=([1-9][0-9]*))?,)?title=([^:,\r\n]+)::([^\r\n]+)")


def has(t, kind, value):
    required, allowed = SARIF[kind]
    t.check(required <= set(value) <= allowed, "%s: %s" % (kind, value))
    return value


def read_sarif(t, text):
    """[(rule, message, [(file, line, name)])]"""
    found = []
    log = has(t, "log", json.loads(text))
    t.equal("version", (log["version"], len(log["runs"])), ("2.1.0", 1))
    run = has(t, "run", log["runs"][0])
    for notification in has(t, "invocation", run["invocations"][0])["toolExecutionNotifications"]:
        has(t, "message", has(t, "notification", notification)["message"])
    driver = has(t, "driver", has(t, "tool", run["tool"])["driver"])
    rules = [has(t, "rule", rule)["id"] for rule in driver["rules"]]
    t.equal("rules", len(set(rules)), len(rules))
    for result in run["results"]:
        has(t, "result", result)
        t.equal("rule", (result["ruleId"], result["level"]), (rules[result["ruleIndex"]], "error"))
        places = []
        for location in result["locations"]:
            physical = has(t, "location", location).get("physicalLocation")
            logical = [has(t, "logicalLocation", l) for l in location["logicalLocations"]]
            line = uri = None
            if physical:
                has(t, "physicalLocation", physical)
                uri = has(t, "artifactLocation", physical["artifactLocation"])["uri"]
                t.check(URI.fullmatch(uri), "URI: %s" % uri)
                line = has(t, "region", physical["region"])["startLine"] if "region" in physical else None
                t.check(line is None or line >= 1, "line")
            places.append((uri, line, logical[0]["fullyQualifiedName"]))
        found.append((result["ruleId"], has(t, "message", result["message"])["text"], places))
    return found


def read_github(t, text):
    """[(file, line, title, message)], unescaped."""
    found = []
    for line in text.splitlines():
        match = ANNOTATION.fullmatch(line)
        t.check(match, "annotation: %r" % line)
        parts = [p and re.sub("%(25|0D|0A|3A|2C)", lambda m: chr(int(m[1], 16)), p) for p in match.groups()]
        found.append((parts[0], parts[1] and int(parts[1]), *parts[2:]))
    return found


def read_junit(t, text):
    """{name: failure or None}"""
    suite, = xml.etree.ElementTree.fromstring(text)
    names = [case.get("name") for case in suite.findall("testcase")]
    t.equal("each check once", len(set(names)), len(names))
    cases = {case.get("name"): case.find("failure") for case in suite.findall("testcase")}
    t.equal("numbers", (int(suite.get("tests")), int(suite.get("failures"))),
            (len(cases), len([f for f in cases.values() if f is not None])))
    return cases


def check_markdown(t, text):
    """The rows of all tables, which have as many cells as their heads."""
    rows = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
        t.check(len({len(line) for line in lines}) == 1, "table: %s" % table)
        rows += [[cell.strip() for cell in line] for line in lines[2:]]
    return rows


def record(t, count, *options):
    directory = t.subdirectory()
    t.profile([t.target("gcc-O2-pie", "limited"), str(count)],
              ["--record=r", "--massif-out-file=m", "--leak-check", "--detailed-freq=1", *options], cwd=directory)
    return os.path.join(directory, "r")


def report(t, *arguments, status=0):
    result = t.run([REPORT, *arguments])
    t.equal("status of %s (%r)" % (arguments, result.err), result.status, status)
    return result.out.decode()


def source_line(t, text):
    with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets/limited.cpp"), encoding="ascii") as f:
        lines = f.read().splitlines()
    found, = [i + 1 for i, line in enumerate(lines) if text in line]
    return found


@test("gates/comparison")
def comparison(t):
    old, new = record(t, COUNT), record(t, COUNT + 5)
    line = source_line(t, "malloc(100)")
    given = ["--fail-if=allocations>+4", "--fail-if=peak>+0", "--fail-if=leaked>+0"]

    def form(name):
        return report(t, "--diff", "--format=" + name, *given, old, new, status=3)

    (rule, message, (place,)), = read_sarif(t, form("sarif"))
    t.check(rule == "allocations" and "it was 1,250, and is 1,255" in message and place[0].endswith("/limited.cpp") and
            place[1] == line and place[2].startswith("pass()"), "sarif: %s %s" % (message, place))
    (file, at, title, message), = read_github(t, form("github"))
    t.check(file.endswith("limited.cpp") and at == line and title == "allocations>+4" and "pass()" in message and "+5" in message,
            "github: %s" % message)
    cases = read_junit(t, form("junit"))
    t.check(list(cases) == [g[len("--fail-if="):] for g in given] and cases["peak>+0"] is None and
            "+5" in cases["allocations>+4"].text, "junit: %s" % cases)
    text = form("markdown")
    rows = check_markdown(t, text)
    t.check(["allocations", "1,250", "1,255", "+0.40 %"] in rows and ["`peak>+0`", "passed"] in rows and
            ["`pass() (limited.cpp:%d)`" % line, "250", "255", "+5"] in rows and "1 of 3 checks failed" in text, "markdown: %s" % text)
    data = json.loads(form("json"))
    t.equal("json", ([c["passed"] for c in data["checks"]], data["checks"][0]["sites"][0]["line"], data["format"]),
            ([False, True, True], line, "ptmem-report-diff"))
    t.check("passed" in report(t, "--diff", "--format=markdown", "--fail-if=allocations>+5", old, new) and
            report(t, "--diff", "--format=github", "--fail-if=allocations>+5", old, new) == "", "what holds")
    massif = [os.path.join(os.path.dirname(path), "m") for path in (old, new)]
    t.check("| `peak>+0` | passed |" in report(t, "--diff", "--format=markdown", "--fail-if=peak>+0", *massif), "massif files")


@test("gates/limits")
def limits(t):
    """The same limits, of a recording and of the run itself."""
    given = ["--limit=peak@keep::small<13200", "--limit=temporary<=20%", "--limit=leaked<7", "--limit=rss<100", "--limit=rss<1G"]
    recording = record(t, COUNT)
    forms = {}
    path = {form: os.path.join(t.directory, "found." + end) for form, end in
            (("markdown", "md"), ("github", "txt"), ("junit", "xml"), ("sarif", "sarif"), ("json", "json"))}
    run = t.profile([t.target("gcc-O2-pie", "limited"), str(COUNT)],
                    ["-q", "--leak-check", "--leaks-out=/dev/null", *("--limits-out=" + p for p in path.values()), *given])
    t.equal("status", run.status, 1)
    for form in path:
        with open(path[form], encoding="utf-8") as file:
            forms[form] = [file.read(), report(t, "--format=" + form, *given, recording, status=3)]
    for text in forms["github"]:
        found = read_github(t, text)
        t.equal("github", {f[2] for f in found}, {"peak@keep::small<13200", "leaked<7", "rss<100"})
        t.check(("limited.cpp" in found[0][0] and found[0][1] == source_line(t, "malloc(static_cast")), "place: %s" % (found,))
    for text in forms["junit"]:
        t.equal("junit", {name: f is None for name, f in read_junit(t, text).items()},
                {g[len("--limit="):]: g in (given[1], given[4]) for g in given})
    for text in forms["sarif"]:
        t.equal("sarif", sorted(r[0] for r in read_sarif(t, text)), ["leaked", "peak", "rss"])
    for text in forms["markdown"]:
        t.check("3 of 5 checks failed" in text and len(check_markdown(t, text)) >= 12, "markdown: %s" % text)
    for text in forms["json"]:
        values = {m["metric"]: m["new"]["min"] for m in json.loads(text)["metrics"]}
        t.check(values["peak"] == 400 * 33 + 600 * 7 and values["temporary"] == 20 and values["leaked"] == 7 and values["rss"] > 1 << 20,
                "json: %s" % values)


@test("gates/not-checked")
def not_checked(t):
    """A limit that nothing was measured for does not pass."""
    path = os.path.join(t.directory, "o.xml")
    result = t.run([t.ptmem(), "--limit=peak<1G", "--limits-out=" + path, os.path.join(t.directory, "nothing")])
    t.equal("status", result.status, 127)
    with open(path, encoding="utf-8") as file:
        t.check(read_junit(t, file.read())["peak<1G"] is not None, "it passed")
    os.unlink(path)
    result = t.run([t.ptmem(), "--repeat=2", "--limit=peak<1G", "--limits-out=" + path, os.path.join(t.directory, "nothing")])
    t.equal("status", result.status, 127)
    with open(path, encoding="utf-8") as file:
        t.check(read_junit(t, file.read())["peak<1G"] is not None, "it passed")
    os.unlink(path)
    result = t.run([t.ptmem(), "-q", "-o", "none", "--repeat=2", "--limit=peak<1G within nowhere", "--limits-out=" + path, "true"])
    said = [m for m in result.err.decode().splitlines() if "limit " in m]
    t.equal("limits of two runs", (result.status, said), (1, ["ptmem: limit not checked: peak<1G within nowhere: it was not measured"]))
    with open(path, encoding="utf-8") as file:
        t.check(read_junit(t, file.read())["peak<1G within nowhere"] is not None, "it passed")
    os.unlink(path)
    result = t.run([t.ptmem(), "--limit=peak<", "--limits-out=" + path, "true"])
    t.check(result.status == 1 and not os.path.exists(path), "a file without checks")
    for arguments, why in ((["--format=junit", "x"], b"needs --limit"), (["--limit=peak<1", "--diff", "x", "y"], b"comparisons have"),
                           (["--baseline=x", "--write-baseline=y", "z"], b"cannot be combined"),
                           (["--limit=leaked<1", "x"], b"cannot read x")):
        result = t.run([REPORT, *arguments], cwd=t.directory)
        t.check(result.status in (2, 255) and why in result.err, "%s: %r" % (arguments, result.err))


@test("gates/rounded")
def rounded(t):
    """A change that rounds to nothing is no change of -0.0."""
    for old, new, said in ((100000, 99999, "-&lt;0.01 %"), (100000, 100004, "+&lt;0.01 %"), (100000, 99990, "-0.01 %"), (7, 7, "0")):
        path = os.path.join(t.directory, "memory.baseline")
        recording = build(t, 0, "", new - 1)
        report(t, "--write-baseline=" + path, recording)
        with open(path, encoding="ascii") as file:
            text = file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(text.replace("allocations %d\n" % new, "allocations %d\n" % old))
        rows = check_markdown(t, report(t, "--baseline=" + path, recording))
        t.equal("%d to %d" % (old, new), rows[0][3], said)


SOURCE = """%s
extern "C" void *malloc(unsigned long);
void *volatile kept[9];
template <class F> __attribute__((noinline)) void call(F f) { f(); }
__attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) kept[0] = malloc(10); }
int main() {
	%s
	call([]() __attribute__((noinline)) { kept[1] = malloc(20); });
	fill(%d);
}
"""


def build(t, lines, before, count, *flags):
    """A program in a directory of its own."""
    directory = t.subdirectory()
    with open(os.path.join(directory, "program.cpp"), "w", encoding="ascii") as file:
        file.write(SOURCE % ("\n" * lines, before, count))
    done = t.run(["g++", "-O1", *flags, "-o", "program", "program.cpp"], cwd=directory)
    t.equal("g++: %r" % done.err, done.status, 0)
    done = t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "./program"], cwd=directory)
    t.equal("status: %r" % done.err, done.status, 0)
    return os.path.join(directory, "r")


@test("gates/baseline")
def baseline(t):
    """Paths, lines, debug information and numbers of lambdas make no difference; one block does."""
    path = os.path.join(t.directory, "memory.baseline")
    other = "call([]() __attribute__((noinline)) { kept[2] = nullptr; });"
    old = build(t, 0, "", 4, "-g")
    report(t, "--write-baseline=" + path, old)
    with open(path, encoding="ascii") as file:
        text = file.read()
    t.check("\nruns 1\nprogram program\nallocations 5\nallocations 4 fill(int)\n" in text and "{lambda()}" in text and not re.search("#[0-9]|0x", text),
            "baseline: %s" % text)
    same = build(t, 7, other, 4)
    t.equal("moved", report(t, "--write-baseline=-", same), text.replace("\nallocations", "\nlines no\nallocations", 1))
    checks = ["--fail-if=allocations>+0", "--fail-if=peak>+0", "--fail-if=live-at-end>+0", "--baseline=" + path]
    t.check(": passed\n" in report(t, *checks, same), "the same")
    more = build(t, 3, "", 5, "-g")
    found = read_github(t, report(t, *checks, "--format=github", more, status=3))
    t.check(len(found) == 3 and all(f[0].endswith("program.cpp") and f[1] == 8 and "fill(int)" in f[3] for f in found), "%s" % found)
    data = json.loads(report(t, *checks, "--format=json", more, status=3))
    t.equal("json", data["metrics"][0], {"metric": "allocations", "unit": "number", "old": {"min": 5, "max": 5}, "new": {"min": 6, "max": 6}})
    # bands: of the baseline, of the runs, of both
    t.check("5 to 6" in report(t, *checks, old, more), "a band that begins at the old value")
    report(t, "--write-baseline=" + path, old, more)
    with open(path, encoding="ascii") as file:
        text = file.read()
    t.check("\nruns 2\nprogram program\nallocations 5..6\nallocations 4..5 fill(int)\n" in text and "\nrss " in text, "baseline: %s" % text)
    report(t, *checks, more)
    report(t, *checks, build(t, 0, "", 6))  # beyond the band by its width
    report(t, *checks[1:], "--fail-if=allocations>+0", build(t, 0, "", 7), status=3)
    for bad in ("", "x\n", "ptmem-baseline 1\npeak x\n", "ptmem-baseline 1\npeak 7..3\n", "ptmem-baseline 1\npeak 1x\n",
                "ptmem-baseline 1\ntemporary 1\n"):
        with open(path, "w", encoding="ascii") as file:
            file.write(bad)
        report(t, *checks, old, status=255)
    for kept, why in (("ptmem-baseline 2\npeak 1\n", b"line 1: of another version of ptmem: write it again"),
                      ("ptmem-baseline 1\nruns 1\n<<<<<<< HEAD\npeak 1\n", b"line 3: a conflict of a merge: write the baseline again"),
                      ("ptmem-baseline 1\npeak 1\n>>>>>>> topic\n", b"line 3: a conflict of a merge: write the baseline again")):
        with open(path, "w", encoding="ascii") as file:
            file.write(kept)
        result = t.run([REPORT, *checks, old])
        t.check(result.status == 255 and why in result.err, "%r: %d %r" % (kept, result.status, result.err))


DOUBTS = """#include <stdlib.h>
#include <unistd.h>
void *kept[9];
int main(int argc, char **argv)
{
	for (int i = 0; i < 8; i++)
		kept[i] = malloc(100);
	kept[0] = realloc(kept[0], 500);
	return argc > 1 && read(0, argv[1], 1);
}
"""


def cut_recording(t, program, path):
    """ptmem is killed while the program waits for its input to end."""
    process = subprocess.Popen([t.ptmem(), "-q", "--record=" + path, "-o", "/dev/null", program, "x"], stdin=subprocess.PIPE)
    t.wait_until("the recording to have all blocks", lambda: "in 8 blocks" in run_report(t, path).out.decode())
    process.kill()
    process.wait()
    process.stdin.close()


def warnings(t, arguments, doubt):
    """A warning of the comparison is in each form."""
    for form, pattern in (("markdown", r"\n\*\*Warning\*\*: %s"), ("github", r"(?m)^::warning title=ptmem::%s"),
                          ("junit", r"<system-err>%s"), ("sarif", r'"level":"warning","message":\{"text":"%s'),
                          ("json", r'"warnings":\["%s')):
        result = t.run([REPORT, "--format=" + form, *arguments])
        text = result.out.decode()
        t.check(re.search(pattern % doubt, html.unescape(text)), "%s of %s: %s" % (form, arguments, text))
        if form == "sarif":
            read_sarif(t, text)
        if form == "junit":
            xml.etree.ElementTree.fromstring(text)


@test("gates/doubts")
def doubts(t):
    """What makes a comparison doubtful is said in all forms: other programs, samples, functions that are nowhere, other runs."""
    directory = t.subdirectory()
    with open(os.path.join(directory, "doubts.c"), "w", encoding="ascii") as file:
        file.write(DOUBTS)
    done = t.run(["sh", "-c", "gcc -o one doubts.c && cp one two"], cwd=directory)
    t.equal("gcc: %r" % done.err, done.status, 0)
    path = {}
    for name, program, options in (("one", "one", []), ("two", "two", []), ("samples", "one", ["--heap-sample=64", "--seed=1"])):
        path[name] = os.path.join(directory, name + ".rec")
        done = t.run([t.ptmem(), "-q", "--record=" + path[name], "-o", "/dev/null", *options, "./" + program], cwd=directory)
        t.equal("status: %r" % done.err, done.status, 0)
    kept = os.path.join(directory, "baseline")
    report(t, "--write-baseline=" + kept, path["one"])
    differs = ["--fail-if=allocations>+0"]
    warnings(t, ["--baseline=" + kept, *differs, path["two"]], "the baseline is one of one, the profile one of two")
    warnings(t, ["--baseline=" + kept, *differs, path["samples"]], "the baseline is exact, the profile of samples every 64 B")
    warnings(t, ["--baseline=" + kept, *differs, path["one"], path["two"]], "runs of one and of two are taken")
    warnings(t, ["--limit=peak@nowhere<1", path["one"]], "--limit=peak@nowhere<1: no call path")
    warnings(t, ["--diff", *differs, path["one"], path["samples"]], ".*is exact, .*has samples")
    with_lines = os.path.join(directory, "with-lines.rec")
    built = "mkdir lines && gcc -g -o lines/one doubts.c && exec \"$0\" -q -o none --record=\"$1\" lines/one"
    done = t.run(["sh", "-c", built, t.ptmem(), with_lines], cwd=directory)
    t.equal("status: %r" % done.err, done.status, 0)
    warnings(t, ["--diff", *differs, with_lines, path["one"]], ".*one.rec has no debug information of the program, .*with-lines.rec has")
    cut = os.path.join(directory, "cut.rec")
    cut_recording(t, os.path.join(directory, "one"), cut)
    why = ".*cut.rec: it was not written to its end"
    warnings(t, ["--diff", *differs, path["one"], cut], why)
    warnings(t, ["--baseline=" + kept, *differs, cut], why)
    warnings(t, ["--limit=peak<1G", cut], why)
    result = t.run([REPORT, "--baseline=" + kept, "--fail-if=peak>+0", path["one"]])
    t.equal("nothing is doubtful", (result.status, result.err), (0, b""))
    # the same metric in both programs: 8 allocations and a realloc
    t.equal("allocations", [t.run([t.ptmem(), "-q", "-o", "/dev/null", "--limit=allocations<%d" % n, "./one"], cwd=directory).status
                            for n in (9, 10)], [1, 0])
    report(t, "--limit=allocations<9", path["one"], status=3)
    report(t, "--limit=allocations<10", path["one"])


@test("gates/processes")
def processes(t):
    """A limit that several processes exceed is one check, which names them; leaks have their call sites."""
    directory = t.subdirectory()
    program = t.target("gcc-O2-pie", "limited")
    script = "for i in 1 2 3; do %s $i; done" % program
    result = t.run([t.ptmem(), "-q", "--trace-children=yes", "--trace-children-skip=*sh", "--leak-check", "--leaks-out=/dev/null",
                    "-o", "/dev/null", "--limit=allocations<1002", "--limit=leaked<1", "--limits-out=o.xml", "sh", "-c", script],
                   cwd=directory)
    said = result.err.decode()
    t.check(result.status == 1 and said.count("limit exceeded: allocations<1002: it is 1,00") == 1 and "tail() (limited.cpp" in
            said[said.index("leaked<1: 21 bytes"):] and ": 21 bytes" not in said[said.index("leaked<1: 21 bytes") + 9:], "said: %s" % said)
    with open(os.path.join(directory, "o.xml"), encoding="utf-8") as file:
        cases = read_junit(t, file.read())
    t.check(re.fullmatch(r"it is 1,003 in process [0-9]+, .*limited 3; 1,002 in process [0-9]+, .*limited 2",
                         cases["allocations<1002"].get("message")), "junit: %s" % cases["allocations<1002"].get("message"))
    t.check("tail()" in cases["leaked<1"].text, "junit: %s" % cases["leaked<1"].text)
    # of many, a few; what one process has is no sum
    script = "for i in 1 2 3 4 5 6 7; do %s $i; done" % program
    result = t.run([t.ptmem(), "-q", "--trace-children=yes", "--trace-children-skip=*sh", "-o", "none", "--repeat=2", "--limit=peak<1",
                    "--limits-out=o.md", "sh", "-c", script], cwd=directory)
    said = result.err.decode()
    t.check("2 runs, each value of the process that has most:" in said, "said: %s" % said)
    with open(os.path.join(directory, "o.md"), encoding="utf-8") as file:
        t.check("| metric | most of one process |" in file.read(), "heading")
    said = t.run([t.ptmem(), "-q", "--trace-children=yes", "--trace-children-skip=*sh", "-o", "none", "--limit=allocations<1001", "sh", "-c", script]).err.decode()
    t.check("; and 2 more processes\n" in said and said.count("limited ") == 5, "of seven: %s" % said)


VARYING = """#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	FILE *f = fopen("count", "r+");
	int n = getc(f);
	void *p = NULL;
	rewind(f);
	putc(n + 1, f);
	fclose(f);
	for (int i = 'A'; i < n; i++)
		p = malloc(10);
	return argc > 1 ? atoi(argv[1]) : !p && n > 'A';
}
"""


def repeat(t, directory, *options, arguments=(), status=0):
    with open(os.path.join(directory, "count"), "w", encoding="ascii") as file:
        file.write("B")
    result = t.run([t.ptmem(), "-q", "--repeat=3", *options, "./varying", *arguments], cwd=directory)
    t.equal("status of %s: %r" % (options, result.err), result.status, status)
    return result.err.decode()


@test("gates/repeat")
def repeated(t):
    directory = t.subdirectory()
    with open(os.path.join(directory, "varying.c"), "w", encoding="ascii") as file:
        file.write(VARYING)
    done = t.run(["gcc", "-o", "varying", "varying.c"], cwd=directory)
    t.equal("gcc: %r" % done.err, done.status, 0)
    # the stream and its buffer are two more
    said = repeat(t, directory, "-o", "m", "--record=r.%n", "--limit=allocations<=3", "--limits-out=o.json")
    t.check(re.search(r"allocations +3 to 5, a band of 67 %", said) and "live-at-end" in said and
            "allocations<=3 is exceeded in 2 of 3 runs" in said, "messages: %s" % said)
    names = os.listdir(directory)
    t.equal("files", [len([n for n in names if n.startswith("r.")]), len([n for n in names if re.fullmatch(r"m(\.[0-9]+)?", n)])], [3, 3])
    with open(os.path.join(directory, "o.json"), encoding="ascii") as file:
        data = json.load(file)
    t.equal("json", (data["runs"], data["metrics"][0]["new"], data["checks"][0]["passed"]), (3, {"min": 3, "max": 5}, True))
    said = repeat(t, directory, "-o", "/dev/null", "--limit=allocations<3", status=1)
    t.check("limit exceeded: allocations<3: it is 3 to 5 in 3 runs" in said, "messages: %s" % said)
    repeat(t, directory, "-o", "/dev/null", "--limit=allocations<3", arguments=("7",), status=7)
    result = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--repeat=2", t.target("gcc-O2-pie", "limited"), "9"])
    same = re.findall(r"^ptmem: +(\S+) .* in each: deterministic here$", result.err.decode(), re.M)
    # resident memory may be the same by chance
    t.check(result.status == 0 and [m for m in same if m != "rss"] == ["allocations", "peak", "live-at-end", "allocated"],
            "limited: %r" % result.err)


INPUT = """#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char read_in[100];
	void *volatile all = malloc(200 * (size_t)read(0, read_in, sizeof(read_in)) + 1);

	free(all);
	return 0;
}
"""


@test("gates/repeat-input")
def repeat_input(t):
    """Each run reads a file from where standard input began; of a pipe the first run has read all, which a hint says."""
    program = os.path.join(t.subdirectory(), "input")
    done = t.run(["gcc", "-o", program, t.file("input.c", INPUT)])
    t.equal("gcc: %r" % done.err, done.status, 0)
    text = t.file("text", "x" * 50)
    command = "{ head -c 10 >/dev/null; '%s' -o none --repeat=2 %s; cat; }" % (t.ptmem(), program)
    result = t.run(["sh", "-c", "%s <%s" % (command.replace("head -c 10", "dd bs=10 count=1 status=none"), text)])
    said = result.err.decode()
    t.check(re.search("peak +7.8 KiB .8,001 bytes. in each: deterministic", said) and "hint: standard input" not in said, "a file: %s" % said)
    t.equal("what both have left", result.out, b"")
    said = t.run([t.ptmem(), "-o", "none", "--repeat=2", program], stdin=b"x" * 50).err.decode()
    t.check(re.search(r"peak +1 byte to 9.8 KiB .10,001 bytes., a band of 1000000 %", said) and "hint: standard input is a pipe" in said,
            "a pipe: %s" % said)


@test("gates/runs")
def runs(t):
    """Processes of one run are no runs: it is said, by all forms, and of recordings of several runs it is not."""
    program = t.target("gcc-O2-pie", "many")
    for i in range(2):
        t.profile([program, "0", "1000"], ["-q", "--record=%s/%d.%%p" % (t.directory, i)])
    files = sorted(os.path.join(t.directory, name) for name in os.listdir(t.directory) if re.fullmatch(r"[01]\.[0-9]+", name))
    first, second = files[:2], files[2:]
    t.equal("files", [len(first), len(second)], [2, 2])
    baseline = os.path.join(t.directory, "b")

    def write(*given):
        done = t.run([REPORT, "--write-baseline=" + baseline, *given])
        t.equal("status: %r" % done.err, done.status, 0)
        return done.err.decode()

    for pair in first, first[::-1]:
        t.check("are of a process and its child in one run" in write(*pair), "parent and child")
        t.check("a process and its child" in report(t, "--baseline=" + baseline, "--format=json", *pair), "parent and child, in a form")
    t.check("are of the same process" in write(first[0], first[0]), "the same")
    t.equal("two runs", [write(first[k], second[k]) for k in range(2)], ["", ""])


def commands_of(block):
    """The shell commands of a job in doc/ci.md."""
    found = []
    for line in block.splitlines():
        step = re.match(r"(?:      - run|    -)(:?) +(.*)", line)
        if step and step[2] != "|":
            found.append(step[2])
        elif step or line.startswith("          "):
            found.append(line.strip() if not step else "")
    return "\n".join(found)


@test("gates/examples")
def examples(t):
    """The shell parts of doc/ci.md: they pass for the same program, and fail for one that needs more."""
    with open(os.path.join(ROOT, "doc/ci.md"), encoding="ascii") as file:
        github, gitlab = (commands_of(block) for block in re.findall(r"^```yaml\n(.*?)^```", file.read(), re.M | re.S))
    t.check("git worktree" in github and "--format=github \"$@\"" in github and "--repeat" in gitlab, "examples: %s %s" % (github, gitlab))
    github = github.replace("${{ github.base_ref }}", "main").replace("with: {fetch-depth: 0}", "")
    prepare = """
        cat >orders.c && printf 'test-program: orders.c\\n\\tgcc -g -o $@ $<\\n' >Makefile && printf 'peak<9M\\n' >memory-limits
        git init -q -b main . && git config user.email e && git config user.name n && git add . && git commit -qm one
        git update-ref refs/remotes/origin/main main
        make -s test-program && ptmem -q --record=r -o /dev/null ./test-program && ptmem-report --write-baseline=memory.baseline r && rm r"""
    grow = "sed -i 's/kept = malloc(64);/kept = malloc(64), kept = malloc(64);/' orders.c"
    environment = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"],
                       GITHUB_STEP_SUMMARY=os.path.join(t.directory, "summary.md"), HOME=t.directory)
    for name, commands in (("github", github), ("gitlab", gitlab)):
        for change, status in (("true", 0), (grow, 3)):
            directory = t.subdirectory()
            script = "set -e\n%s\n%s\n%s\n" % (prepare, change, commands)
            source = b"#include <stdlib.h>\nvoid *kept;\nint main(void)\n{\n\tkept = malloc(64);\n}\n"
            result = t.run(["bash", "-c", script], cwd=directory, env=environment, stdin=source)
            t.equal("%s, %s: %r %r" % (name, change, result.out, result.err), result.status, status)
            if name == "github":
                read_sarif(t, open(os.path.join(directory, "memory.sarif"), encoding="utf-8").read())
                lines = "\n".join(l for l in result.out.decode().splitlines() if l.startswith("::error"))
                t.equal("annotation", [f[0] for f in read_github(t, lines)][:1], ["orders.c"] if status else [])
            else:
                cases = read_junit(t, open(os.path.join(directory, "memory.xml"), encoding="utf-8").read())
                t.equal("junit", [f is None for f in cases.values()], [status == 0] * 2)
    with open(environment["GITHUB_STEP_SUMMARY"], encoding="utf-8") as file:
        t.check(re.search(r": passed\n.*2 of 2 checks failed", file.read(), re.S), "summary")
