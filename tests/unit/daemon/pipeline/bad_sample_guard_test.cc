#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/pipeline/batch/bad_sample_guard.h"

namespace millrace {
namespace {

std::vector<SampleFailure> bad_ones(std::uint32_t count) {
  std::vector<SampleFailure> bad;
  for (std::uint32_t i = 0; i < count; ++i)
    bad.push_back({.index = i,
                   .source = "/data/" + std::to_string(i) + ".jpg",
                   .error = {Code::kNotFound, "no such file or folder"}});
  return bad;
}

TEST_CASE("below a thousand samples no share of bad ones is too many", "[pipeline]") {
  BadSampleGuard guard;

  REQUIRE_FALSE(guard.count(999, bad_ones(999)));
}

TEST_CASE("from the thousandth sample on more than one in twenty is too many", "[pipeline]") {
  BadSampleGuard guard;

  REQUIRE_FALSE(guard.count(500, bad_ones(50)));
  REQUIRE_FALSE(guard.count(500, {}));
  REQUIRE(guard.count(1, bad_ones(1)));
}

TEST_CASE("one in twenty, to the sample, is not too many", "[pipeline]") {
  BadSampleGuard guard;

  REQUIRE_FALSE(guard.count(1'000, bad_ones(50)));
  REQUIRE_FALSE(guard.count(20, bad_ones(1)));
  REQUIRE(guard.count(20, bad_ones(2)));
}

TEST_CASE("too many bad samples are told as figures, an example, what it looks like and what to do", "[pipeline]") {
  BadSampleGuard guard;

  const std::optional<Error> error = guard.count(1'024, bad_ones(80));

  REQUIRE(error->code == Code::kNotFound);
  REQUIRE_THAT(error->message, Catch::Contains("80 of the epoch's 1024 samples so far are bad"));
  REQUIRE_THAT(error->message, Catch::Contains("/data/0.jpg: no such file or folder"));
  REQUIRE_THAT(error->message, Catch::Contains("wrong root") && Catch::Contains("not mounted"));
  REQUIRE_THAT(error->message, Catch::Contains("mend the files") && Catch::Contains("set on_error"));
  REQUIRE_THAT(error->message, Catch::Contains("No on_error was chosen, and the default takes no epoch with so many"));
}

TEST_CASE("a batch without a good sample is told in the same way", "[pipeline]") {
  const Error many = BadSampleGuard::none_good(64, bad_ones(64)[7]);
  const Error one = BadSampleGuard::none_good(1, bad_ones(1)[0]);

  REQUIRE_THAT(many.message,
               Catch::StartsWith("64 of the batch's 64 samples are bad, for example /data/7.jpg: no such"));
  REQUIRE_THAT(many.message, Catch::Contains("wrong root") && Catch::Contains("set on_error to skip or zero"));
  REQUIRE_THAT(many.message, Catch::Contains("No on_error was chosen, and the default takes no batch without a good"));
  REQUIRE_THAT(one.message, Catch::StartsWith("1 of the batch's 1 sample is bad"));
}

TEST_CASE("pictures that are broken or do not fit the recipe do not look like a wrong root", "[pipeline]") {
  SampleFailure small = bad_ones(1)[0];
  small.error = {Code::kInvalid, "the centre crop of 60x30 is larger than the image of 56x40"};

  const Error error = BadSampleGuard::none_good(8, small);

  REQUIRE_THAT(error.message, !Catch::Contains("wrong root"));
  REQUIRE_THAT(error.message, !Catch::Contains("not mounted"));
  REQUIRE_THAT(error.message, Catch::Contains("larger than the image of 56x40. No on_error was chosen") &&
                                  Catch::Contains("Change the recipe where it does not fit the pictures"));
  REQUIRE_THAT(error.message, Catch::EndsWith("or set on_error to skip or zero to go on all the same"));
}

}  // namespace
}  // namespace millrace
