// Streams that have not attached: nobody keeps others from attaching by opening them.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <future>

#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/rpc/unix_address.h"
#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

// A client without a ticket that opens streams and sends nothing on them.
class Squatter {
 public:
  explicit Squatter(const std::string& socket) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(unix_address(socket), grpc::InsecureChannelCredentials(), own);
    stub_ = v1::Sessions::NewStub(channel_);
  }
  ~Squatter() {
    for (auto& call : calls_) call->TryCancel();
    for (auto& stream : streams_) static_cast<void>(stream->Finish());
  }

  // Returns when all have come: what is asked after them on their connection is answered.
  void open(int count) {
    for (int i = 0; i < count; ++i) {
      calls_.push_back(std::make_unique<grpc::ClientContext>());
      calls_.back()->set_deadline(std::chrono::system_clock::now() + 20s);
      streams_.push_back(stub_->Stream(calls_.back().get()));
    }
    grpc::ClientContext call;
    v1::GetStatisticsReply reply;
    REQUIRE(v1::Statistics::NewStub(channel_)->Get(&call, {}, &reply).ok());
  }
  // Whether one of the first twenty has to go. Which of them is the daemon's oldest, its threads decide: they take
  // streams of one connection in any order. The twenty end with this.
  bool one_of_the_first_gives_way() {
    std::vector<std::shared_future<grpc::Status>> ends;
    for (std::size_t i = 0; i < 20; ++i)
      ends.push_back(std::async(std::launch::async, [&stream = *streams_[i]] {
        v1::ServerMessage message;
        while (stream.Read(&message)) {
        }
        return stream.Finish();
      }));
    const bool gave_way = eventually([&] {
      return std::any_of(ends.begin(), ends.end(), [](const auto& end) {
        return end.wait_for(0s) == std::future_status::ready &&
               end.get().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
      });
    });
    for (std::size_t i = 0; i < ends.size(); ++i) calls_[i]->TryCancel();
    for (const auto& end : ends) end.wait();
    streams_.erase(streams_.begin(), streams_.begin() + 20);
    return gave_way;
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sessions::Stub> stub_;
  std::vector<std::unique_ptr<grpc::ClientContext>> calls_;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>>> streams_;
};

}  // namespace

TEST_CASE("streams that never attach keep nobody from attaching", "[serve]") {
  Front front;
  Squatter first(front.socket()), second(front.socket());
  first.open(120);
  second.open(120);
  CHECK(first.one_of_the_first_gives_way());

  RawClient client(front.socket());
  client.open();
  client.attach();

  client.send(submit_message(1, {"/a"}));
  CHECK(client.read()->has_completed());
}

TEST_CASE("a stream with its ticket in the metadata waits for its Attach undisturbed", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.start_stream_with_ticket();
  Squatter first(front.socket()), second(front.socket());
  first.open(120);
  second.open(120);
  CHECK(first.one_of_the_first_gives_way());

  client.send_attach();

  client.send(submit_message(1, {"/a"}));
  CHECK(client.read()->has_completed());
}

TEST_CASE("of two waiting streams with the same ticket one has to go", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  std::array<grpc::ClientContext, 2> calls;
  std::array<std::future<grpc::Status>, 2> ends;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].AddMetadata("millrace-ticket-bin", client.ticket());
    ends[i] = std::async(std::launch::async, [&client, &call = calls[i]] {
      const auto stream = client.sessions().Stream(&call);
      v1::ServerMessage message;
      while (stream->Read(&message)) {
      }
      return stream->Finish();
    });
  }
  const auto ended = [&](std::size_t i) { return ends[i].wait_for(0s) == std::future_status::ready; };

  REQUIRE(eventually([&] { return ended(0) || ended(1); }));

  const std::size_t gone = ended(0) ? 0 : 1;
  CHECK(ends[gone].get().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  calls[1 - gone].TryCancel();
  CHECK(ends[1 - gone].get().error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("a ticket in the metadata alone attaches nothing", "[serve]") {
  Front front(FrontSetup{.attach_within = 50ms});
  RawClient client(front.socket());
  client.open();

  client.start_stream_with_ticket();

  CHECK(client.finish().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
}
