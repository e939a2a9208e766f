// SPDX-License-Identifier: BSD-3-Clause
const NODE = { width: 208, height: 40, gap: 20, side: 18, margin: 12, gutter: 48 };
const OPENED = { few: 12, many: 40 };

// A module path and those around it, outermost first.
const paths = new Map();
function pathsOf(number) {
  if (!paths.has(number)) {
    const parts = text(number) ? text(number).split(".") : [];
    paths.set(number, parts.map((_, depth) => parts.slice(0, depth + 1).join(".")));
  }
  return paths.get(number);
}

// The visible nodes of a method: modules that are closed, and instructions of those that are open.
function nodesOf(method, open) {
  const nodes = new Map();
  const nodeOf = method.rows.map((row, index) => {
    const around = pathsOf(row[1]);
    let depth = 0;
    while (depth < around.length && open.has(around[depth])) depth += 1;
    const inside = depth < around.length;
    const key = inside ? around[depth] : `#${index}`;
    if (!nodes.has(key)) {
      nodes.set(key, { key, module: inside, label: inside ? key : text(row[0]), rows: [],
        parent: depth ? around[depth - 1] : "", into: new Set(), layer: 0 });
    }
    nodes.get(key).rows.push(index);
    return key;
  });
  method.rows.forEach((row, index) => {
    for (const producer of row[5]) {
      const from = nodeOf[producer];
      if (from !== undefined && from !== nodeOf[index]) nodes.get(from).into.add(nodeOf[index]);
    }
  });
  return { nodes: [...nodes.values()], nodeOf };
}

// A node lies below all that it reads, in the order of first instructions; edges back are ignored.
// What is long and narrow goes on in further columns, as far as `room` is wide.
function layered(nodes, room) {
  const byKey = new Map(nodes.map((node, order) => [node.key, Object.assign(node, { order })]));
  for (const node of nodes) {
    for (const key of node.into) {
      const next = byKey.get(key);
      if (next.order > node.order) next.layer = Math.max(next.layer, node.layer + 1);
    }
  }
  const layers = [];
  for (const node of nodes) {
    layers[node.layer] = layers[node.layer] || [];
    node.column = layers[node.layer].push(node) - 1;
  }
  const widest = largest(layers.map((layer) => layer.length), 1);
  const block = widest * (NODE.width + NODE.side) - NODE.side + NODE.gutter;
  const most = Math.max(1, Math.floor((room - 2 * NODE.margin + NODE.gutter) / block));
  const columns = Math.min(most, Math.ceil(layers.length / 6));
  const per = Math.max(1, Math.ceil(layers.length / columns));
  for (const node of nodes) {
    node.block = Math.floor(node.layer / per);
    node.x = (node.column + (widest - layers[node.layer].length) / 2) * (NODE.width + NODE.side)
      + node.block * block;
    node.y = (node.layer % per) * (NODE.height + NODE.gap) + NODE.margin;
  }
  const used = Math.ceil(layers.length / per);
  return { layers, byKey, per, block, wide: used * block - NODE.gutter + 2 * NODE.margin };
}

// Open the largest modules while few nodes are shown.
function opened(method) {
  const open = new Set();
  for (let round = 0; round < 20; round += 1) {
    const { nodes } = nodesOf(method, open);
    const modules = nodes.filter((node) => node.module && node.rows.length > 1)
      .sort((a, b) => b.rows.length - a.rows.length);
    if (nodes.length >= OPENED.few || !modules.length) break;
    const next = new Set(open).add(modules[0].key);
    if (nodesOf(method, next).nodes.length > OPENED.many) break;
    open.add(modules[0].key);
  }
  return open;
}

class Graph {
  constructor(state) {
    this.state = state;
    this.open = new Set();
    this.canvas = element("canvas", { role: "img" });
    this.space = element("div");
    this.scroll = element("div", { class: "scroll", tabindex: "0", role: "region",
      "aria-label": "graph, scrolls" }, this.canvas, this.space);
    this.list = element("p", { class: "note" });
    this.legend = element("p", { class: "note legend" });
    content("graph").replaceChildren(this.list, this.scroll, this.legend);
    this.scroll.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("click", (event) => this.click(event, false));
    this.canvas.addEventListener("dblclick", (event) => this.click(event, true));
    this.scroll.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || this.state.selected === null) return;
      event.stopPropagation();
      const node = this.byKey.get(this.nodeOf[this.state.selected]);
      this.toggle(node.module ? node.key : node.parent);
    });
  }

  load() {
    if (this.method !== this.state.method) {
      this.method = this.state.method;
      this.open = opened(this.method);
    }
    const { nodes, nodeOf } = nodesOf(this.state.method, this.open);
    const { layers, byKey, per, block, wide } = layered(nodes, this.scroll.clientWidth);
    Object.assign(this, { nodes, nodeOf, layers, byKey, per, block, width: wide });
    this.edges = nodes.flatMap((node) => [...node.into].map((key) => [node, byKey.get(key)]));
    for (const node of nodes) {
      node.weight = node.rows.reduce((sum, index) => sum + this.state.weight(index), 0);
      node.count = node.module ? `${node.rows.length} × · ` : `${node.rows[0]} · `;
      node.words = null;
    }
    this.most = largest(nodes.map((node) => Math.abs(node.weight)), 1e-12);
    this.height = per * (NODE.height + NODE.gap) - NODE.gap + 2 * NODE.margin;
    this.view = Math.min(440, Math.max(80, this.height));
    this.space.style.setProperty("height", `${Math.max(0, this.height - this.view)}px`);
    this.space.style.setProperty("width", `${this.width}px`);
    const shut = [...this.open].sort();
    this.list.replaceChildren(
      `${nodes.length} node${nodes.length === 1 ? "" : "s"}; Enter or a double click opens and closes a module. `,
      ...shut.slice(0, 30).map((key) => link(`close ${key}`, () => this.toggle(key)))
        .flatMap((item) => [item, " "]));
    this.canvas.setAttribute("aria-label", `graph of ${nodes.length} modules and instructions`);
    showLegend(this.legend, this.state, this.most);
    this.draw();
  }

  toggle(key) {
    if (!key) return;
    if (this.open.has(key)) {
      for (const other of [...this.open]) {
        if (other === key || other.startsWith(`${key}.`)) this.open.delete(other);
      }
    } else {
      this.open.add(key);
    }
    this.load();
  }

  place(node) {
    const left = Math.max(NODE.margin, (this.scroll.clientWidth - this.width) / 2 + NODE.margin);
    return { left: left + node.x - this.scroll.scrollLeft, top: node.y - this.scroll.scrollTop };
  }

  draw() {
    if (!this.nodes) return;
    const { pen, width, height } = prepare(this.canvas, this.view);
    const step = NODE.height + NODE.gap;
    const { scrollTop, scrollLeft, clientWidth } = this.scroll;
    const first = Math.max(0, Math.floor(scrollTop / step) - 1);
    const last = Math.min(this.per - 1, first + Math.ceil(height / step) + 2);
    const left = Math.max(NODE.margin, (clientWidth - this.width) / 2 + NODE.margin) - scrollLeft;
    const chosen = this.state.selected === null ? null : this.nodeOf[this.state.selected];
    this.drawEdges(pen, { first, last, left, top: scrollTop, chosen });
    const colours = { plain: css("--line"), mark: css("--mark") };
    for (let start = 0; start < this.layers.length; start += this.per) {
      const end = Math.min(start + last, this.layers.length - 1);
      for (const node of this.layers.slice(start + first, end + 1).flat()) {
        const [x, y] = [left + node.x, node.y - scrollTop];
        if (x <= width && x + NODE.width >= 0) {
          this.drawNode(pen, node, x, y, { chosen: node.key === chosen, ...colours });
        }
      }
    }
  }

  drawEdges(pen, { first, last, left, top, chosen }) {
    const [plain, strong] = [css("--line"), css("--mark")];
    const half = NODE.width / 2;
    let drawn = 0;
    for (const [from, to] of this.edges) {
      const rows = [from.layer % this.per, to.layer % this.per];
      const same = from.block === to.block;
      if (same && (rows[1] < first || rows[0] > last)) continue;
      drawn += 1;
      if (drawn > 3000) return;
      const [x, y] = [left + from.x + half, from.y + NODE.height - top];
      const [toX, toY] = [left + to.x + half, to.y - top];
      const bend = Math.min(NODE.gap, Math.max(8, (toY - y) / 2));
      pen.strokeStyle = from.key === chosen || to.key === chosen ? strong : plain;
      pen.beginPath();
      pen.moveTo(x, y);
      if (same) {
        pen.bezierCurveTo(x, y + bend, toX, toY - bend, toX, toY);
      } else {
        const side = left + (from.block + 1) * this.block - NODE.gutter / 2;
        const corners = [[x, y + 9], [side, y + 9], [side, toY - 9], [toX, toY - 9], [toX, toY]];
        for (const corner of corners) pen.lineTo(...corner);
      }
      pen.stroke();
    }
  }

  drawNode(pen, node, x, y, { chosen, plain, mark }) {
    const { fill, ink } = this.state.shade(node.weight / this.most);
    if (!node.words) {
      node.words = [fitted(pen, (node.module ? "▸ " : "") + node.label, NODE.width - 16, node.module),
        fitted(pen, node.count + this.state.shown(node.weight), NODE.width - 16)];
    }
    pen.fillStyle = fill;
    pen.beginPath();
    pen.roundRect(x, y, NODE.width, NODE.height, node.module ? 8 : 3);
    pen.fill();
    pen.lineWidth = chosen ? 3 : 1;
    pen.strokeStyle = chosen ? mark : plain;
    pen.stroke();
    pen.lineWidth = 1;
    pen.fillStyle = ink;
    pen.fillText(node.words[0], x + 8, y + 14);
    pen.fillText(node.words[1], x + 8, y + 30);
  }

  click(event, twice) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((y + this.scroll.scrollTop - NODE.margin) / (NODE.height + NODE.gap));
    const layers = this.layers.filter((_, index) => index % this.per === row);
    for (const node of layers.flat()) {
      const { left, top } = this.place(node);
      if (x >= left && x <= left + NODE.width && y >= top && y <= top + NODE.height) {
        if (twice) this.toggle(node.module ? node.key : node.parent);
        else this.state.select(node.rows[0]);
        return;
      }
    }
  }

  select() {
    const node = this.byKey && this.byKey.get(this.nodeOf[this.state.selected]);
    if (node) {
      const { scrollTop } = this.scroll;
      if (node.y < scrollTop || node.y + NODE.height > scrollTop + this.view) {
        this.scroll.scrollTop = node.y - this.view / 2;
      }
    }
    this.draw();
  }
}

// What the colours mean, from the least to the most.
function showLegend(place, state, most) {
  const bar = element("span", { class: "bar", role: "img", "aria-label": "colour scale" });
  const ends = state.changes() ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  const stops = ends.map((share) => state.shade(share).fill);
  bar.style.setProperty("background", `linear-gradient(to right, ${stops.join(",")})`);
  const [low, high] = state.changes() ? [-most, most] : [0, most];
  place.replaceChildren(`${state.title()}: ${state.shown(low)} `, bar, ` ${state.shown(high)} a node`);
}
