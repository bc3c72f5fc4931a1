"""Every option of ptmem-report with every kind of file and every form: it changes the output, or is refused by name."""

import json
import os
import re
import struct

from harness import BUILD, test
from inspect_lib import synthetic

FORMATS = ("text", "json", "csv", "folded", "pprof", "speedscope", "massif")
OUTPUTS = {"png": "--png=out.png", "svg": "--svg=out.svg", "folded": "--folded=out.folded", "flame": "--flame=out.svg",
           "html": "--html=out.html", "folded=-": "--folded=-", "html=-": "--html=-"}
FORMS = {"": [], **{"format=" + name: ["--format=" + name] for name in FORMATS}, **{k: [v] for k, v in OUTPUTS.items()},
         "png+folded": ["--png=out.png", "--folded=out.folded"], "html+flame": ["--html=out.html", "--flame=out.svg"],
         "flame+csv": ["--flame=out.svg", "--format=csv"], "folded+text": ["--folded=out.folded", "--format=text"]}

QUESTIONS = "at range thread match"
# What has an effect, by kind of file and form. All other options are refused, and forms that are not here.
WANTED = {
    "massif": {
        "": "threshold x y", "format=text": "threshold x y",
        "png": "x-size y-size title rss", "svg": "x-size y-size title rss",
        "folded": "snapshot", "folded=-": "snapshot", "flame": "x-size title snapshot", "html": "", "html=-": "",
        "png+folded": "x-size y-size title rss snapshot", "html+flame": "x-size title snapshot",
        "folded+text": "threshold x y snapshot"},
    "memusage": {form: "x-size y-size title time-based total" for form in ("png", "svg")},
    "samples": {form: "x-size y-size title" for form in ("png", "svg")},
    "inspect": {"png": "x-size y-size title", "svg": "x-size y-size title", "html": "", "html=-": ""},
    "recording": {
        "": "threshold top " + QUESTIONS, "format=text": "threshold top " + QUESTIONS,
        "png": "x-size y-size title match", "svg": "x-size y-size title match",
        "png+folded": "x-size y-size title match",
        "format=massif": "threshold " + QUESTIONS, "flame": "x-size title " + QUESTIONS,
        "html+flame": "x-size title " + QUESTIONS, "flame+csv": "x-size title " + QUESTIONS,
        "folded+text": "threshold top " + QUESTIONS,
        **{form: QUESTIONS for form in ("format=json", "format=csv", "format=folded", "format=pprof", "format=speedscope", "folded",
                                        "folded=-", "html", "html=-")}},
}
WANTED["diff of massif"] = {
    "": "threshold top snapshot", "format=text": "threshold top snapshot", "folded": "threshold top snapshot",
    "folded+text": "threshold top snapshot", "flame": "threshold top x-size title snapshot", "flame+csv": "x-size title snapshot",
    "html": "", "html=-": "", "html+flame": "x-size title snapshot",
    **{form: "snapshot" for form in ("format=json", "format=csv", "format=folded", "folded=-")}}
WANTED["diff of recordings"] = {form: options.replace("snapshot", QUESTIONS) or QUESTIONS for form, options in
                                WANTED["diff of massif"].items()}
for _kind, _forms in (("massif", "png svg flame html html=- png+folded html+flame"),
                      ("recording", "png svg png+folded format=text format=json format=csv flame html html=- html+flame flame+csv folded+text"),
                      *((f"diff of {files}", "format=text format=json format=csv html html=- html+flame flame+csv folded+text folded flame")
                        for files in ("massif", "recordings"))):
    for _form in _forms.split() + [""][:_kind != "massif"]:
        WANTED[_kind][_form] += " not-my-code"
for _form in ("", "format=text", "folded+text"):
    WANTED["recording"][_form] += " annotate peek"
for _kind in ("recording", "diff of recordings"):
    for _form in WANTED[_kind]:
        WANTED[_kind][_form] += " older-than" if _form not in ("html", "html=-", "png", "svg") else ""
for _kind, _forms in (("recording", " format=text format=json format=csv html html=- html+flame flame+csv folded+text"),
                      ("diff of recordings", "html html=- html+flame")):
    for _form in _forms.split(" "):
        WANTED[_kind][_form] += " temporary"


def make(cwd, name, data):
    with open(os.path.join(cwd, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return [name]


def profiles(t, *options):
    """What two runs of a program wrote, in a directory: "old" and "new"."""
    cwd, program = t.subdirectory(), t.target("gcc-O2-pie", "mixed")
    for name, rounds in (("old", "300"), ("new", "600")):
        own = [option + name if option.endswith("=") else option for option in options]
        t.equal("status", t.run([t.ptmem(), "-q", *own, "--", program, "3", rounds], cwd=cwd).status, 0)
    return cwd


def make_massif(t):
    cwd = profiles(t, "--massif-out-file=", "--max-snapshots=20", "--detailed-freq=1")
    make(cwd, "rss", "time\tpid\tVmRSS\n0.0\t1\t1000\n0.1\t1\t9000\n")
    return cwd


def make_file(name, data):
    def run(t):
        cwd = t.subdirectory()
        make(cwd, "rss", "time\tpid\tVmRSS\n0.0\t1\t1000\n")
        make(cwd, name, data)
        return cwd

    return run


def memusage_data():
    record = struct.Struct("<QQQ").pack
    return record(0, 9000, 0) + record(9000, 10, 1000) + b"".join(record(i * 100, 500 + i, 100 * i * i) for i in range(60))


def recordings(t):
    cwd = profiles(t, "--record=", "--massif-out-file=/dev/null")
    make(cwd, "rss", "time\tpid\tVmRSS\n0.0\t1\t1000\n")
    return cwd


INPUTS = {
    "massif": (make_massif, ["new"]), "diff of massif": (make_massif, ["--diff", "old", "new"]),
    "recording": (recordings, ["new"]), "diff of recordings": (recordings, ["--diff", "old", "new"]),
    "memusage": (make_file("data", memusage_data()), ["data"]),
    "samples": (make_file("data", "time\tpid\tVmRSS\n" + "".join("%d\t%d\t%d\n" % (i, p, 1000 * p + 9 * i)
                                                                for i in range(20) for p in (1, 2))), ["data"]),
    "inspect": (make_file("data", json.dumps(synthetic(2, 50, 1), indent=1)), ["data"]),
}


class Report:
    """status, message, and all that was written: {name: bytes}."""

    def __init__(self, t, cwd, arguments):
        before = set(os.listdir(cwd)) | {"command", "stdout", "stderr"}
        result = t.run([os.path.join(BUILD, "ptmem-report"), *arguments], cwd=cwd)
        self.status, self.message, self.written = result.status, result.err.decode(), {"-": result.out}
        for name in set(os.listdir(cwd)) - before:
            with open(os.path.join(cwd, name), "rb") as file:
                self.written[name] = file.read()
            os.unlink(os.path.join(cwd, name))

    def is_refusal(self):
        return self.status == 255 and self.written == {"-": b""} and len(self.message.splitlines()) == 1


def detailed(path):
    """Numbers of the snapshots with a tree that are not the peak."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return {int(n) for n, kind in re.findall(r"^snapshot=(\d+)$(?s:.*?)^heap_tree=(\w+)$", file.read(), re.M) if kind == "detailed"}


def options_of(t, cwd, arguments):
    """{name: option}; each has a value that is not the default, and that means something to this file."""
    found = {"threshold": "--threshold=40", "x": "--x=40", "y": "--y=7", "x-size": "--x-size=640", "y-size": "--y-size=400",
             "title": "--title=another", "time-based": "-t", "total": "-T", "rss": "--rss=rss", "snapshot": "--snapshot=last",
             "at": "--at=start", "range": "--range=end..end", "thread": "--thread=1", "match": "--match=realloc", "top": "--top=1",
             "not-my-code": "--not-my-code=mixed.c", "temporary": "--temporary=1us", "older-than": "--older-than=50%",
             "annotate": "--annotate=mixed.c", "peek": "--peek=main"}
    plain = [a for a in arguments if a != "--diff"]
    both = [detailed(os.path.join(cwd, name)) for name in plain]
    if both and all(both):
        found["snapshot"] = "--snapshot=%d" % min(set.intersection(*both))
    threads = [json.loads(r.written["-"])["threads"] for r in (Report(t, cwd, ["--format=json", p]) for p in plain)
               if r.status == 0]
    if threads:
        found["thread"] = "--thread=" + threads[0][-1]["name"]
    return found


def check_form(t, cwd, arguments, form, options, of_kind):
    """The options that have an effect on @form; None: it is refused as such. Of those that no form of this kind of file has
    (not @of_kind), all are asked for at once beside a form that is refused: the other forms refuse each."""
    base = Report(t, cwd, FORMS[form] + arguments)
    if base.status:
        t.check(base.is_refusal(), "%s: %s" % (form, base.message))
        with_all = Report(t, cwd, [o for n, o in options.items() if n not in of_kind] + FORMS[form] + arguments)
        t.check(with_all.is_refusal(), "%s with other kinds' options: %s" % (form, with_all.message))
        options = {name: option for name, option in options.items() if name in of_kind}
    else:
        t.equal(form + " again", Report(t, cwd, FORMS[form] + arguments).written, base.written)
    effective = set()
    for name, option in options.items():
        result = Report(t, cwd, [option] + FORMS[form] + arguments)
        if result.is_refusal():
            short = {"-t": "--time-based", "-T": "--total"}.get(option, option).split("=")[0]
            t.check(base.status or short in result.message, "%s with %s: %s" % (option, form, result.message))
            continue
        t.check(result.status == 0 and not base.status, "%s with %s: %d, %s" % (option, form, result.status, result.message))
        t.check(result.written.keys() == base.written.keys() and result.written != base.written,
                "%s is ignored with '%s'" % (option, form))
        effective.add(name)
    return None if base.status else effective


for _name, (_make, _arguments) in INPUTS.items():
    def _run(t, name=_name, make_input=_make, arguments=_arguments):
        cwd = make_input(t)
        options = options_of(t, cwd, arguments)
        wanted = {form: set(names.split()) for form, names in WANTED[name].items()}
        of_kind = set().union(*wanted.values())
        found = {form: check_form(t, cwd, arguments, form, options, of_kind) for form in FORMS}
        for form, effective in found.items():
            t.equal("what has an effect on '%s'" % form, effective, wanted.get(form))

    test("report/options/" + _name.replace(" ", "-"), limit=600)(_run)


@test("report/options/all")
def _(t):
    """No option is left out above."""
    text = t.run([os.path.join(BUILD, "ptmem-report"), "--help"]).out.decode()
    known = set(options_of(t, t.subdirectory(), []))
    known |= {"my-code"}  # its rows are those of not-my-code; alone it changes nothing here
    # they change the status, or make nothing else: test_fail_if.py, test_gates.py
    known |= {"fail-if", "limit", "limits-file", "baseline", "write-baseline"}
    known |= {"anonymize", "key", "source", "merge", "embed-sources"}  # alone they make nothing else, or nothing: test_source_views.py
    known |= {"graph", "graph-depth", "who-holds"}  # of heap graphs alone: test_graph.py
    known |= {"what-if"}  # of files of events alone: test_what_if.py
    known |= {"brief"}  # test_brief.py
    known |= {"format", "diff", "help", "version"} | {form.partition("=")[0] for form in OUTPUTS}
    t.equal("options", {line.split("--")[1].split("=")[0].split()[0] for line in text.splitlines() if line.startswith("  -")}, known)
