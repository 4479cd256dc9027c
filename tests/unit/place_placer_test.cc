#include <catch2/catch.hpp>

#include "daemon/place/placer.h"

namespace millrace {
namespace {

Placer cpu_and_fake() {
  return Placer({{"cpu", {ImageFormat::kJpeg, ImageFormat::kPng}}, {"fake", {ImageFormat::kJpeg}, false, true}});
}

TEST_CASE("a backend that is for pins only is never chosen by itself", "[place]") {
  const Placer placer = cpu_and_fake();

  REQUIRE(*placer.place(SourceInfo{ImageFormat::kJpeg}, "", 0) == 0);
  REQUIRE(placer.place(SourceInfo{ImageFormat::kJpeg}, "", 1).error().code == Code::kUnavailable);
  REQUIRE(*placer.place(SourceInfo{ImageFormat::kJpeg}, "fake", 0) == 1);
}

TEST_CASE("a pin on a backend that is not there names those that are", "[place]") {
  const Placer placer = cpu_and_fake();

  const Result<void> checked = placer.check_pin("cuda");

  REQUIRE(checked.error().code == Code::kNotFound);
  REQUIRE_THAT(checked.error().message, Catch::Contains("cpu, fake"));
}

TEST_CASE("a format that no backend takes is unsupported", "[place]") {
  REQUIRE(cpu_and_fake().place(SourceInfo{ImageFormat::kWebp}, "", 0).error().code == Code::kUnsupported);
}

TEST_CASE("a lost backend gets nothing more", "[place]") {
  Placer placer = cpu_and_fake();

  placer.set_lost(0);

  REQUIRE(placer.place(SourceInfo{ImageFormat::kJpeg}, "", 0).error().code == Code::kUnavailable);
  REQUIRE(placer.check_pin("cpu").error().code == Code::kUnavailable);
}

}  // namespace
}  // namespace millrace
