// SPDX-License-Identifier: Apache-2.0
// The page works without this. With it, parts are replaced as the cluster changes, the filters work
// as one types, and arrow keys go from pod to pod. Every part is an element of <main> with an id; the
// server renders it anew, so nothing about the cluster is decided here.
"use strict";

(() => {
  const main = document.getElementById("main");
  const age = document.getElementById("age");
  const form = document.querySelector("form");
  const RETRY_MS = 3000; // before an ended stream is taken up again
  const STALE_MS = 12000; // the server says that it is alive every 5 seconds
  const TYPE_MS = 200; // of silence before what was typed is searched for
  let events = null;
  let heard = Date.now(); // when the server last said something
  let known = heard; // and when that was up to date
  let live = true; // as it said, its own watches stand
  let asked = 0; // counts pages, so that a late answer is not shown

  document.documentElement.classList.add("js");

  // --- what is in the address ---

  function query() {
    const fields = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...fields]) {
      if (!value || (name === "sort" && value === "name")) fields.delete(name);
    }
    return fields;
  }

  // --- putting in what is new ---

  // The element that has the keyboard, by its part and its place in it.
  function focused() {
    const part = document.activeElement.closest("main > [id]");
    if (!part) return null;
    const all = [...part.querySelectorAll("a, summary, button")];
    return { id: part.id, label: document.activeElement.getAttribute("aria-label"),
             at: all.indexOf(document.activeElement) };
  }

  function refocus(was) {
    const part = was && document.getElementById(was.id);
    if (!part || part.contains(document.activeElement)) return;
    const all = [...part.querySelectorAll("a, summary, button")];
    const same = all.find((one) => one.getAttribute("aria-label") === was.label);
    const next = same || all[Math.min(was.at, all.length - 1)];
    if (next) next.focus({ preventScroll: true });
  }

  function parse(html) {
    const made = document.createElement("template");
    made.innerHTML = html; // the server's own, escaped there; the policy lets no script in
    return made.content;
  }

  // Tables that were scrolled stay where they were, and what was opened stays open: by what it is of.
  function nameOf(details) {
    return details.closest("td")?.querySelector("a:nth-of-type(2)")?.href ?? "";
  }

  function scrolls(root) {
    return { tops: [...root.querySelectorAll(".scroll")].map((one) => one.scrollTop),
             open: [...root.querySelectorAll("details[open]")].map(nameOf) };
  }

  function rescroll(root, was) {
    root.querySelectorAll(".scroll").forEach((one, i) => { one.scrollTop = was.tops[i] || 0; });
    root.querySelectorAll("details").forEach((one) => { one.open = was.open.includes(nameOf(one)); });
  }

  function replacePart(html) {
    const part = parse(html).firstElementChild;
    const old = part && document.getElementById(part.id);
    if (!old) return;
    const was = focused();
    const tops = scrolls(old);
    old.replaceWith(part);
    rescroll(part, tops);
    if (part.localName === "article") part.classList.add("new");
    refocus(was);
  }

  function replaceAll(html) {
    const was = focused();
    const tops = scrolls(main);
    main.replaceChildren(parse(html));
    rescroll(main, tops);
    refocus(was);
  }

  // --- how old it is ---

  function clock(at) {
    return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  }

  function showAge() {
    const stale = Date.now() - heard > STALE_MS;
    age.className = stale || !live ? "stale" : "live";
    const state = stale ? "no connection; as of " : live ? "live, as of " : "not up to date; as of ";
    const text = state + clock(new Date(known));
    if (age.textContent !== text) age.textContent = text;
  }

  function hear() {
    heard = Date.now();
    if (live) known = heard;
    showAge();
  }

  // --- the event stream ---

  function listen() {
    if (events) events.close();
    const fields = new URLSearchParams(location.search);
    fields.set("seen", main.dataset.sum);
    const own = new EventSource("events?" + fields);
    events = own;
    own.addEventListener("part", (event) => { replacePart(JSON.parse(event.data)); hear(); });
    own.addEventListener("page", (event) => { replaceAll(JSON.parse(event.data)); hear(); });
    own.addEventListener("alive", (event) => { live = JSON.parse(event.data); hear(); });
    own.onerror = () => {
      // Not by itself: it would ask with the sum of a page that is long gone.
      own.close();
      main.dataset.sum = "";
      showAge();
      setTimeout(() => { if (events === own) listen(); }, RETRY_MS);
    };
  }

  // --- filters and pages, without loading all anew ---

  async function show(fields) {
    const number = ++asked;
    const address = "./" + (fields.size ? "?" + fields : "");
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok || number !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const its = page.getElementById("main");
    main.replaceChildren(...its.childNodes);
    main.dataset.sum = its.dataset.sum;
    history.replaceState(null, "", address);
    hear();
    listen();
  }

  let typing = 0;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => show(query()), TYPE_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    show(query());
  });
  main.addEventListener("click", (event) => {
    const link = event.target.closest("#pager a");
    if (!link) return;
    event.preventDefault();
    show(new URL(link.href).searchParams);
  });

  main.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "copied";
  });

  // --- keyboard ---

  // The pod above or below: of the next row, where this one begins.
  function vertical(from, down) {
    const here = from.getBoundingClientRect();
    let best = null;
    let bestWay = Infinity;
    for (const one of main.querySelectorAll(".p, a.c")) {
      const there = one.getBoundingClientRect();
      const rows = down ? there.top - here.bottom : here.top - there.bottom;
      const aside = Math.max(0, there.left - here.left, here.left - there.right + 1);
      const way = rows + 2 * aside; // the card below comes before the one beside
      if (rows > -1 && way < bestWay) { best = one; bestWay = way; }
    }
    return best;
  }

  function horizontal(from, step) {
    const all = [...main.querySelectorAll(".p, a.c")];
    return all[all.indexOf(from) + step];
  }

  const moves = {
    ArrowRight: (from) => horizontal(from, 1),
    ArrowLeft: (from) => horizontal(from, -1),
    ArrowDown: (from) => vertical(from, true),
    ArrowUp: (from) => vertical(from, false),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = document.activeElement;
    const inField = from.matches("input, select, button");
    if (event.key === "/" && !inField) {
      event.preventDefault();
      form.elements.q.focus();
      form.elements.q.select();
    } else if (event.key === "Escape" && from === form.elements.q) {
      from.value = "";
      from.blur();
      show(query());
    } else if (from.matches(".p, .c") && moves[event.key]) {
      event.preventDefault();
      const to = moves[event.key](from);
      if (to) { to.focus(); to.scrollIntoView({ block: "nearest" }); }
    }
  });

  setInterval(showAge, 1000);
  hear();
  listen();
})();
