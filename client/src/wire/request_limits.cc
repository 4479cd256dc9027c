#include "client/src/wire/request_limits.h"

namespace millrace {
inline namespace client {

RequestLimits from_message(const v1::Limits& told) {
  RequestLimits limits;
  if (told.has_message_bytes()) limits.message = Bytes{told.message_bytes()};
  if (told.has_inline_bytes()) limits.inline_bytes = Bytes{told.inline_bytes()};
  if (told.has_samples()) limits.samples = told.samples();
  if (told.has_ring_bytes()) limits.ring = Bytes{told.ring_bytes()};
  if (told.has_files_named()) limits.files_named = told.files_named();
  return limits;
}

Result<void> check_samples(const BatchRequest& request, const RequestLimits& limits) {
  if (limits.samples && request.samples.size() > *limits.samples)
    return Error{Code::kInvalid, "submit: " + std::to_string(request.samples.size()) +
                                     " samples in one batch, the daemon takes " + std::to_string(*limits.samples) +
                                     " (limits.samples in its settings); split the batch"};
  Bytes encoded;
  for (const Sample& sample : request.samples) {
    if (const auto* bytes = std::get_if<Encoded>(&sample.source)) encoded += Bytes{bytes->bytes.size()};
  }
  if (!limits.inline_bytes || encoded <= *limits.inline_bytes) return {};
  return Error{Code::kInvalid, "submit: " + to_text_beside(encoded, *limits.inline_bytes) +
                                   " of encoded bytes in one batch, the daemon takes " +
                                   to_text_beside(*limits.inline_bytes, encoded) +
                                   " in a message (limits.inline_message in its settings); write them into an "
                                   "InputRing (Session::open_ring)"};
}

Result<void> check_message(const v1::ClientMessage& message, std::span<const LargeImage> images,
                           const RequestLimits& limits) {
  Bytes size{message.ByteSizeLong()};
  for (const LargeImage& image : images) size += Bytes{image.bytes.size()};
  if (size <= limits.message) return {};
  return Error{Code::kInvalid, "submit: the request has " + to_text_beside(size, limits.message) +
                                   ", the daemon takes messages of at most " + to_text_beside(limits.message, size) +
                                   "; split the batch, or open a dataset"};
}

}  // namespace client
}  // namespace millrace
