"""A pytest plugin: limits of memory for single tests, of Python code and of extensions in C, C++ or Rust.

    @pytest.mark.memory("peak<10M", "allocations<=2000")
    def test_load():
        ...

The limits are those of ptmem --limit. Those of call paths (peak, live-at-end, allocated, allocations) count what the
test function and all that it calls allocates, objects of Python included; what imports, fixtures and other tests need
does not count. rss, temporary and leaked are of the whole process.

A test with limits runs in an interpreter of its own, under ptmem. Without ptmem it runs as any other test, and the end of
the report says so. To use the plugin, put this file where Python finds it, and

    pytest -p pytest_ptmem          or, in conftest.py:  pytest_plugins = ["pytest_ptmem"]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from _pytest.runner import CallInfo

RESULT = "PTMEM_PYTEST_RESULT"  # in the environment of the inner run: a file for its outcome
OF_FUNCTIONS = ("peak", "live-at-end", "allocated", "allocations")


def pytest_addoption(parser):
    parser.addoption("--ptmem", metavar="PROGRAM", default="ptmem",
                     help="the ptmem that checks limits of memory; empty: do not check them")


def pytest_configure(config):
    config.addinivalue_line("markers", "memory(limit, ...): limits of memory as of ptmem --limit, such as 'peak<10M'")
    config.ptmem_unchecked = 0


def limits_of(item):
    """The limits of the markers, with the test's function where the metric can have one."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    name = getattr(code, "co_qualname", getattr(code, "co_name", ""))
    limits = []
    for marker in item.iter_markers("memory"):
        for limit in marker.args:
            metric = re.match(r"[a-z-]*", str(limit)).group()
            rest = str(limit)[len(metric):]
            has_function = rest[:1] == "@" or " within " in rest
            limits.append("%s@%s%s" % (metric, name, rest) if metric in OF_FUNCTIONS and not has_function else str(limit))
    return limits


def run_inner(item, program, limits):
    """Runs the test under ptmem: fails, or is skipped, as it is there."""
    with tempfile.TemporaryDirectory(prefix="ptmem-pytest.") as directory:
        result = os.path.join(directory, "result")
        command = [program, "-q", "-o", os.path.join(directory, "massif.out"), *["--limit=" + limit for limit in limits]]
        if any(limit.startswith("leaked") for limit in limits):
            command += ["--leak-check=yes", "--show-leak-kinds=definite"]
        command += ["--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_ptmem",
                    "--rootdir=" + str(item.config.rootpath), item.nodeid]
        path = os.pathsep.join(filter(None, [os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH")]))
        run = subprocess.run(command, cwd=str(item.config.rootpath), env={**os.environ, RESULT: result, "PYTHONPATH": path},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        outcome, text = "", ""
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                outcome, _, text = file.read().partition("\n")
    messages = run.stderr.decode(errors="replace")
    if outcome == "skipped":
        pytest.skip(text)
    if outcome == "xfailed":
        pytest.xfail(text)
    if outcome != "passed":
        pytest.fail(text or run.stdout.decode(errors="replace") + messages, pytrace=False)
    if run.returncode:
        pytest.fail(messages, pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    limits = limits_of(item)
    if not limits or RESULT in os.environ:
        return None
    program = shutil.which(item.config.getoption("ptmem")) if item.config.getoption("ptmem") else None
    if not program:
        item.config.ptmem_unchecked += 1
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when, work in (("setup", lambda: None), ("call", lambda: run_inner(item, program, limits)), ("teardown", lambda: None)):
        call = CallInfo.from_call(work, when=when)
        item.ihook.pytest_runtest_logreport(report=item.ihook.pytest_runtest_makereport(item=item, call=call))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_logreport(report):
    """In the inner run: the first phase that is skipped or failed decides."""
    path = os.environ.get(RESULT)
    if not path or (os.path.exists(path) and report.passed):
        return
    if report.passed and report.when != "call":
        return
    outcome = report.outcome
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else report.longreprtext
    if report.skipped and hasattr(report, "wasxfail"):
        outcome, reason = "xfailed", report.wasxfail
    with open(path, "w", encoding="utf-8") as file:
        file.write("%s\n%s" % (outcome, reason))


def pytest_terminal_summary(terminalreporter, config):
    if config.ptmem_unchecked:
        terminalreporter.write_line("%d tests ran without their limits of memory: no %s here" %
                                    (config.ptmem_unchecked, config.getoption("ptmem") or "--ptmem"))
