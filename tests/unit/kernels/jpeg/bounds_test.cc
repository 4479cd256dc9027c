// Our JPEG decoder between pages that may not be touched: the file before or behind one, and what it writes, too.
#include <algorithm>

#include "kernels/jpeg/unstuff.h"
#include "tests/support/host/guarded_bytes.h"
#include "tests/support/jpeg/block_collector.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/rounds.h"
#include "tests/support/skip.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::jpeg {
namespace {

using kernels::Target;

std::uint8_t* bytes_of(std::span<std::byte> memory) {
  return reinterpret_cast<std::uint8_t*>(memory.data());
}

// A scan as Decoder hands it to ScanDecoder, but for where its bytes are.
class GuardedScan {
 public:
  explicit GuardedScan(const Header& header) : memory_(header.scan.size() + kUnstuffSlack + kDataPadding) {
    std::vector<std::uint8_t> plain(header.scan.size() + kUnstuffSlack);
    const std::size_t size = reference::unstuff(header.scan, plain.data()).size;
    const auto place = memory_.last(size + kDataPadding);
    std::fill(place.begin(), place.end(), std::byte{0});
    std::copy_n(plain.begin(), size, bytes_of(place));
    for (int i = 0; i < header.components; ++i) add(header, header.component[static_cast<std::size_t>(i)]);
    link(mcu_);
    scan = {.data = bytes_of(place), .size = size, .mcu = mcu_, .blocks = 0, .expected = size};
  }
  ScanData scan;
  bool complete = true;  // all tables can be

 private:
  void add(const Header& header, const Component& component) {
    auto& tables = tables_.emplace_back(std::make_unique<Tables>());
    complete =
        complete && build_ac(*header.ac[component.ac], tables->ac) && build_dc(*header.dc[component.dc], tables->dc);
    mcu_.insert(mcu_.end(), static_cast<std::size_t>(component.h * component.v),
                {.dc = &tables->dc, .ac = &tables->ac});
  }

  struct Tables {
    HuffmanTable ac, dc;
  };
  std::vector<std::unique_ptr<Tables>> tables_;
  std::vector<McuBlock> mcu_;
  GuardedBytes memory_;
};

std::vector<Target> targets() {
  for (const Target target : kernels::kAllTargets) {
    if (!kernels::is_available(target))
      skip_loudly("instructions: this processor lacks " + std::string(name_of(target)));
  }
  return kernels::available_targets();
}

}  // namespace

TEST_CASE("unstuffing reads and writes nothing outside its memory", "[kernels]") {
  std::mt19937 random(61);
  for (int round = 0; round < rounds(1000); ++round) {
    const std::size_t size = static_cast<std::size_t>(round) % 200;
    std::vector<std::byte> scan(size);
    for (std::byte& byte : scan) byte = random() % 6 == 0 ? std::byte{0xFF} : std::byte(random() % 255);
    for (std::size_t i = 1; i < size; ++i) {
      if (scan[i - 1] == std::byte{0xFF} && random() % 50 != 0) scan[i] = std::byte{0};
    }
    if (size > 0 && round % 3 == 0) scan.back() = std::byte{0xFF};  // whose second byte is missing
    GuardedBytes in(size), out(size + kUnstuffSlack);
    for (const Target target : targets()) {
      std::uint8_t* const to = bytes_of(out.last(size + kUnstuffSlack));
      std::vector<std::uint8_t> expected(size + kUnstuffSlack);
      const std::size_t kept = reference::unstuff(file_bytes(scan), expected.data()).size;
      for (const auto from : {in.at_end(scan), in.at_begin(scan)}) {
        REQUIRE(unstuff(file_bytes(from), to, target).size == kept);
        REQUIRE(std::equal(to, to + kept, expected.begin()));
        REQUIRE(find_marker(file_bytes(from), target).at == reference::find_marker(file_bytes(from)).at);
      }
    }
  }
}

TEST_CASE("entropy decoding reads nothing behind its padding, whatever the bits are", "[kernels]") {
  std::mt19937 random(62);
  for (int i = 0; i < rounds(120); ++i) {
    const bool large = i % 10 == 0;
    const JpegStream stream = draw_jpeg({.range = i % 2 == 0 ? JpegDraw::Range::kWild : JpegDraw::Range::kOrdinary,
                                         .width = large ? 220 : 0,
                                         .height = large ? 160 : 0,
                                         .density = large ? 400 : -1,
                                         .restart_interval = 0},
                                        random);
    const JpegFile file = write_jpeg(stream);
    const File damaged = damage(file, static_cast<JpegDamage>(i % kJpegDamages), random);
    for (const File& tried : {file.bytes, damaged}) {
      const auto header = read_header(file_bytes(tried));
      if (!header) continue;
      GuardedScan guarded(*header);
      if (!guarded.complete) continue;
      for (const Target target : targets()) {
        ScanDecoder decoder(target);
        for (const std::size_t more : {std::size_t{0}, std::size_t{500}}) {  // blocks that are not there
          BlockCollector two, one;
          guarded.scan.blocks = static_cast<std::int64_t>(stream.blocks.size() + more);
          const ScanEnd end = decoder.decode(guarded.scan, two);
          REQUIRE(decoder.decode_alone(guarded.scan, one) == end);
          if (end == ScanEnd::kDone) REQUIRE((one.all == two.all));
          if (tried == file.bytes) REQUIRE(end == (more == 0 ? ScanEnd::kDone : ScanEnd::kOdd));
        }
      }
    }
  }
}

TEST_CASE("decoding reads nothing outside the file and writes nothing outside the pixels", "[kernels]") {
  std::mt19937 random(63);
  int decoded = 0;
  for (int i = 0; i < rounds(150); ++i) {
    const JpegStream stream = draw_jpeg({}, random);
    const JpegFile file = write_jpeg(stream);
    const kernels::Size size{stream.width, stream.height};
    File tried = i % 3 == 0 ? damage(file, static_cast<JpegDamage>(i / 3 % kJpegDamages), random) : file.bytes;
    if (i % 3 == 1) tried.resize(file.end + 2 - random() % 3);
    GuardedBytes in(tried.size());
    const kernels::Box box = i % 2 == 0 ? whole(size) : random_box(random, size);
    for (const auto bytes : {in.at_end(tried), in.at_begin(tried)}) {
      const auto header = read_header(file_bytes(bytes));
      if (!header || header->size != size) continue;
      const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * header->components;
      const auto count = static_cast<std::size_t>(stride * box.height);
      GuardedBytes out(count);
      for (const auto& decoder : decoders()) {
        for (const auto to : {out.last(count), out.first(count)}) {
          const kernels::MutableU8View pixels{bytes_of(to), box.width, box.height, header->components, stride};
          decoded += decoder->decode(*header, box, pixels, Clock::time_point::max()) == Outcome::kDecoded;
        }
      }
    }
  }
  REQUIRE(decoded > rounds(1000));
}

}  // namespace millrace::kernels::jpeg
