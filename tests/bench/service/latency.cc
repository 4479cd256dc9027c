// One image's way through an idle daemon: from submit() to the view, less what its stages took of it (reading, decoding,
// transforming, by the sample's own record). That is what a server pays beside the work itself.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kLatencySide = 32;
constexpr std::uintmax_t kUsual = 200'000, kLarge = 1'000'000;  // bytes

std::vector<std::byte> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* const bytes = reinterpret_cast<const std::byte*>(read.data());
  return {bytes, bytes + read.size()};
}

std::string nearest_in_size(const std::vector<std::string>& files, std::uintmax_t bytes) {
  const auto distance = [&](const std::string& file) {
    const std::uintmax_t size = std::filesystem::file_size(file);
    return size > bytes ? size - bytes : bytes - size;
  };
  return *std::min_element(files.begin(), files.end(),
                           [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
}

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

struct LatencyTimes {
  std::vector<double> beside, all;
};

void ask_once(Session& session, const BatchRequest& request, LatencyTimes& times) {
  const auto begin = std::chrono::steady_clock::now();
  must(session.submit(request), "submitting");
  const Batch batch = must(session.next(), "waiting for the batch");
  if (batch.failure) give_up("a batch failed: " + batch.failure->message);
  const volatile std::byte first = batch.tensor.data().front();
  static_cast<void>(first);
  const auto took = std::chrono::steady_clock::now() - begin;
  const SampleInfo info = batch.tensor.sample(0);
  times.all.push_back(microseconds(took));
  times.beside.push_back(microseconds(took - info.fetch - info.decode - info.transform));
}

void measure(Rig& rig, const BenchOptions& options, const Report& report, const char* name, const std::string& what,
             Source source) {
  report.progress("one image, " + what);
  Session session = must(rig.client.open_session({.name = "latency",
                                                  .slots = 2,
                                                  .batch = 1,
                                                  .recipe = {.resize = ExactSize{{kLatencySide, kLatencySide}}},
                                                  .cache = CacheUse::kOff}),
                         "opening a session");
  BatchRequest request;
  request.samples.push_back(Sample{.source = std::move(source)});
  wait_until_filled(rig);
  const std::uint32_t rounds = options.quick ? 20 : 1'000;
  LatencyTimes times, warm_up;
  for (std::uint32_t i = 0; i < 20; ++i) ask_once(session, request, warm_up);
  for (std::uint32_t i = 0; i < rounds; ++i) ask_once(session, request, times);
  const auto whole = [](double value) { return std::to_string(std::lround(value)); };
  report.add({.name = std::string("latency.overhead.") + name,
              .value = median(times.beside),
              .unit = "us",
              .rounds = rounds,
              .baseline = {},
              .note = what + "; p99 " + whole(percentile(times.beside, 99)) + " us; with the stages " +
                      whole(median(times.all)) + " us"});
}

}  // namespace

void run_latency(const BenchOptions& options, const Report& report) {
  const std::vector<std::string> files = files_in(options.data);
  Rig rig = Rig::start(options.data, 1);
  const std::vector<std::byte> tiny = make_jpeg({.pixels = make_pixels(kLatencySide, kLatencySide, 3, 1)});
  measure(rig, options, report, "tiny", "32 x 32 pixels, bytes with the request", Encoded{.bytes = tiny});
  const std::string file = nearest_in_size(files, kUsual);
  std::vector<std::byte> photograph = contents(file);
  measure(rig, options, report, "inline", "a photograph of 200 KB, bytes with the request",
          Encoded{.bytes = photograph});
  measure(rig, options, report, "path", "the same by path", Path{file});
  photograph.resize(kLarge);  // decoders stop at the picture's end
  measure(rig, options, report, "large", "the same, padded to 1 MB, bytes with the request",
          Encoded{.bytes = photograph});
}

}  // namespace millrace::bench
