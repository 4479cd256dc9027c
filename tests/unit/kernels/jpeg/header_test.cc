// Hostile JPEG headers: what is odd is refused, and what is read is what libjpeg-turbo reads.
#include <algorithm>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/support/host/guarded_bytes.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/jpeg/same_header.h"
#include "tests/support/pictures/stored_size.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::jpeg::read_header;
using HeaderBytes = std::vector<std::uint8_t>;

enum Marker : int { kSof = 0xC0, kDht = 0xC4, kSos = 0xDA, kDqt = 0xDB, kDnl = 0xDC, kDri = 0xDD, kApp0 = 0xE0 };

struct Segment {
  int marker;
  HeaderBytes body;
  int length = -1;  // as stated; -1: the true one
};

// A file taken apart: its segments up to SOS, and all bytes behind that.
struct Parts {
  std::vector<Segment> segments;
  HeaderBytes rest;

  Segment& find(int marker) {
    const auto at =
        std::find_if(segments.begin(), segments.end(), [&](const Segment& s) { return s.marker == marker; });
    REQUIRE(at != segments.end());
    return *at;
  }
  void remove(int marker) {
    std::erase_if(segments, [&](const Segment& segment) { return segment.marker == marker; });
  }
  void add_first(const Segment& segment) { segments.insert(segments.begin(), segment); }
};

Parts split(const std::vector<std::byte>& file) {
  const auto bytes = file_bytes(file);
  Parts parts;
  std::size_t at = 2;
  while (parts.segments.empty() || parts.segments.back().marker != kSos) {
    const auto length = static_cast<std::size_t>(bytes[at + 2] << 8 | bytes[at + 3]);
    const auto body = bytes.subspan(at + 4, length - 2);
    parts.segments.push_back({bytes[at + 1], HeaderBytes(body.begin(), body.end())});
    at += 2 + length;
  }
  parts.rest.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  return parts;
}

File join(const Parts& parts) {
  HeaderBytes bytes = {0xFF, 0xD8};
  for (const Segment& segment : parts.segments) {
    const int length = segment.length < 0 ? static_cast<int>(segment.body.size()) + 2 : segment.length;
    for (const int byte : {0xFF, segment.marker, length >> 8, length & 255})
      bytes.push_back(static_cast<std::uint8_t>(byte));
    bytes.insert(bytes.end(), segment.body.begin(), segment.body.end());
  }
  bytes.insert(bytes.end(), parts.rest.begin(), parts.rest.end());
  const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// YCbCr, two by two, default tables, one of each kind.
const JpegFile& usual_file() {
  static const JpegFile file = [] {
    std::mt19937 random(41);
    JpegStream stream =
        draw_jpeg({.width = 33, .height = 21, .h = 2, .v = 2, .components = 3, .restart_interval = 0}, random);
    stream.style = {};
    for (JpegComponent& component : stream.components) component.quant = component.dc = component.ac = 0;
    stream.quant = {};
    stream.quant[0].emplace().values.fill(3);
    for (JpegBlock& block : stream.blocks) {
      for (std::int16_t& value : block) value = static_cast<std::int16_t>(value % 8);
    }
    stream.dc = {default_dc_code()};
    stream.ac = {default_ac_code()};
    return write_jpeg(stream);
  }();
  return file;
}

void check_outcome(const File& file) {
  const auto size = stored_size(file);
  const kernels::Size asked = size && size->width > 0 && size->height > 0 ? *size : kernels::Size{33, 21};
  if (std::int64_t{asked.width} * asked.height > 1 << 20) return;
  PixelBuffer expected_buffer, buffer;
  const auto request = request_for(file, asked, whole(asked));
  REQUIRE(same_outcome(decode_jpeg(request, expected_buffer), decode_jpeg(request, buffer, *decoders().back())));
}

template <typename Change>
void check_refused(Change change) {
  Parts parts = split(usual_file().bytes);
  REQUIRE(read_header(file_bytes(join(parts))));
  change(parts);
  const File file = join(parts);
  REQUIRE_FALSE(read_header(file_bytes(file)));
  check_outcome(file);
}

// Still the same picture, to us and to libjpeg-turbo.
template <typename Change>
void check_read(Change change) {
  Parts parts = split(usual_file().bytes);
  change(parts);
  const File file = join(parts);
  const auto header = read_header(file_bytes(file));
  REQUIRE(header);
  const auto expected = read_jpeg_coefficients(file);
  REQUIRE(expected);
  REQUIRE(expected->header_warnings == 0);
  REQUIRE(same_header(*header, *expected));
  const auto blocks = decode_blocks(*decoders().back(), file);
  REQUIRE(blocks);
  REQUIRE((*blocks == in_scan_order(*expected)));
  check_outcome(file);
}

// One small change somewhere: a byte, a length, a segment gone, doubled, moved or cut.
void mutate(Parts& parts, std::mt19937& random) {
  auto& segments = parts.segments;
  const std::size_t at = random() % segments.size();
  Segment& segment = segments[at];
  switch (random() % 8) {
    case 0:
      segment.marker = static_cast<int>(random() % 256);
      break;
    case 1:
      segment.length = static_cast<int>(random() % 4 == 0 ? random() % 65536 : segment.body.size() + random() % 5);
      break;
    case 2:
      segment.body.resize(random() % (segment.body.size() + 3));
      break;
    case 3:
      segments.push_back(Segment(segment));  // behind the first SOS
      break;
    case 4:
      parts.add_first(Segment(segment));
      break;
    case 5:
      std::swap(segment, segments[random() % segments.size()]);
      break;
    default:
      if (!segment.body.empty()) {
        std::uint8_t& byte = segment.body[random() % std::min<std::size_t>(segment.body.size(), 24)];
        byte = static_cast<std::uint8_t>(random() % 2 == 0 ? random() % 5 : byte ^ 1U << random() % 8);
      }
  }
}

}  // namespace

TEST_CASE("a JPEG header that ends anywhere is refused, and nothing behind it is read", "[kernels]") {
  const JpegFile& file = usual_file();
  GuardedBytes memory(file.bytes.size());
  REQUIRE(read_header(file_bytes(memory.at_end(file.bytes))));
  for (std::size_t size = 0; size < file.scan; ++size)
    REQUIRE_FALSE(read_header(file_bytes(memory.at_end(std::span(file.bytes).first(size)))));
}

TEST_CASE("segments of a JPEG header with a wrong length are refused", "[kernels]") {
  const std::size_t segments = split(usual_file().bytes).segments.size();
  for (std::size_t i = 0; i < segments; ++i) {
    for (const int length : {0, 1, 2, 3, 0xFFFF}) {
      CAPTURE(i, length);
      check_refused([&](Parts& parts) { parts.segments[i].length = length; });
    }
    for (const int more : {-1, 1}) {
      CAPTURE(i, more);
      check_refused(
          [&](Parts& parts) { parts.segments[i].length = static_cast<int>(parts.segments[i].body.size()) + 2 + more; });
    }
  }
}

TEST_CASE("JPEG headers that lack a segment or have one twice are refused", "[kernels]") {
  for (const int marker : {kSof, kDht, kDqt, kSos}) {
    CAPTURE(marker);
    check_refused([&](Parts& parts) { parts.remove(marker); });
  }
  check_refused([](Parts& parts) { parts.add_first(Segment(parts.find(kSof))); });
  check_refused([](Parts& parts) { parts.add_first(Segment(parts.find(kSos))); });
  check_refused([](Parts& parts) {  // only the AC table
    HeaderBytes& body = parts.find(kDht).body;
    body.erase(body.begin(), body.begin() + 17 + 12);
  });
}

TEST_CASE("JPEG frames of another kind or size are refused", "[kernels]") {
  for (int marker = 0xC1; marker <= 0xCF; ++marker) {
    if (marker == 0xC1) continue;  // extended, which is read
    CAPTURE(marker);
    check_refused([&](Parts& parts) { parts.find(kSof).marker = marker; });
  }
  const auto refuse_byte = [](int marker, std::size_t at, int value) {
    CAPTURE(marker, at, value);
    check_refused([&](Parts& parts) { parts.find(marker).body[at] = static_cast<std::uint8_t>(value); });
  };
  for (const int precision : {0, 2, 7, 12, 16, 255}) refuse_byte(kSof, 0, precision);
  for (const int components : {0, 1, 2, 4, 255}) refuse_byte(kSof, 5, components);
  for (const int factors : {0x00, 0x02, 0x20, 0x33, 0x42, 0x24, 0x51, 0xFF}) refuse_byte(kSof, 7, factors);
  for (const int factors : {0x00, 0x12, 0x21, 0x22, 0x44, 0x50}) refuse_byte(kSof, 10, factors);
  for (const int table : {1, 3, 4, 255}) refuse_byte(kSof, 8, table);
  refuse_byte(kSof, 9, 1);  // two components of one name
  check_refused([](Parts& parts) { parts.find(kSof).body.push_back(0); });
  check_refused([](Parts& parts) { std::fill_n(parts.find(kSof).body.begin() + 1, 2, std::uint8_t{0}); });
  check_refused([](Parts& parts) { std::fill_n(parts.find(kSof).body.begin() + 3, 2, std::uint8_t{0}); });
  check_refused([](Parts& parts) { std::fill_n(parts.find(kSof).body.begin() + 1, 4, std::uint8_t{0xFF}); });
}

TEST_CASE("a JPEG whose height comes behind the scan is refused", "[kernels]") {
  check_refused([](Parts& parts) {
    std::fill_n(parts.find(kSof).body.begin() + 1, 2, std::uint8_t{0});
    const HeaderBytes lines = {0xFF, kDnl, 0, 4, 0, 21};
    parts.rest.insert(parts.rest.end() - 2, lines.begin(), lines.end());
  });
  check_refused([](Parts& parts) { parts.segments.insert(parts.segments.end() - 1, {kDnl, {0, 21}}); });
}

TEST_CASE("JPEG scans of another kind are refused", "[kernels]") {
  const auto refuse_byte = [](std::size_t at, int value) {
    CAPTURE(at, value);
    check_refused([&](Parts& parts) { parts.find(kSos).body[at] = static_cast<std::uint8_t>(value); });
  };
  for (const int components : {0, 1, 2, 4, 255}) refuse_byte(0, components);
  for (const int component : {0, 2, 9}) refuse_byte(1, component);
  for (const int tables : {0x10, 0x01, 0x30, 0x40, 0x04, 0xFF}) refuse_byte(2, tables);
  for (const int first : {1, 63, 64}) refuse_byte(7, first);
  for (const int last : {0, 62, 64, 255}) refuse_byte(8, last);
  for (const int approximation : {0x01, 0x10, 0xFF}) refuse_byte(9, approximation);
  check_refused([](Parts& parts) { std::swap(parts.find(kSos).body[1], parts.find(kSos).body[3]); });
  check_refused([](Parts& parts) { parts.find(kSos).body = {1, 1, 0, 0, 63, 0}; });
  check_refused([](Parts& parts) { parts.find(kSos).body.push_back(0); });
}

TEST_CASE("JPEG tables that cannot be are refused", "[kernels]") {
  check_refused([](Parts& parts) { parts.find(kDqt).body[1 + 40] = 0; });
  check_refused([](Parts& parts) { parts.find(kDqt).body[0] = 0x04; });
  check_refused([](Parts& parts) { parts.find(kDqt).body[0] = 0x10; });  // too short for two bytes a value
  check_refused([](Parts& parts) { parts.find(kDqt).body[0] = 0x20; });
  check_refused([](Parts& parts) { parts.find(kDqt).body.pop_back(); });
  check_refused([](Parts& parts) { parts.find(kDqt).body.push_back(1); });
  check_refused([](Parts& parts) { parts.find(kDht).body[0] = 0x04; });
  check_refused([](Parts& parts) { parts.find(kDht).body[0] = 0x20; });
  check_refused([](Parts& parts) { std::fill_n(parts.find(kDht).body.begin() + 1, 16, std::uint8_t{0}); });
  check_refused([](Parts& parts) { std::fill_n(parts.find(kDht).body.begin() + 1, 16, std::uint8_t{0xFF}); });
  check_refused([](Parts& parts) {  // more symbols than there are
    HeaderBytes table(1 + 16 + 272, 17);
    table[0] = 3;
    parts.add_first({kDht, table});
  });
  check_refused([](Parts& parts) { parts.add_first({kDht, HeaderBytes(1 + 16, 0)}); });
  check_refused([](Parts& parts) { parts.find(kDht).body.pop_back(); });
  check_refused([](Parts& parts) { parts.find(kDht).body.push_back(0); });
}

TEST_CASE("markers that do not belong into a JPEG header are refused", "[kernels]") {
  for (const int marker : {0x00, 0x01, 0x02, 0xBF, 0xC8, 0xCC, 0xD0, 0xD7, 0xD8, 0xD9, 0xDE, 0xDF, 0xF0, 0xFD}) {
    CAPTURE(marker);
    check_refused([&](Parts& parts) { parts.add_first({marker, {0, 0}}); });
    check_refused([&](Parts& parts) { parts.segments.insert(parts.segments.end() - 1, {marker, {0, 0}}); });
  }
  check_refused(
      [](Parts& parts) { parts.find(kDqt).body.push_back(7), parts.find(kDqt).length = 67; });  // junk between
  check_refused([](Parts& parts) { parts.find(kApp0).body[5] = 2; });  // a version of JFIF that there is not
  check_refused([](Parts& parts) { parts.add_first({kDri, {0}}); });
  check_refused([](Parts& parts) { parts.add_first({kDri, {0, 0, 0}}); });
}

TEST_CASE("what a JPEG header may have beside the picture's own segments changes nothing", "[kernels]") {
  for (const int marker : {0xE1, 0xE2, 0xED, 0xEF, 0xFE}) {
    for (const std::size_t size : {0, 1, 300, 65533}) {
      CAPTURE(marker, size);
      check_read([&](Parts& parts) { parts.add_first({marker, HeaderBytes(size, 0xFF)}); });
    }
  }
  check_read([](Parts& parts) { parts.add_first({kDri, {0, 0}}); });
  check_read([](Parts& parts) {  // the last one counts
    parts.add_first({kDri, {0, 0}});
    parts.add_first({kDri, {0, 1}});
  });
  check_read([](Parts& parts) { parts.add_first({kDri, {0xFF, 0xFF}}); });  // more than there are MCUs
  check_read([](Parts& parts) { parts.add_first(Segment(parts.find(kDqt))); });
  check_read([](Parts& parts) { parts.find(kSof).marker = 0xC1; });
  check_read([](Parts& parts) {  // what comes last counts
    parts.add_first(Segment(parts.find(kDqt)));
    parts.segments[0].body.assign(65, 9);
    parts.segments[0].body[0] = 0;
  });
  check_read(
      [](Parts& parts) { std::rotate(parts.segments.begin(), parts.segments.end() - 2, parts.segments.end() - 1); });
}

TEST_CASE("the colours of a JPEG are read as libjpeg-turbo reads them", "[kernels]") {
  const auto adobe = [](std::uint8_t transform) {
    return Segment{0xEE, {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform}};
  };
  const auto rename = [](Parts& parts, const char* names) {
    for (std::size_t i = 0; i < 3; ++i) {
      parts.find(kSof).body[6 + 3 * i] = static_cast<std::uint8_t>(names[i]);
      parts.find(kSos).body[1 + 2 * i] = static_cast<std::uint8_t>(names[i]);
    }
  };
  check_read([&](Parts& parts) { parts.add_first(adobe(0)); });  // JFIF outweighs it
  check_read([&](Parts& parts) { parts.find(kApp0) = adobe(1); });
  check_read([&](Parts& parts) { parts.remove(kApp0); });
  check_read([&](Parts& parts) { rename(parts, "RGB"); });  // likewise
  for (const char* const names : {"AAB", "ABA", "ABB"}) {
    CAPTURE(names);
    check_refused([&](Parts& parts) { rename(parts, names); });
  }
  check_refused([&](Parts& parts) { parts.find(kApp0) = adobe(0); });
  check_refused([&](Parts& parts) { parts.find(kApp0) = adobe(2); });
  check_refused([&](Parts& parts) { parts.remove(kApp0), rename(parts, "RGB"); });
  check_refused([&](Parts& parts) { parts.remove(kApp0), rename(parts, "\1\3\2"); });
  check_refused([&](Parts& parts) { parts.find(kApp0).body.resize(13), rename(parts, "RGB"); });
}

TEST_CASE("whatever header is read, libjpeg-turbo reads it alike", "[kernels]") {
  std::mt19937 random(42);
  int read = 0, refused = 0;
  for (int i = 0; i < rounds(4000); ++i) {
    const JpegStream stream = draw_jpeg({.width = 1 + below(random, 24), .height = 1 + below(random, 24)}, random);
    Parts parts = split(write_jpeg(stream).bytes);
    for (int changes = below(random, 3); changes >= 0; --changes) mutate(parts, random);
    const File file = join(parts);
    const auto header = read_header(file_bytes(file));
    refused += !header;
    if (!header || std::int64_t{header->size.width} * header->size.height > 1 << 20) continue;
    ++read;
    CAPTURE(i);
    check_outcome(file);
    const auto expected = read_jpeg_coefficients(file);
    if (!expected) continue;  // a Huffman table that cannot be, or something behind the scan
    REQUIRE(expected->header_warnings == 0);
    REQUIRE(same_header(*header, *expected));
  }
  REQUIRE(read > rounds(500));
  REQUIRE(refused > 500);
}

}  // namespace millrace
