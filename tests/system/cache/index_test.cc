// Seek indexes through a real daemon: made in the first epoch, used in the next, kept on disk.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/property_tree/json_parser.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/cache/store_through_mapping.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr int kIndexImages = 40;

struct IndexRig {
  explicit IndexRig(const std::string& base = "/tmp") : folder(base) {
    write_image_folder(folder.path(), {.images = kIndexImages, .min_side = 250, .max_side = 400, .only_jpeg = true});
    // Files that changed in the last two seconds go by their contents, later by their identity: one more miss.
    std::this_thread::sleep_for(std::chrono::milliseconds(2'100));
  }

  // A sanitizer can make the scalar path, which has no indexes, the fastest.
  DaemonSpec spec() const {
    return {.roots = {folder.path()},
            .cpu = "target = \"avx2\"\n",
            .cache = "packed = false\ntensors = false\n",
            .daemon = "state_dir = \"" + state.path() + "\"\n"};
  }

  TempFolder folder, state;
};

boost::property_tree::ptree run_json(const Daemon& daemon, std::vector<std::string> words) {
  words.front() = bin_folder() + "/" + words.front();
  words.insert(words.end(), {"--socket", daemon.socket(), "--json"});
  const Process process = Process::spawn({.argv = std::move(words), .env = {{"NO_COLOR", "1"}}});
  const auto status = process.wait(std::chrono::seconds(60));
  CAPTURE(process.output(), process.errors());
  REQUIRE(status == 0);
  std::istringstream text(process.output());
  boost::property_tree::ptree object;
  boost::property_tree::read_json(text, object);
  return object;
}

std::vector<boost::property_tree::ptree> epochs_of(const boost::property_tree::ptree& run) {
  std::vector<boost::property_tree::ptree> epochs;
  for (const auto& [name, epoch] : run.get_child("epochs")) epochs.push_back(epoch);
  return epochs;
}

void build(const Daemon& daemon, const IndexRig& rig) {
  run_json(daemon, {"millrace", "index", "build", rig.folder.path()});
}

struct FileTimes {
  std::int64_t modified, changed;
  friend bool operator==(const FileTimes&, const FileTimes&) = default;
};

FileTimes times_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

// Of each picture that is one, at its lower right corner.
std::vector<std::byte> lower_corners(const Daemon& daemon, const std::vector<std::string>& paths) {
  Session session = need(
      daemon.connect().open_session({.batch = static_cast<std::uint32_t>(paths.size()), .recipe = Recipe::train(32)}));
  BatchRequest request{.on_error = OnError::kZero};
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}, .box = Box{150, 150, 90, 90}});
  const Batch batch = need(session.wait(need(session.submit(std::move(request)))));
  return {batch.tensor.data().begin(), batch.tensor.data().end()};
}

int hits_of_a_run(const Daemon& daemon, const IndexRig& rig) {
  const auto run = run_json(daemon, {"millrace", "run", "--dataset", rig.folder.path(), "--size", "64"});
  REQUIRE(run.get<int>("images") == kIndexImages);
  return epochs_of(run).front().get<int>("index_hits");
}

}  // namespace

TEST_CASE("epochs behind the first are decoded by seek indexes, and statistics show it", "[system]") {
  const IndexRig rig;
  const Daemon daemon(rig.spec());

  const auto run = run_json(
      daemon, {"millrace", "run", "--dataset", rig.folder.path(), "--epochs", "3", "--shuffle", "--size", "64"});

  const auto epochs = epochs_of(run);
  REQUIRE(epochs.size() == 3);
  const int indexed = epochs[0].get<int>("index_misses");
  REQUIRE(indexed > kIndexImages / 2);
  REQUIRE(epochs[0].get<int>("index_hits") == 0);
  for (const int epoch : {1, 2}) {
    REQUIRE(epochs[static_cast<std::size_t>(epoch)].get<int>("index_hits") == indexed);
    REQUIRE(epochs[static_cast<std::size_t>(epoch)].get<int>("index_misses") == 0);
  }
  REQUIRE(daemon.metric("millrace_index_entries") == indexed);
  REQUIRE(daemon.metric("millrace_index_bytes") > 100 * indexed);
  REQUIRE(daemon.metric("millrace_index_rejected_total") == 0);
}

TEST_CASE("seek indexes outlive a daemon that was killed", "[system]") {
  const IndexRig rig;
  Daemon daemon(rig.spec());
  build(daemon, rig);
  const double indexed = daemon.metric("millrace_index_entries");
  REQUIRE(eventually([&] { return daemon.metric("millrace_index_disk_entries") == indexed; }));
  daemon.kill(SIGKILL);
  REQUIRE(daemon.wait());

  daemon.start();

  REQUIRE(eventually([&] { return daemon.metric("millrace_index_disk_entries") == indexed; }));
  REQUIRE(hits_of_a_run(daemon, rig) == static_cast<int>(indexed));
}

TEST_CASE("daemons of one user share the seek indexes in their state directory", "[system]") {
  const IndexRig rig;
  const Daemon one(rig.spec());
  const Daemon other(rig.spec());
  build(one, rig);
  const double indexed = one.metric("millrace_index_entries");
  REQUIRE(eventually([&] { return one.metric("millrace_index_disk_entries") == indexed; }));
  REQUIRE(eventually([&] { return other.metric("millrace_index_disk_entries") == indexed; }));

  REQUIRE(hits_of_a_run(other, rig) == static_cast<int>(indexed));
}

TEST_CASE("seek indexes on disk that are damaged are made again, and the daemon works on", "[system]") {
  const IndexRig rig;
  Daemon daemon(rig.spec());
  build(daemon, rig);
  REQUIRE(eventually([&] { return daemon.metric("millrace_index_disk_entries") > 0; }));
  daemon.kill(SIGTERM);
  REQUIRE(daemon.wait() == 0);
  for (const auto& file : std::filesystem::directory_iterator(rig.state.path() + "/cache")) {
    if (file.path().extension() == ".mrc") std::filesystem::resize_file(file, std::filesystem::file_size(file) / 3);
  }

  daemon.start();
  const double kept = daemon.metric("millrace_index_disk_entries");
  const int hits = hits_of_a_run(daemon, rig);

  REQUIRE(hits == static_cast<int>(kept));
  REQUIRE(hits < kIndexImages / 2);
  REQUIRE(hits_of_a_run(daemon, rig) > kIndexImages / 2);
}

// What was mapped would end the daemon.
TEST_CASE("the files of the store are cut while the daemon works, and it works on", "[system]") {
  const IndexRig rig;
  Daemon daemon(rig.spec());
  build(daemon, rig);
  REQUIRE(eventually([&] { return daemon.metric("millrace_index_disk_pending") == 0; }));
  daemon.kill(SIGTERM);
  REQUIRE(daemon.wait() == 0);
  daemon.start();  // with nothing in memory
  for (const auto& file : std::filesystem::directory_iterator(rig.state.path() + "/cache"))
    std::filesystem::resize_file(file, 0);

  REQUIRE(hits_of_a_run(daemon, rig) == 0);
  REQUIRE(hits_of_a_run(daemon, rig) > kIndexImages / 2);
}

TEST_CASE("millrace index builds, verifies and counts", "[system]") {
  const IndexRig rig;
  const Daemon daemon(rig.spec());

  const auto none = run_json(daemon, {"millrace", "index", "stat", rig.folder.path()});
  const auto built = run_json(daemon, {"millrace", "index", "build", rig.folder.path()});
  const auto verified = run_json(daemon, {"millrace", "index", "verify", rig.folder.path()});
  const auto counted = run_json(daemon, {"millrace", "index", "stat", rig.folder.path()});

  const int indexed = none.get<int>("without_index");
  REQUIRE(indexed > kIndexImages / 2);
  REQUIRE(built.get<int>("images") == kIndexImages);
  REQUIRE(verified.get<int>("with_index") == indexed);
  REQUIRE(verified.get<int>("without_index") == 0);
  REQUIRE(verified.get<int>("wrong") == 0);
  REQUIRE(counted.get<int>("with_index") == indexed);
  REQUIRE(counted.get<double>("memory_bytes") > none.get<double>("memory_bytes"));
}

TEST_CASE("a file that changes gets another seek index", "[system]") {
  const IndexRig rig;
  const Daemon daemon(rig.spec());
  build(daemon, rig);
  const TempFolder other;
  write_image_folder(other.path(),
                     {.images = kIndexImages, .min_side = 250, .max_side = 400, .seed = 2, .only_jpeg = true});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(other.path())) {
    if (!entry.is_regular_file()) continue;
    const auto place = rig.folder.path() / std::filesystem::relative(entry.path(), other.path());
    std::filesystem::copy_file(entry.path(), place, std::filesystem::copy_options::overwrite_existing);
  }

  REQUIRE(hits_of_a_run(daemon, rig) == 0);

  REQUIRE(daemon.metric("millrace_index_rejected_total") == 0);
}

// The ctime stays as it is on tmpfs.
TEST_CASE("a file that changes by a store through a mapping is never decoded by the old index", "[system]") {
  const IndexRig rig("/dev/shm");
  const Daemon daemon(rig.spec());
  build(daemon, rig);
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(rig.folder.path())) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  const FileTimes before = times_of(paths.front());
  for (const std::string& path : paths) store_through_mapping(path);

  const std::vector<std::byte> indexed = lower_corners(daemon, paths);

  REQUIRE(times_of(paths.front()) == before);
  REQUIRE(daemon.metric("millrace_index_rejected_total") > kIndexImages / 2);
  auto without_index = rig.spec();
  without_index.cache = "memory = 0\n";
  without_index.daemon.clear();
  REQUIRE((lower_corners(Daemon(without_index), paths) == indexed));
}

}  // namespace millrace
