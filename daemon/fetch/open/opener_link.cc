#include "daemon/fetch/open/opener_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "daemon/observe/log.h"
#include "proto/base/printable.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
namespace {

using shm::OpenerReplyKind;

constexpr int kAttempts = 3;  // an opener that is started anew knows nobody; seldom it is while it is asked
constexpr std::chrono::milliseconds kBetweenOpenerLooks{500};
constexpr std::chrono::seconds kBetweenLines{10};

std::int64_t milliseconds_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Error want(const std::string& why) {
  return Error{Code::kUnavailable, why};
}

// What an opener that refuses a request means to the caller. What the client cannot help is the daemon's want.
Error refusal_of(const OpenerReplyMessage& reply) {
  const Error& error = *reply.answers.front().error;
  switch (error.code) {
    case Code::kDenied:
      return error;
    case Code::kInvalid:  // no introduction, it says; as when the two read different settings
      return Error{Code::kDenied, "the daemon's opener does not know you: " + error.message};
    default:
      return want("the opener: " + error.message);
  }
}

}  // namespace

OpenerLink::OpenerLink(Options options)
    : options_(std::move(options)),
      found_(!options_.once_there),
      introductions_(options_.socket, options_.introductions, options_.patience) {}

OpenerLink::~OpenerLink() = default;

// Never removed: an administrator changes the roots, and not often.
OpenerLink::Root& OpenerLink::root_of(const std::string& name) {
  MutexLock lock(mutex_);
  return roots_.try_emplace(name, options_).first->second;
}

bool OpenerLink::serves() {
  if (found_.load(std::memory_order_relaxed)) return true;
  const std::int64_t now = milliseconds_now();
  std::int64_t looked = looked_.load(std::memory_order_relaxed);
  if (looked != 0 && now - looked < kBetweenOpenerLooks.count()) return false;
  if (!looked_.compare_exchange_strong(looked, now, std::memory_order_relaxed)) return false;
  if (::access(options_.socket.c_str(), R_OK | W_OK) != 0) return false;
  if (!found_.exchange(true, std::memory_order_relaxed))
    log_info("clients' files are opened by the opener at " + printable(options_.socket) + " from now on");
  return true;
}

// A line when it stops answering and one when it answers again, a pair every ten seconds at the most.
void OpenerLink::Root::note(const Error* trouble) {
  const auto now = std::chrono::steady_clock::now();
  bool say = false;
  {
    MutexLock lock(mutex);
    if (silent == (trouble != nullptr)) return;
    silent = trouble != nullptr;
    say = silent ? now >= next_line : said;
    said = silent && say;
    if (said) next_line = now + kBetweenLines;
  }
  if (say && trouble != nullptr) log_warning("clients' files have to wait: " + trouble->message);
  if (say && trouble == nullptr) log_info("the opener answers again");
}

Result<OpenerLink::Received> OpenerLink::exchange(OpenerChannels& channels, std::span<const std::byte> request,
                                                  OpenerNumber number, std::span<const int> descriptors) {
  std::vector<std::byte> bytes = room_for_reply();
  // Idle connections to an opener that has ended are broken, each of them.
  for (std::size_t attempt = 0; attempt <= options_.connections; ++attempt) {
    MILLRACE_TRY(OpenerChannels::Channel* const channel, channels.take());
    const bool sent = send_message(channel->socket.get(), request, descriptors) >= 0;
    if (!sent && (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM)) {
      channels.give_back(channel, OpenerNumber::kNone);
      return want("too many descriptors are under way to the opener");
    }
    ReceivedMessage received;
    const bool came = sent && wait_for_reply(channel->socket.get(), options_.patience);
    if (came) received = receive_message(channel->socket.get(), bytes, shm::kOpenerMostNames, MSG_DONTWAIT);
    if (sent && !came) {
      channels.give_back(channel, number);
      return want(
          "the opener does not answer: the file server of that root may hang, or the opener does not start "
          "(systemctl status millrace-opener)");
    }
    if (received.bytes <= 0) {
      channels.drop(channel);
      continue;
    }
    Result<OpenerReplyMessage> reply =
        parse_opener_reply(ByteView(bytes).first(static_cast<std::size_t>(received.bytes)));
    if (reply && reply->number == number) {
      channels.give_back(channel, OpenerNumber::kNone);
      return Received{*std::move(reply), std::move(received.descriptors)};
    }
    channels.drop(channel);
    return want(reply ? "the opener's reply is to another request" : reply.error().message);
  }
  return want("the opener at " + printable(options_.socket) + " ends its connections");
}

Result<void> OpenerLink::read_settings() {
  const OpenerNumber number{next_number_.fetch_add(1, std::memory_order_relaxed)};
  MILLRACE_TRY(const Received reply, exchange(introductions_, to_bytes(ReadSettingsRequest{number}), number, {}));
  told_.store(true, std::memory_order_relaxed);
  if (reply.message.kind == OpenerReplyKind::kSettingsRead) return {};
  if (reply.message.kind != OpenerReplyKind::kRefused) return want("the opener's reply is not to reading the settings");
  return want("the opener has not read them: " + reply.message.answers.front().error->message);
}

Result<OpenerCaller> OpenerLink::introduce(const HandoffConnection& connection) {
  if (!told_.load(std::memory_order_relaxed)) {
    if (const Result<void> read = read_settings(); !read)
      log_warning("the opener may have other roots than the daemon: " + read.error().message);
  }
  const OpenerNumber number{next_number_.fetch_add(1, std::memory_order_relaxed)};
  const int client = connection.fd.get();
  MILLRACE_TRY(const Received reply,
               exchange(introductions_, to_bytes(IntroduceRequest{number}), number, {&client, 1}));
  if (reply.message.kind == OpenerReplyKind::kRefused) return refusal_of(reply.message);
  if (reply.message.kind != OpenerReplyKind::kIntroduced) return want("the opener's reply is to no introduction");
  connection.introduced.store(static_cast<std::uint64_t>(reply.message.caller), std::memory_order_relaxed);
  return reply.message.caller;
}

Result<OpenerLink::Received> OpenerLink::ask(Root& root, OpenFilesRequest request, const Caller& caller) {
  if (!caller.connection) return Error{Code::kInternal, "there is no connection to introduce the client by"};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    request.caller = OpenerCaller{caller.connection->introduced.load(std::memory_order_relaxed)};
    if (request.caller == OpenerCaller::kNone) {
      MILLRACE_TRY(request.caller, introduce(*caller.connection));
    }
    request.number = OpenerNumber{next_number_.fetch_add(1, std::memory_order_relaxed)};
    MILLRACE_TRY(Received reply, exchange(root.channels, to_bytes(request), request.number, {}));
    if (reply.message.kind == OpenerReplyKind::kRefused) return refusal_of(reply.message);
    const bool answers =
        reply.message.kind == OpenerReplyKind::kOpened && reply.message.answers.size() == request.names.size();
    if (answers) return reply;
    if (reply.message.kind != OpenerReplyKind::kUnknownCaller) return want("the opener's reply is not to the names");
    auto stale = static_cast<std::uint64_t>(request.caller);  // unless somebody else has introduced it again
    caller.connection->introduced.compare_exchange_strong(stale, 0, std::memory_order_relaxed);
  }
  return want("the opener forgets the client at once");
}

std::vector<OpenerLink::Opened> OpenerLink::open(const std::string& root, std::span<const std::string_view> names,
                                                 OpenerWhat what, const Caller& caller) {
  std::vector<Opened> opened(names.size());
  Root& about = root_of(root);
  Result<Received> reply = ask(about, {.what = what, .names = {names.begin(), names.end()}}, caller);
  const bool silent = !reply && reply.error().code == Code::kUnavailable;
  about.note(silent ? &reply.error() : nullptr);
  if (!reply) {
    for (Opened& one : opened) one.answer.error = reply.error();
    return opened;
  }
  auto next = reply->descriptors.begin();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Opened& one = opened[i];
    one.answer = std::move(reply->message.answers[i]);
    if (!one.answer.descriptor) continue;
    // The kernel gives as many as the process may have.
    if (next == reply->descriptors.end()) one.answer = {.error = want("no descriptors for what the opener opened")};
    if (next != reply->descriptors.end()) one.fd = std::move(*next++);
  }
  return opened;
}

}  // namespace millrace
