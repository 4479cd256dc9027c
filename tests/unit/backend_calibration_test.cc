// Choosing how to decode by measuring, and remembering it.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/backend/cpu/calibration.h"
#include "daemon/backend/cpu/calibration_file.h"
#include "daemon/backend/cpu/calibration_picture.h"
#include "daemon/backend/cpu/cpu_backend.h"
#include "kernels/jpeg/header.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::SegmentPath;
using kernels::jpeg::Streams;

const CalibrationKey kKey{"A Processor, family 6", "1.2.3"};

Timings some_timings() {
  return {.first = {{{Target::kScalar, Streams::kTwo, {}}, 12.5}, {{Target::kScalar, Streams::kOne, {}}, 99.25}},
          .indexed = {{{Target::kScalar, Streams::kTwo, SegmentPath::kTurns}, 7.75}}};
}

bool has_avx512() {
  if (kernels::is_available(Target::kAvx512)) return true;
  skip_loudly("instructions: this processor lacks avx512");
  return false;
}

std::string whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("the pictures to time by are ones that our decoder takes", "[calibration]") {
  const std::vector<CalibrationPicture> pictures = calibration_pictures({352, 264});

  REQUIRE(pictures.size() == 2);
  for (const CalibrationPicture& picture : pictures) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(picture.jpeg.data());
    const auto header = kernels::jpeg::read_header({bytes, picture.jpeg.size()});
    REQUIRE(header);
    REQUIRE(static_cast<std::uint32_t>(header->size.width) == picture.info.stored.width);
    const double bits = 8.0 * static_cast<double>(picture.jpeg.size()) / (header->size.width * header->size.height);
    REQUIRE(bits > 2);  // a photograph's, not a drawing's
    REQUIRE(bits < 8);
  }
}

TEST_CASE("every variant that this processor has is timed", "[calibration]") {
  const Result<std::vector<CpuVariant>> all = variants({});
  REQUIRE(all);
  REQUIRE(all->size() == 2 * kernels::available_targets().size() - 1);  // libjpeg-turbo knows no streams

  const std::vector<Timing> timings = time_variants(*all, Touch::kFirst, std::chrono::milliseconds(1));

  REQUIRE(timings.size() == all->size());
  for (const CpuVariant& variant : *all) {
    const auto timed =
        std::find_if(timings.begin(), timings.end(), [&](const Timing& timing) { return timing.variant == variant; });
    REQUIRE(timed != timings.end());
    REQUIRE(timed->microseconds > 0);
    REQUIRE(timed->microseconds >= timings.front().microseconds / 1.06);
  }
}

TEST_CASE("by an index lanes and turns are timed", "[calibration]") {
  if (!has_avx512()) return;
  const CpuVariant chosen{Target::kAvx512, Streams::kTwo, {}};

  const std::vector<CpuVariant> choices = indexed_variants(chosen, {});
  const std::vector<Timing> timings = time_variants(choices, Touch::kIndexed, std::chrono::milliseconds(1));

  REQUIRE(choices.size() == 2);
  REQUIRE(choices[0].segments == kernels::jpeg::usual_segment_path(Target::kAvx512));
  REQUIRE(choices[1].segments != choices[0].segments);
  REQUIRE(timings.size() == 2);
  for (const Timing& timing : timings) REQUIRE(timing.microseconds > 0);
}

TEST_CASE("where there are no lanes, indexed pieces take turns", "[calibration]") {
  REQUIRE(indexed_variants({Target::kAvx2, Streams::kOne, {}}, {}) ==
          std::vector<CpuVariant>{{Target::kAvx2, Streams::kOne, SegmentPath::kTurns}});
  REQUIRE(indexed_variants({Target::kScalar, Streams::kOne, {}}, {}) ==
          std::vector<CpuVariant>{{Target::kScalar, Streams::kOne, {}}});
}

TEST_CASE("what usually is best is left only for what is clearly faster, in most rounds", "[calibration]") {
  const CpuVariant usual{Target::kAvx512, Streams::kTwo, SegmentPath::kVectors};
  const CpuVariant other{Target::kAvx512, Streams::kTwo, SegmentPath::kTurns};
  const std::vector<CpuVariant> variants{usual, other};
  const auto winner = [&](std::vector<double> usual_rounds, std::vector<double> other_rounds) {
    const std::vector<std::vector<double>> rounds{std::move(usual_rounds), std::move(other_rounds)};
    return ranked(variants, rounds).front().variant;
  };

  REQUIRE(winner({100, 100, 100}, {96, 96, 96}) == usual);
  REQUIRE(winner({100, 100, 100}, {94, 94, 94}) == other);
  REQUIRE(winner({100, 100, 100}, {10, 101, 101}) == usual);            // one lucky round
  REQUIRE(winner({100, 300, 100}, {100, 90, 100}) == usual);            // one unlucky one
  REQUIRE(winner({100, 200, 300, 400}, {90, 180, 270, 360}) == other);  // the processor is slowed down meanwhile
}

TEST_CASE("timings are given in the unit of the usual variant's median", "[calibration]") {
  const std::vector<CpuVariant> variants{{Target::kAvx512, Streams::kTwo, {}}, {Target::kAvx512, Streams::kOne, {}}};
  const std::vector<std::vector<double>> rounds{{100, 110, 300}, {150, 165, 450}};

  const std::vector<Timing> timings = ranked(variants, rounds);

  REQUIRE(timings[0].microseconds == Approx(110));
  REQUIRE(timings[1].microseconds == Approx(165));
}

TEST_CASE("the settings may leave less to choose from, or nothing", "[calibration]") {
  const Result<std::vector<CpuVariant>> one_target =
      variants({.target = Target::kScalar, .streams = {}, .segments = {}});
  const Result<Calibration> forced = calibrate(
      {.wish = {.target = Target::kScalar, .streams = Streams::kOne, .segments = {}}, .state_dir = "", .version = ""});

  REQUIRE(one_target->size() == 1);
  REQUIRE(forced);
  REQUIRE(forced->variant == CpuVariant{Target::kScalar, Streams::kOne, {}});
  REQUIRE(forced->timings.first.empty());
  REQUIRE(forced->timings.indexed.empty());
}

TEST_CASE("lanes or turns can be forced, and nothing is measured for it", "[calibration]") {
  if (!has_avx512()) return;
  for (const SegmentPath path : {SegmentPath::kVectors, SegmentPath::kTurns}) {
    const Result<Calibration> forced =
        calibrate({.wish = {.target = Target::kAvx512, .streams = Streams::kTwo, .segments = path},
                   .state_dir = "",
                   .version = ""});

    REQUIRE(forced->variant.segments == path);
    REQUIRE(forced->source == "there is nothing to choose from");
  }
  REQUIRE(variants({.target = {}, .streams = {}, .segments = SegmentPath::kVectors})->size() == 2);  // all AVX-512
}

TEST_CASE("a target that the processor lacks is refused by name", "[calibration]") {
  for (const Target target : {Target::kAvx2, Target::kAvx512}) {
    const Result<std::vector<CpuVariant>> found = variants({.target = target, .streams = {}, .segments = {}});
    if (kernels::is_available(target)) {
      REQUIRE(found->size() == 2);
    } else {
      REQUIRE(found.error().code == Code::kInvalid);
      REQUIRE_THAT(found.error().message, Catch::Contains(std::string(kernels::name_of(target))));
    }
  }
}

TEST_CASE("lanes are refused where the target has none", "[calibration]") {
  const auto refused = variants({.target = Target::kScalar, .streams = {}, .segments = SegmentPath::kVectors});

  REQUIRE(refused.error().code == Code::kInvalid);
  REQUIRE_THAT(refused.error().message, Catch::Contains("cpu.indexed"));
}

TEST_CASE("timings are read back as they were written", "[calibration]") {
  const Timings written = some_timings();
  const std::optional<Timings> read = read_timings(timings_text(written, kKey), kKey);

  REQUIRE(read);
  for (const auto& list : {&Timings::first, &Timings::indexed}) {
    REQUIRE(((*read).*list).size() == (written.*list).size());
    for (std::size_t i = 0; i < (written.*list).size(); ++i) {
      REQUIRE(((*read).*list)[i].variant == (written.*list)[i].variant);
      REQUIRE(((*read).*list)[i].microseconds == (written.*list)[i].microseconds);
    }
  }
}

TEST_CASE("another processor's or version's timings do not count, nor damaged ones", "[calibration]") {
  const std::string text = timings_text(some_timings(), kKey);

  REQUIRE_FALSE(read_timings(text, {"Another Processor", kKey.version}));
  REQUIRE_FALSE(read_timings(text, {kKey.processor, "1.2.4"}));
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto cut = read_timings(text.substr(0, length), kKey);
    if (cut)
      REQUIRE(cut->first.front().variant == some_timings().first.front().variant);  // whole lines, or a shorter number
  }
  const std::string head = text.substr(0, text.find("first"));
  REQUIRE(read_timings(head + "first scalar 2 5\n", kKey));
  for (const char* line :
       {"first mmx 2 5", "first scalar 3 5", "first scalar 2", "first scalar 2 -5", "first scalar 2 nan",
        "first scalar 2 inf", "first scalar 2 5 5", "first scalar 2 1e99", "", "first scalar  2 5", " ", "scalar 2 5",
        "first scalar 2 turns 5", "indexed scalar 2 5", "indexed scalar 2 lanes 5", "indexed scalar 2 turns 5"})
    REQUIRE_FALSE(read_timings(head + line + "\n", kKey));
}

TEST_CASE("a calibration is measured once and remembered for the processor and the version", "[calibration]") {
  if (kernels::available_targets().size() == 1) return skip_loudly("choosing: this processor has one target");
  const TempFolder state;
  const CalibrationOptions options{.wish = {}, .state_dir = state.path(), .version = "1.2.3"};
  const Result<Calibration> first = calibrate(options);
  const std::string path = calibration_path(state.path(), {processor_model(), "1.2.3"});
  const std::string kept = whole(path);
  REQUIRE_THAT(first->source, Catch::StartsWith("measured at start in "));
  REQUIRE_THAT(first->source, Catch::EndsWith(" ms, kept in " + path));

  const Result<Calibration> second = calibrate(options);

  REQUIRE_THAT(second->source, Catch::StartsWith("measured before"));
  REQUIRE(second->variant == first->variant);
  REQUIRE(whole(path) == kept);
  REQUIRE_THAT(calibrate({.wish = {}, .state_dir = state.path(), .version = "1.2.4"})->source,
               Catch::StartsWith("measured at start"));
  std::ofstream(path) << "elephants";
  REQUIRE_THAT(calibrate(options)->source, Catch::StartsWith("measured at start"));
  REQUIRE(whole(path).size() > kept.size() / 2);  // mended
}

TEST_CASE("without a state directory calibration works all the same", "[calibration]") {
  const TempFolder folder;

  const Result<Calibration> calibration =
      calibrate({.wish = {}, .state_dir = folder / "no/such/folder", .version = "1"});

  REQUIRE(calibration);
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("the backend says how it decodes and where its lanes are", "[calibration]") {
  BackendOptions options{.lanes = 1};
  options.calibration = CalibrationOptions{
      .wish = {.target = Target::kScalar, .streams = Streams::kOne, .segments = {}}, .state_dir = "", .version = ""};

  const BackendInfo info = (*CpuBackend::create(options))->info();

  REQUIRE(info.detail == "scalar");
  REQUIRE(info.properties[0] == std::pair<std::string, std::string>("decoding", "scalar"));
  REQUIRE(info.properties[2] == std::pair<std::string, std::string>("placement", "not pinned"));
}

}  // namespace
}  // namespace millrace
