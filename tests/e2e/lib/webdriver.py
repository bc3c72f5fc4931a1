"""A real Chromium, driven by the WebDriver protocol through chromedriver: for the tests of pages and pictures."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1300,500"]


def require():
    """Ends the test if there is no browser: skipped (77), on a build machine (CI is set) failed."""
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: chromium or chromedriver is not installed (scripts/install-deps test)")
        sys.exit(1 if os.environ.get("CI") else 77)


class Browser:
    def __init__(self, directory, is_scripted):
        port_file = os.path.join(directory, "driver.log")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=open(port_file, "w"), stderr=subprocess.STDOUT)
        self.base, self.session = f"http://127.0.0.1:{self.port(port_file)}", None
        options = {"args": FLAGS + [f"--user-data-dir={directory}/data{is_scripted}"]}
        if not is_scripted:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.session = answer["sessionId"]

    def port(self, path):
        for _ in range(1000):
            with open(path, encoding="utf-8") as file:
                found = re.search(r"was started successfully on port (\d+)\.?\n", file.read())
            if found:
                return int(found[1])
            time.sleep(0.1)
        sys.exit("chromedriver does not start: " + open(path).read())

    def call(self, method, path, body=None):
        path = path if self.session is None else f"/session/{self.session}{path}"
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=200) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise RuntimeError(f"{method} {path}: {said['error']}: {said['message']}") from None

    def close(self):
        self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def js(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def find(self, xpath):
        return self.call("POST", "/element", {"using": "xpath", "value": xpath})

    def click(self, element):
        self.call("POST", f"/element/{element[ELEMENT]}/click")

    def hover(self, element):
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element}]}]})

    def keys(self, *keys):
        down = [{"type": "keyDown", "value": k} for k in keys]
        up = [{"type": "keyUp", "value": k} for k in reversed(keys)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": down + up}]})

    def pointer(self, *steps, origin="viewport"):
        """steps: ("move", x, y), "down" or "up"."""
        actions = []
        for step in steps:
            if step in ("down", "up"):
                actions.append({"type": f"pointer{step.capitalize()}", "button": 0})
            else:
                actions.append({"type": "pointerMove", "duration": 0, "x": round(step[1]), "y": round(step[2]),
                                "origin": origin})
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def screenshot(self, path):
        open(path, "wb").write(base64.b64decode(self.call("GET", "/screenshot")))

    def has_alert(self):
        try:
            self.call("GET", "/alert/text")
        except RuntimeError as error:
            if "no such alert" in str(error):
                return False
            raise
        return True

    def answer(self, text):
        """To a question of the page, which may come a moment after what makes it ask."""
        for _ in range(2000):
            if self.has_alert():
                break
            time.sleep(0.05)
        self.call("POST", "/alert/text", {"text": text})
        self.call("POST", "/alert/accept")

    def wait(self, condition):
        """Waits until @condition, a JavaScript expression, is true."""
        for _ in range(2000):
            if self.js(f"return Boolean({condition})"):
                return
            time.sleep(0.05)
        sys.exit(f"does not become true: {condition}; the page says: " + self.js("return document.body.textContent")[:500])

    def text(self, name):
        return self.js("return document.getElementById(arguments[0]).textContent", name)
