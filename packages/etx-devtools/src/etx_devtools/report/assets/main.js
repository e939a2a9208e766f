// SPDX-License-Identifier: BSD-3-Clause
const METRICS = {
  time: { name: "time", title: "Time", shown: milliseconds },
  error: { name: "error made here", title: "Error", shown: plainNumber },
  result: { name: "bytes of results", title: "Results", shown: bytes },
  weights: { name: "bytes of weights", title: "Weights", shown: bytes },
};

const state = {
  method: data.methods[0],
  old: null,
  selected: null,
  matches: null,
  colour: "result",
  made: new Map(),
  marks: new Map(),
  touched: new Map(),
  partner: new Map(),
  pairs: null,
  command: `etx report ${data.before ? `${data.before.file} ` : ""}${data.file}`,
  metric: () => METRICS[state.colour.split(":")[0]],
  changes: () => state.colour.endsWith(":change"),
  name: () => state.metric().title,
  title: () => (state.changes() ? `${state.metric().title}, change` : state.metric().title),
  plain: (value) => state.metric().shown(value),
  shown(value) {
    if (!state.changes() || value <= 0) return state.plain(value).replace("-", "−");
    return `+${state.plain(value)}`;
  },
  shade: (share) => (state.changes() ? shadeOfChange(share) : shade(share)),
  value(method, index) {
    const key = state.colour.split(":")[0];
    if (key === "time") return method.times ? method.times[index] : 0;
    if (key === "error") return (method === state.method ? state.made : state.madeBefore).get(index) || 0;
    return method.rows[index][key === "weights" ? 6 : 7];
  },
  weight(index) {
    const now = state.value(state.method, index);
    if (!state.changes()) return now;
    const was = state.oldIndex(index);
    return now - (was >= 0 ? state.value(state.old, was) : 0);
  },
  oldIndex: (index) => (state.pairs && index !== null ? state.pairs[index] ?? -1 : -1),
  oldShown(index) {
    const was = state.oldIndex(index);
    return was >= 0 ? state.plain(state.value(state.old, was)) : "";
  },
  select(index) {
    state.selected = index;
    const place = index === null ? window.location.href.split("#")[0]
      : `#${encodeURIComponent(state.method.name)}/${index}`;
    if (window.location.hash !== place) {
      try { history.replaceState(null, "", place); } catch { /* a page without an address */ }
    }
    showDetail(state);
    for (const panel of panels) panel.select();
  },
};

const panels = [new Graph(state), new Instructions(state), new Timeline(state), new Memory(state)];

function colours() {
  const found = ["result", "weights"];
  if (state.method.errors) found.unshift("error");
  if (state.method.times) found.unshift("time");
  const both = (key) => state.old && (key !== "time" || state.old.times)
    && (key !== "error" || state.old.errors);
  return found.flatMap((key) => (both(key) ? [key, `${key}:change`] : [key]));
}

// What is known of the method in both files, and which passes made which instruction.
function relate() {
  const { method } = state;
  state.old = data.before
    ? data.before.methods.find((each) => each.name === method.name) || null : null;
  const changes = data.before ? data.changes.methods[method.name] : null;
  state.pairs = changes ? changes.pairs : null;
  state.partner = new Map((state.pairs || []).flatMap((was, i) => (was >= 0 ? [[was, i]] : [])));
  const made = (each) => new Map(((each && each.errors) || []).map(([index, error]) => [index, error]));
  state.made = made(method);
  state.madeBefore = made(state.old);
  state.marks = new Map((changes ? changes.changes : []).flatMap(([kind, , , after]) =>
    after.map((index) => [index, kind])));
  state.touched = new Map();
  for (const [name, , , , , removed, added] of (method.stages || []).slice(1)) {
    const found = new Set([...removed, ...added].flatMap((row) => row[4]));
    for (const index of found) {
      state.touched.set(index, [...(state.touched.get(index) || []), text(name)]);
    }
  }
}

function load() {
  relate();
  const keys = colours();
  if (!keys.includes(state.colour)) [state.colour] = keys;
  const name = (key) => METRICS[key.split(":")[0]].name + (key.endsWith(":change") ? ", change" : "");
  byId("colour").replaceChildren(...keys.map((key) =>
    element("option", key === state.colour ? { value: key, selected: "" } : { value: key }, name(key))));
  showSummary(state);
  showChanges(state);
  showSource(state);
  showDelegation(state);
  showErrors(state);
  showStages(state);
  showDetail(state);
  for (const panel of panels) panel.load();
}

let lowered = null;
function search() {
  const words = byId("search").value.toLowerCase();
  state.matches = null;
  if (words) {
    lowered = lowered || data.texts.map((item) => item.toLowerCase());
    const hits = lowered.map((item) => item.includes(words));
    state.matches = new Set(state.method.rows.flatMap((row, index) =>
      ([row[0], row[1], row[2], row[3]].some((number) => hits[number]) ? [index] : [])));
  }
  byId("found").textContent = state.matches ? `${state.matches.size} found` : "";
  panels[1].redraw();
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

byId("title").textContent = data.before ? `${data.before.file} → ${data.file}` : data.file;
byId("method").append(...data.methods.map((method, index) =>
  element("option", { value: String(index) }, method.name)));
byId("method").parentElement.hidden = data.methods.length < 2;
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
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  for (const panel of panels) panel.load();
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = state.method ? state.method.rows.length - 1 : -1;
  if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
  if (event.key === "j" && last >= 0) {
    state.select(Math.min(last, state.selected === null ? 0 : state.selected + 1));
  }
  if (event.key === "k" && last >= 0) state.select(Math.max(0, (state.selected || 0) - 1));
  if (event.key === "+" || event.key === "=") panels[2].widen(2);
  if (event.key === "-") panels[2].widen(0.5);
  if (event.key === "Escape") state.select(null);
});
window.addEventListener("hashchange", follow);
window.addEventListener("resize", () => { for (const panel of panels) panel.draw(); });
window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  if (state.method && state.method.rows.length <= 3000) panels[1].redraw(true);
});
window.addEventListener("afterprint", () => panels[1].redraw());

if (state.method) {
  if (state.method.errors) state.colour = "error";
  if (state.method.times) state.colour = "time";
  relate();
  if (state.old && colours().includes(`${state.colour}:change`)) state.colour += ":change";
  load();
  showSize(state);
  follow();
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
