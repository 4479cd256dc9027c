// What a run has come to: added up batch by batch, printed as text or JSON. Thread-bound(its owner).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/text/bad_lines.h"
#include "client/cli/text/cache_counts.h"
#include "client/cli/text/progress.h"
#include "millrace/client.h"

namespace millrace::cli {

inline constexpr std::chrono::milliseconds kMeasured{500};  // images/s of less time mean nothing

struct EpochReport {
  std::uint64_t epoch = 0;  // from 0
  std::uint64_t images = 0;
  std::chrono::duration<double> elapsed{};
  // Of the daemon meanwhile. JPEG files with and without a seek index; where images came from.
  std::uint64_t index_hits = 0, index_misses = 0;
  CacheCounts cache{};
  bool others = false;  // other sessions may have a part in these figures

  bool is_measured() const { return elapsed >= kMeasured; }
  double rate() const { return static_cast<double>(images) / std::max(elapsed.count(), 1e-9); }
};

// What a line tells of an epoch, without its end; `of`: how many there are.
std::string epoch_text(const EpochReport& epoch, std::uint64_t of);
void print_epoch(const EpochReport& epoch, std::uint64_t of);

class RunReport {
 public:
  void add(const EpochReport& epoch) { epochs_.push_back(epoch); }
  // Adds a batch that has ended, failed ones too; prints its bad samples to stderr, see BadLines.
  void add(const Batch& batch, Progress& progress);

  void costs(const Cost& cost) { cost_ = cost; }  // of its session so far

  void finish() { bad_lines_.finish(); }  // no batch follows

  std::uint64_t images() const { return images_; }
  std::uint64_t bad() const { return bad_; }
  std::uint64_t bytes() const { return bytes_; }

  // What the cache brought: the later epochs' median beside the first, where they took long enough together. Empty:
  // nothing was kept that helped, it is not known, or the first epoch is not measured.
  std::string cache_text() const;

  // `elapsed`: from the first epoch's start, here and below. All images, without the line's end.
  std::string total_text(std::chrono::duration<double> elapsed) const;
  void print_text(std::chrono::duration<double> elapsed) const;
  void print_json(std::chrono::duration<double> elapsed, const std::string& daemon_version) const;

 private:
  static constexpr std::uint64_t kListedMost = 1000;  // bad samples in the JSON object

  double mean_ms(std::chrono::microseconds sum) const;

  std::uint64_t batches_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t bad_ = 0;
  std::uint64_t bytes_ = 0;
  std::chrono::microseconds fetch_{};
  std::chrono::microseconds queue_{};
  std::chrono::microseconds decode_{};
  std::chrono::microseconds transform_{};
  BadLines bad_lines_;
  std::vector<SampleError> listed_;
  std::vector<EpochReport> epochs_;
  std::optional<Cost> cost_;  // none: the daemon is older
};

}  // namespace millrace::cli
