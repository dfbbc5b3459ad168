// Values under the pointer for line charts and heat maps.

const svgElement = (svg, name, attributes) => {
  const element = document.createElementNS(svg.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// Window coordinates to the drawing's own, whatever size it has on the screen.
const toDrawing = (svg, event) =>
  new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
const toWindow = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());

const scale = ([low, high, start, end]) => (value) => start + (value - low) / (high - low) * (end - start);

function lineChart(holder) {
  const data = readData(holder);
  const svg = holder.querySelector("svg.chart");
  const cursor = svg.querySelector(".cursor");
  const toX = scale(data.x), toY = scale(data.y);
  const lookups = data.series.map((series) => new Map(series.points.map((point) => [point[0], point])));
  const positions = [...new Set(lookups.flatMap((lookup) => [...lookup.keys()]))].sort((a, b) => a - b);
  if (!positions.length) return;
  let current = -1;

  function show(index) {
    current = index;
    const at = positions[index];
    const lines = [[`${data.xLabel} ${short(at)}`]];
    const marks = [svgElement(svg, "line", { x1: toX(at), x2: toX(at), y1: data.y[2], y2: data.y[3] })];
    data.series.forEach((series, number) => {
      const point = lookups[number].get(at);
      if (!point) return;
      const spread = point.length > 2 ? ` ± ${short(point[2])}` : "";
      lines.push([`${series.name}: ${short(point[1])}${spread}`, series.color]);
      const dot = svgElement(svg, "circle", { cx: toX(at), cy: toY(point[1]), r: 4.5, class: "dot" });
      dot.style.setProperty("--color", `var(--c${series.color})`);
      marks.push(dot);
    });
    for (const [name, value] of data.references) lines.push([`${name}: ${short(value)}`]);
    cursor.replaceChildren(...marks);
    const place = toWindow(svg, toX(at), (data.y[2] + data.y[3]) / 2);
    tooltip.show(lines, place.x, place.y);
  }

  function hide() {
    current = -1;
    cursor.replaceChildren();
    tooltip.hide();
  }

  function follow(event) {
    const x = toDrawing(svg, event).x;
    let nearest = 0;
    positions.forEach((at, index) => {
      if (Math.abs(toX(at) - x) < Math.abs(toX(positions[nearest]) - x)) nearest = index;
    });
    show(nearest);
  }

  holder.addEventListener("pointermove", follow);
  holder.addEventListener("pointerdown", follow);
  holder.addEventListener("pointerleave", hide);
  holder.addEventListener("blur", hide);
  holder.addEventListener("keydown", (event) => {
    const last = positions.length - 1;
    const step = event.shiftKey ? 10 : 1;
    const target = { ArrowRight: current + step, ArrowLeft: current < 0 ? last : current - step, Home: 0, End: last }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, target)));
  });

  // Pointing at a name in the legend brings its line forward.
  const groups = svg.querySelectorAll("[data-series]");
  holder.closest("figure").querySelectorAll(".legend li").forEach((item, number) => {
    if (number >= groups.length) return;
    item.addEventListener("pointerenter", () => groups.forEach((group, other) => group.classList.toggle("faded", other !== number)));
    item.addEventListener("pointerleave", () => groups.forEach((group) => group.classList.remove("faded")));
  });
}

function heatMap(holder) {
  const data = readData(holder);
  const svg = holder.querySelector("svg.chart");
  const [left, top, width, height] = data.plot;
  const rows = data.values.length, columns = data.values[0].length;
  const follow = (event) => {
    const at = toDrawing(svg, event);
    const row = Math.floor((at.y - top) / height * rows), column = Math.floor((at.x - left) / width * columns);
    if (row < 0 || column < 0 || row >= rows || column >= columns) { tooltip.hide(); return; }
    const value = data.values[row][column];
    const [rowLabel, columnLabel, valueLabel] = data.labels;
    const text = value === null ? "no value" : short(value);
    tooltip.show([[`${valueLabel}: ${text}`], [`${rowLabel} ${row}, ${columnLabel} ${column}`]], event.clientX, event.clientY);
  };
  holder.addEventListener("pointermove", follow);
  holder.addEventListener("pointerdown", follow);
  holder.addEventListener("pointerleave", tooltip.hide);
}

document.querySelectorAll('[data-chart="lines"]').forEach(lineChart);
document.querySelectorAll('[data-chart="heat"]').forEach(heatMap);
