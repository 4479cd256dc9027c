// What a card says at the end of a batch, read with suspicion: a card may be broken, or gone half-way.
// Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hls/wire/words.h"

namespace millrace::hls {

// Of an image. Everything but kDone is for the host to make elsewhere; its tensor's bytes mean nothing.
struct ImageOutcome {
  Reason reason = Reason::kNotHere;
  std::uint8_t lane = 0;
  std::uint32_t symbols = 0;
  std::uint32_t sum = 0;  // Completion::sum
};

// outcomes[cookie] for each image of the batch: outcomes.size() is Planner::images(). Empty: every image has exactly one
// completion of this call. Otherwise what the card did against the contract: none of its tensors is to be believed, and
// the card is lost. REQUIRES: `completions` has outcomes.size() Completions at least.
std::string_view read_completions(std::span<const std::byte> completions, std::uint8_t phase,
                                  std::span<ImageOutcome> outcomes);

// What Completion::sum is of a tensor of these bytes. Reads all of them.
std::uint32_t tensor_sum(std::span<const std::byte> tensor);

}  // namespace millrace::hls
