"""Limits of memory as tests of CMake, meson, cargo and pytest: what doc/ci.md shows of each."""

import os
import re
import shutil

from harness import BUILD, ROOT, Skip, test

PTMEM = os.path.join(os.path.realpath(BUILD), "ptmem")


def project(t, **files):
    """A directory with these files and doc/orders.c."""
    cwd = t.subdirectory()
    shutil.copy(os.path.join(ROOT, "doc", "orders.c"), cwd)
    for name, text in files.items():
        with open(os.path.join(cwd, name.replace("__", ".")), "w", encoding="utf-8") as file:
            file.write(text)
    return cwd


def run(t, cwd, *command, status=0):
    path = os.pathsep.join([os.path.realpath(BUILD), os.environ["PATH"]])
    result = t.run(list(command), cwd=cwd, env={**os.environ, "PATH": path, "HOME": os.environ.get("HOME", cwd)})
    text = result.out.decode() + result.err.decode()
    t.check((result.status == 0) == (status == 0), "status %d of %s: %s" % (result.status, command, text[-2000:]))
    return text


def installed(t, name):
    if not shutil.which(name):
        raise Skip(name + " is not installed")
    return shutil.which(name)


@test("build-systems/cmake", limit=120)
def _(t):
    cmake, ctest = installed(t, "cmake"), installed(t, "ctest")
    cwd = project(t, CMakeLists__txt="""
cmake_minimum_required(VERSION 3.15)
project(orders C)
enable_testing()
find_package(ptmem REQUIRED)
add_executable(orders orders.c)
add_memory_test(NAME kept COMMAND orders 5 LIMITS "peak<3M" "allocations<80K")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/limits "# of the report\\npeak<2M\\n")
add_memory_test(NAME grown COMMAND orders LIMITS_FILE ${CMAKE_CURRENT_BINARY_DIR}/limits OPTIONS --time-unit=B)
add_memory_test(NAME leaking COMMAND orders LIMITS "leaked<1")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/leaks "leaked<1 # nothing\n")
add_memory_test(NAME of/file COMMAND orders LIMITS_FILE ${CMAKE_CURRENT_BINARY_DIR}/leaks)
""")
    run(t, cwd, cmake, "-S", ".", "-B", "b", "-Dptmem_DIR=" + os.path.join(ROOT, "contrib"), "-DCMAKE_BUILD_TYPE=Debug")
    run(t, cwd, cmake, "--build", "b")
    text = run(t, os.path.join(cwd, "b"), ctest, "--output-on-failure", status=1)
    t.equal("failed", re.findall(r"^\s+\d+ - ([\w/]+) \(Failed\)", text, re.M), ["grown", "leaking", "of/file"])
    t.equal("leaks that fail: " + text, text.count("limit exceeded: leaked<1"), 2)
    t.check("limit exceeded: peak<2M" in text and "format_line (orders.c:" in text and "limit exceeded: leaked<1" in text, text)
    with open(os.path.join(cwd, "b", "grown.massif"), encoding="utf-8") as file:
        t.check("time_unit: B" in file.read(), "options are passed on")


@test("build-systems/cmake-refused", limit=120)
def _(t):
    """Mistakes in the lists stop the configuration."""
    cmake = installed(t, "cmake")
    cwd = t.subdirectory()
    for call, message in (("NAME a COMMAND b", "LIMITS or LIMITS_FILE is required"), ("NAME a LIMITS peak<1", "are required"),
                          ("other NAME a COMMAND b LIMITS peak<1", "unexpected: other")):
        with open(os.path.join(cwd, "s.cmake"), "w", encoding="utf-8") as file:
            file.write("include(%s)\nadd_memory_test(%s)\n" % (os.path.join(ROOT, "contrib", "ptmem-config.cmake"), call))
        result = t.run([cmake, "-Dptmem_EXECUTABLE=" + PTMEM, "-P", "s.cmake"], cwd=cwd)
        t.check(result.status and message in re.sub(r"\s+", " ", result.err.decode()), "%s: %s" % (call, result.err.decode()))


@test("build-systems/meson", limit=120)
def _(t):
    meson = installed(t, "meson")
    cwd = project(t, meson__build="""
project('orders', 'c')
orders = executable('orders', 'orders.c')
ptmem = find_program('ptmem')
test('kept', ptmem, args: ['-q', '-o', '/dev/null', '--limit=peak<3M', '--', orders, '5'])
test('grown', ptmem, args: ['-q', '-o', '/dev/null', '--limit=peak<2M', '--', orders])
""")
    run(t, cwd, meson, "setup", "b")
    text = run(t, cwd, meson, "test", "-C", "b", "--print-errorlogs", status=1)
    t.check(re.search(r"kept +OK", text) and re.search(r"grown +FAIL", text) and "limit exceeded: peak<2M" in text, text)


@test("build-systems/cargo", limit=300)
def _(t):
    cargo = installed(t, "cargo")
    cwd = t.subdirectory()
    os.mkdir(os.path.join(cwd, "src"))
    files = {"Cargo.toml": '[package]\nname = "orders"\nversion = "0.1.0"\nedition = "2021"\n',
             "src/lib.rs": "pub fn parse(n: usize) -> Vec<Vec<u8>> {\n    (0..n).map(|i| vec![1u8; 100 + i % 7]).collect()\n}\n"
                           "#[test]\nfn small() {\n    assert_eq!(parse(1000).len(), 1000);\n}\n"}
    for name, text in files.items():
        with open(os.path.join(cwd, name), "w", encoding="utf-8") as file:
            file.write(text)
    runner = "target.'cfg(all())'.runner = 'ptmem -q -o /dev/null --limit=peak@orders::parse<%s'"
    run(t, cwd, cargo, "test", "--offline", "-q", "--lib", "--config", runner % "200K")
    text = run(t, cwd, cargo, "test", "--offline", "-q", "--lib", "--config", runner % "100K", status=1)
    t.check("limit exceeded: peak@orders::parse<100K" in text and "lib.rs:2" in text, text)


TESTS = """
import pytest

def load(n):
    return [bytes(1000) for _ in range(n)]

@pytest.fixture
def big():
    return load(4000)

class TestLoad:
    @pytest.mark.memory("peak<2M", "allocations<5000")
    def test_small(self, big):
        assert len(load(1000)) == 1000

@pytest.mark.memory("peak<2M")
def test_large():
    assert len(load(5000)) == 5000

@pytest.mark.memory("peak<2M")
@pytest.mark.parametrize("n", [7])
def test_wrong(n):
    assert len(load(50)) == n

@pytest.mark.memory("rss<1T")
@pytest.mark.xfail
def test_expected():
    assert 0

def test_plain():
    pass
"""


@test("build-systems/pytest", limit=300)
def _(t):
    """Tests with limits are run under ptmem; fixtures do not count; without ptmem they are normal tests."""
    python = next((p for p in ("/usr/bin/python3", shutil.which("python3")) if p and os.path.exists(p)
                   and t.run([p, "-c", "import pytest"]).status == 0), None)
    if not python:
        raise Skip("pytest is not installed")
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "test_app.py"), "w", encoding="utf-8") as file:
        file.write(TESTS)
    command = [python, "-m", "pytest", "-p", "pytest_ptmem", "-p", "no:cacheprovider", "-v"]
    # Plugins that happen to be installed are not loaded: each test would be profiled with all of their imports.
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "contrib"), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    text = t.run([*command, "--ptmem=" + PTMEM], cwd=cwd, env=env).out.decode()
    found = dict(re.findall(r"^test_app.py::(\S+) (\w+)", text, re.M))
    t.equal("outcomes", found, {"TestLoad::test_small": "PASSED", "test_large": "FAILED", "test_wrong[7]": "FAILED",
                                "test_expected": "XFAIL", "test_plain": "PASSED"})
    t.check(re.search(r"limit exceeded: peak@test_large<2M.*\n.*\(test_app.py:5\)", text), text)
    t.check("assert 50 == 7" in text, "the assertion is shown: " + text)
    text = t.run([*command, "--ptmem=not-there"], cwd=cwd, env=env).out.decode()
    t.check("1 failed, 3 passed, 1 xfailed" in text and "4 tests ran without their limits of memory" in text, text)
