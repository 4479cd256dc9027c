// Converted folders through a daemon: the pixels of the JPEG files, or of PNG and the like, from the first access on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/commands/copied_files.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

struct Pass {
  std::vector<std::byte> pixels;  // of all good images
  std::vector<SampleError> bad;
};

// A shuffled epoch with random crops and flips, or all of each picture.
Pass pass(const Daemon& daemon, const std::string& folder, const Recipe& recipe, Fidelity fidelity) {
  Client client = daemon.connect();
  Session session = need(client.open_session({.slots = 2, .batch = 16, .recipe = recipe}));
  const Dataset dataset = need(session.open_dataset(folder, {.unclassified = true}));
  Epoch epoch = session.epoch(dataset, {.seed = 3, .shuffle = true, .on_error = OnError::kSkip, .fidelity = fidelity});
  Pass made;
  while (const auto batch = need(epoch.next(std::chrono::seconds(30)))) {
    need(batch->failure ? Result<void>(*batch->failure) : Result<void>());
    const auto bytes = batch->tensor.data();
    const std::size_t each = bytes.size() / std::max<std::size_t>(batch->tensor.samples(), 1);
    for (std::size_t i = 0; i < batch->tensor.samples(); ++i) {
      if (!batch->tensor.sample(i).good()) continue;
      const auto one = bytes.subspan(i * each, each);
      made.pixels.insert(made.pixels.end(), one.begin(), one.end());
    }
    made.bad.insert(made.bad.end(), batch->errors.begin(), batch->errors.end());
  }
  return made;
}

void convert_to(const std::string& to, const std::string& from, const std::string& into) {
  const Ran ran = run({"millrace", "convert", "--to", to, from, into, "--json"});
  CAPTURE(ran.errors, ran.output);
  REQUIRE(ran.status == 0);
  REQUIRE(parsed(ran.output).get<int>("converted") > 0);
}

// REQUIRES: names in the same order before and after.
void require_equal_pixels(const std::string& originals, const std::string& converted) {
  const Daemon daemon({.roots = {originals, converted}});
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
    for (const Recipe& recipe :
         {Recipe::train(64), Recipe{.resize = ExactSize{{50, 40}}, .filter = Filter::kNearest}}) {
      const Pass before = pass(daemon, originals, recipe, fidelity), after = pass(daemon, converted, recipe, fidelity);
      REQUIRE(before.bad.size() == after.bad.size());
      REQUIRE_FALSE(before.pixels.empty());
      REQUIRE((before.pixels == after.pixels));
    }
  }
}

TEST_CASE("a converted folder gives the pixels of its JPEG files, upright and turned", "[system]") {
  const TempFolder folder;
  write_image_folder(folder / "jpegs", {.images = 20, .classes = 2, .only_jpeg = true});
  for (int orientation = 1; orientation <= 8; ++orientation)
    write_file(folder / ("jpegs/class_00/turned_" + std::to_string(orientation) + ".jpg"),
               make_jpeg({.pixels = make_pixels(80, 61, 3, 5), .exif_orientation = orientation}));
  write_file(folder / "jpegs/class_01/grey.jpg", make_jpeg({.pixels = make_pixels(70, 90, 1, 5)}));
  write_file(folder / "jpegs/class_01/restarts.jpg",
             make_jpeg({.pixels = make_pixels(130, 90, 3, 5), .restart_interval = 3}));
  convert_to("packed", folder / "jpegs", folder / "packed");

  require_equal_pixels(folder / "jpegs", folder / "packed");
}

TEST_CASE("converted photographs give the pixels of the photographs", "[system]") {
  const auto photos = test_data("photos");
  if (!photos) return;
  const TempFolder folder;
  copy_some_files(*photos, folder / "jpegs");
  convert_to("packed", folder / "jpegs", folder / "packed");
  require_equal_pixels(folder / "jpegs", folder / "packed");
}

TEST_CASE("lossless pictures converted to L3 give the pixels of their files, upright and turned", "[system]") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "in");
  for (std::uint32_t channels = 1; channels <= 4; ++channels) {
    const Pixels pixels = make_pixels(100, 81, channels, channels);
    const std::string name = folder / ("in/" + std::to_string(channels));
    write_file(name + ".png", make_png({.pixels = pixels}));
    write_file(name + "_pnm.pnm", make_pnm({.pixels = pixels}));
    if (channels != 2) write_file(name + "_bmp.bmp", make_bmp({.pixels = pixels}));
    if (channels >= 3) write_file(name + "_webp.webp", make_webp({.pixels = pixels, .lossless = true}));
  }
  for (int orientation = 1; orientation <= 8; ++orientation)
    write_file(folder / ("in/turned_" + std::to_string(orientation) + ".png"),
               make_png({.pixels = make_pixels(80, 61, 3, 5), .exif_orientation = orientation}));
  write_file(folder / "in/tiff.tif", make_tiff({.pixels = make_pixels(80, 61, 3, 6)}));
  convert_to("l3", folder / "in", folder / "l3");

  require_equal_pixels(folder / "in", folder / "l3");
}

TEST_CASE("a damaged packed file is one bad sample, with its reason, wherever the damage is", "[system]") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "jpegs");
  for (int i = 0; i < 6; ++i)
    write_file(folder / ("jpegs/" + std::to_string(i) + ".jpg"),
               make_jpeg({.pixels = make_pixels(120, 90, 3, static_cast<std::uint32_t>(i))}));
  convert_to("packed", folder / "jpegs", folder / "packed");
  const auto damage = [&](int file, auto place) {
    const std::string path = folder / ("packed/" + std::to_string(file) + ".mrp");
    auto bytes = read_file(path);
    bytes[place(bytes.size())] ^= std::byte{1};
    write_file(path, bytes);
  };
  damage(1, [](std::size_t size) { return size - 1; });     // of the packed image
  damage(2, [](std::size_t) { return std::size_t{100}; });  // of the JPEG header
  write_file(folder / "packed/3.mrp", std::string("MRPF"));
  auto later = read_file(folder / "packed/4.mrp");
  later[4] = std::byte{9};
  write_file(folder / "packed/4.mrp", later);
  const Daemon daemon({.roots = {folder.path()}});

  const Pass made = pass(daemon, folder / "packed", Recipe::train(32), Fidelity::kExact);

  REQUIRE(made.pixels.size() == 2 * 3 * 32 * 32);
  REQUIRE(made.bad.size() == 4);
  std::string reasons;
  for (const SampleError& error : made.bad) {
    REQUIRE(error.error.code == Code::kInvalid);
    reasons += error.error.message + '\n';
  }
  REQUIRE_THAT(reasons, Catch::Contains("its packed image is damaged") && Catch::Contains("its checksum is not that") &&
                            Catch::Contains("cut off") && Catch::Contains("of version 9, where 1 is known"));
}

}  // namespace
}  // namespace millrace
