#include "daemon/fetch/open/opener_message.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "proto/base/printable.h"

namespace millrace {
namespace {

using shm::OpenerAnswer;
using shm::OpenerReply;
using shm::OpenerReplyKind;
using shm::OpenerRequest;
using shm::OpenerRequestKind;

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), first, first + text.size());
}

// What is left to read of a message.
class Rest {
 public:
  explicit Rest(ByteView bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> take() {
    T value{};
    if (bytes_.size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::optional<std::string_view> take_text(std::size_t size) {
    if (bytes_.size() < size) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  ByteView bytes_;
};

Error refused(const std::string& why) {
  return Error{Code::kInvalid, "opener: " + why};
}

Result<OpenFilesRequest> parse_open(const OpenerRequest& header, Rest rest) {
  OpenFilesRequest request{.number = OpenerNumber{header.number},
                           .caller = OpenerCaller{header.caller},
                           .what = static_cast<OpenerWhat>(header.what)};
  if (header.what < 1 || header.what > 3) return refused("what: there is no " + std::to_string(header.what));
  if (header.names < 1 || header.names > shm::kOpenerMostNames)
    return refused("names: 1 to " + std::to_string(shm::kOpenerMostNames) + ", not " + std::to_string(header.names));
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 0; i < header.names; ++i) {
    const std::optional<std::uint32_t> length = rest.take<std::uint32_t>();
    if (!length || *length < 1 || *length > shm::kOpenerLongestName) return refused("length of a name");
    lengths.push_back(*length);
  }
  for (const std::uint32_t length : lengths) {
    const std::optional<std::string_view> name = rest.take_text(length);
    if (!name) return refused("names: the message ends in one");
    request.names.push_back(*name);
  }
  if (!rest.empty()) return refused("bytes behind the names");
  return request;
}

// A request that has a number and nothing else.
std::vector<std::byte> bare(OpenerRequestKind kind, OpenerNumber number) {
  std::vector<std::byte> bytes;
  append(bytes, OpenerRequest{.magic = shm::kOpenerMagic,
                              .version = shm::kOpenerVersion,
                              .kind = static_cast<std::uint32_t>(kind),
                              .what = 0,
                              .number = static_cast<std::uint64_t>(number),
                              .caller = 0,
                              .names = 0,
                              .zero = 0});
  return bytes;
}

Error no_reply(const std::string& why) {
  return Error{Code::kInternal, "the opener's reply: " + why};
}

Result<OpenAnswer> parse_answer(const OpenerAnswer& wire, Rest& rest) {
  constexpr std::uint32_t kFlags = shm::kOpenerDescriptor | shm::kOpenerRootMissing;
  const bool well = wire.code == 0;
  const std::optional<std::string_view> text = rest.take_text(wire.text);
  if (!text || text->size() > shm::kOpenerLongestText) return no_reply("text");
  if ((wire.flags & ~kFlags) != 0) return no_reply("flags");
  if (wire.code > static_cast<std::uint32_t>(Code::kInternal)) return no_reply("code");
  OpenAnswer answer{.root_missing = (wire.flags & shm::kOpenerRootMissing) != 0,
                    .descriptor = (wire.flags & shm::kOpenerDescriptor) != 0,
                    .type = wire.type};
  if (!well) answer.error = Error{static_cast<Code>(wire.code), printable(*text)};
  const bool sound = well ? text->empty() && !answer.root_missing : !answer.descriptor && wire.type == 0;
  if (!sound) return no_reply("a code that does not go with its flags");
  return answer;
}

}  // namespace

std::vector<std::byte> to_bytes(const IntroduceRequest& request) {
  return bare(OpenerRequestKind::kIntroduce, request.number);
}

std::vector<std::byte> to_bytes(const ReadSettingsRequest& request) {
  return bare(OpenerRequestKind::kReadSettings, request.number);
}

std::vector<std::byte> to_bytes(const OpenFilesRequest& request) {
  std::vector<std::byte> bytes;
  append(bytes, OpenerRequest{.magic = shm::kOpenerMagic,
                              .version = shm::kOpenerVersion,
                              .kind = static_cast<std::uint32_t>(OpenerRequestKind::kOpen),
                              .what = static_cast<std::uint32_t>(request.what),
                              .number = static_cast<std::uint64_t>(request.number),
                              .caller = static_cast<std::uint64_t>(request.caller),
                              .names = static_cast<std::uint32_t>(request.names.size()),
                              .zero = 0});
  for (const std::string_view name : request.names) append(bytes, static_cast<std::uint32_t>(name.size()));
  for (const std::string_view name : request.names) append_text(bytes, name);
  return bytes;
}

Result<OpenerRequestMessage> parse_opener_request(ByteView bytes_untrusted) {
  Rest rest(bytes_untrusted);
  const std::optional<OpenerRequest> header = rest.take<OpenerRequest>();
  if (!header) return refused("a message of " + std::to_string(bytes_untrusted.size()) + " bytes, shorter than any");
  if (header->magic != shm::kOpenerMagic) return refused("magic: that was no message for an opener");
  if (header->version != shm::kOpenerVersion)
    return Error{Code::kPrecondition, "the opener speaks version " + std::to_string(shm::kOpenerVersion) +
                                          ", the daemon version " + std::to_string(header->version) +
                                          ": install and restart both of one version"};
  if (header->zero != 0) return refused("zero: must be 0");
  const bool is_bare = header->what == 0 && header->caller == 0 && header->names == 0 && rest.empty();
  switch (static_cast<OpenerRequestKind>(header->kind)) {
    case OpenerRequestKind::kIntroduce:
      if (!is_bare) return refused("an introduction has a number and nothing else");
      return OpenerRequestMessage(IntroduceRequest{OpenerNumber{header->number}});
    case OpenerRequestKind::kReadSettings:
      if (!is_bare) return refused("to have the settings read takes a number and nothing else");
      return OpenerRequestMessage(ReadSettingsRequest{OpenerNumber{header->number}});
    case OpenerRequestKind::kOpen: {
      MILLRACE_TRY(OpenFilesRequest request, parse_open(*header, rest));
      return OpenerRequestMessage(std::move(request));
    }
  }
  return refused("kind: there is no " + std::to_string(header->kind));
}

OpenerNumber number_of(ByteView bytes_untrusted) {
  const std::optional<OpenerRequest> header = Rest(bytes_untrusted).take<OpenerRequest>();
  return header && header->magic == shm::kOpenerMagic ? OpenerNumber{header->number} : OpenerNumber::kNone;
}

std::vector<std::byte> to_bytes(const OpenerReplyMessage& reply) {
  const auto text_of = [](const OpenAnswer& answer) {
    return answer.error ? std::string_view(answer.error->message).substr(0, shm::kOpenerLongestText)
                        : std::string_view();
  };
  std::vector<std::byte> bytes;
  append(bytes, OpenerReply{.magic = shm::kOpenerMagic,
                            .version = shm::kOpenerVersion,
                            .kind = static_cast<std::uint32_t>(reply.kind),
                            .answers = static_cast<std::uint32_t>(reply.answers.size()),
                            .number = static_cast<std::uint64_t>(reply.number),
                            .caller = static_cast<std::uint64_t>(reply.caller)});
  for (const OpenAnswer& answer : reply.answers)
    append(bytes, OpenerAnswer{.code = answer.error ? static_cast<std::uint32_t>(answer.error->code) : 0,
                               .flags = (answer.descriptor ? std::uint32_t{shm::kOpenerDescriptor} : 0) |
                                        (answer.root_missing ? std::uint32_t{shm::kOpenerRootMissing} : 0),
                               .type = answer.type,
                               .text = static_cast<std::uint32_t>(text_of(answer).size())});
  for (const OpenAnswer& answer : reply.answers) append_text(bytes, text_of(answer));
  return bytes;
}

Result<OpenerReplyMessage> parse_opener_reply(ByteView bytes_untrusted) {
  Rest rest(bytes_untrusted);
  const std::optional<OpenerReply> header = rest.take<OpenerReply>();
  if (!header || header->magic != shm::kOpenerMagic) return no_reply("magic");
  if (header->version != shm::kOpenerVersion) return no_reply("version: install and restart both of one version");
  if (header->kind < 1 || header->kind > 5) return no_reply("kind");
  OpenerReplyMessage reply{.number = OpenerNumber{header->number},
                           .kind = static_cast<OpenerReplyKind>(header->kind),
                           .caller = OpenerCaller{header->caller}};
  const bool introduced = reply.kind == OpenerReplyKind::kIntroduced;
  if (introduced != (header->caller != 0)) return no_reply("caller");
  std::uint32_t least = 0, most = 0;
  if (reply.kind == OpenerReplyKind::kOpened) least = 1, most = shm::kOpenerMostNames;
  if (reply.kind == OpenerReplyKind::kRefused) least = most = 1;
  if (header->answers < least || header->answers > most) return no_reply("answers");
  std::vector<OpenerAnswer> wires;
  for (std::uint32_t i = 0; i < header->answers; ++i) {
    const std::optional<OpenerAnswer> wire = rest.take<OpenerAnswer>();
    if (!wire) return no_reply("it ends in an answer");
    wires.push_back(*wire);
  }
  for (const OpenerAnswer& wire : wires) {
    MILLRACE_TRY(OpenAnswer answer, parse_answer(wire, rest));
    reply.answers.push_back(std::move(answer));
  }
  if (!rest.empty()) return no_reply("bytes behind the texts");
  if (reply.kind == OpenerReplyKind::kRefused && !reply.answers.front().error)
    return no_reply("refused without a word");
  return reply;
}

}  // namespace millrace
