#include "client/cli/convert/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "kernels/mrp/packed_file.h"

namespace millrace::cli {
namespace {

constexpr std::array<std::string_view, 4> kJpegEndings{"jpg", "jpeg", "jpe", "jfif"};
constexpr std::array<std::string_view, 10> kLosslessEndings{"png", "pbm", "pgm", "ppm",  "pnm",
                                                            "pam", "bmp", "tif", "tiff", "webp"};

bool same_in_either_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == static_cast<unsigned char>(y);
  });
}

bool has_one_of(std::span<const std::string_view> endings, std::string_view name) {
  const std::string_view ending = parts_of(name).ending;
  return std::ranges::any_of(endings, [&](std::string_view known) { return same_in_either_case(ending, known); });
}

bool has_ending(std::string_view name, std::string_view ending) {
  return has_one_of({&ending, 1}, name);
}

// Whether no other file of the stem is converted, too, or has the ending.
bool is_alone(std::string_view name, std::string_view ending, const Siblings& siblings,
              bool (*converted)(std::string_view name)) {
  const std::string_view stem = parts_of(name).stem;
  const std::string start = std::string(stem) + '.';
  for (auto at = siblings.lower_bound(start); at != siblings.end() && at->starts_with(start); ++at) {
    const bool is_rival = parts_of(*at).stem == stem && (converted(*at) || has_ending(*at, ending));
    if (is_rival && *at != name) return false;
  }
  return true;
}

}  // namespace

FileName parts_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || dot + 1 == name.size() || !kernels::mrp::is_ending(name.substr(dot + 1)))
    return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_jpeg_name(std::string_view name) {
  return has_one_of(kJpegEndings, name);
}

bool is_packed_name(std::string_view name) {
  return has_ending(name, kPackedEnding);
}

bool is_lossless_name(std::string_view name) {
  return has_one_of(kLosslessEndings, name);
}

bool is_l3_name(std::string_view name) {
  return has_ending(name, kL3Ending);
}

std::string name_with_ending(std::string_view name, std::string_view ending, const Siblings& siblings,
                             bool (*converted)(std::string_view name)) {
  const bool alone = is_alone(name, ending, siblings, converted);
  return std::string(alone ? parts_of(name).stem : name) + '.' + std::string(ending);
}

PackedName packed_name(std::string_view name, const Siblings& siblings) {
  const std::string ending(is_alone(name, kPackedEnding, siblings, is_jpeg_name) ? parts_of(name).ending : "");
  return {name_with_ending(name, kPackedEnding, siblings, is_jpeg_name), ending};
}

std::string jpeg_name(std::string_view packed, std::string_view ending) {
  std::string name(parts_of(packed).stem);
  if (!ending.empty()) name += '.' + std::string(ending);
  return name;
}

}  // namespace millrace::cli
