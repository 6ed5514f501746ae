"use strict";

// Colours of classes and requests, in the light or the dark form of the page.
kvsim.SHADES = [1, 0.87, 0.74];

kvsim.Colours = class {
  constructor(classes, free, byRequest, requestOf, owners) {
    this.byRequest = byRequest;
    this.requestOf = requestOf;
    this.ground = kvsim.rgb(free);
    this.free = kvsim.packed(this.ground);
    this.kinds = classes.map((one) => kvsim.rgb(one.colour));
    this.known = new Uint32Array((owners + 1) * 8);   // 0: not made yet
  }

  of(pool, slot) {
    const change = pool.last[slot];
    if (!change) return this.free;
    const kind = pool.changes.kind[change - 1];
    if (kind === kvsim.FREE) return this.free;
    const code = pool.changes.owner[change - 1] * 8 + kind;
    return this.known[code] || (this.known[code] = this.make(code >> 3, kind));
  }

  make(owner, kind) {
    const request = this.requestOf(owner);
    if (this.byRequest && request < 0)   // what is nobody's steps back behind the colours of requests
      return kvsim.packed(this.kinds[kind].map((part, place) => 0.35 * part + 0.65 * this.ground[place]));
    if (!this.byRequest) {
      const shade = request < 0 ? 1 : kvsim.SHADES[request % kvsim.SHADES.length];
      return kvsim.packed(this.kinds[kind].map((part) => part * shade));
    }
    // Neighbouring ids are a golden angle apart; what is only reserved is pale, what is never written paler still.
    const hue = (request * 137.508) % 360;
    const [saturation, light] = kind === 0 ? [0.62, 0.48] : kind === 1 ? [0.5, 0.75] : [0.22, 0.68];
    return kvsim.packed(kvsim.hsl(hue, saturation, light));
  }
};

kvsim.rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
kvsim.packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
kvsim.hsl = (hue, saturation, light) => {
  const reach = saturation * Math.min(light, 1 - light);
  return [0, 8, 4].map((shift) => {
    const turn = (shift + hue / 30) % 12;
    return Math.round(255 * (light - reach * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  });
};

kvsim.look = (element) => {
  const style = getComputedStyle(element);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    free: named("--free"), veil: named("--veil"), line: named("--line"), ink: named("--ink"), pale: named("--pale"),
    accent: named("--accent"), font: `11px ${style.fontFamily}`,
  };
};
