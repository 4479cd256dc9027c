// One consumer's session with the daemon: shared memory for its batches and one stream of messages.
//
//   session.submit(...) ... session.next()     batches on request, in the order in which they finish
//   for (Batch& batch : session.epoch(...))    an epoch, pushed by the daemon
//
// Calls wait by reading the stream themselves, so a batch reaches its caller without a change of threads; the library
// has none of its own. If the daemon goes away every waiting and every later call returns kUnavailable at once. Views
// that exist stay readable. After fork() the child must not use it: calls fail with kPrecondition there. Connect after
// forking.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "millrace/batch.h"
#include "millrace/epoch.h"
#include "millrace/export.h"
#include "millrace/input_ring.h"
#include "millrace/recipe.h"
#include "millrace/result.h"
#include "millrace/statistics.h"

namespace millrace {
inline namespace client {

inline constexpr const char* kHostMemory = "host";

struct SessionOptions {
  std::string name{};  // for statistics: "resnet50 rank 3"; at most 64 bytes, printable
  // Whose costs it adds to, with the user's other sessions of that job: a training's ranks, and its restarts. Text as
  // `name`; "": $MILLRACE_JOB, else `name`.
  std::string job{};
  std::uint32_t slots = 4;   // batches that may be finished or under way at once
  std::uint32_t batch = 64;  // samples in a batch at most
  Recipe recipe{};           // of batches and epochs that bring none
  Bytes slot_bytes{};        // room for one batch; 0: computed from recipe and batch
  // The most that the daemon keeps of the images, and uses, to make the next epochs faster. With Fidelity::kExact pixels
  // are the same whatever is kept. `cache_at_once`: from the first access on, though that makes the first epoch slower;
  // else from the second.
  CacheUse cache = CacheUse::kTensors;
  bool cache_at_once = false;
  // Where the batches' tensors lie: "" or kHostMemory, or in the memory of a GPU that the daemon has, by its backend's
  // name: "cuda:0" (Client::devices()). Its number in this process may be another. The daemon charges that memory until
  // the process ends; a later session of the same size has it again, once this one and its views are gone.
  std::string memory{};
  std::chrono::milliseconds timeout{30'000};  // of opening
};

// What the daemon takes, most of it as its settings say. Empty: an older daemon, which does not tell and refuses by
// itself; but one message of it never takes more than 4 MiB.
struct RequestLimits {
  Bytes message = 4_MiB;                   // one batch's request in all, but for what is in the InputRing
  std::optional<Bytes> inline_bytes{};     // Encoded of one batch together (limits.inline_message)
  std::optional<std::uint32_t> samples{};  // of one batch (limits.samples)
  std::optional<Bytes> ring{};             // the InputRing (limits.ring)
  std::optional<std::uint32_t>
      files_named{};  // samples in one message of Dataset::files_of(), which sends as many as it takes
};

// Thread-safe. Move-only. Its end cancels what is under way; it ends with the last of itself, its epochs and its
// datasets. On a GPU its end waits for the streams of TensorView::used_by(), unless views keep the memory.
class MILLRACE_API Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Asks for a batch and returns at once. kInvalid: more than limits() allow; names the daemon's setting.
  // kUnavailable: the daemon is gone. kUnsupported: it is older and does not know something that is asked for; names
  // it. Everything else that is wrong with the request comes back as the batch's failure.
  Result<Ticket> submit(BatchRequest request);

  // Drops a batch: what has not begun does not begin. It still ends, with kCancelled unless it was on its way.
  void cancel(Ticket ticket) noexcept;

  // The oldest submitted batch that has ended and was not taken yet. kDeadline: none within `timeout`. kPrecondition:
  // none is under way.
  Result<Batch> next(std::chrono::milliseconds timeout = kPatience);
  // That batch. kNotFound: never submitted, or taken already.
  Result<Batch> wait(Ticket ticket, std::chrono::milliseconds timeout = kPatience);

  // Lists a folder tree in the daemon. `folder`: absolute, any bytes but zero. kDenied: outside its roots, which the
  // message names, or not readable by this user. kNotFound: not there, or no samples in it, and what was skipped.
  // kInvalid: a URL, or malformed options.
  Result<Dataset> open_dataset(const std::string& folder, const DatasetOptions& options = {});
  // Gives the daemon a list of files as a dataset: sample i is files[i]. One may come more than once. Whether it is there,
  // and may be read, is found out when it is read. Of the options progress (files taken) and timeout count. kInvalid: a
  // path or a range that is none, or an empty list; kDenied: one beneath no root; kExhausted: too many.
  Result<Dataset> open_files(std::span<const ListedFile> files, const DatasetOptions& options = {});
  // The same of a list that is made as it is sent, and is nowhere as a whole in this process. `next`: the next file;
  // nullopt: there is none left; an error ends it and is returned. kUnsupported of a daemon that knows no parts of files.
  Result<Dataset> open_list(const NextFile& next, const DatasetOptions& options = {});
  // Begins an epoch at once; errors come from its first call.
  Epoch epoch(const Dataset& dataset, const EpochOptions& options = {});

  // A ring for encoded bytes, once a session; `size` is rounded up to whole pages.
  Result<InputRing> open_ring(Bytes size, std::chrono::milliseconds timeout = kPatience);

  // What it has cost the daemon until now. None: the daemon is older and does not say. kUnavailable: the session is
  // over, or the daemon is gone.
  Result<std::optional<Cost>> cost(std::chrono::milliseconds timeout = std::chrono::milliseconds{5'000});

  std::uint64_t id() const noexcept;
  // As asked for. On the host their memory is filled one slot after the other, and batches wait for it; where the host has no room
  // for the later ones they are fewer from then on (the daemon's log says why), and with 0 every batch fails.
  std::uint32_t slots() const noexcept;
  Bytes slot_bytes() const noexcept;  // in a GPU's memory, of the tensor alone
  const RequestLimits& limits() const noexcept;

 private:
  friend class Client;
  Result<void> wait_for_list(std::uint64_t id, std::uint64_t sent, std::chrono::steady_clock::time_point deadline);
  void give_up_list(std::uint64_t id);
  Result<Dataset> open_parts(const std::string& folder, const NextFile& next, const DatasetOptions& options);
  Result<Dataset> opened_dataset(std::uint64_t id, const DatasetOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
  explicit Session(std::shared_ptr<SessionCore> core);

  std::shared_ptr<SessionCore> core_;  // shared with epochs and datasets
};

}  // namespace client
}  // namespace millrace
