// The session's own answers as messages; results of batches are publish/messages.h. Pure functions, thread-safe.
#pragma once

#include "daemon/model/files/dataset.h"
#include "daemon/model/limits.h"
#include "daemon/serve/parse/client_request.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/result.h"

namespace millrace {

// Of OpenSessionReply: what clients are told before they ask for anything.
v1::Limits limits_message(const Limits& limits);

v1::ServerMessage attached_message(SessionId id);
// `slot_bytes`: of a batch that does not fit its slot, what it needs.
v1::ServerMessage slots_withdrawn_message(std::uint32_t left, const Error& why);

v1::ServerMessage failed_message(const Subject& subject, const Error& error, Bytes slot_bytes = {});

v1::ServerMessage dataset_progress_message(DatasetId id, std::uint64_t files);

v1::ServerMessage sample_files_message(const NameFilesRequest& question);

// kExhausted: more class names than one message holds.
Result<v1::ServerMessage> dataset_opened_message(DatasetId id, const Dataset& dataset);

}  // namespace millrace
