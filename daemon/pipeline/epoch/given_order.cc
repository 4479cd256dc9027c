#include "daemon/pipeline/epoch/given_order.h"

#include <utility>

namespace millrace {

void GivenOrder::add(GivenBatches more, Charge room) {
  last_ = more.last;
  if (!more.sizes.empty()) parts_.push_back(Part{.batches = std::move(more), .room = std::move(room)});
}

std::vector<GivenOrder::Drawn> GivenOrder::next() {
  Part& part = parts_.front();
  const std::uint32_t size = part.batches.sizes[part.batch++];
  std::vector<Drawn> batch;
  batch.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i, ++part.sample) {
    const auto draw = part.batches.draws.empty() ? std::nullopt : std::optional(part.batches.draws[part.sample]);
    batch.push_back({SampleId{part.batches.samples[part.sample]}, draw});
  }
  if (part.batch == part.batches.sizes.size()) parts_.pop_front();
  return batch;
}

}  // namespace millrace
