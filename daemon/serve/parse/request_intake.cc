#include "daemon/serve/parse/request_intake.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/pipeline/batch/request_room.h"
#include "daemon/serve/parse/parse_message.h"

namespace millrace {
namespace {

constexpr Bytes kKept = 64_KiB;
constexpr std::uint64_t kParsedInAnyCase = 4'096;  // samples, so that their refusal says how many they are

using google::protobuf::io::CodedInputStream;

// As they stand in the bytes: number << 3 | wire type (protobuf.dev, "Encoding").
constexpr std::uint32_t tag_of(int number, std::uint32_t wire_type) {
  return static_cast<std::uint32_t>(number) << 3U | wire_type;
}
constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;
constexpr std::uint32_t kSubmit = tag_of(v1::ClientMessage::kSubmitFieldNumber, kLength),
                        kBatchId = tag_of(v1::Submit::kBatchIdFieldNumber, kVarint),
                        kSamples = tag_of(v1::Submit::kSamplesFieldNumber, kLength),
                        kEncoded = tag_of(v1::Sample::kEncodedFieldNumber, kLength);

CodedInputStream reader_of(ByteView bytes) {
  return CodedInputStream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
}

// false: they are no fields; parsing will say so.
bool skip(CodedInputStream& in, std::uint32_t tag) {
  std::uint64_t number = 0;
  std::uint32_t length = 0;
  switch (tag & 7U) {
    case kVarint:
      return in.ReadVarint64(&number);
    case kFixed64:
      return in.Skip(8);
    case kLength:
      return in.ReadVarint32(&length) && in.Skip(static_cast<int>(length));
    case kFixed32:
      return in.Skip(4);
    default:
      return false;
  }
}

// Calls `field` with the tag of each field of a submessage whose length comes next; it reads the rest, or returns false.
template <class Field>
bool each_field(CodedInputStream& in, const Field& field) {
  std::uint32_t length = 0;
  if (!in.ReadVarint32(&length) || length > static_cast<std::uint32_t>(kMessageMost.count)) return false;
  const CodedInputStream::Limit outside = in.PushLimit(static_cast<int>(length));
  while (const std::uint32_t tag = in.ReadTag())
    if (!field(tag)) return false;
  in.PopLimit(outside);
  return true;
}

// A Submit with more samples than `most`: its batch, as far as it is known by then.
std::optional<BatchId> batch_with_more_samples(ByteView bytes, std::uint64_t most) {
  CodedInputStream in = reader_of(bytes);
  std::uint64_t samples = 0, batch = 0;
  const auto in_submit = [&](std::uint32_t tag) {
    if (tag == kBatchId) return in.ReadVarint64(&batch);
    samples += tag == kSamples ? 1 : 0;
    return samples <= most && skip(in, tag);
  };
  while (const std::uint32_t tag = in.ReadTag())
    if (!(tag == kSubmit ? each_field(in, in_submit) : skip(in, tag))) break;
  return samples > most ? std::optional(BatchId{batch}) : std::nullopt;
}

TakenIn with_room(v1::ClientMessage& message_untrusted, const Limits& limits, const DatasetTable& datasets,
                  Account* account) {
  TakenIn taken{parse_message(message_untrusted, limits, datasets, std::chrono::steady_clock::now()), {}};
  const auto* batch = std::get_if<BatchRequest>(&taken.request);
  if (account == nullptr || batch == nullptr) return taken;
  Result<Charge> room = account->charge(Resource::kRequests, room_for(*batch));
  if (room) {
    taken.room = *std::move(room);
  } else {
    taken.request = RefusedRequest{batch->id, room.error()};
  }
  return taken;
}

}  // namespace

std::optional<TakenIn> take_in(ByteView bytes_untrusted, v1::ClientMessage& message, const Limits& limits,
                               const DatasetTable& datasets, Account* account) {
  const std::uint64_t most = std::max<std::uint64_t>(limits.batch.samples, kParsedInAnyCase);
  if (const auto batch = batch_with_more_samples(bytes_untrusted, most)) {
    return TakenIn{RefusedRequest{*batch, Error{Code::kInvalid, "samples: must be at most " +
                                                                    std::to_string(limits.batch.samples) +
                                                                    " (limits.samples), are more"}},
                   {}};
  }
  if (!message.ParseFromArray(bytes_untrusted.data(), static_cast<int>(bytes_untrusted.size()))) return std::nullopt;
  return with_room(message, limits, datasets, account);
}

std::size_t bytes_beside_images(ByteView bytes_untrusted, std::size_t most) {
  CodedInputStream in = reader_of(bytes_untrusted);
  std::size_t images = 0;
  const auto looked_at = [&] { return static_cast<std::size_t>(in.CurrentPosition()) - images; };
  const auto in_sample = [&](std::uint32_t tag) {
    if (looked_at() > most) return false;
    const int begin = in.CurrentPosition();
    if (!skip(in, tag)) return false;
    if (tag == kEncoded) images += static_cast<std::size_t>(in.CurrentPosition() - begin);
    return true;
  };
  const auto in_submit = [&](std::uint32_t tag) {
    if (looked_at() > most) return false;
    return tag == kSamples ? each_field(in, in_sample) : skip(in, tag);
  };
  while (const std::uint32_t tag = in.ReadTag())
    if (looked_at() > most || !(tag == kSubmit ? each_field(in, in_submit) : skip(in, tag))) break;
  return bytes_untrusted.size() - images;
}

void empty_for_next(v1::ClientMessage& message, Bytes bytes) {
  if (bytes <= kKept) {
    message.Clear();
  } else {
    message = v1::ClientMessage();
  }
}

Error no_message() {
  return Error{Code::kInvalid, "what came is no ClientMessage of millrace.v1; see proto/rpc/millrace/v1/session.proto"};
}

}  // namespace millrace
