// Decoder processes at work: the pixels of the lane's own decoding, one user a process, no more memory than a lane may
// keep.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <thread>

#include "daemon/backend/cpu/cpu_backend.h"
#include "proto/base/sanitized.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/descriptor_limit.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cpu/isolation/isolation_rig.h"

namespace millrace {

TEST_CASE("a decoder process gives the pixels and the verdicts that a lane gives", "[isolation]") {
  LaneOnTheBench lane;
  DecodingInLane in_lane;
  PixelBuffer buffer;
  std::mt19937 random(1);
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  for (const LibraryFile& file : library_files(150, 101)) {
    for (int round = 0; round < (kSanitized ? 4 : 20); ++round) {
      File bytes = file.bytes;
      if (round % 4 == 3) bytes.resize(bytes.size() - bytes.size() / 5);
      if (round % 4 == 2) bytes[bytes.size() / 2] ^= std::byte{0x55};
      const int left = below(140), top = below(90);
      DecodeRequest request = whole_of(file);
      request.bytes_untrusted = bytes;
      request.indices = round % 3 == 1;
      if (round > 0) request.box = {left, top, 1 + below(150 - left), 1 + below(101 - top)};
      CAPTURE(file.name, round, request.box.left, request.box.top, request.box.width, request.box.height);

      const auto expected = in_lane.decode(file.format, request, buffer);
      const auto pixels = lane.decode(file, request);

      REQUIRE(pixels.has_value() == expected.has_value());
      if (expected) {
        REQUIRE(same(*pixels, *expected));
      } else {
        REQUIRE(pixels.error().message == expected.error().message);
        REQUIRE(pixels.error().code == expected.error().code);
      }
    }
  }
  REQUIRE(lane.counters.stored(MetricId::decoder_starts) == 1);
  REQUIRE(lane.counters.stored(MetricId::decoder_deaths) == 0);
}

TEST_CASE("a library that says on stderr what is wrong with a file is not killed for it", "[isolation]") {
  if (!can_make_avif()) return skip_loudly("a decoder process with a damaged AVIF: this build has no libavif");
  LaneOnTheBench lane;
  LibraryFile file = library_file("avif", 40, 30);
  constexpr std::array kName{std::byte{'m'}, std::byte{'d'}, std::byte{'a'}, std::byte{'t'}};
  const auto name = std::search(file.bytes.begin(), file.bytes.end(), kName.begin(), kName.end());
  REQUIRE(name != file.bytes.end());
  std::fill(name + 4, file.bytes.end(), std::byte{0x5A});

  const auto pixels = lane.decode(file, whole_of(file));

  REQUIRE_FALSE(pixels);
  REQUIRE(pixels.error().message.starts_with("damaged AVIF: "));
  REQUIRE(lane.counters.stored(MetricId::decoder_deaths) == 0);
}

TEST_CASE("a decoder process gives a HEIC's pixels and verdicts as a lane does", "[isolation]") {
  LaneOnTheBench lane;
  DecodingInLane in_lane;
  PixelBuffer buffer;
  if (!in_lane.decode(ImageFormat::kHeic,
                      {heic_file("colour"), {40, 30}, {0, 0, 1, 1}, Clock::now() + std::chrono::minutes(1)}, buffer))
    return skip_loudly("a decoder process with HEIC: this build, or this host, has no libde265");
  std::mt19937 random(1);
  for (const char* const name : {"colour", "grey", "deep", "grid"}) {
    const Pixels pixels = heic_pixels(name);
    const kernels::Size size{static_cast<int>(pixels.width), static_cast<int>(pixels.height)};
    for (int round = 0; round < 20; ++round) {
      LibraryFile file{name, ImageFormat::kHeic, size, heic_file(name)};
      if (round % 4 == 3) file.bytes.resize(file.bytes.size() - file.bytes.size() / 5);
      if (round % 4 == 2) file.bytes[file.bytes.size() - 1 - random() % 300] ^= std::byte{0x55};
      const auto expected = in_lane.decode(file.format, whole_of(file), buffer);
      CAPTURE(name, round);

      const auto made = lane.decode(file, whole_of(file));

      REQUIRE(made.has_value() == expected.has_value());
      if (expected) {
        REQUIRE(same(*made, *expected));
      } else {
        REQUIRE(made.error().message == expected.error().message);
      }
    }
  }
  REQUIRE(lane.counters.stored(MetricId::decoder_deaths) == 0);
}

TEST_CASE("a decoder process decodes a JPEG to fewer samples as a lane does", "[isolation]") {
  LaneOnTheBench lane;
  DecodingInLane in_lane;
  PixelBuffer buffer;
  const LibraryFile file = library_file("jpeg progressive", 333, 250);
  for (const int reduction : {2, 4, 8}) {
    DecodeRequest request = whole_of(file);
    request.reduction = reduction;
    request.box = {1, 2, 300 / reduction, 200 / reduction};
    CAPTURE(reduction);

    const auto expected = in_lane.decode(file.format, request, buffer);
    const auto pixels = lane.decode(file, request);

    REQUIRE(expected);
    REQUIRE(pixels);
    REQUIRE(same(*pixels, *expected));
  }
}

TEST_CASE("a decoder process packs a JPEG to the bytes that a lane packs it to", "[isolation]") {
  LaneOnTheBench lane;
  DecodingInLane in_lane;
  kernels::packed::Encoder encoder;
  for (const LibraryFile& file : library_files(333, 250)) {
    if (file.format != ImageFormat::kJpeg) continue;
    CAPTURE(file.name);

    const auto expected = in_lane.pack(whole_of(file), encoder);
    const auto packed = lane.children.pack(whole_of(file), encoder);

    REQUIRE(packed.has_value() == expected.has_value());
    if (expected) REQUIRE(*packed == *expected);
    if (!expected) REQUIRE(packed.error().message == expected.error().message);
  }
}

TEST_CASE("a decoder process reaches as far as limits that are in force now", "[isolation]") {
  DecoderProgram program = decoder_under_test();
  InForce<Limits> limits(Limits{.sample = {.encoded = 1_MiB, .pixels = 10'000, .side = 100}});
  program.limits = limits;
  DecoderChildren children(program);
  PixelBuffer buffer;
  const LibraryFile large = png_file(1500, 1200);
  REQUIRE_FALSE(children.decode(large.format, whole_of(large), buffer));

  limits.put(Limits{});

  REQUIRE(children.decode(large.format, whole_of(large), buffer));
}

TEST_CASE("an image waits for what its decoder process lacks, until its deadline", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  std::unique_ptr<DescriptorLimit> limit(new DescriptorLimit(DescriptorLimit::none()));

  const auto late = lane.decode(file, whole_of(file, 1, Clock::now() + std::chrono::milliseconds(20)));
  std::thread later([&] { limit.reset(); });
  const auto decoded = lane.decode(file);
  later.join();

  REQUIRE_FALSE(late);
  REQUIRE(late.error().code == Code::kUnavailable);
  REQUIRE_THAT(late.error().message, Catch::Contains("nothing is wrong with the image"));
  REQUIRE(decoded);
}

TEST_CASE("two users never share a decoder process, and each keeps his", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);

  REQUIRE(lane.decode(file, 1000));
  const pid_t of_first = the_process();
  REQUIRE(lane.decode(file, 1001));
  REQUIRE(processes().size() == 2);
  REQUIRE(lane.decode(file, 1000));

  REQUIRE(processes().size() == 2);
  REQUIRE(is_shut_in(of_first));
  REQUIRE(lane.counters.stored(MetricId::decoder_starts) == 2);
}

TEST_CASE("a lane has decoder processes of a few users, and the one longest ago makes way", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file, 0));
  const pid_t first = the_process();

  for (std::uint32_t user = 1; user <= DecoderChildren::kMost; ++user) REQUIRE(lane.decode(file, user));

  const std::vector<pid_t> left = processes();
  REQUIRE(left.size() == DecoderChildren::kMost);
  REQUIRE(std::find(left.begin(), left.end(), first) == left.end());
}

TEST_CASE("what is kept for everybody is made by a decoder process that has seen nothing before", "[isolation]") {
  LaneOnTheBench lane;
  const LibraryFile file = png_file(40, 30);
  REQUIRE(lane.decode(file));
  const pid_t before = the_process();
  DecodeRequest request = whole_of(file);
  request.origin.audience = Origin::Audience::kEverybody;

  REQUIRE(lane.decode(file, request));
  const pid_t first = the_process();
  REQUIRE(lane.decode(file, request));

  REQUIRE(first != before);
  REQUIRE(the_process() != first);
}

TEST_CASE("a decoder process that a large picture has let take more memory may not keep it", "[isolation]") {
  if (kSanitized) return skip_loudly("a decoder's limit on memory: not there under sanitizers");
  LaneOnTheBench lane;
  const LibraryFile large = library_file("jpeg progressive", 2600, 2000), small = png_file(40, 30);
  DecodeRequest of_small = whole_of(small);
  of_small.codec = 1_MiB;
  const auto limit_of = [](pid_t process) {
    rlimit limit{};
    REQUIRE(prlimit(process, RLIMIT_DATA, nullptr, &limit) == 0);
    return limit.rlim_cur;
  };
  REQUIRE(lane.decode(small, of_small));
  REQUIRE(limit_of(the_process()) == DecoderChild::kData.count);

  REQUIRE(lane.decode(large));
  REQUIRE(limit_of(the_process()) > DecoderChild::kData.count);
  const pid_t used = the_process();
  lane.children.trim();
  REQUIRE(the_process() == used);  // once it has let go of the memory

  REQUIRE(lane.decode(small, of_small));
  REQUIRE(limit_of(the_process()) == DecoderChild::kData.count);
}

TEST_CASE("what a decoder process holds is known although it is hidden from this user", "[isolation]") {
  if (geteuid() != 0) return skip_loudly("processes that are hidden (needs root, to mount /proc anew)");
  if (kSanitized) return skip_loudly("a decoder's limit on memory: not there under sanitizers");
  static_cast<void>(decoder_under_test());  // found before
  bool mounted = false, same = false;
  // A thread, for it has another /proc and another user from then on.
  std::thread([&] {
    mounted =
        ::unshare(CLONE_NEWNS | CLONE_FS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("proc", "/proc", "proc", 0, "hidepid=2") == 0 && ::syscall(SYS_setresuid, 65'534, 65'534, 65'534) == 0;
    if (!mounted) return;
    LaneOnTheBench lane;
    const bool well = lane.decode(library_file("jpeg progressive", 2600, 2000)).has_value();
    lane.children.trim();
    const bool well_again = lane.decode(png_file(40, 30)).has_value();
    same = well && well_again && lane.counters.stored(MetricId::decoder_starts) == 1;
  }).join();
  if (!mounted) return skip_loudly("processes that are hidden (/proc may not be mounted here)");

  REQUIRE(same);
}

TEST_CASE("a decoder process gets no more memory than was charged for its picture", "[isolation]") {
  if (kSanitized) return skip_loudly("a decoder's limit on memory: not there under sanitizers");
  LaneOnTheBench lane;
  const LibraryFile file = library_file("webp lossless", 2600, 2000);  // WebP without loss holds all of its pixels
  DecodeRequest request = whole_of(file);
  request.codec = 1_MiB;

  const auto pixels = lane.decode(file, request);

  REQUIRE_FALSE(pixels);
  REQUIRE(pixels.error().code == Code::kExhausted);
  REQUIRE(lane.decode(file));
}

TEST_CASE("a decoder process is the first to go when memory is short, and none of it is written down", "[isolation]") {
  LaneOnTheBench lane;
  REQUIRE(lane.decode(png_file(40, 30)));
  const pid_t process = the_process();
  rlimit core{1, 1}, files{1, 1};

  REQUIRE(prlimit(process, RLIMIT_CORE, nullptr, &core) == 0);
  REQUIRE(prlimit(process, RLIMIT_NOFILE, nullptr, &files) == 0);

  REQUIRE(core.rlim_max == 0);
  REQUIRE((kSanitized || files.rlim_max == 0));
  REQUIRE(status_line(process, "NoNewPrivs") == "1");
  REQUIRE(status_line(process, "Threads") == "1");
}

TEST_CASE("a backend says whether its decoders are shut in, and why they cannot be", "[isolation]") {
  const auto property_of = [](const CpuSettings& settings) {
    const BackendInfo info = (*CpuBackend::create(settings))->info();
    const auto found = std::find_if(info.properties.begin(), info.properties.end(),
                                    [](const auto& property) { return property.first == "isolation"; });
    return found == info.properties.end() ? std::string() : found->second;
  };
  const CpuSettings isolated{.lanes = 1, .isolation = Isolation::kProcess, .decoder = decoder_under_test().path};
  CpuSettings elsewhere = isolated;
  elsewhere.decoder = "/nonexistent/millrace-decoder";

  REQUIRE(property_of({.lanes = 1}).starts_with("none"));
  REQUIRE(property_of(isolated).find("libspng") != std::string::npos);
  const auto missing = CpuBackend::create(elsewhere);

  REQUIRE_FALSE(missing);
  REQUIRE(missing.error().message.find("/nonexistent/millrace-decoder") != std::string::npos);
  REQUIRE(missing.error().message.find("cpu.isolation") != std::string::npos);
}

}  // namespace millrace
