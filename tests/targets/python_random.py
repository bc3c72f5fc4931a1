"""Makes a Python program at random: functions, generators, coroutines, methods, closures, callbacks from C, exceptions, code that
lives shortly, greenlets and threads call each other, and allocate on the way by allocate(size), which knows the chain."""
import random
import re

# @: a call of another function, or of itself; DEPTH: what is left of it; NAME: a new name
STATEMENTS = {
    "call": "@",
    "loop": "for NAME in range(2):\n    @",
    "lambda": "(lambda d: @)(DEPTH)",
    "key": "sorted([2, 1, 3], key=lambda d: (@, d)[1])",
    "map": "list(map(lambda d: @, [DEPTH, DEPTH - 1]))",
    "reduce": "functools.reduce(lambda a, d: @, [1, DEPTH, DEPTH])",
    "list": "[(@) for d in (DEPTH, DEPTH - 1)]",
    "dict": "{d: @ for d in (DEPTH,)}",
    "nested": "[[@ for d in (DEPTH,)] for NAME in range(2)]",
    "sub": "re.sub('a', lambda m: str(@), 'aba')",
    "qsort": "qsort(lambda a, b, d=DEPTH: (@, 1)[1])",
    "raise": "try:\n    @\n    raise KeyError\nexcept KeyError as e:\n    @\nfinally:\n    @",
    "again": "try:\n    try:\n        @\n        raise ValueError\n    finally:\n        @\nexcept ValueError:\n    @",
    "deep raise": "try:\n    thrower(DEPTH, lambda d: @)\nexcept LookupError:\n    @",
    "exec": "exec(compile('def NAME(d):\\n    @\\n\\nNAME(d)', 'short', 'exec'), dict(globals(), d=DEPTH))",
    "eval": "eval('@', dict(globals(), d=DEPTH))",
    "closure": "def NAME(d):\n    return lambda: @\nNAME(DEPTH)()",
    "decorated": "@decorate\ndef NAME(d, *, k=1):\n    @\n    return d + k\nNAME(DEPTH)",
    "partial": "functools.partial(lambda a, d: @, 1)(DEPTH)",
    "with": "with Manager(lambda d: @, DEPTH) as NAME:\n    @",
    "cached": "functools.lru_cache(None)(lambda d: @)(DEPTH)",
    "class": "class NAME:\n    def __init__(self, d):\n        @\n    def __del__(self, d=DEPTH):\n        @\nNAME(DEPTH)",
    "operator": "Thing(lambda d: @, DEPTH) + 1",
    "item": "Thing(lambda d: @, DEPTH)[2]",
    "missing": "Thing(lambda d: @, DEPTH).unknown",
    "compare": "Thing(lambda d: @, DEPTH) == 1",
    "property": "Thing(lambda d: @, DEPTH).value",
    "weak": "NAME = Thing(None, DEPTH)\nweakref.finalize(NAME, lambda d: @, DEPTH)\ndel NAME",
    "generator": "for NAME in (@ for d in (DEPTH, DEPTH - 1)):\n    pass",
    "yields": "for NAME in each(lambda d: @, DEPTH):\n    @",
    "closed": "NAME = each(lambda d: @, DEPTH)\nnext(NAME)\nNAME.close()",
    "thrown": "NAME = each(lambda d: @, DEPTH)\nnext(NAME)\ntry:\n    NAME.throw(KeyError)\nexcept KeyError:\n    @",
    "sent": "NAME = each(lambda d: @, DEPTH)\nNAME.send(None)\nNAME.send(1)\ndel NAME",
    "zipped": "list(zip(each(lambda d: @, DEPTH), each(lambda d: @, DEPTH)))",
    "unpacked": "print(*each(lambda d: @, DEPTH), file=NOWHERE)",
    "driven": "drive(waits(lambda d: @, DEPTH))",
    "gathered": "drive(gathers(lambda d: @, DEPTH))",
    "format": "'%s' % Thing(lambda d: @, DEPTH)",
    "hash": "{Thing(lambda d: @, DEPTH): 1}",
}
# of the process or of its main thread, which another one must not run
MAIN_ONLY = {
    "import": "importer(lambda d: @, DEPTH)",
    "signal": "handler[0] = lambda d: @\nsignal.raise_signal(signal.SIGUSR2)",
    "spawn": "spawn(lambda d: @, DEPTH)",
    "pause": "pause(DEPTH)",
    "resume": "resume(DEPTH)\n@",
}

HEAD = '''
import functools, os, re, signal, sys, types, weakref

NOWHERE = open(os.devnull, "w")
handler = [None]

def decorate(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner

def thrower(d, f):
    if d > 0:
        return thrower(d - 2, f)
    f(d)
    raise LookupError

class Manager:
    def __init__(self, f, d):
        self.f, self.d = f, d
    def __enter__(self):
        return self.f(self.d)
    def __exit__(self, *error):
        self.f(self.d)

class Thing:
    def __init__(self, f, d):
        self.f, self.d = f, d
    def run(self):
        return self.f and self.f(self.d)
    def __add__(self, other):
        return self.run()
    def __getitem__(self, i):
        return self.run()
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.run()
    def __eq__(self, other):
        self.run()
        return True
    def __hash__(self):
        self.run()
        return 1
    def __str__(self):
        self.run()
        return "thing"
    @property
    def value(self):
        return self.run()

def each(f, d):
    try:
        got = yield f(d)
        if got:
            f(d - 1)
        yield from inner_each(f, d - 1)
    finally:
        f(d - 1)

def inner_each(f, d):
    yield f(d)
    yield d

class Turn:
    def __await__(self):
        yield 1
        return 2

async def waits(f, d):
    f(d)
    await Turn()
    async with Guard(f, d - 1):
        async for x in streams(f, d - 1):
            f(x)

class Guard:
    def __init__(self, f, d):
        self.f, self.d = f, d
    async def __aenter__(self):
        await Turn()
        return self.f(self.d)
    async def __aexit__(self, *error):
        self.f(self.d)

async def streams(f, d):
    f(d)
    yield d - 1
    await Turn()
    yield d - 2

async def gathers(f, d):
    return [await waits(f, d - 1), [x async for x in streams(f, d - 1)]]

@types.coroutine
def old_style(c):
    return (yield from c)

def drive(c):
    c = old_style(c)
    try:
        while True:
            c.send(None)
    except StopIteration as e:
        return e.value

class Finder:
    f = d = None
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "no_such_module":
            cls.f(cls.d)

def importer(f, d):
    Finder.f, Finder.d = f, d
    try:
        import no_such_module
    except ImportError:
        pass

def on_signal(number, frame):
    f, handler[0] = handler[0], None
    if f:
        f(2)

pool = []
try:
    import greenlet
except ImportError:
    greenlet = None

def spawn(f, d):
    if greenlet and len(pool) < 20:
        child = greenlet.greenlet(lambda: (f(d), pause(d), f(d - 1)))
        child.switch()
        if not child.dead:
            pool.append(child)

def pause(d):
    if greenlet and greenlet.getcurrent().parent:
        greenlet.getcurrent().parent.switch()

def resume(d):
    if pool and not greenlet.getcurrent().parent:
        child = pool.pop(len(pool) // 2)
        child.switch()
        if not child.dead:
            pool.append(child)

'''


def statement(state, names, kinds):
    """Lines, without indentation."""
    text = STATEMENTS.get(state.choice(kinds)) or MAIN_ONLY[state.choice(list(MAIN_ONLY))]
    text = text.replace("NAME", "n%d" % state.randrange(1000)).replace("DEPTH", "d - %d" % state.randrange(1, 3))
    return re.sub("@(?!decorate)", lambda at: call(state, names), text).split("\n")


def call(state, names):
    return state.choice(["allocate(%d)" % state.randrange(8, 5000), "%s(d - 1)" % state.choice(names),
                         "%s(d - 2)" % state.choice(names)])


def generate(seed, is_main):
    state = random.Random(seed)
    kinds = state.sample(list(STATEMENTS), 16) + ["call"] * 3 + ["main only"] * (3 if is_main else 0)
    names = ["f%d" % i for i in range(14)]
    lines = HEAD.split("\n")
    for name in names:
        lines += [""] * state.randrange(3) + ["def %s(d):" % name, "    if d <= 0 or spent():", "        return allocate(50) if d == 0 else d"]
        for _ in range(state.randrange(1, 5)):
            lines += ["    " + line for line in statement(state, names, kinds)]
        lines += ["    return allocate(%d)" % state.randrange(8, 5000)]
    return "\n".join(lines) + "\n"


def run(seed, most, allocate, qsort, is_main):
    """Makes and runs a program that allocates about @most times."""
    counts = [0]

    def spent():
        counts[0] += 1
        return counts[0] > most

    scope = {"allocate": allocate, "qsort": qsort, "spent": spent, "__name__": "random%d" % seed}
    text = generate(seed, is_main)
    exec(compile(text, "random%d.py" % seed, "exec"), scope)
    if is_main:
        import signal
        import sys
        signal.signal(signal.SIGUSR2, scope["on_signal"])
        sys.meta_path.insert(0, scope["Finder"])
    for i in range(40):
        if counts[0] <= most:
            scope["f%d" % (i % 14)](6 + i % 3)
    if is_main:
        sys.meta_path.remove(scope["Finder"])
        for _ in range(200):
            scope["resume"](1)
