// What a client can ask for on its stream, checked field by field (parse_message.h). Values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "daemon/model/batch_request.h"
#include "daemon/model/epoch.h"
#include "daemon/model/files/file_choice.h"
#include "daemon/model/files/folder_lister.h"
#include "daemon/serve/handoff/handoff_message.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

struct CancelRequest {
  BatchId batch{};
};
struct ReleaseRequest {
  std::uint32_t slot_untrusted = 0;
  std::uint64_t generation_untrusted = 0;
  std::optional<std::uint64_t> waited_ns_untrusted{};  // its program, for the batch; nullopt: it does not say
};
struct OpenDatasetRequest {
  DatasetId id{};
  std::string path;  // absolute; not yet known to be allowed
  FileChoice choice;
};
struct CloseDatasetRequest {
  DatasetId id{};
};
// A part of a dataset that the client lists itself: of ListFiles or ListParts.
struct ListFilesRequest {
  DatasetId id{};
  std::string folder;  // of the first part: absolute; empty: of another one
  FilesPart part;
  bool last = false;
};
inline constexpr std::uint32_t kMostFilesNamed = 256;  // in an answer
enum class QuestionId : std::uint64_t {};
struct NameFilesRequest {
  QuestionId id{};
  std::shared_ptr<const Dataset> dataset;  // shared: see DatasetSource
  std::vector<SampleId> samples;           // of the dataset
};
struct GiveBatchesRequest {
  EpochStreamId id{};
  Result<GivenBatches> batches;  // or what is wrong with them, which ends the epoch
};
struct StopEpochRequest {
  EpochStreamId id{};
};

// What an answer is about; monostate: nothing that has an id.
using Subject = std::variant<std::monostate, BatchId, DatasetId, EpochStreamId, QuestionId>;

// A message that says nothing sensible; the session goes on.
struct RefusedRequest {
  Subject subject;
  Error error;
};

using ClientRequest =
    std::variant<BatchRequest, CancelRequest, ReleaseRequest, OpenDatasetRequest, ListFilesRequest, NameFilesRequest,
                 CloseDatasetRequest, EpochRequest, GiveBatchesRequest, StopEpochRequest, RefusedRequest>;

// Sessions.Open.
struct OpenRequest {
  Ticket ticket{};
  std::string name;
  std::string job;  // whose costs it adds to
  std::uint32_t slots = 1;
  Bytes slot_bytes;
  bool slots_later = false;  // its client can do with slots that are filled later
  std::string memory;        // for the tensors; empty: the host's
  CacheUse cache = CacheUse::kTensors;
  bool cache_at_once = false;
  std::uint32_t samples = 0;               // of a batch, as far as it is told
  std::shared_ptr<const Recipe> recipe{};  // that it will ask for; nullptr: it is not told
};

}  // namespace millrace
