#include "client/src/given_order.h"

#include <optional>

namespace millrace {
inline namespace client {
namespace {

// Samples of a message, after which another begins: with one more batch it is below what a daemon takes.
constexpr int kNumbers = 16'384;

// What came without draws, beside batches that have some, is drawn by its samples.
void add(const GivenBatch& batch, v1::GiveBatches& out) {
  if (!batch.draws.empty() && out.draws().empty()) *out.mutable_draws() = out.samples();
  if (!batch.draws.empty() || !out.draws().empty()) {
    const std::vector<std::uint64_t>& draws = batch.draws.empty() ? batch.samples : batch.draws;
    out.mutable_draws()->Add(draws.begin(), draws.end());
  }
  out.add_sizes(static_cast<std::uint32_t>(batch.samples.size()));
  out.mutable_samples()->Add(batch.samples.begin(), batch.samples.end());
}

}  // namespace

Result<void> GivenOrder::top_up(SessionCore& core) {
  if (open_ >= ahead_) return {};
  while (open_ < 2 * ahead_ && !ended_) MILLRACE_TRY_VOID(send_some(core));
  return {};
}

Result<void> GivenOrder::send_some(SessionCore& core) {
  v1::ClientMessage message;
  v1::GiveBatches& given = *message.mutable_give_batches();
  given.set_stream_id(stream_);
  while (open_ < 2 * ahead_ && !ended_ && given.samples_size() < kNumbers) {
    const std::optional<GivenBatch> batch = next_();
    if (batch) {
      add(*batch, given);
      ++open_;
    } else {
      ended_ = true;
      given.set_last(true);
    }
  }
  return core.send(std::move(message));
}

}  // namespace client
}  // namespace millrace
