#include "kernels/jpeg/header.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace millrace::kernels::jpeg {
namespace {

constexpr int kMostPixels = 65500;  // a side, for libjpeg

// T.81 table B.1.
enum Marker : int {
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kDht = 0xC4,
  kSoi = 0xD8,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp14 = 0xEE,
  kApp15 = 0xEF,
  kCom = 0xFE
};

// A cursor over bytes. Reading beyond them gives 0 and clears ok().
class Bytes {
 public:
  explicit Bytes(FileBytes bytes) : left_(bytes) {}
  bool ok() const { return ok_; }
  bool empty() const { return left_.empty(); }
  FileBytes rest() const { return left_; }

  int u8() {
    const FileBytes byte = take(1);
    return byte.empty() ? 0 : byte[0];
  }
  int u16() {
    const int high = u8();
    return high << 8 | u8();
  }
  FileBytes take(std::size_t count) {
    if (count > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const FileBytes taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }

 private:
  FileBytes left_;
  bool ok_ = true;
};

// What the markers said beside the header itself.
struct Reading {
  Header header;
  bool frame = false;
  bool jfif = false;
  int adobe_transform = -1;
};

// Each reader of a segment says whether the segment is in order.

bool read_quant(Bytes segment, Header& header) {
  while (!segment.empty()) {
    const int head = segment.u8();
    const int wide = head >> 4, table = head & 15;
    if (wide > 1 || table >= kMostTables) return false;
    auto& values = header.quant[static_cast<std::size_t>(table)].emplace();
    for (const std::uint8_t at : kNatural) {
      const int value = wide ? segment.u16() : segment.u8();
      if (value == 0) return false;
      values[at] = static_cast<std::uint16_t>(value);
    }
  }
  return segment.ok();
}

bool read_huffman(Bytes segment, Header& header) {
  while (!segment.empty()) {
    const int head = segment.u8();
    const int table = head & 15;
    if (head >> 4 > 1 || table >= kMostTables) return false;
    HuffmanSpec spec;
    const FileBytes counts = segment.take(spec.counts.size());
    const auto codes = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    const FileBytes symbols = segment.take(codes);
    if (!segment.ok() || codes == 0 || codes > spec.symbols.size()) return false;
    std::copy(counts.begin(), counts.end(), spec.counts.begin());
    std::copy(symbols.begin(), symbols.end(), spec.symbols.begin());
    (head >> 4 ? header.ac : header.dc)[static_cast<std::size_t>(table)] = spec;
  }
  return true;
}

bool read_frame(Bytes segment, Reading& reading) {
  Header& header = reading.header;
  if (reading.frame || segment.u8() != 8) return false;
  header.size.height = segment.u16();
  header.size.width = segment.u16();
  header.components = segment.u8();
  if (header.components != 1 && header.components != 3) return false;
  for (int i = 0; i < header.components; ++i) {
    const int id = segment.u8(), factors = segment.u8(), quant = segment.u8();
    if (quant >= kMostTables) return false;
    header.component[static_cast<std::size_t>(i)] = {
        static_cast<std::uint8_t>(id), static_cast<std::uint8_t>(factors >> 4), static_cast<std::uint8_t>(factors & 15),
        static_cast<std::uint8_t>(quant)};
  }
  reading.frame = true;
  const auto fits = [](int side) { return side >= 1 && side <= kMostPixels; };
  return segment.ok() && segment.empty() && fits(header.size.width) && fits(header.size.height);
}

bool read_restart_interval(Bytes segment, Header& header) {
  header.restart_interval = segment.u16();
  return segment.ok() && segment.empty();
}

// The only scan: all components in their order, all coefficients at once.
bool read_scan(Bytes segment, Reading& reading) {
  Header& header = reading.header;
  if (!reading.frame || segment.u8() != header.components) return false;
  for (int i = 0; i < header.components; ++i) {
    Component& component = header.component[static_cast<std::size_t>(i)];
    if (segment.u8() != component.id) return false;
    const int tables = segment.u8();
    if (tables >> 4 >= kMostTables || (tables & 15) >= kMostTables) return false;
    component.dc = static_cast<std::uint8_t>(tables >> 4);
    component.ac = static_cast<std::uint8_t>(tables & 15);
  }
  const bool sequential = segment.u8() == 0 && segment.u8() == kCoefficients - 1 && segment.u8() == 0;
  return sequential && segment.ok() && segment.empty();
}

bool starts_with(FileBytes bytes, const char* text, std::size_t count) {
  return bytes.size() >= count && std::memcmp(bytes.data(), text, count) == 0;
}

bool read_application(int marker, FileBytes segment, Reading& reading) {
  if (marker == kApp14 && segment.size() >= 12 && starts_with(segment, "Adobe", 5))
    reading.adobe_transform = segment[11];
  if (marker != kApp0 || segment.size() < 14 || !starts_with(segment, "JFIF", 5)) return true;
  reading.jfif = true;
  return segment[5] == 1;  // the major version, of which libjpeg knows one
}

bool read_segment(int marker, FileBytes segment, Reading& reading) {
  switch (marker) {
    case kSof0:
    case kSof1:
      return read_frame(Bytes(segment), reading);
    case kDqt:
      return read_quant(Bytes(segment), reading.header);
    case kDht:
      return read_huffman(Bytes(segment), reading.header);
    case kDri:
      return read_restart_interval(Bytes(segment), reading.header);
    case kSos:
      return read_scan(Bytes(segment), reading);
    default:
      return (marker == kCom || (marker >= kApp0 && marker <= kApp15)) && read_application(marker, segment, reading);
  }
}

// The marker at the cursor, which must be there at once but for fill bytes; 0: none.
int read_marker(Bytes& bytes) {
  if (bytes.u8() != 0xFF) return 0;
  int code = 0xFF;
  while (code == 0xFF && bytes.ok()) code = bytes.u8();
  return code;
}

bool has_tables(const Header& header) {
  for (int i = 0; i < header.components; ++i) {
    const Component& component = header.component[static_cast<std::size_t>(i)];
    if (!header.quant[component.quant] || !header.dc[component.dc] || !header.ac[component.ac]) return false;
  }
  return true;
}

// libjpeg's rule (jdapimin.c, default_decompress_parms), where it is sure.
bool is_ycc(const Reading& reading) {
  if (reading.jfif) return true;
  if (reading.adobe_transform >= 0) return reading.adobe_transform == 1;
  const auto& component = reading.header.component;
  return component[0].id == 1 && component[1].id == 2 && component[2].id == 3;
}

bool choose_sampling(Reading& reading, Chroma least) {
  Header& header = reading.header;
  auto& component = header.component;
  if (header.components == 1) {  // one component has MCUs of one block, whatever its factors
    if (component[0].h < 1 || component[0].h > 4 || component[0].v < 1 || component[0].v > 4) return false;
    // libjpeg reads as many rows of blocks as the factor says, beyond those that a box needs: and restarts there.
    if (header.restart_interval > 0 && component[0].v > 1) return false;
    component[0].h = component[0].v = 1;
    return true;
  }
  for (const std::size_t i : {1, 2}) {
    if (component[i].h != 1 || component[i].v != 1 || component[i].id == component[0].id) return false;
  }
  if (component[1].id == component[2].id || !is_ycc(reading)) return false;
  const int h = component[0].h, v = component[0].v;
  if (h == 4 && v == 1) return least == Chroma::kQuarter;  // which libjpeg does not smooth
  // libjpeg does not smooth chroma of one or two columns.
  return h >= 1 && h <= 2 && v >= 1 && v <= 2 && (h == 1 || header.size.width > 4);
}

}  // namespace

std::optional<Header> read_header(FileBytes file_untrusted, Chroma least) {
  Bytes bytes(file_untrusted);
  Reading reading;
  if (bytes.u8() != 0xFF || bytes.u8() != kSoi) return std::nullopt;
  while (bytes.ok()) {
    const int marker = read_marker(bytes);
    const int length = bytes.u16();
    if (marker == 0 || length < 2) return std::nullopt;
    const FileBytes segment = bytes.take(static_cast<std::size_t>(length - 2));
    if (!bytes.ok() || !read_segment(marker, segment, reading)) return std::nullopt;
    if (marker != kSos) continue;
    if (!has_tables(reading.header) || !choose_sampling(reading, least)) return std::nullopt;
    reading.header.scan = bytes.rest();
    return reading.header;
  }
  return std::nullopt;
}

}  // namespace millrace::kernels::jpeg
