// One line of a list (list_file.h).
#pragma once

#include "millrace/client.h"
#include "proto/base/result.h"

namespace millrace::cli {

// `line`: text that ends with a zero byte, and is overwritten. kInvalid: what is wrong with it. The path is as it stands
// there, absolute or not; offset and length are below 2^63 together.
Result<ListedFile> parse_list_line(char* line);

}  // namespace millrace::cli
