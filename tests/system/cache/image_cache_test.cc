// What the daemon keeps of images, through a real daemon: it stands in for files, and never for others.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/system/cache/kept_images.h"
#include "tests/system/cache/store_through_mapping.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

Recipe eval() {
  return Recipe::evaluate(64, 48);
}

struct ImageRig {
  explicit ImageRig(const std::string& base = "/tmp") : folder(base) {
    paths =
        write_image_folder(folder.path(), {.images = kKeptImages, .min_side = 250, .max_side = 400, .only_jpeg = true});
    wait_until_stable();
  }

  // A sanitizer can make the scalar path, which keeps nothing, the fastest.
  DaemonSpec spec(const std::string& cache = "") const {
    return {.roots = {folder.path()}, .cpu = "target = \"avx2\"\n", .cache = "settled_seconds = 2\n" + cache};
  }

  TempFolder folder;
  std::vector<std::string> paths;
};

double hits(const Daemon& daemon, const std::string& kind) {
  return labelled(daemon, "millrace_cache_hits_total", kind);
}
double entries(const Daemon& daemon, const std::string& kind) {
  return labelled(daemon, "millrace_cache_entries", kind);
}

// Touches them until all are packed.
void pack_all(const Daemon& daemon, const ImageRig& rig) {
  Session session = session_of(daemon, Recipe::train(64), CacheUse::kPacked, true);
  touch(session, rig.paths);
  REQUIRE(eventually([&] { return entries(daemon, "packed") == kKeptImages; }));
}

void keep_tensors(const Daemon& daemon, const ImageRig& rig) {
  Session session = session_of(daemon, eval());
  for (int i = 0; i < 2; ++i) touch(session, rig.paths);
  REQUIRE(eventually([&] { return entries(daemon, "tensor") == kKeptImages; }));
}

}  // namespace

TEST_CASE("images come from their files, then by indexes, then from packed forms, with the same pixels", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  const TensorBytes expected = truth(daemon, rig.paths, Recipe::train(64));
  const double first = daemon.metric("millrace_first_touches_total");
  Session session = session_of(daemon, Recipe::train(64));

  REQUIRE((touch(session, rig.paths) == expected));
  REQUIRE(daemon.metric("millrace_first_touches_total") - first == kKeptImages);
  REQUIRE((touch(session, rig.paths) == expected));
  REQUIRE(hits(daemon, "index") + hits(daemon, "packed") > kKeptImages / 2);  // packed where a lane had been idle
  REQUIRE(eventually([&] { return entries(daemon, "packed") == kKeptImages; }));
  const double packed = hits(daemon, "packed"), read = daemon.metric("millrace_encoded_bytes_total");
  for (int i = 0; i < 2; ++i) REQUIRE((touch(session, rig.paths) == expected));

  REQUIRE(hits(daemon, "packed") - packed == 2 * kKeptImages);
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") == read);  // no file was read
  REQUIRE(daemon.metric("millrace_cache_rejected_total") == 0);
}

TEST_CASE("tensors without random choices are kept whole", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  const TensorBytes expected = truth(daemon, rig.paths, eval());
  keep_tensors(daemon, rig);
  Session session = session_of(daemon, eval());
  const double read = daemon.metric("millrace_encoded_bytes_total");

  REQUIRE((touch(session, rig.paths) == expected));

  REQUIRE(hits(daemon, "tensor") == kKeptImages);
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") == read);
  Recipe other = eval();
  other.layout = Layout::kNhwc;
  Session others = session_of(daemon, other);
  REQUIRE((touch(others, rig.paths) == truth(daemon, rig.paths, other)));
  REQUIRE(hits(daemon, "tensor") == kKeptImages);
}

TEST_CASE("a file that was replaced, rewritten or cut off is made of what it is now", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  pack_all(daemon, rig);
  keep_tensors(daemon, rig);
  const TensorBytes before = truth(daemon, rig.paths, eval());
  const std::vector<std::byte> other = read_file(rig.paths[3]);
  write_file(rig.paths[0] + ".new", other);
  std::filesystem::rename(rig.paths[0] + ".new", rig.paths[0]);
  write_file(rig.paths[1], other);
  std::filesystem::resize_file(rig.paths[2], 300);
  for (const bool stable : {false, true}) {
    if (stable) wait_until_stable();
    const TensorBytes expected = truth(daemon, rig.paths, eval());

    Session session = session_of(daemon, eval());
    const TensorBytes now = touch(session, rig.paths);

    REQUIRE((now == expected));
    REQUIRE_FALSE((now == before));
    Session training = session_of(daemon, Recipe::train(64));
    REQUIRE((touch(training, rig.paths) == truth(daemon, rig.paths, Recipe::train(64))));
  }
}

// On a disk the first store changes the ctime; on tmpfs none does, so bytes are compared there.
TEST_CASE("a file that changes by a store through a mapping is never served as it was", "[system]") {
  for (const char* const base : {"/tmp", "/dev/shm"}) {
    CAPTURE(base);
    const ImageRig rig(base);
    const Daemon daemon(rig.spec());
    pack_all(daemon, rig);
    keep_tensors(daemon, rig);
    Session before_session = session_of(daemon, eval());
    const TensorBytes before = touch(before_session, rig.paths);
    REQUIRE(hits(daemon, "tensor") == kKeptImages);
    for (const std::string& path : rig.paths) store_through_mapping(path);

    Session session = session_of(daemon, eval());
    const TensorBytes now = touch(session, rig.paths);

    REQUIRE_FALSE((now == before));
    REQUIRE((now == truth(daemon, rig.paths, eval())));
    Session training = session_of(daemon, Recipe::train(64));
    REQUIRE((touch(training, rig.paths) == truth(daemon, rig.paths, Recipe::train(64))));
  }
}

TEST_CASE("files that just changed are packed, but read each time until they are stable", "[system]") {
  const ImageRig rig;
  DaemonSpec spec = rig.spec();
  spec.cache = "settled_seconds = 3600\n";
  const Daemon daemon(spec);
  pack_all(daemon, rig);
  const double read = daemon.metric("millrace_encoded_bytes_total");
  Session session = session_of(daemon, Recipe::train(64));

  const TensorBytes pixels = touch(session, rig.paths);

  REQUIRE(hits(daemon, "packed") == kKeptImages);
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") > read);
  REQUIRE((pixels == truth(daemon, rig.paths, Recipe::train(64))));
}

TEST_CASE("bytes that a client sends are packed when they come again", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  Session session = session_of(daemon, Recipe::train(64), CacheUse::kPacked, true);
  const std::vector<std::byte> bytes = read_file(rig.paths[0]);
  const auto send = [&] {
    BatchRequest request{.seed = 5};
    request.samples.push_back({.source = Encoded{bytes}});
    return bytes_of(need(session.wait(need(session.submit(std::move(request))))));
  };
  const TensorBytes first = send();
  REQUIRE(eventually([&] { return entries(daemon, "packed") == 1; }));

  REQUIRE((send() == first));

  REQUIRE(hits(daemon, "packed") == 1);
}

TEST_CASE("a session keeps no more than it says, and uses no more", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  const TensorBytes expected = truth(daemon, rig.paths, eval());
  for (const CacheUse use : {CacheUse::kOff, CacheUse::kIndex}) {
    Session session = session_of(daemon, eval(), use, true);
    for (int i = 0; i < 3; ++i) REQUIRE((touch(session, rig.paths) == expected));
    REQUIRE((daemon.metric("millrace_cache_entries") > 0) == (use == CacheUse::kIndex));
    REQUIRE(entries(daemon, "packed") + entries(daemon, "tensor") == 0);
  }
  pack_all(daemon, rig);
  keep_tensors(daemon, rig);
  const double before = hits(daemon, "packed") + hits(daemon, "tensor");

  Session session = session_of(daemon, eval(), CacheUse::kIndex);
  REQUIRE((touch(session, rig.paths) == expected));

  REQUIRE(hits(daemon, "packed") + hits(daemon, "tensor") == before);
}

TEST_CASE("settings leave kinds out", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec("packed = false\ntensors = false\n"));
  Session session = session_of(daemon, eval(), CacheUse::kTensors, true);

  for (int i = 0; i < 3; ++i) touch(session, rig.paths);

  REQUIRE(entries(daemon, "index") > 0);
  REQUIRE(entries(daemon, "packed") + entries(daemon, "tensor") == 0);
}

TEST_CASE("what is kept stays within its bound, and a part of it is of use", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec("memory = \"256 KiB\"\n"));
  Session session = session_of(daemon, Recipe::train(64));
  const TensorBytes expected = truth(daemon, rig.paths, Recipe::train(64));

  for (int i = 0; i < 5; ++i) {
    REQUIRE((touch(session, rig.paths) == expected));
    REQUIRE(daemon.metric("millrace_cache_bytes") <= 256 * 1024);
  }

  REQUIRE(entries(daemon, "packed") > 2);
  REQUIRE(entries(daemon, "packed") < kKeptImages);
  REQUIRE(hits(daemon, "packed") > 2);
  REQUIRE(labelled(daemon, "millrace_cache_evictions_total", "packed") <= kKeptImages);  // it does not come and go
}

// The fake backend stands for one that takes no kept forms.
TEST_CASE("a sample whose kept form is no use to its backend is read, and made", "[system]") {
  const ImageRig rig;
  DaemonSpec spec = rig.spec();
  spec.fake = "depth=2";
  const Daemon daemon(spec);
  const TensorBytes expected = truth(daemon, rig.paths, eval());
  keep_tensors(daemon, rig);
  Session session = session_of(daemon, eval());
  BatchRequest request{.seed = 5, .backend = "fake"};
  for (const std::string& path : rig.paths) request.samples.push_back({.source = Path{path}});
  const double read = daemon.metric("millrace_encoded_bytes_total");

  const TensorBytes pixels = bytes_of(need(session.wait(need(session.submit(std::move(request))))));

  REQUIRE((pixels == expected));
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") > read);
  REQUIRE(eventually([&] { return daemon.metric("millrace_encoded_in_flight_bytes") == 0; }));
}

TEST_CASE("a client that is killed while its images are packed takes nothing with it", "[system]") {
  const ImageRig rig;
  const Daemon daemon(rig.spec());
  for (int i = 0; i < 5; ++i) {
    const double made = daemon.metric("millrace_samples_total");
    const Process run =
        Process::spawn({.argv = {bin_folder() + "/millrace", "run", "--socket", daemon.socket(), "--dataset",
                                 rig.folder.path(), "--epochs", "1000000", "--size", "64", "--cache-at-once"},
                        .env = {{"NO_COLOR", "1"}}});
    const bool begun = eventually([&] { return daemon.metric("millrace_samples_total") > made; });
    CAPTURE(i, run.output(), run.errors());
    REQUIRE(begun);
    run.kill(SIGKILL);
    run.wait(std::chrono::seconds(60));
  }

  Session session = session_of(daemon, Recipe::train(64));
  REQUIRE((touch(session, rig.paths) == truth(daemon, rig.paths, Recipe::train(64))));
  REQUIRE(eventually([&] { return daemon.metric("millrace_encoded_in_flight_bytes") == 0; }));
}

TEST_CASE("who may not read a file gets nothing of what is kept of it", "[system]") {
  if (!is_root()) return skip_loudly("who may not read a file gets nothing of it (needs root, to be several users)");
  constexpr uid_t kStranger = 64003;
  ImageRig rig;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(rig.folder.path()))
    if (entry.is_directory()) std::filesystem::permissions(entry.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(rig.folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(rig.paths[0], std::filesystem::perms(0600));
  std::filesystem::permissions(rig.paths[1], std::filesystem::perms(0644));
  wait_until_stable();
  DaemonSpec spec = rig.spec();
  spec.for_all_users = true;
  const Daemon daemon(spec);
  const std::vector<std::string> two{rig.paths[0], rig.paths[1]};
  for (int i = 0; i < 3; ++i) daemon.run_client("read", two);
  REQUIRE(hits(daemon, "tensor") == 2);

  const std::string told = daemon.run_client("read", two, kStranger);

  CAPTURE(told);
  REQUIRE(told.find("0 PERMISSION_DENIED") != std::string::npos);
  REQUIRE(hits(daemon, "tensor") == 3);  // of the other one, which both may read
}

}  // namespace millrace
