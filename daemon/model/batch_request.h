// A batch as a client asks for it, after proto/rpc was parsed and every field checked. Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/model/bytes/input_ring.h"
#include "daemon/model/files/dataset.h"
#include "daemon/model/geometry.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"
#include "proto/base/ids.h"
#include "proto/base/recipe.h"

namespace millrace {

struct PathSource {
  std::string path;                          // absolute; not yet known to be allowed
  std::optional<Dataset::Range> range = {};  // nullopt: the whole file
};
struct InlineSource {
  std::string bytes;
};
struct RingSource {  // in BatchRequest::ring
  std::uint64_t offset;
  std::uint64_t length;
};
struct DatasetSource {
  std::shared_ptr<const Dataset> dataset;  // shared: a dataset may be closed while its batches are under way
  SampleId sample;
  // Of the first sample of its block in an epoch in blocks: the samples of a block, which are read ahead. Else 0.
  std::uint32_t block_samples = 0;
};
using SampleSource = std::variant<PathSource, InlineSource, RingSource, DatasetSource>;

struct SampleRequest {
  SampleId id{};
  std::int64_t label = -1;
  SampleSource source;
  SampleOverrides overrides;
  std::optional<std::uint64_t> draw = std::nullopt;  // keys the random choices; nullopt: the id does
};

enum class Guard : std::uint8_t { kOff, kOn };  // on: nobody chose the OnError; see pipeline/batch/bad_sample_guard.h

struct BatchRequest {
  BatchId id{};
  std::vector<SampleRequest> samples;
  std::shared_ptr<const Recipe> recipe;   // shared by the session's batches and their samples on several threads
  std::shared_ptr<const InputRing> ring;  // shared with its session; null: it has none
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  OnError on_error = OnError::kFail;
  Guard guard = Guard::kOff;  // of an epoch's batches only
  Fidelity fidelity = Fidelity::kExact;
  Priority priority = Priority::kNormal;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::string backend;  // pinned; empty: place decides
};

// How messages name a sample: its path, with offset and length of a part, "shard.tar[1536+48211]"; "encoded bytes"; "ring
// bytes at 4096".
std::string source_name(const SampleSource& source);

// Which sample of which dataset it is; of none where the client gave a path or bytes.
DatasetMember member_of(const SampleSource& source);

// The file, and which part of it, that is read for it; of no name where it is none. REQUIRES: a dataset has the sample.
Dataset::Location location_of(const SampleSource& source);
// That file, byte for byte.
std::string file_path(const SampleSource& source);

}  // namespace millrace
