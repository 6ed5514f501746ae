"use strict";

// One map: addresses upwards, time to the right, and below it the pool as it is at the time chosen.
kvsim.LEFT = 58;
kvsim.BOTTOM = 22;
kvsim.TOP = 8;
kvsim.RIGHT = 10;
kvsim.STRIP_LINES = 6;
kvsim.STRIP_LINE = 9;
kvsim.CHUNK_MS = 8;

kvsim.ticks = (low, high, most) => {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
};

kvsim.Plane = class {
  constructor(data, changes, canvas, strip, view) {
    Object.assign(this, { data, canvas, strip, view });
    this.pool = new kvsim.Pool(changes, data.pool);   // as it is at the time chosen
    this.pool.seek(changes.count);                    // takes the snapshots
    this.probe = this.pool.twin();                    // as it is under the cursor
    this.brush = this.pool.twin();                    // as it is in the column being drawn
    this.bitmap = document.createElement("canvas");
    this.stripBitmap = document.createElement("canvas");
    this.column = 0;
  }

  // Fit into the width there is; everything has to be drawn again.
  resize(width, height, ratio) {
    this.ratio = ratio;
    this.width = Math.max(40, width - kvsim.LEFT - kvsim.RIGHT);
    this.height = height - kvsim.TOP - kvsim.BOTTOM;
    for (const [canvas, w, h] of [
      [this.canvas, width, height],
      [this.strip, width, kvsim.STRIP_LINES * kvsim.STRIP_LINE],
    ]) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.height = `${h}px`;
    }
    this.bitmap.width = Math.round(this.width * ratio);
    this.bitmap.height = Math.min(this.data.pool, Math.round(this.height * ratio));
    this.stripBitmap.width = Math.min(Math.round(this.width * ratio), Math.ceil(this.data.pool / kvsim.STRIP_LINES));
    this.stripBitmap.height = kvsim.STRIP_LINES;
    this.restart();
  }

  restart() {
    this.column = 0;
    this.bitmap.getContext("2d").clearRect(0, 0, this.bitmap.width, this.bitmap.height);
  }

  get drawn() {
    return this.column >= this.bitmap.width;
  }

  timeAt(x) {
    return this.view.from + ((x - kvsim.LEFT) / this.width) * (this.view.to - this.view.from);
  }

  slotAt(y) {
    const share = 1 - (y - kvsim.TOP) / this.height;
    const address = (this.view.low + share * (this.view.high - this.view.low)) * this.data.pool;
    return Math.max(0, Math.min(this.data.pool - 1, Math.floor(address)));
  }

  xOf(time) {
    return kvsim.LEFT + ((time - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }

  yOf(slot) {
    const share = ((slot + 0.5) / this.data.pool - this.view.low) / (this.view.high - this.view.low);
    return kvsim.TOP + (1 - share) * this.height;
  }

  // Draw some more columns of the bitmap, until `deadline`. Each point is the slot in its middle at the middle of its
  // time, so that the map never shows what is nowhere.
  advance(colours, deadline) {
    const { bitmap, brush, view } = this;
    if (this.drawn) return;
    const context = bitmap.getContext("2d");
    const rows = bitmap.height;
    const slots = Uint32Array.from({ length: rows }, (_, row) => {
      const share = view.low + ((rows - row - 0.5) / rows) * (view.high - view.low);
      return Math.min(this.data.pool - 1, Math.floor(share * this.data.pool));
    });
    do {
      const wide = Math.min(16, bitmap.width - this.column);
      const image = context.createImageData(wide, rows);
      const points = new Uint32Array(image.data.buffer);
      for (let x = 0; x < wide; x++) {
        const time = view.from + ((this.column + x + 0.5) / bitmap.width) * (view.to - view.from);
        brush.seekTime(time);
        for (let row = 0; row < rows; row++) points[row * wide + x] = colours.of(brush, slots[row]);
      }
      context.putImageData(image, this.column, 0);
      this.column += wide;
    } while (!this.drawn && performance.now() < deadline);
  }

  paint(look, now, cursor) {
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = false;
    const { LEFT, TOP } = kvsim, right = LEFT + this.width, bottom = TOP + this.height;
    context.fillStyle = look.free;
    context.fillRect(LEFT, TOP, this.width, this.height);
    context.drawImage(this.bitmap, LEFT, TOP, this.width, this.height);
    const x = Math.max(LEFT, Math.min(right, this.xOf(now)));
    context.fillStyle = look.veil;
    context.fillRect(x, TOP, right - x, this.height);
    context.strokeStyle = look.line;
    context.strokeRect(LEFT - 0.5, TOP - 0.5, this.width + 1, this.height + 1);
    this.label(context, look, bottom);
    if (now >= this.view.from && now <= this.view.to) this.rule(context, look.ink, x, TOP, x, bottom);
    if (cursor) {
      const at = this.xOf(cursor.time);
      if (at >= LEFT && at <= right) this.rule(context, look.accent, at, TOP, at, bottom);
      if (cursor.plane === this) {
        const y = this.yOf(cursor.slot);
        this.rule(context, look.accent, LEFT, y, right, y);
      }
      if (cursor.box && cursor.plane === this) {
        const [x0, y0, x1, y1] = cursor.box;
        context.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      }
    }
    this.pool.seekTime(now);
    this.paintStrip(look);
  }

  label(context, look, bottom) {
    context.font = look.font;
    context.fillStyle = look.pale;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const slots = this.data.pool, [addresses] = kvsim.ticks(this.view.low * slots, this.view.high * slots, 4);
    for (const slot of addresses)
      context.fillText(Math.round(slot).toLocaleString("en"), kvsim.LEFT - 6, this.yOf(slot - 0.5));
    context.textBaseline = "top";
    context.textAlign = "center";
    const [times, digits] = kvsim.ticks(this.view.from, this.view.to, Math.max(2, this.width / 90));
    for (const time of times) {
      const text = `${time.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
      const x = Math.min(this.xOf(time), kvsim.LEFT + this.width - context.measureText(text).width / 2);
      context.fillText(text, x, bottom + 6);
    }
  }

  rule(context, colour, x0, y0, x1, y1) {
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  // The whole pool now, in lines from left to right, address 0 first.
  paintStrip(look) {
    const { stripBitmap, pool } = this;
    const wide = stripBitmap.width, lines = stripBitmap.height;
    const small = stripBitmap.getContext("2d");
    const image = small.createImageData(wide, lines);
    const points = new Uint32Array(image.data.buffer);
    for (let i = 0; i < points.length; i++)
      points[i] = look.colours.of(pool, Math.min(this.data.pool - 1, Math.floor(((i + 0.5) / points.length) * this.data.pool)));
    small.putImageData(image, 0, 0);
    const context = this.strip.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.strip.width, this.strip.height);
    context.imageSmoothingEnabled = false;
    for (let line = 0; line < lines; line++)
      context.drawImage(stripBitmap, 0, line, wide, 1, kvsim.LEFT, line * kvsim.STRIP_LINE, this.width, kvsim.STRIP_LINE - 2);
  }
};
