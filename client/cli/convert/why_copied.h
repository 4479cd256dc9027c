// Why a file is copied as it is instead of converted, and how that is told. Values; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cli {

enum class WhyCopied : std::uint8_t {
  kNothing,  // it is converted; or nothing else was to become of it
  // To packed files:
  kNoJpeg,       // of another format
  kProgressive,  // or with its components in several scans
  kNotOurs,      // damaged, or of a kind that our decoder does not take
  kTooLarge,     // coefficients that no picture has
  kOwnWay,       // its encoder chose codes that others do not
  // Back to JPEG files:
  kNoPacked,  // it has a packed file's name, and is a JPEG file
};
inline constexpr std::size_t kWhyCopied = 7;  // how many there are

struct CopyReason {
  WhyCopied why;
  const char* key;   // in JSON
  const char* text;  // behind a number
};

}  // namespace millrace::cli
