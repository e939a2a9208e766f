// SPDX-License-Identifier: BSD-3-Clause
const ROW = 22;

// Only the rows in view are elements.
class Instructions {
  constructor(state) {
    this.state = state;
    this.rows = element("div", { class: "rows" });
    this.scroll = element("div", { class: "scroll", tabindex: "0", role: "listbox",
      "aria-label": "instructions" }, this.rows);
    content("instructions").replaceChildren(this.scroll);
    this.scroll.addEventListener("scroll", () => this.draw());
  }

  load() {
    this.rows.style.setProperty("height", `${this.state.method.rows.length * ROW}px`);
    this.draw();
  }

  draw(all = false) {
    const { rows } = this.state.method;
    const first = all ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 4);
    const shown = all ? rows.length : Math.ceil((this.scroll.clientHeight || 416) / ROW) + 8;
    const made = [];
    for (let i = first; i < Math.min(rows.length, first + shown); i += 1) made.push(this.row(i));
    this.rows.replaceChildren(...made);
  }

  row(index) {
    const row = this.state.method.rows[index];
    const chosen = index === this.state.selected;
    const matched = !this.state.matches || this.state.matches.has(index);
    const made = element("div", {
      class: `row${chosen ? " selected" : ""}${matched ? "" : " dim"}`, role: "option",
      "aria-selected": String(chosen), onclick: () => this.state.select(index),
    },
    element("span", { class: "narrow" }, String(index)),
    element("span", {}, text(row[0])),
    element("span", {}, text(row[1])),
    element("span", { class: "wideonly" }, text(row[2])),
    element("span", { class: "narrow" }, this.state.shown(this.state.weight(index))));
    made.style.setProperty("top", `${index * ROW}px`);
    return made;
  }

  select() {
    const top = this.state.selected * ROW;
    const { scrollTop, clientHeight } = this.scroll;
    if (this.state.selected !== null && (top < scrollTop || top + ROW > scrollTop + clientHeight)) {
      this.scroll.scrollTop = top - clientHeight / 2;
    }
    this.draw();
  }
}

class Timeline {
  constructor(state) {
    this.state = state;
    this.canvas = element("canvas", { role: "img", "aria-label": "time of each instruction" });
    this.canvas.addEventListener("click", (event) => {
      const time = (event.offsetX / this.canvas.clientWidth) * this.total;
      const index = this.starts.findIndex((start, i) => time < start + state.method.times[i]);
      if (index >= 0) state.select(index);
    });
  }

  load() {
    const { times } = this.state.method;
    if (!times) {
      missing("timeline", "The instructions were not measured.",
        `etx report ${data.file} --run -o report.html`);
      return;
    }
    content("timeline").replaceChildren(this.canvas,
      element("p", { class: "note" }, "Medians of runs on one machine, one after another."));
    this.total = 0;
    this.starts = times.map((time) => { const start = this.total; this.total += time; return start; });
    this.draw();
  }

  draw() {
    const { times, rows } = this.state.method;
    if (!times) return;
    const { pen, width } = prepare(this.canvas, 64);
    const scale = width / (this.total || 1);
    const most = largest(times, 1e-12);
    times.forEach((time, index) => {
      const { fill, ink } = shade(time / most);
      const [left, wide] = [this.starts[index] * scale, time * scale];
      pen.fillStyle = fill;
      pen.fillRect(left, 4, Math.max(wide, 0.5), 36);
      if (wide > 40) {
        pen.fillStyle = ink;
        pen.fillText(fitted(pen, text(rows[index][0]), wide - 8), left + 4, 22);
      }
      if (index === this.state.selected) {
        pen.fillStyle = css("--mark");
        pen.fillRect(left, 42, Math.max(wide, 3), 5);
      }
    });
    pen.fillStyle = css("--ink");
    pen.fillText(`0 to ${milliseconds(this.total)}`, 2, 56);
  }

  select() { this.draw(); }
}

class Memory {
  constructor(state) { this.state = state; }

  load() {
    this.pictures = this.state.method.memory.map((arena) => {
      const canvas = element("canvas", { role: "img",
        "aria-label": `tensors of arena ${arena.id} over instructions` });
      canvas.addEventListener("click", (event) => {
        const steps = this.state.method.rows.length + 2;
        const step = Math.floor((event.offsetX / canvas.clientWidth) * steps);
        if (step > 0 && step <= this.state.method.rows.length) this.state.select(step - 1);
      });
      return { arena, canvas };
    });
    content("memory").replaceChildren(...this.pictures.flatMap(({ arena, canvas }) => [
      element("p", { class: "note" }, `Arena ${arena.id}: ${bytes(arena.bytes)}; ` +
        `${bytes(arena.least)} live at once at most; ${arena.boxes.length} tensors. ` +
        "Left to right instructions, upwards addresses."), canvas]));
    if (!this.pictures.length) content("memory").replaceChildren("No planned memory.");
    this.draw();
  }

  draw() {
    const steps = this.state.method.rows.length + 2;
    for (const { arena, canvas } of this.pictures || []) {
      const { pen, width, height } = prepare(canvas, 180);
      const [right, up] = [width / steps, (height - 4) / (arena.bytes || 1)];
      const most = largest(arena.boxes.map((box) => box[1] - box[0]), 1);
      for (const [start, end, first, last, name] of arena.boxes) {
        const { fill, ink } = shade((end - start) / most);
        const [x, y, w, h] = [first * right, height - 2 - end * up,
          (last - first + 1) * right, (end - start) * up];
        pen.fillStyle = fill;
        pen.fillRect(x, y, Math.max(w - 0.5, 0.5), Math.max(h - 0.5, 0.5));
        if (w > 4 && h > 4) {
          pen.strokeStyle = css("--paper");
          pen.strokeRect(x, y, w, h);
        }
        if (w > 40 && h > 13) {
          pen.fillStyle = ink;
          pen.fillText(fitted(pen, text(name), w - 6), x + 3, y + h / 2);
        }
      }
      if (this.state.selected !== null) {
        pen.strokeStyle = css("--mark");
        pen.strokeRect((this.state.selected + 1) * right, 0, Math.max(right, 1), height);
      }
    }
  }

  select() { this.draw(); }
}

function table(headings, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...headings.map((heading, i) =>
      element("th", { scope: "col", class: i ? "number" : "" }, heading)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
      element("td", { class: i ? "number" : "" }, cell))))));
}

function showSummary(state) {
  const { method } = state;
  const sum = (place) => method.rows.reduce((total, row) => total + row[place], 0);
  const arenas = method.memory.reduce((total, arena) => total + arena.bytes, 0);
  const rows = [
    ["File", bytes(data.bytes)], ["Instructions", String(method.rows.length)],
    ["Weights", bytes(sum(6))], ["Planned memory", bytes(arenas)],
    ["Inputs", method.inputs.map(text).join(", ")], ["Outputs", method.outputs.map(text).join(", ")],
  ];
  if (method.times) {
    rows.push(["Time", milliseconds(method.times.reduce((a, b) => a + b, 0))]);
  }
  content("summary").replaceChildren(
    element("ul", {}, ...data.advice.map((line) => element("li", {}, line))),
    element("table", {}, element("tbody", {}, ...rows.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value))))));
}

function showSource(state) {
  const lines = new Map();
  state.method.rows.forEach((row, index) => {
    const place = text(row[2]);
    if (!place) return;
    const entry = lines.get(place) || { first: index, count: 0, weight: 0 };
    entry.count += 1;
    entry.weight += state.weight(index);
    lines.set(place, entry);
  });
  if (!lines.size) {
    missing("source", "The file does not say source lines.", "etx compile model.py:Net -o model.pte");
    return;
  }
  const hot = [...lines].sort((a, b) => b[1].weight - a[1].weight).slice(0, 40);
  content("source").replaceChildren(table(["Line", "Instructions", state.title()],
    hot.map(([place, entry]) => [
      element("button", { type: "button", class: "link", onclick: () => state.select(entry.first) },
        place), String(entry.count), state.shown(entry.weight)])));
}

function showSize() {
  const choice = element("select", { "aria-label": "size by" },
    ...Object.keys(data.sizes).map((view) => element("option", { value: view }, `by ${view}`)));
  const place = element("div", { class: "scroll" });
  const show = () => place.replaceChildren(table(["", "Bytes", "Share"],
    data.sizes[choice.value].map(([name, count]) => [text(name), bytes(count),
      `${((100 * count) / data.bytes).toFixed(1)} %`])));
  choice.addEventListener("change", show);
  content("size").replaceChildren(choice, place);
  show();
}

function showDelegation(state) {
  const { delegates, rows } = state.method;
  const outside = new Map();
  rows.forEach((row, index) => {
    const name = text(row[0]);
    if (name.startsWith("delegate ")) return;
    const entry = outside.get(name) || [0, index];
    entry[0] += 1;
    outside.set(name, entry);
  });
  const calls = delegates.map(([index, name, inner]) => element("li", {},
    element("button", { type: "button", class: "link", onclick: () => state.select(index) },
      `${index}: ${text(name)}`),
    inner.length ? `: ${inner.length} operators of the model` : ""));
  content("delegation").replaceChildren(
    element("p", {}, delegates.length ? `${delegates.length} calls of delegates:`
      : "No instruction is delegated."),
    element("ul", {}, ...calls),
    table(["Outside of delegates", "Instructions"], [...outside].sort((a, b) => b[1][0] - a[1][0])
      .map(([name, [count, first]]) => [element("button", { type: "button", class: "link",
        onclick: () => state.select(first) }, name), String(count)])),
    element("p", {}, "Why an operator stayed outside is known when the file is made:"),
    element("p", {}, element("code", {}, "etx compile model.py:Net --backend NAME --explain -o model.pte")));
}

function showDetail(state) {
  const index = state.selected;
  const hint = "Select an instruction in any panel.";
  if (index === null) { content("detail").replaceChildren(hint); return; }
  const row = state.method.rows[index];
  const users = state.method.rows.flatMap((other, i) => (other[5].includes(index) ? [i] : []));
  const link = (i) => element("button", { type: "button", class: "link",
    onclick: () => state.select(i) }, `${i}: ${text(state.method.rows[i][0])}`);
  const links = (list) => element("span", {}, ...list.slice(0, 20).flatMap((i) => [link(i), " "]));
  const rows = [["Index", String(index)], ["Operator", text(row[0])], ["Module", text(row[1])],
    ["Line", text(row[2])], ["In the model", text(row[3])],
    ["Arguments", row[4].map(text).join("; ")], ["Result", bytes(row[7])],
    ["New weights", bytes(row[6])], ["Reads", links(row[5])], ["Read by", links(users)]];
  if (state.method.times) rows.push(["Time", milliseconds(state.method.times[index])]);
  content("detail").replaceChildren(element("table", {}, element("tbody", {},
    ...rows.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name),
      element("td", {}, value))))));
}

function showErrors(state) {
  const { errors, rows } = state.method;
  if (!errors) {
    missing("error", "Values were not compared with eager mode.",
      `etx report ${data.file} --eager net.py:net -o report.html`);
    return;
  }
  const wrong = errors.filter(([, made, , allowed]) => made > allowed);
  const worst = [...errors].sort((a, b) => b[1] - a[1]).slice(0, 40);
  const number = (value) => (value >= 1e300 ? "not finite" : value.toPrecision(3));
  content("error").replaceChildren(
    element("p", {}, wrong.length
      ? `${wrong.length} of ${errors.length} instructions make more error than rounding explains; the first is ${wrong[0][0]}.`
      : `None of ${errors.length} instructions makes more error than rounding explains.`),
    element("div", { class: "scroll" }, table(["Instruction", "Made here", "Arrived", "Rounding"],
      worst.map(([index, made, arrived, allowed]) => [
        element("button", { type: "button", class: "link", onclick: () => state.select(index) },
          `${made > allowed ? "wrong: " : ""}${index}: ${text(rows[index][0])}`),
        number(made), number(arrived), number(allowed)]))));
}
