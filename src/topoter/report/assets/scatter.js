// The map of points: drawn on a canvas, since a vector element per point would be slow beyond a few thousand.

const GRID = 4095;
const MARGIN = 14;

// A group's shape around (x, y): circle, square or triangle. The explorer draws its dots with it too.
function dot(context, shape, x, y, r) {
  if (shape === 1) context.rect(x - r, y - r, 2 * r, 2 * r);
  else if (shape === 2) {
    context.moveTo(x, y - 1.3 * r);
    context.lineTo(x + 1.2 * r, y + r);
    context.lineTo(x - 1.2 * r, y + r);
    context.closePath();
  } else {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, 2 * Math.PI);
  }
}

function scatter(holder) {
  const data = readData(holder);
  const buttons = [...holder.querySelectorAll(".toggles button")];
  const panels = [...holder.querySelectorAll(".canvas-box")].map((box, number) => ({
    box, canvas: box.querySelector("canvas"), ring: box.querySelector(".ring"),
    size: box.clientWidth, xs: data.panels[number][0], ys: data.panels[number][1],
  }));
  const shown = data.names.map(() => true);
  let focus = null; // the class whose name is pointed at
  const count = data.class.length;

  const place = (panel, index) => {
    const size = panel.size - 2 * MARGIN; // remembered: asking the page for every point is slow
    return [MARGIN + panel.xs[index] / GRID * size, MARGIN + panel.ys[index] / GRID * size];
  };

  function draw(panel) {
    const { canvas, box } = panel;
    const size = panel.size = box.clientWidth;
    if (!size) return;
    // Twice the screen's pixels at least: the same picture is what gets printed.
    const density = Math.max(2, window.devicePixelRatio || 1);
    canvas.width = canvas.height = Math.round(size * density);
    const context = canvas.getContext("2d");
    context.setTransform(density, 0, 0, density, 0, 0);
    const style = getComputedStyle(box);
    const colors = data.colors.map((color) => style.getPropertyValue(color === null ? "--soft" : `--c${color}`).trim());
    const radius = Math.min(4, Math.max(1.2, 120 / Math.sqrt(count))) * Math.max(.75, size / 480);
    for (let index = 0; index < count; index++) {
      const group = data.class[index];
      if (!shown[group]) continue;
      context.globalAlpha = focus === null || focus === group ? .85 : .08;
      context.fillStyle = colors[group];
      context.beginPath();
      dot(context, data.shapes[group], ...place(panel, index), radius);
      context.fill();
    }
  }

  const drawAll = () => panels.forEach(draw);

  function nearest(panel, x, y) {
    let best = -1, distance = 12 * 12;
    for (let index = 0; index < count; index++) {
      if (!shown[data.class[index]]) continue;
      const [px, py] = place(panel, index);
      const squared = (px - x) ** 2 + (py - y) ** 2;
      if (squared < distance) { distance = squared; best = index; }
    }
    return best;
  }

  function hide() {
    for (const panel of panels) panel.ring.hidden = true;
    tooltip.hide();
  }

  for (const panel of panels) {
    const follow = (event) => {
      const bounds = panel.canvas.getBoundingClientRect();
      const index = nearest(panel, event.clientX - bounds.left, event.clientY - bounds.top);
      if (index < 0) { hide(); return; }
      for (const other of panels) { // the same node in every panel
        const [x, y] = place(other, index);
        other.ring.style.left = `${x}px`;
        other.ring.style.top = `${y}px`;
        other.ring.hidden = false;
      }
      const group = data.class[index];
      tooltip.show([[data.names[group], data.colors[group]], [`${data.noun} ${data.ids[index]}`]], event.clientX, event.clientY);
    };
    panel.box.addEventListener("pointermove", follow);
    panel.box.addEventListener("pointerdown", follow);
    panel.box.addEventListener("pointerleave", hide);
    new ResizeObserver(() => draw(panel)).observe(panel.box);
  }

  for (const button of buttons) {
    const group = Number(button.dataset.class);
    const setFocus = (value) => () => { focus = shown[group] ? value : null; drawAll(); };
    button.addEventListener("click", () => {
      shown[group] = !shown[group];
      focus = null;
      button.setAttribute("aria-pressed", String(shown[group]));
      drawAll();
    });
    button.addEventListener("pointerenter", setFocus(group));
    button.addEventListener("pointerleave", setFocus(null));
  }

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Style sheets turn light for paper by themselves; a canvas has to be painted again.
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.paper = ""; drawAll(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.paper; drawAll(); });
}

document.querySelectorAll('[data-chart="scatter"]').forEach(scatter);
