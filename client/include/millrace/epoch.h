// Datasets and epochs: the daemon lists, shuffles, shards, reads ahead and pushes batches as long as the session has
// free slots.
//
//   MILLRACE_TRY(auto dataset, session.open_dataset("/data/imagenet/train"));
//   auto epoch = session.epoch(dataset, {.batch = 64, .shuffle = true});
//   for (Batch& batch : epoch) train(batch.tensor);
//   MILLRACE_TRY_VOID(epoch.result());   // the loop also ends on an error
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/batch.h"
#include "millrace/export.h"
#include "millrace/result.h"
#include "proto/base/skipped_files.h"

namespace millrace {
inline namespace client {

// How long calls that wait for the daemon's work do so unless told otherwise; then kDeadline.
inline constexpr std::chrono::milliseconds kPatience{120'000};

class SessionCore;  // the library's own
class GivenOrder;   // likewise

struct DatasetOptions {
  // What the samples' names end with, in whatever case, with or without the dot. Empty: the pictures that the daemon
  // decodes (jpg, png, webp, ...). {"*"}: every file.
  std::vector<std::string> extensions{};
  bool unclassified = false;  // where there are class folders: files beside them are samples, too, labelled -1
  std::function<void(std::uint64_t files)> progress{};  // called by open_dataset() with the number of files seen so far
  std::chrono::milliseconds timeout = kPatience;
};

// Bytes of a file.
struct FileRange {
  std::uint64_t offset = 0;  // from the file's start
  std::uint64_t length = 0;  // offset + length are below 2^63
  friend bool operator==(const FileRange&, const FileRange&) = default;
};
// What a file had when its parts were found. With another size or time when it is read, its samples are errors.
struct FileStamp {
  std::uint64_t size = 0;        // bytes
  std::int64_t modified_ns = 0;  // time of the last modification, nanoseconds since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A file of a list of one's own, or a part of one, and its label.
struct ListedFile {
  std::string path;  // absolute, beneath one of the daemon's roots
  std::int64_t label = -1;
  std::optional<FileRange> range{};  // the sample's bytes; nullopt: the whole file
  std::optional<FileStamp> stamp{};  // of the file, in all of a list or in none; the first one of a file counts
};

using NextFile = std::function<Result<std::optional<ListedFile>>()>;

// Where a sample lies.
struct SampleFile {
  std::string path;                  // absolute, byte for byte
  std::optional<FileRange> range{};  // nullopt: the whole file
  friend bool operator==(const SampleFile&, const SampleFile&) = default;
};

// An opened folder tree, or a list of files (Session::open_files()); the daemon forgets it when this is destroyed (epochs
// under way go on). Immutable; move-only. A list's samples are numbered as in the list, and it has no classes. A tree's
// samples are numbered as torchvision's ImageFolder does it: by class folder, then by the path of the folder that holds
// the file, then by the file's name, each in byte order; files in no class folder come first.
class MILLRACE_API Dataset {
 public:
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  std::uint64_t id() const noexcept { return id_; }
  std::uint64_t samples() const noexcept { return samples_; }
  // The classes' folders, byte for byte; a label is a position in here.
  const std::vector<std::string>& classes() const noexcept { return classes_; }
  // Of the listing: paths in order, and which parts of the files.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  // The tree's files that are no samples (hidden ones do not count), and the largest groups of them, at most 16.
  std::uint64_t skipped_files() const noexcept { return skipped_files_; }
  const std::vector<SkippedFiles>& skipped() const noexcept { return skipped_; }
  // The files of samples, absolute, in the order of the question. kInvalid: there is no such sample.
  Result<std::vector<std::string>> files_of(std::span<const std::uint64_t> samples,
                                            std::chrono::milliseconds timeout = kPatience) const;
  // The same with the parts of the files that the samples are.
  Result<std::vector<SampleFile>> parts_of(std::span<const std::uint64_t> samples,
                                           std::chrono::milliseconds timeout = kPatience) const;

 private:
  friend class Session;
  Dataset() = default;

  std::shared_ptr<SessionCore> core_;
  std::uint64_t id_ = 0;
  std::uint64_t samples_ = 0;
  std::vector<std::string> classes_;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t skipped_files_ = 0;
  std::vector<SkippedFiles> skipped_;
};

// A batch of an order of one's own.
struct GivenBatch {
  std::vector<std::uint64_t> samples;  // at least 1, at most EpochOptions::batch; one may come more than once
  std::vector<std::uint64_t> draws{};  // as many: random choices depend on these, not on the samples; or none
};
using NextBatch = std::function<std::optional<GivenBatch>()>;  // nullopt: there is none left. Does not throw

struct EpochOptions {
  std::uint32_t batch = 0;         // samples; 0: SessionOptions::batch
  std::optional<Recipe> recipe{};  // instead of the session's
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  bool shuffle = false;
  // With shuffle, both or neither: blocks of so many consecutive samples come in random order, and the samples of each
  // so many blocks are mixed. For disks on which single
  // reads are dear. 0: sample by sample.
  std::uint32_t block_samples = 0;
  std::uint32_t window_blocks = 0;
  bool drop_last = false;  // leave out the last batch if it is not full
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  ShardTail shard_tail = ShardTail::kPad;
  // nullopt: kSubstitute with shuffle, else kSkip, as long as bad images are the exception. A batch without a good one
  // fails, and so does the epoch once more than one image in 20 is bad, after at least 1,000: a wrong root or a disk
  // that is not mounted looks like that. Where a position goes on the count begins anew. A missing root of the daemon's
  // ends the epoch with kUnavailable. A value does what it says, however many are bad.
  std::optional<OnError> on_error{};
  Fidelity fidelity = Fidelity::kExact;
  Priority priority = Priority::kNormal;
  std::string position{};  // resume after the batch that carried it; empty: from the start
  std::string backend{};
  std::uint64_t batches = 0;                      // stop after so many; 0: the whole epoch
  std::chrono::milliseconds timeout = kPatience;  // for one batch, in the loop
  // An order of one's own, asked ahead, some batches at a time, by Epoch::next(). Then shuffle, blocks, drop_last, rank,
  // world_size, shard_tail, position and batches stay as they are; batches carry no position; on_error's nullopt is as
  // without shuffle. Empty: the daemon's order.
  NextBatch order{};
};

struct EpochShape {               // with an order of one's own all 0
  std::uint64_t batches = 0;      // in all, of this rank
  std::uint64_t first_batch = 0;  // 0, or where the position resumes
  std::uint64_t samples = 0;      // in all, of this rank
};

// An epoch under way; its destructor stops it. Thread-bound(its owner). Move-only; do not move it while iterating.
class MILLRACE_API Epoch {
 public:
  Epoch(Epoch&&) noexcept;
  Epoch& operator=(Epoch&&) noexcept;
  ~Epoch();

  // Waits for the daemon's answer. Errors of the start: kInvalid naming the field, kPrecondition (a position of another
  // dataset or order).
  Result<EpochShape> shape(std::chrono::milliseconds timeout = kPatience);

  // The next batch in order; nullopt at the epoch's end. A failed batch comes with Batch::failure and the epoch goes
  // on. An error says why the epoch cannot: too many bad images, a missing root, a daemon that is gone.
  Result<std::optional<Batch>> next(std::chrono::milliseconds timeout = kPatience);

  // After the batch that came last: EpochOptions::position to go on after it, in this process or another. Empty before
  // the first.
  const std::string& position() const noexcept { return position_; }

  // Bad images of the batches that came, failed ones left out. Batch::errors says which and why.
  std::uint64_t bad() const noexcept { return bad_; }

  void stop() noexcept;  // idempotent; no batch comes after it

  // The loop: good batches in order. It ends at the epoch's end, at the first failed batch, or when the session fails;
  // result() says which.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Epoch& epoch) : epoch_(&epoch) { epoch_->advance(); }
    Batch& operator*() const { return *epoch_->current_; }
    Batch* operator->() const { return &*epoch_->current_; }
    Iterator& operator++() { return epoch_->advance(), *this; }
    void operator++(int) { epoch_->advance(); }
    bool operator==(std::default_sentinel_t) const { return !epoch_->current_; }

   private:
    Epoch* epoch_;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }
  const Result<void>& result() const noexcept { return result_; }

 private:
  friend class Session;
  Epoch();
  void advance();

  std::shared_ptr<SessionCore> core_;
  std::uint64_t stream_ = 0;
  std::chrono::milliseconds timeout_{};
  std::string position_;
  std::uint64_t bad_ = 0;
  std::unique_ptr<GivenOrder> order_;  // null: the daemon's
  std::optional<Batch> current_;       // of the loop
  Result<void> result_;
};

}  // namespace client
}  // namespace millrace
