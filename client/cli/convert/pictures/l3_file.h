// L3 files to StoredPictures, of both versions. Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <vector>

#include "client/cli/convert/pictures/stored_picture.h"
#include "proto/base/result.h"

namespace millrace::cli {

// Grows the file by bytes that decoders may load. Error: a sentence that goes on from the file's path.
Result<void> read_l3(std::vector<std::uint8_t>& file_untrusted, StoredPicture& picture);

}  // namespace millrace::cli
