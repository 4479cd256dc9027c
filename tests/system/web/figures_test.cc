// Figures that alerts look at: roots that are not there, reads that hang, devices that are lost, descriptors, a store
// that cannot be written. Each of a daemon to which that happens.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/host_faults.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

BatchRequest one_of(const std::string& path) {
  return {.samples = {{.source = Path{path}}}, .recipe = Recipe::train(32)};
}

double labelled(const Daemon& daemon, const std::string& name, const std::string& label) {
  for (const Metric& metric : need(daemon.connect().statistics()).metrics)
    for (const LabelledValue& one : metric.values)
      if (metric.name == name && one.label == label) return one.value;
  return -1;
}

TEST_CASE("roots that are not there are counted, until they are", "[system]") {
  const TempFolder folder;
  const std::string picture = write_image_folder(folder / "here", {.images = 1, .classes = 1}).front();
  const std::string later = folder / "later";
  const Daemon daemon({.roots = {folder / "here", later}, .opener = OpenerBeside::kNo});
  CHECK(daemon.metric("millrace_roots") == 2);
  CHECK(daemon.metric("millrace_roots_missing") == 1);
  std::filesystem::create_directory(later);
  Session session = need(daemon.connect().open_session({.slots = 1, .slot_bytes = 1_MiB}));
  CHECK(eventually([&] {
    need(session.wait(need(session.submit(one_of(later + "/x.jpg")))));  // a root is looked for when it is asked for
    return daemon.metric("millrace_roots_missing") == 0;
  }));
}

TEST_CASE("a read that hangs is counted while it hangs", "[system]") {
  const TempFolder folder;
  HostFaults faults(folder / "faults");
  const std::string picture = write_image_folder(folder / "pictures", {.images = 1, .classes = 1}).front();
  const Daemon daemon({.roots = {folder.path()}, .env = {faults.env()}, .program = bad_host_program()});
  Session session = need(daemon.connect().open_session({.slots = 1, .slot_bytes = 1_MiB}));
  CHECK(daemon.metric("millrace_reads_stuck") == 0);
  faults.reads_hang("pictures");
  const Ticket ticket = need(session.submit(one_of(picture)));
  std::future<Result<Batch>> waits = std::async(std::launch::async, [&] { return session.wait(ticket); });
  CHECK(eventually([&] { return daemon.metric("millrace_reads_stuck") == 1; }));
  faults.reads_hang("");
  CHECK_FALSE(need(waits.get()).failure);
  CHECK(eventually([&] { return daemon.metric("millrace_reads_stuck") == 0; }));
}

TEST_CASE("devices are counted, and those that are lost", "[system]") {
  const TempFolder folder;
  const auto pictures = write_image_folder(folder / "pictures", {.images = 4, .classes = 1});
  const Daemon daemon({.roots = {folder.path()}, .fake = "lose_after=1"});
  CHECK(labelled(daemon, "millrace_devices", "cpu") == 1);
  CHECK(labelled(daemon, "millrace_devices", "fake") == 1);
  CHECK(labelled(daemon, "millrace_devices_lost", "fake") == 0);
  Session session = need(daemon.connect().open_session({.slots = 1, .slot_bytes = 1_MiB}));
  BatchRequest request{.recipe = Recipe::train(32), .backend = "fake"};
  for (const std::string& path : pictures) request.samples.push_back({.source = Path{path}});
  need(session.submit(request));
  CHECK(eventually([&] { return labelled(daemon, "millrace_devices_lost", "fake") == 1; }));
  CHECK(daemon.metric("millrace_devices_lost") == 1);
  CHECK(labelled(daemon, "millrace_devices_lost", "cpu") == 0);
}

TEST_CASE("descriptors are counted, and as many as there may be told", "[system]") {
  const Daemon daemon({.descriptors = 4096});
  CHECK(daemon.metric("millrace_descriptors_most") == 4096);
  const double few = daemon.metric("millrace_descriptors");
  CHECK(few > 5);
  CHECK(few < 4096);
  std::vector<Session> sessions;
  Client client = daemon.connect();
  for (int i = 0; i < 16; ++i) sessions.push_back(need(client.open_session({.slots = 1, .slot_bytes = 64_KiB})));
  CHECK(eventually([&] { return daemon.metric("millrace_descriptors") >= few + 16; }));
}

TEST_CASE("a store that cannot be opened is told, and one that is not wanted is not", "[system]") {
  const TempFolder folder;
  const std::string state = folder / "state";
  std::filesystem::create_directory(state);
  {
    const Daemon daemon({.cache = "disk = \"64MiB\"\n", .daemon = "state_dir = \"" + state + "\"\n"});
    CHECK(daemon.metric("millrace_store_unusable") == 0);
  }
  std::filesystem::remove_all(state + "/cache");
  std::ofstream(state + "/cache") << "a file where the store's folder belongs";
  const Daemon hindered({.cache = "disk = \"64MiB\"\n", .daemon = "state_dir = \"" + state + "\"\n"});
  CHECK(eventually([&] { return hindered.metric("millrace_store_unusable") == 1; }));
  const Daemon without({.daemon = "state_dir = \"\"\n"});
  CHECK(without.metric("millrace_store_unusable") == 0);
}

}  // namespace
}  // namespace millrace
