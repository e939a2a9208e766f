// SPDX-License-Identifier: BSD-3-Clause
const NODE = { width: 220, height: 40, gap: 26, margin: 12 };

// The visible nodes of a method: modules that are closed, and instructions of those that are open.
function nodesOf(method, open) {
  const nodes = new Map();
  const nodeOf = method.rows.map((row, index) => {
    const parts = text(row[1]) ? text(row[1]).split(".") : [];
    let depth = 0;
    while (depth < parts.length && open.has(parts.slice(0, depth + 1).join("."))) depth += 1;
    const inside = depth < parts.length;
    const key = inside ? parts.slice(0, depth + 1).join(".") : `#${index}`;
    if (!nodes.has(key)) {
      nodes.set(key, { key, module: inside, label: inside ? key : text(row[0]), rows: [],
        parent: parts.slice(0, depth).join("."), into: new Set(), layer: 0 });
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
function layered(nodes) {
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
  return { layers, byKey };
}

class Graph {
  constructor(state) {
    this.state = state;
    this.open = new Set();
    this.canvas = element("canvas", { tabindex: "0", role: "img" });
    this.space = element("div");
    this.scroll = element("div", { class: "scroll", tabindex: "0", "aria-label": "graph" },
      this.canvas, this.space);
    this.list = element("p", { class: "note" });
    content("graph").replaceChildren(this.list, this.scroll);
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
    const { nodes, nodeOf } = nodesOf(this.state.method, this.open);
    const { layers, byKey } = layered(nodes);
    Object.assign(this, { nodes, nodeOf, layers, byKey });
    const widest = largest(layers.map((layer) => layer.length), 1);
    this.height = layers.length * (NODE.height + NODE.gap) + 2 * NODE.margin;
    this.width = widest * (NODE.width + NODE.gap) + 2 * NODE.margin;
    this.view = Math.min(400, Math.max(80, this.height));
    this.space.style.setProperty("height", `${Math.max(0, this.height - this.view)}px`);
    this.space.style.setProperty("width", `${this.width}px`);
    const opened = [...this.open].sort();
    this.list.replaceChildren(`${nodes.length} nodes. `,
      ...opened.map((key) => element("button", { type: "button", class: "link",
        onclick: () => this.toggle(key) }, `close ${key}`)).flatMap((item) => [item, " "]));
    this.canvas.setAttribute("aria-label", `graph of ${nodes.length} modules and instructions`);
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
    const left = NODE.margin + node.column * (NODE.width + NODE.gap) - this.scroll.scrollLeft;
    const top = NODE.margin + node.layer * (NODE.height + NODE.gap) - this.scroll.scrollTop;
    return { left, top };
  }

  draw() {
    if (!this.nodes) return;
    const { pen, width, height } = prepare(this.canvas, this.view);
    const weight = (node) => node.rows.reduce((sum, index) => sum + this.state.weight(index), 0);
    const most = largest(this.nodes.map(weight), 1e-12);
    const step = NODE.height + NODE.gap;
    const first = Math.floor(this.scroll.scrollTop / step) - 1;
    const last = first + Math.ceil(height / step) + 2;
    pen.strokeStyle = css("--line");
    for (const node of this.nodes) {
      const from = this.place(node);
      for (const key of node.into) {
        const next = this.byKey.get(key);
        if (next.layer < first || node.layer > last) continue;
        const to = this.place(next);
        pen.beginPath();
        pen.moveTo(from.left + NODE.width / 2, from.top + NODE.height);
        pen.lineTo(to.left + NODE.width / 2, to.top);
        pen.stroke();
      }
    }
    const chosen = this.state.selected === null ? null : this.nodeOf[this.state.selected];
    for (let layer = Math.max(0, first); layer <= last && layer < this.layers.length; layer += 1) {
      for (const node of this.layers[layer]) {
        const { left, top } = this.place(node);
        if (left > width || left + NODE.width < 0) continue;
        const value = weight(node);
        const { fill, ink } = shade(value / most);
        pen.fillStyle = fill;
        pen.fillRect(left, top, NODE.width, NODE.height);
        if (node.key === chosen) {
          pen.lineWidth = 3;
          pen.strokeStyle = css("--mark");
          pen.strokeRect(left, top, NODE.width, NODE.height);
          pen.lineWidth = 1;
        }
        pen.fillStyle = ink;
        const mark = node.module ? "▸ " : "";
        pen.fillText(fitted(pen, mark + node.label, NODE.width - 12), left + 6, top + 13);
        const count = node.module ? `${node.rows.length} × · ` : `${node.rows[0]} · `;
        pen.fillText(fitted(pen, count + this.state.shown(value), NODE.width - 12), left + 6,
          top + 29);
      }
    }
  }

  click(event, twice) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    for (const node of this.nodes) {
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
      const top = NODE.margin + node.layer * (NODE.height + NODE.gap);
      const { scrollTop } = this.scroll;
      if (top < scrollTop || top + NODE.height > scrollTop + this.view) {
        this.scroll.scrollTop = top - this.view / 2;
      }
    }
    this.draw();
  }
}
