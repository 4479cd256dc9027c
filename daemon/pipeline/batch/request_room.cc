#include "daemon/pipeline/batch/request_room.h"

#include <algorithm>
#include <string>

#include "daemon/pipeline/batch/batch.h"

namespace millrace {
namespace {

constexpr std::uint64_t kWords = 256;  // of what is wrong with a sample
constexpr std::uint64_t kOfSample = sizeof(SampleRequest) + sizeof(SampleRun) + kWords;
constexpr std::uint64_t kOfBatch = sizeof(Batch) + sizeof(TensorLayout);

std::uint64_t on_heap(const std::string& text) {
  return text.capacity() < sizeof text ? 0 : text.capacity() + 2 * sizeof(void*);
}

std::uint64_t brought_by(const SampleSource& source) {
  if (const auto* path = std::get_if<PathSource>(&source)) return on_heap(path->path);
  if (const auto* encoded = std::get_if<InlineSource>(&source)) return on_heap(encoded->bytes);
  return 0;
}

}  // namespace

Bytes room_for(const BatchRequest& request) {
  std::uint64_t bytes = kOfBatch + kOfSample * request.samples.size();
  for (const SampleRequest& sample : request.samples) bytes += brought_by(sample.source);
  return {bytes};
}

Bytes room_for(const EpochOrderSpec& spec, std::uint32_t slots) {
  const std::uint64_t of_rank = spec.samples / std::max(1U, spec.world_size) + 1;
  const std::uint64_t a_batch = std::clamp<std::uint64_t>(spec.batch_size, 1, of_rank);
  const std::uint64_t batches = std::min<std::uint64_t>(slots, of_rank / a_batch + 1);
  const std::uint64_t blocks = spec.block_samples > 1 ? spec.samples / spec.block_samples / 8 : 0;  // a bit each
  return {batches * (kOfBatch + kOfSample * a_batch) + blocks};
}

}  // namespace millrace
