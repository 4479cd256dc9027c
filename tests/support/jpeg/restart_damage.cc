#include "tests/support/jpeg/restart_damage.h"

#include <algorithm>

namespace millrace {
namespace {

using Bytes = std::vector<std::byte>;

bool is_restart(std::byte code) {
  return code >= std::byte{0xD0} && code <= std::byte{0xD7};
}

// Of the next interval: behind its restart marker, or the scan's end.
std::size_t interval_end(const JpegFile& file, const std::vector<std::size_t>& restarts, std::size_t which) {
  return which + 1 < restarts.size() ? restarts[which + 1] : file.end;
}

void swap_intervals(Bytes& bytes, const JpegFile& file, const std::vector<std::size_t>& restarts, std::size_t which) {
  const auto at = [&](std::size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); };
  const std::size_t begin = which == 0 ? file.scan : restarts[which - 1] + 2;
  const std::size_t middle = restarts[which] + 2, end = interval_end(file, restarts, which);
  std::rotate(at(begin), at(middle), at(end));
}

}  // namespace

std::vector<std::size_t> restarts_of(const JpegFile& file) {
  std::vector<std::size_t> places;
  for (std::size_t i = file.scan; i + 1 < file.end; ++i) {
    if (file.bytes[i] == std::byte{0xFF} && is_restart(file.bytes[i + 1])) places.push_back(i);
  }
  return places;
}

std::vector<std::byte> damage_restart(const JpegFile& file, RestartDamage kind, std::mt19937& random) {
  Bytes bytes = file.bytes;
  const std::vector<std::size_t> restarts = restarts_of(file);
  if (restarts.empty()) return bytes;
  const std::size_t which = random() % restarts.size(), place = restarts[which];
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(place);
  const std::byte number = at[1];
  switch (kind) {
    case RestartDamage::kGone:
      bytes.erase(at, at + 2);
      break;
    case RestartDamage::kRenumbered:
      at[1] = std::byte(0xD0 + (std::to_integer<unsigned>(number) + 1 + random() % 7) % 8);
      break;
    case RestartDamage::kTwice:
      bytes.insert(at, {std::byte{0xFF}, number});
      break;
    case RestartDamage::kFilled:
      bytes.insert(at, 1 + random() % 3, std::byte{0xFF});
      break;
    case RestartDamage::kOther:
      at[1] = std::byte(1 + random() % 254);
      break;
    case RestartDamage::kMore:
      bytes.insert(at, 1 + random() % 20, std::byte(random() % 255));
      break;
    case RestartDamage::kFewer:
      bytes.erase(at - static_cast<std::ptrdiff_t>(std::min<std::size_t>(1 + random() % 20, place - file.scan)), at);
      break;
    case RestartDamage::kSwapped:
      swap_intervals(bytes, file, restarts, which);
      break;
    case RestartDamage::kSurplus:
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(file.end),
                   {std::byte{0xFF}, std::byte(0xD0 + restarts.size() % 8)});
      break;
  }
  return bytes;
}

}  // namespace millrace
