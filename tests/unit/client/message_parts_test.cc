#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "client/src/wire/messages.h"

namespace millrace {
namespace {

std::vector<std::byte> image_of(std::size_t bytes, int seed) {
  std::vector<std::byte> image(bytes);
  for (std::size_t i = 0; i < bytes; ++i) image[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  return image;
}

std::uint32_t length_of(const std::string& frame) {
  std::uint32_t length = 0;
  std::memcpy(&length, frame.data(), sizeof length);
  return length;
}

TEST_CASE("what large images were never copied into says the same", "[client]") {
  const std::vector<std::vector<std::byte>> images{image_of(100, 1), image_of(16'384, 2), image_of(300'000, 3),
                                                   image_of(16'383, 4)};
  BatchRequest request;
  for (const auto& image : images) request.samples.push_back(Sample{Encoded{image}});
  request.samples.insert(request.samples.begin() + 2, Sample{Path{"/a/b.jpg"}});
  request.samples[1].id = 7;
  request.samples[1].label = -3;
  request.samples[3].box = Box{1, 2, 3, 4};
  request.seed = 11;
  v1::ClientMessage message;
  *message.mutable_submit() = to_message(5, request, Recipe::train(32));
  const std::vector<LargeImage> large = large_images(request);
  REQUIRE(large.size() == 2);
  v1::ClientMessage whole = message;
  for (const LargeImage& image : large)
    whole.mutable_submit()->mutable_samples(image.sample)->set_encoded(image.bytes.data(), image.bytes.size());
  REQUIRE(whole.submit().samples(3).encoded().size() == 300'000);
  const MessageParts parts(message, large);

  SECTION("as a message") {
    const std::string frame = parts.copy(0);
    REQUIRE(frame.size() == parts.size());
    REQUIRE(length_of(frame) == frame.size() - sizeof(std::uint32_t));
    v1::ClientMessage parsed;
    REQUIRE(parsed.ParseFromString(frame.substr(sizeof(std::uint32_t))));
    CHECK(parsed.SerializeAsString() == whole.SerializeAsString());
  }
  SECTION("from any place on") {
    const std::string frame = parts.copy(0);
    for (std::size_t begin = 0; begin <= frame.size(); begin += begin < 20'000 ? 37 : 9'973)
      CHECK(parts.copy(begin) == frame.substr(begin));
    CHECK(parts.copy(frame.size()).empty());
  }
  SECTION("in few pieces, of which none is a copy") {
    const std::vector<iovec> pieces = parts.pieces(0, 100);
    CHECK(pieces.size() == 5);  // what is before, between and behind the two images
    CHECK(std::any_of(pieces.begin(), pieces.end(),
                      [&](const iovec& piece) { return piece.iov_base == images[2].data(); }));
    CHECK(parts.pieces(0, 2).size() == 2);
  }
}

TEST_CASE("a message without large images is one piece", "[client]") {
  v1::ClientMessage message;
  message.mutable_cancel()->set_batch_id(9);
  const MessageParts parts(message, {});
  REQUIRE(parts.pieces(0, 10).size() == 1);
  v1::ClientMessage parsed;
  REQUIRE(parsed.ParseFromString(parts.copy(sizeof(std::uint32_t))));
  CHECK(parsed.cancel().batch_id() == 9);
}

}  // namespace
}  // namespace millrace
