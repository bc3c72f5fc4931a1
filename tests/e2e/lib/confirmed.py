"""What a peer confirmed: results of ptmem that were compared with Valgrind's, kept as digests.

Valgrind takes most of the time of a test that runs it next to ptmem, and gives the same each time. A digest is made
of everything that its answer depends on (command, environment, program, libraries, versions) and of what ptmem
gave. Where it is the one in tests/golden/confirmed, Valgrind was asked for just this and agreed. Everything else is asked
again: another compiler's program, another libc or Valgrind, another result. So a digest never makes a
test fail, and lets none pass that did not pass beside Valgrind. `make peers` asks for all and rewrites the file.
"""

import functools
import hashlib
import json
import os
import re
import struct

import harness

KEPT = os.path.join(harness.ROOT, "tests/golden/confirmed")
OWN = os.path.join(harness.BUILD, "confirmed")  # of this build: a file for each
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


@functools.lru_cache(None)
def sources():
    """The text that debugging information is of: all test programs', since one includes others."""
    digest, directory = hashlib.sha256(), os.path.join(harness.ROOT, "tests/targets")
    for name in sorted(name for name in os.listdir(directory) if name.endswith((".c", ".cpp", ".h", ".rs"))):
        with open(os.path.join(directory, name), "rb") as file:
            digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


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
    inputs = [command, env, [code_of(path) for path in (program, *t.libraries(program))], sources(),
              [code_of(t.program(tool)) for tool in (command[0], "ms_print", "callgrind_annotate")],
              t.run([command[0], "--version"]).out.decode()]
    digest = hashlib.sha256(without_places(t, [inputs, result]).encode()).hexdigest()[:32]
    if ASKED or digest not in kept(name):
        compare()
        keep(name, digest)
