// A packed image that is anything, as it came and under a length and a checksum made right: nothing is read or written
// outside, all unpackers see the same blocks in whole groups and in parts, and blocks that can be packed come back.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/packed/layout.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace {

using namespace millrace::kernels;
using namespace millrace::kernels::packed;

constexpr std::size_t kMostBlocks = 4096;  // larger images only take longer

void require(bool holds) {
  if (!holds) std::abort();
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all = available_targets();
  return all;
}

// In a block of its own size, so that reading one byte too far is seen.
Bytes with_padding(const std::uint8_t* data, std::size_t size, std::uint8_t padding) {
  Bytes bytes(size + kPadding, padding);
  std::copy_n(data, size, bytes.begin());
  return bytes;
}

void check_part(const PackedImage& image, std::size_t salt) {
  const Group group = image.group(salt % image.grid().groups());
  const int first = static_cast<int>(salt / 7 % static_cast<std::size_t>(group.blocks));
  const int count = 1 + static_cast<int>(salt / 5 % static_cast<std::size_t>(group.blocks - first));
  alignas(64) std::int16_t whole[kGroupBlocks * jpeg::kCoefficients], part[kGroupBlocks * jpeg::kCoefficients];
  for (const Target target : targets()) {
    unpacker(target).unpack(group, 0, group.blocks, whole);
    unpacker(target).unpack(group, first, count, part);
    require(std::memcmp(part, whole + first * jpeg::kCoefficients,
                        static_cast<std::size_t>(count) * jpeg::kCoefficients * sizeof *part) == 0);
  }
}

void check_packing(const Picture& picture) {
  Bytes expected;
  for (const Target target : targets()) {
    static std::vector<std::unique_ptr<Encoder>> encoders(std::size(kAllTargets));
    auto& encoder = encoders[static_cast<std::size_t>(target)];
    if (!encoder) encoder = std::make_unique<Encoder>(target);
    const Bytes bytes = pack(*encoder, picture);
    if (target == targets().front()) expected = bytes;
    require(bytes == expected);
  }
  if (expected.empty()) return;  // not what all inverse DCTs do alike
  const Bytes bytes = with_padding(expected.data(), expected.size(), 0);
  PackedImage image;
  require(image.read({bytes.data(), expected.size()}, Check::kChecksum));
  for (const Target target : targets()) require(unpack_all(image, unpacker(target)) == picture.blocks);
}

void try_image(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = with_padding(data, size, 0x5A), other = with_padding(data, size, 0xFF);
  PackedImage image, beside;
  if (!image.read({bytes.data(), size}, Check::kChecksum)) return;
  if (static_cast<std::size_t>(image.grid().blocks()) > kMostBlocks) return;
  require(beside.read({other.data(), size}, Check::kShape));
  const Picture picture{image.header(), unpack_all(image, unpacker(targets().front()))};
  for (const Target target : targets()) require(unpack_all(image, unpacker(target)) == picture.blocks);
  for (const Target target : targets()) unpack_all(beside, unpacker(target));
  check_part(image, size + data[size - 1] * std::size_t{31});
  check_packing(picture);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_image(data, size);
  if (size < layout::kHeadBytes) return 0;
  Bytes forged(data, data + size);
  const std::uint64_t length = size;
  std::memcpy(forged.data() + layout::kBytes, &length, sizeof length);
  sign(forged);
  try_image(forged.data(), size);
  return 0;
}
