// Submit becomes a BatchRequest. Pure function, thread-safe.
#pragma once

#include <chrono>

#include "daemon/model/batch_request.h"
#include "daemon/model/limits.h"
#include "daemon/serve/parse/dataset_table.h"
#include "millrace/v1/batch.pb.h"
#include "proto/base/result.h"

namespace millrace {

// The strings of `request_untrusted` are moved out of it. `now`: when it arrived, from which its deadline counts.
// Errors name the field: kInvalid; kNotFound for a dataset that is not open. A sample's content is not looked at.
Result<BatchRequest> parse_submit(v1::Submit& request_untrusted, const Limits& limits, const DatasetTable& datasets,
                                  std::chrono::steady_clock::time_point now);

// Shared with the other messages that have such fields.
Result<void> check_path(std::string_view field, std::string_view path_untrusted, const Limits& limits);
Result<void> check_backend(std::string_view backend_untrusted);

}  // namespace millrace
