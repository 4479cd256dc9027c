#include "daemon/place/placer.h"

#include <catch2/catch.hpp>
#include <set>

namespace millrace {
namespace {

// Takes what it is told to take, and nothing is ever sent to it.
class Choosy final : public Backend {
 public:
  explicit Choosy(std::vector<ImageFormat> formats) : formats_(std::move(formats)) {}

  BackendInfo info() const override { return {}; }
  QueueDepth queue_depth() const override { return {}; }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override {
    if (recipe.patches) return Error{Code::kUnsupported, "no patches"};
    if (facts.source.has.passes) return Error{Code::kUnsupported, "no files of several passes"};
    if (std::find(formats_.begin(), formats_.end(), facts.source.format) != formats_.end()) return {};
    return Error{Code::kUnsupported, "no such format"};
  }
  void listen(HealthListener) override {}
  bool try_submit(DecodeJob&&) override { return false; }
  void shutdown() override {}

 private:
  const std::vector<ImageFormat> formats_;
};

const Choosy kDevice({ImageFormat::kJpeg}), kCpu({ImageFormat::kJpeg, ImageFormat::kPng}), kFake({ImageFormat::kJpeg});

Placer device_cpu_and_fake() {
  return Placer({{"cuda:0", &kDevice}, {"cpu", &kCpu}, {"fake", &kFake, true}});
}

Result<std::size_t> place(Placer& placer, const SourceInfo& source, std::string_view pinned = "",
                          std::uint32_t tried = 0, const Recipe& recipe = {}) {
  Result<Placer::Chosen> chosen = placer.place({source, SampleGeometry{}, Fidelity::kExact}, recipe, pinned, tried);
  if (!chosen) return chosen.error();
  return chosen->backend;
}

TEST_CASE("the first backend of the table that can make a sample gets it", "[place]") {
  Placer placer = device_cpu_and_fake();

  REQUIRE(*place(placer, {ImageFormat::kJpeg}) == 0);
  REQUIRE(*place(placer, {ImageFormat::kPng}) == 1);
  REQUIRE(*place(placer, {ImageFormat::kJpeg}, "", 1) == 1);
}

TEST_CASE("a backend that is for pins only is never chosen by itself", "[place]") {
  Placer placer = device_cpu_and_fake();

  REQUIRE(place(placer, {ImageFormat::kJpeg}, "", 3).error().code == Code::kUnavailable);
  REQUIRE(*place(placer, {ImageFormat::kJpeg}, "fake") == 2);
}

TEST_CASE("a pin on a backend that is not there names those that are", "[place]") {
  Placer placer = device_cpu_and_fake();

  const Result<void> checked = placer.check_pin("fpga");

  REQUIRE(checked.error().code == Code::kNotFound);
  REQUIRE_THAT(checked.error().message, Catch::Contains("cuda:0, cpu, fake"));
}

TEST_CASE("where no backend can, each one's reason is told", "[place]") {
  Placer placer = device_cpu_and_fake();
  const SourceInfo progressive{.format = ImageFormat::kJpeg, .has = {.passes = true}};

  const Result<std::size_t> format = place(placer, {ImageFormat::kWebp});
  const Result<std::size_t> several = place(placer, progressive, "", 1);
  const Result<std::size_t> patches = place(placer, {ImageFormat::kJpeg}, "cpu", 0, {.patches = Patches{{8, 8}}});
  placer.set_health(0, {Health::State::kLost, "fell off the bus"});
  const Result<std::size_t> lost = place(placer, {ImageFormat::kJpeg}, "", 2);

  REQUIRE(format.error().code == Code::kUnsupported);
  REQUIRE(format.error().message == "no backend here makes this sample: cuda:0: no such format; cpu: no such format");
  REQUIRE(several.error().message ==
          "no backend here makes this sample: cuda:0: it gave it back; cpu: no files of several passes");
  REQUIRE(patches.error().message == "the request is pinned to cpu, which does not make this sample: cpu: no patches");
  REQUIRE(lost.error().code == Code::kUnavailable);
  REQUIRE(lost.error().message ==
          "no backend here makes this sample: cuda:0: it has lost its device (fell off the bus); cpu: it gave it back");
}

TEST_CASE("a lost backend gets nothing until it is ready again", "[place]") {
  Placer placer = device_cpu_and_fake();

  placer.set_health(0, {Health::State::kLost, "fell off the bus"});
  const Result<std::size_t> meanwhile = place(placer, {ImageFormat::kJpeg});
  const Result<void> pinned = placer.check_pin("cuda:0");
  placer.set_health(0, {Health::State::kReady, ""});

  REQUIRE(*meanwhile == 1);
  REQUIRE(pinned.error().code == Code::kUnavailable);
  REQUIRE_THAT(pinned.error().message, Catch::Contains("fell off the bus"));
  REQUIRE(*place(placer, {ImageFormat::kJpeg}) == 0);
  REQUIRE(placer.check_pin("cuda:0"));
}

TEST_CASE("devices of one type take turns, but for those that are lost or gave it back", "[place]") {
  Placer placer({{"cuda:0", &kDevice}, {"cuda:1", &kDevice}, {"cuda:2", &kDevice}, {"cpu", &kCpu}});
  const auto next = [&](std::uint32_t tried) { return *place(placer, {ImageFormat::kJpeg}, "", tried); };

  REQUIRE(std::set{next(0), next(0), next(0)} == std::set<std::size_t>{0, 1, 2});
  REQUIRE(std::set{next(1), next(1)} == std::set<std::size_t>{1, 2});
  placer.set_health(1, {Health::State::kLost, "fell off the bus"});
  REQUIRE(std::set{next(0), next(0)} == std::set<std::size_t>{0, 2});
  REQUIRE(next(7) == 3);
}

TEST_CASE("a pin may name a type, which is lost when all of it are", "[place]") {
  Placer placer({{"cuda:0", &kDevice}, {"cuda:1", &kDevice}, {"cpu", &kCpu}});
  placer.set_health(0, {Health::State::kLost, "fell off the bus"});

  REQUIRE(placer.check_pin("cuda"));
  REQUIRE(*place(placer, {ImageFormat::kJpeg}, "cuda") == 1);
  REQUIRE(*place(placer, {ImageFormat::kJpeg}, "cuda") == 1);
  REQUIRE(place(placer, {ImageFormat::kPng}, "cuda").error().code == Code::kUnsupported);
  placer.set_health(1, {Health::State::kLost, "fell off the bus"});
  REQUIRE(placer.check_pin("cuda").error().code == Code::kUnavailable);
}

}  // namespace
}  // namespace millrace
