// SPDX-License-Identifier: BSD-3-Clause
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.texts[number];
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

function bytes(count) {
  for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (count >= scale) return `${(count / scale).toPrecision(3)} ${unit}`;
  }
  return `${count} B`;
}

function milliseconds(time) {
  return time >= 1 ? `${time.toPrecision(3)} ms` : `${(time * 1000).toPrecision(3)} µs`;
}

function largest(values, least) {
  return values.reduce((most, value) => Math.max(most, value), least);
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// From blue over grey to yellow: told apart with any kind of colour vision, and by lightness.
const RAMP = [[0, 34, 78], [60, 77, 110], [124, 123, 120], [188, 175, 111], [254, 232, 56]];

function shade(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  const part = place - low;
  const mixed = RAMP[low].map((value, i) => Math.round(value + part * (RAMP[low + 1][i] - value)));
  return { fill: `rgb(${mixed.join(",")})`, ink: share > 0.45 ? "#000" : "#fff" };
}

function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  canvas.style.setProperty("height", `${height}px`);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return { pen, width, height };
}

function fitted(pen, words, width) {
  if (pen.measureText(words).width <= width) return words;
  let low = 0;
  let high = Math.min(words.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${words.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${words.slice(0, low)}…` : "";
}

function missing(id, sentence, command) {
  content(id).replaceChildren(
    element("p", {}, sentence), element("p", {}, element("code", {}, command)));
}
