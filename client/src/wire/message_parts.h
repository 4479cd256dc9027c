// A serialised ClientMessage, with its length before it, whose large images were never copied into it.
//
// Bytes of protobuf messages that stand one behind the other are the bytes of their union: repeated fields go on, and the
// parts of one submessage are merged (protobuf.dev, "Encoding", Last One Wins). So every sample is a ClientMessage of its
// own behind the first, and its image stands in it as the caller has it. Values; they refer to the images.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/v1/session.pb.h"

namespace millrace {
inline namespace client {

// The `encoded` of a sample of a Submit, which has no source there. The caller's, who waits meanwhile.
struct LargeImage {
  static constexpr std::size_t kFrom = 16'384;  // bytes from which leaving it where it is pays

  int sample = 0;
  std::span<const std::byte> bytes{};
};

class MessageParts {
 public:
  // `images`: of different samples, in their order.
  MessageParts(v1::ClientMessage message, std::span<const LargeImage> images);

  std::size_t size() const { return size_; }  // bytes, the length's too

  // What stands behind the first `begin` bytes: for sendmsg(), as far as `most` pieces go; or as bytes.
  std::vector<iovec> pieces(std::size_t begin, std::size_t most) const;
  std::string copy(std::size_t begin) const;

 private:
  struct Piece {
    std::size_t at = 0;                  // of own_
    std::span<const std::byte> image{};  // else this
    std::size_t length = 0;

    const char* data(const std::string& own) const {
      return image.empty() ? own.data() + at : reinterpret_cast<const char*>(image.data());
    }
  };

  void end_own(std::size_t begin);
  void append_sample(const v1::Sample& sample, std::span<const std::byte> image);

  std::string own_;
  std::vector<Piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace client
}  // namespace millrace
