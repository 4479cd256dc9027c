// Hostile commands: whatever a batch, a descriptor or a table says, decode_jpeg stays in its buffers, ends, and
// completes each image of a batch that has room for completions.
#include <cstring>

#include "hls/decoder/jpeg/decode_jpeg.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"

namespace millrace {
namespace {

using hls::Batch;
using hls::Descriptor;
using hls::JpegTables;
using hls::Reason;

Descriptor descriptor_of(std::span<const std::byte> commands, std::size_t index) {
  Descriptor image;
  std::memcpy(&image, commands.data() + sizeof(Batch) + index * sizeof image, sizeof image);
  return image;
}
void put_descriptor(std::span<std::byte> commands, std::size_t index, const Descriptor& image) {
  std::memcpy(commands.data() + sizeof(Batch) + index * sizeof image, &image, sizeof image);
}

// A small picture's outcome when its descriptor was changed.
struct Meddled {
  File file = make_jpeg({.pixels = make_pixels(100, 80, 3, 1), .restart_interval = 3});
  HlsRunner runner{{}, ::decode_jpeg};
  HlsRequest request = whole_tensor(file, {10, 5, 80, 70}, {30, 20});

  template <typename Change>
  Reason outcome(Change change) {
    runner.meddle = [&](std::span<std::byte> commands) {
      Descriptor image = descriptor_of(commands, 0);
      change(image);
      put_descriptor(commands, 0, image);
    };
    return runner.run({request})[0].outcome.reason;
  }
  template <typename Change>
  Reason outcome_of_tables(Change change) {
    runner.meddle = [&](std::span<std::byte> commands) {
      JpegTables tables;
      std::byte* const at = commands.data() + std::size_t{descriptor_of(commands, 0).tables} * hls::kUnit;
      std::memcpy(&tables, at, sizeof tables);
      change(tables);
      std::memcpy(at, &tables, sizeof tables);
    };
    return runner.run({request})[0].outcome.reason;
  }
};

TEST_CASE("a descriptor that contradicts itself or the buffers is none", "[hls][hostile]") {
  Meddled meddled;
  const auto is_bad = [&](auto change) { return meddled.outcome(change) == Reason::kBadDescriptor; };
  REQUIRE(meddled.outcome([](Descriptor&) {}) == Reason::kDone);
  REQUIRE(is_bad([](Descriptor& image) { image.source = 0xffffffc0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.source_bytes = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { ++image.source_bytes; }));
  REQUIRE(is_bad([](Descriptor& image) { image.source_bytes = 0xffffffff; }));
  REQUIRE(is_bad([](Descriptor& image) { image.tables = 0xffffffff; }));
  REQUIRE(is_bad([](Descriptor& image) { ++image.tables; }));
  REQUIRE(is_bad([](Descriptor& image) { image.columns = 0x7fffffff; }));
  REQUIRE(is_bad([](Descriptor& image) { image.rows = 0xffffffff; }));
  REQUIRE(is_bad([](Descriptor& image) { image.tensor = 1; }));
  REQUIRE(is_bad([](Descriptor& image) { image.tensor = 0xffffffff; }));
  REQUIRE(is_bad([](Descriptor& image) { ++image.tensor_bytes; }));
  REQUIRE(is_bad([](Descriptor& image) { --image.tensor_bytes; }));
  REQUIRE(is_bad([](Descriptor& image) { image.width = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.height = 4097; }));
  REQUIRE(is_bad([](Descriptor& image) { image.crop_left = 21; }));
  REQUIRE(is_bad([](Descriptor& image) { image.crop_top = 0xffff; }));
  REQUIRE(is_bad([](Descriptor& image) { image.crop_width = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.crop_height = 76; }));
  REQUIRE(is_bad([](Descriptor& image) { image.out_width = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.out_height = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.kind = 3; }));
  REQUIRE(is_bad([](Descriptor& image) { image.column_taps = 0; }));
  REQUIRE(is_bad([](Descriptor& image) { image.row_taps = 65; }));
  REQUIRE(is_bad([](Descriptor& image) { image.flip = 2; }));
  REQUIRE(is_bad([](Descriptor& image) { image.rows_first = 2; }));
  REQUIRE(is_bad([](Descriptor& image) { image.grey = 1; }));
  REQUIRE(meddled.outcome([](Descriptor& image) { image.kind = 1; }) == Reason::kNotHere);
  REQUIRE(meddled.outcome([](Descriptor& image) { image.kind = 2; }) == Reason::kNotHere);
}

TEST_CASE("a head of tables that no decoder has leaves the image alone", "[hls][hostile]") {
  Meddled meddled;
  const auto is_bad = [&](auto change) { return meddled.outcome_of_tables(change) == Reason::kBadDescriptor; };
  REQUIRE(meddled.outcome_of_tables([](JpegTables&) {}) == Reason::kDone);
  REQUIRE(is_bad([](JpegTables& tables) { tables.components = 2; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.components = 1; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.h = 3; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.h = 0; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.v = 4; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.quant[2] = 4; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.dc[1] = 4; }));
  REQUIRE(is_bad([](JpegTables& tables) { tables.ac[0] = 0xff; }));
  REQUIRE(meddled.outcome_of_tables([](JpegTables& tables) { tables.restart_interval = 0; }) == Reason::kDamaged);
  REQUIRE(meddled.outcome_of_tables([](JpegTables& tables) { tables.dc[0] = 3; }) == Reason::kDamaged);
  REQUIRE(meddled.outcome_of_tables([](JpegTables& tables) {
    for (auto& table : tables.quant_table) std::fill_n(table, 64, std::uint16_t{0xffff});
  }) == Reason::kExtreme);
}

TEST_CASE("axis tables that leave the crop or go back are the host's fault", "[hls][hostile]") {
  Meddled meddled;
  for (const bool columns : {true, false}) {
    for (const std::int32_t start : {-1, 81, 0x7fffffff, 3}) {
      for (const int output : {0, 7, 19}) {
        meddled.runner.meddle = [&](std::span<std::byte> commands) {
          const Descriptor image = descriptor_of(commands, 0);
          const int in_entry = 1 + (columns ? image.column_taps : image.row_taps);
          std::byte* const at = commands.data() + std::size_t{columns ? image.columns : image.rows} * hls::kUnit;
          std::memcpy(at + 4 * in_entry * output, &start, sizeof start);
        };
        CAPTURE(columns, start, output);
        const Reason reason = meddled.runner.run({meddled.request})[0].outcome.reason;
        if (start == 3 && output == 0)  // no further than the next one's
          REQUIRE((reason == Reason::kDone || reason == Reason::kBadDescriptor));
        else
          REQUIRE(reason == Reason::kBadDescriptor);
      }
    }
  }
}

TEST_CASE("whatever is in the commands, a card stays in its buffers and completes", "[hls][hostile]") {
  std::mt19937 random(4);
  int done = 0, bad = 0;
  for (int round = 0; round < rounds(60); ++round) {
    std::vector<File> files;
    std::vector<HlsRequest> requests;
    for (int i = 0; i < 12; ++i) files.push_back(write_jpeg(draw_jpeg({.width = 40, .height = 30}, random)).bytes);
    for (const File& file : files) requests.push_back(whole_tensor(file, {0, 0, 40, 30}, {17, 9}));
    HlsRunner runner({}, ::decode_jpeg);
    runner.meddle = [&](std::span<std::byte> commands) {
      const std::size_t first = sizeof(Batch);
      for (int flips = 1 + below(random, 200); flips > 0; --flips) {
        // Cookies stay, and so does the number of images, or the reader would complain rightly.
        std::size_t at = first + random() % (below(random, 2) == 0 ? 12 * sizeof(Descriptor) : commands.size() - first);
        if (at < first + 12 * sizeof(Descriptor) && at % sizeof(Descriptor) < 4) continue;
        commands[at] = below(random, 3) == 0   ? std::byte{0xFF}
                       : below(random, 2) == 0 ? std::byte{0}
                                               : commands[at] ^ std::byte(1U << below(random, 8));
      }
    };
    for (const HlsImage& image : runner.run(requests)) {
      done += image.outcome.reason == Reason::kDone;
      bad += image.outcome.reason == Reason::kBadDescriptor;
    }
  }
  REQUIRE(done > 0);
  REQUIRE(bad > 0);
}

TEST_CASE("a batch's head that is none leaves all of its images alone, or is no batch", "[hls][hostile]") {
  const File file = make_jpeg({.pixels = make_pixels(40, 30, 3, 1)});
  hls::Planner planner(hls::BatchRecipe{});
  std::vector<std::byte> commands(std::size_t{1} << 20);
  planner.begin(commands, 4);
  for (int i = 0; i < 3; ++i)
    REQUIRE(planner.add({.file_untrusted = file_bytes(file),
                         .crop = {0, 0, 40, 30},
                         .resized = {20, 20},
                         .window = {0, 0, 20, 20},
                         .tensor = static_cast<std::uint64_t>(i) * 1216}) == "");
  planner.finish();
  commands.resize(planner.command_bytes());
  const auto completed = [&](std::size_t command_bytes, std::size_t completion_bytes, auto change) {
    GuardedMemory kept(command_bytes), encoded(file.size() + hls::kReadAhead), tensors(3 * 1216);
    GuardedMemory completions(completion_bytes);
    std::memcpy(kept.bytes().data(), commands.data(), std::min(command_bytes, commands.size()));
    std::memcpy(encoded.bytes().data(), file.data(), file.size());
    if (command_bytes >= sizeof(Batch)) change(*reinterpret_cast<Batch*>(kept.bytes().data()));
    ::decode_jpeg(kept.words(), encoded.words(), tensors.words(), completions.words(), kept.size(), encoded.size(),
                  tensors.size(), completions.size(), 9);
    REQUIRE((kept.is_intact() && encoded.is_intact() && tensors.is_intact() && completions.is_intact()));
    int good = 0;
    std::vector<hls::ImageOutcome> outcomes(3);
    if (completion_bytes < 48) return hls::read_completions(std::vector<std::byte>(48), 9, outcomes) == "" ? 0 : -1;
    if (!hls::read_completions(completions.bytes(), 9, outcomes).empty()) return -1;
    for (const auto& outcome : outcomes) good += outcome.reason == Reason::kDone;
    return good;
  };
  const auto same = [](Batch&) {};
  REQUIRE(completed(commands.size(), 48, same) == 3);
  REQUIRE(completed(commands.size(), 48, [](Batch& batch) { batch.channels = 2; }) == 0);
  REQUIRE(completed(commands.size(), 48, [](Batch& batch) { batch.element_bytes = 3; }) == 0);
  REQUIRE(completed(commands.size(), 48, [](Batch& batch) { batch.interleaved = 2; }) == 0);
  REQUIRE(completed(commands.size(), 48, [](Batch& batch) { batch.colour[1] = 3; }) == 0);
  REQUIRE(completed(commands.size(), 48, [](Batch& batch) { batch.images = 0; }) == -1);
  REQUIRE(completed(commands.size(), 4096, [](Batch& batch) { batch.images = 257; }) == -1);
  REQUIRE(completed(commands.size(), 47, same) == -1);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, sizeof(Batch), sizeof(Batch) + 191})
    REQUIRE(completed(bytes, 48, same) == -1);
  REQUIRE(completed(sizeof(Batch) + 192, 48, same) == 0);
}

}  // namespace
}  // namespace millrace
