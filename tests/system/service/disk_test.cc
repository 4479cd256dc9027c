// What becomes of clients when the host's disks and its clock go wrong: reads that fail, reads that take long, a disk
// that is full, a time of day that jumps. The daemon's reads are made to fail by host_faults.h.
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/host_faults.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kDiskImages = 32;

struct DiskRig {
  explicit DiskRig(const std::string& cache = "memory = 0\n", const std::string& settings = {})
      : paths(write_image_folder(pictures, {.images = kDiskImages, .classes = 0})),
        daemon({.roots = {folder.path()},
                .cache = cache,
                .daemon = settings,
                .env = {faults.env()},
                .program = bad_host_program()}) {}

  // One epoch in order, a batch a line; `during` is called after each batch.
  template <class During>
  std::vector<std::string> epoch(Session& session, const Dataset& dataset, During during) {
    std::vector<std::string> batches;
    Epoch epoch = session.epoch(dataset, {.on_error = OnError::kFail});
    while (const std::optional<Batch> batch = need(epoch.next())) {
      if (batch->failure) throw unexpected(*batch->failure);
      batches.push_back(describe(batch->tensor));
      during(batches.size());
    }
    return batches;
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  HostFaults faults{folder / "faults"};
  Daemon daemon;
};

Session session_of(const Daemon& daemon, std::uint32_t batch) {
  return need(daemon.connect().open_session({.slots = 4, .batch = batch, .recipe = Recipe::evaluate(32, 32)}));
}

BatchRequest batch_of(const std::vector<std::string>& paths, OnError on_error) {
  BatchRequest request{.on_error = on_error};
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
  return request;
}

TEST_CASE("a file that cannot be read is one sample's error with its path, and good again when its disk is",
          "[system]") {
  DiskRig rig;
  Session session = session_of(rig.daemon, kDiskImages);
  const Batch before = need(session.wait(need(session.submit(batch_of(rig.paths, OnError::kSkip)))));

  rig.faults.reads_fail(fs::path(rig.paths[7]).filename().string());
  const Batch during = need(session.wait(need(session.submit(batch_of(rig.paths, OnError::kSkip)))));
  rig.faults.reads_fail("");
  const Batch after = need(session.wait(need(session.submit(batch_of(rig.paths, OnError::kSkip)))));

  REQUIRE(before.errors.empty());
  REQUIRE(during.tensor.samples() == kDiskImages - 1);
  REQUIRE(during.errors.size() == 1);
  REQUIRE(during.errors[0].path == rig.paths[7]);
  REQUIRE(during.errors[0].error.code == Code::kInternal);
  REQUIRE_THAT(during.errors[0].error.message, Catch::Contains("reading the file: Input/output error"));
  REQUIRE(rig.faults.reads_failed() > 0);
  REQUIRE(describe(after.tensor) == describe(before.tensor));
}

TEST_CASE("an epoch whose disk fails altogether ends with the reason, and its position brings what is left",
          "[system]") {
  DiskRig rig;
  Session session = session_of(rig.daemon, 4);
  const Dataset dataset = need(session.open_dataset(rig.pictures));
  const std::vector<std::string> whole = rig.epoch(session, dataset, [](std::size_t) {});
  std::vector<std::string> got;
  std::set<std::size_t> partly;  // batches of which some images had been read when the disk failed
  std::string position;

  std::optional<Epoch> epoch(session.epoch(dataset, {}));
  std::optional<Error> ended;
  while (!ended) {
    const Result<std::optional<Batch>> batch = epoch->next();
    if (!batch) {
      ended = batch.error();
    } else if (!*batch) {
      break;
    } else if ((*batch)->failure) {
      ended = *(*batch)->failure;
    } else {
      if (!(*batch)->errors.empty()) partly.insert(got.size());
      REQUIRE((*batch)->tensor.samples() + (*batch)->errors.size() == 4);
      for (const SampleError& error : (*batch)->errors)
        REQUIRE_THAT(error.error.message, Catch::Contains("Input/output error"));
      got.push_back(describe((*batch)->tensor));
      position = epoch->position();
      rig.faults.reads_fail("pictures");
    }
  }
  epoch.reset();
  rig.faults.reads_fail("");
  Epoch rest = session.epoch(dataset, {.position = position});
  while (const std::optional<Batch> batch = need(rest.next())) got.push_back(describe(batch->tensor));

  REQUIRE(ended);
  REQUIRE_THAT(ended->message, Catch::Contains("Input/output error"));
  REQUIRE(got.size() == whole.size());
  REQUIRE(partly.size() < whole.size() / 2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!partly.contains(i)) CHECK(got[i] == whole[i]);
  }
}

TEST_CASE("a disk that is slow delays those who read from it, and an epoch from another disk goes on", "[system]") {
  DiskRig rig;
  const std::string slow = rig.folder / "slow";
  write_image_folder(slow, {.images = 512, .classes = 0, .max_side = 41});
  Session waiting = session_of(rig.daemon, 128);
  Session working = session_of(rig.daemon, 4);
  const Dataset slow_one = need(waiting.open_dataset(slow)), fast_one = need(working.open_dataset(rig.pictures));
  rig.faults.reads_take(100, "/slow/");
  Epoch crawling = waiting.epoch(slow_one, {});  // 512 reads of 100 ms on four threads: 12.8 s
  REQUIRE(eventually([&] { return rig.daemon.metric("millrace_samples_in_flight") >= 16; }));

  std::size_t batches = 0;
  for (int round = 0; round < 4; ++round) {
    batches += rig.epoch(working, fast_one, [](std::size_t) {}).size();
  }
  const double slow_made = rig.daemon.metric("millrace_samples_total");
  rig.faults.reads_take(0, "");

  REQUIRE(batches == 4 * kDiskImages / 4);
  CAPTURE(slow_made);
  REQUIRE(slow_made < 4 * kDiskImages + 256);  // the slow epoch had come no further than half its way
}

TEST_CASE("a daemon that is told to stop ends, although reads of its files do not come back", "[system]") {
  DiskRig rig("memory = 0\n", "drain_seconds = 1\n");
  Session session = session_of(rig.daemon, 2);
  rig.faults.reads_hang(rig.pictures);
  need(session.submit(batch_of({rig.paths[0], rig.paths[1]}, OnError::kSkip)));
  REQUIRE(eventually([&] { return rig.daemon.errors().find("files of user") != std::string::npos; }));  // they hang

  rig.daemon.kill(SIGTERM);
  CHECK(rig.daemon.wait() == 0);
  CHECK(rig.daemon.errors().find("stopped without threads that have not come back") != std::string::npos);
}

TEST_CASE("a time of day that jumps costs no sample and ends no session", "[system]") {
  DiskRig rig("settled_seconds = 2\n");
  Session session = session_of(rig.daemon, 4);
  const Dataset dataset = need(session.open_dataset(rig.pictures));
  const std::vector<std::string> expected = rig.epoch(session, dataset, [](std::size_t) {});
  constexpr std::int64_t kDay = 86'400;

  const std::vector<std::string> ahead = rig.epoch(
      session, dataset, [&](std::size_t batch) { rig.faults.clock_is_ahead(batch % 2 == 0 ? kDay : -365 * kDay); });
  const std::vector<std::string> behind = rig.epoch(session, dataset, [](std::size_t) {});

  REQUIRE(ahead == expected);
  REQUIRE(behind == expected);
  BatchRequest request = batch_of(rig.paths, OnError::kFail);
  request.samples.resize(4);
  request.deadline = std::chrono::seconds(20);  // counts by a clock that does not jump
  rig.faults.clock_is_ahead(10 * kDay);
  REQUIRE_FALSE(need(session.wait(need(session.submit(std::move(request))))).failure);
}

// A small file system in a folder, gone with this. Needs root.
class SmallDisk {
 public:
  SmallDisk(std::string at, const char* size) : at_(std::move(at)) {
    fs::create_directory(at_);
    mounted_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool there() const { return mounted_; }

 private:
  const std::string at_;
  bool mounted_;
};

TEST_CASE("a full disk under the state folder costs what is kept from start to start, not pixels", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const TempFolder folder;
  const SmallDisk disk(folder / "state", "size=512k");
  if (!disk.there()) return skip_loudly("a full state folder: mounting needs root");
  const std::string pictures = folder / "pictures";
  write_image_folder(pictures, {.images = 96, .classes = 0, .min_side = 250, .max_side = 400, .only_jpeg = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));  // until all of them count as stable
  const Daemon daemon(
      {.roots = {folder.path()},
       .cpu = "target = \"avx2\"\n",  // a sanitizer can make the scalar path, which keeps nothing, the fastest
       .cache = "disk = \"1 GiB\"\nsettled_seconds = 2\n",
       .daemon = "state_dir = \"" + folder / "state" + "\"\n"});
  Session session = need(daemon.connect().open_session(
      {.slots = 2, .batch = 16, .recipe = Recipe::train(64), .cache = CacheUse::kPacked, .cache_at_once = true}));
  const Dataset dataset = need(session.open_dataset(pictures));
  const auto epoch = [&] {
    std::vector<std::string> batches;
    Epoch run = session.epoch(dataset, {.on_error = OnError::kFail});
    while (const std::optional<Batch> batch = need(run.next())) batches.push_back(describe(batch->tensor));
    return batches;
  };

  const std::vector<std::string> first = epoch();
  const auto told = [&] { return daemon.errors().find("not written to disk for now") != std::string::npos; };
  REQUIRE(eventually(told, std::chrono::seconds(20)));
  const std::vector<std::string> second = epoch(), third = epoch();

  REQUIRE(first.size() == 6);
  REQUIRE(second == first);
  REQUIRE(third == first);
  REQUIRE(daemon.metric("millrace_bad_samples_total") == 0);
}

}  // namespace
}  // namespace millrace
