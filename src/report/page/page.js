"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;

/** An element with properties and children. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** What the reader has chosen, kept while the page reloads. */
const memory = {
  read(key, otherwise) {
    try { return sessionStorage.getItem(location.pathname + key) ?? otherwise; } catch { return otherwise; }
  },
  write(key, value) {
    try { sessionStorage.setItem(location.pathname + key, value); } catch {}
  },
};

// The toggle between light and dark; without a choice the page follows the system.
{
  const button = document.getElementById("theme");
  const label = () => { button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
  button.onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("prbopt-theme", root.dataset.theme); } catch {}
    label();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    try { if (localStorage.getItem("prbopt-theme")) return; } catch {}
    root.dataset.theme = event.matches ? "dark" : "light";
    label();
  });
  label();
}

/** Pixels of an image by its address, read once. */
const pixelsOf = (() => {
  const known = new Map();
  return (uri) => {
    if (!known.has(uri)) {
      known.set(uri, (async () => {
        const image = new Image();
        image.src = uri;
        await image.decode();
        const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
        const context = canvas.getContext("2d", { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, canvas.width, canvas.height);
      })());
    }
    return known.get(uri);
  };
})();

/** The colours of a table from the program, as three numbers a step. */
const tables = Object.fromEntries(Object.entries(data.tables).map(([name, hex]) =>
  [name, Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16))]));

function gradientOf(table) {
  const stops = [];
  for (let i = 0; i <= 32; i++) {
    const at = 3 * Math.round(i / 32 * 255);
    stops.push(`rgb(${table[at]},${table[at + 1]},${table[at + 2]})`);
  }
  return `linear-gradient(to right, ${stops.join(",")})`;
}

function colorBar(table, labels) {
  const bar = make("i");
  bar.style.background = gradientOf(table);
  const words = make("p", {}, ...labels.map((text) => make("span", { textContent: text })));
  return make("div", { className: "bar" }, bar, words);
}

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(3));
}

function swatch(run) {
  const mark = make("span", { className: "swatch" });
  mark.style.background = `var(--run-${run % 8})`;
  return mark;
}

function caption(strong, run, more = "") {
  const name = make("b", { textContent: strong });
  if (data.runs.length > 1 && run !== null) name.prepend(swatch(run));
  return make("figcaption", {}, name, make("span", { textContent: more }));
}

/** Draws the signed difference, mean over the colours, with ±scale at the ends of the table, and tells its mean amount. */
async function drawDifference(canvas, note, uri, reference, scale) {
  const token = canvas.token = {};
  const [a, b] = await Promise.all([pixelsOf(uri), pixelsOf(reference)]);
  if (canvas.token !== token || a.data.length !== b.data.length) return;
  canvas.width = a.width;
  canvas.height = a.height;
  const out = new ImageData(a.width, a.height);
  let amount = 0;
  for (let i = 0; i < a.data.length; i += 4) {
    let sum = 0;
    for (let c = 0; c < 3; c++) {
      const difference = a.data[i + c] - b.data[i + c];
      sum += difference;
      amount += Math.abs(difference);
    }
    const share = Math.max(-1, Math.min(1, sum / 3 / 255 / scale));
    const at = 3 * Math.round(128 + 127 * share);
    for (let c = 0; c < 3; c++) out.data[i + c] = tables.signed[at + c];
    out.data[i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(out, 0, 0);
  canvas.dataset.drawn = "true";
  note.title = "mean amount of the differences, colour by colour";
  note.textContent = `L1 ${(amount / 255 / (0.75 * a.data.length)).toFixed(4)}`;
}

/** One picture that another is wiped over. */
function wiper(key) {
  const under = make("img", { alt: "" }), over = make("img", { alt: "", className: "over" }), edge = make("div", { className: "edge" });
  const box = make("div", { className: "picture wiper", tabIndex: 0, role: "slider" }, under, over, edge);
  box.setAttribute("aria-label", "boundary between the two pictures");
  let at = Number(memory.read(key, 0.5));
  const place = () => {
    over.style.clipPath = `inset(0 ${100 * (1 - at)}% 0 0)`;
    edge.style.left = `${100 * at}%`;
    box.setAttribute("aria-valuenow", Math.round(100 * at));
    memory.write(key, at);
  };
  const move = (event) => {
    const bounds = box.getBoundingClientRect();
    at = Math.max(0, Math.min(1, (event.clientX - bounds.left) / bounds.width));
    place();
  };
  box.onpointerdown = (event) => { box.setPointerCapture(event.pointerId); move(event); };
  box.onpointermove = (event) => { if (event.buttons || event.pointerType === "mouse") move(event); };
  box.onkeydown = (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (step) { at = Math.max(0, Math.min(1, at + step)); place(); event.preventDefault(); }
  };
  place();
  return { box, show(left, right) { over.src = left; under.src = right; } };
}

const scales = [0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** A row: what a view should look like, what it looks like in each run, and how far that is apart. */
function viewCard(view) {
  const card = make("section", { className: "card view" });
  const iterations = [...new Set(view.runs.flatMap((r) => r.frames.map((f) => f.iteration)))].sort((a, b) => a - b);
  const key = "view:" + view.name;
  const slider = make("input", { type: "range", min: 0, max: Math.max(0, iterations.length - 1), step: 1 });
  slider.setAttribute("aria-label", `iteration of ${view.name}`);
  slider.value = Math.min(Number(memory.read(key, iterations.length - 1)), iterations.length - 1);
  const output = make("output"), play = make("button", { type: "button", textContent: "Play" });
  const scale = make("select", { ariaLabel: "range of the differences" },
    ...scales.map((s) => make("option", { value: s, textContent: `± ${s}` })));
  scale.value = memory.read("scale", 0.1);
  card.append(make("h3", {}, view.name, ...(view.held_out ? [make("span", { className: "aside", textContent: "held out" })] : [])));
  const tools = make("div", { className: "tools" });
  if (iterations.length > 1) tools.append(play, make("div", { className: "slide" }, slider, output));
  card.append(tools);
  const tiles = make("div", { className: "tiles" + (view.width < 200 ? " pixels" : "") + (view.width < view.height ? " narrow" : "") });
  card.append(tiles);

  const tile = (head, content, ...more) => make("figure", {}, head, content, ...more);
  const reference = view.runs.map((r) => r.reference).find((r) => r !== null) ?? null;
  if (reference) {
    const image = make("img", { src: reference, alt: `reference of ${view.name}` });
    tiles.append(tile(caption("Reference", null), make("div", { className: "picture" }, image)));
  }
  const several = data.runs.length > 1;
  // Beside each other stand a run's render and its difference, two runs a row; what concerns all of them comes before.
  const common = tiles.lastChild;
  const shown = view.runs.map((of) => {
    const image = make("img", { alt: `render of ${view.name}` });
    const head = caption(several ? data.runs[of.run].name : "Render", of.run);
    tiles.append(tile(head, make("div", { className: "picture" }, image)));
    if (several && of === view.runs[0]) tiles.lastChild.classList.add("first");
    const mine = of.reference ?? reference;
    let canvas = null, bar = null, note = null;
    if (mine) {
      canvas = make("canvas", { width: view.width, height: view.height });
      bar = make("div");
      const words = caption(several ? "− reference" : "Render − reference", of.run);
      note = words.lastChild;
      tiles.append(tile(words, make("div", { className: "picture" }, canvas), bar));
    }
    return { of, image, head, canvas, bar, note, mine, frame: null };
  });
  const wipe = wiper("wipe:" + view.name);
  const sources = [
    ...(reference ? [{ name: "reference", uri: () => reference }] : []),
    ...shown.map((s) => ({ name: several ? data.runs[s.of.run].name : "render", uri: () => s.frame.uri })),
  ];
  const pick = (index, label) => {
    const select = make("select", { ariaLabel: label }, ...sources.map((s, i) => make("option", { value: i, textContent: s.name })));
    select.value = Math.min(index, sources.length - 1);
    select.onchange = () => update();
    return select;
  };
  const left = pick(0, "left of the boundary"), right = pick(1, "right of the boundary");
  if (sources.length > 1) {
    const head = sources.length > 2
      ? make("figcaption", {}, left, right)
      : make("figcaption", {}, make("b", { textContent: "Wipe" }), make("span", { textContent: `${sources[0].name} | ${sources[1].name}` }));
    const figure = tile(head, wipe.box);
    if (several && common) common.after(figure);
    else if (several) tiles.prepend(figure);
    else tiles.append(figure);
  }
  if (shown.some((s) => s.canvas)) {
    tools.append(make("label", { title: "of sRGB-coded values, mean of the colours" }, "difference ", scale));
  }

  function update() {
    const at = iterations[slider.value] ?? 0;
    output.textContent = `iteration ${at}`;
    for (const s of shown) {
      const until = s.of.frames.filter((f) => f.iteration <= at);
      s.frame = until.length ? until[until.length - 1] : s.of.frames[0];
      s.image.src = s.frame.uri;
      s.head.lastChild.textContent = s.frame.psnr === null ? "" : `${s.frame.psnr.toFixed(2)} dB`;
      if (s.canvas) {
        drawDifference(s.canvas, s.note, s.frame.uri, s.mine, Number(scale.value));
        s.bar.replaceChildren(colorBar(tables.signed, [`−${scale.value}`, "0", `+${scale.value}`]));
      }
    }
    if (sources.length > 1) wipe.show(sources[left.value].uri(), sources[right.value].uri());
  }
  slider.oninput = () => {
    update();
    // A slider at its end stays there when a running page grows.
    memory.write(key, slider.value === slider.max ? 1e9 : slider.value);
  };
  card.addEventListener("rescale", update);
  scale.onchange = () => {
    memory.write("scale", scale.value);
    for (const other of document.querySelectorAll(".view select[aria-label='range of the differences']")) other.value = scale.value;
    for (const other of document.querySelectorAll(".view")) other.dispatchEvent(new Event("rescale"));
  };
  let timer = null;
  play.onclick = () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    if (slider.value === slider.max) slider.value = 0;
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (slider.value === slider.max) { play.onclick(); return; }
      slider.value = Number(slider.value) + 1;
      slider.oninput();
    }, 180);
    slider.oninput();
  };
  update();
  return card;
}

const axes = ["x", "y", "z"];

/** Slices through a volume in all runs that have it. */
function gridCard(path, grids) {
  const card = make("section", { className: "card grid" });
  card.append(make("h3", { textContent: path }));
  const size = grids[0].shown;
  const flat = size[2] === 1;
  const places = axes.map((axis, i) => {
    const kept = Number(memory.read(`slice:${path}:${axis}`, 0.5));
    return Math.min(size[i] - 1, Math.floor(kept * size[i]));
  });
  const redraw = [];
  const several = grids.some((grid) => grid.moment !== "recovered");
  let shared = null;
  for (const grid of grids) {
    const extent = (flat ? grid.size.slice(0, 2) : grid.size).join(" × ");
    const words = [...(flat && several ? [] : [extent]), grid.color ? "colours" : `shown from ${short(grid.low)} to ${short(grid.high)}`];
    if (grid.size.join() !== grid.shown.join()) words.push(`averaged to ${grid.shown.join(" × ")}`);
    const note = make("p", { className: "note", textContent: words.join(", ") });
    if (data.runs.length > 1) note.prepend(swatch(grid.run), make("b", { textContent: data.runs[grid.run].name + " " }));
    // Maps stand side by side: start, recovered, truth.
    const follows = flat && several && grid.moment !== "start" && shared !== null;
    const row = follows ? shared : make("div", { className: "slices pixels" });
    if (!follows) card.append(note, row);
    shared = grid.moment === "truth" ? null : row;
    for (const axis of flat ? [2] : [0, 1, 2]) {
      // Seen along z: x to the right, y up; along y: x and z; along x: z and y.
      const [across, up] = [[2, 1], [0, 2], [0, 1]][axis];
      const canvas = make("canvas");
      const vertical = make("div", { className: "cross" }), horizontal = make("div", { className: "cross" });
      const frame = make("div", {}, canvas, ...(flat ? [] : [vertical, horizontal]));
      const head = make("figcaption", {}, make("b", { textContent: flat ? (several ? `${grid.moment}, ${extent}` : "") : `${axes[across]} → ${axes[up]} ↑` }), make("span"));
      row.append(make("figure", {}, head, make("div", { className: "picture" }, frame)));
      redraw.push(async () => {
        const pixels = await pixelsOf(grid.uri);
        const [nx, ny] = grid.shown;
        const at = axes.map((_, i) => Math.min(grid.shown[i] - 1, Math.round(places[i] * grid.shown[i] / size[i])));
        const [width, height] = [grid.shown[across], grid.shown[up]];
        canvas.width = width;
        canvas.height = height;
        // Tall grids keep to the height of a square.
        frame.style.maxWidth = `${Math.min(100, 125 * width / height)}%`;
        frame.style.margin = "0 auto";
        const out = new ImageData(width, height);
        const place = [...at];
        for (let v = 0; v < height; v++) {
          for (let u = 0; u < width; u++) {
            place[across] = u;
            place[up] = flat ? v : height - 1 - v;
            const from = 4 * ((place[2] * ny + place[1]) * nx + place[0]);
            const to = 4 * (v * width + u);
            for (let c = 0; c < 3; c++) {
              out.data[to + c] = grid.color ? pixels.data[from + c] : tables.amounts[3 * pixels.data[from] + c];
            }
            out.data[to + 3] = 255;
          }
        }
        canvas.getContext("2d").putImageData(out, 0, 0);
        canvas.dataset.drawn = "true";
        if (!flat) head.lastChild.textContent = `${axes[axis]} = ${((places[axis] + 0.5) / size[axis]).toFixed(2)}`;
        vertical.style.cssText = `left:${100 * (at[across] + 0.5) / width}%;top:0;bottom:0;width:1px`;
        horizontal.style.cssText = `top:${100 * (1 - (at[up] + 0.5) / height)}%;left:0;right:0;height:1px`;
      });
    }
  }
  const update = () => Promise.all(redraw.map((draw) => draw()));
  if (!flat) {
    const tools = make("div", { className: "tools slices" });
    for (const axis of [0, 1, 2]) {
      const slider = make("input", { type: "range", min: 0, max: size[axis] - 1, step: 1, value: places[axis] });
      slider.setAttribute("aria-label", `slice along ${axes[axis]} of ${path}`);
      slider.oninput = () => {
        places[axis] = Number(slider.value);
        memory.write(`slice:${path}:${axes[axis]}`, (places[axis] + 0.5) / size[axis]);
        update();
      };
      tools.append(make("div", { className: "slide" }, make("label", { textContent: axes[axis] }), slider));
    }
    card.append(tools);
  }
  if (!grids[0].color && new Set(grids.map((grid) => grid.run)).size === 1) {
    const bar = colorBar(tables.amounts, [short(grids[0].low), short((grids[0].low + grids[0].high) / 2), short(grids[0].high)]);
    bar.style.maxWidth = "960px";
    card.append(bar);
  }
  update();
  return card;
}

for (const view of data.views) document.getElementById("views").append(viewCard(view));
for (const path of new Set(data.grids.map((g) => g.path))) {
  document.getElementById("grids").append(gridCard(path, data.grids.filter((g) => g.path === path)));
}
for (const bar of document.querySelectorAll("td.wide i")) bar.style.width = bar.dataset.share + "%";

// A run at work writes its page anew; what the reader has chosen stays.
if (document.body.dataset.running) {
  const box = document.getElementById("follow");
  box.checked = memory.read("follow", "true") === "true";
  box.onchange = () => memory.write("follow", box.checked);
  setInterval(() => { if (box.checked && !document.hidden) location.reload(); }, 10000);
}
