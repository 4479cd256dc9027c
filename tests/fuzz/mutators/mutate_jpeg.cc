// Changes to a JPEG that get past its header: new streams, whole or damaged, and changes of one part alone. Plain
// mutation of bytes mostly makes files that every decoder refuses at once.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/jpeg/restart_damage.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace millrace;

constexpr std::size_t kSeekBoxBytes = 8;

struct Part {
  std::size_t begin, end;
};

// Behind the SOS segment; `size` where there is none.
std::size_t scan_of(const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = kSeekBoxBytes; i + 3 < size; ++i) {
    if (data[i] == 0xFF && data[i + 1] == 0xDA)
      return std::min(size, i + 2 + static_cast<std::size_t>(data[i + 2] << 8 | data[i + 3]));
  }
  return size;
}

// Streams of one image at once need six kilobytes and more.
JpegFile draw_file(std::mt19937& random) {
  JpegDraw draw;
  if (random() % 16 == 0) draw.kind = JpegDraw::Kind::kAny;
  if (random() % 6 == 0) draw.range = JpegDraw::Range::kWild;
  if (random() % 4 == 0) {
    draw.width = 40 + static_cast<int>(random() % 120);
    draw.height = 40 + static_cast<int>(random() % 120);
  }
  return write_jpeg(draw_jpeg(draw, random));
}

// Whole every other time.
std::vector<std::byte> draw_bytes(std::mt19937& random) {
  const JpegFile file = draw_file(random);
  if (random() % 2 == 0) return file.bytes;
  const bool restarts = !restarts_of(file).empty();
  if (restarts && random() % 2 == 0)
    return damage_restart(file, static_cast<RestartDamage>(random() % kRestartDamages), random);
  return damage(file, static_cast<JpegDamage>(random() % kJpegDamages), random);
}

// 0: too large.
std::size_t put_new(std::uint8_t* data, std::size_t most, std::mt19937& random) {
  const std::vector<std::byte> bytes = draw_bytes(random);
  if (bytes.size() + kSeekBoxBytes > most) return 0;
  for (std::size_t i = 0; i < kSeekBoxBytes; ++i) data[i] = static_cast<std::uint8_t>(random());
  std::memcpy(data + kSeekBoxBytes, bytes.data(), bytes.size());
  return kSeekBoxBytes + bytes.size();
}

std::size_t change_part(std::uint8_t* data, std::size_t size, std::size_t most, Part part) {
  const std::vector<std::uint8_t> rest(data + part.end, data + size);
  const std::size_t room = most - part.begin - rest.size();
  const std::size_t changed = part.begin + LLVMFuzzerMutate(data + part.begin, part.end - part.begin, room);
  std::copy(rest.begin(), rest.end(), data + changed);
  return changed + rest.size();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  const auto choice = random() % 16;
  if (size <= kSeekBoxBytes || choice < 2) {
    const std::size_t made = put_new(data, most, random);
    if (made > 0) return made;
  }
  if (size <= kSeekBoxBytes || choice < 4) return LLVMFuzzerMutate(data, size, most);
  if (choice < 6) {
    data[random() % kSeekBoxBytes] = static_cast<std::uint8_t>(random());
    return size;
  }
  const std::size_t scan = scan_of(data, size);
  if (choice < 9 || scan == size) return change_part(data, size, most, {kSeekBoxBytes, scan});
  const std::size_t begin = scan + random() % (size - scan);
  const std::size_t end = std::min(size, begin + 1 + random() % 64);
  return change_part(data, size, most, {begin, choice < 12 ? end : size});
}
