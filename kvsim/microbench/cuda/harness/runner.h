// Measures a plan: warms, checks, samples, writes a line for each case, and keeps to the budget.
#pragma once
#include <algorithm>
#include <functional>
#include <numeric>

#include "options.h"
#include "plan.h"
#include "telemetry.h"

class Runner {
 public:
  Runner(Session& session, const Options& options, Lines& out)
      : session_(session), options_(options), out_(out), begun_s_(host_now_s()) {}

  // Seconds since the run began.
  double elapsed_s() const { return host_now_s() - begun_s_; }

  // Groups by importance and, within it, in random order; an anchor now and then. False when the device is lost.
  bool run(Plan plan, const std::function<void(Plan&)>& add_anchors) {
    for (size_t i = plan.size(); i > 1; --i)
      std::swap(plan[i - 1], plan[hash_word(i, session_.seed) % i]);
    std::stable_sort(plan.begin(), plan.end(), [](const Group& a, const Group& b) { return a.importance < b.importance; });
    Plan anchors;
    add_anchors(anchors);
    double anchored_s = -1e9;
    const auto anchor = [&] {
      anchored_s = elapsed_s();
      return std::all_of(anchors.begin(), anchors.end(), [&](const Group& group) { return measure(group); });
    };
    for (const Group& group : plan) {
      if (elapsed_s() >= options_.budget_s) {
        skip(group, "budget of " + std::to_string(static_cast<int>(options_.budget_s)) + " s is spent");
        within_budget_ = false;
        continue;
      }
      if (elapsed_s() - anchored_s >= kAnchorEvery_s && !anchor()) return false;
      if (!measure(group)) return false;
    }
    return plan.empty() || anchor();
  }

  int points() const { return points_; }
  int failed() const { return failed_; }
  bool within_budget() const { return within_budget_; }

 private:
  static constexpr double kAnchorEvery_s = 30.0;
  static constexpr int kMostPasses = 4096;

  void skip(const Group& group, const std::string& reason) {
    for (const Case& one : group.cases)
      out_.write(Json().add("type", "skip").add("bench", one.bench).add("variant", one.variant)
                     .add("params", one.params).add("role", one.role).add("reason", reason));
  }

  // False when the device cannot be used any more.
  bool measure(const Group& group) {
    size_t free = 0, total = 0;
    at_ = 0;
    try {
      CUDA(cudaMemGetInfo, &free, &total);
      if (group.device_bytes > free) {
        skip(group, "needs " + std::to_string(group.device_bytes >> 20) + " MiB of device memory, " +
                        std::to_string(free >> 20) + " MiB are free");
        return true;
      }
      sample(group, group.build(session_));
      return true;
    } catch (const Absent& absent) {
      skip(group, absent.reason);
      return true;
    } catch (const Failure& failure) {
      ++failed_;
      const Case& one = group.cases[at_ < group.cases.size() ? at_ : 0];
      out_.write(Json().add("type", "error").add("bench", one.bench).add("variant", one.variant)
                     .add("params", one.params).add("code", failure.code)
                     .add("message", failure.call + ": " + failure.message));
      return cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess;
    }
  }

  void sample(const Group& group, Subjects subjects) {
    const size_t count = subjects.size();
    std::vector<Verdict> verdicts;
    std::vector<int> passes(count, 1), next(count, 0);
    std::vector<std::vector<double>> samples(count);
    double longest_s = 0.0;
    for (at_ = 0; at_ < count; ++at_) {
      verdicts.push_back(options_.verify ? subjects[at_]->verify() : nothing_to_check());
      if (options_.verify_only) continue;
      const double once_s = run_once(*subjects[at_], next[at_], options_.warm);
      passes[at_] = static_cast<int>(std::clamp(1e-6 * options_.sample_us / std::max(once_s, 1e-9) + 1.0, 1.0,
                                                static_cast<double>(kMostPasses)));
      longest_s += once_s * passes[at_];
    }
    // As many samples as were asked for, fewer (but at least three) where they would take too long.
    const int wanted = options_.verify_only ? 0 : options_.samples;
    const int most = static_cast<int>(options_.group_s / std::max(longest_s, 1e-9));
    const int rounds = std::min(wanted, std::max(3, most));
    for (int round = 0; round < rounds; ++round)
      for (at_ = 0; at_ < count; ++at_)
        samples[at_].push_back(run_once(*subjects[at_], next[at_], passes[at_]));
    const Readings now = telemetry_.read();
    for (at_ = 0; at_ < count; ++at_) write(group.cases[at_], *subjects[at_], verdicts[at_], samples[at_], passes[at_], now);
  }

  double run_once(Subject& subject, int& next, int passes) {
    const double seconds = subject.seconds(session_, next, passes);
    next += passes;
    return seconds;
  }

  static double quantile(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return NAN;
    const double at = share * static_cast<double>(sorted.size() - 1);
    const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
  }

  void write(const Case& one, Subject& subject, const Verdict& verdict, std::vector<double>& samples, int passes,
             const Readings& now) {
    std::sort(samples.begin(), samples.end());
    Json line;
    line.add("type", "point").add("bench", one.bench).add("variant", one.variant).add("params", one.params);
    line.add("role", one.role).add("repeats", samples.size()).add("inner", passes);
    line.add("median_s", quantile(samples, 0.5)).add("p10_s", quantile(samples, 0.1));
    line.add("p90_s", quantile(samples, 0.9)).add("min_s", quantile(samples, 0.0));
    line.add("bytes", static_cast<long long>(one.bytes)).add("flops", static_cast<long long>(one.flops));
    verdict.state < 0 ? line.null("verified") : line.add("verified", verdict.state == 1);
    verdict.check ? line.add("check", verdict.check) : line.null("check");
    line.add("rel_err", verdict.error).add("sm_mhz", now.sm_mhz).add("temp_c", now.temperature_c);
    line.add("index", points_).add("t_offset_s", elapsed_s()).append(subject.more());
    out_.write(line);
    ++points_;
    failed_ += verdict.state == 0;
  }

  Session& session_;
  const Options& options_;
  Lines& out_;
  Telemetry telemetry_;
  double begun_s_;
  size_t at_ = 0;
  int points_ = 0, failed_ = 0;
  bool within_budget_ = true;
};
