// Keeps "Now" and "Workers" up to date; all text goes in as text.
"use strict";

const part = (name) => document.querySelector(`[data-state="${name}"]`);
let shown = null;

function cell(text) {
  const made = document.createElement("td");
  made.textContent = text;
  return made;
}

function show(state) {
  const over = state.done + state.failed;
  part("run").textContent = state.run ?? "no run yet";
  part("counts").textContent = `${over} of ${state.planned} trials, ${state.failed} failed`;
  part("progress").max = Math.max(state.planned, 1);
  part("progress").value = over;
  part("trial").textContent = state.trial ? `${state.trial} · ${state.finished.toLocaleString("en")} requests` : "";
  part("message").textContent = state.message;
  part("refusals").replaceChildren(...state.refusals.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
  part("workers").replaceChildren(...state.workers.map((worker) => {
    const row = document.createElement("tr");
    row.append(cell(worker.host), cell(worker.strategies.join(", ")), cell(worker.state));
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
  } catch (error) {
    part("message").textContent = `the lab does not answer: ${error.message}`;
  }
  setTimeout(look, 1000);
}

look();
