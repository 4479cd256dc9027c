// Results as messages. Pure functions, thread-safe. File names are bytes: SampleError.path holds them as they are; text
// that names a file is made printable (proto/base/printable.h), for protobuf strings are UTF-8.
#pragma once

#include <string>

#include "daemon/model/batch_result.h"
#include "millrace/v1/session.pb.h"

namespace millrace {

// One message carries at most so many failures of samples, and so many bytes of them; one more entry then says how many
// are left out.
inline constexpr std::size_t kMaxErrors = 1'000;
inline constexpr std::size_t kMaxErrorBytes = 1'000'000;

v1::ServerMessage completed_message(const CompletedBatch& batch);
v1::ServerMessage failed_message(const FailedBatch& batch);
v1::ServerMessage epoch_started_message(EpochStreamId stream, std::uint64_t batches, std::uint64_t first_batch,
                                        std::uint64_t samples);
v1::ServerMessage epoch_failed_message(EpochStreamId stream, const Error& error);
v1::ServerMessage epoch_given_up_message(EpochStreamId stream, const Error& error, const SampleFailure& example);
v1::ServerMessage epoch_ended_message(EpochStreamId stream);

// The token that resumes the epoch after `mark`.
std::string position_token(const EpochMark& mark);

}  // namespace millrace
