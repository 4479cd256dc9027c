// Entropy-coded data without its stuffing: the zero byte after each 0xFF goes (T.81 F.1.2.3), up to the first marker.
// Or where that marker is, alone. Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

// Bytes after the data that unstuff() may write.
inline constexpr std::size_t kUnstuffSlack = 32;

struct Unstuffed {
  std::size_t size = 0;
  int marker = -1;           // the code after the 0xFF that ended the data; -1: the bytes ended first
  std::size_t consumed = 0;  // bytes of the scan that were looked at, up to the marker
};

// REQUIRES: `out` has room for scan.size() + kUnstuffSlack bytes.
Unstuffed unstuff(FileBytes scan_untrusted, std::uint8_t* out, Target target);

struct MarkerPlace {
  std::size_t at = 0;  // of its 0xFF; without a marker, the bytes that were looked at
  int code = -1;       // as in Unstuffed
};

// The marker that unstuff() stops at.
MarkerPlace find_marker(FileBytes scan_untrusted, Target target);

namespace reference {
Unstuffed unstuff(FileBytes scan_untrusted, std::uint8_t* out);
MarkerPlace find_marker(FileBytes scan_untrusted);
}  // namespace reference

}  // namespace millrace::kernels::jpeg
