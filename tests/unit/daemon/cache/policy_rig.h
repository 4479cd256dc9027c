// A policy, the datasets in use and a clock that the test turns.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/cache/policy/policy.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/plan/epoch_order.h"

namespace millrace {

// A folder that nobody listed.
inline Dataset dataset_of(std::uint64_t number, std::uint32_t samples, std::uint64_t fingerprint = 1) {
  return Dataset("/made/up", "", std::vector<Dataset::Entry>(samples), {}, fingerprint, {}, {}, DatasetNumber{number});
}

inline DatasetMember member(std::uint64_t number, std::uint32_t sample) {
  return {DatasetNumber{number}, sample, 1};
}

inline EpochBegun epoch_begun(std::uint32_t samples, std::uint64_t epoch = 0) {
  const EpochOrderSpec now{.samples = samples, .seed = 3, .epoch = epoch, .shuffle = Shuffle::kYes};
  EpochOrderSpec next = now;
  ++next.epoch;
  return {.order = now,
          .samples = samples,
          .positions = std::make_shared<const EpochPositions>(EpochOrder::create(now)->positions()),
          .next = std::make_shared<const EpochPositions>(EpochOrder::create(next)->positions())};
}

inline Policy::Piece piece(const DatasetMember& member, std::uint32_t bytes = 1, float saves = 0.5, float costs = 1.5) {
  return {.member = member, .kind = CachedKind::kPacked, .bytes = bytes, .saves = saves, .costs = costs};
}

struct PolicyRig {
  explicit PolicyRig(std::uint64_t budget) : policy({.budget = Bytes{budget}}) {}

  // A session that is in its third epoch over dataset `number`, `seconds` an epoch, since now.
  std::unique_ptr<DatasetUse> use(std::uint64_t number, std::uint32_t samples, double seconds) {
    std::unique_ptr<DatasetUse> begun = table.begin(dataset_of(number, samples));
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      begun->epoch_begun(epoch_begun(samples, epoch), now - seconds * static_cast<double>(2 - epoch));
      begun->reached(samples);
      begun->epoch_ended(now - seconds * static_cast<double>(1 - epoch));
    }
    begun->epoch_begun(epoch_begun(samples, 2), now);
    return begun;
  }

  bool worth(const Policy::Piece& piece) { return policy.worth_making(piece, *table.forecast(), now); }
  std::optional<Policy::Ticket> admit(const Policy::Piece& piece) {
    gone.clear();
    const auto ticket = policy.admit(piece, *table.forecast(), now, gone);
    for (const Policy::Ticket other : gone) std::erase(in, other);
    if (ticket) in.push_back(*ticket);
    return ticket;
  }
  // So many samples of a dataset, from its first, of which none is refused.
  void fill(std::uint64_t number, std::uint32_t samples, float costs = 1.5) {
    for (std::uint32_t i = 0; i < samples; ++i) REQUIRE(admit(piece(member(number, i), 1, 0.5, costs)));
  }
  void asked(const DatasetMember& member, int times = 1) {
    for (int i = 0; i < times; ++i) policy.asked(member, *table.forecast(), now);
  }

  Policy policy;
  UseTable table;
  double now = 1000;
  std::vector<Policy::Ticket> in, gone;
};

}  // namespace millrace
