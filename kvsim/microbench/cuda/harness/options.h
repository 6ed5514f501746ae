// The command line of the harness.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

struct Options {
  std::string preset = "quick";  // tiny, quick or full
  std::string cublas, dump, out;
  std::set<std::string> only;    // benchmarks; empty: all
  std::vector<std::string> traces;
  double budget_s = 0.0;         // 0: the preset's
  double sample_us = 200.0;      // a sample repeats its pass until it lasts so long
  double group_s = 0.0;          // most seconds of samples of one group
  int samples = 0;               // 0: the preset's
  int warm = 3;                  // passes before the first sample
  unsigned seed = 1;
  bool verify = true, verify_only = false;

  bool tiny() const { return preset == "tiny"; }
  bool full() const { return preset == "full"; }
};

inline const char* kUsage =
    "usage: microbench [--preset tiny|quick|full] [--budget-s S] [--only BENCH,...] [--samples N] [--sample-us U]\n"
    "                  [--seed N] [--verify-only] [--no-verify] [--cublas LIBRARY] [--frag TRACE]... [--dump DIR]\n"
    "                  [--out FILE]\n";

// Returns what is wrong with the command line, or nothing.
inline std::string parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verify-only") {
      o.verify_only = true;
      continue;
    }
    if (name == "--no-verify") {
      o.verify = false;
      continue;
    }
    if (i + 1 == argc) return name + " is no option, or lacks its value";
    const std::string value = argv[++i];
    if (name == "--preset") o.preset = value;
    else if (name == "--cublas") o.cublas = value;
    else if (name == "--dump") o.dump = value;
    else if (name == "--out") o.out = value;
    else if (name == "--frag") o.traces.push_back(value);
    else if (name == "--budget-s") o.budget_s = std::atof(value.c_str());
    else if (name == "--sample-us") o.sample_us = std::atof(value.c_str());
    else if (name == "--samples") o.samples = std::atoi(value.c_str());
    else if (name == "--seed") o.seed = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "--only") {
      for (size_t at = 0; at <= value.size();) {
        const size_t comma = std::min(value.find(',', at), value.size());
        o.only.insert(value.substr(at, comma - at));
        at = comma + 1;
      }
    } else return name + " is no option";
  }
  if (!o.tiny() && !o.full() && o.preset != "quick") return "--preset " + o.preset + ": tiny, quick and full are known";
  if (o.budget_s <= 0.0) o.budget_s = o.full() ? 180.0 : 60.0;
  if (o.samples <= 0) o.samples = o.full() ? 50 : 20;
  if (o.tiny()) o.warm = 1;
  o.group_s = o.full() ? 1.0 : 0.4;
  return "";
}
