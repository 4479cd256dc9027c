#include "kernels/mrp/packed_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/base/hash.h"

namespace millrace::kernels::mrp {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic{'M', 'R', 'P', 'F'};
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kVersionAt = 4, kWayBackAt = 5, kPaddingAt = 6, kZeroAt = 7, kChecksumAt = 8, kFrontAt = 16,
                      kListedAt = 20, kEndAt = 24, kZerosAt = 28, kImageAt = 32, kJpegBytesAt = 40, kJpegHashAt = 48,
                      kEndingAt = 56, kHeadBytes = 64;

template <class Number>
Number load(FileBytes bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = sizeof number; i-- > 0;) number = static_cast<Number>(number << 8U | bytes[at + i]);
  return number;
}

template <class Number>
void append(Number number, std::vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

// Of all that is in front of the image. The eight bytes before it are its seed.
std::uint64_t checksum_of(FileBytes file, std::size_t image_at) {
  return xxh3_64(file.subspan(kFrontAt, image_at - kFrontAt), load<std::uint64_t>(file, 0));
}

constexpr std::size_t kMostEnding = 8;

void add(FileBytes part, std::vector<std::uint8_t>& out) {
  out.insert(out.end(), part.begin(), part.end());
}

}  // namespace

bool is_packed_file(FileBytes file_untrusted) {
  return file_untrusted.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), file_untrusted.begin());
}

bool is_ending(std::string_view ending) {
  return ending.size() <= kMostEnding && std::all_of(ending.begin(), ending.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
         });
}

std::string read_packed_file(FileBytes file_untrusted, PackedFile& file) {
  if (!is_packed_file(file_untrusted)) return "it does not begin as such a file does";
  if (file_untrusted.size() <= kVersionAt) return "cut off";
  if (const int version = file_untrusted[kVersionAt]; version != kVersion)
    return "of version " + std::to_string(version) + ", where " + std::to_string(kVersion) + " is known";
  if (file_untrusted.size() < kHeadBytes) return "cut off";
  std::uint64_t at = kHeadBytes;
  const auto part_of = [&](std::uint64_t size) {
    const FileBytes part = file_untrusted.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
    at += size;
    return part;
  };
  const std::uint64_t front = load<std::uint32_t>(file_untrusted, kFrontAt),
                      listed = load<std::uint32_t>(file_untrusted, kListedAt),
                      end = load<std::uint32_t>(file_untrusted, kEndAt),
                      image = load<std::uint64_t>(file_untrusted, kImageAt);
  const std::uint64_t before_image = kHeadBytes + front + listed + end;  // below 2^34
  if (before_image > file_untrusted.size() || image > file_untrusted.size() - before_image) return "cut off";
  if (load<std::uint64_t>(file_untrusted, kChecksumAt) !=
      checksum_of(file_untrusted, static_cast<std::size_t>(before_image)))
    return "its checksum is not that of its contents";
  if (image != file_untrusted.size() - before_image) return "there is more in it than it should have";
  const FileBytes name = file_untrusted.subspan(kEndingAt, kMostEnding);
  file.ending.assign(name.begin(), std::find(name.begin(), name.end(), 0));
  const bool clean = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(file.ending.size()), name.end(),
                                 [](std::uint8_t byte) { return byte == 0; });
  if (!clean || !is_ending(file.ending) || file_untrusted[kWayBackAt] > 1 || file_untrusted[kPaddingAt] > 2 ||
      file_untrusted[kZeroAt] != 0 || load<std::uint32_t>(file_untrusted, kZerosAt) != 0)
    return "its head makes no sense";
  file.way_back = static_cast<WayBack>(file_untrusted[kWayBackAt]);
  file.padding = static_cast<jpeg::ScanPadding::Kind>(file_untrusted[kPaddingAt]);
  file.jpeg_bytes = load<std::uint64_t>(file_untrusted, kJpegBytesAt);
  file.jpeg_hash = load<std::uint64_t>(file_untrusted, kJpegHashAt);
  file.front = part_of(front);
  file.listed = part_of(listed);
  file.end = part_of(end);
  file.image = part_of(image);
  return "";
}

bool write_packed_file(const PackedFile& file, std::vector<std::uint8_t>& out) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (file.front.size() > kMost || file.listed.size() > kMost || file.end.size() > kMost || !is_ending(file.ending))
    return false;
  out.clear();
  out.reserve(kHeadBytes + file.front.size() + file.listed.size() + file.end.size() + file.image.size());
  out.assign(kMagic.begin(), kMagic.end());
  out.push_back(kVersion);
  out.push_back(static_cast<std::uint8_t>(file.way_back));
  out.push_back(static_cast<std::uint8_t>(file.padding));
  out.push_back(0);
  append(std::uint64_t{0}, out);  // the checksum's place
  for (const FileBytes& part : {file.front, file.listed, file.end})
    append(static_cast<std::uint32_t>(part.size()), out);
  append(std::uint32_t{0}, out);
  append(std::uint64_t{file.image.size()}, out);
  append(file.jpeg_bytes, out);
  append(file.jpeg_hash, out);
  out.insert(out.end(), file.ending.begin(), file.ending.end());
  out.resize(kHeadBytes, 0);
  for (const FileBytes& part : {file.front, file.listed, file.end}) add(part, out);
  std::vector<std::uint8_t> checksum;
  append(checksum_of(out, out.size()), checksum);
  std::copy(checksum.begin(), checksum.end(), out.begin() + kChecksumAt);
  add(file.image, out);
  return true;
}

std::uint64_t hash_of(FileBytes jpeg) {
  return xxh3_64(jpeg, 0);
}

}  // namespace millrace::kernels::mrp
