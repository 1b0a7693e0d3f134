"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const token = new URLSearchParams(location.search).get("token") ?? "";
const at = (path, more = "") => `${path}?token=${encodeURIComponent(token)}${more}`;
const part = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(4));
}

function duration(seconds) {
  const whole = Math.round(seconds);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h} h ${String(m).padStart(2, "0")} min` : m ? `${m} min ${String(s).padStart(2, "0")} s` : `${s} s`;
}

function say(text) {
  part("message").textContent = text;
  part("message").hidden = !text;
}

/** Sends a command; what is refused is told. */
async function post(path, body) {
  try {
    const answer = await fetch(at(path), { method: "POST", body });
    if (!answer.ok) say((await answer.text()).trim());
    return answer.ok;
  } catch {
    return false;
  }
}

part("title").textContent = data.title;

// Vectors of three numbers, and rows of rotations.
const add = (a, b) => a.map((x, i) => x + b[i]);
const sub = (a, b) => a.map((x, i) => x - b[i]);
const times = (a, s) => a.map((x) => x * s);
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const length = (a) => Math.sqrt(dot(a, a));
const unit = (a) => times(a, 1 / (length(a) || 1));
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const turn = (rows, v) => rows.map((row) => dot(row, v));
const product = (a, b) => a.map((row) => [0, 1, 2].map((c) => dot(row, b.map((r) => r[c]))));

/** The rotation about a unit axis. */
function about(axis, angle) {
  const [x, y, z] = axis, c = Math.cos(angle), s = Math.sin(angle), d = 1 - c;
  return [
    [c + x * x * d, x * y * d - z * s, x * z * d + y * s],
    [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
    [z * x * d - y * s, z * y * d + x * s, c + z * z * d],
  ];
}

/** Rows at right angles again after many small turns. */
function straight(rows) {
  const a = unit(rows[0]), b = unit(sub(rows[1], times(a, dot(rows[1], a))));
  return [a, b, cross(a, b)];
}

/** The camera: a sensor, moved. Of a picture, the part that is shown. */
const camera = {
  sensor: data.first, rotation: null, shift: null, zoom: 1, pivot: null, scale: 1, corner: [0, 0],

  get base() { return data.sensors[this.sensor]; },
  get flat() { return this.base.moves === "flat"; },
  column(c) { return this.base.to_world.map((row) => row[c]); },
  axis(c) { return unit(turn(this.rotation, this.column(c))); },
  get origin() { return add(turn(this.rotation, this.column(3)), this.shift); },

  choose(sensor) {
    this.sensor = sensor;
    this.rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    this.shift = [0, 0, 0];
    [this.zoom, this.scale, this.corner] = [1, 1, [0, 0]];
    if (this.flat) return;
    const forward = this.axis(2);
    const ahead = data.subject ? dot(sub(data.subject.center, this.origin), forward) : 1;
    this.pivot = add(this.origin, times(forward, ahead > 0 ? ahead : 1));
  },

  rotate(axis, angle) {
    const by = about(axis, angle);
    this.rotation = straight(product(by, this.rotation));
    this.shift = add(turn(by, sub(this.shift, this.pivot)), this.pivot);
  },

  /** Turns around the point in the middle: by the pixels of a drag. */
  orbit(right, down) {
    if (this.flat) { this.pan(right, down); return; }
    const up = data.subject ? data.subject.up : this.axis(1);
    this.rotate(up, -right * 0.008);
    // Not over the poles, where left and right would change places.
    const height = Math.asin(Math.max(-1, Math.min(1, -dot(this.axis(2), up))));
    const angle = Math.max(-1.5 - height, Math.min(1.5 - height, down * 0.008));
    const left = this.axis(0);
    const rises = dot(cross(left, this.axis(2)), up) < 0 ? 1 : -1;
    this.rotate(left, rises * angle);
  },

  /** Moves with what is in the middle under the pointer. */
  pan(right, down) {
    const longer = Math.max(picture.clientWidth, picture.clientHeight);
    if (this.flat) {
      this.corner = sub(this.corner, times([right, down], this.scale / longer));
      return;
    }
    const focal = this.base.focal[0] / this.base.size[0] * picture.clientWidth * this.zoom;
    const depth = this.base.moves === "parallel" ? 1 : length(sub(this.pivot, this.origin));
    const by = add(times(this.axis(0), right * depth / focal), times(this.axis(1), down * depth / focal));
    this.shift = add(this.shift, by);
    this.pivot = add(this.pivot, by);
  },

  /** Comes closer by a factor; a picture is enlarged around a point of the film. */
  closer(factor, x = 0.5, y = 0.5) {
    if (this.flat) {
      const longer = Math.max(picture.clientWidth, picture.clientHeight);
      const film = [x * picture.clientWidth / longer, y * picture.clientHeight / longer];
      const scale = Math.max(1e-3, Math.min(4, this.scale / factor));
      this.corner = add(this.corner, times(film, this.scale - scale));
      this.scale = scale;
    } else if (this.base.moves === "parallel") {
      this.zoom = Math.max(1e-3, Math.min(1e3, this.zoom * factor));
    } else {
      this.shift = add(this.shift, times(sub(this.pivot, this.origin), 1 - 1 / factor));
    }
  },

  /** What the program is asked for. */
  get motion() {
    if (this.flat) return [[this.scale, 0, 0, this.corner[0]], [0, this.scale, 0, this.corner[1]], [0, 0, 1, 0]];
    return this.rotation.map((row, i) => [...row, this.shift[i]]);
  },
};

const picture = part("picture");
let shown = "picture";
/** Nothing more will come, and nobody answers any more. */
let over = false;
let asked = 0;

/** The film as large as there is room: the whole width, and no higher than most of the window. */
function fit() {
  const [w, h] = camera.base.size;
  const width = part("stage").clientWidth;
  const height = Math.min(width * h / w, Math.max(260, innerHeight * 0.7));
  picture.style.width = `${Math.round(Math.min(width, height * w / h))}px`;
  picture.style.height = `${Math.round(height)}px`;
}

/** Asks for the present view: one request at a time, the newest view each. */
const ask = (() => {
  let busy = false, again = false;
  const pixels = () => {
    const longer = Math.max(picture.clientWidth, picture.clientHeight) * Math.min(devicePixelRatio, 1.5);
    return Math.max(64, Math.min(800, 16 * Math.round(longer / 16)));
  };
  return async function ask() {
    if (over) return;
    asked++;
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const view = { sensor: camera.sensor, motion: camera.motion, zoom: camera.zoom, show: shown, pixels: pixels() };
      await post("/view", JSON.stringify(view));
    } while (again);
    busy = false;
  };
})();

/** Draws the newest picture: one at a time, whatever comes in between is left out. */
const draw = (() => {
  let busy = false, next = null;
  return async function draw(about) {
    next = about;
    if (busy) return;
    busy = true;
    while (next) {
      const now = next;
      next = null;
      try {
        const answer = await fetch(at("/picture"));
        if (!answer.ok) continue;
        const bitmap = await createImageBitmap(await answer.blob());
        picture.width = bitmap.width;
        picture.height = bitmap.height;
        picture.getContext("2d").drawImage(bitmap, 0, 0);
        picture.dataset.drawn = "true";
        picture.dataset.renders = now.renders;
        part("waiting").hidden = true;
        describe(now);
      } catch {}
    }
    busy = false;
  };
})();

function describe(about) {
  const words = [`${about.size.join(" × ")} pixels`];
  if (about.renders > 1) words.push(`mean of ${about.renders} renders`);
  if (about.coarseness > 1) words.push("coarse");
  part("about").textContent = words.join(", ");
  const legend = part("legend");
  legend.hidden = !about.ends;
  if (!about.ends) return;
  legend.firstChild.textContent = short(about.ends[0]);
  legend.lastChild.textContent = short(about.ends[1]);
  const stops = about.show === "opacity" ? ["#000", "#fff"] : data.colors.map((c) => `rgb(${c})`);
  legend.children[1].style.background = `linear-gradient(to right, ${stops.join(",")})`;
}

function choose(sensor) {
  camera.choose(sensor);
  for (const button of part("cameras").querySelectorAll("button")) {
    button.classList.toggle("chosen", Number(button.value) === sensor);
  }
  fit();
  ask();
}

function move(how) {
  how();
  ask();
}

function look() {
  part("look").hidden = false;
  const words = { picture: "what the camera sees", depth: "depth", opacity: "opacity" };
  data.shows.forEach((show, i) => {
    const text = typeof show === "string" ? words[show] : `gradient of ${show.gradient}`;
    part("show").append(make("option", { value: i, textContent: text }));
  });
  part("show").onchange = () => { shown = data.shows[part("show").value]; ask(); };

  const usable = data.sensors.map((sensor, i) => [sensor, i]).filter(([sensor]) => sensor.moves !== "no");
  part("cameras").hidden = usable.length < 2;
  for (const [sensor, i] of usable) {
    const title = sensor.held_out ? "held out" : "";
    const button = make("button", { type: "button", textContent: sensor.name, title, value: i });
    button.onclick = () => choose(i);
    part("cameras").lastElementChild.append(button);
  }
  part("closer").onclick = () => move(() => camera.closer(1.25));
  part("farther").onclick = () => move(() => camera.closer(1 / 1.25));
  part("reset").onclick = () => choose(camera.sensor);
  part("keys").textContent = camera.flat
    ? "Drag to move; wheel, pinch, + and − enlarge; arrow keys move; Home goes back."
    : "Drag or arrow keys turn; with Shift, the right button or two fingers they move; wheel, pinch, + and − come closer; "
      + "Home goes back to the sensor, Page Up and Page Down take the next; Space pauses the run and lets it go on.";

  const fingers = new Map();
  picture.onpointerdown = (event) => {
    picture.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    picture.focus({ preventScroll: true });
  };
  picture.onpointermove = (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    const [right, down] = sub(now, before);
    if (fingers.size === 1) {
      const pans = event.shiftKey || event.ctrlKey || (event.buttons & 6) !== 0;
      move(() => pans ? camera.pan(right, down) : camera.orbit(right, down));
    } else if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const bounds = picture.getBoundingClientRect();
      const middle = times(add(now, other), 0.5);
      const ratio = length(sub(now, other)) / (length(sub(before, other)) || 1);
      move(() => {
        camera.pan(right / 2, down / 2);
        camera.closer(ratio || 1, (middle[0] - bounds.left) / bounds.width, (middle[1] - bounds.top) / bounds.height);
      });
    }
    fingers.set(event.pointerId, now);
  };
  picture.onpointerup = picture.onpointercancel = (event) => fingers.delete(event.pointerId);
  picture.oncontextmenu = (event) => event.preventDefault();
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const bounds = picture.getBoundingClientRect();
    const steps = event.deltaMode === 0 ? event.deltaY / 400 : event.deltaY / 12;
    const [x, y] = [(event.clientX - bounds.left) / bounds.width, (event.clientY - bounds.top) / bounds.height];
    move(() => camera.closer(Math.exp(-Math.max(-1, Math.min(1, steps))), x, y));
  }, { passive: false });
  picture.onkeydown = (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const places = usable.map(([, i]) => i);
    const next = (step) => places[(places.indexOf(camera.sensor) + step + places.length) % places.length];
    if (by && event.shiftKey) move(() => camera.pan(24 * by[0], 24 * by[1]));
    else if (by) move(() => camera.orbit(24 * by[0], 24 * by[1]));
    else if (event.key === "+" || event.key === "=") move(() => camera.closer(1.1));
    else if (event.key === "-") move(() => camera.closer(1 / 1.1));
    else if (event.key === "Home" || event.key === "0") choose(camera.sensor);
    else if (event.key === "PageDown") choose(next(1));
    else if (event.key === "PageUp") choose(next(-1));
    else if (event.key === " " && part("pause")) part("pause").click();
    else return;
    event.preventDefault();
  };
  addEventListener("resize", () => { fit(); ask(); });
  choose(data.first);
}

/** The run's commands. */
function command() {
  const button = (id, text, title, press) => {
    const made = make("button", { type: "button", id, textContent: text, title });
    made.onclick = press;
    part("commands").append(made);
    return made;
  };
  button("pause", "Pause", "The run waits before its next iteration", () => {
    post(part("pause").dataset.paused ? "/go_on" : "/pause");
  });
  button("save", "Save", "Write a checkpoint now", () => post("/save"));
  let sure = null;
  button("stop", "Stop", "Stop the run as Ctrl-C does: it is saved and can be resumed", () => {
    const stop = part("stop");
    clearTimeout(sure);
    if (stop.dataset.sure) { post("/stop"); delete stop.dataset.sure; stop.textContent = "Stop"; return; }
    stop.dataset.sure = "true";
    stop.textContent = "Stop the run?";
    sure = setTimeout(() => { delete stop.dataset.sure; stop.textContent = "Stop"; }, 3000);
  });
}

function standing(news) {
  const pill = part("standing");
  pill.dataset.state = news.state;
  pill.textContent = news.state;
  const pause = part("pause");
  if (pause) {
    pause.textContent = news.state === "paused" ? "Go on" : "Pause";
    if (news.state === "paused") pause.dataset.paused = "true"; else delete pause.dataset.paused;
    for (const button of part("commands").children) button.disabled = ["over", "stopping"].includes(news.state);
  }
  if (news.text) say(news.text);
}

function figures(of) {
  const rows = [
    ["iteration", String(of.iteration)], ["loss", short(of.loss)],
    ["PSNR", of.psnr === null ? "–" : `${of.psnr.toFixed(2)} dB`], ["time", duration(of.seconds)],
    ["an iteration", `${short(+of.ms.total.toPrecision(3))} ms`], ["stage", String(of.stage)],
  ];
  const list = make("dl", {}, ...rows.map(([name, value]) =>
    make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
  part("figures").replaceChildren(list);
  part("figures").hidden = false;
  if (data.run) {
    part("progress").hidden = false;
    part("progress").firstElementChild.style.width = `${Math.min(100, 100 * of.iteration / data.run.iterations)}%`;
  }
  const head = make("tr", {}, make("th", { textContent: "parameter" }),
    make("th", { className: "number", textContent: "learning rate" }),
    make("th", { className: "number", textContent: "gradient" }));
  const lines = Object.entries(of.learning_rates).map(([path, rate]) => make("tr", {},
    make("td", {}, ...path.split(/(?<=\.)/).flatMap((name) => [make("wbr"), name])),
    make("td", { className: "number", textContent: short(rate) }),
    make("td", { className: "number", textContent: short(of.gradient_norms[path]) })));
  part("rates").replaceChildren(make("table", {}, head, ...lines));
  part("rates").hidden = lines.length === 0;
}

/** The report beneath: a new one is loaded out of sight and then takes the place of the one that is there. The last is not waited for. */
const report = (() => {
  let busy = false, again = false, last = false, wake = () => {};
  try { sessionStorage.setItem("/reportfollow", "false"); } catch {}
  const hide = "html { overflow: hidden; } header, #follow, .note:has(#follow), footer { display: none !important; } main { padding-top: 4px; }";
  function showAlone(frame) {
    const page = frame.contentDocument;
    page.head.append(make("style", { textContent: hide }));
    page.documentElement.dataset.theme = document.documentElement.dataset.theme;
    const size = () => { frame.style.height = `${page.documentElement.offsetHeight}px`; };
    new ResizeObserver(size).observe(page.documentElement);
    size();
  }
  return async function report(news) {
    last ||= news.last === true;
    if (busy) {
      again = true;
      if (last) wake();
      return;
    }
    busy = true;
    const frame = make("iframe", { className: "coming", title: "report", src: at("/report") });
    const old = part("report").querySelector("iframe");
    await new Promise((done) => { frame.onload = done; part("report").append(frame); });
    showAlone(frame);
    frame.classList.remove("coming");
    old?.remove();
    frame.dataset.loads = Number(old?.dataset.loads ?? 0) + 1;
    if (!last) await new Promise((done) => { wake = done; setTimeout(done, 2000); });
    busy = false;
    if (again) { again = false; report({}); }
  };
})();

/** News, while the page is looked at. */
const follow = (() => {
  let source = null;
  const listen = () => {
    source = new EventSource(at("/events"));
    const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
    on("standing", (news) => {
      if (news.state === "over") { over = true; source.close(); }
      standing(news);
    });
    on("figures", figures);
    on("picture", draw);
    on("report", report);
    on("saved", (news) => {
      const text = `checkpoint of iteration ${news.iteration} saved`;
      say(text);
      setTimeout(() => { if (part("message").textContent === text) say(""); }, 10000);
    });
    source.onerror = () => {
      if (over) return;
      part("standing").dataset.state = "lost";
      part("standing").textContent = "no connection";
    };
  };
  return () => {
    if (document.hidden && source) { source.close(); source = null; }
    if (!document.hidden && !source && !over) listen();
  };
})();

{
  const root = document.documentElement, button = part("theme");
  const label = () => { button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
  button.onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("prbopt-theme", root.dataset.theme); } catch {}
    for (const frame of document.querySelectorAll("iframe")) {
      frame.contentDocument.documentElement.dataset.theme = root.dataset.theme;
    }
    label();
  };
  label();
}
if (data.run) command();
if (data.has_camera) look();
document.addEventListener("visibilitychange", follow);
follow();
