// The size that an image file's header says, as the daemon finds it. Thread-safe: a plain function.
#pragma once

#include <limits>
#include <optional>

#include "daemon/formats/probe.h"
#include "kernels/base/image_view.h"

namespace millrace {

// nullopt: no image, or none whose header is good.
inline std::optional<kernels::Size> stored_size(ByteView file) {
  const SampleLimits any{.pixels = std::numeric_limits<std::uint64_t>::max(),
                         .side = std::numeric_limits<std::int32_t>::max()};
  const Result<SourceInfo> info = probe_image(file, any, UseOrientation::kNo);
  if (!info) return std::nullopt;
  return kernels::Size{static_cast<std::int32_t>(info->stored.width), static_cast<std::int32_t>(info->stored.height)};
}

}  // namespace millrace
