#include "client/cli/convert/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "kernels/mrp/packed_file.h"

namespace millrace::cli {
namespace {

constexpr std::array<std::string_view, 4> kJpegEndings{"jpg", "jpeg", "jpe", "jfif"};

bool same_in_either_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == static_cast<unsigned char>(y);
  });
}

}  // namespace

FileName parts_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || dot + 1 == name.size() || !kernels::mrp::is_ending(name.substr(dot + 1)))
    return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_jpeg_name(std::string_view name) {
  const std::string_view ending = parts_of(name).ending;
  return std::ranges::any_of(kJpegEndings, [&](std::string_view known) { return same_in_either_case(ending, known); });
}

bool is_packed_name(std::string_view name) {
  return same_in_either_case(parts_of(name).ending, kPackedEnding);
}

PackedName packed_name(std::string_view name, const std::set<std::string, std::less<>>& siblings) {
  const FileName parts = parts_of(name);
  const std::string start = std::string(parts.stem) + '.';
  bool alone = true;
  for (auto at = siblings.lower_bound(start); at != siblings.end() && at->starts_with(start); ++at) {
    const bool rival = parts_of(*at).stem == parts.stem && (is_jpeg_name(*at) || is_packed_name(*at));
    alone = alone && (!rival || *at == name);
  }
  const std::string ending = '.' + std::string(kPackedEnding);
  if (alone) return {std::string(parts.stem) + ending, std::string(parts.ending)};
  return {std::string(name) + ending, ""};
}

std::string jpeg_name(std::string_view packed, std::string_view ending) {
  std::string name(parts_of(packed).stem);
  if (!ending.empty()) name += '.' + std::string(ending);
  return name;
}

}  // namespace millrace::cli
