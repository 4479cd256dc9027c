#include "tests/bench/engine/packed.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>

#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/packed/encoder.h"
#include "kernels/packed/packed_image.h"
#include "kernels/packed/unpack.h"

namespace millrace::bench {
namespace {

using namespace kernels;
using Nanoseconds = std::chrono::duration<double, std::nano>;
constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

struct Photo {
  std::vector<std::uint8_t> file, index, packed;  // the last one with its padding
  std::vector<std::int16_t> blocks;               // zig-zag, DC as level
  packed::Grid grid;

  jpeg::Header header() const { return *jpeg::read_header(file); }
  std::span<const std::uint8_t> packed_bytes() const { return {packed.data(), packed.size() - packed::kPadding}; }
};

[[noreturn]] void broken(const std::string& why) {
  std::fprintf(stderr, "millrace_bench: packed: %s\n", why.c_str());
  std::exit(1);
}

// Takes blocks as the head of an inverse DCT would: adds up levels, zeroes them. Keeps them where there is a place.
class Consumer final : public jpeg::SeekConsumer {
 public:
  Consumer(const packed::Grid& grid, std::int16_t* kept)
      : in_mcu_(grid.blocks_in_mcu()), luma_(std::max(1, in_mcu_ - 2)), kept_(kept) {}
  bool take(std::int16_t* blocks, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, at_ = at_ + 1 == in_mcu_ ? 0 : at_ + 1)
      blocks[i * jpeg::kCoefficients] = static_cast<std::int16_t>(
          predictors_[static_cast<std::size_t>(std::max(0, at_ - luma_ + 1))] += blocks[i * jpeg::kCoefficients]);
    const std::size_t bytes = static_cast<std::size_t>(count) * jpeg::kBlockBytes;
    if (kept_ != nullptr) {
      std::memcpy(kept_, blocks, bytes);
      kept_ += count * jpeg::kCoefficients;
    }
    std::memset(blocks, 0, bytes);
    return true;
  }
  bool seek(int, int, const jpeg::DcPredictors& predictors) override {
    predictors_ = predictors;
    return true;
  }
  jpeg::DcPredictors predictors() const override { return predictors_; }
  void note_levels(std::int16_t*) override {}

 private:
  int in_mcu_, luma_, at_ = 0;
  std::int16_t* kept_;
  jpeg::DcPredictors predictors_{};
};

std::vector<std::uint8_t> read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// False: not for our decoder, or nothing that can be packed.
bool prepare(Photo& photo, jpeg::Decoder& decoder, packed::Encoder& encoder) {
  const auto header = jpeg::read_header(photo.file);
  if (!header) return false;
  photo.grid = packed::grid_of(*header);
  photo.blocks.resize(static_cast<std::size_t>(photo.grid.blocks()) * jpeg::kCoefficients);
  Consumer consumer(photo.grid, photo.blocks.data());
  const std::int64_t blocks = photo.grid.blocks();
  if (decoder.decode_blocks(*header, blocks, blocks, consumer) != jpeg::Outcome::kDecoded) return false;
  const auto [width, height] = header->size;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) *
                                   static_cast<std::size_t>(height * header->components));
  jpeg::Seeking seeking;
  decoder.decode(*header, {0, 0, width, height},
                 {pixels.data(), width, height, header->components, std::ptrdiff_t{width} * header->components},
                 kNoDeadline, &seeking);
  photo.index = seeking.made;
  if (photo.index.empty() || !encoder.begin(*header) || !encoder.take(photo.blocks.data(), blocks) ||
      !encoder.finish(photo.packed))
    return false;
  photo.packed.resize(photo.packed.size() + packed::kPadding);
  return true;
}

std::vector<Photo> load(const BenchOptions& options) {
  std::vector<Photo> photos;
  jpeg::Decoder decoder;
  packed::Encoder encoder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.data)) {
    if (!entry.is_regular_file()) continue;
    Photo photo;
    photo.file = read_whole(entry.path());
    if (prepare(photo, decoder, encoder)) photos.push_back(std::move(photo));
  }
  if (photos.empty()) broken("no JPEG file in " + options.data + " can be packed");
  return photos;
}

std::int64_t blocks_of(const std::vector<Photo>& photos) {
  std::int64_t blocks = 0;
  for (const Photo& photo : photos) blocks += photo.grid.blocks();
  return blocks;
}

// Nanoseconds of a cycle: a chain of multiplications, of three cycles each on all processors that matter here.
double measure_cycle() {
  constexpr int kSteps = 2'000'000;
  double least = 1e9;
  for (int round = 0; round < 5; ++round) {
    std::uint64_t value = 3;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) {
      value *= 0x9E3779B97F4A7C15;
      asm volatile("" : "+r"(value));
    }
    least = std::min(least, Nanoseconds(std::chrono::steady_clock::now() - begin).count() / (3.0 * kSteps));
  }
  return least;
}

// One way to go through all photographs: what it takes, in nanoseconds.
struct Way {
  std::string name;
  std::function<double()> run;
  std::vector<double> taken{};  // a block, by round
};

// Of processor time of this thread: neighbours on a shared machine count less.
double timed(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

double decode_entropy(const std::vector<Photo>& photos, jpeg::Decoder& decoder) {
  return timed([&] {
    for (const Photo& photo : photos) {
      Consumer consumer(photo.grid, nullptr);
      const std::int64_t blocks = photo.grid.blocks();
      if (decoder.decode_blocks(photo.header(), blocks, blocks, consumer) != jpeg::Outcome::kDecoded)
        broken("a photograph was not decoded");
    }
  });
}

double decode_indexed(const std::vector<Photo>& photos, jpeg::Decoder& decoder) {
  return timed([&] {
    jpeg::SeekIndex index;
    for (const Photo& photo : photos) {
      const jpeg::Header header = photo.header();
      if (!index.read(photo.index, header, 0)) broken("a photograph has no index");
      Consumer consumer(photo.grid, nullptr);
      const jpeg::McuWindow window{{0, photo.grid.rows}, {0, photo.grid.columns}};
      if (decoder.decode_blocks(header, index, window, consumer) != jpeg::Outcome::kDecoded)
        broken("a photograph was not decoded by its index");
    }
  });
}

double unpack(const std::vector<Photo>& photos, Target target) {
  alignas(64) static std::int16_t blocks[packed::kGroupBlocks * jpeg::kCoefficients];
  return timed([&] {
    const packed::Unpacker& unpacker = packed::unpacker(target);
    packed::PackedImage image;
    for (const Photo& photo : photos) {
      if (!image.read(photo.packed_bytes(), packed::Check::kShape)) broken("a packed photograph was not read");
      const std::size_t groups = image.grid().groups();
      for (std::size_t i = 0; i < groups; ++i) {
        const packed::Group group = image.group(i);
        unpacker.unpack(group, 0, group.blocks, blocks);
      }
    }
  });
}

// MCU row by MCU row, as entropy decoding comes to their ends.
double encode(const std::vector<Photo>& photos, packed::Encoder& encoder) {
  std::vector<std::uint8_t> made;
  bool packed = true;
  const double taken = timed([&] {
    for (const Photo& photo : photos) {
      const std::int64_t in_row = photo.grid.blocks_in_mcu_row();
      packed &= encoder.begin(photo.header());
      for (int line = 0; line < photo.grid.rows; ++line)
        packed &= encoder.take(photo.blocks.data() + line * in_row * jpeg::kCoefficients, in_row);
      packed &= encoder.finish(made);
    }
  });
  if (!packed) broken("a photograph was not packed");
  return taken;
}

// The same from the caches: each row's blocks are written just before, which is taken off again.
double encode_cached(const std::vector<Photo>& photos, packed::Encoder& encoder) {
  std::vector<std::uint8_t> made;
  std::vector<std::int16_t> row;
  bool packed = true;
  const auto go_through = [&](bool encoding) {
    for (const Photo& photo : photos) {
      const std::int64_t in_row = photo.grid.blocks_in_mcu_row();
      if (encoding) packed &= encoder.begin(photo.header());
      for (int line = 0; line < photo.grid.rows; ++line) {
        const std::int16_t* const blocks = photo.blocks.data() + line * in_row * jpeg::kCoefficients;
        row.assign(blocks, blocks + in_row * jpeg::kCoefficients);
        if (encoding) packed &= encoder.take(row.data(), in_row);
      }
      if (encoding) packed &= encoder.finish(made);
    }
  };
  const double with = timed([&] { go_through(true); }), without = timed([&] { go_through(false); });
  if (!packed) broken("a photograph was not packed");
  return with - without;
}

void report_size(const std::vector<Photo>& photos, const Report& report) {
  double packed = 0, files = 0;
  for (const Photo& photo : photos) {
    packed += static_cast<double>(photo.packed_bytes().size());
    files += static_cast<double>(photo.file.size());
  }
  const auto count = static_cast<double>(photos.size());
  report.add({.name = "packed.size",
              .value = packed / count / 1000,
              .unit = "KB/image",
              .rounds = 1,
              .baseline = Baseline{"the files", files / count / 1000, packed / files},
              .note = std::to_string(photos.size()) + " photographs"});
}

void report_time(const std::string& name, const Way& way, const Way* beside, double cycle, const Report& report) {
  const double value = median(way.taken);
  char cycles[64];
  std::snprintf(cycles, sizeof cycles, "%.0f cycles of %.2f GHz", value / cycle, 1 / cycle);
  Figure figure{.name = name,
                .value = value,
                .unit = "ns/block",
                .rounds = static_cast<std::uint32_t>(way.taken.size()),
                .baseline = {},
                .note = cycles};
  if (beside != nullptr) {
    std::vector<double> ratios;
    std::transform(way.taken.begin(), way.taken.end(), beside->taken.begin(), std::back_inserter(ratios),
                   std::divides<>());
    figure.baseline = Baseline{beside->name, median(beside->taken), median(ratios)};
  }
  report.add(figure);
}

}  // namespace

void run_packed(const BenchOptions& options, const Report& report) {
  const std::vector<Photo> photos = load(options);
  report_size(photos, report);
  const auto blocks = static_cast<double>(blocks_of(photos));
  jpeg::Decoder decoder;
  packed::Encoder encoder;
  const Target best = best_target(), second = is_available(Target::kAvx2) ? Target::kAvx2 : best;
  packed::Encoder second_encoder(second);
  enum { kEntropy, kIndexed, kDecode, kDecodeSecond, kEncode, kEncodeMemory, kEncodeSecond };
  Way ways[] = {{"jpeg.entropy", [&] { return decode_entropy(photos, decoder); }},
                {"jpeg.entropy.indexed", [&] { return decode_indexed(photos, decoder); }},
                {"packed.decode", [&] { return unpack(photos, best); }},
                {"packed.decode.avx2", [&] { return unpack(photos, second); }},
                {"packed.encode", [&] { return encode_cached(photos, encoder); }},
                {"packed.encode.memory", [&] { return encode(photos, encoder); }},
                {"packed.encode.avx2", [&] { return encode_cached(photos, second_encoder); }}};
  const std::uint32_t rounds = options.quick ? 1 : 15;
  for (Way& way : ways) way.run();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (Way& way : ways) way.taken.push_back(way.run() / blocks);
  }
  const double cycle = measure_cycle();
  for (const int beside : {kEntropy, kIndexed})
    report_time("packed.decode", ways[kDecode], &ways[beside], cycle, report);
  for (const int way : {kDecodeSecond, kEncode, kEncodeMemory, kEncodeSecond})
    report_time(ways[way].name, ways[way], nullptr, cycle, report);
}

}  // namespace millrace::bench
