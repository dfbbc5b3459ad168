// The tooltip that all charts share, and tables that sort. Text is set as text, never as markup.

const tooltip = (() => {
  const box = document.createElement("div");
  box.className = "tooltip";
  box.setAttribute("role", "status");
  box.hidden = true;
  document.body.append(box);
  return {
    // lines: [text, colour number or null] each; x, y: where the pointer is in the window.
    show(lines, x, y) {
      box.replaceChildren(...lines.map(([text, color]) => {
        const line = document.createElement("div");
        if (color !== null && color !== undefined) {
          const dot = document.createElement("i");
          dot.style.background = `var(--c${color})`;
          line.append(dot);
        }
        line.append(document.createTextNode(text));
        return line;
      }));
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      const room = document.documentElement.clientWidth - 8;
      const left = x + 16 + width > room ? Math.max(8, x - 16 - width) : x + 16;
      const top = Math.min(Math.max(8, y - height / 2), window.innerHeight - height - 8);
      box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
    hide() { box.hidden = true; },
  };
})();

const readData = (element) => JSON.parse(element.querySelector('script[type="application/json"]').textContent);

const short = (value) => Number.isInteger(value) ? value.toLocaleString("en")
  : value.toLocaleString("en", { maximumSignificantDigits: 4 });

window.addEventListener("scroll", tooltip.hide, { passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tooltip.hide(); });

for (const element of document.querySelectorAll("[data-tip]")) {
  element.addEventListener("pointermove", (event) => tooltip.show([[element.dataset.tip]], event.clientX, event.clientY));
  element.addEventListener("pointerleave", tooltip.hide);
}

// Numbers compare as numbers, texts as a reader would; gaps come last whichever way the column runs.
function compareCells(a, b, direction) {
  const gaps = ("gap" in a.dataset) - ("gap" in b.dataset);
  if (gaps) return gaps;
  if ("sort" in a.dataset && "sort" in b.dataset) return direction * (Number(a.dataset.sort) - Number(b.dataset.sort));
  return direction * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => {
    // Best first for numbers, A to Z for names; the second click turns it round, the third restores.
    const steps = header.classList.contains("number") ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];
    const next = steps[steps.indexOf(header.getAttribute("aria-sort")) + 1] ?? "none";
    for (const other of headers) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", next);
    const direction = next === "ascending" ? 1 : -1;
    const rows = next === "none" ? original
      : [...original].sort((a, b) => compareCells(a.cells[column], b.cells[column], direction));
    body.append(...rows);
  }));
}
