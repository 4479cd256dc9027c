// An epoch as a client asks for it, checked. Value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/model/batch_request.h"
#include "daemon/model/files/dataset.h"
#include "proto/base/batch_choices.h"
#include "proto/base/ids.h"
#include "proto/base/recipe.h"

namespace millrace {

enum class EpochStreamId : std::uint64_t {};

enum class Shuffle : std::uint8_t { kNo, kYes };
enum class LastBatch : std::uint8_t { kKeep, kDrop };
enum class OrderBy : std::uint8_t { kDaemon, kClient };  // who says which samples make which batch

// What decides which samples come in which order, and nothing else.
struct EpochOrderSpec {
  std::uint64_t samples = 0;  // of the dataset
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  Shuffle shuffle = Shuffle::kNo;
  LastBatch last_batch = LastBatch::kKeep;
  std::uint32_t batch_size = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  ShardTail tail = ShardTail::kPad;
  std::uint32_t block_samples = 0;  // shuffled in blocks, see plan/block_order.h; 0: sample by sample
  std::uint32_t window_blocks = 0;  // mixed with each other; 0: as above

  friend bool operator==(const EpochOrderSpec&, const EpochOrderSpec&) = default;
};

struct EpochRequest {
  EpochStreamId id{};
  std::shared_ptr<const Dataset> dataset;  // shared: see DatasetSource
  std::shared_ptr<const Recipe> recipe;
  OrderBy order_by = OrderBy::kDaemon;
  EpochOrderSpec order;           // by the client: its batch_size is the most that a batch has
  std::uint64_t first_batch = 0;  // where a position resumes
  std::uint64_t batches = 0;      // at the most; 0: to the end
  OnError on_error = OnError::kFail;
  Guard guard = Guard::kOff;
  Fidelity fidelity = Fidelity::kExact;
  Priority priority = Priority::kNormal;
  std::string backend;
};

// The next batches of an epoch whose order its client says.
struct GivenBatches {
  std::vector<std::uint32_t> sizes;    // samples of each batch
  std::vector<std::uint64_t> samples;  // of all of them, one after the other
  std::vector<std::uint64_t> draws;    // key their random choices: as many; or none: by the samples' numbers
  bool last = false;                   // no batch follows

  Bytes memory() const {  // with what the heap takes beside it
    constexpr std::uint64_t kOfHeap = 64;
    return {sizeof *this + kOfHeap + sizes.capacity() * sizeof(std::uint32_t) +
            (samples.capacity() + draws.capacity()) * sizeof(std::uint64_t)};
  }
};

}  // namespace millrace
