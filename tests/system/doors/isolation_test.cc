// Who holds no ticket gets nothing, who holds one gets only what is his; and rubbish harms nobody.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

#include "proto/shm/segment_layout.h"
#include "tests/support/host/eventually.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

TEST_CASE("a guessed ticket opens nothing and attaches to nothing", "[system]") {
  const RawMill mill;
  const RawSession other(mill.daemon.socket(), {});
  std::string guess = other.handoff.ticket();
  guess[3] = static_cast<char>(guess[3] ^ 1);
  v1::OpenSessionReply reply;
  const auto channel = raw_channel(mill.daemon.socket());

  REQUIRE(raw_open(channel, open_with(guess), reply).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  RawStream stream(channel);
  stream.send(attach_with(guess));
  REQUIRE(stream.finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("a session has one stream: a second one with the right ticket is refused, the first goes on", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  RawStream second(session.channel);

  second.send(attach_with(session.handoff.ticket()));

  REQUIRE_FALSE(second.finish().ok());
  session.send(mill.submit(1));
  REQUIRE(session.receive().completed().batch_id() == 1);
}

TEST_CASE("a ticket opens one session, and a stream without a session is refused", "[system]") {
  const RawMill mill;
  RawHandoff handoff(mill.daemon.socket());
  handoff.hello();
  const auto channel = raw_channel(mill.daemon.socket());
  RawStream early(channel);
  v1::OpenSessionReply reply;

  early.send(attach_with(handoff.ticket()));
  REQUIRE_FALSE(early.finish().ok());
  const v1::OpenSessionRequest request = open_with(handoff.ticket());
  REQUIRE(raw_open(channel, request, reply).ok());
  REQUIRE_FALSE(raw_open(channel, request, reply).ok());
}

TEST_CASE("a stream that does not begin with its ticket is ended", "[system]") {
  const RawMill mill;
  const auto channel = raw_channel(mill.daemon.socket());
  RawStream stream(channel);

  stream.send(mill.submit(1));

  const grpc::Status status = stream.finish();
  REQUIRE((status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
           status.error_code() == grpc::StatusCode::UNAUTHENTICATED));
}

TEST_CASE("the segment's descriptor can be mapped for reading only", "[system]") {
  const RawMill mill;
  const RawSession session(mill.daemon.socket(), {});
  const int fd = session.segment.get();

  REQUIRE((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
  REQUIRE(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  REQUIRE(ftruncate(fd, 0) != 0);
  void* const mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(mapped != MAP_FAILED);
  REQUIRE(mprotect(mapped, 4096, PROT_READ | PROT_WRITE) != 0);
  REQUIRE(static_cast<const shm::SegmentHeader*>(mapped)->magic == shm::kSegmentMagic);
  REQUIRE(static_cast<const shm::SegmentHeader*>(mapped)->session_id == session.opened.session_id());
  munmap(mapped, 4096);
}

TEST_CASE("no answer, no figure and no line of the log holds a ticket", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  std::string told;
  for (const Malformed& malformed : malformed_submits()) {
    v1::ClientMessage message = mill.submit(1);
    malformed.spoil(*message.mutable_submit());
    session.send(message);
    told += session.receive().SerializeAsString();
  }
  v1::ClientMessage stale;
  stale.mutable_release()->set_slot(77);
  session.send(stale);
  session.send(mill.submit(2));
  told += session.receive().SerializeAsString();
  Client client = mill.daemon.connect();
  const auto refused = client.open_session({.slots = 200, .slot_bytes = 1_GiB * 900});
  REQUIRE_FALSE(refused);
  told += refused.error().message;
  for (const auto& metric : need(client.statistics()).metrics) told += metric.name + metric.help;
  for (const auto& one : need(client.statistics()).sessions) told += one.name;

  told += mill.daemon.errors();

  std::string in_hex;
  for (const char byte : session.handoff.ticket()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    in_hex += digits;
  }
  REQUIRE(told.find(in_hex) == std::string::npos);
  REQUIRE(told.find(session.handoff.ticket()) == std::string::npos);
}

TEST_CASE("rubbish on the hand-off socket is refused and harms nobody", "[system]") {
  const RawMill mill;
  const std::string alone = mill.daemon.run_client("epoch", {mill.pictures});
  std::vector<std::byte> noise(300);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(i * 37);
  const int fd = STDERR_FILENO;
  const std::array many{fd, fd, fd, fd, fd};

  for (const std::size_t size : {std::size_t{1}, std::size_t{23}, std::size_t{24}, std::size_t{25}, noise.size()}) {
    const RawHandoff handoff(mill.daemon.socket());
    REQUIRE(handoff.send(std::span(noise).first(size)));
    RawHandoff::Received answer = handoff.receive();
    if (!answer.closed) {
      REQUIRE(answer.reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused));
      answer = handoff.receive();
    }
    REQUIRE(answer.closed);
  }
  const RawHandoff with_descriptors(mill.daemon.socket());
  if (with_descriptors.send(std::span(noise).first(24), many)) {  // newer kernels refuse it to the sender
    RawHandoff::Received answer = with_descriptors.receive();
    if (!answer.closed) answer = with_descriptors.receive();
    REQUIRE(answer.closed);
  }

  REQUIRE(mill.daemon.run_client("epoch", {mill.pictures}) == alone);
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_handoff_connections") == 0; }));
}

TEST_CASE("a flood of connections is bounded, refused with a reason, and over when they are closed", "[system]") {
  const RawMill mill;
  std::vector<std::unique_ptr<RawHandoff>> flood;
  std::size_t refused = 0;
  for (int i = 0; i < 160; ++i) {
    flood.push_back(std::make_unique<RawHandoff>(mill.daemon.socket()));
    try {
      flood.back()->hello();
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  REQUIRE(refused > 0);
  REQUIRE(mill.daemon.connect().ping());

  flood.clear();

  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_handoff_connections") == 0; }));
  REQUIRE(mill.daemon.run_client("epoch", {mill.pictures}).ends_with("complete\n"));
}

}  // namespace
}  // namespace millrace
