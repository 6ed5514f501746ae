"use strict";

// The memory map: its controls, its cursor, and the clock that they share.
kvsim.FRAMES_KEPT = 600;
kvsim.frames = [];          // milliseconds that each of the last frames took to draw
kvsim.PLAY_S = 20;          // the whole run takes so long at speed 1

kvsim.startMap = async (root) => {
  const model = JSON.parse(document.getElementById("map-data").textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const length = Math.max(...model.maps.map((map) => map.length_s));
  const view = { from: 0, to: length, low: 0, high: 1 };
  const planes = [];
  const template = part("plane");
  for (const data of model.maps) {
    const figure = template.content.firstElementChild.cloneNode(true);
    figure.querySelector("[data-part=name]").textContent = data.name;
    const [canvas, strip] = figure.querySelectorAll("canvas");
    canvas.setAttribute("aria-label", `${data.name}: what lies at which address when. Arrow keys move a cursor.`);
    strip.setAttribute("aria-label", `${data.name}: the pool at the time chosen`);
    part("planes").append(figure);
    const plane = new kvsim.Plane(data, await kvsim.unpack(data.text), canvas, strip, view);
    data.text = "";
    plane.now = figure.querySelector("[data-part=now]");
    plane.requests = new Map();
    for (let i = 0; i < data.requests.length; i += 4) plane.requests.set(data.requests[i], data.requests.slice(i + 1, i + 4));
    planes.push(plane);
  }
  const state = { now: 0, playing: false, cursor: null, byRequest: false, dirty: true, before: 0 };
  const requestOf = (plane) => (owner) => (owner ? plane.data.owners[owner * 2 - 2] : -1);
  const seconds = (time, digits = 2) => `${time.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
  const whole = (number) => Math.round(number).toLocaleString("en");

  const dress = () => {
    for (const plane of planes) {
      plane.look = kvsim.look(root);
      plane.look.colours = new kvsim.Colours(model.classes, plane.look.free, state.byRequest, requestOf(plane), plane.data.owners.length / 2);
      plane.restart();
    }
    state.dirty = true;
  };
  const height = () => (planes.length === 1 ? 380 : planes.length === 2 ? 280 : planes.length < 5 ? 220 : 180);
  const fit = () => {
    for (const plane of planes) {
      const wide = plane.canvas.parentElement.clientWidth, ratio = devicePixelRatio || 1;
      if (wide !== plane.wide || ratio !== plane.ratio) plane.resize(wide, height(), ratio);
      plane.wide = wide;
    }
    state.dirty = true;
  };
  const redraw = () => {
    for (const plane of planes) plane.restart();
    state.dirty = true;
  };

  const goTo = (time) => {
    state.now = Math.max(0, Math.min(length, time));
    part("time").value = Math.round((state.now / length) * Number(part("time").max));
    part("time").setAttribute("aria-valuetext", seconds(state.now));
    part("clock").textContent = seconds(state.now);
    state.dirty = true;
  };
  const play = (on) => {
    if (on && state.now >= length) goTo(0);
    state.playing = on;
    part("play").textContent = on ? "Pause" : "Play";
    part("play").setAttribute("aria-pressed", String(on));
  };

  const zoom = (times) => {
    const cursor = state.cursor, share = cursor ? cursor.slot / cursor.plane.data.pool : (view.low + view.high) / 2;
    const time = cursor ? cursor.time : state.now >= view.from && state.now <= view.to ? state.now : (view.from + view.to) / 2;
    const within = (low, high, middle, least, most) => {
      const size = Math.min(most, Math.max(least, (high - low) / times));
      const start = Math.max(0, Math.min(most - size, middle - ((middle - low) / (high - low)) * size));
      return [start, start + size];
    };
    [view.from, view.to] = within(view.from, view.to, time, length / 1e4, length);
    [view.low, view.high] = within(view.low, view.high, share, 1e-4, 1);
    redraw();
  };
  const showAll = () => {
    Object.assign(view, { from: 0, to: length, low: 0, high: 1 });
    redraw();
  };
  const showBox = (plane, [x0, y0, x1, y1]) => {
    const pool = plane.data.pool;
    const times = [plane.timeAt(Math.min(x0, x1)), plane.timeAt(Math.max(x0, x1))];
    const slots = [plane.slotAt(Math.max(y0, y1)), plane.slotAt(Math.min(y0, y1)) + 1];
    Object.assign(view, { from: times[0], to: times[1], low: slots[0] / pool, high: slots[1] / pool });
    redraw();
  };

  const tip = part("tip");
  const tell = () => {
    const cursor = state.cursor;
    tip.hidden = !cursor;
    if (!cursor) return;
    const { plane, slot, time } = cursor, { data } = plane;
    plane.probe.seekTime(time);
    const found = plane.probe.describe(slot);
    const name = model.classes[found.kind].name;
    const request = requestOf(plane)(found.owner);
    const lines = [[`${data.name} · ${seconds(time)} · address ${whole(slot)}` + (data.block > 1 ? ` (block ${whole(Math.floor(slot / data.block))})` : "")]];
    const run = `${whole(found.end - found.first)} slot${found.end - found.first === 1 ? "" : "s"} from ${whole(found.first)}`;
    lines.push([`${name}${found.since ? ` since ${seconds(found.since)}` : " from the start"}: ${run}`]);
    if (request >= 0) {
      const sample = data.owners[found.owner * 2 - 1];
      lines.push([`request ${request}${model.samples ? `, sample ${sample}` : ""}`]);
      const told = plane.requests.get(request);
      if (told) lines.push([`prompt ${whole(told[0])}, output ${whole(told[1])} tokens; arrived at ${seconds(told[2])}`]);
      const holds = found.holds.map((slots, kind) => (slots ? `${whole(slots)} ${model.classes[kind].name}` : "")).filter(Boolean);
      lines.push([`holds ${holds.join(", ")}`]);
    }
    tip.replaceChildren(...lines.map(([text]) => Object.assign(document.createElement("div"), { textContent: text })));
    Object.assign(tip.dataset, { time, slot, kind: name, request: request < 0 ? "" : request, since: found.since });
    const box = plane.canvas.getBoundingClientRect(), outer = root.getBoundingClientRect();
    const x = box.left - outer.left + plane.xOf(time), y = box.top - outer.top + plane.yOf(slot);
    tip.style.left = `${Math.max(0, Math.min(x + 14, outer.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 16}px`;
  };
  const point = (cursor) => {
    state.cursor = cursor;
    tell();
    state.dirty = true;
  };

  for (const plane of planes) {
    const { canvas } = plane;
    let down = null;
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      const x = Math.max(kvsim.LEFT, Math.min(kvsim.LEFT + plane.width - 0.01, event.clientX - box.left));
      const y = Math.max(kvsim.TOP, Math.min(kvsim.TOP + plane.height - 0.01, event.clientY - box.top));
      return [x, y];
    };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = inside(event);
      const box = down && Math.hypot(x - down[0], y - down[1]) > 6 ? [...down, x, y] : null;
      point({ plane, time: plane.timeAt(x), slot: plane.slotAt(y), box });
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse") down = inside(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const box = state.cursor && state.cursor.box;
      if (box) showBox(plane, box); else goTo(plane.timeAt(inside(event)[0]));
      down = null;
      if (state.cursor) point({ ...state.cursor, box: null });
    });
    canvas.addEventListener("pointerleave", () => {
      down = null;
      point(null);
    });
    canvas.addEventListener("dblclick", showAll);
    canvas.addEventListener("blur", () => point(null));
    canvas.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 20 : 1;
      const at = state.cursor && state.cursor.plane === plane ? state.cursor : {
        plane, time: Math.max(view.from, Math.min(view.to, state.now)), slot: plane.slotAt(kvsim.TOP + plane.height / 2),
      };
      const dt = ((view.to - view.from) / plane.width) * step;
      const slots = Math.max(1, Math.round(((view.high - view.low) * plane.data.pool) / plane.height)) * step;
      const moves = {
        ArrowLeft: [-dt, 0], ArrowRight: [dt, 0], ArrowUp: [0, slots], ArrowDown: [0, -slots],
        Home: [view.from - at.time, 0], End: [view.to - at.time, 0],
      };
      const move = moves[event.key];
      if (move) {
        const time = Math.max(view.from, Math.min(view.to, at.time + move[0]));
        point({ plane, time, slot: Math.max(0, Math.min(plane.data.pool - 1, at.slot + move[1])) });
      } else if (event.key === "Enter") goTo(at.time);
      else if (event.key === "Escape") point(null);
      else if (event.key === " ") play(!state.playing);
      else if (event.key === "+" || event.key === "=") zoom(2);
      else if (event.key === "-") zoom(0.5);
      else if (event.key === "0") showAll();
      else return;
      event.preventDefault();
    });
  }

  part("play").addEventListener("click", () => play(!state.playing));
  part("time").addEventListener("input", (event) => {
    play(false);
    goTo((Number(event.target.value) / Number(event.target.max)) * length);
  });
  for (const choice of root.querySelectorAll("input[name=map-colour]"))
    choice.addEventListener("change", () => {
      state.byRequest = choice.value === "request";
      root.dataset.colour = choice.value;
      dress();
    });
  part("closer").addEventListener("click", () => zoom(2));
  part("farther").addEventListener("click", () => zoom(0.5));
  part("all").addEventListener("click", showAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  new ResizeObserver(fit).observe(part("planes"));

  const sayNow = () => {
    for (const plane of planes) {
      const { counts } = plane.pool;
      const shares = model.classes.map((one, kind) => [one.name, (counts[kind] / plane.data.pool) * 100]);
      plane.now.textContent = shares.filter(([, share]) => share >= 0.05).map(([name, share]) => `${name} ${share.toFixed(1)} %`).join(" · ");
    }
  };
  const frame = (time) => {
    if (state.playing) {
      const speed = Number(part("speed").value);
      goTo(state.now + ((time - state.before) / 1000 / kvsim.PLAY_S) * speed * length);
      if (state.now >= length) play(false);
    }
    state.before = time;
    const begun = performance.now();
    const unfinished = planes.filter((plane) => !plane.drawn);
    if (state.dirty || unfinished.length) {
      for (const plane of unfinished) plane.advance(plane.look.colours, begun + kvsim.CHUNK_MS);
      state.dirty = false;
      for (const plane of planes) plane.paint(plane.look, state.now, state.cursor);
      sayNow();
      kvsim.frames.push(performance.now() - begun);
      if (kvsim.frames.length > kvsim.FRAMES_KEPT) kvsim.frames.shift();
    }
    root.dataset.drawn = String(planes.every((plane) => plane.drawn));
    requestAnimationFrame(frame);
  };
  dress();
  fit();
  goTo(Math.min(...model.maps.map((map) => map.length_s)) / 2);
  requestAnimationFrame(frame);
};

{
  const root = document.getElementById("map");
  if (root) {
    const sorry = (why) => {
      root.querySelector("[data-part=trouble]").textContent = `The map cannot be drawn here: ${why}`;
    };
    if ("DecompressionStream" in window) kvsim.startMap(root).catch((error) => { sorry(error.message); throw error; });
    else sorry("this browser has no DecompressionStream; use one of 2023 or later.");
  }
}
