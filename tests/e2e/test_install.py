"""make install and uninstall; what the Debian package says of itself."""

import os
import re
import shutil

import harness
from harness import ROOT, test

PROGRAMS = ["ptmem", "ptmem-memusage", "ptmem-report"]


def files(top):
    return sorted(os.path.relpath(os.path.join(directory, name), top) for directory, _, names in os.walk(top) for name in names)


def make(t, target, top, prefix="prefix=/opt/p"):
    """From the programs as they are: nothing is built."""
    objects = os.path.dirname(os.path.realpath(os.path.join(harness.BUILD, "ptmem")))
    run = t.run([t.program("make"), "-C", ROOT, "-o", "programs", target, "O=" + objects, "DESTDIR=" + top, prefix],
                env={"MAKEFLAGS": "", "MAKELEVEL": "0"})
    t.equal("status of make %s (%s)" % (target, run.err.decode()[-300:]), run.status, 0)


def links(top):
    """The files that documents below it link, and pictures: LICENSE, doc/faq.md."""
    found = set()
    for name in files(top):
        if name.endswith(".md"):
            with open(os.path.join(top, name), encoding="utf-8") as file:
                names = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", file.read())
            found |= {os.path.normpath(os.path.join(os.path.dirname(name), path)) for path in names}
    assert {"LICENSE", "doc/fleet.md", "doc/flame.svg", "doc/orders.c"} <= found, found
    return found


@test("install/uninstall")
def _(t):
    """Installed programs run; make uninstall leaves the files of others, and nothing of its own."""
    top = os.path.join(t.subdirectory(), "a directory")
    prefix = os.path.join(top, "opt", "p")
    make(t, "install", top)
    installed = files(prefix)
    t.equal("programs", [name for name in installed if name.startswith("bin/")], ["bin/" + name for name in PROGRAMS])
    documents = os.path.join(prefix, "share/doc/ptmem")
    t.equal("what documents link, and is not there", links(documents) - set(files(documents)), set())
    with open(os.path.join(prefix, "lib/systemd/system/ptmem@.service"), encoding="utf-8") as file:
        t.check("ExecStart=/opt/p/bin/ptmem " in file.read(), "the unit starts the installed program")
    t.check(all("share/man/man1/%s.1" % name in installed for name in [*PROGRAMS, "ptmem-inspect"]), "man pages: %s" % installed)
    run = t.run([os.path.join(prefix, "bin", "ptmem-memusage"), shutil.which("true")])
    t.check(run.status == 0 and b"Memory usage summary" in run.err, "memusage finds ptmem beside it: %s" % run.err.decode())
    other = os.path.join(prefix, "share", "man", "man1", "other.1")
    with open(other, "w", encoding="ascii") as file:
        file.write("of others")
    make(t, "uninstall", top)
    t.equal("what remains", files(top), ["opt/p/share/man/man1/other.1"])
    t.equal("directories", sorted(os.listdir(prefix)), ["share"])
    os.remove(other)
    for name in ("prefix=/opt/p", "PREFIX=/opt/p"):
        make(t, "install", top, name)
        t.equal("where it is with " + name, files(top), ["opt/p/" + path for path in installed])
        make(t, "uninstall", top, name)
    t.equal("what remains of it all", os.listdir(prefix), [])
    make(t, "uninstall", top)


def text(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


@test("install/package")
def _(t):
    """The package is of this version, and needs for the build what scripts/install-deps lists."""
    version = re.search(r"^VERSION := (\S+)$", text("Makefile"), re.M)[1]
    t.equal("version in debian/changelog", re.match(r"ptmem \((\S+)\)", text("debian/changelog"))[1], version)
    needed = re.search(r"^Build-Depends: debhelper-compat \(= \d+\),\n((?: .*\n)+)", text("debian/control"), re.M)[1]
    groups = {name: names.split() for name, names in re.findall(r'^(\w+)="([^"]*)"', text("scripts/install-deps"), re.M)}
    t.check("build-essential" in groups["package"], "dpkg-buildpackage needs build-essential")
    essential = {"gcc", "libc6-dev", "make"}
    t.equal("build dependencies", sorted(re.findall(r"[^ ,\n]+", needed)), sorted(set(groups["build"]) - essential))
    for script in ("scripts/package", "debian/rules"):
        t.check(os.access(os.path.join(ROOT, script), os.X_OK), script)
    run = t.run(["sh", "-n", os.path.join(ROOT, "scripts/package")])
    t.equal("syntax: " + run.err.decode(), run.status, 0)
    run = t.run([os.path.join(ROOT, "scripts/package"), "rpm"])
    t.equal("another kind of package", (run.status, run.err), (2, b"usage: scripts/package [deb] [static] [test]\n"))
