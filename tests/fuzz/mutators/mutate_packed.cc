// Changes to a packed image that get past its head: new images, and changes of one part alone. Length and checksum are
// made right, so that an image that was damaged can be read all the same.
#include <algorithm>
#include <cstring>

#include "kernels/packed/layout.h"
#include "tests/unit/kernels/packed/packed_rig.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace millrace::kernels;
using namespace millrace::kernels::packed;

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

Bytes draw_image(std::mt19937& random) {
  const bool grey = below(random, 3) == 0;
  const Size size{5 + below(random, 400), 1 + below(random, 24)};
  const int h = grey ? 1 : 1 + below(random, 2), v = grey ? 1 : 1 + below(random, 2);
  const auto quant = static_cast<std::uint16_t>(1 + below(random, 20));
  Picture picture = make_picture(make_header(size, grey ? 1 : 3, h, v, quant));
  fill(picture, {below(random, 1001), 1 + below(random, 12), 1 + below(random, 12)}, random);
  static Encoder encoder;
  return pack(encoder, picture);
}

// Bytes from one group to its neighbour: the sum of the sizes stays.
void move_border(std::uint8_t* sizes, std::size_t groups, std::mt19937& random) {
  if (groups < 2) return;
  std::uint16_t pair[2];
  std::uint8_t* const at = sizes + layout::kSizeBytes * (random() % (groups - 1));
  std::memcpy(pair, at, sizeof pair);
  const unsigned both = pair[0] + pair[1];
  if (both > UINT16_MAX) return;
  pair[0] = static_cast<std::uint16_t>(random() % (both + 1));
  pair[1] = static_cast<std::uint16_t>(both - pair[0]);
  std::memcpy(at, pair, sizeof pair);
}

// The last group takes what was cut off or added.
std::size_t resize(std::uint8_t* data, std::size_t size, std::size_t most, std::uint8_t* last, std::size_t start,
                   std::mt19937& random) {
  std::uint16_t last_size;
  std::memcpy(&last_size, last, sizeof last_size);
  const std::size_t before = size - std::min<std::size_t>(last_size, size - start);
  const std::size_t room = std::min<std::size_t>(most - before, 5000);
  const std::size_t chosen = random() % (room + 1);
  for (std::size_t i = size; i < before + chosen; ++i) data[i] = static_cast<std::uint8_t>(random());
  last_size = static_cast<std::uint16_t>(chosen);
  std::memcpy(last, &last_size, sizeof last_size);
  return before + chosen;
}

std::size_t change(std::uint8_t* data, std::size_t size, std::size_t most, std::mt19937& random) {
  PackedImage image;
  if (!image.read({data, size}, Check::kShape)) return LLVMFuzzerMutate(data, size, most);
  const std::size_t groups = image.grid().groups(), tables = data[layout::kTables];
  const std::size_t start = layout::groups_start(tables, groups);
  std::uint8_t* const sizes = data + layout::kHeadBytes + layout::kTableBytes * tables;
  const Group group = image.group(random() % groups);
  std::uint8_t* const begin = data + (group.begin - data);
  const auto length = static_cast<std::size_t>(group.end - group.begin);
  switch (below(random, 6)) {
    case 0:
      move_border(sizes, groups, random);
      return size;
    case 1:
      return resize(data, size, most, sizes + layout::kSizeBytes * (groups - 1), start, random);
    case 2:  // widths of DC, or shapes
      if (length > 0) begin[random() % std::min<std::size_t>(length, 36)] = static_cast<std::uint8_t>(random());
      return size;
    case 3:  // bitmaps
      if (length > 0)
        data[group.end - data - 1 - static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(length, 256))] = 0xFF;
      return size;
    case 4:
      if (length > 0) LLVMFuzzerMutate(begin, length, length);
      return size;
    default:
      LLVMFuzzerMutate(data, layout::kChecksum, layout::kChecksum);
      return size;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  std::mt19937 random(seed);
  if (size < layout::kHeadBytes || random() % 16 == 0) {
    const Bytes made = draw_image(random);
    if (made.size() <= most) {
      std::copy(made.begin(), made.end(), data);
      size = made.size();
    }
  } else {
    size = random() % 8 == 0 ? LLVMFuzzerMutate(data, size, most) : change(data, size, most, random);
  }
  if (size < layout::kHeadBytes || random() % 16 == 0) return size;
  const std::uint64_t length = size;
  std::memcpy(data + layout::kBytes, &length, sizeof length);
  sign({data, size});
  return size;
}
