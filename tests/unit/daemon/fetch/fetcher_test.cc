#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "daemon/fetch/fetcher.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using Items = std::vector<Fetched>;
using Strings = std::vector<std::string>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> small_jpeg(int orientation = 0) {
  return make_jpeg({.pixels = make_pixels(32, 16, 3, 1), .exif_orientation = orientation});
}

struct Fixture {
  TempFolder temp;
  Counters counters;
  std::unique_ptr<Fetcher> fetcher;

  explicit Fixture(Fetcher::Options options = {.threads = 1}) {
    options.roots = {temp.path()};
    fetcher = *Fetcher::create(std::move(options), counters);
  }

  FetchTask task(const std::vector<SampleSource>& sources, std::promise<Items>& answer) const {
    auto kept = std::make_shared<std::vector<SampleSource>>(sources);
    FetchTask task{.keep_alive = kept,
                   .caller = std::make_shared<const Caller>(Caller{.uid = geteuid(), .gid = getegid()}),
                   .done = [&answer](Items items) { answer.set_value(std::move(items)); }};
    for (std::uint32_t i = 0; i < kept->size(); ++i) task.items.push_back(FetchItem{i + 100, &(*kept)[i]});
    return task;
  }

  // Once more whatever was not begun because the machine was so slow that the task's turn was over.
  Items fetch(const std::vector<SampleSource>& sources) {
    std::promise<Items> answer;
    REQUIRE(fetcher->try_fetch(task(sources, answer)));
    Items items = answer.get_future().get();
    for (std::size_t i = 1; i < items.size(); ++i) {
      if (items[i].end != FetchEnd::kNotBegun) continue;
      const std::uint32_t index = items[i].index;
      items[i] = std::move(fetch({sources[i]}).front());
      items[i].index = index;
    }
    return items;
  }
};

std::string error_of(const Fetched& fetched) {
  REQUIRE_FALSE(fetched.image.has_value());
  return fetched.image.error().message;
}

TEST_CASE("every kind of source comes back as its bytes and header, in the task's order", "[fetch]") {
  Fixture fixture;
  const std::vector<std::byte> jpeg = small_jpeg(6);
  write_file(fixture.temp / "a.jpg", jpeg);
  const auto dataset = std::make_shared<const Dataset>(fixture.temp.path(), "a.jpg",
                                                       std::vector<Dataset::Entry>{{0, 5, -1}}, Strings{}, 1);

  const Items items = fixture.fetch(
      {PathSource{fixture.temp / "a.jpg"}, InlineSource{text_of(jpeg)}, DatasetSource{dataset, SampleId{0}}});

  REQUIRE(items.size() == 3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    REQUIRE(items[i].index == 100 + i);
    REQUIRE(items[i].end == FetchEnd::kRead);
    REQUIRE(items[i].image.has_value());
    REQUIRE(text_of(items[i].image->bytes.view()) == text_of(jpeg));
    REQUIRE(items[i].image->info.stored == Size{32, 16});
    REQUIRE(items[i].image->info.orientation == 6);
  }
  REQUIRE(fixture.counters.stored(MetricId::encoded_bytes) == static_cast<std::int64_t>(3 * jpeg.size()));
}

TEST_CASE("a sample that is a part of a file comes back as that part alone", "[fetch]") {
  Fixture fixture;
  const std::vector<std::byte> first = small_jpeg(6), second = small_jpeg();
  std::string shard(512, 'h');
  const Dataset::Range of_first{shard.size(), Bytes{first.size()}};
  shard += text_of(first) + std::string(77, 'p');
  const Dataset::Range of_second{shard.size(), Bytes{second.size()}};
  shard += text_of(second) + std::string(1024, 'e');
  write_file(fixture.temp / "shard.tar", shard);
  const auto dataset = std::make_shared<const Dataset>(
      fixture.temp.path(), "shard.tar", std::vector<Dataset::Entry>{{0, 9, 0}, {0, 9, 1}}, Strings{"a", "b"}, 1,
      Skipped{}, Dataset::Parts{.ranges = {of_second, of_first}, .stamps = {}});

  const Items items = fixture.fetch({DatasetSource{dataset, SampleId{0}}, DatasetSource{dataset, SampleId{1}}});

  REQUIRE(items.size() == 2);
  REQUIRE(items[0].image);
  REQUIRE(text_of(items[0].image->bytes.view()) == text_of(second));
  REQUIRE(items[0].image->info.orientation == 1);
  REQUIRE(items[1].image);
  REQUIRE(text_of(items[1].image->bytes.view()) == text_of(first));
  REQUIRE(items[1].image->info.orientation == 6);
  REQUIRE_FALSE(items[1].image->identity);
}

TEST_CASE("a part that the file does not have, or that is over the limit, is its sample's error", "[fetch]") {
  Fixture fixture({.threads = 1, .limits = Limits{.sample = {.encoded = 2_KiB}}});
  write_file(fixture.temp / "shard.tar", std::string(3'000, 'x'));
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  Dataset::Parts parts{.ranges = {{2'900, 101_B}, {3'001, 0_B}, {kMost, 1_B}, {1, Bytes{kMost - 1}}, {0, 2'049_B}},
                       .stamps = {}};
  const std::size_t count = parts.ranges.size();
  const auto dataset =
      std::make_shared<const Dataset>(fixture.temp.path(), "shard.tar", std::vector<Dataset::Entry>(count, {0, 9, -1}),
                                      Strings{}, 1, Skipped{}, std::move(parts));
  std::vector<SampleSource> sources;
  for (std::uint64_t i = 0; i < count; ++i) sources.push_back(DatasetSource{dataset, SampleId{i}});

  const Items items = fixture.fetch(sources);

  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE_FALSE(items[i].image);
    CHECK(items[i].image.error().code == Code::kInvalid);
    const bool over = i >= 3;
    CHECK_THAT(error_of(items[i]), Catch::Contains(over ? "limits.encoded" : "has changed since it was listed"));
  }
}

TEST_CASE("a dataset says where a sample lies: in a file, or in a part of one", "[fetch]") {
  const std::vector<Dataset::Entry> entries{{0, 5, 0}, {5, 5, 0}};
  const Dataset files("/data", "a.jpgb.jpg", entries, Strings{"c"}, 1);
  const Dataset parts("/data", "a.jpgb.jpg", entries, Strings{"c"}, 1, {},
                      {.ranges = {{0, 10_B}, {10, 20_B}}, .stamps = {}});

  CHECK(files.locate(SampleId{1}) == Dataset::Location{"/data/b.jpg", std::nullopt});
  CHECK(parts.locate(SampleId{1}) == Dataset::Location{"/data/b.jpg", Dataset::Range{10, 20_B}});
}

TEST_CASE("a bad sample has its own error and leaves the others alone", "[fetch]") {
  Fixture fixture;
  write_file(fixture.temp / "good.jpg", small_jpeg());
  write_file(fixture.temp / "empty.jpg", std::string());
  write_file(fixture.temp / "page.jpg", std::string("<html>"));
  const auto dataset = std::make_shared<const Dataset>("/", "", std::vector<Dataset::Entry>{}, Strings{}, 1);

  const Items items =
      fixture.fetch({PathSource{fixture.temp / "empty.jpg"}, PathSource{fixture.temp / "page.jpg"},
                     PathSource{fixture.temp / "missing.jpg"}, PathSource{"/etc/passwd"}, RingSource{0, 10},
                     DatasetSource{dataset, SampleId{3}}, InlineSource{}, PathSource{fixture.temp / "good.jpg"}});

  REQUIRE(error_of(items[0]) == "an empty file");
  REQUIRE(error_of(items[1]).starts_with("not an image"));
  REQUIRE(items[2].image.error().code == Code::kNotFound);
  REQUIRE(items[3].image.error().code == Code::kDenied);
  REQUIRE(items[4].image.error().code == Code::kInvalid);
  REQUIRE(items[5].image.error().code == Code::kInvalid);
  REQUIRE(error_of(items[6]) == "an empty file");
  REQUIRE(items[7].image.has_value());
}

TEST_CASE("the recipe may ignore the orientation", "[fetch]") {
  Fixture fixture;
  const std::vector<SampleSource> sources{InlineSource{text_of(small_jpeg(8))}};
  std::promise<Items> answer;
  FetchTask task = fixture.task(sources, answer);
  task.items[0].ignore_orientation = true;

  REQUIRE(fixture.fetcher->try_fetch(std::move(task)));

  REQUIRE(answer.get_future().get()[0].image->info.orientation == 1);
}

TEST_CASE("encoded bytes over the limit are refused", "[fetch]") {
  Fixture fixture({.threads = 1, .limits = Limits{.sample = {.encoded = Bytes{100}}}});
  write_file(fixture.temp / "large", std::string(101, 'x'));

  const Items items = fixture.fetch({PathSource{fixture.temp / "large"}, InlineSource{std::string(101, 'x')}});

  REQUIRE(error_of(items[0]).find("limits.encoded") != std::string::npos);
  REQUIRE(error_of(items[1]).find("limits.encoded") != std::string::npos);
}

TEST_CASE("a stopped task comes back cancelled", "[fetch]") {
  Fixture fixture;
  std::promise<Items> answer;
  FetchTask task = fixture.task({InlineSource{text_of(small_jpeg())}, InlineSource{}}, answer);
  auto stop = std::make_shared<StopFlag>();
  stop->stop();
  task.stop = stop;

  REQUIRE(fixture.fetcher->try_fetch(std::move(task)));

  const Items items = answer.get_future().get();
  REQUIRE(items.size() == 2);
  for (const Fetched& item : items) REQUIRE(item.image.error().code == Code::kCancelled);
}

TEST_CASE("a task whose room is used up gives the rest back as not begun", "[fetch]") {
  Fixture fixture;
  const std::string jpeg = text_of(small_jpeg());
  const std::vector<SampleSource> sources(4, InlineSource{jpeg});
  for (const auto& [room, begun] :
       {std::pair<std::uint64_t, std::size_t>{0, 1}, {1, 1}, {jpeg.size() + 1, 2}, {~0ULL, 4}}) {
    std::promise<Items> answer;
    FetchTask task = fixture.task(sources, answer);
    task.room = Bytes{room};

    REQUIRE(fixture.fetcher->try_fetch(std::move(task)));

    const Items items = answer.get_future().get();
    REQUIRE(items.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) REQUIRE((items[i].end == FetchEnd::kRead) == (i < begun));
  }
}

TEST_CASE("a task that wants headers alone keeps no bytes, and stops at what it may read as any does", "[fetch]") {
  Fixture fixture;
  const std::string jpeg = text_of(small_jpeg());
  const std::string large = jpeg + std::string(2 * jpeg.size(), ' ');
  std::promise<Items> answer;
  FetchTask task =
      fixture.task({InlineSource{jpeg}, InlineSource{large}, InlineSource{"bad"}, InlineSource{jpeg}}, answer);
  task.room = Bytes{2 * jpeg.size()};
  task.keep = FetchedBytes::kHeaderOnly;

  REQUIRE(fixture.fetcher->try_fetch(std::move(task)));

  const Items items = answer.get_future().get();
  for (const std::size_t i : {0, 1}) {
    REQUIRE(items[i].end == FetchEnd::kHeaderOnly);
    REQUIRE(items[i].image->bytes.size() == 0);
    REQUIRE(items[i].image->info.stored == Size{32, 16});
  }
  for (const std::size_t i : {2, 3}) REQUIRE(items[i].end == FetchEnd::kNotBegun);
}

TEST_CASE("what is read in vain counts towards a task's room as well", "[fetch]") {
  Fixture fixture;
  const std::string bad(1'000, 'x');
  std::promise<Items> answer;
  FetchTask task = fixture.task({InlineSource{bad}, InlineSource{bad}, InlineSource{bad}}, answer);
  task.room = Bytes{2'000};

  REQUIRE(fixture.fetcher->try_fetch(std::move(task)));

  const Items items = answer.get_future().get();
  REQUIRE(items[0].end == FetchEnd::kRead);
  REQUIRE_FALSE(items[0].image);
  REQUIRE(items[1].end == FetchEnd::kRead);
  REQUIRE(items[2].end == FetchEnd::kNotBegun);
}

TEST_CASE("a full queue is told to the caller, and the task is left as it was", "[fetch]") {
  Fixture fixture({.threads = 1, .queue = 1});
  std::promise<void> running, go_on;
  std::promise<Items> first, second, third;
  FetchTask blocking = fixture.task({InlineSource{}}, first);
  blocking.done = [&](Items items) {
    running.set_value();
    go_on.get_future().wait();
    first.set_value(std::move(items));
  };
  REQUIRE(fixture.fetcher->try_fetch(std::move(blocking)));
  running.get_future().wait();
  REQUIRE(fixture.fetcher->try_fetch(fixture.task({InlineSource{}}, second)));

  FetchTask refused = fixture.task({InlineSource{}}, third);
  REQUIRE_FALSE(fixture.fetcher->try_fetch(std::move(refused)));

  REQUIRE(refused.items.size() == 1);
  REQUIRE(refused.done);
  go_on.set_value();
  second.get_future().wait();
}

TEST_CASE("a fetcher that goes away answers what is queued", "[fetch]") {
  Fixture fixture({.threads = 1});
  std::promise<void> running, go_on;
  std::promise<Items> first, second;
  FetchTask blocking = fixture.task({InlineSource{}}, first);
  blocking.done = [&](Items items) {
    running.set_value();
    go_on.get_future().wait();
    first.set_value(std::move(items));
  };
  REQUIRE(fixture.fetcher->try_fetch(std::move(blocking)));
  running.get_future().wait();
  REQUIRE(fixture.fetcher->try_fetch(fixture.task({InlineSource{text_of(small_jpeg())}}, second)));

  std::thread end([&] { fixture.fetcher.reset(); });
  go_on.set_value();
  end.join();

  REQUIRE(second.get_future().get().size() == 1);
}

TEST_CASE("a listing and its samples fit together", "[fetch]") {
  Fixture fixture({.threads = 2});
  const Strings paths = write_image_folder(fixture.temp.path() + "/set", {.images = 24, .classes = 3});
  std::promise<Result<std::shared_ptr<const Dataset>>> listed;
  REQUIRE(fixture.fetcher->try_list(
      {.path_untrusted = fixture.temp / "set",
       .caller = std::make_shared<const Caller>(Caller{.uid = geteuid(), .gid = getegid()}),
       .max_files = 1'000,
       .done = [&](Result<std::shared_ptr<const Dataset>> dataset) { listed.set_value(std::move(dataset)); }}));
  const Result<std::shared_ptr<const Dataset>> dataset = listed.get_future().get();
  REQUIRE(dataset.has_value());

  std::vector<SampleSource> sources;
  for (std::uint64_t i = 0; i < (*dataset)->samples(); ++i) sources.push_back(DatasetSource{*dataset, SampleId{i}});
  const Items items = fixture.fetch(sources);

  REQUIRE((*dataset)->samples() == paths.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    REQUIRE(items[i].image.has_value());
    REQUIRE(text_of(items[i].image->bytes.view()) == text_of(read_file(paths[i])));
  }
}

TEST_CASE("a listing that fails, or whose fetcher goes away, is answered", "[fetch]") {
  Fixture fixture;
  std::promise<Code> listed;
  ListTask task{
      .path_untrusted = "/nowhere",
      .caller = std::make_shared<const Caller>(Caller{.uid = geteuid()}),
      .max_files = 10,
      .done = [&](Result<std::shared_ptr<const Dataset>> dataset) { listed.set_value(dataset.error().code); }};
  REQUIRE(fixture.fetcher->try_list(std::move(task)));
  fixture.fetcher.reset();

  const Code code = listed.get_future().get();
  REQUIRE((code == Code::kDenied || code == Code::kCancelled));
}

TEST_CASE("a root that is not there does not keep the fetcher from starting, and is named", "[fetch]") {
  const TempFolder folder;
  Counters counters;

  const auto fetcher = Fetcher::create({.roots = {folder.path(), folder / "later"}}, counters);

  REQUIRE(fetcher.has_value());
  REQUIRE((*fetcher)->missing_roots() == std::vector<std::string>{folder / "later"});
}

TEST_CASE("a root that is no absolute path keeps the fetcher from starting", "[fetch]") {
  Counters counters;

  const auto fetcher = Fetcher::create({.roots = {"no/such/folder"}}, counters);

  REQUIRE(fetcher.error().code == Code::kInvalid);
  REQUIRE(fetcher.error().message.find("no/such/folder") != std::string::npos);
}

}  // namespace
}  // namespace millrace
