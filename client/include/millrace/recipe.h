// What to make of an encoded image and what comes out: Recipe and its parts, and what a batch chooses beside it. The
// one definition is the vocabulary that library and daemon share (millrace/base/recipe.h and batch_choices.h where
// libmillrace is installed).
#pragma once

#include <cstdint>
#include <optional>

#include "millrace/export.h"
#include "millrace/result.h"
#include "proto/base/batch_choices.h"
#include "proto/base/recipe.h"

namespace millrace {
inline namespace client {

// Room for `samples` images and their records in one slot; nullopt where it depends on the images.
MILLRACE_API std::optional<Bytes> slot_bytes_for(const Recipe& recipe, std::uint32_t samples);

}  // namespace client
}  // namespace millrace
