# SPDX-License-Identifier: BSD-3-Clause
"""Run a page in headless Chromium, with a script of the test around it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
FRAME = """<!DOCTYPE html><title>test</title><pre id="result"></pre>
<iframe id="page" width="%(width)d" height="900" src="%(address)s"></iframe>
<script>
document.getElementById("page").addEventListener("load", () => {
  const frame = document.getElementById("page");
  const [page, root] = [frame.contentWindow, frame.contentDocument];
  const key = (name, target = root.body) => target.dispatchEvent(
    new page.KeyboardEvent("keydown", { key: name, bubbles: true }));
  const found = (() => { %(script)s })();
  document.getElementById("result").textContent = JSON.stringify(found);
});
</script>"""


def in_browser(path, script, *, width=1280, place="", real_time=False):
    """Return what `script` returns of the page (`page`, `root`, `key`), and what it logged.

    With `real_time` clocks are those of the machine, else time passes while nothing happens.
    """
    address = path.as_uri() + place
    outer = path.with_name(f"outer{width}.html")
    outer.write_text(FRAME % {"width": width, "address": address, "script": script})
    profile = path.with_name("profile")
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}"]
    command += [] if real_time else ["--virtual-time-budget=5000"]
    command += ["--enable-logging=stderr", "--window-size=1400,1000", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(result[1])), logged
