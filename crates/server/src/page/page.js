"use strict";
// Filters and sorts the rows of the document, and copies commands. The rows are in the document already,
// and text is only ever set by textContent, so that nothing of a cluster can become markup here.

const collator = new Intl.Collator("en", { numeric: true });
const element = (id) => document.getElementById(id);
// What a cell is sorted by, where its text would not do.
const order = (row, column) => row.cells[column].dataset.order ?? row.cells[column].textContent;
// What a cell is filtered by: pods of one row may have several states.
const valuesOf = (cell) => cell.dataset.values?.split(" ") ?? [cell.textContent];

function makeButton(label) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  return button;
}

function sort(table, header) {
  const descending = header.ariaSort === "ascending";
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.ariaSort = descending ? "descending" : "ascending";
  const column = header.cellIndex;
  const keyed = Array.from(table.tBodies[0].rows, (row) => [order(row, column), row]);
  keyed.sort(([a], [b]) => (descending ? collator.compare(b, a) : collator.compare(a, b)));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const header of table.tHead.rows[0].cells) {
    const button = makeButton(header.textContent);
    button.addEventListener("click", () => sort(table, header));
    header.replaceChildren(button);
  }
}

function filters(form, table) {
  const columns = new Map();
  for (const header of table.tHead.rows[0].cells) {
    if (header.dataset.column) columns.set(header.dataset.column, header.cellIndex);
  }
  const textOf = (row) => Array.from(row.cells, (cell) => cell.textContent.toLowerCase()).join(" ");
  const rows = Array.from(table.tBodies[0].rows, (row) => {
    let text;
    return {
      row,
      // Read once, and not before it is needed: some thousand rows are searched at each key.
      has: (word) => (text ??= textOf(row)).includes(word),
      values: (name) => valuesOf(row.cells[columns.get(name)]),
      command: row.querySelector(".command"),
    };
  });
  const chosen = () =>
    Array.from(columns.keys(), (name) => [name, form.elements.namedItem(name)?.value])
      .filter(([, value]) => value)
      .map(([name, value]) => [name, name === "state" ? value.split(" ") : [value]]);
  const visible = () => rows.filter(({ row }) => row.checkVisibility());
  const showAll = element("show-all");

  function count() {
    const shown = visible().length;
    const matching = rows.filter(({ row }) => !row.hidden).length;
    element("shown").value = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows shown`;
    showAll.hidden = shown === matching;
    showAll.textContent = `Show all ${matching.toLocaleString("en")}`;
  }

  function apply() {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = chosen();
    for (const { row, has, values } of rows) {
      const hidden = !(
        words.every(has) &&
        wanted.every(([name, some]) => values(name).some((value) => some.includes(value)))
      );
      // Elements that stay as they are cost the browser nothing.
      if (row.hidden !== hidden) row.hidden = hidden;
    }
    count();
  }

  // The address keeps the filters, so that a view can be linked and reloaded.
  function remember() {
    const kept = [...new FormData(form)].filter(([, value]) => value);
    history.replaceState(null, "", "#" + new URLSearchParams(kept));
  }

  function recall() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const control = form.elements.namedItem(name);
      if (control) control.value = value;
    }
    apply();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => (apply(), remember()));
  // Fields have their first values only after the event.
  form.addEventListener("reset", () => setTimeout(() => (apply(), remember())));
  addEventListener("hashchange", recall);
  showAll.addEventListener("click", () => (table.classList.add("all"), count()));
  form.hidden = false;
  recall();
  return { rows, visible };
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = `Copied: ${text.split("\n").join("; ")}`;
  } catch {
    // No permission, or an address that is neither https nor of this machine.
    const shown = document.createElement("code");
    shown.textContent = text;
    said.replaceChildren("Copy the selected text: ", shown);
    getSelection().selectAllChildren(shown);
  }
}

function copying({ rows, visible }, table) {
  const said = element("said");
  for (const { row, command } of rows) {
    if (!command) continue;
    // The style adds its text, which is none of the row's.
    const button = makeButton("");
    button.className = "copy";
    button.ariaLabel = `Copy ${command.textContent}`;
    command.after(button);
  }
  table.addEventListener("click", ({ target }) => {
    const button = target.closest(".copy");
    if (button) copy(button.previousElementSibling.textContent, said);
  });
  element("copy-all").addEventListener("click", () => {
    // Languages of one workload have the same command.
    const commands = new Set(visible().flatMap(({ command }) => command?.textContent ?? []));
    if (commands.size) copy([...commands].join("\n"), said);
    else said.textContent = "No row that is shown has a command.";
  });
}

// A page in use stays, so that no place and no selection is lost. Filters are in the address.
function isInUse() {
  const regions = Array.from(document.querySelectorAll(".scroll"));
  const isScrolled = regions.some((region) => region.scrollTop || region.scrollLeft);
  const hasFocus = document.activeElement !== document.body;
  const isWanted = element("reload").firstElementChild.checked;
  return document.hidden || hasFocus || isScrolled || !getSelection().isCollapsed || !isWanted;
}

// Returns whether the page is loaded again.
function reload() {
  const isIdle = !isInUse();
  if (isIdle) location.reload();
  return isIdle;
}

// A file stays as it is.
if (location.protocol !== "file:") {
  element("reload").hidden = false;
  setInterval(reload, 60_000);
}

const form = element("filters");
if (form) {
  const table = element("rows");
  copying(filters(form, table), table);
}
