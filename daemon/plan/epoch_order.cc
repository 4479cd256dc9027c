#include "daemon/plan/epoch_order.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "daemon/draw/random.h"
#include "daemon/plan/block_order.h"

namespace millrace {
namespace {

Error wrong(const char* field, const std::string& what) {
  return Error{Code::kInvalid, std::string(field) + ": " + what};
}

Result<void> check(const EpochOrderSpec& spec) {
  if (spec.batch_size == 0) return wrong("batch_size", "must be at least 1");
  if (spec.world_size == 0) return wrong("world_size", "must be at least 1");
  if (spec.rank >= spec.world_size)
    return wrong("rank",
                 "must be below world_size, " + std::to_string(spec.world_size) + ", is " + std::to_string(spec.rank));
  if (spec.samples == 0) return wrong("dataset_id", "the dataset has no samples");
  if (spec.shuffle == Shuffle::kYes && spec.samples > std::numeric_limits<std::uint32_t>::max())
    return wrong("shuffle",
                 "at most 4294967295 samples can be shuffled, the dataset has " + std::to_string(spec.samples));
  return {};
}

// How many of positions 0 ... samples - 1 (padded or cut as the tail says) are the rank's: rank, rank + world, rank + 2
// world, ...
std::uint64_t samples_of_rank(const EpochOrderSpec& spec) {
  const std::uint64_t whole = spec.samples / spec.world_size, rest = spec.samples % spec.world_size;
  switch (spec.tail) {
    case ShardTail::kPad:
      return whole + (rest > 0 ? 1 : 0);
    case ShardTail::kDrop:
      return whole;
    case ShardTail::kUneven:
      return whole + (spec.rank < rest ? 1 : 0);
  }
  return whole;
}

// Fisher and Yates, from the end: position i gets one of the first i + 1.
std::vector<std::uint32_t> shuffled_by(const EpochOrderSpec& spec) {
  if (spec.block_samples > 0) return shuffled_in_blocks(spec);
  std::vector<std::uint32_t> order(spec.samples);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream random(RandomKey{spec.seed, spec.epoch, SampleId{0}}, RandomStream::Use::kShuffle);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

}  // namespace

EpochOrderSpec whole_of(const EpochOrderSpec& spec) {
  EpochOrderSpec whole{.samples = spec.samples,
                       .seed = spec.seed,
                       .epoch = spec.epoch,
                       .shuffle = spec.shuffle,
                       .block_samples = spec.block_samples,
                       .window_blocks = spec.window_blocks};
  if (spec.shuffle == Shuffle::kNo) whole.seed = whole.epoch = 0;
  return whole;
}

Result<EpochOrder> EpochOrder::create(const EpochOrderSpec& spec, std::shared_ptr<const Shuffled> known) {
  MILLRACE_TRY_VOID(check(spec));
  EpochOrder order(spec);
  order.samples_ = samples_of_rank(spec);
  if (order.samples_ == 0) {
    return wrong("world_size", "leaves no sample of " + std::to_string(spec.samples) + " for rank " +
                                   std::to_string(spec.rank) + ": pad the shards, or use fewer ranks");
  }
  if (spec.last_batch == LastBatch::kDrop) order.samples_ -= order.samples_ % spec.batch_size;
  if (order.samples_ == 0) {
    return wrong(
        "batch_size",
        std::to_string(spec.batch_size) + " is more than the rank's " + std::to_string(samples_of_rank(spec)) +
            " samples and drop_last leaves out what does not fill a batch: make it smaller, or keep the last batch");
  }
  try {
    if (spec.shuffle == Shuffle::kYes)
      order.order_ = known ? std::move(known) : std::make_shared<const Shuffled>(shuffled_by(spec));
  } catch (const std::bad_alloc&) {
    return Error{Code::kExhausted, "no memory to shuffle " + std::to_string(spec.samples) + " samples"};
  }
  return order;
}

std::uint64_t EpochOrder::samples() const {
  return samples_;
}

std::uint64_t EpochOrder::batches() const {
  return samples_ / spec_.batch_size + (samples_ % spec_.batch_size > 0 ? 1 : 0);
}

EpochPositions EpochOrder::positions() const {
  if (!order_) return {};
  const Shuffled& order = *order_;
  std::vector<std::uint32_t> positions(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) positions[order[i]] = static_cast<std::uint32_t>(i);
  return EpochPositions(std::move(positions));
}

std::vector<SampleId> EpochOrder::batch(std::uint64_t index) const {
  const std::uint64_t first = index * spec_.batch_size;
  const std::uint64_t count = std::min<std::uint64_t>(spec_.batch_size, samples_ - first);
  std::vector<SampleId> batch;
  batch.reserve(count);
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::uint64_t position =
        (i * spec_.world_size + spec_.rank) % spec_.samples;  // beyond the end: padded from the start
    batch.push_back(SampleId{order_ ? (*order_)[position] : position});
  }
  return batch;
}

KnownOrders::Key KnownOrders::key_of(const EpochOrderSpec& spec) {
  return {spec.samples, spec.seed, spec.epoch, spec.block_samples, spec.window_blocks};
}

Result<EpochOrder> KnownOrders::of(const EpochOrderSpec& spec) {
  if (spec.shuffle == Shuffle::kNo) return EpochOrder::create(spec);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const EpochOrder::Shuffled>& known = known_[key_of(spec)];
  Result<EpochOrder> order = EpochOrder::create(spec, known.lock());
  if (order) known = order->shuffled();
  return order;
}

}  // namespace millrace
