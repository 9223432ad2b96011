"use strict";
// Filters and sorts rows that are there already: without this script, the page shows all of them.
const table = document.getElementById("workloads");
const body = table.tBodies[0];
const rows = Array.from(body.rows, (row) => ({
    row,
    text: row.textContent.toLowerCase(),
    states: row.dataset.states.split(" "),
}));
const form = document.getElementById("filters");
const shown = document.getElementById("shown");

function matches({ row, text, states }) {
    const { search, state, namespace, language, cluster } = form.elements;
    const isState = state.value === "outdated"
        ? states.includes("stale") || states.includes("missed")
        : !state.value || states.includes(state.value);
    return isState
        && text.includes(search.value.trim().toLowerCase())
        && (!namespace.value || row.dataset.namespace === namespace.value)
        && (!language.value || row.dataset.language === language.value)
        && (!cluster || !cluster.value || row.dataset.cluster === cluster.value);
}

function filter() {
    let count = 0;
    for (const one of rows) {
        one.row.hidden = !matches(one);
        count += one.row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
}

function sort(header) {
    const isAscending = header.getAttribute("aria-sort") !== "ascending";
    for (const other of header.parentElement.cells) {
        other.removeAttribute("aria-sort");
    }
    header.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const key = ({ row }) => {
        const cell = row.cells[header.cellIndex];
        return cell.dataset.sort ?? cell.textContent;
    };
    const compare = new Intl.Collator(undefined, { numeric: true }).compare;
    rows.sort((one, other) => (isAscending ? 1 : -1) * compare(key(one), key(other)));
    body.append(...rows.map(({ row }) => row));
}

for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
filter();
