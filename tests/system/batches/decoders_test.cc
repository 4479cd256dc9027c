// A daemon whose libraries decode in processes of their own (cpu.isolation = "process"): what comes of them when they
// are killed at work, and when the daemon is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

constexpr std::uint32_t kPictures = 8;
const std::uint32_t kSide = under_sanitizer() ? 600 : 1600;

// Pictures that libspng decodes, in the first half of the paths, and baseline JPEG files, which the lanes decode.
struct DecoderMill {
  explicit DecoderMill(const std::string& cpu = "isolation = \"process\"\n")
      : daemon({.roots = {folder.path()}, .cpu = cpu, .cache = "memory = 0\n"}),
        session(need(daemon.connect().open_session({.slots = 2, .batch = kPictures, .recipe = Recipe::train(40)}))) {
    const Pixels pixels = make_pixels(kSide, kSide, 3, 1);
    const auto png = make_png({.pixels = pixels}), jpeg = make_jpeg({.pixels = pixels});
    for (std::uint32_t i = 0; i < kPictures; ++i) {
      paths.push_back(folder / (std::to_string(i) + (i < kPictures / 2 ? ".png" : ".jpg")));
      write_file(paths.back(), i < kPictures / 2 ? png : jpeg);
    }
  }
  Batch make() {
    BatchRequest request{.seed = 1, .on_error = OnError::kSkip};
    for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
    return need(session.wait(need(session.submit(std::move(request)))));
  }
  std::vector<pid_t> decoders() const { return decoder_processes(daemon.pid()); }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  Session session;
};

}  // namespace

TEST_CASE("decoders that crash again and again cost their samples alone, and the daemon goes on", "[system]") {
  DecoderMill mill;
  REQUIRE(mill.make().errors.empty());
  Batch batch;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const pid_t decoder : mill.decoders()) {
          if (is_shut_in(decoder)) ::kill(decoder, kCrash);
        }
      }
    });
    // Each image is tried in a new process once more, so that of many a few get through.
    REQUIRE(eventually([&] { return !(batch = mill.make()).errors.empty(); }, std::chrono::minutes(2)));
  }

  for (const SampleError& error : batch.errors) {
    REQUIRE(error.sample < kPictures / 2);
    REQUIRE_THAT(error.error.message, Catch::Contains("signal " + std::to_string(kCrash)));
  }
  REQUIRE(mill.make().errors.empty());
  REQUIRE(mill.daemon.metric("millrace_decoder_deaths_total") >= 1);
  REQUIRE(logs(mill.daemon, "at work with libspng was lost"));
}

TEST_CASE("a daemon killed with -9 leaves no decoder behind", "[system]") {
  DecoderMill mill;
  REQUIRE(mill.make().errors.empty());
  const std::vector<pid_t> decoders = mill.decoders();
  REQUIRE_FALSE(decoders.empty());

  mill.daemon.kill(SIGKILL);
  REQUIRE(mill.daemon.wait());

  const auto is_gone = [](pid_t decoder) {
    const std::string state = status_line(decoder, "State");
    return state.empty() || state.starts_with("Z");  // of which the machine's first process takes note
  };
  REQUIRE(eventually([&] { return std::all_of(decoders.begin(), decoders.end(), is_gone); }));
}

TEST_CASE("a daemon that stops ends its decoders", "[system]") {
  DecoderMill mill;
  REQUIRE(mill.make().errors.empty());
  const std::vector<pid_t> decoders = mill.decoders();
  REQUIRE_FALSE(decoders.empty());

  mill.daemon.kill(SIGTERM);

  REQUIRE(mill.daemon.wait() == 0);
  for (const pid_t decoder : decoders) REQUIRE(status_line(decoder, "State").empty());
}

TEST_CASE("baseline JPEG files need no decoder process", "[system]") {
  DecoderMill mill;
  mill.paths.erase(mill.paths.begin(), mill.paths.begin() + kPictures / 2);

  REQUIRE(mill.make().errors.empty());

  REQUIRE(mill.decoders().empty());
}

TEST_CASE("a daemon does not start without the decoders that its settings want", "[system]") {
  try {
    DecoderMill mill("isolation = \"process\"\ndecoder = \"/nonexistent/millrace-decoder\"\n");
    FAIL("it started");
  } catch (const std::runtime_error& error) {
    REQUIRE_THAT(error.what(), Catch::Contains("cpu.isolation") && Catch::Contains("/nonexistent/millrace-decoder"));
  }
}

TEST_CASE("a daemon keeps its own decoder when an upgrade puts another in its place", "[system]") {
  const TempFolder folder;
  const std::string program = folder / "millrace-decoder";
  std::filesystem::copy_file(bin_folder() + "/millrace-decoder", program);
  DecoderMill mill("isolation = \"process\"\ndecoder = \"" + program + "\"\n");
  write_file(folder / "another", std::string("no program"));
  std::filesystem::rename(folder / "another", program);
  for (const pid_t decoder : mill.decoders()) ::kill(decoder, SIGKILL);

  REQUIRE(mill.make().errors.empty());
}

}  // namespace millrace
