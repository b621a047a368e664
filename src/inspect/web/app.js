// SPDX-License-Identifier: Apache-2.0
// Draws the rows that the server answers, and asks again each second whether they are others by now. A
// part of the page is an element of <main> with an id; it is drawn again when its rows are not as they
// were. Words and sums of the cluster are the server's. Every text is put in as text, never as HTML.
"use strict";

const main = document.getElementById("main");
const age = document.getElementById("age");
const form = document.querySelector("form");
const ASK_MS = 1000;
const OWN_MS = 10000; // where each question lists the pods
const WORDS_MS = 3000; // what the API server says of a pod or a node, which no number counts
const PAUSE_MAX_MS = 3000; // after an answer that took long
const STALE_MS = 12000;
const TIMEOUT_MS = 30000;
const TYPE_MS = 200; // of silence before what was typed is searched for
const HUES = 10;
const CELLS_OF_GROUP = 250; // nodes under one heading of the map
const CELLS_MAX = 4000; // GPUs of the map; above so many a cell is a node
const WIDE = 0.09; // of a bar: room for a name

let rows = {}; // as last answered
let heard = Date.now(); // when the server last answered
let known = 0; // when what is shown was up to date
let drawn = 0; // when rows were last asked for that came
let asked = 0; // counts questions, so that a late answer is not shown
let timer = 0;

// --- elements ---

// h("p.soft", {title: "…"}, "text", element, [more]): what is false or null is left out.
function h(what, ...parts) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const part of parts.flat(Infinity)) {
    if (part instanceof Node || typeof part === "string" || typeof part === "number") made.append(part);
    else if (part) Object.entries(part).forEach(([name, value]) => made.setAttribute(name, value));
  }
  return made;
}

const copyOf = (id) => document.getElementById(id).content.cloneNode(true);

// A copy of the template in which "{name}" is that value, as text; an element with data-if is there where that one is set.
function fill(id, values) {
  const made = copyOf(id), texts = document.createTreeWalker(made, NodeFilter.SHOW_TEXT);
  made.querySelectorAll("[data-if]").forEach((one) => { if (!values[one.dataset.if]) one.remove(); });
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/{(\w+)}/g, (_, name) => values[name].toLocaleString("en"));
  return made;
}

const fields = () => new URLSearchParams(location.search);
const address = (to) => "?" + new URLSearchParams(to);
const link = (to, text) => h("a", { href: address(to) }, text);
const toNode = (name) => link({ node: name }, name);
const toSpace = (name) => link({ namespace: name }, name);
const count = (number) => number.toLocaleString("en");
const ratio = (part) => count(part.usedGPU) + "/" + count(part.totalGPU);
const nameOf = (pod) => pod.namespace + "/" + pod.name;
const memory = (bytes, unitMiB) => (bytes / 2 ** 20 / (unitMiB || 1024)).toFixed(1);
const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";

function wide(element, share) {
  element.style.width = Math.min(100, 100 * share) + "%";
  return element;
}

const more = (all, shown) => all > shown && h("p", "and " + count(all - shown) + " more");

// --- tables, as the command prints them ---

// A cell leads to what it names, by its column's head. Pods of one owner that are alike are called as the owner, a pod that is its
// own owner as "Pod/NAME".
const LEADS = { NAMESPACE: "namespace", POD: "pod", OWNER: "owner", NODE: "node", CLOSEST: "node" };

function lead(head, text, space) {
  const [kind, name] = text.split("/");
  const view = text === "-" ? null : head === "POD" && name ? "owner" : head === "OWNER" && kind === "Pod" ? "pod" : LEADS[head];
  if (!view) return text.replace(/(?<=^\d+)(?=(\d{3})+(\.\d)?$)/g, ","); // of a number, not of a name that ends in one
  return link({ [view]: ["pod", "owner"].includes(view) ? space + "/" + (view === "pod" && name || text) : text }, text);
}

function drawTable({ id, title, columns, rows: lines, count: all }) {
  const space = columns.findIndex(({ head }) => head === "NAMESPACE");
  const cell = (tag, i, content) => h(tag + (columns[i].number ? ".num" : "") + (content === "-" ? ".none" : ""), { "data-head": columns[i].head }, content);
  return h("section.rows", { id, "aria-label": title }, h("h2", title), lines.length > 0 && h("div.scroll", h("table",
    h("thead", h("tr", columns.map(({ head }, i) => cell("th", i, head)))),
    h("tbody", lines.map((line) => h("tr", line.map((text, i) => cell("td", i, lead(columns[i].head, text, line[space])))))))),
  !id.startsWith("top") && more(all, lines.length));
}

// The largest namespaces have colours, by name: they keep them as their sums change.
function hue({ namespace }) {
  const at = rows.namespaces.slice(0, HUES).sort().indexOf(namespace);
  return "n" + (at < 0 ? HUES : at);
}

// --- sums ---

// For the templates. With a filter what is used is of the pods that match: other pods of their nodes are not in it.
function sums() {
  const { total, meant, narrowed, unit, askedCount, answeredCount } = rows, silent = askedCount - answeredCount;
  return { ...total, unit, percent: Math.floor(100 * total.usedGPU / (total.totalGPU || 1)), which: narrowed ? ", of the nodes that match" : "",
    stranded: total.strandedGPU !== undefined && count(total.strandedGPU), matching: narrowed && count(meant.usedGPU),
    used: narrowed ? meant.podCount > 0 && memory(meant.usedBytes) : total.usedBytes !== undefined && memory(total.usedBytes),
    users: narrowed ? ", by " + count(meant.podCount) + " of these pods" : silent ? "; " + silent + " of " + askedCount + " nodes do not say" : "" };
}

function share(space) {
  return h("div", h("i.sw." + hue({ namespace: space.name })), toSpace(space.name), " ", h("b", count(space.usedGPU)));
}

function drawTotals() {
  const { total, unit, shares, shareCount } = rows, figures = fill("sums", sums());
  wide(figures.querySelector(".total i"), total.usedGPU / (total.totalGPU || 1));
  return h("section", { "aria-label": "Totals" }, figures,
  total.wouldFit.length > 0 && h("div.fits", h("span", "Would fit now, on one GPU each"),
    total.wouldFit.map((fit) => h("div", h("b", count(fit.podCount)), " of " + fit.requestedGPU + " " + unit))),
  shares.length > 0 && h("div.fits", h("span", "By namespace"), shares.slice(0, HUES).map(share), shareCount > HUES &&
    h("details", h("summary", count(shareCount - HUES) + " more"), shares.slice(HUES).map(share), more(shareCount, shares.length))));
}

// --- the map: a cell for each GPU, or for each node with a letter for each GPU ---

const BARS = "\u00b7\u2581\u2581\u2582\u2583\u2584\u2585\u2585\u2586\u2587\u2588";
const isLarge = () => rows.total?.gpuCount > CELLS_MAX;
const level = (used, total) => Math.min(10, Math.ceil(10 * used / (total || 1)));

function cell(to, label, used, total, look, note, bars) {
  return h("a.c.l" + level(used, total) + look, { href: address(to),
    "aria-label": label + ": " + count(used) + "/" + count(total) + note }, bars);
}

// A node: see put_cells() of web_rows.c.
function cellsOf([, name, used, total, free, stranded, , , ...gpus]) {
  const looks = { "!": [".full", ", overcommitted"], x: [".off", ", accepts no new pods"],
    "": stranded ? [2 * stranded > free ? ".str" : "", ", " + count(stranded) + " stranded on the node"] : ["", ""] };
  if (!isLarge()) return gpus.map(([idx, given, size, state = ""]) => cell({ node: name, gpu: idx }, name + " GPU" + idx, given, size, ...looks[state]));
  const [look, words] = looks[["!", ""].find((state) => gpus.some(([, , , own = ""]) => own === state)) ?? "x"];
  return cell({ node: name }, name, used, total, look + ".n", words,
    gpus.map(([, given, size, state]) => (state === "x" ? "\u00d7" : state ?? BARS[level(given, size)])).join(""));
}

// What is not free, of a node or a model.
function facts(part) {
  const words = { strandedGPU: "stranded", unusableGPU: "not usable", overcommittedGPU: "overcommitted" };
  return Object.entries(words).filter(([key]) => part[key]).map(([key, text]) => ", " + count(part[key]) + " " + text);
}

const modelsOf = (map) => [...Map.groupBy(map, ([model]) => model)].sort(([a], [b]) => (a < b ? -1 : 1));

function drawModel([name, all]) {
  const groups = [], sum = (of) => all.reduce((before, node) => before + of(node), 0);
  const [used, total, free, strandedGPU, unusableGPU, overcommittedGPU] = [2, 3, 4, 5, 6, 7].map((at) => sum((node) => node[at]));
  for (let at = 0; at < all.length; at += CELLS_OF_GROUP) groups.push(all.slice(at, at + CELLS_OF_GROUP));
  return h("section.map", h("h2", name || "model not known", " ", h("small",
    count(all.length) + " nodes, " + count(sum((node) => node.length - 8)) + " GPUs: " + count(used) + " of " + count(total) + " " + rows.unit +
    " allocated, " + count(free) + " free", facts({ strandedGPU, unusableGPU, overcommittedGPU }))),
  groups.map((nodes) => [groups.length > 1 && h("h3", nodes[0][1] + " to " + nodes.at(-1)[1]), h("div.cells", nodes.map(cellsOf))]));
}

const drawMapLegend = (perNode) => h("p.legend", copyOf(perNode ? "cells-of-nodes" : "cells-of-gpus"));

// --- a card: a node, a bar for each of its GPUs, a block for each pod ---

const unitOf = (node) => node.unit || rows.unit;
const unitMiBOf = (node) => (unitOf(node).endsWith("MiB") ? parseInt(unitOf(node)) || 1 : 1024);

function tip(node, pod) {
  const size = unitMiBOf(node);
  return nameOf(pod) + ": " + count(pod.usedGPU) + " " + unitOf(node) +
    (pod.gpuCount > 1 ? " on each of " + pod.gpuCount + " GPUs" : "") +
    (pod.usedBytes === undefined ? "" : ", uses " + memory(pod.usedBytes, size) + ", peak " + memory(pod.peakBytes, size)) +
    (pod.excessBytes ? ": more than its request" : "") + (pod.createdUnix ? ", since " + time(pod.createdUnix) : "");
}

function block(node, pod, part) {
  const hasRoom = part >= WIDE;
  const stripe = pod.usedBytes !== undefined &&
    wide(h(pod.excessBytes ? "s.over" : "s"), pod.usedBytes / 2 ** 20 / unitMiBOf(node) / (pod.usedGPU || 1));
  return wide(h("a.p." + hue(pod) + (pod.matches === false ? ".dim" : "") + (stripe && !hasRoom ? ".bare" : ""),
    { href: address({ pod: nameOf(pod) }), "aria-label": tip(node, pod) }, hasRoom && pod.name, stripe), part);
}

const isLimited = (gpu) => rows.limits[gpu.enforced];
const limitOf = (gpu) => isLimited(gpu) && h(gpu.enforced === "dmem" ? "em.good" : "em", { title: isLimited(gpu) }, gpu.enforced);
const isAlike = (node) => node.devs.every((gpu) => gpu.enforced === node.devs[0].enforced);

function bar(node, gpu) {
  const whole = Math.max(gpu.usedGPU, gpu.totalGPU) || 1;
  const words = [!gpu.healthy && h("em.bad", "unhealthy"), !gpu.schedulable && h("em", "cordoned"),
    gpu.overcommitted && h("em.bad", "overcommitted"), !isAlike(node) && limitOf(gpu)].filter(Boolean);
  const used = gpu.usedBytes === undefined ? "" : memory(gpu.usedBytes, unitMiBOf(node)) + " " + unitOf(node) + " in use";
  return h("div.g", h("b", link({ node: node.name, gpu: gpu.id }, "GPU" + gpu.id)),
    h(gpu.usable ? "div.bar" : "div.bar.off", { title: [gpu.model, used].filter(Boolean).join(", ") },
      gpu.pods.map((pod) => block(node, pod, pod.usedGPU / whole))),
    h("span", ratio(gpu)), words.length > 0 && h("div.words", words));
}

function drawCard(node) {
  const { model = "", invalidIndexPods: lost } = node;
  return h("article", h("h3", toNode(node.name), " ", !node.ready && h("em.bad", "not ready"), node.unschedulable && h("em", "cordoned"),
    node.devs.length > 0 && isAlike(node) && limitOf(node.devs[0]), " ", h("b", ratio(node))),
  h("p", model + (model && "; ") + count(node.freeGPU) + " " + unitOf(node) + " free",
    node.freeGPU > 0 && ", largest " + count(node.largestFreeGPU), facts(node)),
  node.devs.map((gpu) => bar(node, gpu)),
  lost.length > 0 && h("div.g.pend", h("b", "?"), h("div.bar", lost.map((pod) => block(node, pod, 0.25))), h("span", "GPU not known")));
}

// What the cards' signs mean: those that are there.
function drawLegend([nodes]) {
  const gpus = nodes.flatMap((node) => node.devs);
  const limits = [...new Set(gpus.map(isLimited))].filter(Boolean);
  return h("p.legend", "A block is a pod, as wide as its memory, in its namespace's colour",
    gpus.some((gpu) => gpu.pods.some((pod) => pod.usedBytes !== undefined)) && copyOf("uses"),
    gpus.some((gpu) => !gpu.usable) && copyOf("takes-none"), limits.map((text) => "; " + text));
}

// --- views of one thing ---

// Whose it is, and where.
function placeIn({ kind, namespace, owner, nodes: [node] }) {
  if (kind === "node") return [node.address, !node.ready && "the kubelet does not respond", node.unschedulable && "no new pods"].filter(Boolean).join("; ");
  return kind !== "namespace" && ["of namespace ", toSpace(namespace), owner && [", of ", link({ owner: namespace + "/" + owner }, owner)],
    kind === "pod" && node && [", on node ", toNode(node.name)]];
}

// A command has a name only where a shell takes it as it stands: an owner's is its author's.
function drawView() {
  const { kind, name, gpu, why, events } = rows;
  const title = gpu === undefined ? kind[0].toUpperCase() + kind.slice(1) + " " + name : ["GPU" + gpu + " of node ", toNode(name)];
  return h("section", h("p", link({}, "Whole cluster")), h("h2", title), h("p", placeIn(rows)),
    rows.total && fill("sums-of-view", sums()), why && h("pre", why), /^[\w.:/-]+$/.test(name) && fill("commands-" + kind, rows),
    events && [h("h3", "Events of gpushare"), h("pre.events", events)]);
}

function drawMissing() {
  const { kind, name, namespace } = rows, words = { node: "node, or no such GPU on it,", owner: "pod with GPU memory of owner" };
  return h("section", { role: "status" }, fill("missing", { name, what: words[kind] ?? kind + " with GPU memory",
    where: ["owner", "pod"].includes(kind) ? " in namespace " + namespace : "" }));
}

// --- around them ---

function drawPager([page, pages, shown, waiting]) {
  const to = (words, number) => [link({ ...Object.fromEntries(fields()), page: number }, words), " "];
  const nothing = !shown && rows.kind === "all" && rows.narrowed && [
    waiting ? "No node matches. " : "Nothing matches: no node, and no pod. ", link({}, "Show all")];
  return h("nav", { "aria-label": "Pages" }, nothing, pages > 1 && ["Cards of nodes, page " + count(page) + " of " + count(pages) + ": ",
    page > 1 && [to("first", 1), to("previous", page - 1)], page < pages && [to("next", page + 1), to("last", pages)]]);
}

const drawLost = (words) => h("p", { role: "status" }, words && (rows.own ? words : "Not up to date: " + words));

// Each part: its id, how it is drawn, of which rows: of all that its function reads, beside what put() looks at.
function partsOf({ found, kind, nodes, total, pending, ...doc }) {
  const parts = [["lost", drawLost, doc.lost]];
  if (doc.own) parts.push(["own", (text) => h("pre", text), doc.own]);
  else if (!found) parts.push(["view", drawMissing, [kind, doc.namespace, doc.name]]);
  if (!found) return parts;
  if (total) parts.push(["pager", drawPager, [doc.page, doc.pages, nodes.length, pending.podCount]]);
  if (kind === "all") parts.push(["totals", drawTotals, [total, doc.meant, doc.askedCount, doc.answeredCount, doc.shares, doc.shareCount]]);
  else parts.push(["view", drawView, [nodes[0], doc.owner, doc.why, doc.events, total, doc.meant]]);
  const tables = doc.tables.filter(({ id, count: all }) => all || id === "waiting"), isTop = ({ id }) => id.startsWith("top");
  for (const table of tables) if (!isTop(table)) parts.push([table.id, drawTable, table]);
  if (tables.some(isTop)) parts.push(["top", (tops) => h("div", tops.map(drawTable)), tables.filter(isTop)]);
  if (doc.map) parts.push(["map", drawMapLegend, isLarge()]);
  modelsOf(doc.map ?? []).forEach((model, i) => parts.push(["map-" + i, drawModel, model]));
  if (nodes.length) parts.push(["legend", drawLegend, [nodes]]);
  return parts.concat(nodes.map((node) => ["n-" + node.name, drawCard, node]));
}

// --- putting in what is new ---

const stopsOf = (part) => [...part.querySelectorAll("a, summary, button")];

// A table that was scrolled stays where it was, and what was opened stays open.
function replace(old, made) {
  old.after(made);
  for (const [what, state] of [[".scroll", "scrollTop"], ["details", "open"]]) {
    const from = old.querySelector(what), to = made.querySelector(what);
    if (from && to) to[state] = from[state];
  }
  old.remove();
  made.classList.add("new");
}

// The keyboard stays where it was: at the same element, else at the same place of the part.
function put(parts) {
  const from = document.activeElement, part = from.closest("main > [id]"), at = part && stopsOf(part).indexOf(from);
  const around = JSON.stringify([rows.namespaces?.slice(0, HUES), rows.unit, isLarge(), location.search]);
  parts.forEach(([id, draw, of], i) => {
    const key = around + JSON.stringify(of), old = main.children.namedItem(id);
    const element = old?.key === key ? old : Object.assign(draw(of), { id, key });
    if (old && old !== element) replace(old, element);
    if (main.children[i] !== element) main.insertBefore(element, main.children[i] ?? null);
  });
  while (main.children[parts.length]) main.lastChild.remove();
  const now = part && document.activeElement !== from && main.children.namedItem(part.id), stops = now ? stopsOf(now) : [];
  (stops.find((one) => one.isEqualNode(from)) ?? stops[Math.min(at, stops.length - 1)])?.focus({ preventScroll: true });
}

// What is chosen is among the choices, whatever the cluster has: the next change of the form keeps it.
function choose(select, values, chosen) {
  if (document.activeElement === select) return;
  select.replaceChildren(...[...new Set(["", ...values, chosen])].map((value) => h("option", { value }, value || "all")));
  select.value = chosen;
}

function show(doc) {
  const chosen = fields();
  rows = doc;
  document.querySelector(".server").textContent = doc.server;
  form.hidden = Boolean(doc.own);
  if (!doc.own) {
    choose(form.elements.ns, doc.namespaces, chosen.get("ns") ?? chosen.get("namespace") ?? "");
    choose(form.elements.model, doc.models, chosen.get("model") ?? "");
  }
  put(partsOf(doc));
  const title = main.querySelector("#view h2");
  document.title = (title ? title.textContent + " - " : "") + "gpushare: " + doc.server;
}

// --- asking, and how old it is ---

function showAge() {
  const stale = Date.now() - heard > STALE_MS, live = !stale && (!rows.lost || rows.own);
  if (!known) return;
  if (live) known = heard;
  const state = stale ? "no connection; as of " : live ? "live, as of " : "not up to date; as of ";
  const text = state + new Date(known).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  age.className = live ? "live" : "stale";
  if (age.textContent !== text) age.textContent = text;
}

async function ask() {
  const number = ++asked, begun = Date.now(), query = fields();
  clearTimeout(timer);
  if (rows.version && (rows.events === undefined || begun - drawn < WORDS_MS)) query.set("seen", rows.version);
  const answer = await fetch("rows?" + query, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(() => ({}));
  const doc = answer.status === 200 && await answer.json().catch(() => null); // cut off: as if not answered
  if (number !== asked) return;
  if (doc || answer.status === 204) {
    heard = Date.now();
    known ||= heard;
  }
  timer = setTimeout(ask, Math.max((doc || rows).own ? OWN_MS : ASK_MS, Math.min(4 * (Date.now() - begun), PAUSE_MAX_MS)));
  if (doc) { drawn = begun; show(doc); }
  showAge();
}

// --- filters and pages, without a reload ---

function go() {
  history.replaceState(null, "", address([...new FormData(form)].filter(([, value]) => value)));
  rows.version = 0; // of other rows, which no answer is like
  ask();
}

let typing = 0;
form.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(go, TYPE_MS);
});
main.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  button.textContent = "copied";
});

// --- keyboard ---

// The pod above or below: of the next row, where this one begins.
function vertical(from, all, down) {
  const here = from.getBoundingClientRect();
  let best = null, bestWay = Infinity;
  for (const one of all) {
    const there = one.getBoundingClientRect();
    const lines = down ? there.top - here.bottom : here.top - there.bottom;
    const aside = Math.max(0, there.left - here.left, here.left - there.right + 1);
    const way = lines + 2 * aside; // the card below comes before the one beside
    if (lines > -1 && way < bestWay) { best = one; bestWay = way; }
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const from = document.activeElement;
  if (event.key === "/" && !from.matches("input, select, button")) {
    event.preventDefault();
    form.elements.q.focus();
    form.elements.q.select();
  } else if (event.key === "Escape" && from === form.elements.q) {
    from.value = "";
    from.blur();
    go();
  } else if (from.matches(".p, .c") && event.key.startsWith("Arrow")) {
    event.preventDefault();
    const all = [...main.querySelectorAll(".p, a.c")], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    (step ? all[all.indexOf(from) + step] : vertical(from, all, event.key === "ArrowDown"))?.focus();
  }
});

for (const name of ["q", "sort"]) form.elements[name].value = fields().get(name) ?? "";
setInterval(showAge, 1000);
ask();
