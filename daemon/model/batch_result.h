// How a batch ended, before it is put into messages. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/epoch.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"
#include "proto/base/recipe.h"

namespace millrace {

// A sample that did not come out as asked.
struct SampleFailure {
  std::uint32_t index = 0;  // in the submitted batch
  SampleId id{};
  std::string source;  // source_name()
  std::string path;    // file_path()
  Error error;
};

// One view's tensor.
struct SealedView {
  std::uint64_t offset = 0;  // from that memory's start
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;
};

// Where the tensor lies; shape in elements, strides in bytes. Of a recipe with views: what all of them take.
struct SealedTensor {
  std::uint32_t memory = 0;  // of the session's: 0 is its segment
  SlotIndex slot{};
  Generation generation{};
  std::uint64_t offset = 0;  // from that memory's start
  Bytes bytes;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;
  DType dtype = DType::kUint8;
  std::uint64_t records_offset = 0;  // from the segment's start
  std::uint32_t samples = 0;
  std::uint64_t sealed_at_ns = 0;
  std::vector<SealedView> views{};  // of a recipe with views: each one's
};

// Where an epoch stands after a batch.
struct EpochMark {
  EpochStreamId stream{};
  OrderBy order_by = OrderBy::kDaemon;  // by the client: nothing resumes there but the client's own count
  EpochOrderSpec order;
  std::uint64_t fingerprint = 0;
  std::uint64_t next_batch = 0;
};

struct CompletedBatch {
  BatchId id{};
  std::uint32_t samples = 0;           // that were asked for
  std::optional<SealedTensor> tensor;  // nullopt: no sample was left
  std::vector<SampleFailure> failures;
  std::optional<EpochMark> epoch;
};

struct FailedBatch {
  BatchId id{};
  std::uint32_t samples = 0;  // that were asked for
  Error error;
  std::vector<SampleFailure> failures;
  Bytes slot_bytes;                     // with which it would have fitted its slot; 0: it failed for another reason
  std::optional<EpochStreamId> stream;  // an epoch's batch
};

}  // namespace millrace
