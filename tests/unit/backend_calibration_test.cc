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
#include "kernels/cpu/jpeg/header.h"
#include "tests/support/temp_folder.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::Streams;

const CalibrationKey kKey{"A Processor, family 6", "1.2.3"};

std::vector<Timing> two_timings() {
  return {{{Target::kScalar, Streams::kTwo}, 12.5}, {{Target::kScalar, Streams::kOne}, 99.25}};
}

std::string whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("the pictures to time by are ones that our decoder takes", "[calibration]") {
  const std::vector<CalibrationPicture> pictures = calibration_pictures();

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

  const std::vector<Timing> timings = time_variants(*all, std::chrono::milliseconds(1));

  REQUIRE(timings.size() == all->size());
  for (const CpuVariant& variant : *all) {
    const auto timed =
        std::find_if(timings.begin(), timings.end(), [&](const Timing& timing) { return timing.variant == variant; });
    REQUIRE(timed != timings.end());
    REQUIRE(timed->microseconds > 0);
    REQUIRE(timed->microseconds >= timings.front().microseconds / 1.03);
  }
}

TEST_CASE("the settings may leave less to choose from, or nothing", "[calibration]") {
  const Result<std::vector<CpuVariant>> one_target = variants({.target = Target::kScalar, .streams = {}});
  const Result<Calibration> forced =
      calibrate({.wish = {.target = Target::kScalar, .streams = Streams::kOne}, .state_dir = "", .version = ""});

  REQUIRE(one_target->size() == 1);
  REQUIRE(forced);
  REQUIRE(forced->variant == CpuVariant{Target::kScalar, Streams::kOne});
  REQUIRE(forced->timings.empty());
}

TEST_CASE("a target that the processor lacks is refused by name", "[calibration]") {
  for (const Target target : {Target::kAvx2, Target::kAvx512}) {
    const Result<std::vector<CpuVariant>> found = variants({.target = target, .streams = {}});
    if (kernels::is_available(target)) {
      REQUIRE(found->size() == 2);
    } else {
      REQUIRE(found.error().code == Code::kInvalid);
      REQUIRE_THAT(found.error().message, Catch::Contains(std::string(kernels::name_of(target))));
    }
  }
}

TEST_CASE("timings are read back as they were written", "[calibration]") {
  const std::optional<std::vector<Timing>> read = read_timings(timings_text(two_timings(), kKey), kKey);

  REQUIRE(read);
  REQUIRE(read->size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE((*read)[i].variant == two_timings()[i].variant);
    REQUIRE((*read)[i].microseconds == two_timings()[i].microseconds);
  }
}

TEST_CASE("another processor's or version's timings do not count, nor damaged ones", "[calibration]") {
  const std::string text = timings_text(two_timings(), kKey);

  REQUIRE_FALSE(read_timings(text, {"Another Processor", kKey.version}));
  REQUIRE_FALSE(read_timings(text, {kKey.processor, "1.2.4"}));
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto cut = read_timings(text.substr(0, length), kKey);
    if (cut) REQUIRE(cut->front().variant == two_timings().front().variant);  // whole lines, or a shorter number
  }
  const std::string head = text.substr(0, text.find("scalar"));
  for (const char* line : {"mmx 2 5", "scalar 3 5", "scalar 2", "scalar 2 -5", "scalar 2 nan", "scalar 2 inf",
                           "scalar 2 5 5", "scalar 2 1e99", "", "scalar  2 5", " "})
    REQUIRE_FALSE(read_timings(head + line + "\n", kKey));
}

TEST_CASE("a calibration is measured once and remembered for the processor and the version", "[calibration]") {
  if (kernels::available_targets().size() == 1) {
    WARN("SKIPPED: this processor leaves nothing to choose from");
    return;
  }
  const TempFolder state;
  const CalibrationOptions options{.wish = {}, .state_dir = state.path(), .version = "1.2.3"};
  const Result<Calibration> first = calibrate(options);
  const std::string path = calibration_path(state.path(), {processor_model(), "1.2.3"});
  const std::string kept = whole(path);
  REQUIRE_THAT(first->source, Catch::StartsWith("measured at start, kept in " + path));

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
  options.calibration =
      CalibrationOptions{.wish = {.target = Target::kScalar, .streams = Streams::kOne}, .state_dir = "", .version = ""};

  const BackendInfo info = (*CpuBackend::create(options))->info();

  REQUIRE(info.detail == "scalar");
  REQUIRE(info.properties[0] == std::pair<std::string, std::string>("decoding", "scalar"));
  REQUIRE(info.properties[2] == std::pair<std::string, std::string>("placement", "not pinned"));
}

}  // namespace
}  // namespace millrace
