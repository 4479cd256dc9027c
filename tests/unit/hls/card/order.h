// What the kernels of fpga_card_kernels.cc are told to do: in the padding of a batch. Values.
#pragma once

#include <cstdint>
#include <cstring>

#include "hls/wire/words.h"

namespace millrace {

enum class Act : std::uint8_t {
  kAnswer,    // completions alone
  kAdd,       // tensors[i] = encoded[i] + 1, then completions
  kComplain,  // completions that say kDamaged
  kSpin,      // computes for `microseconds`, then completions
  kCrash,     // a write where nothing is
  kHang,      // computes for ever
  kOverrun,   // writes behind the buffer of the tensors
  kTrespass,  // writes where another buffer is
};

struct Order {
  Act act;
  std::uint8_t zeroes[3];
  std::uint32_t microseconds;
};

inline Order order_of(const hls::Batch& batch) {
  Order order;
  std::memcpy(&order, batch.zeroes, sizeof order);
  return order;
}

inline void give_order(hls::Batch& batch, Act act, std::uint32_t microseconds = 0) {
  const Order order{act, {}, microseconds};
  std::memcpy(batch.zeroes, &order, sizeof order);
}

}  // namespace millrace
