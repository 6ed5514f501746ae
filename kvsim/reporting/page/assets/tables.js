"use strict";

// Tables are sorted by the buttons in their heads: numbers by what they are, `data-n`, texts by the alphabet; what has
// no number stands last. Rows stay below their heading.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const first = [...table.tBodies].map((body) => [...body.rows]);
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.n === undefined ? cell.textContent.trim() : Number(cell.dataset.n);
  };
  const compare = (a, b) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  };
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      [...table.tBodies].forEach((body, place) => {
        const title = first[place].filter((row) => row.classList.contains("group"));
        const rows = first[place].filter((row) => !row.classList.contains("group"));
        if (next !== "none") {
          const sign = next === "ascending" ? 1 : -1;
          const there = (row) => typeof key(row, column) === "number" || key(row, column) !== "-";
          rows.sort((a, b) => (there(b) - there(a)) || sign * compare(key(a, column), key(b, column)));
        }
        body.append(...title, ...rows);
      });
    });
  });
}
