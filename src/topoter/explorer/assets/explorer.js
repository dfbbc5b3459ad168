// The explorer: a map of many thousand dots to zoom, search and colour. Text is set as text, never as markup.

const WORLD = 65535;
const EDGE = 16;
const NEAR = 14; // pixels from a dot within which a click means it
const MATCHES = 8;
const OTHER = -1; // the group of missing and rare values

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

function explorer(holder) {
  const data = readData(holder);
  const find = (selector) => holder.querySelector(selector);
  const box = find(".map"), dots = find(".dots"), marks = find(".marks"), panel = find(".node");
  const count = data.ids.length;
  const xs = new Float32Array(count), ys = new Float32Array(count);
  for (let i = 0; i < count; i++) { xs[i] = data.xy[2 * i] / WORLD; ys[i] = data.xy[2 * i + 1] / WORLD; }
  // Where the list of each node's graph neighbours starts.
  const starts = new Int32Array(count + 1);
  if (data.graph) for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + Math.min(data.graph.degree[i], data.graph.most[0]);
  // In random but fixed order no group is painted over all others.
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1, seed = 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }

  const view = { zoom: 1, x: .5, y: .5 }; // the point of the world in the middle of the map
  let width = 0, height = 0, base = 1;
  let column = null, hidden = new Set(), focus = null;
  let groups = new Int16Array(count);
  let chosen = -1, pointed = -1, frame = 0;

  const dark = () => window.matchMedia("(prefers-color-scheme: dark)").matches && !("paper" in document.documentElement.dataset);
  const toX = (x) => (x - view.x) * base * view.zoom + width / 2;
  const toY = (y) => (y - view.y) * base * view.zoom + height / 2;
  const similarTo = (node) => data.similar.slice(node * data.perNode, (node + 1) * data.perNode);
  const connectedTo = (node) => data.graph ? data.graph.neighbors.slice(starts[node], starts[node + 1]) : [];

  // ---- colours -------------------------------------------------------------------------------------------

  // The ends of a scale that would vanish on the page's ground are left out.
  function ramp(share) {
    const [low, high] = dark() ? [.3, 1] : [0, .88];
    return column.ramp[Math.round((low + share * (high - low)) * (column.ramp.length - 1))];
  }

  function style(group) {
    const styles = getComputedStyle(box);
    if (column && column.kind === "number" && group !== OTHER) return { color: ramp(group / (column.ramp.length - 1)), shape: 0 };
    if (group === OTHER || !column) return { color: styles.getPropertyValue(column ? "--soft" : "--accent").trim(), shape: 0 };
    return { color: styles.getPropertyValue(`--c${group % 10}`).trim(), shape: Math.floor(group / 10) % 3 };
  }

  function colourBy(number) {
    column = data.columns[number] ?? null;
    hidden = new Set();
    focus = null;
    groups = new Int16Array(count);
    if (column && column.kind === "category") {
      for (let i = 0; i < count; i++) groups[i] = column.codes[i] < column.groups ? column.codes[i] : OTHER;
    } else if (column) {
      const [low, high] = column.range, last = column.ramp.length - 1;
      column.values.forEach((value, i) => {
        groups[i] = value === null ? OTHER : high > low ? Math.round((value - low) / (high - low) * last) : 0;
      });
    }
    legend();
    redraw();
  }

  function legend() {
    const place = find(".legend-box");
    place.replaceChildren();
    if (!column) return;
    if (column.kind === "number") {
      const colors = [0, .25, .5, .75, 1].map(ramp).join(",");
      const bar = make("div", { class: "ramp" });
      bar.style.background = `linear-gradient(90deg,${colors})`;
      place.append(bar, make("div", { class: "ramp-labels" }, ...column.range.map((value) => make("span", {}, short(value)))));
      return;
    }
    const sizes = new Map();
    groups.forEach((group) => sizes.set(group, (sizes.get(group) ?? 0) + 1));
    const rare = column.names.length > column.groups;
    const list = make("ul", { class: "legend toggles", "aria-label": "Classes shown" });
    for (const group of [...sizes.keys()].sort((a, b) => (a === OTHER) - (b === OTHER) || a - b)) {
      const { color, shape } = style(group);
      const swatch = make("span", { class: `swatch shape${shape}` });
      swatch.style.setProperty("--color", color);
      const name = group === OTHER ? (rare ? "other or none" : "none") : column.names[group];
      const button = make("button", { type: "button", "aria-pressed": "true" }, swatch, `${name} `,
        make("span", { class: "count" }, short(sizes.get(group))));
      button.addEventListener("click", () => {
        if (!hidden.delete(group)) hidden.add(group);
        focus = null;
        button.setAttribute("aria-pressed", String(!hidden.has(group)));
        redraw();
      });
      button.addEventListener("pointerenter", () => { focus = hidden.has(group) ? null : group; redraw(); });
      button.addEventListener("pointerleave", () => { focus = null; redraw(); });
      list.append(make("li", {}, button));
    }
    place.append(list);
  }

  // ---- drawing -------------------------------------------------------------------------------------------

  const radius = () => Math.min(9, Math.min(4.5, Math.max(1.6, 170 / Math.sqrt(count))) * Math.pow(view.zoom, .35));

  const painter = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  // A colour as the number that stands for it in an image's memory.
  function packed(color) {
    painter.fillStyle = color;
    painter.fillRect(0, 0, 1, 1);
    return new Uint32Array(painter.getImageData(0, 0, 1, 1).data.buffer)[0];
  }

  // A shape as a list of pixels around its middle: how far in memory, and how much of each is covered (0 to 256).
  function stamp(shape, r, half, stride) {
    const size = 2 * half + 1;
    painter.canvas.width = painter.canvas.height = size; // which also clears it
    dot(painter, shape, half + .5, half + .5, r);
    painter.fill();
    const alpha = painter.getImageData(0, 0, size, size).data, offsets = [], covered = [];
    for (let at = 0; at < size * size; at++) {
      if (!alpha[4 * at + 3]) continue;
      offsets.push((Math.floor(at / size) - half) * stride + at % size - half);
      covered.push(alpha[4 * at + 3] * 256 / 255);
    }
    return { offsets: Int32Array.from(offsets), covered: Float32Array.from(covered) };
  }

  function fit(canvas) {
    const density = Math.min(2, Math.max(1, window.devicePixelRatio || 1));
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    const context = canvas.getContext("2d");
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    return [context, density];
  }

  // Dots are mixed into memory and put on the canvas in one go: many thousand calls to draw a shape would be slow
  // where there is no graphics card.
  let image = null;
  function drawDots() {
    const [context, density] = fit(dots);
    const r = radius() * density, half = Math.ceil(1.4 * r), room = 2 * half; // room around: no dot leaves the image
    const wide = dots.width + 2 * room, high = dots.height + 2 * room;
    if (!image || image.width !== wide || image.height !== high) image = context.createImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(packed(getComputedStyle(box).getPropertyValue("--paper")));
    const stamps = [0, 1, 2].map((shape) => stamp(shape, r, half, wide));
    const known = new Map();
    const scale = base * view.zoom * density;
    const left = dots.width / 2 - view.x * scale, top = dots.height / 2 - view.y * scale;
    // Nodes of which nothing is known come first and faint: they are often most, and would hide the others.
    for (let n = 0; n < 2 * count; n++) {
      const i = order[n % count], group = groups[i];
      if (column ? (group === OTHER) !== (n < count) : n >= count) continue;
      const x = Math.round(left + xs[i] * scale), y = Math.round(top + ys[i] * scale);
      if (x < -half || y < -half || x >= dots.width + half || y >= dots.height + half || (hidden.size && hidden.has(group))) continue;
      if (!known.has(group)) {
        const { color, shape } = style(group);
        known.set(group, { value: packed(color), stamp: stamps[shape], share: focus === null || focus === group ? (column && group === OTHER ? .4 : .85) : .08 });
      }
      const { value, stamp: { offsets, covered }, share } = known.get(group);
      const redBlue = value & 0xff00ff, green = value & 0xff00, at = (y + room) * wide + x + room;
      for (let k = 0; k < offsets.length; k++) {
        const place = at + offsets[k], below = pixels[place], over = Math.round(covered[k] * share), under = 256 - over;
        // Two channels at once: each has eight free bits above it.
        pixels[place] = 0xff000000
          | ((Math.imul(redBlue, over) + Math.imul(below & 0xff00ff, under)) >>> 8 & 0xff00ff)
          | ((Math.imul(green, over) + Math.imul(below & 0xff00, under)) >>> 8 & 0xff00);
      }
    }
    context.putImageData(image, -room, -room);
  }

  function ring(context, node, r, color, line) {
    context.beginPath();
    context.arc(toX(xs[node]), toY(ys[node]), r, 0, 2 * Math.PI);
    context.lineWidth = line + 2;
    context.strokeStyle = getComputedStyle(box).getPropertyValue("--paper");
    context.stroke();
    context.lineWidth = line;
    context.strokeStyle = color;
    context.stroke();
  }

  function lines(context, node, others, color, dash) {
    context.beginPath();
    for (const other of others) {
      context.moveTo(toX(xs[node]), toY(ys[node]));
      context.lineTo(toX(xs[other]), toY(ys[other]));
    }
    context.setLineDash(dash);
    context.strokeStyle = color;
    context.lineWidth = 1.25;
    context.stroke();
    context.setLineDash([]);
  }

  function drawMarks() {
    const [context] = fit(marks);
    const styles = getComputedStyle(box), r = radius();
    const ink = styles.getPropertyValue("--ink").trim(), accent = styles.getPropertyValue("--accent").trim(), soft = styles.getPropertyValue("--soft").trim();
    if (chosen >= 0) {
      lines(context, chosen, connectedTo(chosen), soft, [4, 4]);
      lines(context, chosen, similarTo(chosen), accent, []);
      for (const other of similarTo(chosen)) ring(context, other, r + 2, accent, 1.5);
      ring(context, chosen, r + 4, ink, 2.5);
    }
    if (pointed >= 0 && pointed !== chosen) ring(context, pointed, r + 3, ink, 1.5);
  }

  // However many events come between two frames, the map is drawn once.
  let onlyMarks = true, drawn = 0;
  function redraw(marksOnly = false) {
    onlyMarks = onlyMarks && marksOnly;
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (!width) return;
      const began = performance.now();
      if (!onlyMarks) { drawDots(); drawn += 1; holder.dataset.milliseconds = (performance.now() - began).toFixed(2); }
      drawMarks();
      onlyMarks = true;
      holder.dataset.drawn = drawn;
      holder.dataset.zoom = view.zoom.toFixed(3);
    });
  }

  // ---- moving --------------------------------------------------------------------------------------------

  function zoomBy(factor, x = width / 2, y = height / 2) {
    const zoom = Math.min(400, Math.max(.5, view.zoom * factor));
    // The point under the pointer stays under it.
    view.x += (x - width / 2) / base * (1 / view.zoom - 1 / zoom);
    view.y += (y - height / 2) / base * (1 / view.zoom - 1 / zoom);
    view.zoom = zoom;
    redraw();
  }

  function moveBy(dx, dy) {
    view.x -= dx / (base * view.zoom);
    view.y -= dy / (base * view.zoom);
    redraw();
  }

  function showAll() {
    Object.assign(view, { zoom: 1, x: .5, y: .5 });
    redraw();
  }

  function nodeAt(x, y) {
    let best = -1, distance = NEAR * NEAR;
    for (let i = 0; i < count; i++) {
      if (hidden.size && hidden.has(groups[i])) continue;
      const squared = (toX(xs[i]) - x) ** 2 + (toY(ys[i]) - y) ** 2;
      if (squared < distance) { distance = squared; best = i; }
    }
    return best;
  }

  const pointers = new Map();
  let travelled = 0;
  const local = (event) => {
    const bounds = box.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };

  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? .05 : .0015)), ...local(event));
  }, { passive: false });
  box.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    box.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    if (pointers.size === 1) travelled = 0;
  });
  box.addEventListener("pointermove", (event) => {
    const at = local(event), before = pointers.get(event.pointerId);
    if (!before) { point(at, event); return; }
    travelled += Math.hypot(at[0] - before[0], at[1] - before[1]);
    if (pointers.size === 2) { // two fingers: their distance zooms, their middle moves
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const reach = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]) || 1;
      zoomBy(reach(at) / reach(before), (at[0] + other[0]) / 2, (at[1] + other[1]) / 2);
      moveBy((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
    } else if (travelled > 3) {
      box.classList.add("dragging");
      moveBy(at[0] - before[0], at[1] - before[1]);
    }
    pointers.set(event.pointerId, at);
  });
  const release = (event) => {
    const wasDown = pointers.delete(event.pointerId);
    box.classList.remove("dragging");
    if (wasDown && event.type === "pointerup" && travelled <= 3 && !pointers.size) choose(nodeAt(...local(event)));
  };
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
  box.addEventListener("pointerleave", () => { pointed = -1; tooltip.hide(); redraw(true); });

  function point(at, event) {
    const node = nodeAt(...at);
    if (node >= 0) tooltip.show([[data.ids[node]], ...(column ? [[`${column.name}: ${valueOf(column, node)}`]] : [])], event.clientX, event.clientY);
    else tooltip.hide();
    if (node !== pointed) { pointed = node; redraw(true); }
  }

  box.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 160 : 40;
    const act = {
      ArrowLeft: () => moveBy(step, 0), ArrowRight: () => moveBy(-step, 0), ArrowUp: () => moveBy(0, step), ArrowDown: () => moveBy(0, -step),
      "+": () => zoomBy(1.4), "=": () => zoomBy(1.4), "-": () => zoomBy(1 / 1.4), 0: showAll, Escape: () => choose(-1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  const zooms = { in: () => zoomBy(1.6), out: () => zoomBy(1 / 1.6), all: showAll };
  for (const button of holder.querySelectorAll("[data-zoom]")) button.addEventListener("click", zooms[button.dataset.zoom]);

  // ---- the chosen node -----------------------------------------------------------------------------------

  function valueOf(of, node) {
    if (of.kind === "category") return of.codes[node] < 0 ? "none" : of.names[of.codes[node]];
    return of.values[node] === null ? "none" : short(of.values[node]);
  }

  function entry(node, text) {
    const swatch = make("span", { class: "swatch" });
    swatch.style.setProperty("--color", style(groups[node]).color);
    const button = make("button", { type: "button" }, swatch, data.ids[node], make("span", { class: "count" }, text));
    button.addEventListener("click", () => choose(node, true));
    button.addEventListener("pointerenter", () => { pointed = node; redraw(true); });
    button.addEventListener("pointerleave", () => { pointed = -1; redraw(true); });
    return make("li", {}, button);
  }

  function choose(node, centre = false) {
    chosen = node;
    holder.dataset.chosen = node < 0 ? "" : data.ids[node];
    if (centre && node >= 0) Object.assign(view, { x: xs[node], y: ys[node], zoom: Math.max(view.zoom, 3) });
    tell();
    redraw();
  }

  function tell() {
    if (chosen < 0) {
      panel.replaceChildren(make("p", { class: "hint" }, "No node chosen: click a dot, or find one by its id."));
      return;
    }
    const parts = [make("h3", {}, data.ids[chosen])];
    if (data.columns.length) {
      parts.push(make("dl", { class: "facts" }, ...data.columns.map((of) =>
        make("div", {}, make("dt", {}, of.name), make("dd", {}, valueOf(of, chosen))))));
    }
    const similar = similarTo(chosen);
    parts.push(make("h4", {}, "Most similar embeddings (cosine)"), make("ol", { class: "similar" },
      ...similar.map((node, n) => entry(node, (data.cosine[chosen * data.perNode + n] / 1000).toFixed(3)))));
    if (data.graph) {
      const connected = connectedTo(chosen), all = data.graph.degree[chosen];
      const title = `Neighbours in the graph: ${short(all)}${all > connected.length ? `, ${connected.length} shown` : ""}`;
      const known = new Set(similar);
      parts.push(make("h4", {}, title), make("ol", { class: "connected" },
        ...connected.map((node) => entry(node, known.has(node) ? "similar too" : ""))));
    }
    panel.replaceChildren(...parts);
  }

  // ---- search --------------------------------------------------------------------------------------------

  const input = find("input"), list = find("#matches");
  const lower = data.ids.map((id) => id.toLowerCase());
  let matches = [], current = 0;

  function search(text) {
    const wanted = text.trim().toLowerCase();
    const exact = [], starting = [], within = [];
    for (let i = 0; wanted && i < count; i++) {
      const at = lower[i].indexOf(wanted);
      if (at < 0) continue;
      const kind = lower[i].length === wanted.length ? exact : at === 0 ? starting : within;
      if (kind.length < MATCHES) kind.push(i);
    }
    matches = [...exact, ...starting, ...within].slice(0, MATCHES);
    current = 0;
    const items = matches.map((node, n) => {
      const item = make("li", { role: "option", id: `match${n}`, "aria-selected": String(n === current) }, data.ids[node]);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(n); });
      return item;
    });
    if (wanted && !items.length) items.push(make("li", { class: "none" }, "no node of that id"));
    list.replaceChildren(...items);
    show(Boolean(wanted));
  }

  function show(open) {
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
    if (open && matches.length) input.setAttribute("aria-activedescendant", `match${current}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(n) {
    if (matches[n] === undefined) return;
    choose(matches[n], true);
    input.value = data.ids[matches[n]];
    show(false);
  }

  input.addEventListener("input", () => search(input.value));
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); take(current); }
    else if (event.key === "Escape") show(false);
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && matches.length) {
      event.preventDefault();
      current = (current + (event.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length;
      [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === current)));
      show(true);
    }
  });

  // ---- start ---------------------------------------------------------------------------------------------

  const select = find(".colour-by");
  select.addEventListener("change", () => { colourBy(Number(select.value)); tell(); });
  new ResizeObserver(() => {
    width = box.clientWidth;
    height = box.clientHeight;
    base = Math.max(1, Math.min(width, height) - 2 * EDGE);
    redraw();
  }).observe(box);
  const repaint = () => { legend(); tell(); redraw(); };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.paper = ""; legend(); drawDots(); drawMarks(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.paper; repaint(); });
  colourBy(Number(select.value));
  tell();
}

document.querySelectorAll("[data-explorer]").forEach(explorer);
