// A bitstream for tests of the simulated card: two kernels of the table that do what the commands say (order.h).
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "hls/base/burst.h"
#include "tests/unit/hls/card/order.h"

namespace millrace {
namespace {

void spin(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void hang() {
  for (volatile bool for_ever = true; for_ever;) {
  }
}

void act(const Order& order, const std::uint8_t* encoded, std::uint8_t* tensors, std::uint32_t bytes,
         std::uint32_t tensors_bytes) {
  switch (order.act) {
    case Act::kAdd:
      for (std::uint32_t i = 0; i < bytes; ++i) tensors[i] = static_cast<std::uint8_t>(encoded[i] + 1);
      break;
    case Act::kSpin:
      spin(std::chrono::microseconds(order.microseconds));
      break;
    case Act::kCrash:
      *reinterpret_cast<volatile std::uint8_t*>(order.microseconds) = 1;
      break;
    case Act::kHang:
      hang();
      break;
    case Act::kOverrun:
      reinterpret_cast<volatile std::uint8_t*>(tensors)[tensors_bytes] = 1;
      break;
    case Act::kTrespass:
      reinterpret_cast<volatile std::uint8_t*>(tensors)[order.microseconds] = 1;
      break;
    default:
      break;
  }
}

void work(const hls::Burst* commands, const hls::Burst* encoded, hls::Burst* tensors, hls::Burst* completions,
          std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
          std::uint32_t completions_bytes, std::uint32_t phase) {
  if (commands_bytes < sizeof(hls::Batch)) return;
  const auto& batch = *reinterpret_cast<const hls::Batch*>(commands);
  const auto* const descriptors = reinterpret_cast<const hls::Descriptor*>(&batch + 1);
  const Order order = order_of(batch);
  act(order, reinterpret_cast<const std::uint8_t*>(encoded), reinterpret_cast<std::uint8_t*>(tensors),
      std::min(encoded_bytes, tensors_bytes), tensors_bytes);
  auto* const records = reinterpret_cast<hls::Completion*>(completions);
  const auto room = static_cast<std::uint32_t>(completions_bytes / sizeof *records);
  for (std::uint32_t i = 0; i < std::min(batch.images, room); ++i) {
    records[i] = {};
    records[i].cookie = descriptors[i].cookie;
    records[i].phase = static_cast<std::uint8_t>(phase);
    const bool damaged = order.act == Act::kComplain;
    records[i].reason = static_cast<std::uint8_t>(damaged ? hls::Reason::kDamaged : hls::Reason::kDone);
  }
}

}  // namespace
}  // namespace millrace

using millrace::hls::Burst;

extern "C" void answer(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
                       std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
                       std::uint32_t completions_bytes, std::uint32_t phase) {
  millrace::work(commands, encoded, tensors, completions, commands_bytes, encoded_bytes, tensors_bytes,
                 completions_bytes, phase);
}

// So that a host can tell which of the two it is: it answers with another phase.
extern "C" void decode_jpeg(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
                            std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
                            std::uint32_t completions_bytes, std::uint32_t phase) {
  millrace::work(commands, encoded, tensors, completions, commands_bytes, encoded_bytes, tensors_bytes,
                 completions_bytes, phase + 100);
}
