// Stage 3: a sample's reference becomes its encoded bytes and what their header says. Own threads, because files block:
// mr-fetch-N for samples, mr-list for folder trees. Errors are per sample. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/open/root_folder.h"
#include "daemon/fetch/open/unmapped_ids.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/bytes/cache_lookup.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/bytes/input_ring.h"
#include "daemon/model/caller.h"
#include "daemon/model/files/folder_lister.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/model/owner.h"
#include "daemon/model/stop_flag.h"
#include "daemon/observe/counters.h"
#include "proto/base/result.h"

namespace millrace {

struct FetchItem {
  std::uint32_t index = 0;               // comes back in Fetched
  const SampleSource* source = nullptr;  // the batch's; outlives the task
  bool ignore_orientation = false;
  CacheWish keep{.most = CacheUse::kOff};
  bool from_file = false;  // whatever is kept of it
};

// How far an item got.
enum class FetchEnd : std::uint8_t {
  kRead,        // to its image, or to its own error
  kHeaderOnly,  // its header was read and its bytes were not kept, as the task has it: `image` has none; ask again
  kNotBegun,    // the task's room or its time was used up before: `image` is an error that means nothing; ask again
  kHostLacks,   // descriptors or memory of the daemon's own, `image` says which; nothing is wrong with it: ask later
};

struct Fetched {
  std::uint32_t index = 0;
  Result<EncodedImage> image;
  std::chrono::nanoseconds time{0};
  Bytes from_file;  // read of a file, whether or not they are kept
  FetchEnd end = FetchEnd::kRead;
  bool root_missing = false;  // it lies beneath a root that is not there, or, of a dataset, no more; says `image`
};

// What becomes of the bytes that a task reads.
enum class FetchedBytes : std::uint8_t { kKept, kHeaderOnly };

// A task that has been at it for so long begins no further item: others may have to wait.
inline constexpr std::chrono::milliseconds kFetchTurn{50};

// A read that takes longer may never come back; who else reads is not to wait for it.
inline constexpr std::chrono::milliseconds kStuck{1'000};
inline constexpr std::size_t kMostStandIns = 8;

// Shared by the one who gave a task and the thread that has it.
struct FetchWatch {
  std::atomic<std::int64_t> since{0};  // on the steady clock, when a thread began with the item it is at; 0: none has
  std::chrono::nanoseconds cpu{0};     // that the thread used for the task. Written before done(), read after it
};

struct FetchTask {
  std::vector<FetchItem> items;
  Owner owner{};  // whose work it is, for recordings
  // What `source` points into. Shared: the pipeline may drop a cancelled batch first.
  std::shared_ptr<const void> keep_alive;
  std::shared_ptr<const Caller> caller;   // whose rights apply. Shared by the session's tasks
  std::shared_ptr<const InputRing> ring;  // of the RingSources; may be null
  std::shared_ptr<const StopFlag> stop;   // stopped: what is not begun comes back as kCancelled
  std::shared_ptr<FetchWatch> watch;      // kept up to date; null: nobody looks
  // Of bytes that are read, whatever becomes of them: what is beyond it is not begun, but for the first item.
  Bytes room{~0ULL};
  FetchedBytes keep = FetchedBytes::kKept;
  std::function<void(std::vector<Fetched>)> done;  // called exactly once, on a fetch thread; must not block
};

class Fetcher : public FolderLister, public RingMaker {
 public:
  struct Options {
    std::vector<std::string> roots;  // absolute folders, there or not yet; only what lies beneath is readable
    UnmappedIds unmapped;            // of this process
    std::string opener;              // its socket, or kOpenerOnceThere; empty: none (usual_opener.h)
    bool opens_for_root = false;     // it does, for clients that are root
    std::uint32_t threads = 2;
    std::uint32_t queue = 256;  // tasks
    InForce<Limits> limits;
    EncodedPool* pool = nullptr;  // of the images' memory; outlives them. Null: each has its own
    CacheLookup* kept = nullptr;  // asked before a file is read; outlives the fetcher. Null: nothing is kept
    std::chrono::seconds stable_after = kStableAfter;
  };

  // kInvalid: a root that is no absolute path.
  static Result<std::unique_ptr<Fetcher>> create(Options options, Counters& counters);
  ~Fetcher() override = default;  // finishes what is queued as kCancelled, joins the threads

  // false: the queue is full (a state; try again when a task of yours is done). `task` is then left as it was.
  [[nodiscard]] virtual bool try_fetch(FetchTask&& task) = 0;

  // Looks after reads that do not come back, of a file server that is gone: each thread that has been at one item for
  // kStuck gets a stand-in, up to kMostStandIns at a time, and leaves once the read is back. To be called now and then
  // while tasks are out.
  virtual void relieve() {}

  // What the task brings, where all of it is here already, little, and looked at in some ten microseconds: handing it to
  // another thread and back would take longer. Calls nobody. nullopt: try_fetch() it.
  virtual std::optional<std::vector<Fetched>> fetch_at_once(const FetchTask&) { return std::nullopt; }

  // On the listing thread, where listings take turns a step at a time; see listing.h for order and links.
  [[nodiscard]] bool try_list(ListTask&& task) override = 0;

  Result<NewInputRing> make_ring(Bytes size_untrusted, Bytes limit) override;

  // The roots that were not there when they were last looked for. Looks for none itself.
  virtual std::vector<std::string> missing_roots() const = 0;

  // Other roots, opened, which may wait for disks, so that putting them in force does not. kInvalid: no absolute path.
  virtual Result<RootFolders> open_roots(const std::vector<std::string>& folders) const = 0;
  // Where there is an opener: it reads its roots in the settings file again, which may take seconds. kUnavailable: it has
  // not, and why.
  virtual Result<void> tell_opener() const = 0;
  // What is asked for beneath others from here on is refused; what is under way ends.
  virtual void use_roots(RootFolders roots) = 0;
};

}  // namespace millrace
