// What this daemon does not know is refused wherever a client may put it, and its list of what it knows is whole. The
// tests walk the schema, so that a message or enum that is added later is held to the same.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "proto/rpc/position_token.h"
#include "tests/unit/daemon/serve/parse/parse_fixture.h"

using namespace millrace;

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Way = std::vector<const FieldDescriptor*>;  // from ClientMessage to a message, or to one of its fields

v1::ClientMessage good_open_dataset() {
  v1::ClientMessage message;
  message.mutable_open_dataset()->set_dataset_id(1);
  message.mutable_open_dataset()->set_path("/data");
  return message;
}

// A message of that kind that only its spoilt part makes malformed.
v1::ClientMessage good(const FieldDescriptor& kind) {
  if (kind.name() == "submit") return good_submit();
  if (kind.name() == "start_epoch") return good_epoch();
  if (kind.name() == "open_dataset") return good_open_dataset();
  if (kind.name() == "list_files") return good_list();
  if (kind.name() == "list_parts") return good_parts();
  if (kind.name() == "name_files") return good_question();
  if (kind.name() == "give_batches") return good_order();
  v1::ClientMessage message;
  message.GetReflection()->MutableMessage(&message, &kind);
  if (message.has_attach()) message.mutable_attach()->set_ticket(std::string(16, 't'));
  return message;
}

void for_each_message(const google::protobuf::Descriptor& type, Way& way, const std::function<void()>& see) {
  see();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    // Steps may hold steps: by each way that leads to such a one, but not through it again.
    const auto is_that = [&](const FieldDescriptor* before) { return before->message_type() == field->message_type(); };
    if (std::any_of(way.begin(), way.end(), is_that)) continue;
    way.push_back(field);
    for_each_message(*field->message_type(), way, see);
    way.pop_back();
  }
}

// The message at the end of `way`, made where it is not there.
Message& reach(Message& message, const Way& way) {
  Message* at = &message;
  for (const FieldDescriptor* field : way) {
    const google::protobuf::Reflection& reflection = *at->GetReflection();
    if (!field->is_repeated()) {
      at = reflection.MutableMessage(at, field);
    } else if (reflection.FieldSize(*at, field) == 0) {
      at = reflection.AddMessage(at, field);
    } else {
      at = reflection.MutableRepeatedMessage(at, field, 0);
    }
  }
  return *at;
}

void add_unknown(Message& message, int number) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(number, 1);
}

std::string spelled(const Way& way) {
  std::string text;
  for (std::size_t i = 1; i < way.size(); ++i) text += way[i]->name() + (way[i]->is_repeated() ? "[0]" : "") + ".";
  return text;
}

}  // namespace

TEST_CASE("a field that this daemon does not know is refused in every message that clients send", "[serve]") {
  const Tables tables;
  Way way;
  int messages = 0;
  for_each_message(*v1::ClientMessage::descriptor(), way, [&] {
    if (way.empty() || way.front()->number() == v1::ClientMessage::kAttachFieldNumber) return;  // the stream's
    v1::ClientMessage message = good(*way.front());
    REQUIRE(!refusal_in(tables.parse(message)));
    Message& spoilt = reach(message, way);
    add_unknown(spoilt, 500);
    ++messages;

    const std::optional<Error> refused = refusal_in(tables.parse(message));

    CAPTURE(spelled(way), spoilt.GetTypeName());
    REQUIRE(refused);
    CHECK(refused->code == Code::kInvalid);
    CHECK_THAT(refused->message, Catch::StartsWith(spelled(way) + "500: a field of " + spoilt.GetDescriptor()->name() +
                                                   " that millraced ") &&
                                     Catch::Contains(" does not know; update millraced, or leave it out"));
  });
  CHECK(messages > 40);
}

TEST_CASE("a value that this daemon does not know is refused of every enum that clients send", "[serve]") {
  const Tables tables;
  Way way;
  int fields = 0;
  for_each_message(*v1::ClientMessage::descriptor(), way, [&] {
    const google::protobuf::Descriptor& type =
        way.empty() ? *v1::ClientMessage::descriptor() : *way.back()->message_type();
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) continue;
      for (const int value : {77, -1}) {
        v1::ClientMessage message = good(*way.front());
        Message& spoilt = reach(message, way);
        if (type.field(i)->is_repeated()) {
          spoilt.GetReflection()->AddEnumValue(&spoilt, type.field(i), value);
        } else {
          spoilt.GetReflection()->SetEnumValue(&spoilt, type.field(i), value);
        }
        ++fields;

        const std::optional<Error> refused = refusal_in(tables.parse(message));

        CAPTURE(spelled(way), type.field(i)->name());
        REQUIRE(refused);
        CHECK(refused->code == Code::kInvalid);
        CHECK_THAT(refused->message, Catch::StartsWith(spelled(way) + type.field(i)->name() + ": " +
                                                       std::to_string(value) + " is not a value that millraced ") &&
                                         Catch::Contains("update millraced, or choose another"));
      }
    }
  });
  CHECK(fields >= 36);
}

TEST_CASE("a kind of source, crop or message that this daemon does not know is refused as such", "[serve]") {
  const Tables tables;
  v1::ClientMessage source = good_submit(), crop = good_submit(), kind;
  source.mutable_submit()->mutable_samples(0)->clear_source();
  add_unknown(*source.mutable_submit()->mutable_samples(0), 11);
  add_unknown(*crop.mutable_submit()->mutable_recipe()->mutable_crop(), 5);
  add_unknown(kind, 9);

  check_refused(tables.parse(source), "samples[0].11: a field of Sample", Code::kInvalid, BatchId{9});
  check_refused(tables.parse(crop), "recipe.crop.5: a field of Crop", Code::kInvalid, BatchId{9});
  check_refused(tables.parse(kind), "9: a field of ClientMessage", Code::kInvalid, {});
}

TEST_CASE("a field beside the kind of a message is refused with the id of what was asked for", "[serve]") {
  const Tables tables;
  v1::ClientMessage message = good_epoch();
  add_unknown(message, 31);

  check_refused(tables.parse(message), "31: a field of ClientMessage", Code::kInvalid, EpochStreamId{4});
}

TEST_CASE("a field of the session's opening that this daemon does not know is refused", "[serve]") {
  v1::OpenSessionRequest request;
  request.set_ticket(std::string(16, 't'));
  request.set_slots(1);
  request.set_slot_bytes(4096);
  REQUIRE(parse_open(request));
  add_unknown(request, 15);

  const Result<OpenRequest> parsed = parse_open(request);

  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == Code::kInvalid);
  CHECK_THAT(parsed.error().message, Catch::StartsWith("15: a field of OpenSessionRequest that millraced "));
}

TEST_CASE("a position that says more than this daemon knows is refused", "[serve]") {
  const Tables tables;
  v1::EpochPosition position;
  position.set_fingerprint(77);
  add_unknown(position, 15);
  v1::ClientMessage message = good_epoch();
  message.mutable_start_epoch()->set_position(encode_position(position));

  check_refused(tables.parse(message), "position.15: a field of EpochPosition", Code::kInvalid, EpochStreamId{4});
}
