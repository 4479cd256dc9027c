// What files are called after they were converted. Thread-safe: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace millrace::cli {

inline constexpr std::string_view kPackedEnding = "mrp";
// Of what `millrace convert` itself puts into the folder that it fills, while it runs.
inline constexpr std::string_view kOwnPrefix = ".millrace-convert";

// "a.b.JPG" is "a.b" and "JPG". A name without an ending that a packed file can keep is all stem.
struct FileName {
  std::string_view stem, ending;
};
FileName parts_of(std::string_view name);

bool is_jpeg_name(std::string_view name);    // jpg, jpeg, jpe, jfif, in either case
bool is_packed_name(std::string_view name);  // mrp

// What the packed form of a JPEG file is called, and which ending it keeps: "1.jpg" is "1.mrp" of "jpg". Where its folder
// has other files that would be called so, too, "1.jpg.mrp" of no ending. `siblings`: names of all files in the folder.
struct PackedName {
  std::string name, ending;
};
PackedName packed_name(std::string_view name, const std::set<std::string, std::less<>>& siblings);

// The way back. `ending`: what the packed file keeps.
std::string jpeg_name(std::string_view packed, std::string_view ending);

}  // namespace millrace::cli
