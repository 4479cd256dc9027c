// Batches that the client asks for one by one: what to read, what comes back. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "millrace/input_ring.h"
#include "millrace/recipe.h"
#include "millrace/result.h"
#include "millrace/tensor.h"

namespace millrace {
inline namespace client {

// Where an encoded image is.
struct Path {
  // Absolute, beneath one of the daemon's roots, readable by this process's user. Any bytes but zero: UTF-8 or not.
  std::string path{};
};
struct Encoded {
  // The file's bytes; copied by submit(). All of one batch at most Session::limits().inline_bytes: over that, InputRing.
  std::span<const std::byte> bytes;
};
struct DatasetSample {
  std::uint64_t dataset = 0;  // Dataset::id()
  std::uint64_t sample = 0;   // below Dataset::samples()
};
// The bytes [offset, offset + length) of a file: a member of a tar archive, a value of an Arrow file.
struct FilePart {
  std::string path{};        // as Path's
  std::uint64_t offset = 0;  // bytes from the file's start
  std::uint64_t length = 0;  // bytes; offset + length are below 2^63
};
using Source = std::variant<Path, Encoded, RingRoom, DatasetSample, FilePart>;

struct Sample {
  Source source{};
  // Comes back and keys the random choices; else the dataset's sample id, or the position in the batch.
  std::optional<std::uint64_t> id{};
  std::optional<std::int64_t> label{};  // comes back; else the dataset's sample's own, or -1
  std::optional<Box> box{};             // instead of the recipe's crop
  std::optional<Size> size{};           // instead of what the recipe's resize would make of the crop
};

struct BatchRequest {
  std::vector<Sample> samples{};
  std::optional<Recipe> recipe{};  // instead of the session's
  std::uint64_t seed = 0;          // random choices depend on (seed, epoch, sample id) and on nothing else
  std::uint64_t epoch = 0;
  OnError on_error = OnError::kFail;
  Fidelity fidelity = Fidelity::kExact;
  Priority priority = Priority::kNormal;
  std::chrono::milliseconds deadline{};  // from receipt by the daemon; 0: none
  std::string backend{};                 // pin to this one ("cpu"); empty: the daemon places
};

// A batch that was asked for.
struct Ticket {
  std::uint64_t batch = 0;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// A sample that did not come out as asked.
struct SampleError {
  std::uint32_t index = 0;  // in the batch as it was asked for
  std::uint64_t sample = 0;
  // For people: its path, "shard.tar[1536+48211]" of a part (offset and length), or what else names it; what is not
  // printable UTF-8 is written \xNN.
  std::string source{};
  std::string path{};  // the file, byte for byte; empty: the sample is none
  Error error{};
};

// A batch that has ended. Move-only, because its tensor is a lease.
struct Batch {
  std::uint64_t id = 0;               // Ticket::batch, or the batch's number in its epoch
  TensorView tensor{};                // empty: the batch failed, or no sample of it was left
  std::vector<SampleError> errors{};  // bad samples; of very many the first ones
  std::uint64_t bad = 0;              // how many are bad
  std::optional<Error> failure{};     // why the whole batch came to nothing
  std::string position{};             // of an epoch: EpochOptions::position to go on after this batch
};

}  // namespace client
}  // namespace millrace
