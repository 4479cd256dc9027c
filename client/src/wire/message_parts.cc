#include "client/src/wire/message_parts.h"

#include <algorithm>

namespace millrace {
inline namespace client {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

char bytes_tag(int field) {
  return static_cast<char>(field << 3 | 2);  // a length, and so many bytes
}

std::string with_length(int field, std::size_t length) {
  std::string text(1, bytes_tag(field));
  for (; length > 0x7F; length >>= 7) text += static_cast<char>((length & 0x7F) | 0x80);
  return text += static_cast<char>(length);
}

}  // namespace

MessageParts::MessageParts(v1::ClientMessage message, std::span<const LargeImage> images) : own_(kLengthBytes, '\0') {
  google::protobuf::RepeatedPtrField<v1::Sample> samples;
  if (!images.empty()) samples.Swap(message.mutable_submit()->mutable_samples());
  message.AppendToString(&own_);
  end_own(0);
  for (int i = 0; i < samples.size(); ++i) {
    const bool is_large = !images.empty() && images.front().sample == i;
    append_sample(samples[i], is_large ? images.front().bytes : std::span<const std::byte>());
    if (is_large) images = images.subspan(1);
  }
  const auto length = static_cast<std::uint32_t>(size_ - kLengthBytes);
  for (std::size_t i = 0; i < kLengthBytes; ++i) own_[i] = static_cast<char>(length >> (8 * i));
}

void MessageParts::append_sample(const v1::Sample& sample, std::span<const std::byte> image) {
  const std::size_t begin = own_.size();
  std::string fields = sample.SerializeAsString();
  if (!image.empty()) fields += with_length(v1::Sample::kEncodedFieldNumber, image.size());
  const std::size_t length = fields.size() + image.size();
  const std::string entry = with_length(v1::Submit::kSamplesFieldNumber, length);
  own_ += with_length(v1::ClientMessage::kSubmitFieldNumber, entry.size() + length);
  own_ += entry;
  own_ += fields;
  end_own(begin);
  if (image.empty()) return;
  pieces_.push_back({0, image, image.size()});
  size_ += image.size();
}

void MessageParts::end_own(std::size_t begin) {
  const std::size_t length = own_.size() - begin;
  size_ += length;
  if (!pieces_.empty() && pieces_.back().image.empty()) {
    pieces_.back().length += length;
  } else {
    pieces_.push_back({begin, {}, length});
  }
}

std::vector<iovec> MessageParts::pieces(std::size_t begin, std::size_t most) const {
  std::vector<iovec> found;
  for (const Piece& piece : pieces_) {
    const std::size_t skipped = std::min(begin, piece.length);
    begin -= skipped;
    if (skipped == piece.length) continue;
    if (found.size() == most) break;
    // sendmsg() writes to none of them.
    found.push_back({const_cast<char*>(piece.data(own_)) + skipped, piece.length - skipped});
  }
  return found;
}

std::string MessageParts::copy(std::size_t begin) const {
  std::string bytes;
  bytes.reserve(size_ - begin);
  for (const iovec& piece : pieces(begin, pieces_.size()))
    bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return bytes;
}

}  // namespace client
}  // namespace millrace
