// What clients send, checked field by field: every error names its field as the proto spells it.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "daemon/serve/parse_recipe.h"
#include "tests/unit/serve_parse_fixture.h"

using namespace millrace;

namespace {

struct BadField {
  std::string text;  // that the error begins with
  std::function<void(v1::Submit&)> spoil;
  Code code = Code::kInvalid;
};

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

// A recipe field spoilt; Submit and StartEpoch name it alike.
struct BadRecipe {
  std::string text;
  std::function<void(v1::Recipe&)> spoil;
};

const std::vector<BadRecipe>& bad_recipes() {
  static const std::vector<BadRecipe> kTable{
      {"recipe.crop.centre.width: must be at least 1, is 0",
       [](auto& r) { r.mutable_crop()->mutable_centre()->set_height(1); }},
      {"recipe.crop.centre.height: must be at most",
       [](auto& r) {
         r.mutable_crop()->mutable_centre()->set_width(1);
         r.mutable_crop()->mutable_centre()->set_height(~0U);
       }},
      {"recipe.crop.random_resized.min_scale: must be a finite number",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_scale(kNan); }},
      {"recipe.crop.random_resized.min_scale: must be more than 0",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_scale(-1); }},
      {"recipe.crop.random_resized.min_scale: must not be over max_scale",
       [](auto& r) {
         r.mutable_crop()->mutable_random_resized()->set_min_scale(0.9F);
         r.mutable_crop()->mutable_random_resized()->set_max_scale(0.5F);
       }},
      {"recipe.crop.random_resized.max_scale: must be at most 1",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_max_scale(1.5F); }},
      {"recipe.crop.random_resized.min_ratio: must not be over max_ratio",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_ratio(9); }},
      {"recipe.crop.random_resized.max_ratio: must be a finite number, is inf",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_max_ratio(kInfinity); }},
      {"recipe.crop.box.width: must be at least 1, is 0",
       [](auto& r) { r.mutable_crop()->mutable_box()->set_height(4); }},
      {"recipe.resize.shorter_side: must be at least 1", [](auto& r) { r.mutable_resize()->set_shorter_side(0); }},
      {"recipe.resize.longer_side: must be at least 1", [](auto& r) { r.mutable_resize()->set_longer_side(0); }},
      {"recipe.resize.exact.height: must be at least 1",
       [](auto& r) {
         r.mutable_resize()->mutable_exact()->set_width(1);
         r.mutable_resize()->mutable_exact()->set_height(0);
       }},
      {"recipe.crop.cell.columns: must be at least 1, is 0", [](auto& r) { r.mutable_crop()->mutable_cell(); }},
      {"recipe.crop.cell.row: must be at most 2, is 4294967295",
       [](auto& r) {
         r.mutable_crop()->mutable_cell()->set_columns(1);
         r.mutable_crop()->mutable_cell()->set_rows(3);
         r.mutable_crop()->mutable_cell()->set_row(~0U);
       }},
      {"recipe.resize.smart.factor: must be at least 1, is 0", [](auto& r) { r.mutable_resize()->mutable_smart(); }},
      {"recipe.resize.smart.factor: must be at most",
       [](auto& r) { r.mutable_resize()->mutable_smart()->set_factor(~0U); }},
      {"recipe.resize.smart.min_pixels: must be at least 1",
       [](auto& r) { r.mutable_resize()->mutable_smart()->set_factor(28); }},
      {"recipe.resize.smart.max_pixels: must be at most 281474976710656, is 18446744073709551615",
       [](auto& r) {
         r.mutable_resize()->mutable_smart()->set_factor(28);
         r.mutable_resize()->mutable_smart()->set_min_pixels(1);
         r.mutable_resize()->mutable_smart()->set_max_pixels(~0ULL);
       }},
      {"recipe.resize.tile_grid.tile.width: must be at least 1",
       [](auto& r) { r.mutable_resize()->mutable_tile_grid(); }},
      {"recipe.resize.tile_grid.max_tiles: must be at most 256, is 4294967295",
       [](auto& r) {
         auto& grid = *r.mutable_resize()->mutable_tile_grid();
         grid.mutable_tile()->set_width(448);
         grid.mutable_tile()->set_height(448);
         grid.set_min_tiles(1);
         grid.set_max_tiles(~0U);
       }},
      {"recipe.resize.bounded.shortest: must be at least 1", [](auto& r) { r.mutable_resize()->mutable_bounded(); }},
      {"recipe.resize.bounded.longest: must be at least 378, is 0",
       [](auto& r) { r.mutable_resize()->mutable_bounded()->set_shortest(378); }},
      {"recipe.resize.filter: 7 is not a value",
       [](auto& r) { r.mutable_resize()->set_filter(static_cast<v1::Filter>(7)); }},
      {"recipe.centre_crop.width: must be at least 1", [](auto& r) { r.mutable_centre_crop(); }},
      {"recipe.flip_probability: must be a finite number", [](auto& r) { r.set_flip_probability(kNan); }},
      {"recipe.flip_probability: must be between 0 and 1, is 1.5", [](auto& r) { r.set_flip_probability(1.5F); }},
      {"recipe.flip_probability: must be between 0 and 1, is -0.5", [](auto& r) { r.set_flip_probability(-0.5F); }},
      {"recipe.normalise.mean: must have 1 or 3 values, has 0", [](auto& r) { r.mutable_normalise(); }},
      {"recipe.normalise.mean: must have 1 or 3 values, has 2",
       [](auto& r) {
         r.mutable_normalise()->add_mean(1);
         r.mutable_normalise()->add_mean(1);
       }},
      {"recipe.normalise.std: must have as many values as mean (1), has 0",
       [](auto& r) { r.mutable_normalise()->add_mean(1); }},
      {"recipe.normalise.std[0]: must not be 0",
       [](auto& r) {
         r.mutable_normalise()->add_mean(1);
         r.mutable_normalise()->add_std(0);
       }},
      {"recipe.normalise.mean[0]: must be a finite number",
       [](auto& r) {
         r.mutable_normalise()->add_mean(kNan);
         r.mutable_normalise()->add_std(1);
       }},
      {"recipe.range: -1 is not a value", [](auto& r) { r.set_range(static_cast<v1::ValueRange>(-1)); }},
      {"recipe.dtype: 5 is not a value", [](auto& r) { r.set_dtype(static_cast<v1::DType>(5)); }},
      {"recipe.layout: 3 is not a value", [](auto& r) { r.set_layout(static_cast<v1::Layout>(3)); }},
      {"recipe.channels: 4 is not a value", [](auto& r) { r.set_channels(static_cast<v1::Channels>(4)); }},
      {"recipe.patches.width: must be at least 1, is 0", [](auto& r) { r.mutable_patches()->set_height(14); }},
      {"recipe.patches.height: must be at most",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(~0U);
       }},
      {"recipe.patches.merge: must be at most 64, is 4294967295",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(14);
         r.mutable_patches()->set_merge(~0U);
       }},
      {"recipe.patches.temporal: must be at most 16, is 17",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(14);
         r.mutable_patches()->set_temporal(17);
       }},
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
      {"backend: is not a backend's name", [](auto& s) { s.set_backend(std::string(33, 'a')); }},
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
  REQUIRE(batch.samples.size() == 4);
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
  CHECK(batch.samples[0].label == -1);
  CHECK(batch.deadline == kNow + std::chrono::milliseconds(1'500));
  CHECK(batch.on_error == OnError::kSkip);
  CHECK(batch.priority == Priority::kHigh);
}

TEST_CASE("an empty recipe means what the proto's defaults say", "[serve]") {
  const Result<Recipe> recipe = parse_recipe(v1::Recipe());

  REQUIRE(recipe);
  CHECK(std::holds_alternative<WholeImage>(recipe->crop));
  CHECK(std::holds_alternative<KeepSize>(recipe->resize));
  CHECK(recipe->filter == Filter::kBilinear);
  CHECK(recipe->dtype == DType::kUint8);
  CHECK(recipe->layout == Layout::kNchw);
  CHECK(recipe->channels == Channels::kRgb);
  CHECK(recipe->range == ValueRange::kUnit);
  CHECK(recipe->packing == Packing::kOneSize);
  CHECK_FALSE(recipe->normalise);
  CHECK_FALSE(recipe->patches);
  CHECK(recipe->centre_rounding == CentreRounding::kHalfToEven);
}

TEST_CASE("sizes computed from the image, cells and patches arrive in every field", "[serve]") {
  v1::Recipe recipe;
  v1::GridCell& cell = *recipe.mutable_crop()->mutable_cell();
  cell.set_columns(3);
  cell.set_rows(4);
  cell.set_column(2);
  cell.set_row(1);
  recipe.mutable_resize()->mutable_smart()->set_factor(28);
  recipe.mutable_resize()->mutable_smart()->set_min_pixels(3136);
  recipe.mutable_resize()->mutable_smart()->set_max_pixels(1'003'520);
  recipe.mutable_patches()->set_width(14);
  recipe.mutable_patches()->set_height(7);
  recipe.set_centre_rounding(v1::CENTRE_ROUNDING_DOWN);
  v1::Recipe tiles;
  tiles.mutable_resize()->mutable_tile_grid()->mutable_tile()->set_width(448);
  tiles.mutable_resize()->mutable_tile_grid()->mutable_tile()->set_height(336);
  tiles.mutable_resize()->mutable_tile_grid()->set_min_tiles(2);
  tiles.mutable_resize()->mutable_tile_grid()->set_max_tiles(12);
  v1::Recipe bounded;
  bounded.mutable_resize()->mutable_bounded()->set_shortest(378);
  bounded.mutable_resize()->mutable_bounded()->set_longest(980);

  const Result<Recipe> parsed = parse_recipe(recipe);

  REQUIRE(parsed);
  CHECK(std::get<GridCell>(parsed->crop).columns == 3);
  CHECK(std::get<GridCell>(parsed->crop).row == 1);
  CHECK(std::get<SmartResize>(parsed->resize).factor == 28);
  CHECK(std::get<SmartResize>(parsed->resize).min_pixels == 3136);
  CHECK(std::get<SmartResize>(parsed->resize).max_pixels == 1'003'520);
  CHECK(parsed->patches->size == Size{14, 7});
  CHECK(parsed->patches->merge == 1);
  CHECK(parsed->patches->temporal == 1);
  CHECK(parsed->centre_rounding == CentreRounding::kDown);
  CHECK(std::get<TileGrid>(parse_recipe(tiles)->resize).tile == Size{448, 336});
  CHECK(std::get<TileGrid>(parse_recipe(tiles)->resize).max_tiles == 12);
  CHECK(std::get<BoundedSides>(parse_recipe(bounded)->resize).longest == 980);
}

TEST_CASE("a full recipe arrives in every field", "[serve]") {
  v1::Recipe recipe;
  recipe.set_ignore_orientation(true);
  recipe.mutable_crop()->mutable_random_resized()->set_max_ratio(2);
  recipe.mutable_resize()->set_shorter_side(256);
  recipe.mutable_resize()->set_filter(v1::FILTER_LANCZOS);
  recipe.mutable_centre_crop()->set_width(224);
  recipe.mutable_centre_crop()->set_height(225);
  recipe.set_flip_probability(0.5F);
  recipe.mutable_normalise()->add_mean(0.5F);
  recipe.mutable_normalise()->add_std(0.25F);
  recipe.set_range(v1::VALUE_RANGE_RAW);
  recipe.set_dtype(v1::DTYPE_BFLOAT16);
  recipe.set_layout(v1::LAYOUT_NHWC);
  recipe.set_channels(v1::CHANNELS_GREY);
  recipe.set_packing(v1::PACKING_PACKED);

  const Result<Recipe> parsed = parse_recipe(recipe);

  REQUIRE(parsed);
  CHECK(parsed->ignore_orientation);
  CHECK(std::get<RandomResizedCrop>(parsed->crop).min_scale == 0.08F);
  CHECK(std::get<RandomResizedCrop>(parsed->crop).max_ratio == 2);
  CHECK(std::get<ShorterSide>(parsed->resize).pixels == 256);
  CHECK(parsed->filter == Filter::kLanczos);
  CHECK(parsed->centre_crop == Size{224, 225});
  CHECK(parsed->flip_probability == 0.5F);
  CHECK(parsed->normalise->mean == std::array{0.5F, 0.5F, 0.5F});
  CHECK(parsed->normalise->std == std::array{0.25F, 0.25F, 0.25F});
  CHECK(parsed->range == ValueRange::kRaw);
  CHECK(parsed->dtype == DType::kBfloat16);
  CHECK(parsed->layout == Layout::kNhwc);
  CHECK(parsed->channels == Channels::kGrey);
  CHECK(parsed->packing == Packing::kPacked);
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

TEST_CASE("an empty message and a bad ticket are refused without a subject", "[serve]") {
  const Tables tables;
  v1::ClientMessage attach;
  attach.mutable_attach()->set_ticket("short");

  check_refused(tables.parse(v1::ClientMessage()), "message: is empty", Code::kInvalid, Subject{});
  check_refused(tables.parse(attach), "attach.ticket: must be the 16 bytes", Code::kInvalid, Subject{});
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
  CHECK_THAT(message_of([](auto& r) { r.set_name("a\nb"); }), Catch::StartsWith("name: must be printable"));
  CHECK_THAT(message_of([](auto& r) { r.set_name("caf\xe9"); }), Catch::StartsWith("name: must be printable"));
  CHECK(message_of([](auto& r) { r.set_name("caf\xc3\xa9"); }) == "accepted");
  CHECK_THAT(message_of([](auto& r) { r.set_slots(0); }), Catch::StartsWith("slots: must be at least 1"));
  CHECK_THAT(message_of([](auto& r) { r.set_slots(~0U); }), Catch::StartsWith("slots: must be at most"));
  CHECK_THAT(message_of([](auto& r) { r.set_slot_bytes(0); }), Catch::StartsWith("slot_bytes: must be at least 1"));
  CHECK_THAT(message_of([](auto& r) { r.set_slot_bytes(~0ULL); }), Catch::StartsWith("slot_bytes: must be at most"));
}
