// SPDX-License-Identifier: BSD-3-Clause
const state = {
  method: data.methods[0],
  selected: null,
  matches: null,
  colour: "result",
  weight(index) {
    const row = state.method.rows[index];
    if (state.colour === "time") return state.method.times ? state.method.times[index] : 0;
    if (state.colour === "error") return state.made.get(index) || 0;
    return state.colour === "weights" ? row[6] : row[7];
  },
  shown(value) {
    if (state.colour === "error") return value >= 1e300 ? "not finite" : value.toPrecision(3);
    return state.colour === "time" ? milliseconds(value) : bytes(value);
  },
  made: new Map(),
  title: () => ({ time: "Time", error: "Error", weights: "Weights", result: "Results" })[state.colour],
  select(index) {
    state.selected = index;
    const place = index === null ? "" : `#${encodeURIComponent(state.method.name)}/${index}`;
    if (place && window.location.hash !== place) history.replaceState(null, "", place);
    showDetail(state);
    for (const panel of panels) panel.select();
  },
};

const panels = [new Graph(state), new Instructions(state), new Timeline(state), new Memory(state)];

function load() {
  const colours = ["result", "weights"];
  if (state.method.errors) colours.unshift("error");
  if (state.method.times) colours.unshift("time");
  state.made = new Map((state.method.errors || []).map(([index, made]) => [index, made]));
  if (!colours.includes(state.colour)) [state.colour] = colours;
  const names = { time: "time", error: "error made here", result: "bytes of results", weights: "bytes of weights" };
  byId("colour").replaceChildren(...colours.map((key) =>
    element("option", key === state.colour ? { value: key, selected: "" } : { value: key },
      names[key])));
  showSummary(state);
  showSource(state);
  showDelegation(state);
  showErrors(state);
  showDetail(state);
  for (const panel of panels) panel.load();
}

function search() {
  const words = byId("search").value.toLowerCase();
  state.matches = null;
  if (words) {
    const hits = data.texts.map((item) => item.toLowerCase().includes(words));
    state.matches = new Set(state.method.rows.flatMap((row, index) =>
      ([row[0], row[1], row[2], row[3]].some((number) => hits[number]) ? [index] : [])));
  }
  byId("found").textContent = state.matches ? `${state.matches.size} found` : "";
  panels[1].draw();
}

function next() {
  const found = state.matches ? [...state.matches] : [];
  if (!found.length) return;
  const after = found.find((index) => state.selected === null || index > state.selected);
  state.select(after === undefined ? found[0] : after);
}

function follow() {
  const match = /^#(.*)\/(\d+)$/.exec(window.location.hash);
  if (!match) return;
  let name = match[1];
  try { name = decodeURIComponent(name); } catch { return; }
  const method = data.methods.find((each) => each.name === name);
  if (!method || Number(match[2]) >= method.rows.length) return;
  if (method !== state.method) {
    state.method = method;
    byId("method").value = String(data.methods.indexOf(method));
    load();
  }
  state.select(Number(match[2]));
}

byId("title").textContent = data.file;
byId("method").append(...data.methods.map((method, index) =>
  element("option", { value: String(index) }, method.name)));
byId("method").addEventListener("change", (event) => {
  state.method = data.methods[Number(event.target.value)];
  state.selected = null;
  search();
  load();
});
byId("colour").addEventListener("change", (event) => { state.colour = event.target.value; load(); });
byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") next(); });
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : window.matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  for (const panel of panels) panel.draw();
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = state.method.rows.length - 1;
  if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
  if (event.key === "j" && last >= 0) {
    state.select(Math.min(last, state.selected === null ? 0 : state.selected + 1));
  }
  if (event.key === "k" && last >= 0) state.select(Math.max(0, (state.selected || 0) - 1));
  if (event.key === "Escape") state.select(null);
});
window.addEventListener("hashchange", follow);
window.addEventListener("resize", () => { for (const panel of panels) panel.draw(); });
window.addEventListener("beforeprint", () => { if (state.method.rows.length <= 3000) panels[1].draw(true); });
window.addEventListener("afterprint", () => panels[1].draw());

if (state.method) {
  showSize();
  if (state.method.errors) state.colour = "error";
  if (state.method.times) state.colour = "time";
  load();
  follow();
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
