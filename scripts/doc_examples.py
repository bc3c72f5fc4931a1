"""Runs the commands in README.md, doc/*.md and the man pages. Their output must be what the documents show.

    ```console                  commands after "$ " (continued after "> "), each followed by its output
    ```console needs=WORD       skipped where WORD (see NEEDS) is not available; root, source, docker: see doc_system.py
    ```console figures=vary     of a running process: any number matches any other, and what they sort may come in any order;
                                largest call sites are not compared
    ```c file=NAME              an excerpt of that file
    ```diff file=NAME           applied to that file
    ![TEXT](doc/NAME.svg)       a file that a command of the document writes: the same titles and texts

The commands of a document run one after another in one directory, with a copy of doc/*.c, .java, .js, .lua, .php, .pl, .py and
.rb; each block has a shell of its own. A command in backquotes (`ptmem ...` or `ptmem-report ...` with a program, a PID or files), and one
below EXAMPLES of a man page, must succeed; PID is a running example, FILE, OLD and NEW are profiles. A command that is
shown in any other way is an error.
Pids, addresses, times and column widths may differ; so may the lines that report pauses. A line "..." of an output
matches any number of lines.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import doc_system

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "INSTALL.md", "CONTRIBUTING.md", "DEBUGGING.md", "SECURITY.md", "doc/tutorial.md", "doc/faq.md",
             "doc/performance.md", "doc/format.md", "doc/massif.md", "doc/memusage.md", "doc/internals.md", "doc/porting.md",
             "doc/what-if.md", "doc/fleet.md", "doc/ci.md", "doc/containers.md", "doc/languages.md")
PAGES = ("man/ptmem.1", "man/ptmem-inspect.1", "man/ptmem-report.1", "man/ptmem-memusage.1")
HOME = "/home/user"  # what documents show in place of the directory
LIMIT = 120  # seconds for a block
BLOCK = re.compile(r"^```(console|c|diff)\b([^\n]*)\n(.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"^!\[[^]]*\]\((?:doc/)?([\w.-]+\.svg)\)", re.M)
IN_TEXT = re.compile(r"`(ptmem(?:-report|-memusage)? [^`\n]*)`")
IS_COMPLETE = re.compile(r"\./|\bPID\b|pidof|^ptmem-report .* (FILE|OLD NEW|[a-z]+)$")
UNMARKED = re.compile(r"^(?:    |\t)(?:\$ |make |scripts/|ptmem).*|^```\n\$ .*", re.M)
PROFILES = {"FILE": "a.recording", "OLD": "a.massif", "NEW": "b.massif"}
PREPARE = """gcc -g -o orders doc/orders.c && ptmem -q -o a.massif ./orders && ptmem -q -o b.massif ./orders 10 &&
    ptmem -q --record=a.recording ./orders && cp orders prog && cp orders program && cp a.massif massif.out.4711 && cp b.massif massif.out.4800"""
RUNNING = "./orders 1000000 50"  # until it is ended
# A command that profiles it until it ends begins at some time: it ends four seconds after that. Samples need no tracer.
END = "(%s; sleep 4; kill $PID) >/dev/null 2>&1 &\n"
TRACED, SAMPLED = "while grep -q '^TracerPid:.0$' /proc/$PID/status; do sleep .1; done", "sleep 10"


def may_attach():
    try:
        scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii")
    except OSError:
        scope = "0"
    return os.geteuid() == 0 or int(scope) == 0


def runs(*command):
    """Whether it can be executed: pyenv has programs that only say why not."""
    return bool(shutil.which(command[0])) and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


# word: (whether it is available, what is missing)
NEEDS = {
    "attach": (may_attach, "root or ptrace_scope 0"),
    "prometheus": (lambda: shutil.which("promtool"), "Prometheus"),
    "node": (lambda: shutil.which("node"), "Node.js"),
    "ruby": (lambda: shutil.which("ruby"), "Ruby"),
    "php": (lambda: shutil.which("php"), "PHP"),
    "lua5.4": (lambda: shutil.which("lua5.4"), "Lua 5.4"),
    "perl": (lambda: shutil.which("perl"), "Perl"),
    "lua": (lambda: shutil.which("lua5.4"), "Lua 5.4"),
    "python3.12": (lambda: runs("python3.12", "-c", ""), "CPython 3.12"),
    "java": (lambda: shutil.which("javac"), "a JDK"),
    "namespaces": (doc_system.may_be_root, "user namespaces"),
    "network": (lambda: False, "a network"),
}

MASKS = [
    (re.compile(r"\b(process |massif\.out\.)\d+"), r"\1PID"),
    (re.compile(r"\b0x[0-9A-Fa-f]+"), "ADDRESS"),
    (re.compile(r"\bpeak snapshot \d+"), "peak snapshot"),
    (re.compile(r"\b[\d.]+ to ([\d.]+ s\b)"), r"\1"),
    (re.compile(r"\b[\d.]+ ?(s|ms|us)\b"), "TIME"),
    (re.compile(r"[ \t]+"), " "),
]
MAY_APPEAR = re.compile(r"^ptmem: (paused|stopped) ")
CALL_SITE = re.compile(r"^ptmem: (largest )?[\d.]+ [KMG]iB ")


def masked(text, options):
    """@text without the parts that differ from run to run."""
    lines = []
    for line in text.splitlines():
        for pattern, by in MASKS:
            line = pattern.sub(by, line)
        is_varying = options.get("figures") == "vary"
        if MAY_APPEAR.match(line) or is_varying and CALL_SITE.match(line):
            continue
        lines.append(re.sub(r"\b[\d.,]+( [KMG]iB| %)?", "N", line) if is_varying else line.strip())
    return lines


def is_same(shown, printed, options):
    shown, printed = (masked(text, options) for text in (shown, printed))
    if options.get("figures") == "vary" and sorted(shown) == sorted(printed):
        return True
    shown, printed = "\n".join(shown), "\n".join(printed)
    pattern = ".*".join(re.escape(part) for part in re.split(r"^\.\.\.$", shown, flags=re.M))
    return re.fullmatch(pattern, printed, re.S) is not None


def excerpt(shown, printed):
    """The parts of @printed that are most alike those of @shown, with "..." between; all of it if some part has none."""
    parts, lines, new, at = re.split(r"^\.\.\.\n", shown, flags=re.M), [line.rstrip() + "\n" for line in printed.splitlines()], [], 0
    if len(parts) == 1:
        return "".join(lines)
    for i, part in enumerate(parts):
        size = part.count("\n")
        first, last = (0 if i == 0 else at), len(lines) - size
        places = range(first, (first if i == 0 else last) + 1) if i + 1 < len(parts) else range(last, last + 1)
        alike = {place: difflib.SequenceMatcher(None, part, "".join(lines[place:place + size])).ratio()
                 for place in places if size and place >= at}
        place = max(alike, key=alike.get, default=None)
        if size and (place is None or alike[place] < 0.5):
            return "".join(lines)
        new.append("".join(lines[place:place + size]) if size else "")
        at = place + size if size else at
    return "...\n".join(new)


class Block:
    """A fenced block: its kind, options and text, and its position in the document."""

    def __init__(self, document, match):
        self.kind, self.text, self.span = match[1], match[3], match.span(3)
        self.options = dict(word.split("=", 1) for word in match[2].split())
        self.line = document.count("\n", 0, match.start()) + 1

    def steps(self):
        """[[command lines, the output that is shown]]"""
        steps = []
        for line in self.text.splitlines(keepends=True):
            if line.startswith("$ "):
                steps.append([line, ""])
            elif line.startswith("> ") and steps and not steps[-1][1]:
                steps[-1][0] += line
            elif steps:
                steps[-1][1] += line
            else:
                raise ValueError("line %d: a block begins with output" % self.line)
        return steps

    def excuse(self):
        """Why it cannot be run here."""
        is_available, missing = NEEDS[self.options["needs"]] if "needs" in self.options else (lambda: True, "")
        return None if is_available() else "needs " + missing


def script_of(command):
    """How to run @command from the text: with a running example if it has a PID, and with profiles."""
    for word, name in PROFILES.items():
        command = re.sub(r"\b%s\b" % word, "new.massif" if "--monitor" in command else name, command)
    command = command.replace("--cold=60s", "--cold=1s")  # watching the example's pages for longer takes a CPU, and shows no more
    if not re.search(r"\bPID\b|pidof", command):
        return command
    command = re.sub(r"\bPID\b", "$PID", command)
    start = "%s >/dev/null 2>&1 & PID=$!\npidof() { echo $PID; }\n"
    if "--monitor" in command:
        return start % RUNNING + "ptmem -q -p $PID -o monitored.massif >/dev/null 2>&1 &\nuntil %s; do sleep .1; done" % command
    return start % RUNNING + END % (SAMPLED if "--heap=no" in command else TRACED) + command


# A reader takes a moment for the next command: meanwhile the program has begun its work, and sleeps.
AWAIT = """until [ ! -e /proc/$! ] || [ "$(cat /proc/$!/comm)" != bash ] && grep -q "^State:.S" /proc/$!/status; do sleep .01; done
"""


class Sandbox:
    """The directory in which a document's commands run."""

    def __init__(self, programs, limit):
        self.limit = limit  # seconds for a script
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="ptmem-docs."))
        (self.path / "doc").mkdir()
        for source in [p for s in ("c", "java", "js", "lua", "php", "pl", "py", "rb") for p in (ROOT / "doc").glob("*." + s)]:
            shutil.copy(source, self.path / "doc")
        self.env = {"PATH": "%s:%s" % (programs, os.environ.get("PATH", "/usr/bin:/bin")), "HOME": str(self.path),
                    "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def run(self, script):
        """(status, what it printed); the status is None if it, or a process that it leaves with its output, has not
        ended at the limit. Processes that it leaves running are killed."""
        is_late = False
        with subprocess.Popen(["bash", "-c", script], cwd=self.path, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as shell:
            try:
                out = shell.communicate(timeout=self.limit)[0]
            except subprocess.TimeoutExpired as late:
                is_late, out = True, (late.output or b"") + b"(took more than %d s)\n" % self.limit
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return None if is_late else shell.returncode, out.decode(errors="replace").replace(str(self.path), HOME)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Document:
    def __init__(self, name, programs, limit=LIMIT):
        self.name, self.file = name, ROOT / name
        self.text = self.file.read_text(encoding="utf-8")
        self.blocks = [Block(self.text, match) for match in BLOCK.finditer(self.text)]
        self.sandbox = Sandbox(programs, limit)
        self.passed, self.failures, self.skipped = 0, [], []
        self.news = []  # (span, text) to replace

    def note(self, line, failure):
        if failure:
            self.failures.append("%s:%d: %s" % (self.name, line, failure))
        else:
            self.passed += 1

    def run_system(self, block):
        for command, shown in block.steps():
            command = re.sub(r"^[$>] ", "", command, flags=re.M)
            script, excuse = doc_system.script_of(block.options["needs"], command, self.sandbox.path)
            if excuse:
                self.skipped.append("%s:%d: skipped: %s" % (self.name, block.line, excuse))
                continue
            status, out = self.sandbox.run(script)
            self.note(block.line, None if status == 0 and not shown else "%s\n%s" % (command, indented(out)))

    def check_system_text(self):
        """make and scripts in sentences."""
        blocks = [range(*block.span) for block in self.blocks]
        for offset, command in doc_system.text_examples(self.text):
            line = self.text.count("\n", 0, offset) + 1
            if any(offset in block for block in blocks):
                continue
            script, failure, excuse = doc_system.check_text(command, self.sandbox.path)
            if script:
                status, out = self.sandbox.run(script)
                failure = None if status == 0 else "%s\n%s" % (command, indented(out))
            if excuse:
                self.skipped.append("%s:%d: skipped: %s: %s" % (self.name, line, command, excuse))
            else:
                self.note(line, failure)

    def run_console(self, block):
        if block.options.get("needs") in doc_system.KINDS:
            self.run_system(block)
            return
        excuse = block.excuse()
        if excuse:
            self.skipped.append("%s:%d: skipped: %s" % (self.name, block.line, excuse))
            return
        mark = "==== end of a command ====\n"
        steps = block.steps()
        commands = [re.sub(r"^[$>] ", "", step[0], flags=re.M) for step in steps]
        commands = [command + AWAIT if command.endswith("&\n") else command for command in commands]
        status, out = self.sandbox.run(("echo '%s'\n" % mark.strip()).join(commands))
        printed = out.split(mark)
        ended = len(printed) - (status is None)
        printed += ["(not run)\n"] * (len(steps) - len(printed))
        new = ""
        for i, ((command, shown), out) in enumerate(zip(steps, printed)):
            if i < ended and is_same(shown, out, block.options):
                self.note(block.line, None)
                new += command + shown
                continue
            self.note(block.line, "%swants:\n%sprints:\n%s" % (command, indented(shown), indented(out)))
            new += command + excerpt(shown, out)
        if ended >= len(steps):
            self.news.append((block.span, new))

    def run_excerpt(self, block):
        source = (self.sandbox.path / block.options["file"]).read_text(encoding="utf-8")
        self.note(block.line, None if block.text in source else "is not in " + block.options["file"])

    def run_diff(self, block):
        """Context and "-" lines are replaced by context and "+" lines."""
        path, lines = self.sandbox.path / block.options["file"], block.text.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in " " + sign) for sign in "-+")
        source = path.read_text(encoding="utf-8")
        self.note(block.line, None if source.count(old) == 1 else "does not apply to " + path.name)
        path.write_text(source.replace(old, new), encoding="utf-8")

    def text_commands(self):
        """[(line, commands of one line of the text)]: later ones may need files of earlier ones."""
        blocks = [range(*block.span) for block in self.blocks]
        found = {}
        for match in IN_TEXT.finditer(self.text):
            if IS_COMPLETE.search(match[1]) and not any(match.start() in block for block in blocks):
                found.setdefault(self.text.count("\n", 0, match.start()) + 1, []).append(match[1])
        return found.items()

    def run_line(self, item):
        line, commands = item
        if any(re.search(r"PID|pidof", command) for command in commands) and not may_attach():
            self.skipped.append("%s:%d: skipped: needs %s" % (self.name, line, NEEDS["attach"][1]))
            return
        for command in commands:
            status, out = self.sandbox.run("set -o pipefail; " + script_of(command))
            self.note(line, None if status == 0 else "%s: %s:\n%s" % (
                command, "does not end" if status is None else "status %d" % status, indented(out)))

    def run_text(self):
        lines = self.text_commands()
        if not lines:
            return
        status, out = self.sandbox.run(PREPARE)
        if status != 0:
            self.note(0, "cannot prepare: " + out)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self.run_line, lines))

    def check_unmarked(self):
        for match in UNMARKED.finditer(self.text):
            line = self.text.count("\n", 0, match.start()) + 1
            self.note(line, "a command outside a console block: " + match[0].strip())

    def check_picture(self, match, is_update):
        kept, made = ROOT / "doc" / match[1], self.sandbox.path / match[1]
        line = self.text.count("\n", 0, match.start()) + 1
        if not made.exists():
            self.note(line, "no command writes " + match[1])
        elif is_update:
            shutil.copy(made, kept)
        else:
            texts = [re.findall(r"<(?:title|text)[^>]*>([^<]*)<", p.read_text(encoding="utf-8")) if p.exists() else None
                     for p in (kept, made)]
            self.note(line, None if texts[0] == texts[1] else "%s is not what the command writes" % match[1])

    def run(self, is_update):
        for block in self.blocks:
            {"console": self.run_console, "c": self.run_excerpt, "diff": self.run_diff}[block.kind](block)
        self.run_text()
        self.check_system_text()
        self.check_unmarked()
        for match in PICTURE.finditer(self.text):
            self.check_picture(match, is_update)
        self.sandbox.remove()
        if is_update:
            self.update()

    def update(self):
        if not self.news:
            return
        text = self.text
        for (start, end), new in reversed(self.news):
            text = text[:start] + new + text[end:]
        self.file.write_text(text, encoding="utf-8")


class Page(Document):
    """A man page: the lines .Dl below EXAMPLES."""

    def text_commands(self):
        examples = re.search(r"^\.Sh EXAMPLES$(.*?)^\.Sh", self.text, re.M | re.S)
        return [(self.text.count("\n", 0, examples.start(1) + match.start()) + 1, [match[1].replace("\\(dq", '"')])
                for match in re.finditer(r"^\.Dl (?:\$ )?(.*)$", examples[1], re.M)]


def indented(text):
    return "".join("    %s\n" % line for line in text.splitlines())


def check_options(document, options):
    """Options in backquotes, as `ptmem --name`, exist."""
    for match in re.finditer(r"`(ptmem(?:-report)?) ([^`]*)`", document.text):
        for name in re.findall(r"(?<=--)[a-z][a-z-]*", match[2]):
            if name not in options[match[1]]:
                document.note(document.text.count("\n", 0, match.start()) + 1, "%s has no --%s" % (match[1], name))


def run_all(programs, options, names, is_update=False):
    """Prints failures and skipped blocks of the documents @names; returns (passed, failed)."""
    passed = failed = 0
    documents = [(Page if name in PAGES else Document)(name, programs) for name in names]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda document: document.run(is_update), documents))
    for document in documents:
        check_options(document, options)
        print("".join(line + "\n" for line in document.failures + document.skipped), end="")
        passed, failed = passed + document.passed, failed + len(document.failures)
    return passed, failed
