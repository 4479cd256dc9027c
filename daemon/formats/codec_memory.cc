#include "daemon/formats/codec_memory.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace millrace {
namespace {

constexpr Bytes kFixed = 2_MiB;  // tables, structures, input buffers

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

// --- JPEG ---

// T.81 table B.1, second byte of the markers.
constexpr std::uint8_t kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA;

bool is_frame(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != kDht && marker != kJpg && marker != kDac;
}
bool is_progressive(std::uint8_t marker) {
  return (marker & 3U) == 2;
}
bool stands_alone(std::uint8_t marker) {
  return marker == 0x01 || (marker >= 0xD0 && marker <= kSoi);
}

struct Component {
  std::uint64_t h, v;
};

// T.81 B.2.2.
std::vector<Component> components_of(const ByteReader& bytes, std::size_t frame) {
  std::vector<Component> components;
  const std::uint8_t count = bytes.u8(frame + 7).value_or(0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto sampling = bytes.u8(frame + 8 + 3 * i + 1);
    if (!sampling) break;
    components.push_back({std::max<std::uint64_t>(*sampling >> 4U, 1), std::max<std::uint64_t>(*sampling & 15U, 1)});
  }
  return components;
}

Bytes coefficients(const std::vector<Component>& components, Size size) {
  constexpr std::uint64_t kBlockBytes = 128;
  std::uint64_t most_h = 1, most_v = 1, blocks = 0;
  for (const Component& component : components) {
    most_h = std::max(most_h, component.h);
    most_v = std::max(most_v, component.v);
  }
  const std::uint64_t across = divide_up(size.width, 8 * most_h), down = divide_up(size.height, 8 * most_v);  // MCUs
  for (const Component& component : components) blocks += across * component.h * down * component.v;
  return Bytes{blocks * kBlockBytes};
}

// Several scans: progressive ones, and a first one that has not all components.
Bytes jpeg_memory(const ByteReader& bytes, Size size) {
  const std::string_view text = ByteReader::text(bytes.bytes());
  const Bytes scan{2 * std::uint64_t{bytes.size()}};  // without its stuffing; restart intervals once more
  const Bytes rows = Bytes{std::uint64_t{size.width} * 256} + scan;
  std::size_t at = 2, frame = 0;
  std::uint8_t frame_marker = 0;
  while ((at = text.find('\xFF', at)) != text.npos) {
    at = text.find_first_not_of('\xFF', at);
    if (at == text.npos) break;
    const auto marker = static_cast<std::uint8_t>(text[at++]);
    if (marker == 0 || stands_alone(marker)) continue;
    if (marker == kEoi) break;
    if (marker == kSos) {
      if (frame == 0) break;
      const std::vector<Component> components = components_of(bytes, frame);
      const bool several = is_progressive(frame_marker) || bytes.u8(at + 2).value_or(0) < components.size();
      return kFixed + rows + (several ? coefficients(components, size) : Bytes{0});
    }
    if (is_frame(marker) && frame == 0) {
      frame = at;
      frame_marker = marker;
    }
    at += std::max(bytes.big16(at).value_or(2), 2U);
  }
  return kFixed + rows;  // no image data: an error to every decoder
}

// --- WebP ---

// RFC 9649, 2.7: a lossy picture with neither alpha nor frames before it.
bool is_plain_lossy(const ByteReader& bytes) {
  std::size_t at = 12;
  while (const std::optional<std::uint32_t> length = bytes.little32(at + 4)) {
    if (bytes.holds(at, "VP8 ")) return true;
    if (bytes.holds(at, "VP8L") || bytes.holds(at, "ALPH") || bytes.holds(at, "ANMF")) return false;
    at += 8 + std::size_t{*length} + (*length & 1U);
  }
  return false;
}

CodecMemory webp_memory(const ByteReader& bytes, Size size) {
  const Bytes rows{std::uint64_t{size.width} * 256};
  if (is_plain_lossy(bytes)) return {kFixed + rows, kFixed + rows};
  constexpr std::uint64_t kPixelBytes = 6, kGroupBytes = 20'600, kMostGroups = 65'536, kGroupBits = 20;
  const Bytes needed = kFixed + rows + Bytes{std::uint64_t{size.width} * size.height * kPixelBytes};
  const std::uint64_t tiles = divide_up(size.width, 4) * divide_up(size.height, 4);
  const std::uint64_t groups = std::min({kMostGroups, tiles, std::uint64_t{bytes.size()} * 8 / kGroupBits});
  return {needed, needed + Bytes{groups * kGroupBytes}};
}

}  // namespace

CodecMemory codec_memory(ImageFormat format, Size size, ByteReader bytes_untrusted) {
  switch (format) {
    case ImageFormat::kJpeg: {
      const Bytes memory = jpeg_memory(bytes_untrusted, size);
      return {memory, memory};
    }
    case ImageFormat::kPng: {
      const Bytes memory = kFixed + Bytes{std::uint64_t{size.width} * 32};
      return {memory, memory};
    }
    case ImageFormat::kWebp:
      return webp_memory(bytes_untrusted, size);
  }
  return {};
}

}  // namespace millrace
