// What one member of the group can do with bare HTTP/2 frames on the gRPC socket: nothing that others notice.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <iterator>

#include "tests/support/host/eventually.h"
#include "tests/support/host/http2_connection.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

constexpr uid_t kFloods = 65'532, kWorks = 65'531;

// A daemon that two users share, of whom one works all the while.
struct Shared {
  explicit Shared(const std::string& memory = {}) {
    ::chmod(folder.path().c_str(), 0755);
    write_file(folder / "a.jpg", make_jpeg({.pixels = make_pixels(80, 60, 3, 1)}));
    daemon.emplace(DaemonSpec{.roots = {folder.path()}, .memory = memory, .for_all_users = true});
    steady.emplace(daemon->client("work", {folder / "a.jpg"}, kWorks));
    REQUIRE(steady->wait_for("done 1\n"));
  }

  void check_that_others_are_served() const {
    const std::string before = steady->output();
    CHECK(eventually([&] { return steady->output().size() > before.size() + 100; }));
    CHECK(steady->running());
    const auto answered = daemon->connect().ping(std::chrono::seconds(60));  // a busy machine's sanitizer is slow
    CAPTURE(answered ? "" : answered.error().message);
    CHECK(answered);
    CHECK(daemon->running());
  }

  TempFolder folder;
  std::optional<Daemon> daemon;
  std::optional<Process> steady;
};

}  // namespace

TEST_CASE("header blocks and PINGs without end cost their user his connections, and the daemon no memory", "[system]") {
  if (!is_root()) return skip_loudly("frames of another user (needs root, to be several users)");
  const Shared shared;
  const Bytes before = shared.daemon->memory("VmRSS");
  const std::string kind = GENERATE("continuation", "empty_continuation", "ping");
  CAPTURE(kind);

  const Process flood = shared.daemon->client("send_frames", {"kind=" + kind}, kFloods);

  REQUIRE(flood.wait_for("turned away", std::chrono::minutes(2)));
  CHECK(logs(*shared.daemon,
             "is cut off: sent " + std::string(kind == "ping" ? "more than 64 PINGs" : "a header block")));
  CHECK(logs(*shared.daemon, "sent HTTP/2 frames beyond what a call needs, and is not let in for a minute"));
  shared.check_that_others_are_served();
  if (under_sanitizer()) return skip_loudly("the daemon's memory (a sanitizer's shadow counts as well)");
  CHECK(shared.daemon->memory("VmHWM") < before + 100_MiB);
}

TEST_CASE("messages that are sent but for their ends are charged to their user, and given back with his connections",
          "[system]") {
  if (!is_root()) return skip_loudly("messages of another user (needs root, to be several users)");
  const Shared shared("requests = \"64 MiB\"\n");
  const Bytes before = shared.daemon->memory("VmRSS");
  const double idle = shared.daemon->metric("millrace_requests_bytes");

  {
    const Process flood = shared.daemon->client("send_halves", {}, kFloods);
    REQUIRE(flood.wait_for("cut off\n", std::chrono::minutes(2)));
    CHECK(logs(*shared.daemon, "is cut off: half-sent messages find no room: "));
    shared.check_that_others_are_served();
  }

  CHECK(eventually([&] { return shared.daemon->metric("millrace_requests_bytes") <= idle + 1e6; }));
  if (under_sanitizer()) return skip_loudly("the daemon's memory (a sanitizer's shadow counts as well)");
  CHECK(shared.daemon->memory("VmHWM") < before + 164_MiB);
  const bool gone = eventually([&] { return shared.daemon->memory("VmRSS") < before + 80_MiB; });
  CAPTURE(before.count, shared.daemon->memory("VmRSS").count);
  CHECK(gone);
}

TEST_CASE("frames that ask nothing are read at their user's rate, and others are served", "[system]") {
  if (!is_root()) return skip_loudly("frames of another user (needs root, to be several users)");
  const Shared shared;
  const Bytes before = shared.daemon->memory("VmRSS");
  const std::string kind = GENERATE("settings", "priority", "window_update", "unknown", "empty_data");
  CAPTURE(kind);

  const Process flood = shared.daemon->client("send_frames", {"kind=" + kind, "connections=8"}, kFloods);
  REQUIRE(flood.wait_for("begins"));

  shared.check_that_others_are_served();
  if (under_sanitizer()) return skip_loudly("the daemon's memory (a sanitizer's shadow counts as well)");
  CHECK(shared.daemon->memory("VmHWM") < before + 100_MiB);
}

TEST_CASE("a client that breaks the rules of frames is told which one, before its connection ends", "[system]") {
  const Daemon daemon({});
  Http2Connection connection(daemon.socket());
  REQUIRE(eventually([&] { return connection.listen_in() && !connection.heard().empty(); }));

  REQUIRE(connection.send(http2_frame(Http2Frame::kSettings, 0, 0, std::string(20'000, '\0'))));

  CHECK(eventually([&] { return !connection.listen_in(); }));
  CHECK_THAT(connection.heard(), Catch::Contains("sent a frame of 20000 bytes of type 4"));
  CHECK(daemon.connect().ping());
}

TEST_CASE("open streams of reflection are a few threads of the daemon, and those beyond are refused", "[system]") {
  constexpr std::uint32_t kStreams = 100;
  constexpr std::ptrdiff_t kThreads = 8;
  const Daemon daemon({});
  const auto threads = [&] {
    const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(daemon.pid()) + "/task");
    return std::distance(begin(tasks), end(tasks));
  };
  REQUIRE(daemon.connect().ping());  // some threads of gRPC's begin with the first call
  const std::ptrdiff_t before = threads();
  Http2Connection connection(daemon.socket());
  std::string calls;
  for (std::uint32_t i = 0; i < kStreams; ++i)
    calls += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 2 * i + 1,
                         call_headers("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"));

  REQUIRE(connection.send(calls));

  CHECK(eventually(
      [&] { return connection.listen_in() && connection.heard().find("Threadpool Exhausted") != std::string::npos; }));
  CHECK(daemon.connect().ping());
  CHECK(threads() <= before + kThreads + 4);  // gRPC's own come and go
}

TEST_CASE("what gRPC quotes of a client in the log is escaped, and a line in ten seconds", "[system]") {
  const Daemon daemon({});
  Http2Connection connection(daemon.socket());
  std::string calls;
  for (std::uint32_t i = 0; i < 100; ++i) {
    std::string headers = call_headers("/millrace.v1.Statistics/Get");
    headers.replace(headers.size() - 9, 9, "\x0f\x1b[31m\nforged: a");  // in the place of `te: trailers`, of its value
    calls += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 2 * i + 1, headers);
  }

  static_cast<void>(connection.send(calls));

  CHECK(logs(daemon, "gRPC says: "));
  CHECK(daemon.connect().ping());
  const std::string log = daemon.errors();
  CHECK(log.find('\x1b') == std::string::npos);
  CHECK(log.find("\nforged") == std::string::npos);
  std::size_t lines = 0;
  for (std::size_t at = log.find("gRPC says: "); at != std::string::npos; at = log.find("gRPC says: ", at + 1)) ++lines;
  CHECK(lines <= 3);
}

TEST_CASE("a client that reads none of what gRPC answers does not hold up the daemon's end", "[system]") {
  constexpr std::uint32_t kCalls = 120;
  const Daemon daemon({.daemon = "drain_seconds = 1\n"});
  Http2Connection connection(daemon.socket());
  std::string frames = http2_frame(Http2Frame::kSettings, 0, 0, std::string_view("\0\4\x7f\xff\xff\xff", 6)) +
                       http2_frame(Http2Frame::kWindowUpdate, 0, 0, std::string_view("\x3f\xff\xff\xff", 4));
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    frames +=
        http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 2 * i + 1, call_headers("/millrace.v1.Statistics/Get"));
    frames += http2_frame(Http2Frame::kData, kHttp2EndStream, 2 * i + 1, grpc_message(0, ""));
  }
  REQUIRE(connection.send(frames));
  REQUIRE(daemon.connect().ping());

  daemon.kill(SIGTERM);

  CHECK(daemon.wait(std::chrono::seconds(60)) == 0);
}

}  // namespace millrace
