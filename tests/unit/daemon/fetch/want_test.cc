// What the daemon itself lacks is no fault of the files.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>

#include "daemon/fetch/fetcher.h"
#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/roots.h"
#include "daemon/fetch/read/sample_reader.h"
#include "proto/base/sanitized.h"
#include "tests/support/host/descriptor_limit.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

struct WantFixture {
  TempFolder folder;
  Counters counters;
  std::unique_ptr<Fetcher> fetcher = *Fetcher::create({.roots = {folder.path()}, .threads = 2}, counters);
  std::shared_ptr<const Caller> caller = std::make_shared<const Caller>(Caller{.uid = geteuid(), .gid = getegid()});

  std::vector<Fetched> fetch(const std::vector<SampleSource>& sources) {
    std::promise<std::vector<Fetched>> answer;
    FetchTask task{.caller = caller, .done = [&](std::vector<Fetched> items) { answer.set_value(std::move(items)); }};
    for (const SampleSource& source : sources) task.items.push_back(FetchItem{.source = &source});
    REQUIRE(fetcher->try_fetch(std::move(task)));
    return answer.get_future().get();
  }

  Result<std::shared_ptr<const Dataset>> list(const std::string& path) {
    std::promise<Result<std::shared_ptr<const Dataset>>> answer;
    REQUIRE(fetcher->try_list({.path_untrusted = path, .caller = caller, .max_files = 1000, .done = [&](auto listed) {
                                 answer.set_value(std::move(listed));
                               }}));
    return answer.get_future().get();
  }

  // Of files some folders deep, one behind a link.
  std::vector<SampleSource> files() const {
    std::vector<SampleSource> sources;
    std::filesystem::create_directories(folder / "a/b");
    std::filesystem::create_directory_symlink(folder / "a", folder / "link");
    for (const char* name : {"one.jpg", "a/two.jpg", "a/b/three.jpg"}) {
      write_file(folder / name, make_jpeg({.pixels = make_pixels(16, 16, 3, 1)}));
      sources.emplace_back(PathSource{folder / name});
    }
    sources.emplace_back(PathSource{folder / "link/b/three.jpg"});
    return sources;
  }
};

}  // namespace

TEST_CASE("files are read by spare descriptors where others have taken the last ones", "[fetch]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  WantFixture fixture;
  const std::vector<SampleSource> sources = fixture.files();
  const auto limit = DescriptorLimit::left(0);

  for (int round = 0; round < 10; ++round) {
    for (const Fetched& item : fixture.fetch(sources)) {
      REQUIRE(item.end == FetchEnd::kRead);
      REQUIRE(item.image.has_value());
    }
  }
}

TEST_CASE("what lies beneath a root that is not there is told apart from a file that is not", "[fetch]") {
  WantFixture fixture;
  Counters counters;
  const std::string gone = fixture.folder / "gone";
  std::filesystem::create_directory(fixture.folder / "here");
  fixture.fetcher = *Fetcher::create({.roots = {fixture.folder / "here", gone}, .threads = 1}, counters);

  const auto items = fixture.fetch({PathSource{gone + "/a.jpg"}, PathSource{fixture.folder / "here/a.jpg"},
                                    PathSource{"/elsewhere/a.jpg"}, InlineSource{"no picture"}});

  REQUIRE(items[0].root_missing);
  REQUIRE_THAT(items[0].image.error().message, Catch::Contains(gone));
  for (std::size_t i = 1; i < items.size(); ++i) REQUIRE_FALSE(items[i].root_missing);
}

TEST_CASE("without any descriptor a file is not bad but to be asked for later", "[fetch]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  WantFixture fixture;
  const std::vector<SampleSource> sources = fixture.files();
  std::vector<Fetched> items;
  {
    const auto limit = DescriptorLimit::none();
    items = fixture.fetch(sources);
  }

  for (const Fetched& item : items) REQUIRE(item.end == FetchEnd::kHostLacks);
  for (const Fetched& item : fixture.fetch(sources)) REQUIRE(item.image.has_value());
}

TEST_CASE("a listing without descriptors is unavailable, and takes no link to a folder for a file", "[fetch]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  WantFixture fixture;
  fixture.files();
  bool listed = false;
  for (std::size_t left = 0; !listed; ++left) {
    REQUIRE(left < 64);
    const auto outcome = [&] {
      const auto limit = DescriptorLimit::left(left);
      return fixture.list(fixture.folder.path());
    }();
    listed = outcome.has_value();
    if (!listed) REQUIRE(outcome.error().code == Code::kUnavailable);
    if (listed) REQUIRE((*outcome)->samples() == 5);
  }
}

TEST_CASE("a large file that is no picture is told by its beginning, in the words for a small one", "[fetch]") {
  WantFixture fixture;
  write_file(fixture.folder / "small", std::string(100, 'x'));
  write_file(fixture.folder / "large", std::string(3U << 20U, 'x'));
  const auto roots = *Roots::open({.folders = {fixture.folder.path()}});
  const SampleReader reader(*roots, {.limits = Limits{}, .stable_after = kStableAfter});
  Bytes of_small{0}, of_large{0};

  const auto small = reader.read(PathSource{fixture.folder / "small"}, *fixture.caller, nullptr,
                                 ReadWish{.keep = CacheWish{.most = CacheUse::kOff}}, of_small);
  const auto large = reader.read(PathSource{fixture.folder / "large"}, *fixture.caller, nullptr,
                                 ReadWish{.keep = CacheWish{.most = CacheUse::kOff}}, of_large);

  REQUIRE_THAT(large.error().message, Catch::Contains("not an image that this daemon knows"));
  REQUIRE(large.error().message == small.error().message);
  REQUIRE(of_large == 0_MiB);
}

TEST_CASE("a file that is larger than its size says takes its part of what may be read at once", "[fetch]") {
  WantFixture fixture;
  const auto roots = *Roots::open({.folders = {"/proc/self"}});  // where files have a size of 0
  const auto read = [&](std::uint32_t files_at_once) {
    const SampleReader reader(*roots,
                              {.limits = Limits{}, .stable_after = kStableAfter, .files_at_once = files_at_once});
    Bytes bytes{0};
    return reader.read(PathSource{"/proc/self/maps"}, *fixture.caller, nullptr,
                       ReadWish{.keep = CacheWish{.most = CacheUse::kOff}}, bytes);
  };

  REQUIRE_THAT(read(1).error().message, Catch::Contains("not an image that this daemon knows"));
  REQUIRE(read(0).error().code == Code::kUnavailable);
}

TEST_CASE("memory for an ordinary file is the daemon's matter, for a giant the file's", "[fetch]") {
  REQUIRE(no_memory("a file", 1_MiB).code == Code::kUnavailable);
  REQUIRE(no_memory("a file", 200_MiB).code == Code::kExhausted);
  REQUIRE(io_error("reading", ENFILE).code == Code::kUnavailable);
  REQUIRE(io_error("reading", ENOENT).code == Code::kNotFound);
}

}  // namespace millrace
