// Names of files that are not UTF-8: asked for by path, listed as datasets, and named when they are bad.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

// A daemon and a folder whose classes' and files' names are bytes, one of them no picture.
struct OddNames {
  OddNames()
      : daemon({.roots = {temp.path()}}),
        session(need(daemon.connect().open_session({.batch = 4, .recipe = Recipe::evaluate(32, 24)}))) {
    write_file(good, make_png({.pixels = make_pixels(40, 30, 3, 1)}));
    write_file(other, make_png({.pixels = make_pixels(40, 30, 3, 2)}));
    write_file(bad, std::string("this is not a picture"));
  }

  static std::string made(const std::string& folder) { return std::filesystem::create_directories(folder), folder; }

  TempFolder temp;
  const std::string folder = made(temp / "caf\xe9");
  const std::string good = made(folder + "/\xff") + "/\xfe\n.png";
  const std::string other = made(folder + "/b") + "/\xf0\x28.png";
  const std::string bad = folder + "/b/\x80.jpg";
  Daemon daemon;
  Session session;
};

TEST_CASE("a path that is not UTF-8 is read as the one of the same bytes", "[system]") {
  OddNames names;
  const std::vector<std::byte> good = read_file(names.good);
  const std::vector<std::byte> other = read_file(names.other);
  BatchRequest request{.samples = {{.source = Path{names.good}},
                                   {.source = Path{names.other}},
                                   {.source = Encoded{good}},
                                   {.source = Encoded{other}}}};

  const Batch batch = need(names.session.wait(need(names.session.submit(std::move(request)))));

  REQUIRE_FALSE(batch.failure);
  const auto image = [&](std::size_t i) { return batch.tensor.pixels(i); };
  REQUIRE(std::ranges::equal(image(0), image(2)));
  REQUIRE(std::ranges::equal(image(1), image(3)));
  REQUIRE_FALSE(std::ranges::equal(image(0), image(1)));
}

TEST_CASE("a bad sample's error has the file's path byte for byte, and a text to print", "[system]") {
  OddNames names;
  const std::string missing = names.folder + "/\xff/none";
  const std::vector<std::byte> garbage(9);
  BatchRequest request{.on_error = OnError::kSkip};
  request.samples = {{.source = Path{names.bad}}, {.source = Path{missing}}, {.source = Encoded{garbage}}};

  const Batch batch = need(names.session.wait(need(names.session.submit(std::move(request)))));

  REQUIRE(batch.errors.size() == 3);
  REQUIRE(batch.errors[0].path == names.bad);
  REQUIRE_THAT(batch.errors[0].source, Catch::EndsWith("/caf\\xe9/b/\\x80.jpg"));
  REQUIRE(batch.errors[1].path == missing);
  REQUIRE_THAT(batch.errors[1].source, Catch::EndsWith("/caf\\xe9/\\xff/none"));
  REQUIRE(batch.errors[2].path.empty());
  REQUIRE_THAT(batch.errors[2].source, Catch::StartsWith("encoded bytes"));
}

TEST_CASE("a dataset's folder, classes and files may have any names", "[system]") {
  OddNames names;
  const Dataset dataset = need(names.session.open_dataset(names.folder));
  Epoch epoch = names.session.epoch(dataset, {.on_error = OnError::kSkip});

  const auto batch = need(epoch.next());

  REQUIRE(dataset.samples() == 3);
  REQUIRE(dataset.classes() == std::vector<std::string>{"b", "\xff"});
  REQUIRE(batch);
  REQUIRE(batch->tensor.labels() == std::vector<std::int64_t>{0, 1});
  REQUIRE(batch->errors.size() == 1);
  REQUIRE(batch->errors[0].path == names.bad);
}

TEST_CASE("a path with a zero byte is refused by name, and the session goes on", "[system]") {
  OddNames names;
  const std::string cut = names.good + std::string("\0.png", 5);

  const Batch batch = need(names.session.wait(need(names.session.submit({.samples = {{.source = Path{cut}}}}))));
  const auto dataset = names.session.open_dataset(names.folder + std::string("\0x", 2));
  const Batch after = need(names.session.wait(need(names.session.submit({.samples = {{.source = Path{names.good}}}}))));

  REQUIRE(batch.failure);
  REQUIRE(batch.failure->code == Code::kInvalid);
  REQUIRE_THAT(batch.failure->message, Catch::Contains("samples[0].path: must not contain a zero byte"));
  REQUIRE_THAT(dataset.error().message, Catch::Contains("path: must not contain a zero byte"));
  REQUIRE_FALSE(after.failure);
}

TEST_CASE("a session's name, a backend and an extension that are no text are refused by name", "[system]") {
  OddNames names;
  Client client = names.daemon.connect();

  const auto session = client.open_session({.name = "caf\xe9", .slot_bytes = 1_MiB});
  const Batch batch = need(
      names.session.wait(need(names.session.submit({.samples = {{.source = Path{names.good}}}, .backend = "\xff"}))));
  const auto dataset = names.session.open_dataset(names.folder, {.extensions = {"\xff"}});

  REQUIRE(session.error().code == Code::kInvalid);
  REQUIRE_THAT(session.error().message, Catch::Contains("name: must be printable text"));
  REQUIRE_THAT(batch.failure->message, Catch::Contains("backend: "));
  REQUIRE_THAT(dataset.error().message, Catch::Contains("extensions[0]: "));
}

}  // namespace
}  // namespace millrace
