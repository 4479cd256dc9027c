// `millrace cache warm` at a real daemon: what it says of images that are not kept packed.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"

namespace millrace {
namespace {

constexpr int kPhotographs = 24;

Ran warm_up(const TempFolder& folder, const std::string& cache, const std::vector<std::string>& further = {}) {
  const Daemon daemon({.roots = {folder.path()}, .cpu = "target = \"avx2\"\n", .cache = cache});
  std::vector<std::string> argv{"millrace", "cache", "warm", folder.path(), "--socket", daemon.socket()};
  argv.insert(argv.end(), further.begin(), further.end());
  const Ran ran = run(std::move(argv));
  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  return ran;
}

// Photographs, and of other kinds so many.
void write_mixed(const std::string& folder, int pngs, int rare_jpegs) {
  write_image_folder(folder, {.images = kPhotographs, .min_side = 250, .max_side = 400, .only_jpeg = true});
  for (int i = 0; i < pngs; ++i)
    write_file(folder + "/png" + std::to_string(i) + ".png", make_png({.pixels = make_pixels(40, 30, 3, 1)}));
  for (int i = 0; i < rare_jpegs; ++i)
    write_file(folder + "/rare" + std::to_string(i) + ".jpg",
               make_jpeg({.pixels = make_pixels(120, 90, 3, static_cast<unsigned>(i) + 1), .h_samp = 4, .v_samp = 1}));
}

}  // namespace

TEST_CASE("millrace cache warm counts what is not packed, by the reason", "[system]") {
  const TempFolder folder;
  write_mixed(folder.path(), 3, 2);

  const Ran text = warm_up(folder, "");
  const auto json = parsed(warm_up(folder, "", {"--json"}).output);

  CHECK_THAT(text.output, Catch::Contains("\n3 not packed: only JPEG files have a packed form"));
  CHECK_THAT(text.output, Catch::Contains("\n2 not packed: JPEG files of a rare kind"));
  CHECK(json.get<int>("images") == kPhotographs + 5);
  CHECK(json.get<int>("new_packed") == kPhotographs);
  CHECK(json.get<int>("not_packed.not_jpeg") == 3);
  CHECK(json.get<int>("not_packed.no_form") == 2);
  CHECK(json.get<int>("not_packed.no_room") == 0);
}

TEST_CASE("millrace cache warm says nothing of reasons where everything is packed, also the second time", "[system]") {
  const TempFolder folder;
  write_mixed(folder.path(), 0, 0);
  const Daemon daemon({.roots = {folder.path()}, .cpu = "target = \"avx2\"\n"});

  for (int i = 0; i < 2; ++i) {
    const Ran ran = run({"millrace", "cache", "warm", folder.path(), "--socket", daemon.socket()});
    CHECK(ran.status == 0);
    CHECK_THAT(ran.output, !Catch::Contains("not packed"));
  }
}

TEST_CASE("millrace cache warm names each bad file once, with its reason", "[system]") {
  const TempFolder folder;
  write_mixed(folder.path(), 1, 0);
  write_file(folder.path() + "/broken.jpg", std::string("this is not a picture"));

  const Ran ran = warm_up(folder, "");

  const std::size_t first = ran.errors.find("broken.jpg: ");
  CAPTURE(ran.errors);
  REQUIRE(first != std::string::npos);
  CHECK(ran.errors.find("broken.jpg: ", first + 1) == std::string::npos);
}

TEST_CASE("millrace cache warm says that the cache is full, or keeps no packed forms", "[system]") {
  const TempFolder folder;
  write_mixed(folder.path(), 0, 0);

  const auto full = parsed(warm_up(folder, "memory = \"256 KiB\"\n", {"--json"}).output);
  const auto no_kind = parsed(warm_up(folder, "packed = false\n", {"--json"}).output);
  const auto none = parsed(warm_up(folder, "memory = 0\n", {"--json"}).output);

  CHECK(full.get<int>("not_packed.no_room") > 0);
  CHECK(full.get<int>("not_packed.no_room") + full.get<int>("kinds.packed.entries") + full.get<int>("packed_evicted") ==
        kPhotographs);
  CHECK(no_kind.get<int>("not_packed.switched_off") == kPhotographs);
  CHECK(none.get<int>("not_packed.switched_off") == kPhotographs);
}

}  // namespace millrace
