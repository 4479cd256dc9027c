// What a lane and its decoder process say to each other: one message each way for an image, over a socket pair of whole
// messages; and the memory that both have mapped, in which the image lies.
//
//   lane                                          process
//   socket pair, memfd, exec ───────────────────▶
//   opens its statm, which later nobody can
//   DecoderRequest, empty ──────────────────────▶ sandbox
//                             ◀── DecoderReply ── ready, or why not
//   the file into the memory
//   DecoderRequest ─────────────────────────────▶ decodes, rows into the memory
//                             ◀── DecoderReply ── where they are
//   closes its end ─────────────────────────────▶ ends
//
//   memory:  0           room_at          room_at + room
//            │ file, 0…  │ pixels, or a packed form │
//
// The process has read hostile bytes: a reply is to be believed as little as they are. Both programs are of one build;
// kWireVersion tells where they are not. Values.
#pragma once

#include <cstdint>
#include <type_traits>

namespace millrace {

inline constexpr int kDecoderChannel = 3, kDecoderMemory = 4, kDecoderProgram = 5;  // its descriptors when it begins
inline constexpr std::uint32_t kWireVersion = 4;

enum class DecoderWork : std::uint8_t { kDecode, kPack };

struct DecoderRequest {
  std::uint64_t file_bytes = 0;  // EncodedBytes::kReadSlack zero bytes follow
  std::uint64_t room_at = 0, room = 0;
  std::uint64_t codec = 0;       // DecodeRequest's
  std::int64_t deadline_ns = 0;  // of the steady clock, which all processes share
  std::int32_t width = 0, height = 0;
  std::int32_t box_left = 0, box_top = 0, box_width = 0, box_height = 0;
  std::int32_t reduction = 1;
  DecoderWork work = DecoderWork::kDecode;
  std::uint8_t format = 0;   // ImageFormat
  std::uint8_t target = 0;   // kernels::Target, one that the processor has
  std::uint8_t indices = 0;  // 1: DecodeRequest's
};

struct DecoderReply {
  std::uint32_t version = kWireVersion;
  std::uint32_t code = 0;  // 0: done; else a Code, and `text` says more
  std::uint64_t at = 0;    // of the first pixel, or of the packed form
  std::uint64_t bytes = 0;
  std::int64_t stride = 0;
  std::int32_t channels = 0;
  char text[212] = {};
};

static_assert(sizeof(DecoderRequest) == 72 && std::is_trivially_copyable_v<DecoderRequest>);
static_assert(sizeof(DecoderReply) == 248 && std::is_trivially_copyable_v<DecoderReply>);

}  // namespace millrace
