"""What ptmem-report says of source lines, of callers and callees, and recordings that are anonymous."""

import json
import os
import re
import shutil

from harness import report, report_json, run_report, test
from recording_lib import record
from report_lib import Page, embedded


def paths(data):
    """The frames of each leaf, innermost first."""
    nodes = data["nodes"]
    for node in data["leaves"]["node"]:
        frames = []
        while node >= 0:
            frames.append(nodes["frame"][node])
            node = nodes["parent"][node]
        yield frames


def view_of(data):
    """(bytes, blocks) of each leaf at the peak."""
    of = dict(zip(data["peak"]["leaf"], zip(data["peak"]["bytes_of"], data["peak"]["blocks_of"])))
    return [of.get(leaf, (0, 0)) for leaf in range(len(data["leaves"]["node"]))]


def numbers(text):
    return [int(n.replace(",", "")) for n in text]


ROW = re.compile(r"^ *([\d,]+) +[\d.]+ % +([\d,]+) +([\d,]+)  (.{31}) +(\d+)(?:  (.*))?$")


def lines_of(text):
    """{line: (bytes, blocks, allocations), source} of an annotated file."""
    rows = (ROW.match(line) for line in text.splitlines())
    return {int(m[5]): (tuple(numbers(m.groups()[:3])), m[6]) for m in rows if m}


def expected_lines(data, is_wanted):
    sums = {}
    values = view_of(data)
    frames = data["frames"]
    for leaf, path in enumerate(paths(data)):
        counted = (*values[leaf], data["leaves"]["allocations"][leaf])
        for line in {frames["line"][f] for f in path if is_wanted(frames["file"][f], frames["function"][f])}:
            sums[line] = tuple(map(sum, zip(sums.get(line, (0, 0, 0)), counted)))
    return sums


@test("source/annotate")
def _(t):
    """Each line has what the paths through it have, once, and the text of the source."""
    path = record(t, "recursion")
    data = report_json(t, path)
    source = next(f for f in data["frames"]["file"] if f and f.endswith("recursion.c"))
    shown = lines_of(report(t, "--annotate=recursion.c", path))
    t.equal("lines", {k: v[0] for k, v in shown.items()}, expected_lines(data, lambda file, _: file == source))
    with open(source) as f:
        text = f.read().split("\n")
    t.equal("sources", {k: v[1] for k, v in shown.items()}, {k: text[k - 1] for k in shown})
    whole = lines_of(report(t, "--annotate=main", "--at=end", path))
    t.equal("the whole heap goes through main", max(v[0][2] for v in whole.values()) <= sum(data["leaves"]["allocations"]), True)
    t.check(whole, "main has lines")


@test("source/annotate-elsewhere")
def _(t):
    """Sources that are gone, moved, or no files."""
    cwd = t.subdirectory()
    program = os.path.join(cwd, "prog")
    os.mkdir(os.path.join(cwd, "old"))
    source = os.path.join(cwd, "old", "prog.c")
    with open(source, "w") as f:
        f.write("#include <stdlib.h>\nint main(void)\n{\n\tvoid *volatile p = malloc(1000);\n\treturn !p;\n}\n")
    t.run(["gcc", "-g", "-o", program, source], cwd=cwd)
    path = os.path.join(cwd, "recording")
    t.run([t.ptmem(), "-q", "--record=" + path, "-o", "massif.out", program], cwd=cwd)
    os.mkdir(os.path.join(cwd, "new"))
    shutil.move(source, os.path.join(cwd, "new", "prog.c"))
    gone = report(t, "--annotate=prog.c", path)
    t.check("--source=DIR says where sources are" in gone, "a hint: " + gone)
    t.equal("without the source", lines_of(gone), {4: ((1000, 1, 1), None)})
    found = report(t, "--annotate=old/prog.c", "--source=" + os.path.join(cwd, "new"), path)
    t.equal("with the source", lines_of(found), {4: ((1000, 1, 1), "\tvoid *volatile p = malloc(1000);")})
    os.mkfifo(source)
    t.check("not a source file" in report(t, "--annotate=prog.c", path), "a FIFO is not read")
    for option in ("--annotate=pro", "--peek=mai"):
        refused = run_report(t, option, path)
        t.check((refused.status, refused.out) == (255, b"") and b"similar: " in refused.err, "%s: %s" % (option, refused.err))
    t.run(["gcc", "-o", program, os.path.join(cwd, "new", "prog.c")], cwd=cwd)
    t.run([t.ptmem(), "-q", "--record=" + path, "-o", "massif.out", program], cwd=cwd)
    refused = run_report(t, "--annotate=main", path)
    t.check(refused.status == 255 and b"no source lines of 'main': build the program with -g" in refused.err, "%r" % refused.err)
    for options in (["--source=."], ["--annotate=main", "--format=csv"], ["--key=a"], ["--anonymize=x", "--format=json"]):
        t.equal("status of %s" % options, run_report(t, *options, path).status, 255)


def page_of(t, recording, *options):
    page = os.path.join(t.subdirectory(), "page.html")
    result = run_report(t, "--html=" + page, *options, recording)
    t.equal("status: %s" % result.err, result.status, 0)
    return page, result.err.decode()


@test("source/embed", limit=120)
def _(t):
    """A page has sources only if asked; a call site shows its lines with what --annotate says of them."""
    path = record(t, "recursion")
    data = report_json(t, path)
    source = next(f for f in data["frames"]["file"] if f and f.endswith("recursion.c"))
    t.check("sources" not in embedded(page_of(t, path)[0]), "sources without --embed-sources")
    page, said = page_of(t, path, "--embed-sources")
    t.equal("warnings", said, "")
    sources = embedded(page)["sources"]
    t.equal("files", (sources["file"], sources["problem"], sources["changed"]), ([source], [None], [False]))
    with open(source) as f:
        text = f.read()
    t.equal("text", sources["lines"][0], [line.expandtabs(8) for line in text.split("\n")[:-1]])
    t.equal("status without --html", run_report(t, "--embed-sources", path).status, 255)
    with Page(t, "file://" + page) as p:
        for name in (None, "main"):
            wanted = expected_lines(data, lambda file, fn, name=name: file == source and name in (None, fn))
            shown = p.js("""const fn = arguments[1] && ptmem.stacks.names.functions.findIndex((f) => f.name === arguments[1]);
                return [...new SourceView(ptmem, 1).count(arguments[0], fn)].map(
                    ([line, s]) => [line, s.bytes, s.blocks, s.allocations, Tables.lifetimeText(s.life)])""", source, name)
            t.equal("lines of %s" % name, {row[0]: tuple(row[1:4]) for row in shown}, wanted)
            t.check(wanted and all(row[4] for row in shown), "lifetimes: %s" % shown)
            t.check(not any("\u2248" in row[4] for row in shown), "a lifetime is an estimate: %s" % shown)
        site = p.js("""document.querySelector('#panel tbody .twist').click();
            const tr = document.querySelector('.source tr.here'), q = (x) => tr.querySelector(x);
            return [q('th').textContent, q('td.code').textContent, q('td span').title, q('td span').closest('tr').className,
                document.querySelector('#panel tbody .where').textContent]""")
        line = int(site[0])
        t.equal("its line", (site[1], site[4]), (text.split("\n")[line - 1].expandtabs(8), "recursion.c:%d" % line))
        t.check(site[2].startswith("{:,} bytes".format(expected_lines(data, lambda file, _: file == source)[line][0])), "%s" % site)
        p.press(".source button")
        t.equal("the whole file", p.js("return document.querySelectorAll('.source tbody tr').length"), len(sources["lines"][0]))
        p.call("POST", "/window/rect", {"width": 420, "height": 900})
        t.check(p.js("return document.documentElement.scrollWidth <= innerWidth"), "too wide")


@test("source/embed-merged", limit=120)
def _(t):
    """The page of several processes has the sources of all, each file once."""
    recordings = [record(t, "recursion"), record(t, "recursion"), record(t, "many", "1000", "20000")]
    page, said = page_of(t, recordings[0], "--merge", "--embed-sources", *recordings[1:])
    t.equal("warnings", said, "")
    sources = embedded(page)["sources"]
    t.equal("files", sorted(os.path.basename(f) for f in sources["file"]), ["many.c", "recursion.c"])
    source = next(f for f in sources["file"] if f.endswith("recursion.c"))
    data = report_json(t, recordings[0])
    wanted = expected_lines(data, lambda file, _: file == source)
    with Page(t, "file://" + page) as p:
        count = "return [...new SourceView(ptmem, 1).count(arguments[0], null)].map(([line, s]) => [line, s.bytes, s.blocks, s.allocations])"
        # lifetimes are of the whole run, also of paths that hold nothing at the selected moment
        rows = p.js("""const one = ptmem.processes.rows.find((row) => row.command.includes('recursion'));
            ptmem.select({ kind: "moment", i: one.first + one.state.indexOf(-1) });
            const { life } = ptmem.reports, of = (l) => l.released + l.live;
            return ptmem.reports.rows('sites').map((row) => [of(row.life),
                ptmem.stacks.leavesOfSite(row.key).reduce((n, leaf) => n + life.released[leaf] + life.live[leaf], 0)])""")
        t.check(rows and all(a == b for a, b in rows), "blocks with lifetimes: %s" % rows)
        t.equal("sums of lifetimes", p.js("return ptmem.reports.life.lived.reduce((a, b) => a + b, 0).toFixed(6)"),
                "%.6f" % sum(sum(report_json(t, r)["leaves"]["lived"]) / 1e6 for r in recordings))
        lives = "return ['released', 'live'].map((key) => ptmem.reports.life[key].reduce((a, b) => a + b, 0))"
        ends = [report_json(t, r)["end"] for r in recordings]
        t.equal("blocks of all", p.js(lives), [sum(e[key] for e in ends) for key in ("frees", "live_blocks")])
        p.press("#mode [data-value=peaks]")
        t.equal("of all", {row[0]: tuple(row[1:]) for row in p.js(count, source)}, {k: tuple(2 * n for n in v) for k, v in wanted.items()})
        index = p.js("const i = ptmem.processes.rows.findIndex((r) => r.command.includes('recursion')); ptmem.go({process: String(i)}); return i")
        t.equal("of one", {row[0]: tuple(row[1:]) for row in p.js(count, source)}, wanted)
        p.press("#panel tbody .twist")
        t.check("recursion.c" in p.js("return document.querySelector('.source h3').textContent"), "row %d has its source" % index)


HOSTILE = "/* </script><script>window.wrong = 1</script><img src=x onerror=window.wrong=2> \x1b[2J \u202e \u2066 */"


@test("source/embed-untrusted", limit=120)
def _(t):
    """Names come from the recording: what is no source, no regular file or too large is not read; text in sources is only text."""
    cwd = t.subdirectory()
    names = ["secret.pem", "passwd", ".c", "fifo.c", "large.c", "gone.c", "link"]
    calls = "".join("#line 1 \"%s\"\n%s f%d(void) { kept[%d] = malloc(%d); }\n" % (name, "__attribute__((noinline)) static void", i, i, 5000 + i)
                    for i, name in enumerate(names))
    with open(os.path.join(cwd, "own.c"), "w", encoding="utf-8") as f:
        f.write("#include <stdlib.h>\n%s\nvoid *volatile kept[9];\n%s#line 4 \"own.c\"\nint main(void)\n{\n%s\tkept[8] = malloc(100); %s\n"
                "\treturn 0;\n}\n" % (HOSTILE, calls, "".join("\tf%d();\n" % i for i in range(len(names))), HOSTILE))
    t.equal("gcc", t.run(["gcc", "-g", "-o", "prog", "own.c"], cwd=cwd).status, 0)
    for name in ("secret.pem", "passwd", ".c"):
        with open(os.path.join(cwd, name), "w", encoding="ascii") as f:
            f.write("top-secret\n")
    with open(os.path.join(cwd, "large.c"), "w", encoding="ascii") as f:
        f.write("top-secret\n" * 100000)
    os.symlink("/etc/passwd", os.path.join(cwd, "link"))
    os.mkfifo(os.path.join(cwd, "fifo.c"))
    t.run([t.ptmem(), "-q", "--record=r", "./prog"], cwd=cwd)
    page, said = page_of(t, os.path.join(cwd, "r"), "--embed-sources")
    t.check(re.match(r"ptmem-report: (warning: )?7 of 8 source files are not in the page, \S+ the first: ", said), said)
    sources = embedded(page)["sources"]
    found = {os.path.basename(f): why for f, why in zip(sources["file"], sources["problem"])}
    t.equal("files", sorted(found), sorted(names + ["own.c"]))
    t.equal("read", [name for name, why in found.items() if why is None], ["own.c"])
    t.equal("why not", [found[n] for n in ("secret.pem", "fifo.c", "large.c", "gone.c")],
            ["its name is not that of a source file", "not a source file", "it is larger than 1 MiB", "No such file or directory"])
    t.check("top-secret" not in json.dumps(sources) and "root:" not in json.dumps(sources), "what is no source is in the page")
    with open(page, encoding="utf-8") as f:
        t.check("window.wrong" not in f.read(), "sources are not as they are in the page's own text")
    with Page(t, "file://" + page) as p:
        p.js("[...document.querySelectorAll('#panel tbody .twist')].forEach((x) => x.click())")
        p.js("[...document.querySelectorAll('.source button')].forEach((x) => x.click())")
        shown = p.js("return document.querySelector('#panel').textContent")
        t.check("<script>window.wrong = 1</script>" in shown and "?[2J \\u202E \\u2066" in shown, "text: " + shown[-3000:])
        t.check("Not in the page: it is larger than 1 MiB." in shown, "problems are shown")
        t.equal("elements of a source", p.js("return [document.querySelectorAll('.source script, .source img').length, window.wrong]"), [0, None])


@test("source/peek")
def _(t):
    """Callers add up to the function, and so do callees with the function itself."""
    path = record(t, "recursion")
    data = report_json(t, path)
    functions = data["frames"]["function"]
    values = view_of(data)
    checked = 0
    for name in sorted({f for f in functions if f and re.fullmatch(r"\w+", f)}):
        callers, callees, whole = {}, {}, [0, 0, 0]
        for leaf, frames in enumerate(paths(data)):
            names = [functions[f] for f in frames]
            if name not in names:
                continue
            counted = (*values[leaf], data["leaves"]["allocations"][leaf])
            inner, outer = names.index(name), len(names) - 1 - names[::-1].index(name)
            caller = names[outer + 1] if outer + 1 < len(names) else "[outermost function]"
            callee = names[inner - 1] if inner else "[itself]"
            whole = [a + b for a, b in zip(whole, counted)]
            for sums, key in ((callers, caller), (callees, callee)):
                sums[key] = tuple(a + b for a, b in zip(sums.get(key, (0, 0, 0)), counted))
        rows = re.findall(r"^ *([\d,]+) +[\d.]+ % +([\d,]+) +([\d,]+)  ( *)(.*)$", report(t, "--peek=" + name, "--top=1000", path), re.M)
        at = next(i for i, row in enumerate(rows) if not row[3])
        t.equal(name, numbers(rows[at][:3]), whole)
        for part, wanted in ((rows[:at], callers), (rows[at + 1:], callees)):
            sums = {}
            for row in part:
                key = re.sub(r" \(.*", "", row[4]) if not row[4].startswith(("[", "(")) else re.sub(r" \((in |.*:\d).*", "", row[4])
                sums[key] = tuple(a + b for a, b in zip(sums.get(key, (0, 0, 0)), numbers(row[:3])))
            t.equal("around " + name, sums, {re.sub(r"(?<=\w)\(.*", "", k or "?"): v for k, v in wanted.items()})
        checked += 1
    t.check(checked >= 3, "functions: %d" % checked)


# -- anonymous recordings --

KEPT = re.compile(r"^(std|core|alloc|__\w+|_\w+|main|malloc|calloc|free|operator|int|char|const|unsigned|long|void|bool|lambda)$")


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)


def without_texts(value):
    if isinstance(value, dict):
        return {k: without_texts(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_texts(v) for v in value]
    return "text" if isinstance(value, str) else value


def copy(t, path, *options):
    out = os.path.join(t.subdirectory(), "anonymous")
    report(t, "--anonymize=" + out, *options, path)
    return out


def check_copy(t, path, secrets):
    """The same numbers and call sites; none of @secrets in any text."""
    old = report_json(t, path)
    out = copy(t, path)
    new = report_json(t, out)
    for data in (old, new):
        data["meta"].pop("options")
    for data in (old, new):  # rows of names are in any order
        if data.get("calls"):
            data["calls"] = {n: (c, b) for n, c, b in zip(*(data["calls"][k] for k in ("function", "calls", "bytes")))}
    for table in old:
        columns = old[table].keys() if isinstance(old[table], dict) else []
        for column in columns:
            left, right = without_texts(new[table][column]), without_texts(old[table][column])
            t.check(left == right, "%s.%s differs" % (table, column))
        t.check(without_texts(new[table]) == without_texts(old[table]), table + " differs")
    t.check(re.fullmatch(r"Linux [\d.]+ \w+", new["meta"]["kernel"]), "kernel: " + new["meta"]["kernel"])
    # a name can be public in one object, and a word in another
    t.check(len(set(new["frames"]["function"])) >= len(set(old["frames"]["function"])), "different names stay different")
    for text in texts(new):
        for secret in secrets:
            t.check(secret.lower() not in text.lower(), "%s in %s" % (secret, text))
    return new


@test("source/anonymize")
def _(t):
    """Programs in C++ and C, with leaks, of samples, and one that was not finished."""
    names = ["tests", "targets"]
    path = record(t, "cxx_containers", options=["--leak-check=yes"])
    data = check_copy(t, path, ["cxx_containers", *names])
    t.check(any("std::vector<" in (f or "") for f in data["frames"]["function"]), "std stays")
    check_copy(t, record(t, "long_names"), ["long_names", *names])
    check_copy(t, record(t, "threads", "2", "3000", options=["--heap-sample=4K"]), ["threads", "step", *names])
    same = [report_json(t, copy(t, path, "--key=secret"))["frames"] for _ in range(2)]
    t.equal("words of a key", same[0], same[1])
    t.check(same[0] != data["frames"], "words without a key are others")
    diff = report(t, "--diff", copy(t, path, "--key=a"), copy(t, path, "--key=a"))
    t.check(re.search(r"^ +0 .* total$", diff, re.M), diff)


@test("source/anonymize-python")
def _(t):
    """Functions and files of a script, and what is in the command line."""
    cwd = t.subdirectory()
    script = os.path.join(cwd, "ledger.py")
    with open(script, "w") as f:
        f.write("import json\ndef book(n):\n    return [bytes(1000 + i) for i in range(n)]\nkept = book(200)\njson.dumps({'a': 1})\n")
    path = os.path.join(cwd, "recording")
    t.run([t.ptmem(), "-q", "--record=" + path, "-o", "massif.out", t.program("python3"), script, "--password=hunter2"], cwd=cwd)
    t.check("book" in report_json(t, path)["frames"]["function"], "Python's functions are recorded")
    check_copy(t, path, ["ledger", "book", "hunter", "password"])  # no word has such syllables


@test("source/anonymize-unfinished")
def _(t):
    """A recording whose end is missing stays one; what is damaged is refused, and nothing is written."""
    path = record(t, "threads", "2", "3000")
    with open(path, "rb") as f:
        whole = f.read()
    cut = os.path.join(t.subdirectory(), "cut")
    for size in (len(whole) // 2, len(whole) - 30):
        with open(cut, "wb") as f:
            f.write(whole[:size])
        before = run_report(t, "--format=json", cut)
        out = os.path.join(t.subdirectory(), "out")
        done = run_report(t, "--anonymize=" + out, cut)
        t.equal("status", done.status, before.status)
        t.equal("a file", os.path.exists(out), before.status == 0)
        if not before.status:
            t.check(without_texts(report_json(t, out)["leaves"]) == without_texts(json.loads(before.out)["leaves"]), "the rest")
    refused = run_report(t, "--anonymize=" + path, path)
    t.check(refused.status == 255 and b"would overwrite what is read" in refused.err, refused.err)


@test("source/embed-own", limit=120)
def _(t):
    """ptmem --html --embed-sources has them, too, of one process and of several."""
    directory = t.subdirectory()
    program = t.target("gcc-O2-pie", "recursion")
    for name, argv, more in (("one", [program], []), ("all", ["sh", "-c", "%s; %s" % (program, program)], ["--trace-children=yes"])):
        page = os.path.join(directory, name)
        run = t.profile(argv, ["-q", "--html=" + page, "--embed-sources", *more])
        t.equal("messages", run.messages, [])
        sources = embedded(page)["sources"]
        t.equal("files of " + name, [os.path.basename(f) for f in sources["file"]], ["recursion.c"])
        t.check(len(sources["lines"][0]) > 20, "lines of %s" % name)
    program = os.path.join(directory, "gone")
    source = os.path.join(directory, "gone.c")
    with open(source, "w") as f:
        f.write("#include <stdlib.h>\nint main(void)\n{\n\tvoid *volatile p = malloc(1000);\n\treturn !p;\n}\n")
    t.run(["gcc", "-g", "-o", program, source], cwd=directory)
    os.mkdir(os.path.join(directory, "new"))
    shutil.move(source, os.path.join(directory, "new", "gone.c"))
    page = os.path.join(directory, "gone.html")
    run = t.profile([program], ["-q", "--html=" + page, "--embed-sources"])
    t.check(len(run.messages) == 1 and "gone.c the first" in run.messages[0] and "--source=DIR" in run.messages[0], "%s" % run.messages)
    run = t.profile([program], ["-q", "--html=" + page, "--embed-sources", "--source=" + os.path.join(directory, "new")])
    t.equal("found", (run.messages, embedded(page)["sources"]["problem"]), ([], [None]))
    t.equal("without --html", t.run([t.ptmem(), "--embed-sources", "true"]).status, 1)


@test("source/embed-diff", limit=120)
def _(t):
    """The page of a difference has the new profile's sources, with the new profile's values."""
    old, new = record(t, "many", "1000", "20000"), record(t, "recursion")
    page = os.path.join(t.subdirectory(), "page.html")
    result = run_report(t, "--embed-sources", "--html=" + page, "--diff", old, new)
    t.check(result.status == 0 and b"not in the page" not in result.err, "%r" % result.err)
    data = report_json(t, new)
    source = next(f for f in data["frames"]["file"] if f and f.endswith("recursion.c"))
    t.check("sources" not in embedded(page)["old"], "the old one's")
    t.equal("files", embedded(page)["new"]["sources"]["file"], [source])
    with Page(t, "file://" + page) as p:
        shown = p.js("return [...new SourceView(ptmem, 1).count(arguments[0], null)].map(([line, s]) => [line, s.bytes, s.allocations])", source)
        wanted = expected_lines(data, lambda file, _: file == source)
        t.equal("lines", {row[0]: tuple(row[1:]) for row in shown}, {line: (v[0], v[2]) for line, v in wanted.items()})
        note = p.js("""[...document.querySelectorAll('#panel tbody .twist')].some((twist) => {
            twist.click();
            return document.querySelector('.source .muted'); });
            return document.querySelector('.source').textContent""")
        t.check("values of the new profile" in note, note[:300])
