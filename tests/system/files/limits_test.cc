// What a daemon's settings allow is what its clients take for allowed, be it less or more than usual.
#include <catch2/catch.hpp>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

struct LimitsMill {
  explicit LimitsMill(const std::string& limits)
      : paths(write_image_folder(folder / "pictures", {.images = 4, .classes = 1})),
        daemon({.roots = {folder.path()}, .limits = limits}),
        session(need(daemon.connect().open_session({.name = "limits", .batch = 4, .recipe = Recipe::train(32)}))) {}

  // One of the pictures, with zero bytes after it, which no decoder reads.
  std::vector<std::byte> picture_of(Bytes size) const {
    std::vector<std::byte> bytes = read_file(paths[0]);
    bytes.resize(size.count);
    return bytes;
  }
  BatchRequest of_paths(std::size_t count) const {
    BatchRequest request;
    for (std::size_t i = 0; i < count; ++i) request.samples.push_back({.source = Path{paths[i]}});
    return request;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  Session session;
};

TEST_CASE("a session knows the limits that its daemon's settings say", "[system]") {
  LimitsMill mill("inline_message = \"2 MiB\"\nsamples = 3\nring = \"5 MiB\"\n");

  CHECK(mill.session.limits().message == 4_MiB);
  CHECK(mill.session.limits().inline_bytes == 2_MiB);
  CHECK(mill.session.limits().samples == 3U);
  CHECK(mill.session.limits().ring == 5_MiB);
}

TEST_CASE("a daemon that allows more bytes in a message than usual gets them", "[system]") {
  LimitsMill mill("inline_message = \"2 MiB\"\n");
  const std::vector<std::byte> picture = mill.picture_of(2_MiB), larger = mill.picture_of(2_MiB + 1_B);

  const Batch batch = need(mill.session.wait(need(mill.session.submit({.samples = {{.source = Encoded{picture}}}}))));
  const auto refused = mill.session.submit({.samples = {{.source = Encoded{larger}}}});

  CHECK_FALSE(batch.failure);
  CHECK(batch.tensor.samples() == 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalid);
  CHECK_THAT(refused.error().message,
             Catch::Contains("2097153 B of encoded bytes in one batch, the daemon takes 2097152 B in a message "
                             "(limits.inline_message in its settings)"));
}

TEST_CASE("a daemon that allows less than usual is not sent what it would refuse", "[system]") {
  LimitsMill mill("inline_message = \"1 KiB\"\nsamples = 3\n");
  const std::vector<std::byte> picture = mill.picture_of(4_KiB);

  const auto bytes = mill.session.submit({.samples = {{.source = Encoded{picture}}}});
  const auto samples = mill.session.submit(mill.of_paths(4));
  const Batch fits = need(mill.session.wait(need(mill.session.submit(mill.of_paths(3)))));

  REQUIRE_FALSE(bytes);
  CHECK_THAT(bytes.error().message, Catch::Contains("limits.inline_message"));
  REQUIRE_FALSE(samples);
  CHECK(samples.error().message ==
        "submit: 4 samples in one batch, the daemon takes 3 (limits.samples in its settings); split the batch");
  CHECK(fits.tensor.samples() == 3);
}

}  // namespace
}  // namespace millrace
