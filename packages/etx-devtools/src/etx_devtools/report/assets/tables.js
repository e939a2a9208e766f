// SPDX-License-Identifier: BSD-3-Clause
const sumOf = (method, place) => method.rows.reduce((total, row) => total + row[place], 0);

function showSummary(state) {
  const { method, old } = state;
  const time = (each) => each.times && each.times.reduce((a, b) => a + b, 0);
  const arenas = (each) => each.memory.reduce((total, arena) => total + arena.bytes, 0);
  const rows = [
    ["File", bytes, data.bytes, old && data.before.bytes],
    ["Instructions", String, method.rows.length, old && old.rows.length],
    ["Weights", bytes, sumOf(method, 6), old && sumOf(old, 6)],
    ["Planned memory", bytes, arenas(method), old && arenas(old)],
    ["Time", milliseconds, time(method), old && time(old)],
  ].filter((row) => row[2] !== null && row[2] !== undefined);
  const types = [["Inputs", method.inputs], ["Outputs", method.outputs]]
    .map(([name, numbers]) => [name, numbers.map(text).join(", ") || "none"]);
  const cells = rows.map(([name, shown, now, was]) => (old
    ? [name, typeof was === "number" ? shown(was) : "", shown(now),
      typeof was === "number" ? change(was, now) : ""]
    : [name, shown(now)]));
  content("summary").replaceChildren(
    element("ul", {}, ...data.advice.map((line) => element("li", {}, line))),
    old ? table(["", "Before", "Now", "Change"], cells)
      : facts(cells),
    facts(types));
}

function facts(rows) {
  return element("table", { class: "facts" }, element("tbody", {}, ...rows.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)))));
}

function showChanges(state) {
  byId("changes").hidden = !data.before;
  if (!data.before) return;
  const found = data.changes.methods[state.method.name];
  const parts = [element("ul", {}, ...data.changes.lines.map((line) => element("li", {}, line)))];
  if (!found) parts.push(element("p", {}, `Method ${state.method.name} is only in ${data.file}.`));
  if (found) {
    parts.push(element("ul", {}, ...found.signature.map((line) => element("li", {}, line))));
    const rows = found.changes.map(([kind, words, , after]) => [kind,
      after.length ? link(words, () => state.select(after[0])) : words]);
    if (rows.length) parts.push(element("div", { class: "scroll" }, table(["Change", "Instructions"], rows, 2, [0])));
    if (found.count > rows.length) parts.push(element("p", {}, `and ${found.count - rows.length} more`));
    const weights = found.weights.map(([name, kind, was, now, most]) => [name, kind,
      was === now || !now || !was ? was || now : `${was} to ${now}`,
      most === null ? "" : plainNumber(most)]);
    if (weights.length) {
      parts.push(element("div", { class: "scroll" },
        table(["Weight", "Change", "Type", "Largest difference"], weights, 3, [1, 2])));
    }
    if (!rows.length && !weights.length) parts.push(element("p", {}, "No instruction and no weight differs."));
  }
  content("changes").replaceChildren(...parts);
}

function linesOf(method, name, weight) {
  const lines = new Map();
  method.rows.forEach((row, index) => {
    const place = name(row[2]);
    if (!place) return;
    const entry = lines.get(place) || { first: index, count: 0, weight: 0 };
    entry.count += 1;
    entry.weight += weight(index);
    lines.set(place, entry);
  });
  return lines;
}

function showSource(state) {
  const lines = linesOf(state.method, text, (i) => state.value(state.method, i));
  if (!lines.size) {
    missing("source", "The file does not say source lines; etx compile stores them:",
      "etx compile model.py:Net -o model.pte");
    return;
  }
  const olds = state.old ? linesOf(state.old, oldText, (i) => state.value(state.old, i)) : null;
  const hot = [...lines].sort((a, b) => b[1].weight - a[1].weight).slice(0, 40);
  const most = largest(hot.map(([, entry]) => entry.weight), 1e-12);
  const cells = hot.map(([place, entry]) => {
    const was = olds && olds.get(place);
    return [link(place, () => state.select(entry.first)), String(entry.count),
      ...(olds ? [was ? state.plain(was.weight) : ""] : []),
      meter(state.plain(entry.weight), entry.weight / most)];
  });
  const heads = olds ? ["Line", "Instructions", "Before", "Now"] : ["Line", "Instructions", state.name()];
  content("source").replaceChildren(element("div", { class: "scroll" }, table(heads, cells)));
}

// A number over a bar of its share.
function meter(words, share) {
  const bar = element("span", { class: "share" });
  bar.style.setProperty("width", `${Math.round(100 * Math.max(0, Math.min(1, share)))}%`);
  return element("span", { class: "meter" }, bar, element("span", {}, words));
}

function showSize(state) {
  const choice = element("select", { "aria-label": "size by" },
    ...Object.keys(data.sizes).map((view) => element("option", { value: view }, `by ${view}`)));
  const place = element("div", { class: "scroll" });
  const show = () => {
    const rows = data.sizes[choice.value].map(([name, count]) => [text(name), count]);
    const share = (count) => meter(`${((100 * count) / data.bytes).toFixed(1)} %`, count / data.bytes);
    if (!state.old) {
      place.replaceChildren(table(["What", "Bytes", "Share"],
        rows.map(([name, count]) => [name, bytes(count), share(count)])));
      return;
    }
    const was = new Map(data.before.sizes[choice.value].map(([name, count]) => [oldText(name), count]));
    const names = new Map([...was].map(([name]) => [name, 0]));
    for (const [name, count] of rows) names.set(name, count);
    place.replaceChildren(table(["What", "Before", "Now", "Change"],
      [...names].sort((a, b) => b[1] - a[1]).map(([name, count]) => [name,
        bytes(was.get(name) || 0), bytes(count), change(was.get(name) || 0, count)])));
  };
  choice.addEventListener("change", show);
  content("size").replaceChildren(choice, place);
  show();
}

function showDelegation(state) {
  const { delegates, rows, reasons } = state.method;
  const outside = new Map();
  rows.forEach((row, index) => {
    const name = text(row[0]);
    if (name.startsWith("delegate ")) return;
    const entry = outside.get(name) || [0, index];
    entry[0] += 1;
    outside.set(name, entry);
  });
  const inside = (inner) => (inner.length ? `: ${inner.length} operators of the model` : "");
  const calls = delegates.map(([index, name, inner]) => element("li", {},
    link(`${index}: ${text(name)}`, () => state.select(index)), inside(inner)));
  const count = delegates.length;
  const was = state.old ? ` It was ${state.old.delegates.length} before.` : "";
  const head = count ? `${count} call${count > 1 ? "s" : ""} of delegates.` : "No instruction is delegated.";
  const parts = [element("p", {}, head + was), element("ul", {}, ...calls)];
  if (reasons) {
    if (reasons.length) parts.push(element("div", { class: "scroll" }, table(["Outside", "Why", "By", "Operators"],
      reasons.map(([operator, who, why, times, found]) => [
        found.length ? link(text(operator), () => state.select(found[0])) : text(operator),
        text(why), text(who), String(times)]), 3)));
    if (!reasons.length && outside.size) {
      parts.push(element("p", {}, "No backend was asked when the file was made; this asks one:"),
        element("p", {}, element("code", {}, "etx compile model.py:Net --backend xnnpack --stages -o model.pte")));
    }
  } else {
    parts.push(element("div", { class: "scroll" }, table(["Outside of delegates", "Instructions"],
      [...outside].sort((a, b) => b[1][0] - a[1][0]).map(([name, [times, first]]) =>
        [link(name, () => state.select(first)), String(times)]))),
    element("p", {}, "Why an operator stayed outside is known when the file is made:"),
    element("p", {}, element("code", {}, "etx compile model.py:Net --backend xnnpack --stages -o model.pte")));
  }
  content("delegation").replaceChildren(...parts);
}

function showDetail(state) {
  const index = state.selected;
  if (index === null) {
    content("detail").replaceChildren(element("p", {}, "Select an instruction in any panel, or press j."));
    return;
  }
  const { method } = state;
  const row = method.rows[index];
  const users = method.rows.flatMap((other, i) => (other[5].includes(index) ? [i] : []));
  const to = (i) => link(`${i}: ${text(method.rows[i][0])}`, () => state.select(i));
  const links = (list) => (list.length
    ? element("span", {}, ...list.slice(0, 20).flatMap((i) => [to(i), " "])) : "nothing");
  const rows = [["Index", String(index)], ["Operator", text(row[0])], ["Module", text(row[1])],
    ["Line", text(row[2])], ["In the model", text(row[3])],
    ["Arguments", row[4].map(text).join("; ")], ["Result", bytes(row[7])],
    ["New weights", bytes(row[6])], ["Reads", links(row[5])], ["Read by", links(users)]];
  const was = state.oldIndex(index);
  if (method.times) {
    const before = was >= 0 && state.old.times ? ` (before ${milliseconds(state.old.times[was])})` : "";
    rows.push(["Time", milliseconds(method.times[index]) + before]);
  }
  const passes = state.touched.get(index);
  if (passes) rows.push(["Made by", passes.join(", ")]);
  if (state.old) rows.push(["Before", was >= 0 ? `instruction ${was}` : "not in the file before"]);
  content("detail").replaceChildren(facts(rows.filter(([, value]) => value !== "")));
}

function showErrors(state) {
  const { errors, rows } = state.method;
  if (!errors) {
    missing("error", "Values were not compared with eager mode. This compares them:",
      `${state.command} --eager model.py:Net -o report.html`);
    return;
  }
  const wrong = errors.filter(([, made, , allowed]) => made > allowed);
  const worst = [...errors].sort((a, b) => b[1] - a[1]).slice(0, 40);
  const olds = state.old && state.old.errors
    ? new Map(state.old.errors.map(([index, made]) => [index, made])) : null;
  const was = (index) => {
    const made = olds.get(state.oldIndex(index));
    return made === undefined ? "" : plainNumber(made);
  };
  content("error").replaceChildren(
    element("p", {}, wrong.length
      ? `${wrong.length} of ${errors.length} instructions make more error than rounding explains; the first is ${wrong[0][0]}.`
      : `None of ${errors.length} instructions makes more error than rounding explains.`),
    element("div", { class: "scroll" }, table(
      ["Instruction", ...(olds ? ["Before"] : []), "Made here", "Arrived", "Rounding"],
      worst.map(([index, made, arrived, allowed]) => [
        link(`${made > allowed ? "wrong: " : ""}${index}: ${text(rows[index][0])}`,
          () => state.select(index)),
        ...(olds ? [was(index)] : []), plainNumber(made), plainNumber(arrived), plainNumber(allowed)]))));
}

function showStages(state) {
  const { stages, left } = state.method;
  if (!stages) {
    missing("stages", "The file came without a log of its compilation. This writes one beside it:",
      "etx compile model.py:Net -o model.pte --stages");
    return;
  }
  const group = (rows, sign) => rows.map(([operator, module, line, times, found]) => [
    `${sign} ${times} ×`,
    found.length ? link(text(operator), () => state.select(found[0])) : text(operator),
    text(module), text(line)]);
  const one = ([name, equation, , was, now, removed, added]) => element("details", {},
    element("summary", {}, element("b", {}, text(name)),
      element("span", { class: "count" }, was === now ? `${now} operators` : `${was} → ${now} operators`),
      element("span", { class: "note" }, text(equation).replaceAll("``", ""))),
    table(["", "Operator", "Module", "Line"], [...group(removed, "−"), ...group(added, "+")], 4));
  const changed = stages.filter((stage) => stage[2]);
  const idle = stages.filter((stage) => !stage[2]).map(([name]) => text(name));
  const names = [...new Set(idle)].filter((name) => !changed.some((stage) => text(stage[0]) === name));
  const parts = [element("p", {}, `${changed.length} of ${stages.length} steps changed the program. ` +
    "A step opens; its operators lead to the instructions that they became."),
  ...changed.map(one), element("p", { class: "note" }, `Nothing to do for ${names.join(", ")}.`)];
  if (left.length) {
    parts.push(element("h3", {}, "Left as they are for want of little"),
      element("div", { class: "scroll" }, table(["Operator", "Pass", "Why", "Place", "Times"],
        left.map(([operator, pass, why, times, place]) =>
          [text(operator), text(pass), text(why), text(place), String(times)]), 4)));
  }
  if (state.old && state.old.stages) parts.push(stagesOfBoth(state));
  content("stages").replaceChildren(...parts);
}

function stagesOfBoth(state) {
  const counts = (stages, name) => {
    const found = new Map();
    for (const [each, , , was, now] of stages) found.set(name(each), (found.get(name(each)) || 0) + now - was);
    return found;
  };
  const [was, now] = [counts(state.old.stages, oldText), counts(state.method.stages, text)];
  const names = [...new Set([...was.keys(), ...now.keys()])]
    .filter((name) => (was.get(name) || 0) !== (now.get(name) || 0));
  const signed = (count) => (count > 0 ? `+${count}` : String(count || 0).replace("-", "−"));
  return element("div", {}, element("h3", {}, "Steps that did otherwise before"),
    names.length ? table(["Step", "Operators before", "Now"],
      names.map((name) => [name, signed(was.get(name)), signed(now.get(name))]))
      : element("p", {}, "None."));
}
