// Why a file is copied as it is instead of converted, and how that is told. Values; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cli {

enum class WhyCopied : std::uint8_t {
  kNothing,      // it is converted; or nothing else was to become of it
  kOtherFormat,  // of another format than those that are converted
  // To packed files:
  kProgressive,  // or with its components in several scans
  kNotOurs,      // damaged, or of a kind that our decoder does not take
  kTooLarge,     // coefficients that no picture has
  kOwnWay,       // its encoder chose codes that others do not
  // Back to JPEG files:
  kNoPacked,  // it has a packed file's name, and is a JPEG file
  // To L3:
  kLossy,       // WebP, or TIFF with JPEG in it
  kSeveral,     // animated, or of several pictures
  kCmyk,        // inks
  kSampleKind,  // floating point, or more than 16 bits
  kChannels,    // more than 4
  kColourKey,   // one colour of grey or RGB is transparent
  kScaled,      // PNM that is scaled when it is shown
  kKind,        // of its format one whose samples are not kept as they are
  kSides,       // longer, or with more pixels, than L3 holds
  kVersion1,    // version 1 of L3 does not hold it
  // Back to PNG:
  kMetadata,  // PNG does not hold it
};
inline constexpr std::size_t kWhyCopied = static_cast<std::size_t>(WhyCopied::kMetadata) + 1;  // how many there are

struct CopyReason {
  WhyCopied why;
  const char* key;   // in JSON
  const char* text;  // behind a number
};

}  // namespace millrace::cli
