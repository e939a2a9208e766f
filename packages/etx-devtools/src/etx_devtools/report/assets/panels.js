// SPDX-License-Identifier: BSD-3-Clause
const ROW = 24;

// Only the rows in view are elements.
class Instructions {
  constructor(state) {
    this.state = state;
    this.made = new Map();
    this.head = element("div", { class: "row head", "aria-hidden": "true" });
    this.rows = element("div", { class: "rows", role: "listbox", tabindex: "-1",
      "aria-label": "instructions" });
    this.scroll = element("div", { class: "scroll list", tabindex: "0", role: "region",
      "aria-label": "instructions, scrolls" }, this.head, this.rows);
    content("instructions").replaceChildren(this.scroll);
    this.scroll.addEventListener("scroll", () => this.draw());
  }

  load() {
    const words = this.state.old ? ["Before", this.state.title()] : [this.state.title()];
    this.head.replaceChildren(element("span", { class: "narrow" }, "#"),
      element("span", {}, "Operator"), element("span", {}, "Module"),
      element("span", { class: "wideonly" }, "Line"),
      ...words.map((word) => element("span", { class: "narrow" }, word)));
    this.rows.style.setProperty("height", `${this.state.method.rows.length * ROW}px`);
    this.redraw();
  }

  draw(all = false) {
    const { rows } = this.state.method;
    const first = all ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 4);
    const shown = all ? rows.length : Math.ceil((this.scroll.clientHeight || 416) / ROW) + 8;
    const last = Math.min(rows.length, first + shown);
    for (const [index, made] of this.made) {
      if (index >= first && index < last) continue;
      made.remove();
      this.made.delete(index);
    }
    const [kept = -1] = this.made.keys();
    const added = [];
    for (let i = first; i < last; i += 1) {
      if (this.made.has(i)) continue;
      this.made.set(i, this.row(i));
      added.push(this.made.get(i));
    }
    if (first < kept) {
      this.rows.prepend(...added);
      this.made = new Map([...this.made].sort((a, b) => a[0] - b[0]));
    } else {
      this.rows.append(...added);
    }
  }

  // Make all rows again: what they show has changed.
  redraw(all = false) {
    this.made.clear();
    this.rows.replaceChildren();
    this.draw(all);
  }

  row(index) {
    const { state } = this;
    const row = state.method.rows[index];
    const chosen = index === state.selected;
    const matched = !state.matches || state.matches.has(index);
    const mark = state.marks.get(index);
    const made = element("div", {
      class: `row${chosen ? " selected" : ""}${matched ? "" : " dim"}`, role: "option",
      "aria-selected": String(chosen), "aria-setsize": String(state.method.rows.length),
      "aria-posinset": String(index + 1), onclick: () => state.select(index),
    },
    element("span", { class: "narrow" }, String(index)),
    element("span", {}, text(row[0]), mark ? element("em", { class: "mark" }, mark) : null),
    element("span", { class: "path" }, text(row[1])),
    element("span", { class: "wideonly" }, text(row[2])),
    state.old ? element("span", { class: "narrow" }, state.oldShown(index)) : null,
    element("span", { class: "narrow" }, state.shown(state.weight(index))));
    made.style.setProperty("top", `${index * ROW}px`);
    return made;
  }

  select() {
    const top = this.state.selected * ROW;
    const { scrollTop, clientHeight } = this.scroll;
    const room = clientHeight - ROW;
    if (this.state.selected !== null && (top < scrollTop || top + ROW > scrollTop + room)) {
      this.scroll.scrollTop = top - room / 2;
    }
    this.redraw();
  }
}

const LANE = { top: 18, height: 40, gap: 26 };

class Timeline {
  constructor(state) {
    this.state = state;
    this.zoom = 1;
    this.canvas = element("canvas", { role: "img", "aria-label": "time of each instruction" });
    this.space = element("div", { class: "flat" });
    this.scroll = element("div", { class: "scroll", tabindex: "0", role: "region",
      "aria-label": "timeline, scrolls" }, this.canvas, this.space);
    this.note = element("span", { class: "note" });
    this.tools = element("p", {},
      link("wider", () => this.widen(2)), " ", link("narrower", () => this.widen(0.5)), " ", this.note);
    this.scroll.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("click", (event) => {
      const lane = Math.floor(event.offsetY / (LANE.top + LANE.height + LANE.gap));
      const index = this.at((event.offsetX + this.scroll.scrollLeft) / this.scale,
        Math.min(lane, this.lanes.length - 1));
      if (index >= 0) state.select(index);
    });
  }

  at(time, lane) {
    const { starts, old } = this.lanes[lane];
    const index = before(starts, time);
    return old ? this.state.partner.get(index) ?? -1 : index;
  }

  load() {
    const { method, old } = this.state;
    if (!method.times) {
      this.lanes = null;
      missing("timeline", "The instructions were not measured. This measures them here:",
        `${this.state.command} --run -o report.html`);
      return;
    }
    const lanes = [{ times: method.times, names: (i) => bare(text(method.rows[i][0])), title: "", old: false }];
    if (old && old.times) {
      lanes[0].title = `now, ${data.file}`;
      lanes.unshift({ times: old.times, names: (i) => bare(oldText(old.rows[i][0])), old: true,
        title: `before, ${data.before.file}` });
    }
    for (const lane of lanes) {
      lane.starts = new Float64Array(lane.times.length);
      lane.total = lane.times.reduce((sum, time, i) => { lane.starts[i] = sum; return sum + time; }, 0);
    }
    this.lanes = lanes;
    this.total = largest(lanes.map((lane) => lane.total), 1e-9);
    this.most = largest(lanes.flatMap((lane) => [largest(lane.times, 0)]), 1e-12);
    content("timeline").replaceChildren(this.tools, this.scroll,
      element("p", { class: "note" }, "Medians of recorded executions, one instruction after another."));
    this.widen(1);
  }

  widen(factor) {
    if (!this.lanes) return;
    const least = this.lanes[0].times.length;
    this.zoom = Math.min(Math.max(1, this.zoom * factor), Math.max(1, least / 4), 512);
    this.space.style.setProperty("width", `${this.scroll.clientWidth * this.zoom}px`);
    this.reveal();
    this.draw();
  }

  draw() {
    if (!this.lanes) return;
    const full = LANE.top + LANE.height + LANE.gap;
    const { pen, width } = prepare(this.canvas, this.lanes.length * full - LANE.gap + 14);
    this.scale = (width * this.zoom) / this.total;
    const [left, right] = [this.scroll.scrollLeft, this.scroll.scrollLeft + width];
    this.lanes.forEach((lane, order) => this.drawLane(pen, lane, order * full, left, right));
    const [from, to] = [left, right].map((x) => milliseconds(x / this.scale));
    this.note.textContent = `${from} to ${to} of ${milliseconds(this.total)}`;
  }

  // Instructions narrower than a pixel share one, with the colour of the longest.
  drawLane(pen, { times, starts, names, title, total, old }, top, left, right) {
    pen.fillStyle = css("--ink");
    if (title) pen.fillText(`${title}: ${milliseconds(total)}`, 2, top + 8);
    let [pixel, most] = [-1, 0];
    const flush = () => {
      if (pixel < 0) return;
      pen.fillStyle = shade(most / this.most).fill;
      pen.fillRect(pixel - left, top + LANE.top, 1, LANE.height);
      pixel = -1;
    };
    for (let i = Math.max(0, before(starts, left / this.scale)); i < times.length; i += 1) {
      const [x, wide] = [starts[i] * this.scale, times[i] * this.scale];
      if (x > right) break;
      if (wide < 1) {
        if (Math.floor(x) !== pixel) { flush(); [pixel, most] = [Math.floor(x), 0]; }
        most = Math.max(most, times[i]);
      } else {
        flush();
        const { fill, ink } = shade(times[i] / this.most);
        pen.fillStyle = fill;
        pen.fillRect(x - left, top + LANE.top, Math.max(wide - 0.5, 0.5), LANE.height);
        const [begin, end] = [Math.max(x, left), Math.min(x + wide, right)];
        if (end - begin > 40) {
          pen.fillStyle = ink;
          pen.fillText(fitted(pen, names(i), end - begin - 8), begin - left + 4, top + LANE.top + LANE.height / 2);
        }
      }
    }
    flush();
    const chosen = old ? this.state.oldIndex(this.state.selected) : this.state.selected;
    if (chosen === null || chosen < 0) return;
    pen.fillStyle = css("--mark");
    pen.fillRect(starts[chosen] * this.scale - left, top + LANE.top + LANE.height + 2,
      Math.max(times[chosen] * this.scale, 4), 5);
  }

  reveal() {
    const { selected, method } = this.state;
    if (selected === null || !this.lanes) return;
    const lane = this.lanes[this.lanes.length - 1];
    const width = this.scroll.clientWidth;
    const x = lane.starts[selected] * ((width * this.zoom) / this.total);
    const { scrollLeft } = this.scroll;
    if (x < scrollLeft || x > scrollLeft + width - 20) this.scroll.scrollLeft = x - width / 2;
    return method;
  }

  select() { this.reveal(); this.draw(); }
}

// An operator without its library.
function bare(name) { return name.replace(/^\w+::/, ""); }

// The last place of `sorted` that is not above `value`, or -1.
function before(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

class Memory {
  constructor(state) { this.state = state; }

  load() {
    const { method, old } = this.state;
    const arenas = method.memory.map((arena) => ({ arena, names: text, count: method.rows.length }));
    for (const arena of old ? old.memory : []) {
      const place = arenas.findIndex((each) => each.arena.id === arena.id && !each.old);
      arenas.splice(place < 0 ? arenas.length : place, 0,
        { arena, names: oldText, count: old.rows.length, old: true });
    }
    this.most = largest(arenas.map(({ arena }) => arena.bytes), 1);
    this.pictures = arenas.map((each) => this.picture(each));
    content("memory").replaceChildren(...this.pictures.flatMap(({ arena, canvas, old: was }) => [
      element("p", { class: "note" }, `${this.state.old ? (was ? "Before: " : "Now: ") : ""}` +
        `arena ${arena.id} has ${bytes(arena.bytes)}; at most ${bytes(arena.least)} are live at ` +
        `once; ${arena.boxes.length} tensors.`),
      element("div", {}, canvas)]),
    element("p", { class: "note" }, "Left to right the instructions, upwards the addresses; " +
      "a rectangle is a tensor from its first use to its last."));
    if (!this.pictures.length) content("memory").replaceChildren("No planned memory.");
    this.draw();
  }

  picture(each) {
    const { arena, count } = each;
    const canvas = element("canvas", { role: "img", "aria-label":
      `${each.old ? "before: " : ""}tensors of arena ${arena.id} over instructions` });
    canvas.addEventListener("click", (event) => {
      const step = Math.floor((event.offsetX / canvas.clientWidth) * (count + 2)) - 1;
      const index = each.old ? this.state.partner.get(step) ?? -1 : step;
      if (index >= 0 && index < this.state.method.rows.length) this.state.select(index);
    });
    return { ...each, canvas, kept: document.createElement("canvas") };
  }

  draw() {
    for (const picture of this.pictures || []) {
      const height = Math.max(36, Math.round((200 * picture.arena.bytes) / this.most));
      const { pen, width } = prepare(picture.canvas, height);
      picture.height = height;
      this.drawBoxes(pen, picture, width);
      picture.kept.width = picture.canvas.width;
      picture.kept.height = picture.canvas.height;
      picture.kept.getContext("2d").drawImage(picture.canvas, 0, 0);
      this.drawMark(pen, picture, width);
    }
  }

  drawBoxes(pen, { arena, names, count, height }, width) {
    const [right, up] = [width / (count + 2), (height - 4) / (arena.bytes || 1)];
    const most = largest(arena.boxes.map((box) => box[1] - box[0]), 1);
    pen.strokeStyle = css("--paper");
    for (const [start, end, first, last, name] of arena.boxes) {
      const { fill, ink } = shade(0.2 + (0.8 * (end - start)) / most);
      const [x, y, w, h] = [first * right, height - 2 - end * up,
        (last - first + 1) * right, (end - start) * up];
      pen.fillStyle = fill;
      pen.fillRect(x, y, Math.max(w - 0.5, 0.5), Math.max(h - 0.5, 0.5));
      if (w > 4 && h > 4) pen.strokeRect(x, y, w, h);
      if (w > 40 && h > 13) {
        pen.fillStyle = ink;
        pen.fillText(fitted(pen, names(name), w - 6), x + 3, y + h / 2);
      }
    }
  }

  drawMark(pen, { count, height, old }, width) {
    const chosen = old ? this.state.oldIndex(this.state.selected) : this.state.selected;
    if (chosen === null || chosen < 0) return;
    const right = width / (count + 2);
    pen.strokeStyle = css("--mark");
    pen.lineWidth = 2;
    pen.strokeRect((chosen + 1) * right, 1, Math.max(right, 1), height - 2);
    pen.lineWidth = 1;
  }

  select() {
    for (const picture of this.pictures || []) {
      const { pen, width, height } = prepare(picture.canvas, picture.height);
      pen.drawImage(picture.kept, 0, 0, width, height);
      this.drawMark(pen, picture, width);
    }
  }
}
