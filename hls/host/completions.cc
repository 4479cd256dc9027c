#include "hls/host/completions.h"

#include <bitset>
#include <cstring>

namespace millrace::hls {

std::string_view read_completions(std::span<const std::byte> completions, std::uint8_t phase,
                                  std::span<ImageOutcome> outcomes) {
  std::bitset<kMostImages> seen;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Completion completion;
    std::memcpy(&completion, completions.data() + i * sizeof completion, sizeof completion);
    if (completion.phase != phase) return "an image has no completion of this call";
    if (completion.cookie >= outcomes.size()) return "a completion of an image that is not in the batch";
    if (seen[completion.cookie]) return "two completions of the same image";
    if (completion.reason > static_cast<std::uint8_t>(Reason::kTooLong) || completion.zero != 0)
      return "a completion with a reason that there is not";
    seen.set(completion.cookie);
    outcomes[completion.cookie] = {static_cast<Reason>(completion.reason), completion.lane, completion.symbols,
                                   completion.sum};
  }
  return {};
}

std::uint32_t tensor_sum(std::span<const std::byte> tensor) {
  std::uint32_t sum = 0, word = 0;
  std::size_t at = 0;
  for (; at + sizeof word <= tensor.size(); at += sizeof word) {
    std::memcpy(&word, tensor.data() + at, sizeof word);
    sum += word;
  }
  word = 0;
  if (at < tensor.size()) std::memcpy(&word, tensor.data() + at, tensor.size() - at);
  return sum + word;
}

}  // namespace millrace::hls
