#include "tests/bench/cuda/checksum_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iomanip>
#include <istream>
#include <ostream>
#include <sstream>

namespace millrace::kernels::cuda::bench {
namespace {

bool read_line(const std::string& text, ChecksumLine& line) {
  std::istringstream in(text);
  std::string recipe, sum;
  int flip = 0;
  if (!(in >> recipe >> line.crop.left >> line.crop.top >> line.crop.width >> line.crop.height >> flip >> sum))
    return false;
  line.flip = flip != 0 ? Flip::kHorizontal : Flip::kNone;
  const auto* const found =
      std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const auto& named) { return recipe == named.name; });
  if (found == std::end(kRecipes)) return false;
  line.recipe = found;
  if (sum != "-") {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(sum.data(), sum.data() + sum.size(), value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != sum.data() + sum.size()) return false;
    line.sum = value;
  }
  return in.get() == ' ' && std::getline(in, line.path) && !line.path.empty();
}

}  // namespace

std::uint64_t fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return sum;
}

void write_line(std::ostream& out, const ChecksumLine& line) {
  out << line.recipe->name << ' ' << line.crop.left << ' ' << line.crop.top << ' ' << line.crop.width << ' '
      << line.crop.height << ' ' << (line.flip == Flip::kHorizontal) << ' ';
  if (line.sum) {
    out << std::hex << std::setw(16) << std::setfill('0') << *line.sum << std::dec;
  } else {
    out << '-';
  }
  out << ' ' << line.path << '\n';
}

std::optional<std::vector<ChecksumLine>> read_lines(std::istream& in, std::string& wrong) {
  std::vector<ChecksumLine> lines;
  for (std::string text; std::getline(in, text);) {
    if (!read_line(text, lines.emplace_back())) {
      wrong = text;
      return std::nullopt;
    }
  }
  return lines;
}

}  // namespace millrace::kernels::cuda::bench
