// Decoder processes that crash, hang or lie: one sample's error, and nothing left behind.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "proto/base/sanitized.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/process.h"
#include "tests/unit/daemon/backend/cpu/isolation/isolation_rig.h"

namespace millrace {
namespace {

std::unique_ptr<DecoderChild> started() {
  Result<std::unique_ptr<DecoderChild>> child = DecoderChild::start(decoder_under_test());
  if (!child) FAIL(child.error().message);
  return *std::move(child);
}

DecoderRequest whole_request(const LibraryFile& file) {
  return {.width = file.size.width,
          .height = file.size.height,
          .box_width = file.size.width,
          .box_height = file.size.height,
          .format = static_cast<std::uint8_t>(file.format)};
}

}  // namespace

TEST_CASE("a decoder that crashes over a file costs this sample, and says how", "[isolation]") {
  const auto child = started();
  ::kill(child->pid(), SIGSTOP);
  const LibraryFile file = png_file(40, 30);
  DecoderRequest request = whole_request(file);
  const pid_t pid = child->pid();
  const auto end = std::async(std::launch::async, [pid] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it mostly has been asked
    ::kill(pid, kCrash);
    ::kill(pid, SIGCONT);
  });

  const auto answer = child->ask(request, file.bytes, 1_MiB, 1_MiB, Clock::now() + std::chrono::minutes(1));

  REQUIRE(answer);
  REQUIRE(answer->end == DecoderAnswer::End::kDied);
  REQUIRE(answer->signal == kCrash);
  REQUIRE(death_error(*answer).message == "the decoder crashed on this file (signal " + std::to_string(kCrash) + ")");
  REQUIRE(death_error(*answer).code == Code::kInvalid);
  REQUIRE(processes().empty());
}

TEST_CASE("a file that every decoder process crashes over is an error, and the next one is decoded", "[isolation]") {
  const DecoderProgram liar = decoder_program_at(tests_folder() + "/millrace_lying_decoder");
  Counters counters;
  DecoderChildren children(liar, &counters);
  PixelBuffer buffer;
  const LibraryFile file = png_file(100, 100);
  DecodeRequest request = whole_of(file);
  request.box = {0, 0, 15, 100};

  const auto pixels = children.decode(file.format, request, buffer);

  REQUIRE_FALSE(pixels);
  REQUIRE(pixels.error().message.find("signal " + std::to_string(kCrash)) != std::string::npos);
  REQUIRE(counters.stored(MetricId::decoder_deaths) >= 1);
  request.box.width = 20;
  REQUIRE(children.decode(file.format, request, buffer));
}

TEST_CASE("an image over which a used decoder process dies is tried in a new one", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file));
  ::kill(the_process(), SIGKILL);

  const auto pixels = lane.decode(file);

  REQUIRE(pixels);
  REQUIRE(lane.counters.stored(MetricId::decoder_deaths) == 1);
  REQUIRE(lane.counters.stored(MetricId::decoder_starts) == 2);
}

TEST_CASE("a decoder process that hangs is killed at the deadline, and the next image gets another", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file));
  const pid_t hangs = the_process();
  ::kill(hangs, SIGSTOP);

  const auto late = lane.decode(file, whole_of(file, 1, Clock::now() + std::chrono::milliseconds(100)));

  REQUIRE_FALSE(late);
  REQUIRE(late.error().code == Code::kDeadline);
  REQUIRE(processes().empty());
  REQUIRE(lane.decode(file));
}

TEST_CASE("a decoder process ends once nobody wants what it decodes, which is no death", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file));
  ::kill(the_process(), SIGSTOP);
  std::atomic<bool> unwanted{false};
  DecodeRequest request = whole_of(file);
  request.deadline = {Clock::now() + std::chrono::minutes(1), &unwanted};
  const auto stops = std::async(std::launch::async, [&] { unwanted = true; });

  REQUIRE_FALSE(lane.decode(file, request));

  REQUIRE(processes().empty());
  REQUIRE(lane.counters.stored(MetricId::decoder_deaths) == 0);
  REQUIRE(lane.decode(file));
}

TEST_CASE("decoders killed one after the other leave neither descriptors nor processes", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file));
  const std::size_t descriptors = open_descriptors();

  for (int i = 0; i < (kSanitized ? 5 : 40); ++i) {
    ::kill(the_process(), i % 2 == 0 ? kCrash : SIGKILL);
    REQUIRE(lane.decode(file));
  }

  REQUIRE(processes().size() == 1);
  REQUIRE(open_descriptors() == descriptors);
}

TEST_CASE("decoder processes end with their lane", "[isolation]") {
  std::thread([] {
    LaneOnTheBench lane;
    REQUIRE(lane.decode(png_file(40, 30)));
    REQUIRE(processes().size() == 1);
  }).join();

  REQUIRE(processes().empty());
}

TEST_CASE("a decoder process ends when the thread that started it is gone, whichever thread holds it", "[isolation]") {
  std::unique_ptr<DecoderChild> child;
  std::thread([&] { child = started(); }).join();

  REQUIRE(eventually([&] { return status_line(child->pid(), "State").starts_with("Z"); }));
}

TEST_CASE("an answer that makes no sense is the sample's error and leads nowhere", "[isolation]") {
  const DecoderProgram liar = decoder_program_at(tests_folder() + "/millrace_lying_decoder");
  DecoderChildren children(liar);
  PixelBuffer buffer;
  const LibraryFile file = png_file(100, 100);
  for (int lie = 1; lie <= 13; ++lie) {
    CAPTURE(lie);
    DecodeRequest request = whole_of(file);
    request.box = {0, 0, lie, 100};

    const auto pixels = children.decode(file.format, request, buffer);

    REQUIRE_FALSE(pixels);
    REQUIRE(pixels.error().code == Code::kInvalid);
    REQUIRE(pixels.error().message.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a packed form that a decoder process makes up leads nowhere", "[isolation]") {
  const DecoderProgram liar = decoder_program_at(tests_folder() + "/millrace_lying_decoder");
  DecoderChildren children(liar);
  kernels::packed::Encoder encoder;
  const LibraryFile file = png_file(100, 100);
  DecodeRequest request = whole_of(file);
  request.box.width = 14;

  REQUIRE_FALSE(children.pack(request, encoder));
}

TEST_CASE("pixels that a decoder process never wrote are nobody's", "[isolation]") {
  const DecoderProgram liar = decoder_program_at(tests_folder() + "/millrace_lying_decoder");
  DecoderChildren children(liar);
  PixelBuffer buffer;
  const LibraryFile file = png_file(100, 100);
  DecodeRequest request = whole_of(file);
  request.box = {0, 0, 20, 100};

  const auto pixels = children.decode(file.format, request, buffer);

  REQUIRE(pixels);
  for (int y = 0; y < pixels->height; ++y)
    REQUIRE(std::all_of(pixels->row(y), pixels->row(y) + 60, [](std::uint8_t value) { return value == 0; }));
}

}  // namespace millrace
