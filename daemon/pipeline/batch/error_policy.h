// What on_error makes of a batch whose samples have finished: which of them the tensor has, in which order, where their
// pixels lie, and what has to be done to the slot's bytes for that. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/memory/arena.h"
#include "daemon/pipeline/batch/tensor_layout.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"

namespace millrace {

// A sample that is made (good) or given up.
struct FinishedSample {
  bool good = false;
  std::optional<SlotRange> place;  // a good one has one; a bad one may
};

struct FinalSlot {
  std::vector<std::uint32_t> order;              // by position in the tensor: the sample whose pixels are there
  std::vector<std::optional<SlotRange>> places;  // by sample
  std::vector<std::uint32_t> zeroed;             // bad samples that are there, blank
  std::vector<Repair> repairs;                   // for the arena to carry out
  Bytes tensor;
};

// `tensor`: its bytes with all samples in it. nullopt: some sample is bad and `on_error` allows for none, or none is
// good that could stand in.
std::optional<FinalSlot> apply_error_policy(const TensorLayout& layout, OnError on_error,
                                            std::span<const FinishedSample> samples, Bytes tensor);

}  // namespace millrace
