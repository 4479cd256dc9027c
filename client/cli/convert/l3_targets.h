// Pictures without loss to L3 files, and L3 files to PNG: the same samples, palette, orientation and metadata. Thread-safe:
// plain functions; what they make is Thread-bound(its owner).
#pragma once

#include <memory>

#include "client/cli/convert/target.h"

namespace millrace::cli {

std::unique_ptr<ConvertTarget> create_l3_target(const TargetOptions& options);
std::unique_ptr<ConvertTarget> create_png_target(const TargetOptions& options);

}  // namespace millrace::cli
