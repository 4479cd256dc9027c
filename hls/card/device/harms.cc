#include "hls/card/device/harms.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "hls/wire/words.h"

namespace millrace::card {
namespace {

std::byte* bytes_of(const Call& call, std::size_t pointer) {
  return call.memory + read_argument(call.start->registers, pointer);
}

std::uint64_t size_of(const Call& call, std::size_t pointer) {
  return read_argument(call.start->registers, bytes_argument(pointer));
}

void flip(const Call& call) {
  const std::uint64_t bytes = size_of(call, hls::kTensors);
  if (bytes == 0) return;
  const std::uint64_t bit = call.start->harm_amount * std::uint64_t{2654435761} % (bytes * 8);
  bytes_of(call, hls::kTensors)[bit / 8] ^= std::byte{1} << bit % 8;
}

// One of the completions that the batch has.
void garble(const Call& call) {
  if (size_of(call, hls::kCommands) < sizeof(hls::Batch)) return;
  std::uint32_t images = 0;
  std::memcpy(&images, bytes_of(call, hls::kCommands) + offsetof(hls::Batch, images), sizeof images);
  const std::uint64_t records =
      std::min<std::uint64_t>(images, size_of(call, hls::kCompletions) / sizeof(hls::Completion));
  if (records == 0) return;
  hls::Completion record;
  std::byte* const at = bytes_of(call, hls::kCompletions) + call.start->harm_amount % records * sizeof record;
  std::memcpy(&record, at, sizeof record);
  record.cookie ^= 0x5a5a0000u;
  std::memcpy(at, &record, sizeof record);
}

}  // namespace

void harm_before(const Start& start) {
  switch (start.harm) {
    case Harm::kCrash:
      std::abort();
    case Harm::kHang:
      for (;;) pause();
    case Harm::kSlow:
      std::this_thread::sleep_for(std::chrono::microseconds(start.harm_amount));
      break;
    default:
      break;
  }
}

void harm_after(const Call& call) {
  if (call.start->harm == Harm::kFlip) flip(call);
  if (call.start->harm == Harm::kGarble) garble(call);
}

}  // namespace millrace::card
