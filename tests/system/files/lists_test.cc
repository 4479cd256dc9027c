// Datasets that clients list themselves, and epochs whose order they say: through a real daemon.
#include <algorithm>
#include <catch2/catch.hpp>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kListedImages = 12;

struct ListsMill {
  ListsMill() : daemon({.roots = {folder.path()}}), client(daemon.connect()), session(open()) {}

  Session open() { return need(client.open_session({.slots = 3, .batch = 4, .recipe = Recipe::train(56)})); }
  std::vector<ListedFile> files() const {
    std::vector<ListedFile> listed;
    for (const std::string& path : paths) listed.push_back({path, static_cast<std::int64_t>(listed.size()) + 100});
    return listed;
  }
  static NextBatch order_of(std::vector<GivenBatch> batches) {
    return [batches = std::move(batches), next = std::size_t{0}]() mutable -> std::optional<GivenBatch> {
      if (next == batches.size()) return std::nullopt;
      return batches[next++];
    };
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths = write_image_folder(pictures, {.images = kListedImages, .classes = 2});
  Daemon daemon;
  Client client;
  Session session;
};

TEST_CASE("a list of files gives the pixels that the folder gives, with its own labels, in its own order", "[system]") {
  ListsMill mill;
  std::vector<ListedFile> turned = mill.files();
  std::ranges::reverse(turned);
  std::uint64_t progress = 0;

  const Dataset list =
      need(mill.session.open_files(turned, {.progress = [&](std::uint64_t files) { progress = files; }}));
  const Dataset folder = need(mill.session.open_dataset(mill.pictures));

  REQUIRE(list.samples() == kListedImages);
  CHECK(progress == kListedImages);
  CHECK(list.classes().empty());
  const std::vector<std::uint64_t> asked{3, 0, 3};
  CHECK(need(list.files_of(asked)) == std::vector<std::string>{turned[3].path, turned[0].path, turned[3].path});
  CHECK(need(folder.files_of(asked)) == std::vector<std::string>{mill.paths[3], mill.paths[0], mill.paths[3]});
  const Recipe plain = Recipe::evaluate(60, 56);
  Epoch of_list = mill.session.epoch(list, {.recipe = plain}),
        of_folder = mill.session.epoch(folder, {.recipe = plain});
  std::vector<std::string> seen(kListedImages), expected(kListedImages);
  for (const Batch& batch : of_list) {
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
      const SampleInfo info = batch.tensor.sample(i);
      CHECK(info.label == static_cast<std::int64_t>(kListedImages - 1 - info.id + 100));
      const auto pixels = batch.tensor.pixels(i);
      seen[kListedImages - 1 - info.id].assign(reinterpret_cast<const char*>(pixels.data()), pixels.size());
    }
  }
  need(of_list.result());
  for (const Batch& batch : of_folder) {
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
      const auto pixels = batch.tensor.pixels(i);
      expected[batch.tensor.sample(i).id].assign(reinterpret_cast<const char*>(pixels.data()), pixels.size());
    }
  }
  need(of_folder.result());
  CHECK(seen == expected);
}

TEST_CASE("a list that comes in several parts is one dataset, and resumes by position", "[system]") {
  ListsMill mill;
  std::vector<ListedFile> many;
  while (many.size() < 60'000)
    many.push_back({mill.paths[many.size() % kListedImages], static_cast<std::int64_t>(many.size())});

  const Dataset list = need(mill.session.open_files(many));
  Epoch whole = mill.session.epoch(list, {.seed = 4, .shuffle = true, .batches = 6});
  std::vector<std::string> told;
  std::string position;
  for (const Batch& batch : whole) {
    told.push_back(describe(batch.tensor));
    if (told.size() == 3) position = batch.position;
  }
  need(whole.result());
  Session other = mill.open();
  const Dataset again = need(other.open_files(many));
  CHECK(again.fingerprint() == list.fingerprint());
  Epoch rest = other.epoch(again, {.seed = 4, .shuffle = true, .position = position, .batches = 3});
  std::vector<std::string> resumed;
  for (const Batch& batch : rest) resumed.push_back(describe(batch.tensor));
  need(rest.result());

  REQUIRE(told.size() == 6);
  CHECK(resumed == std::vector<std::string>(told.begin() + 3, told.end()));
}

TEST_CASE("a path outside the roots is refused by name, a missing file is its sample's error", "[system]") {
  ListsMill mill;
  std::vector<ListedFile> outside = mill.files(), missing = mill.files();
  outside.push_back({"/etc/passwd", 0});
  missing[1].path = mill.pictures + "/class_00/not_there.jpg";

  const auto refused = mill.session.open_files(outside);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kDenied);
  CHECK_THAT(refused.error().message,
             Catch::Contains("sample 12 \"/etc/passwd\"") && Catch::Contains(mill.folder.path()));
  CHECK(mill.session.open_files({}).error().code == Code::kInvalid);

  const Dataset list = need(mill.session.open_files(missing));
  Epoch epoch = mill.session.epoch(list);
  const std::optional<Batch> found = need(epoch.next());
  REQUIRE(found);
  const Batch& first = *found;
  CHECK(first.tensor.samples() == 3);
  REQUIRE(first.errors.size() == 1);
  CHECK(first.errors[0].path == missing[1].path);
}

TEST_CASE("an epoch comes in the order that its client says, twice the same sample with another crop", "[system]") {
  ListsMill mill;
  const Dataset list = need(mill.session.open_files(mill.files()));
  const std::vector<GivenBatch> order{{{5, 5, 5}, {5, 5, 1}}, {{11}}, {{0, 1, 2, 3}}};

  Epoch epoch = mill.session.epoch(list, {.order = ListsMill::order_of(order)});
  std::vector<std::vector<std::uint64_t>> ids;
  std::vector<Box> boxes;
  for (const Batch& batch : epoch) {
    ids.push_back(batch.tensor.ids());
    CHECK(batch.position.empty());
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) boxes.push_back(batch.tensor.sample(i).crop);
  }

  need(epoch.result());
  CHECK(ids == std::vector<std::vector<std::uint64_t>>{{5, 5, 5}, {11}, {0, 1, 2, 3}});
  CHECK(boxes[0] == boxes[1]);
  CHECK_FALSE(boxes[0] == boxes[2]);
}

TEST_CASE("an epoch of another session's dataset is refused", "[system]") {
  ListsMill mill;
  Session other = mill.open();
  const Dataset ours = need(mill.session.open_files(mill.files())), theirs = need(other.open_files(mill.files()));

  Epoch mixed_up = mill.session.epoch(theirs);

  CHECK_THAT(mixed_up.next().error().message, Catch::Contains("of another session"));
  Epoch right = mill.session.epoch(ours);
  CHECK(need(right.next()).has_value());
}

TEST_CASE("an order of large batches comes in several messages", "[system]") {
  ListsMill mill;
  constexpr std::uint64_t kSize = 20'000;
  Recipe dot = Recipe::train(56);
  dot.resize = ExactSize{{1, 1}};
  Session large = need(mill.client.open_session({.slots = 8, .batch = kSize, .recipe = dot}));
  const Dataset list = need(large.open_files(mill.files()));
  std::vector<GivenBatch> order(20);
  for (GivenBatch& batch : order) {
    for (std::uint64_t i = 0; i < kSize; ++i) {
      batch.samples.push_back(i % kListedImages);
      batch.draws.push_back(~i);
    }
  }

  Epoch epoch = large.epoch(list, {.order = ListsMill::order_of(order)});  // one message would be over 4 MiB

  const std::optional<Batch> first = need(epoch.next());
  REQUIRE(first);
  CHECK(first->tensor.samples() == kSize);
}

TEST_CASE("an order of thousands of batches comes whole, one that is wrong ends its epoch alone", "[system]") {
  ListsMill mill;
  const Dataset list = need(mill.session.open_files(mill.files()));
  std::vector<GivenBatch> many;
  for (std::uint64_t i = 0; i < 300; ++i) many.push_back({{i % kListedImages, (7 * i) % kListedImages}});

  Epoch whole = mill.session.epoch(list, {.order = ListsMill::order_of(many)});
  std::uint64_t count = 0;
  for (const Batch& batch : whole) {
    CHECK(batch.tensor.ids() == many[count].samples);
    ++count;
  }
  need(whole.result());
  CHECK(count == many.size());

  Epoch none = mill.session.epoch(list, {.order = ListsMill::order_of({})});
  CHECK_FALSE(need(none.next()));
  Epoch wrong = mill.session.epoch(list, {.order = ListsMill::order_of({{{1}}, {{12}}})});
  CHECK_THAT(wrong.next().error().message, Catch::Contains("there is no sample 12"));
  Epoch large = mill.session.epoch(list, {.order = ListsMill::order_of({{{1, 2, 3, 4, 5}}})});
  CHECK_THAT(large.next().error().message, Catch::Contains("batch_size, 4"));
  Epoch shuffled = mill.session.epoch(list, {.shuffle = true, .order = ListsMill::order_of({{{1}}})});
  CHECK_THAT(shuffled.next().error().message, Catch::Contains("shuffle"));
  Epoch after = mill.session.epoch(list, {.order = ListsMill::order_of({{{1}}})});
  CHECK(need(after.next()).has_value());
}

}  // namespace
}  // namespace millrace
