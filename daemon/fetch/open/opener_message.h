// The messages between the daemon and its opener as values, and as bytes (proto/shm/opener_wire.h draws them). Either
// side believes nothing of what the other one sends. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/shm/opener_wire.h"

namespace millrace {

using shm::OpenerWhat;

// The number of a request, and of the reply to it.
enum class OpenerNumber : std::uint64_t { kNone = 0 };
// By which the opener knows a client that was introduced to it.
enum class OpenerCaller : std::uint64_t { kNone = 0 };

struct IntroduceRequest {
  OpenerNumber number{};
};
struct OpenFilesRequest {
  OpenerNumber number{};
  OpenerCaller caller{};
  OpenerWhat what = OpenerWhat::kFile;
  std::vector<std::string_view> names;  // within the message's bytes
};
struct ReadSettingsRequest {
  OpenerNumber number{};
};
using OpenerRequestMessage = std::variant<IntroduceRequest, OpenFilesRequest, ReadSettingsRequest>;

std::vector<std::byte> to_bytes(const IntroduceRequest& request);
std::vector<std::byte> to_bytes(const ReadSettingsRequest& request);
// REQUIRES: 1 to kOpenerMostNames names, each of 1 to kOpenerLongestName bytes.
std::vector<std::byte> to_bytes(const OpenFilesRequest& request);

// kPrecondition: of another version; kInvalid: anything else that is no request, named by its field.
Result<OpenerRequestMessage> parse_opener_request(ByteView bytes_untrusted);
// Of a message that the above refuses, as far as it has one.
OpenerNumber number_of(ByteView bytes_untrusted);

// What became of one name.
struct OpenAnswer {
  std::optional<Error> error;  // none: well
  bool root_missing = false;   // says `error`
  bool descriptor = false;     // one goes with it
  std::uint32_t type = 0;      // kType: S_IFMT bits
};

struct OpenerReplyMessage {
  OpenerNumber number{};
  shm::OpenerReplyKind kind = shm::OpenerReplyKind::kRefused;
  OpenerCaller caller{};            // kIntroduced
  std::vector<OpenAnswer> answers;  // kOpened: one a name; kRefused: one, an error
};

// Texts that are too long are cut. REQUIRES: what the wire's comments say.
std::vector<std::byte> to_bytes(const OpenerReplyMessage& reply);

// kInternal: no reply, named by its field.
Result<OpenerReplyMessage> parse_opener_reply(ByteView bytes_untrusted);

}  // namespace millrace
