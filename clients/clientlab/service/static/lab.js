// Keeps "Now", "Standings" and "Workers" up to date, and the key of the buttons; all text goes in as text.
"use strict";

const part = (name) => document.querySelector(`[data-state="${name}"]`);
let shown = null;
let standing = null; // the trials that the standings on the page count: run and number
let leaders = null;

// null where the user's settings forbid it: then the key is lost with the page.
function storage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

// The key comes after the "#" of the link in the lab's log. It is kept for this host and port, and written into the forms.
function unlock() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    // Another site may link here with any key: it must not take the place of one that worked.
    if (!storage()?.getItem("key")) storage()?.setItem("key", given);
    history.replaceState(null, "", location.pathname);
  } else if (part("wrong-key")) {
    storage()?.removeItem("key");
  }
  const key = given || storage()?.getItem("key") || null;
  for (const field of document.querySelectorAll('input[name="key"]')) field.value = key ?? "";
  for (const shown of document.querySelectorAll(".key")) shown.hidden = key !== null;
}

// Who types the key once need not type it again.
function remember(event) {
  const field = event.target.elements.namedItem("key");
  if (field?.value) storage()?.setItem("key", field.value);
}

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const cell = (text) => element("td", text);

function rect(x, y, width, height, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of Object.entries({ x, y, width, height, ...attributes })) made.setAttribute(key, value);
  return made;
}

function bar(row, scale) {
  const made = cell("");
  if (row.value === null) return made;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const attributes = { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  const place = (value) => Math.min((100 * value) / scale, 100);
  svg.append(rect(0, 0, place(row.value), 8, { fill: row.colour }));
  if (row.interval) {
    const [low, high] = row.interval.map(place);
    svg.append(rect(low, 3.2, high - low, 1.6, { class: "interval" }));
  }
  made.append(svg);
  return made;
}

function ranked(row, group, planned) {
  const made = element("tr");
  made.append(element("th", row.name, { scope: "row" }), cell(row.concurrency), bar(row, group.scale));
  made.append(cell(row.text), cell(row.interval_text), cell(row.word));
  made.append(cell(planned ? `${row.rounds} of ${planned}` : row.rounds), cell(row.errors));
  return made;
}

function table(group, planned) {
  const made = element("table", "", { class: "standings" });
  const head = element("tr");
  for (const name of ["arm", "c", "", group.figure, "95 % interval", "beside the fastest", "rounds", "errors"]) {
    head.append(element("th", name, { scope: "col" }));
  }
  head.children[2].append(element("span", "bar", { class: "unseen" }));
  const [top, body] = [element("thead"), element("tbody")];
  top.append(head);
  body.append(...group.rows.map((row) => ranked(row, group, planned)));
  made.append(element("caption", group.title), top, body);
  return made;
}

// Screen readers hear of a new leader, and not of every trial.
function announce(groups) {
  const now = groups.map((group) => group.rows[0].name).join(", ");
  if (leaders !== null && now !== leaders) part("leader").textContent = `Ahead now: ${now}`;
  leaders = now;
}

async function rank(state) {
  const now = `${state.run} ${state.done + state.failed}`;
  if (now === standing) return;
  const found = await (await fetch("/api/standings")).json();
  const tables = found.groups.map((group) => table(group, found.rounds_planned));
  part("standings").replaceChildren(...(tables.length ? tables : [element("p", "No trial has ended yet.")]));
  announce(found.groups);
  standing = `${found.run} ${found.ended}`;
}

function shard(found) {
  if (!found) return "";
  return `${found.index + 1} of ${found.of}, ${found.phase}, ${found.finished.toLocaleString("en")} requests`;
}

function strategies(worker) {
  const more = worker.more_strategies ? ` and ${worker.more_strategies} more` : "";
  return `${worker.strategies.join(", ")}${more}`;
}

function show(state) {
  const over = state.done + state.failed;
  part("run").textContent = state.run ?? "no run yet";
  part("counts").textContent = `${over} of ${state.planned} trials, ${state.failed} failed`;
  part("progress").max = Math.max(state.planned, 1);
  part("progress").value = over;
  const far = [state.trial, `${state.finished.toLocaleString("en")} requests`, state.shards].filter(Boolean);
  part("trial").textContent = state.trial ? far.join(" · ") : "";
  part("message").textContent = state.message;
  part("refusals").replaceChildren(...state.refusals.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
  part("workers").replaceChildren(...state.workers.map((worker) => {
    const row = document.createElement("tr");
    row.append(cell(worker.host), cell(strategies(worker)), cell(worker.state), cell(shard(worker.shard)));
    return row;
  }));
}

async function look() {
  try {
    const state = await (await fetch("/api/state")).json();
    // A run has begun or ended: the list of runs and the buttons are other ones.
    if (shown !== null && (shown.measuring !== state.measuring || shown.run !== state.run)) location.reload();
    shown = state;
    show(state);
    await rank(state);
  } catch (error) {
    part("message").textContent = `the lab does not answer: ${error.message}`;
  }
  setTimeout(look, 1000);
}

addEventListener("hashchange", unlock); // the link was opened where the page is open already
addEventListener("submit", remember);
unlock();
look();
