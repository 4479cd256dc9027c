// Sessions whose memory is being made: nobody runs out of time meanwhile, and who leaves keeps nobody waiting.
#include <grpcpp/grpcpp.h>
#include <sys/statvfs.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/skip.h"
#include "tests/unit/serve_fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

bool has_room() {
  struct statvfs status {};
  const bool has = ::statvfs("/dev/shm", &status) == 0 && status.f_bavail * status.f_frsize > (2_GiB).count;
  if (!has) skip_loudly("large sessions: /dev/shm has less than 2 GiB free");
  return has;
}

// Asks for a session of one slot and hangs up at once.
void ask_and_leave(Front& front, Bytes slot) {
  RawClient client(front.socket());
  v1::OpenSessionRequest request = client.open_request();
  request.set_slot_bytes(slot.count);
  grpc::ClientContext call;
  grpc::CompletionQueue queue;
  const auto reader = client.sessions().AsyncOpen(&call, request, &queue);
  client.hang_up();
  grpc::Status status;
  v1::OpenSessionReply reply;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  queue.Shutdown();
  REQUIRE_FALSE(queue.Next(&tag, &ok));
}

}  // namespace

TEST_CASE("memory may take longer to fill than a client may take to ask for it", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = 512_MiB, .session_within = 20ms});

  // On a busy machine the time may run out before the client has asked; then another one does.
  const bool opened = eventually([&] {
    RawClient client(front.socket());
    v1::OpenSessionRequest request = client.open_request();
    request.set_slot_bytes((128_MiB).count);
    return client.open(request).ok();
  });

  CHECK(opened);
}

TEST_CASE("a client that goes away while its memory is being made leaves nothing", "[serve]") {
  Front front;

  for (int i = 0; i < 20; ++i) ask_and_leave(front, 16_MiB);

  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
  CHECK(eventually([&] { return front.counters().stored(MetricId::sessions) == 0; }));
}

TEST_CASE("nobody waits for memory that those who asked for it do not want any more", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 45}});

  for (int i = 0; i < 40; ++i) ask_and_leave(front, 1_GiB);
  RawClient client(front.socket());

  CHECK(client.open(client.open_request()).ok());
  CHECK(eventually([&] { return front.memory_in_use() < 1_GiB; }));
}

TEST_CASE("a daemon that stops says so to whoever waits for memory, and makes no more of it", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 40}});
  RawClient client(front.socket());
  v1::OpenSessionRequest request = client.open_request();
  request.set_slot_bytes((1_GiB).count);

  std::jthread stopper([&] {
    static_cast<void>(eventually([&] { return front.memory_in_use() > 0_B; }));
    front.refuse_opening();
  });
  const grpc::Status status = client.open(request);

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(), Catch::Contains("millraced is stopping"));
  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
}
