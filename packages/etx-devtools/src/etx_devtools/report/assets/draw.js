// SPDX-License-Identifier: BSD-3-Clause
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.texts[number];
const oldText = (number) => data.before.texts[number];
const byId = (id) => document.getElementById(id);
const content = (id) => byId(id).querySelector(".content");

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function link(words, act, options = {}) {
  return element("button", { type: "button", class: "link", onclick: act, ...options }, words);
}

function bytes(count) {
  const size = Math.abs(count);
  for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (size >= scale) return `${(count / scale).toPrecision(3)} ${unit}`;
  }
  return `${count} B`;
}

function milliseconds(time) {
  if (time === 0) return "0 µs";
  const size = Math.abs(time);
  if (size >= 1) return `${size >= 100 ? Math.round(time) : time.toPrecision(3)} ms`;
  return size >= 1e-3 ? `${(time * 1e3).toPrecision(3)} µs` : `${(time * 1e6).toFixed(0)} ns`;
}

function plainNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e300) return "not finite";
  return size < 1e-3 || size >= 1e6 ? value.toExponential(2) : value.toPrecision(3);
}

function change(before, after) {
  if (before === after) return "same";
  if (!before) return "new";
  const share = (100 * (after - before)) / before;
  return `${share > 0 ? "+" : "−"}${Math.abs(share).toFixed(1)} %`;
}

function largest(values, least) {
  let most = least;
  for (const value of values) most = Math.max(most, value);
  return most;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// One hue by lightness, and blue against orange for changes: told apart by all kinds of sight.
const RAMPS = {
  light: [[233, 238, 245], [183, 204, 229], [113, 156, 204], [38, 102, 168], [8, 48, 107]],
  dark: [[43, 47, 56], [41, 71, 107], [55, 107, 158], [112, 165, 214], [222, 235, 250]],
};
const LESS = { light: [8, 81, 156], dark: [120, 180, 235] };
const MORE = { light: [179, 79, 0], dark: [255, 168, 84] };

function theme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function shade(share) {
  return mixed(RAMPS[theme()], share);
}

function shadeOfChange(share) {
  const name = theme();
  return mixed([RAMPS[name][0], (share < 0 ? LESS : MORE)[name]], Math.abs(share));
}

function mixed(ramp, share) {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  const part = place - low;
  const rgb = ramp[low].map((value, i) => Math.round(value + part * (ramp[low + 1][i] - value)));
  const bright = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return { fill: `rgb(${rgb.join(",")})`, ink: bright > 140 ? "#111318" : "#fff" };
}

function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  const [across, down] = [width, height].map((size) => Math.max(1, Math.round(size * ratio)));
  canvas.style.setProperty("height", `${height}px`);
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return { pen, width, height };
}

// `words` cut to `width` at their end, or, for paths, at their beginning.
function fitted(pen, words, width, tail = false) {
  if (pen.measureText(words).width <= width) return words;
  const cut = (count) => (tail ? `…${words.slice(words.length - count)}` : `${words.slice(0, count)}…`);
  let low = 0;
  let high = Math.min(words.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? cut(low) : "";
}

function missing(id, sentence, command) {
  content(id).replaceChildren(
    element("p", {}, sentence), element("p", {}, element("code", {}, command)));
}

function table(headings, rows, texts = 1, whole = []) {
  const kind = (i) => (i >= texts ? "number" : whole.includes(i) ? "whole" : "");
  return element("table", {},
    element("thead", {}, element("tr", {}, ...headings.map((heading, i) =>
      element("th", { scope: "col", class: kind(i) }, heading)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
      element("td", { class: kind(i) }, cell))))));
}
