// Public values to messages of proto/rpc and back. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "client/src/wire/message_parts.h"
#include "millrace/batch.h"
#include "millrace/epoch.h"
#include "millrace/v1/session.pb.h"

namespace millrace {
inline namespace client {

// `session_recipe`: for a request that brings none.
// Without the large images, whose samples have no source in it: large_images().
v1::Submit to_message(std::uint64_t batch_id, const BatchRequest& request, const Recipe& session_recipe);
std::vector<LargeImage> large_images(const BatchRequest& request);
v1::StartEpoch to_message(std::uint64_t stream_id, std::uint64_t dataset_id, const EpochOptions& options,
                          const Recipe& session_recipe, std::uint32_t session_batch);

// kInvalid: "*" beside other extensions.
Result<v1::OpenDataset> to_message(std::uint64_t dataset_id, const std::string& folder, const DatasetOptions& options);

// kInvalid, if `path` is a URL: those are not read.
Result<void> check_no_url(std::string_view path);

std::vector<SampleError> from_message(const google::protobuf::RepeatedPtrField<v1::SampleError>& errors);

}  // namespace client
}  // namespace millrace
