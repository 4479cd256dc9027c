#include "daemon/opener/connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "daemon/opener/as_caller.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
namespace {

using shm::OpenerReplyKind;

OpenerReplyMessage refusal(OpenerNumber number, Error why) {
  return {.number = number, .kind = OpenerReplyKind::kRefused, .answers = {{.error = std::move(why)}}};
}

// Half of the daemon's patience: names that take long must not make the answer to all of them late, for then the whole
// root passes for hung. The last one begun may take half a second more (as_caller.cc).
constexpr std::chrono::milliseconds kLongestAtOnce{1'000};

AsCaller::Opened asked_again() {
  return {.answer = {.error = Error{Code::kUnavailable,
                                    "files beneath that root take long to open: this one is asked for again"}},
          .fd = {}};
}

}  // namespace

OpenerConnection::OpenerConnection(const Shared& shared, ConnectionNumber number, UniqueFd socket)
    : shared_(shared), number_(number), socket_(std::move(socket)) {}

void OpenerConnection::end() const {
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void OpenerConnection::serve() {
  std::vector<std::byte> request(shm::kOpenerLargestRequest + 1);  // one more shows that it is too long
  while (true) {
    ReceivedMessage received = receive_message(socket_.get(), request, 1);
    if (received.bytes < 0 && errno == EINTR) continue;
    if (received.bytes <= 0) return;
    const ByteView bytes = ByteView(request).first(static_cast<std::size_t>(received.bytes));
    if (!send(answer(bytes, std::move(received.descriptors)))) return;
  }
}

OpenerConnection::Reply OpenerConnection::answer(ByteView request_untrusted, std::vector<UniqueFd> descriptors) {
  const Result<OpenerRequestMessage> request = parse_opener_request(request_untrusted);
  if (!request) return {refusal(number_of(request_untrusted), request.error()), {}};
  if (const auto* const introduction = std::get_if<IntroduceRequest>(&*request))
    return introduce(introduction->number, std::move(descriptors));
  if (const auto* const settings = std::get_if<ReadSettingsRequest>(&*request)) return read_settings(settings->number);
  return open(std::get<OpenFilesRequest>(*request));
}

OpenerConnection::Reply OpenerConnection::read_settings(OpenerNumber number) {
  if (const Result<void> read = shared_.roots.read_again(); !read) return {refusal(number, read.error()), {}};
  return {{.number = number, .kind = OpenerReplyKind::kSettingsRead, .answers = {}}, {}};
}

OpenerConnection::Reply OpenerConnection::introduce(OpenerNumber number, std::vector<UniqueFd> descriptors) {
  if (descriptors.size() != 1)
    return {refusal(number, Error{Code::kUnavailable, "introduction: one descriptor must come along, not " +
                                                          std::to_string(descriptors.size())}),
            {}};
  Result<Caller> client = client_of(descriptors[0].get(), shared_.rules, shared_.suspicion);
  if (!client) return {refusal(number, std::move(client).error()), {}};
  const Result<OpenerCaller> known = shared_.callers.add(number_, *std::move(client), std::move(descriptors[0]));
  if (!known) return {refusal(number, known.error()), {}};
  return {{.number = number, .kind = OpenerReplyKind::kIntroduced, .caller = *known, .answers = {}}, {}};
}

OpenerConnection::Reply OpenerConnection::open(const OpenFilesRequest& request) {
  Reply reply{{.number = request.number, .kind = OpenerReplyKind::kUnknownCaller, .answers = {}}, {}};
  const std::shared_ptr<const Caller> caller = shared_.callers.find(request.caller);
  if (!caller) return reply;
  if (const Result<void> worn = credentials_.put_on(caller); !worn) return {refusal(request.number, worn.error()), {}};
  reply.message.kind = OpenerReplyKind::kOpened;
  const std::shared_ptr<const std::vector<RootName>> roots = shared_.roots.now();
  AsCaller opener(*roots, shared_.kerberos);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string_view name : request.names) {
    const bool late = std::chrono::steady_clock::now() - begin > kLongestAtOnce;
    AsCaller::Opened opened = late ? asked_again() : opener.open(name, request.what);
    if (opened.answer.descriptor) reply.descriptors.push_back(std::move(opened.fd));
    reply.message.answers.push_back(std::move(opened.answer));
  }
  return reply;
}

// false: the daemon is gone.
bool OpenerConnection::send(Reply reply) const {
  std::vector<int> descriptors;
  for (const UniqueFd& fd : reply.descriptors) descriptors.push_back(fd.get());
  if (send_message(socket_.get(), to_bytes(reply.message), descriptors) >= 0) return true;
  const bool too_many = errno == ETOOMANYREFS || errno == ENOMEM || errno == ENOBUFS;
  if (!too_many || descriptors.empty()) return false;
  const Error want{Code::kUnavailable, "the opener could not pass what it opened: too many descriptors under way"};
  for (OpenAnswer& answer : reply.message.answers) {
    if (answer.descriptor) answer = OpenAnswer{.error = want};
  }
  return send_message(socket_.get(), to_bytes(reply.message), {}) >= 0;
}

}  // namespace millrace
