// JPEG files to packed files, and back: the same bytes. Thread-safe: plain functions; what they make is Thread-bound(its
// owner).
#pragma once

#include <memory>

#include "client/cli/convert/target.h"

namespace millrace::cli {

std::unique_ptr<ConvertTarget> create_packed_target(const TargetOptions&);
std::unique_ptr<ConvertTarget> create_jpeg_target(const TargetOptions&);

}  // namespace millrace::cli
