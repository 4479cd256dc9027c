// What clients send, checked field by field: every error names its field as the proto spells it.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "proto/rpc/recipe_message.h"
#include "tests/unit/daemon/serve/parse/parse_fixture.h"

using namespace millrace;

namespace {

struct BadField {
  std::string text;  // that the error begins with
  std::function<void(v1::Submit&)> spoil;
  Code code = Code::kInvalid;
};

// A recipe field spoilt; Submit and StartEpoch name it alike.
struct BadRecipe {
  std::string text;
  std::function<void(v1::Recipe&)> spoil;
};

const std::vector<BadRecipe>& bad_recipes() {
  static const std::vector<BadRecipe> kTable{
      {"recipe.resize.filter: 7 is not a value",
       [](auto& r) { r.mutable_resize()->set_filter(static_cast<v1::Filter>(7)); }},
      {"recipe.normalise.mean: must have 1 or 3 values, has 0", [](auto& r) { r.mutable_normalise(); }},
      {"recipe.normalise.mean: must have 1 or 3 values, has 2",
       [](auto& r) {
         r.mutable_normalise()->add_mean(1);
         r.mutable_normalise()->add_mean(1);
       }},
      {"recipe.normalise.std: must have as many values as mean (1), has 0",
       [](auto& r) { r.mutable_normalise()->add_mean(1); }},
      {"recipe.range: -1 is not a value", [](auto& r) { r.set_range(static_cast<v1::ValueRange>(-1)); }},
      {"recipe.dtype: 5 is not a value", [](auto& r) { r.set_dtype(static_cast<v1::DType>(5)); }},
      {"recipe.layout: 3 is not a value", [](auto& r) { r.set_layout(static_cast<v1::Layout>(3)); }},
      {"recipe.channels: 4 is not a value", [](auto& r) { r.set_channels(static_cast<v1::Channels>(4)); }},
      {"recipe.centre_rounding: 3 is not a value",
       [](auto& r) { r.set_centre_rounding(static_cast<v1::CentreRounding>(3)); }},
      {"recipe.packing: 3 is not a value", [](auto& r) { r.set_packing(static_cast<v1::Packing>(3)); }},
  };
  return kTable;
}

const std::vector<BadField>& bad_submits() {
  static const std::vector<BadField> kTable{
      {"samples: must have at least one", [](auto& s) { s.clear_samples(); }},
      {"samples: must be at most 65536",
       [](auto& s) {
         while (s.samples_size() <= 65'536) s.add_samples()->set_path("/a");
       }},
      {"samples: the encoded bytes of one message are 1048577 B, over the limit of 1048576 B "
       "(limits.inline_message)",
       [](auto& s) { s.mutable_samples(1)->set_encoded(std::string((1 << 20) + 1, 'x')); }},
      {"samples[0].source: must be set", [](auto& s) { s.mutable_samples(0)->clear_source(); }},
      {"samples[0].path: must be absolute", [](auto& s) { s.mutable_samples(0)->set_path("a.jpg"); }},
      {"samples[0].path: must be absolute", [](auto& s) { s.mutable_samples(0)->set_path(""); }},
      {"samples[0].path: must not contain a zero byte",
       [](auto& s) { s.mutable_samples(0)->set_path(std::string("/a\0b", 4)); }},
      {"samples[0].path: must have at most 4096 bytes",
       [](auto& s) { s.mutable_samples(0)->set_path("/" + std::string(4'096, 'a')); }},
      {"samples[2].ring.length: must be at least 1",
       [](auto& s) { s.mutable_samples(2)->mutable_ring()->set_length(0); }},
      {"samples[2].ring.length: reaches beyond",
       [](auto& s) { s.mutable_samples(2)->mutable_ring()->set_length(~0ULL); }},
      {"samples[3].dataset.sample_id: must be less than the dataset's samples (3), is 3",
       [](auto& s) { s.mutable_samples(3)->mutable_dataset()->set_sample_id(3); }},
      {"samples[3].dataset.dataset_id: no dataset 8 is open",
       [](auto& s) { s.mutable_samples(3)->mutable_dataset()->set_dataset_id(8); }, Code::kNotFound},
      {"samples[3].dataset.dataset_id: no dataset 6 is open",
       [](auto& s) { s.mutable_samples(3)->mutable_dataset()->set_dataset_id(6); }, Code::kNotFound},
      {"samples[4].part.path: must be absolute",
       [](auto& s) { s.mutable_samples(4)->mutable_part()->set_path("shard.tar"); }},
      {"samples[4].part.length: and offset together must be below 2^63",
       [](auto& s) { s.mutable_samples(4)->mutable_part()->set_length((1ULL << 63U) - 1'536); }},
      {"samples[4].part.length: and offset together must be below 2^63",
       [](auto& s) {
         s.mutable_samples(4)->mutable_part()->set_offset(0);
         s.mutable_samples(4)->mutable_part()->set_length(~0ULL);
       }},
      {"samples[3].box.width: must be at least 1, is 0",
       [](auto& s) { s.mutable_samples(3)->mutable_box()->set_height(1); }},
      {"samples[0].box.left: must be at least 0, is -1",
       [](auto& s) { s.mutable_samples(0)->mutable_box()->set_left(-1); }},
      {"samples[1].size.width: must be at least 1, is 0",
       [](auto& s) { s.mutable_samples(1)->mutable_size()->set_height(1); }},
      {"samples[1].size.height: must be at most",
       [](auto& s) {
         s.mutable_samples(1)->mutable_size()->set_width(1);
         s.mutable_samples(1)->mutable_size()->set_height(~0U);
       }},
      {"on_error: 5 is not a value", [](auto& s) { s.set_on_error(static_cast<v1::OnError>(5)); }},
      {"fidelity: 3 is not a value", [](auto& s) { s.set_fidelity(static_cast<v1::Fidelity>(3)); }},
      {"priority: 4 is not a value", [](auto& s) { s.set_priority(static_cast<v1::Priority>(4)); }},
      {"backend: is not a backend's name", [](auto& s) { s.set_backend("cpu; rm"); }},
      {"backend: is not a backend's name, which has 1 to 11 of a-z, 0-9, '_', '-' and ':'; Devices.List shows the "
       "names",
       [](auto& s) { s.set_backend(std::string(12, 'a')); }},
      {"backend: is not a backend's name", [](auto& s) { s.set_backend("\xff"); }},
  };
  return kTable;
}

}  // namespace

TEST_CASE("a submit becomes a batch request, with ids and labels where the proto says they come from", "[serve]") {
  const Tables tables;
  v1::ClientMessage message = good_submit();
  message.mutable_submit()->set_deadline_ms(1'500);
  message.mutable_submit()->set_on_error(v1::ON_ERROR_SKIP);
  message.mutable_submit()->set_priority(v1::PRIORITY_HIGH);

  const ClientRequest parsed = tables.parse(message);

  const auto& batch = std::get<BatchRequest>(parsed);
  REQUIRE(batch.samples.size() == 5);
  CHECK(batch.id == BatchId{9});
  CHECK(std::get<PathSource>(batch.samples[0].source).path == "/data/a.jpg");
  CHECK(batch.samples[0].id == SampleId{0});
  CHECK(std::get<InlineSource>(batch.samples[1].source).bytes == "bytes");
  CHECK(batch.samples[1].id == SampleId{100});
  CHECK(batch.samples[1].label == -3);
  CHECK(std::get<RingSource>(batch.samples[2].source).offset == 64);
  CHECK(std::get<DatasetSource>(batch.samples[3].source).dataset->fingerprint() == 77);
  CHECK(batch.samples[3].id == SampleId{2});
  CHECK(batch.samples[3].label == 1);
  const auto& part = std::get<PathSource>(batch.samples[4].source);
  CHECK(part.path == "/data/shard.tar");
  CHECK(part.range == Dataset::Range{1'536, 48'211_B});
  CHECK(batch.samples[0].label == -1);
  CHECK(batch.deadline == kNow + std::chrono::milliseconds(1'500));
  CHECK(batch.on_error == OnError::kSkip);
  CHECK(batch.priority == Priority::kHigh);
}

TEST_CASE("a submit's and an epoch's recipe arrives", "[serve]") {
  const Tables tables;
  const Recipe recipe = Recipe::evaluate(256, 224).normalised(DType::kBfloat16);
  v1::ClientMessage submit = good_submit();
  v1::ClientMessage epoch = good_epoch();
  *submit.mutable_submit()->mutable_recipe() = to_message(recipe);
  *epoch.mutable_start_epoch()->mutable_recipe() = to_message(recipe);

  CHECK(*std::get<BatchRequest>(tables.parse(submit)).recipe == recipe);
  CHECK(*std::get<EpochRequest>(tables.parse(epoch)).recipe == recipe);
}

TEST_CASE("a path that is not UTF-8 survives the wire byte for byte", "[serve]") {
  const Tables tables;
  v1::ClientMessage message = good_submit();
  message.mutable_submit()->mutable_samples(0)->set_path("/data/\xff\xfe.jpg");
  v1::ClientMessage arrived;
  REQUIRE(arrived.ParseFromString(message.SerializeAsString()));

  const ClientRequest parsed = tables.parse(arrived);

  CHECK(std::get<PathSource>(std::get<BatchRequest>(parsed).samples[0].source).path == "/data/\xff\xfe.jpg");
}

TEST_CASE("a label that was given is taken, 0 and -1 too", "[serve]") {
  const Tables tables;
  for (const std::int64_t label : {0, -1, 12}) {
    v1::ClientMessage message = good_submit();
    for (v1::Sample& sample : *message.mutable_submit()->mutable_samples()) sample.set_label(label);

    const ClientRequest parsed = tables.parse(message);

    for (const SampleRequest& sample : std::get<BatchRequest>(parsed).samples) CHECK(sample.label == label);
  }
}

TEST_CASE("a malformed submit is refused with the name of its field", "[serve]") {
  const Tables tables;

  for (const BadField& bad : bad_submits()) {
    v1::ClientMessage message = good_submit();
    bad.spoil(*message.mutable_submit());

    check_refused(tables.parse(message), bad.text, bad.code, BatchId{9});
  }
}

TEST_CASE("a malformed recipe is refused with the name of its field, in a submit and in an epoch", "[serve]") {
  const Tables tables;

  for (const BadRecipe& bad : bad_recipes()) {
    v1::ClientMessage submit = good_submit();
    v1::ClientMessage epoch = good_epoch();
    bad.spoil(*submit.mutable_submit()->mutable_recipe());
    bad.spoil(*epoch.mutable_start_epoch()->mutable_recipe());

    check_refused(tables.parse(submit), bad.text, Code::kInvalid, BatchId{9});
    check_refused(tables.parse(epoch), bad.text, Code::kInvalid, EpochStreamId{4});
  }
}

TEST_CASE("an empty request and Attach among requests are refused without a subject", "[serve]") {
  const Tables tables;
  v1::ClientMessage attach;
  attach.mutable_attach()->set_ticket(std::string(16, 't'));

  check_refused(tables.parse(v1::ClientMessage()), "message: is empty", Code::kInvalid, Subject{});
  check_refused(tables.parse(attach), "attach: ", Code::kInvalid, Subject{});
}

TEST_CASE("a stream's message is Attach with a ticket, and nothing that this daemon does not know", "[serve]") {
  v1::ClientMessage good;
  good.mutable_attach()->set_ticket(std::string(16, 't'));
  const auto error_of = [&](const auto& spoil) {
    v1::ClientMessage message = good;
    spoil(message);
    const Result<Ticket> parsed = parse_attach(message);
    REQUIRE_FALSE(parsed);
    return parsed.error();
  };
  const auto add_unknown = [](google::protobuf::Message& message) {
    message.GetReflection()->MutableUnknownFields(&message)->AddVarint(500, 1);
  };

  CHECK(parse_attach(good));
  CHECK_THAT(error_of([](auto& message) { message.mutable_attach()->set_ticket("short"); }).message,
             Catch::StartsWith("attach.ticket: must be the 16 bytes"));
  CHECK(error_of([](auto& message) { message.mutable_cancel(); }).code == Code::kPrecondition);
  CHECK(error_of([](auto& message) { message.Clear(); }).code == Code::kPrecondition);
  CHECK(error_of([&](auto& message) { add_unknown(message); }).code == Code::kInvalid);
  CHECK(error_of([&](auto& message) { add_unknown(*message.mutable_attach()); }).code == Code::kInvalid);
}

TEST_CASE("opening a session is refused with the name of the field", "[serve]") {
  v1::OpenSessionRequest good;
  good.set_ticket(std::string(16, 't'));
  good.set_name("rank 3");
  good.set_slots(4);
  good.set_slot_bytes(1'000);
  const auto message_of = [&](auto spoil) {
    v1::OpenSessionRequest request = good;
    spoil(request);
    const Result<OpenRequest> parsed = parse_open(request);
    return parsed ? std::string("accepted") : parsed.error().message;
  };

  CHECK(parse_open(good));
  CHECK_THAT(message_of([](auto& r) { r.set_ticket(""); }), Catch::StartsWith("ticket: must be the 16 bytes"));
  CHECK_THAT(message_of([](auto& r) { r.set_name(std::string(65, 'a')); }),
             Catch::StartsWith("name: must have at most 64 bytes"));
  CHECK_THAT(message_of([](auto& r) { r.set_memory(std::string(65, 'a')); }),
             Catch::StartsWith("memory: must have at most 64 bytes"));
  CHECK_THAT(message_of([](auto& r) { r.set_name("a\nb"); }), Catch::StartsWith("name: must be printable"));
  CHECK_THAT(message_of([](auto& r) { r.set_name("caf\xe9"); }), Catch::StartsWith("name: must be printable"));
  CHECK(message_of([](auto& r) { r.set_name("caf\xc3\xa9"); }) == "accepted");
  CHECK_THAT(message_of([](auto& r) { r.set_slots(0); }), Catch::StartsWith("slots: must be at least 1"));
  CHECK_THAT(message_of([](auto& r) { r.set_slots(~0U); }), Catch::StartsWith("slots: must be at most"));
  CHECK_THAT(message_of([](auto& r) { r.set_slot_bytes(0); }), Catch::StartsWith("slot_bytes: must be at least 1"));
  CHECK_THAT(message_of([](auto& r) { r.set_slot_bytes(~0ULL); }), Catch::StartsWith("slot_bytes: must be at most"));
}
