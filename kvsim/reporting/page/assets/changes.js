"use strict";

// What the scripts of this page share.
const kvsim = {};

// The changes of one map, as kvsim/reporting/page/map/packing.py wrote them: columns, one entry a change.
kvsim.unpack = async (text) => {
  const deflated = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  const signed = () => {
    const value = next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  const times = next(), count = next();
  const time = new Float64Array(times);   // seconds, of those moments at which anything changes
  const until = new Uint32Array(times);   // how many changes there were up to and including that moment
  const owner = new Uint32Array(count), kind = new Uint8Array(count);
  const start = new Uint32Array(count), length = new Uint32Array(count);
  for (let i = 0, us = 0; i < times; i++) time[i] = (us += next()) / 1e6;
  for (let i = 0, sum = 0; i < times; i++) until[i] = sum += next();
  for (let i = 0, last = 0; i < count; i++) owner[i] = last += signed();
  for (let i = 0; i < count; i++) kind[i] = next();
  const from = new Uint32Array(count);
  const ends = new Map();
  const offsets = new Float64Array(count);
  for (let i = 0; i < count; i++) offsets[i] = signed();
  for (let i = 0; i < count; i++) length[i] = next();
  for (let i = 0; i < count; i++) {
    const code = owner[i] * 8 + kind[i];
    start[i] = (ends.get(code) || 0) + offsets[i];
    ends.set(code, start[i] + length[i]);
  }
  for (let moment = 0, i = 0; moment < times; moment++) while (i < until[moment]) from[i++] = moment;
  return {
    count, time, until, owner, kind, start, length,
    timeOf: (change) => time[from[change]],
    // How many changes there were up to a time.
    before: (seconds) => {
      let low = 0, high = times;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (time[middle] <= seconds) low = middle + 1; else high = middle;
      }
      return low ? until[low - 1] : 0;
    },
  };
};
