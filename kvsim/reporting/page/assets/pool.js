"use strict";

// The slots of a pool as they are after any number of changes: of each slot the number of the change, from 1, that
// touched it last; 0: none has, so it is free.
kvsim.FREE = 7;
kvsim.SNAPSHOT_BYTES = 24 << 20;
kvsim.MOST_SNAPSHOTS = 64;

kvsim.Pool = class {
  constructor(changes, slots) {
    this.changes = changes;
    this.last = new Uint32Array(slots);
    this.done = 0;
    this.counts = new Float64Array(8);
    this.counts[kvsim.FREE] = slots;
    this.snapshots = [];
    const most = Math.max(1, Math.min(kvsim.MOST_SNAPSHOTS, Math.floor(kvsim.SNAPSHOT_BYTES / (slots * 4))));
    this.stride = Math.max(1, Math.ceil(changes.count / most));
  }

  // Another place to stand in the same past; snapshots are shared.
  twin() {
    const other = new kvsim.Pool(this.changes, this.last.length);
    other.snapshots = this.snapshots;
    return other;
  }

  // Stand where so many changes are done.
  seek(count) {
    const nearest = Math.min(this.snapshots.length, Math.floor(count / this.stride));
    if (count < this.done || nearest * this.stride > this.done) {
      const snapshot = nearest ? this.snapshots[nearest - 1] : null;
      if (snapshot) this.last.set(snapshot.last); else this.last.fill(0);
      if (snapshot) this.counts.set(snapshot.counts);
      else this.counts.fill(0), this.counts[kvsim.FREE] = this.last.length;
      this.done = nearest * this.stride;
    }
    const { start, length, kind } = this.changes;
    const { last, counts } = this;
    for (let i = this.done; i < count; ) {
      const end = start[i] + length[i], own = kind[i];
      i++;
      for (let slot = start[i - 1]; slot < end; slot++) {
        const before = last[slot];
        counts[before ? kind[before - 1] : kvsim.FREE]--;
        last[slot] = i;
      }
      counts[own] += end - start[i - 1];
      if (i % this.stride === 0 && i / this.stride === this.snapshots.length + 1)
        this.snapshots.push({ last: last.slice(), counts: counts.slice() });
    }
    this.done = count;
  }

  seekTime(seconds) {
    this.seek(this.changes.before(seconds));
  }

  kindAt(slot) {
    const change = this.last[slot];
    return change ? this.changes.kind[change - 1] : kvsim.FREE;
  }

  ownerAt(slot) {
    const change = this.last[slot];
    return change ? this.changes.owner[change - 1] : 0;
  }

  // Everything there is to say of a slot: the run of alike slots around it, since when, and what its owner holds.
  describe(slot) {
    const kind = this.kindAt(slot), owner = this.ownerAt(slot), change = this.last[slot];
    const alike = (other) => this.kindAt(other) === kind && this.ownerAt(other) === owner;
    let first = slot, end = slot + 1;
    while (first > 0 && alike(first - 1)) first--;
    while (end < this.last.length && alike(end)) end++;
    const holds = new Array(8).fill(0);
    if (owner)
      for (let other = 0; other < this.last.length; other++)
        if (this.ownerAt(other) === owner) holds[this.kindAt(other)]++;
    return { kind, owner, first, end, holds, since: change ? this.changes.timeOf(change - 1) : 0 };
  }
};
