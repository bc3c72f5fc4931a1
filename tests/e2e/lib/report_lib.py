"""Pages and pictures that tests look into."""

import base64
import gzip
import json
import os
import re
import xml.etree.ElementTree

import webdriver

LIBRARY = """
#include <stdlib.h>
%(filler)s
static __attribute__((noinline)) void part(size_t size)
{
	static char *last;
	last = malloc(size);
	__asm__ volatile("" : : "r"(last) : "memory");
}
__attribute__((visibility("default"))) void library_make(size_t size, int n)
{
	for (int i = 0; i < n; i++)
		part(size);
	__asm__ volatile("");
}
"""
# Each hold() is told to truth(): the names of the functions on its path, and the sum.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void library_make(size_t size, int n);
static void truth(const char *path, size_t size, int n)
{
	char line[200];
	int length = snprintf(line, sizeof(line), "%%s %%zu %%d\\n", path, size * n, n);
	if (write(1, line, length) != length)
		_exit(9);
}
%(top)s
static char *keep[1000];
static int kept;
static void crate(size_t size, int n)
{
	for (int i = 0; i < n; i++)
		keep[kept++] = malloc(size); /* line of crate */
}
static void shelf(size_t size, int n)
{
	%(shelf)s
	crate(size, n);
	for (int i = 0; i < n; i++)
		keep[kept++] = calloc(1, size);
	for (int i = 0; i < n; i++)
		keep[kept++] = realloc(NULL, 2 * size);
}
static void orders(int n)
{
	%(orders)s
	crate(333, n);
	truth("main;orders;crate", 333, n);
}
static void stock(void)
{
	shelf(100, 7);
	truth("main;stock;shelf;crate", 100, 7);
	truth("main;stock;shelf", 100, 7);
	truth("main;stock;shelf", 200, 7);
}
static void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		crate(50, 3);
}
%(new_function)s
int main(void)
{
	%(main)s
	stock();
	orders(%(orders_n)d);
	shelf(64, 4);
	truth("main;shelf;crate", 64, 4);
	truth("main;shelf", 64, 4);
	truth("main;shelf", 128, 4);
	deep(2);
	truth("main;deep;deep;deep;crate", 50, 3);
	library_make(%(part)d, 5);
	truth("main;library_make;[libpart.so]", %(part)d, 5);
	%(call)s
	_exit(0);
}
"""
OLD = {"filler": "", "top": "", "shelf": "", "orders": "", "new_function": "", "main": "", "call": "", "orders_n": 10,
       "part": 70}
NEW = {"filler": "int library_filler(int x)\n{\n\treturn x * 3 + 1;\n}\n", "top": "/* four\nmore\nlines\n*/",
       "shelf": "/* one */\n\n", "orders": "\n\n", "main": "\n", "orders_n": 14, "part": 70,
       "new_function": "static void audit(void)\n{\n\tcrate(1000, 2);\n\ttruth(\"main;audit;crate\", 1000, 2);\n}\n",
       "call": "audit();"}
PROFILE = re.compile(r'<script type="text/plain" id="profile">(.*?)</script>', re.S)


def embedded(path):
    with open(path) as file:
        page = file.read()
    return json.loads(gzip.decompress(base64.b64decode(PROFILE.search(page)[1])))


SVG = "{http://www.w3.org/2000/svg}"


def legend(path):
    """Labels of the call sites that a picture has areas of."""
    labels = []
    for group in xml.etree.ElementTree.parse(path).iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is not None and group.find(SVG + "text") is not None and group.find(SVG + "path") is not None:
            labels.append(re.sub(r": (most )?[0-9.]+ [KMG]?i?B.*", "", title.text))
    return labels


def largest(err):
    """Labels of the summary's largest call sites."""
    return re.findall(r"^ptmem: +(?:largest +)?[0-9.]+ (?:[KMGT]i)?B +[0-9.]+ %  (.*)$", err, re.M)


class Page(webdriver.Browser):
    def __init__(self, t, url):
        for name in ("chromium", "chromedriver"):
            t.program(name)
        self.t = t
        super().__init__(t.subdirectory(), True)
        try:
            self.call("POST", "/window/rect", {"width": 1300, "height": 900})
            self.call("POST", "/url", {"url": url})
            self.until("the report", "document.querySelector('#panel tr')")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def until(self, what, condition):
        self.t.wait_until(what, lambda: self.js("return Boolean(%s)" % condition))

    def blocks(self):
        """Of 1,000 bytes, that the profile has in all."""
        return self.js("return ptmem.profile.leaves.bytes.reduce((a, b) => a + b, 0)") // 1000

    def has_blocks(self, n):
        self.t.wait_until("%d blocks in the page" % n, lambda: self.blocks() == n)

    def renewed(self, times=2):
        """Updates have come since."""
        for _ in range(times):
            self.js("window.seen = ptmem.profile")
            self.until("an update", "ptmem.profile !== window.seen")

    def sum(self):
        return self.js("return document.getElementById('sum').title")

    def press(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def state(self):
        return self.js("return [document.getElementById('live').dataset.state, document.getElementById('live').textContent]")

    def view(self):
        """What the user has chosen, and what must not move."""
        return self.js("""const s = ptmem.state, q = (x) => [...document.querySelectorAll(x)].map(e => e.textContent);
            return [s.mode, s.unit, s.dir, s.find, s.tab, s.sort, s.stack, s.theme, s.zoom, q('#crumbs button'),
                q('#tabs [aria-selected=true]'), q('th[aria-sort] button'), q('tr.open .function'), q('tr.details h3').length,
                document.activeElement.dataset.sort || null, document.getElementById('find').value, scrollY]""")

    def address(self):
        return self.js("return location.hash")

    def hide(self):
        """As if nobody saw the page, until nothing is asked for any more."""
        self.js("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true}); "
                "document.dispatchEvent(new Event('visibilitychange'))")
        self.until("no request is under way", "!ptmem.live.isAsking")

    def show(self):
        self.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")

    def click_at(self, live, to=None):
        """Selects a moment with @live bytes, or drags from there to one with @to. An update would move them."""
        self.hide()
        x, y = self.place(self.middle(live))
        steps = [("move", x, y), "down"]
        if to is not None:
            steps += [("move", x + 9, y), ("move", *self.place(self.middle(to)))]
        self.pointer(*steps, "up")
        self.show()

    def place(self, i):
        return self.js("""const t = ptmem.timeline, c = t.canvas; c.scrollIntoView({block: 'center'});
            const r = c.getBoundingClientRect(); return [r.left + t.x(ptmem.profile.time[arguments[0]]), r.top + 80]""", i)

    def middle(self, live):
        """The middle one of the intervals with @live bytes; it lasts, so that longer intervals do not matter."""
        return self.js("""const l = ptmem.profile.timeline.live_bytes, at = l.flatMap((v, i) => v === arguments[0] ? [i] : []);
            return at[at.length >> 1]""", live)


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
PAGE = os.path.join(ROOT, "src/output/html")
# What the page computes, by its own script: prints the call site of each leaf.
SCRIPT = """
const fs = require("fs"), vm = require("vm");
const [page, file, mine, other] = process.argv.slice(2);
const code = ["profile.js", "my_code.js"].map((name) => fs.readFileSync(page + "/" + name, "utf8")).join("\\n");
const data = JSON.parse(fs.readFileSync(file, "utf8"));
vm.runInThisContext(code + `
this.sites = (data, mine, other) => {
	const names = new Names(), p = new Profile(data, names);

	p.findSites(mine, other);
	const given = Array.from(p.leafSite);
	/* without what C has found */
	p.givenSite = null;
	p.findSites(mine || " ", other);
	return [given, Array.from(p.leafSite)];
};`);
console.log(JSON.stringify(sites(data, mine, other)));
"""
