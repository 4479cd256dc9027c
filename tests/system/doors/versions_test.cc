// Clients and daemons of different versions, at the real daemon's doors.
#include <google/protobuf/unknown_field_set.h>

#include <catch2/catch.hpp>

#include "millrace/v1/device.grpc.pb.h"
#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/rpc/vocabulary.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

void add_unknown(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(500, 1);
}

TEST_CASE("a newer client's fields are refused one request at a time, and the stream goes on", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  const auto failure_of = [&](const v1::ClientMessage& message) {
    session.send(message);
    return session.receive().failed();
  };
  session.send(mill.open_dataset(1));
  REQUIRE(session.receive().dataset_opened().samples() == 8);
  v1::ClientMessage submit = mill.submit(7), dataset = mill.open_dataset(2), epoch = RawMill::start_epoch(5, 1);
  add_unknown(*submit.mutable_submit()->mutable_recipe());
  add_unknown(*dataset.mutable_open_dataset());
  add_unknown(*epoch.mutable_start_epoch()->mutable_recipe()->mutable_resize());

  CHECK_THAT(failure_of(submit).message(), Catch::StartsWith("recipe.500: a field of Recipe that millraced "));
  CHECK_THAT(failure_of(dataset).message(), Catch::StartsWith("500: a field of OpenDataset that millraced "));
  CHECK_THAT(failure_of(epoch).message(), Catch::StartsWith("recipe.resize.500: a field of Resize that millraced "));
  session.send(mill.submit(8));
  CHECK(session.receive().completed().batch_id() == 8);
}

TEST_CASE("a newer client's calls outside the stream are refused, too", "[system]") {
  const RawMill mill;
  const auto channel = raw_channel(mill.daemon.socket());
  RawHandoff handoff(mill.daemon.socket());
  handoff.hello();
  v1::OpenSessionRequest open = open_with(handoff.ticket());
  v1::GetStatisticsRequest statistics;
  v1::ListDevicesRequest devices;
  add_unknown(open);
  add_unknown(statistics);
  add_unknown(devices);
  v1::OpenSessionReply opened;
  v1::GetStatisticsReply counted;
  v1::ListDevicesReply listed;
  grpc::ClientContext first, second;

  const grpc::Status of_open = raw_open(channel, open, opened);
  const grpc::Status of_statistics = v1::Statistics::NewStub(channel)->Get(&first, statistics, &counted);
  const grpc::Status of_devices = v1::Devices::NewStub(channel)->List(&second, devices, &listed);

  for (const grpc::Status& status : {of_open, of_statistics, of_devices})
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(of_statistics.error_message(), Catch::StartsWith("500: a field of GetStatisticsRequest that millraced "));
}

TEST_CASE("the daemon says at open what it knows, in less than 2 kB", "[system]") {
  const RawMill mill;
  const auto channel = raw_channel(mill.daemon.socket());
  RawHandoff handoff(mill.daemon.socket());
  handoff.hello();
  v1::OpenSessionReply reply;

  REQUIRE(raw_open(channel, open_with(handoff.ticket()), reply).ok());

  CHECK(covers(reply.vocabulary(), own_vocabulary()));
  CHECK(reply.vocabulary().ByteSizeLong() < 2'000);
}

}  // namespace
}  // namespace millrace
