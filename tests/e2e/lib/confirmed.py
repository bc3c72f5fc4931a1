"""What a peer confirmed: results of ptmem that were compared with Valgrind's, kept as digests.

Valgrind takes most of the time of a test that runs it next to ptmem, and gives the same each time. A digest is made
of everything that its answer depends on (command, environment, program, libraries, versions) and of what ptmem
gave. What memcheck says of leaks is kept as text, by a digest of what it was given. Where it is the one in tests/golden/confirmed, Valgrind was asked for just this and agreed. Everything else is asked
again: another compiler's program, another libc or Valgrind, another result. So a digest never makes a
test fail, and lets none pass that did not pass beside Valgrind. `make peers` asks for all and rewrites the file.
"""

import functools
import glob
import hashlib
import json
import lzma
import os
import re
import struct
import sys

import harness

KEPT = os.path.join(harness.ROOT, "tests/golden/confirmed")
OWN = os.path.join(harness.BUILD, "confirmed")  # of this build: a file for each
# What memcheck said, {digest of all that it was given: its text}; of this build, a file for each text.
SAID = os.path.join(harness.ROOT, "tests/golden/memcheck.json.xz")
OWN_SAID = os.path.join(harness.BUILD, "memcheck")
ASKED = os.environ.get("PTMEM_PEERS") == "ask"
ALLOCATED, NO_BITS = 2, 8
# What names and numbers come from, beside the memory image: symbols, and the compiler's version.
READ = {b".symtab", b".strtab", b".comment"}


def code_of(path):
    """A digest of the program or library @path: of its contents but for debugging information, which has the names of
    directories. What a script is, or any other file, is all of it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\2\1":
        return hashlib.sha256(data).hexdigest()
    offset, size, count, names = struct.unpack_from("<Q10xHHH", data, 0x28)
    sections = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    names = sections[names][4]
    for name, kind, flags, address, start, length in sections:
        name = data[names + name:data.index(b"\0", names + name)]
        if name == b".note.gnu.build-id" or not flags & ALLOCATED and name not in READ:
            continue
        digest.update(b"%s %d %d %d;" % (name, kind, address if flags & ALLOCATED else 0, length))
        if kind != NO_BITS:
            digest.update(data[start:start + length])
    return digest.hexdigest()


def text_of(path, seen):
    """Adds to @seen the text of a source and of what it includes of its own directory: {path: text}."""
    if path in seen or not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        seen[path] = file.read()
    for name in re.findall(r'(?m)^\s*#\s*include "([^"]+)"', seen[path]):
        text_of(os.path.normpath(os.path.join(os.path.dirname(path), name)), seen)


def sources(program):
    """What the debugging information of a test program is of; nothing for those of the system, which only have code."""
    name = "names" if os.path.basename(os.path.dirname(program)) == "rust" else os.path.basename(program).split("-")[0]
    seen, own = {}, os.path.realpath(program).startswith(os.path.realpath(harness.TARGETS))
    for end in (".c", ".cpp", ".rs") if own else ():
        text_of(os.path.join(harness.ROOT, "tests/targets", name + end), seen)
    if own and not seen:
        raise harness.Fail("no source of " + program)
    return seen


def without_places(t, value):
    """@value as JSON, with the same names for the directories of each build and test."""
    text = json.dumps(value, sort_keys=True)
    for path, name in ((t.directory, "TEST"), (harness.BUILD, "BUILD"), (harness.ROOT, "ROOT")):
        text = text.replace(path, name)
    return re.sub(r"(?:ROOT|/[\w./+-]+)/tests/targets/", "SOURCES/", text)  # the build may be a copy


def kept(name):
    """The digests of the test @name, of the repository and of this build."""
    found = set()
    for path in (KEPT, own_path(name)):
        try:
            with open(path, encoding="ascii") as file:
                found.update(line.split()[1] for line in file if line.split()[:1] == [name])
        except FileNotFoundError:
            pass
    return found


def own_path(name):
    return os.path.join(OWN, name.replace("/", "_"))


def keep(name, digest):
    """Another driver may do the same at the same time."""
    os.makedirs(OWN, exist_ok=True)
    path = own_path(name)
    with open("%s.%d" % (path, os.getpid()), "w", encoding="ascii") as file:
        file.write("%s %s\n" % (name, digest))
    os.replace(file.name, path)


def confirm(t, name, command, env, result, compare):
    """Returns if @result, which JSON can express, is what the peer's @command confirmed before; otherwise @compare() asks it,
    raises Fail if it differs, and the result is kept as @name. The last words of @command begin with the program."""
    program = next(word for word in command[1:] if os.path.isabs(word))
    inputs = [command, env, [code_of(path) for path in (program, *t.libraries(program))], sources(program),
              [code_of(t.program(tool)) for tool in (command[0], "ms_print", "callgrind_annotate")],
              t.run([command[0], "--version"]).out.decode()]
    digest = hashlib.sha256(without_places(t, [inputs, result]).encode()).hexdigest()[:32]
    if ASKED or digest not in kept(name):
        compare()
        keep(name, digest)


# memcheck's results are read by the tests, which compare them in several ways: its texts are kept.

def places(t):
    """[(path, what it is called in texts that are kept)]"""
    return ((t.directory, "@TEST@"), (harness.BUILD, "@BUILD@"), (harness.ROOT, "@ROOT@"))


@functools.cache
def said_texts():
    try:
        with lzma.open(SAID, "rt", encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def given_digest(t, tool, argv, options, preloaded):
    """Of everything that the answer of @tool about @argv depends on: contents of what is executed and read, not their places."""
    texts = []
    for path in (option.partition("=")[2] for option in options):
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
    files = [path for path in (*argv, preloaded, tool) if os.path.isfile(path)]
    inputs = [options, argv, texts, [code_of(path) for path in (*files, *t.libraries(argv[0]))], sources(argv[0]),
              t.run([tool, "--version"]).out.decode()]
    return hashlib.sha256(without_places(t, inputs).encode()).hexdigest()[:32]


def memcheck_said(t, tool, argv, options, preloaded, ask):
    """What memcheck prints about @argv: from tests/golden/memcheck.json.xz, or this build, if it was given the same before;
    else what @ask() returns, which is kept in this build."""
    digest = given_digest(t, tool, argv, options, preloaded)
    path = os.path.join(OWN_SAID, digest)
    text = None if ASKED else said_texts().get(digest)
    if text is None and not ASKED and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    if text is not None:
        for place, name in places(t):
            text = text.replace(name, place)
        return text
    answer = text = ask()
    for place, name in places(t):
        text = text.replace(place, name)
    os.makedirs(OWN_SAID, exist_ok=True)
    with open("%s.%d" % (path, os.getpid()), "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?m)^==\d+==", "==1==", text))
    os.replace(file.name, path)
    return answer


def keep_texts():
    """What this build was told becomes what is kept."""
    said = {}
    for path in sorted(glob.glob(os.path.join(OWN_SAID, "*"))):
        with open(path, encoding="utf-8") as file:
            said[os.path.basename(path)] = file.read()
    with lzma.open(SAID, "wt", encoding="utf-8") as file:
        json.dump(said, file, indent=0, sort_keys=True)


if __name__ == "__main__" and sys.argv[1:] == ["keep-memcheck"]:
    keep_texts()
