// When the samples of the datasets in use are wanted again. Nothing here is guessed where it is known: a session's epoch
// is a permutation with a seed, so each sample's place in it, and in the next one, is a number; speed turns places into
// seconds. Where an order is not known there are rates alone.
//
//   epoch 3, reached 5 of 8:   2 7 0 4 1 | 6 3 5        sample 3 comes after 1 more, at 6 / speed - 5 / speed
//   epoch 4, expected:         5 0 3 6 2 7 1 4          sample 0 comes after 3 + gap + 1
//
// Thread-safe: a ReuseForecast never changes once it is shared, but for the progress that its sessions note.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "daemon/model/files/dataset_use.h"

namespace millrace {

// What is expected of one sample's accesses, by all sessions together.
struct Expectation {
  double rate = 0;                                        // accesses a second, in the long run; 0: nobody uses it
  double wait = std::numeric_limits<double>::infinity();  // seconds until the next access
  double further = 0;                                     // accesses that are still to come, as far as one can hope
};

class ReuseForecast {
 public:
  // One session's epochs over one dataset.
  struct Session {
    std::uint16_t listing = 0;
    std::uint32_t rank = 0, world = 1;
    std::uint64_t dataset_samples = 0;
    std::uint64_t samples = 0;  // of an epoch of its rank
    std::shared_ptr<const EpochPositions> now, next;
    std::uint64_t first = 0;   // where the epoch began
    double begun = 0;          // seconds
    double ended = -1;         // less than 0: the epoch is under way
    double speed_before = 0;   // samples a second of the epoch before; 0: there was none
    double gap = 0;            // seconds between two epochs, as there were last
    std::uint32_t epochs = 0;  // begun so far
    std::shared_ptr<const std::atomic<std::uint64_t>> reached;  // samples of the epoch; the session goes on writing
  };
  struct InUse {
    DatasetNumber dataset = DatasetNumber::kNone;
    std::vector<Session> sessions;
  };

  // One dataset as it is at one moment, for many questions. Borrows from the ReuseForecast.
  class Moment {
   public:
    double rate() const { return rate_; }
    double further() const { return further_; }
    double jobs() const { return jobs_; }  // the ranks of one are one together, if all are here
    Expectation expect(std::uint32_t sample, std::uint16_t listing) const;

   private:
    friend class ReuseForecast;
    static constexpr std::size_t kMost = 32;  // sessions whose orders count; of others the rates do
    struct Ahead {
      const Session* session = nullptr;
      double speed = 0;
      double reached = 0;
      double until_next = 0;  // seconds until the next epoch begins
      double cycle = 0;       // seconds from one epoch's begin to the next one's
    };
    double wait(const Ahead& ahead, std::uint32_t sample, std::uint16_t listing) const;

    std::array<Ahead, kMost> ahead_;
    std::size_t count_ = 0;
    double rate_ = 0;
    double further_ = 0;
    double jobs_ = 0;
  };

  ReuseForecast() = default;
  explicit ReuseForecast(std::vector<InUse> datasets);  // any order, each once

  bool in_use(DatasetNumber dataset) const { return find(dataset) != nullptr; }
  Moment at(DatasetNumber dataset, double now) const;  // of one that nobody uses: rate 0

 private:
  const InUse* find(DatasetNumber dataset) const;

  std::vector<InUse> datasets_;  // by number
};

}  // namespace millrace
