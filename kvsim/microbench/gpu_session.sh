#!/usr/bin/env bash
# Everything that only a GPU can show, in under 8 minutes: what it is, whether every output is right there, the
# sanitizers of its own tools, `quick` (kept if all else fails), `full`, a second opinion by torch, the fit and its scores.
#
#   gpu_session.sh [-o DIR] [-p PROGRAM]      PROGRAM: one that `kvsim calibrate build` made elsewhere
#
# Each part writes its file into DIR before the next begins. The exit code is 0 where every part passed that could run.
set -uo pipefail

out=gpu-session program=
while getopts o:p: option; do
  case $option in
    o) out=$OPTARG ;;
    p) program=$OPTARG ;;
    *) exit 2 ;;
  esac
done
mkdir -p "$out"
report=$out/summary.txt
: > "$report"
failed=0

# part SECONDS NAME COMMAND...: runs it, notes how it ended and how long it took.
part() {
  local limit=$1 name=$2 begun=$SECONDS code
  shift 2
  timeout "$limit" "$@" > "$out/$name.log" 2>&1
  code=$?
  printf '%-12s exit %3d  %4d s  %s\n' "$name" "$code" $((SECONDS - begun)) "$out/$name.log" | tee -a "$report"
  return "$code"
}
must() { part "$@" || failed=1; }

command -v nvidia-smi > /dev/null && part 20 device nvidia-smi -q
starts() { "$program" --preset tiny --only launch > "$out/start.log" 2>&1; }
if [ -n "$program" ]; then starts; code=$?; else code=127; fi
if [ "$code" != 0 ] && [ "$code" != 77 ]; then  # there is none, or it was made for another machine
  program=$out/microbench
  part 120 build kvsim calibrate build -o "$program" || exit 1
  starts
  code=$?
fi
if [ "$code" = 77 ]; then
  cat "$out/start.log" >&2
  exit 77
fi

must 60 verify kvsim calibrate run --program "$program" --verify-only -o "$out/verify.jsonl"
if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    must 60 "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" --preset tiny --verify-only \
      --only hbm,kv_read,decode_attn,prefill_attn,swap_blocks
  done
fi
must 100 quick kvsim calibrate run --program "$program" --preset quick --budget-s 60 -o "$out/quick.jsonl"
must 220 full kvsim calibrate run --program "$program" --preset full --budget-s 140 -o "$out/full.jsonl"
if python3 -c "import torch; raise SystemExit(not torch.cuda.is_available())" 2> /dev/null; then
  part 60 torch python3 "$(dirname "$0")/torch_check.py" "$out/full.jsonl" "$out/torch.jsonl"
fi
results=$out/full.jsonl
[ -s "$results" ] || results=$out/quick.jsonl
must 60 fit kvsim calibrate fit "$results" -o "$out/calibration.json" --figures "$out/figures"
must 60 validate kvsim calibrate validate "$out/calibration.json" "$results"
cat "$report"
exit $failed
