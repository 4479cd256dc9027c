// The messages between the daemon and its opener, and how the daemon waits for one that does not answer. What a real
// opener does, tests/system shows.
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "daemon/fetch/fetcher.h"
#include "daemon/fetch/open/opener_link.h"
#include "daemon/opener/kerberos_mounts.h"
#include "proto/base/mutex.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a request is read as it was written, and every way to spoil it is refused by its field", "[opener]") {
  const OpenFilesRequest asked{.number = OpenerNumber{7}, .caller = OpenerCaller{9}, .names = {"/a/b", "/c"}};
  const std::vector<std::byte> bytes = to_bytes(asked);
  const auto refused = [&](std::size_t at, std::byte value, std::size_t drop = 0) {
    std::vector<std::byte> spoilt(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(drop));
    spoilt[at] = value;
    const auto read = parse_opener_request(spoilt);
    return read ? std::string("read") : read.error().message;
  };

  const auto read = parse_opener_request(bytes);
  const auto& again = std::get<OpenFilesRequest>(*read);

  REQUIRE(again.number == asked.number);
  REQUIRE(again.caller == asked.caller);
  REQUIRE(again.names == asked.names);
  REQUIRE_THAT(refused(0, std::byte{0}), Catch::Contains("magic"));
  REQUIRE_THAT(refused(4, std::byte{2}), Catch::Contains("version 1, the daemon version 2"));
  REQUIRE_THAT(refused(8, std::byte{4}), Catch::Contains("kind"));
  REQUIRE_THAT(refused(8, std::byte{3}), Catch::Contains("the settings read takes a number and nothing else"));
  REQUIRE(std::get<ReadSettingsRequest>(*parse_opener_request(to_bytes(ReadSettingsRequest{OpenerNumber{5}}))).number ==
          OpenerNumber{5});
  REQUIRE_THAT(refused(12, std::byte{4}), Catch::Contains("what"));
  REQUIRE_THAT(refused(32, std::byte{17}), Catch::Contains("names"));
  REQUIRE_THAT(refused(36, std::byte{1}), Catch::Contains("zero"));
  REQUIRE_THAT(refused(41, std::byte{255}), Catch::Contains("length"));
  REQUIRE_THAT(refused(40, std::byte{5}), Catch::Contains("ends in one"));
  REQUIRE_THAT(refused(40, std::byte{3}), Catch::Contains("behind"));
  REQUIRE_THAT(refused(0, bytes[0], 1), Catch::Contains("ends in one"));
  REQUIRE_FALSE(parse_opener_request({}).has_value());
}

TEST_CASE("a reply is read as it was written, and one that contradicts itself is none", "[opener]") {
  const Error why{Code::kDenied, "not for you"};
  const std::vector<std::byte> bytes =
      to_bytes(OpenerReplyMessage{.number = OpenerNumber{3},
                                  .kind = shm::OpenerReplyKind::kOpened,
                                  .answers = {{.descriptor = true}, {.error = why}, {.type = 0040000}}});

  const auto read = parse_opener_reply(bytes);
  std::vector<std::byte> spoilt = bytes;
  spoilt[32] = std::byte{3};  // the code of the answer that has a descriptor

  REQUIRE(read->answers.size() == 3);
  REQUIRE(read->answers[0].descriptor);
  REQUIRE(read->answers[1].error->code == Code::kDenied);
  REQUIRE(read->answers[1].error->message == why.message);
  REQUIRE(read->answers[2].type == 0040000);
  REQUIRE_FALSE(parse_opener_reply(spoilt).has_value());
  REQUIRE_FALSE(parse_opener_reply(ByteView(bytes).first(bytes.size() - 1)).has_value());
}

TEST_CASE("NFS with Kerberos is found among the mounts, and no other NFS", "[opener]") {
  const std::string mounts =
      "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
      "30 1 0:45 / /data rw,relatime shared:1 - nfs4 server:/data rw,vers=4.2,sec=sys,clientaddr=10.0.0.1\n"
      "31 1 0:46 / /safe rw,relatime shared:2 master:3 - nfs4 server:/safe rw,vers=4.2,sec=krb5p,local_lock=none\n"
      "32 1 0:47 / /old rw - nfs server:/old rw,sec=krb5\n"
      "33 1 8:1 /x\\040sec=krb5 / rw - ext4 /dev/sda1 rw\n"
      "torn line\n";

  REQUIRE(kerberos_devices(mounts) == std::vector<dev_t>{makedev(0, 46), makedev(0, 47)});
  REQUIRE(kerberos_devices("").empty());
}

// An opener that answers as it is told to. Its threads end when the daemon's side goes.
class ScriptedOpener {
 public:
  using Script = std::function<bool(const OpenerRequestMessage&)>;  // false: do not answer yet

  ScriptedOpener(const std::string& path, Script script) : script_(std::move(script)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 64) == 0);
    accepting_ = std::thread([this] {
      while (true) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) return;
        serving_.emplace_back([this, fd = std::move(socket)] { serve(fd.get()); });
      }
    });
  }
  ~ScriptedOpener() {
    go_on = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    for (std::thread& one : serving_) one.join();
  }

  std::atomic<bool> go_on{false};
  std::atomic<int> held{0};

 private:
  void serve(int socket) {
    std::vector<std::byte> bytes(shm::kOpenerLargestRequest);
    while (true) {
      const ReceivedMessage received = receive_message(socket, bytes, 1);
      if (received.bytes <= 0) return;
      const auto request = parse_opener_request(ByteView(bytes).first(static_cast<std::size_t>(received.bytes)));
      if (!script_(*request)) {
        ++held;
        while (!go_on) std::this_thread::yield();
      }
      static_cast<void>(send_message(socket, answer(*request), {}));
    }
  }
  static std::vector<std::byte> answer(const OpenerRequestMessage& request) {
    if (const auto* const introduction = std::get_if<IntroduceRequest>(&request))
      return to_bytes(OpenerReplyMessage{
          .number = introduction->number, .kind = shm::OpenerReplyKind::kIntroduced, .caller = OpenerCaller{5}});
    if (const auto* const settings = std::get_if<ReadSettingsRequest>(&request))
      return to_bytes(
          OpenerReplyMessage{.number = settings->number, .kind = shm::OpenerReplyKind::kSettingsRead, .answers = {}});
    const auto& open = std::get<OpenFilesRequest>(request);
    return to_bytes(OpenerReplyMessage{.number = open.number,
                                       .kind = shm::OpenerReplyKind::kOpened,
                                       .answers = std::vector<OpenAnswer>(open.names.size(), {.type = 0100000})});
  }

  const Script script_;
  UniqueFd listener_;
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

Caller introduced_caller() {
  auto connection = std::make_shared<HandoffConnection>();
  connection->fd.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  return {.uid = 54'321, .gid = 54'321, .connection = std::move(connection)};
}

// Its threads call back to `answer`.
std::vector<Fetched> fetched_by(Fetcher& fetcher, const std::vector<SampleSource>& sources) {
  std::promise<std::vector<Fetched>> answer;
  FetchTask task{.caller = std::make_shared<const Caller>(introduced_caller()),
                 .done = [&](std::vector<Fetched> items) { answer.set_value(std::move(items)); }};
  for (const SampleSource& source : sources) task.items.push_back(FetchItem{.source = &source});
  REQUIRE(fetcher.try_fetch(std::move(task)));
  return answer.get_future().get();
}

TEST_CASE("waiting for an opener counts as reading, and it is asked once", "[opener]") {
  const TempFolder folder;
  ScriptedOpener opener(folder / "s", [](const OpenerRequestMessage& request) {
    return !std::holds_alternative<OpenFilesRequest>(request);
  });
  Counters counters;
  const auto fetcher = *Fetcher::create({.roots = {"/hung"}, .opener = folder / "s", .threads = 1}, counters);

  const std::vector<Fetched> items = fetched_by(*fetcher, {PathSource{"/hung/a"}, PathSource{"/hung/b"}});
  const int held = opener.held;
  opener.go_on = true;

  for (const Fetched& item : items) {
    REQUIRE(item.end == FetchEnd::kHostLacks);
    REQUIRE(item.time >= 900ms);  // half of the link's patience
  }
  REQUIRE(held == 1);
}

TEST_CASE("a root that does not answer holds no more threads than its connections, and later none; others are served",
          "[opener]") {
  const TempFolder folder;
  ScriptedOpener opener(folder / "s", [](const OpenerRequestMessage& request) {
    const auto* const open = std::get_if<OpenFilesRequest>(&request);
    return open == nullptr || !open->names[0].starts_with("/hung");
  });
  constexpr auto kPatience = 1500ms;
  OpenerLink link({.socket = folder / "s", .connections = 3, .introductions = 9, .patience = kPatience});
  const Caller caller = introduced_caller();
  const auto ask = [&](const std::string& root, std::string_view name) {
    const OpenAnswer answer = link.open(root, {&name, 1}, OpenerWhat::kType, caller).front().answer;
    return answer.error ? answer.error->code == Code::kUnavailable ? "unavailable" : "other" : "well";
  };

  std::vector<std::thread> asking;
  std::atomic<int> unavailable{0};
  for (int i = 0; i < 8; ++i)
    asking.emplace_back([&] { unavailable += std::string_view(ask("/hung", "/hung/a")) == "unavailable" ? 1 : 0; });
  const bool others_meanwhile = std::string_view(ask("/well", "/well/a")) == "well";
  for (std::thread& one : asking) one.join();
  for (int i = 0; i < 5; ++i)
    static_cast<void>(ask("/hung", "/hung/a"));  // until every connection waits for a late reply
  const int held = opener.held;
  const auto begun = std::chrono::steady_clock::now();
  const bool at_once = std::string_view(ask("/hung", "/hung/a")) == "unavailable" && opener.held == held;
  const auto took = std::chrono::steady_clock::now() - begun;
  const bool others_still = std::string_view(ask("/well", "/well/a")) == "well";
  opener.go_on = true;

  REQUIRE(others_meanwhile);
  REQUIRE(unavailable == 8);
  REQUIRE(held == 3);
  REQUIRE(at_once);
  REQUIRE(took < kPatience);
  REQUIRE(others_still);
  REQUIRE(eventually([&] { return std::string_view(ask("/hung", "/hung/a")) == "well"; }));
}

TEST_CASE("an opener that need not be there is not missed, and one that has come is waited for", "[opener]") {
  const TempFolder folder;
  OpenerLink link({.socket = folder / "s", .once_there = true, .connections = 1, .patience = 300ms});
  const bool before = link.serves();

  std::optional<ScriptedOpener> opener;
  opener.emplace(folder / "s", [](const OpenerRequestMessage&) { return true; });
  const bool came = eventually([&] { return link.serves(); });
  opener.reset();
  std::filesystem::remove(folder / "s");
  const std::string_view name = "/a";
  const auto gone = link.open("/", {&name, 1}, OpenerWhat::kType, introduced_caller()).front().answer.error;

  REQUIRE_FALSE(before);
  REQUIRE(came);
  REQUIRE(link.serves());
  REQUIRE(gone->code == Code::kUnavailable);
}

}  // namespace
}  // namespace millrace
