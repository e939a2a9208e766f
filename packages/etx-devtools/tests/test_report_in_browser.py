# SPDX-License-Identifier: BSD-3-Clause
"""The page in headless Chromium: selection, search, keys, layout, hostile names, no message."""

from __future__ import annotations

import pytest
from browser import in_browser
from etx_devtools.report import document, page
from etx_devtools.report.both import compared
from report_programs import chain_of, hostile, log_of

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
      const cells = [...root.querySelectorAll(".rows .narrow:last-child")];
      return [root.querySelector("#error p").textContent, root.getElementById("colour").value,
        cells.map((cell) => cell.textContent)];
    """
    (sentence, colour, shown), logged = in_browser(path, script)
    assert sentence.startswith("2 of 3 instructions make more error")
    assert sentence.endswith("the first is 1.")
    assert colour == "error"
    assert shown == ["0", "0.500", "not finite"]
    assert logged == []


def test_what_was_not_measured_names_its_command(attacked):
    script = "return root.querySelector('#timeline code').textContent;"
    assert in_browser(attacked, script)[0].startswith("etx report")


def logged_page(path, count=30):
    blob = chain_of(count, delegated=True)
    times = {"forward": [0.5] * (count + 1)}
    path.write_text(page(document(blob, times, None, log_of(blob)["methods"])))
    return path


def test_stages_open_and_lead_to_instructions(tmp_path):
    script = """
      const [first] = root.querySelectorAll("#stages details");
      first.querySelector("summary").click();
      first.querySelector("tbody tr:last-child button").click();
      const made = [...root.querySelectorAll("#detail tr")].map((row) => row.textContent);
      const reason = root.querySelector("#delegation tbody tr").textContent;
      const passes = made.filter((line) => line.startsWith("Made by"));
      return [first.open, page.location.hash, passes, reason];
    """
    found, logged = in_browser(logged_page(tmp_path / "page.html"), script)
    assert found == [True, "#forward/2", [], "aten.addit is an additionToy1"]
    assert logged == []


def test_two_files_are_compared_panel_by_panel(tmp_path):
    one, other = chain_of(30, delegated=True), chain_of(20, delegated=True)
    documents = [document(blob, {"forward": [ms] * 31}) for blob, ms in ((one, 0.5), (other, 0.25))]
    path = tmp_path / "page.html"
    path.write_text(page(compared((one, documents[0]), (other, documents[1]))))
    script = """
      const words = (selector) =>
        [...root.querySelectorAll(selector)].map((one) => one.textContent);
      const panels = [...root.querySelectorAll("section")];
      return { colour: root.getElementById("colour").value, row: words(".rows .row")[0],
        summary: words("#summary tbody tr")[1], changes: words("#changes td"),
        memory: words("#memory .note").map((note) => note.split(" ")[0]),
        size: words("#size thead th"), source: words("#source thead th"),
        hidden: panels.filter((panel) => panel.hidden).length,
        wide: root.documentElement.scrollWidth <= root.documentElement.clientWidth };
    """
    found, logged = in_browser(path, script)
    assert found["colour"] == "time:change"
    assert found["row"] == "0aten::add.outlayers.0.blocknet.py:0500 µs−250 µs"
    assert found["summary"] == "Instructions3121−32.3 %"
    assert found["changes"][0] == "removed"
    assert found["memory"][:2] == ["Before:", "Now:"]
    assert found["size"] == ["What", "Before", "Now", "Change"]
    assert found["source"] == ["Line", "Instructions", "Before", "Now"]
    assert (found["hidden"], found["wide"], logged) == (0, True, [])
    script = """
      return [...root.querySelectorAll("#changes .whole")].map((cell) => {
        const range = root.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
      });
    """
    assert set(in_browser(path, script, width=390)[0]) == {1}  # word for word in one line


NAMELESS = """
  const named = (one) => one.textContent.trim() || one.getAttribute("aria-label")
    || (one.labels && one.labels.length && one.labels[0].textContent.trim())
    || root.getElementById(one.getAttribute("aria-labelledby"))?.textContent;
  const asked = "button, input, select, canvas, section, summary, [tabindex], [role]";
  return { nameless: [...root.querySelectorAll(asked)].filter((one) => !named(one))
      .map((one) => one.outerHTML.slice(0, 80)),
    pictures: [...root.querySelectorAll("canvas")].every((one) => one.role === "img"),
    language: root.documentElement.lang, headings: root.querySelectorAll("h1, h2").length };
"""


def test_all_that_acts_has_an_accessible_name(tmp_path):
    found, _ = in_browser(logged_page(tmp_path / "page.html"), NAMELESS)
    assert found == {"nameless": [], "pictures": True, "language": "en", "headings": 13}


def test_both_themes_have_contrast(tmp_path):
    script = """
      const light = (words) => {
        const parts = words.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
          .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
      };
      const ratio = (one, paper) => {
        const [a, b] = [light(page.getComputedStyle(one).color), light(paper)].sort();
        return (b + 0.05) / (a + 0.05);
      };
      return ["light", "dark"].map((theme) => {
        root.documentElement.dataset.theme = theme;
        const paper = page.getComputedStyle(root.querySelector("section")).backgroundColor;
        return ["p", "h2", "button.link", ".note", "thead th", ".mark, td"].map((selector) =>
          ratio(root.querySelector(`section ${selector}`), paper));
      }).flat();
    """
    ratios, _ = in_browser(logged_page(tmp_path / "page.html"), script)
    assert min(ratios) >= 4.5


def test_print_shows_all(tmp_path):
    script = """
      page.dispatchEvent(new page.Event("beforeprint"));
      const shown = [root.querySelectorAll(".rows .row").length,
        [...root.querySelectorAll("details")].every((one) => one.open)];
      page.dispatchEvent(new page.Event("afterprint"));
      return [...shown, root.querySelectorAll(".rows .row").length < 200];
    """
    assert in_browser(logged_page(tmp_path / "page.html", 300), script)[0] == [301, True, True]


PANNING = """
  const middle = (times) => times.sort((a, b) => a - b)[times.length >> 1];
  const frames = (id) => {
    const scroll = root.querySelector(`#${id} .scroll`);
    const pen = root.querySelector(`#${id} canvas`)?.getContext("2d");
    return middle([...Array(30).keys()].map((i) => {
      const start = performance.now();
      if (id === "timeline") scroll.scrollLeft = 40 * i; else scroll.scrollTop = 200 * i;
      scroll.dispatchEvent(new page.Event("scroll"));
      pen?.getImageData(0, 0, 1, 1);
      return performance.now() - start;
    }));
  };
  key("j");
  for (let i = 0; i < 4; i += 1) key("Enter", root.querySelector("#graph .scroll"));
  for (let i = 0; i < 6; i += 1) key("+");
  const keys = middle([...Array(10).keys()].map(() => {
    const start = performance.now();
    key("j");
    return performance.now() - start;
  }));
  return { ready: Number(root.documentElement.dataset.ready), keys,
    panning: ["graph", "instructions", "timeline"].map(frames) };
"""


def test_20000_instructions_are_ready_and_move_in_time(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page(document(chain_of(20_000), {"forward": [0.5] * 20_000})))
    found, _ = in_browser(path, PANNING, real_time=True)
    print(found)
    assert found["ready"] <= 2000
    assert max(found["panning"]) <= 16
