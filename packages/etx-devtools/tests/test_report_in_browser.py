# SPDX-License-Identifier: BSD-3-Clause
"""The page in headless Chromium: selection, search, keys, layout, hostile names, no message."""

from __future__ import annotations

import pytest
from browser import in_browser
from etx_devtools.report import document, page
from report_programs import chain_of, hostile

LAYOUT = """
  const box = root.documentElement;
  return { wide: box.scrollWidth, view: box.clientWidth, ready: box.dataset.ready };
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "page.html"
    path.write_text(page(document(chain_of(2000, delegated=True), {"forward": [0.5] * 2001})))
    return path


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    path = tmp_path_factory.mktemp("attacked") / "page.html"
    path.write_text(page(document(hostile())))
    return path


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["plain", "attacked"])
def test_fits_and_says_nothing(name, width, request):
    found, logged = in_browser(request.getfixturevalue(name), LAYOUT, width=width)
    assert found["wide"] <= found["view"]
    assert int(found["ready"]) >= 0
    assert logged == []


def test_hostile_names_are_text(attacked):
    script = """return { images: root.querySelectorAll("img, iframe, object").length,
      title: root.title, shown: root.body.innerText.includes("<img src=x onerror=") };"""
    found, logged = in_browser(attacked, script)
    assert found == {"images": 0, "title": "program", "shown": True}
    assert logged == []


def test_a_link_selects_and_keys_move(plain):
    script = """
      const at = () => [page.location.hash, root.querySelector(".row.selected span").textContent,
        root.querySelector("#detail td").textContent];
      const found = [at()];
      key("j"); found.push(at());
      key("k"); key("k"); found.push(at());
      return found;
    """
    found, _ = in_browser(plain, script, place="#forward/1200")
    assert found == [[f"#forward/{n}", str(n), str(n)] for n in (1200, 1201, 1199)]


def test_search_finds_and_enter_goes_there(plain):
    script = """
      const box = root.getElementById("search");
      box.value = "layers.77.";
      box.dispatchEvent(new page.Event("input"));
      key("Enter", box);
      return [root.getElementById("found").textContent, page.location.hash];
    """
    assert in_browser(plain, script)[0] == ["10 found", "#forward/770"]


def test_modules_open(plain):
    script = """
      const note = () => root.querySelector("#graph .content .note").textContent;
      const found = [note().split(" ")[0]];
      key("j");
      for (let i = 0; i < 3; i += 1) {
        key("Enter", root.querySelector("#graph .scroll"));
        found.push(note().split(" ")[0]);
      }
      return found;
    """
    assert in_browser(plain, script)[0] == ["2", "201", "201", "210"]


def test_errors_colour_and_name_the_first_wrong_one(tmp_path):
    path = tmp_path / "page.html"
    rows = [[0, 0.0, 0.0, 1e-6], [1, 0.5, 0.0, 1e-6], [2, float("inf"), 0.5, 1e-6]]
    path.write_text(page(document(chain_of(3), None, {"forward": rows})))
    script = """
      const cells = [...root.querySelectorAll(".row .narrow:last-child")];
      return [root.querySelector("#error p").textContent, root.getElementById("colour").value,
        cells.map((cell) => cell.textContent)];
    """
    (sentence, colour, shown), logged = in_browser(path, script)
    assert sentence.startswith("2 of 3 instructions make more error")
    assert sentence.endswith("the first is 1.")
    assert colour == "error"
    assert shown == ["0.00", "0.500", "not finite"]
    assert logged == []


def test_what_was_not_measured_names_its_command(attacked):
    script = "return root.querySelector('#timeline code').textContent;"
    assert in_browser(attacked, script)[0].startswith("etx report")
