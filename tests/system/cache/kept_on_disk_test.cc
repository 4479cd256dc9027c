// What the daemon keeps on disk, through a real daemon that is killed and started again: it stands in for files, and
// never for others.
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/system/cache/kept_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

struct StoreRig {
  StoreRig() {
    paths =
        write_image_folder(folder.path(), {.images = kKeptImages, .min_side = 250, .max_side = 400, .only_jpeg = true});
    wait_until_stable();
  }

  // A sanitizer can make the scalar path, which keeps nothing, the fastest.
  DaemonSpec spec(const std::string& cache = "disk = \"1 GiB\"\n") const {
    return {.roots = {folder.path()},
            .cpu = "target = \"avx2\"\n",
            .cache = "settled_seconds = 2\n" + cache,
            .daemon = "state_dir = \"" + state.path() + "\"\n"};
  }
  std::string store() const { return state / "cache"; }

  // Of the store: its data files where `extension` is .mrc, its tables where it is .mrt.
  std::vector<std::filesystem::path> files(const std::string& extension) const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(store()))
      if (file.path().extension() == extension) found.push_back(file.path());
    return found;
  }

  TempFolder folder, state;
  std::vector<std::string> paths;
};

// The same images, as bytes that the client sends.
TensorBytes touch_as_bytes(Session& session, const std::vector<std::string>& paths) {
  std::vector<std::vector<std::byte>> files;
  for (const std::string& path : paths) files.push_back(read_file(path));
  BatchRequest request = batch_to_touch();
  for (const std::vector<std::byte>& file : files) request.samples.push_back({.source = Encoded{file}});
  return bytes_of(need(session.wait(need(session.submit(std::move(request))))));
}

// Touches them until all that is made of them is on disk.
void keep_on_disk(const Daemon& daemon, const StoreRig& rig, const Recipe& recipe, const std::string& kind) {
  Session session =
      session_of(daemon, recipe, kind == "packed" ? CacheUse::kPacked : CacheUse::kTensors, kind == "packed");
  for (int i = 0; i < 2; ++i) touch(session, rig.paths);
  REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_disk_entries", kind) == kKeptImages; }));
}

void start_again(Daemon& daemon, int signal) {
  daemon.kill(signal);
  REQUIRE(daemon.wait());
  daemon.start();
  REQUIRE(eventually([&] { return daemon.metric("millrace_cache_disk_entries") > 0; }));
}

// The same images as parts of one file; all are stable when it returns.
std::vector<ListedFile> in_a_shard(const StoreRig& rig) {
  std::vector<ListedFile> parts;
  std::string shard;
  for (const std::string& path : rig.paths) {
    const std::vector<std::byte> file = read_file(path);
    shard.append(512, 'h');
    parts.push_back({rig.folder / "shard.tar", -1, FileRange{shard.size(), file.size()}});
    shard.append(reinterpret_cast<const char*>(file.data()), file.size());
  }
  write_file(rig.folder / "shard.tar", shard);
  wait_until_stable();
  return parts;
}

TensorBytes touch_listed(Session& session, const std::vector<ListedFile>& parts) {
  Epoch epoch = session.epoch(need(session.open_files(parts)), {.seed = 5});
  return bytes_of(*need(epoch.next()));
}

// How often these bytes are in the store's data files.
int occurrences(const StoreRig& rig, std::string_view what) {
  int count = 0;
  for (const auto& path : rig.files(".mrc")) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (auto at = bytes.find(what); at != std::string::npos; at = bytes.find(what, at + 1)) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a daemon that is killed has what it kept again at its next start, and reads no file", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const bool packed = GENERATE(true, false);
  const Recipe recipe = packed ? Recipe::train(64) : Recipe::evaluate(64, 48);
  const std::string kind = packed ? "packed" : "tensor";
  const StoreRig rig;
  Daemon daemon(rig.spec());
  const TensorBytes expected = truth(daemon, rig.paths, recipe);
  keep_on_disk(daemon, rig, recipe, kind);
  REQUIRE(daemon.metric("millrace_cache_disk_hits_total") == 0);

  start_again(daemon, SIGKILL);

  Session session = session_of(daemon, recipe);
  for (int i = 1; i <= 2; ++i) {
    REQUIRE((touch(session, rig.paths) == expected));
    REQUIRE(labelled(daemon, "millrace_cache_hits_total", kind) == i * kKeptImages);
    REQUIRE(labelled(daemon, "millrace_cache_disk_hits_total", kind) == kKeptImages);  // the second time from memory
  }
  REQUIRE(daemon.metric("millrace_first_touches_total") == 0);
  REQUIRE(labelled(daemon, "millrace_cache_disk_hits_total", "index") == 0);
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") == 0);
}

TEST_CASE("what is kept of parts of a file is found again after a kill, and each part's own", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const StoreRig rig;
  std::vector<ListedFile> parts = in_a_shard(rig);
  const Recipe recipe = Recipe::evaluate(64, 48);
  Daemon daemon(rig.spec());
  TensorBytes expected;
  {
    Session plain = session_of(daemon, recipe, CacheUse::kOff), keeps = session_of(daemon, recipe);
    std::vector<ListedFile> files;
    for (const std::string& path : rig.paths) files.push_back({path});
    expected = touch_listed(plain, files);
    for (int i = 0; i < 2; ++i) REQUIRE((touch_listed(keeps, parts) == expected));
  }
  REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_disk_entries", "tensor") == kKeptImages; }));

  start_again(daemon, SIGKILL);

  Session session = session_of(daemon, recipe);
  REQUIRE((touch_listed(session, parts) == expected));
  REQUIRE(labelled(daemon, "millrace_cache_disk_hits_total", "tensor") == kKeptImages);
  REQUIRE(daemon.metric("millrace_encoded_bytes_total") == 0);
}

TEST_CASE("the store on disk is its owner's alone", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const StoreRig rig;
  const Daemon daemon(rig.spec());
  keep_on_disk(daemon, rig, Recipe::train(64), "packed");

  REQUIRE(std::filesystem::status(rig.store()).permissions() == std::filesystem::perms(0700));
  for (const char* const extension : {".mrc", ".mrt"}) {
    REQUIRE_FALSE(rig.files(extension).empty());
    for (const auto& path : rig.files(extension))
      REQUIRE(std::filesystem::status(path).permissions() == std::filesystem::perms(0600));
  }
}

TEST_CASE("what is made of bytes that a client sends is not on disk", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const StoreRig rig;
  Daemon daemon(rig.spec());
  {
    Session session = session_of(daemon, Recipe::train(64), CacheUse::kPacked, true);
    for (int i = 0; i < 3; ++i) touch_as_bytes(session, rig.paths);
    Session tensors = session_of(daemon, Recipe::evaluate(64, 48));
    for (int i = 0; i < 3; ++i) touch_as_bytes(tensors, rig.paths);
    REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_entries", "packed") == kKeptImages; }));
    touch(session, {rig.paths[0]});  // a file, beside them
    REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_disk_entries", "packed") == 1; }));
  }
  REQUIRE(labelled(daemon, "millrace_cache_entries", "tensor") == kKeptImages);
  REQUIRE(labelled(daemon, "millrace_cache_entries", "index") > kKeptImages / 2);

  daemon.kill(SIGTERM);  // what waits is written
  REQUIRE(daemon.wait() == 0);

  REQUIRE(occurrences(rig, "MRPK") == 1);
  std::uintmax_t records = 0;
  for (const auto& path : rig.files(".mrt")) records += std::filesystem::file_size(path) / 128 - 1;
  REQUIRE(records <= 2);  // the file's packed form, and its index
}

TEST_CASE("files of the store that are cut or changed while the daemon works cost time, not pixels", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const bool cut = GENERATE(true, false);
  const Recipe recipe = Recipe::train(64);
  const StoreRig rig;
  Daemon daemon(rig.spec());
  const TensorBytes expected = truth(daemon, rig.paths, recipe);
  keep_on_disk(daemon, rig, recipe, "packed");
  start_again(daemon, SIGKILL);

  for (const auto& path : rig.files(".mrc")) {
    if (cut) {
      std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
      continue;
    }
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (std::uintmax_t at = 0; at < std::filesystem::file_size(path); at += 5'000) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\x5A');
    }
  }
  Session session = session_of(daemon, recipe, CacheUse::kPacked, true);
  for (int i = 0; i < 3; ++i) REQUIRE((touch(session, rig.paths) == expected));

  const double first = daemon.metric("millrace_first_touches_total"),
               from_disk = labelled(daemon, "millrace_cache_disk_hits_total", "packed");
  REQUIRE(from_disk < kKeptImages);
  REQUIRE(first + labelled(daemon, "millrace_cache_hits_total", "index") > 0);
  REQUIRE(daemon.metric("millrace_bad_samples_total") == 0);
}

TEST_CASE("a state folder that is removed under the daemon is told of once, and images are made on", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const StoreRig rig;
  const Daemon daemon(rig.spec());
  const Recipe recipe = Recipe::train(64);
  const TensorBytes expected = truth(daemon, rig.paths, recipe);
  keep_on_disk(daemon, rig, recipe, "packed");
  std::filesystem::remove_all(rig.state.path());
  const auto told = [&] {
    const std::string log = daemon.errors();
    const std::string_view line = "not written to disk for now: ";
    const std::size_t at = log.find(line);
    return at == log.npos ? 0 : log.find(line, at + 1) == log.npos ? 1 : 2;
  };

  REQUIRE(eventually([&] { return told() == 1; }));
  REQUIRE(daemon.errors().find(rig.store() + " was removed") != std::string::npos);
  Session session = session_of(daemon, recipe, CacheUse::kPacked, true);
  for (int i = 0; i < 2; ++i) REQUIRE((touch(session, rig.paths) == expected));
  REQUIRE(labelled(daemon, "millrace_cache_disk_entries", "packed") == 0);
  std::this_thread::sleep_for(std::chrono::seconds(6));  // it looks every five
  REQUIRE(told() == 1);
}

TEST_CASE("with cache.disk = 0 nothing is on disk", "[system]") {
  const StoreRig rig;
  Daemon daemon(rig.spec("disk = 0\n"));
  Session session = session_of(daemon, Recipe::train(64), CacheUse::kPacked, true);
  for (int i = 0; i < 2; ++i) touch(session, rig.paths);
  REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_entries", "packed") == kKeptImages; }));

  daemon.kill(SIGTERM);
  REQUIRE(daemon.wait());

  REQUIRE_FALSE(std::filesystem::exists(rig.store()));
}

TEST_CASE("of files that have changed since nothing comes from disk", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const Recipe recipe = Recipe::train(64);
  const StoreRig rig;
  Daemon daemon(rig.spec());
  keep_on_disk(daemon, rig, recipe, "packed");
  daemon.kill(SIGKILL);
  REQUIRE(daemon.wait());
  std::filesystem::copy_file(rig.paths[1], rig.paths[0], std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(rig.paths[3], rig.paths[2] + ".new");
  std::filesystem::rename(rig.paths[2] + ".new", rig.paths[2]);
  wait_until_stable();

  daemon.start();
  REQUIRE(eventually([&] { return labelled(daemon, "millrace_cache_disk_entries", "packed") == kKeptImages; }));
  const TensorBytes expected = truth(daemon, rig.paths, recipe);
  Session session = session_of(daemon, recipe);

  REQUIRE((touch(session, rig.paths) == expected));
  REQUIRE(labelled(daemon, "millrace_cache_hits_total", "packed") == kKeptImages - 2);
}

TEST_CASE("what memory has no room for is packed for the disk alone", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const StoreRig rig;
  const Daemon daemon(rig.spec("memory = \"256 KiB\"\ndisk = \"1 GiB\"\n"));
  const Recipe recipe = Recipe::train(64);
  keep_on_disk(daemon, rig, recipe, "packed");
  REQUIRE(labelled(daemon, "millrace_cache_entries", "packed") < kKeptImages);

  Session session = session_of(daemon, recipe, CacheUse::kPacked);
  REQUIRE((touch(session, rig.paths) == truth(daemon, rig.paths, recipe)));
  REQUIRE(labelled(daemon, "millrace_cache_disk_hits_total", "packed") >= kKeptImages / 2);
}

}  // namespace millrace
