// What files are called after they were converted. Thread-safe: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace millrace::cli {

inline constexpr std::string_view kPackedEnding = "mrp", kL3Ending = "l3", kPngEnding = "png";
// Of what `millrace convert` itself puts into the folder that it fills, while it runs.
inline constexpr std::string_view kOwnPrefix = ".millrace-convert";

// "a.b.JPG" is "a.b" and "JPG". A name without an ending that a packed file can keep is all stem.
struct FileName {
  std::string_view stem, ending;
};
FileName parts_of(std::string_view name);

bool is_jpeg_name(std::string_view name);      // jpg, jpeg, jpe, jfif, in either case
bool is_packed_name(std::string_view name);    // mrp
bool is_lossless_name(std::string_view name);  // png, pbm, pgm, ppm, pnm, pam, bmp, tif, tiff, webp, in either case
bool is_l3_name(std::string_view name);        // l3

using Siblings = std::set<std::string, std::less<>>;  // names of all files in a folder

// "1.png" with another ending: "1.l3". Where its folder has other files of the stem that are `converted` to it or have the
// ending already, "1.png.l3".
std::string name_with_ending(std::string_view name, std::string_view ending, const Siblings& siblings,
                             bool (*converted)(std::string_view name));

// What the packed form of a JPEG file is called, and which ending it keeps: "1.jpg" is "1.mrp" of "jpg". Where its folder
// has other files that would be called so, too, "1.jpg.mrp" of no ending.
struct PackedName {
  std::string name, ending;
};
PackedName packed_name(std::string_view name, const Siblings& siblings);

// The way back. `ending`: what the packed file keeps.
std::string jpeg_name(std::string_view packed, std::string_view ending);

}  // namespace millrace::cli
