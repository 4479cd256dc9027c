// Files that are no samples, as messages and back. Pure functions, thread-safe.
#pragma once

#include "millrace/v1/dataset.pb.h"
#include "proto/base/skipped_files.h"

namespace millrace {

v1::SkippedFiles to_message(const SkippedFiles& files);
// A reason that a newer daemon has added is kNotAsked.
SkippedFiles from_message(const v1::SkippedFiles& files);

}  // namespace millrace
