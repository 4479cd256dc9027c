// millrace run, of folders with bad files, without --on-error.
#include <catch2/catch.hpp>

#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace {
namespace {

struct RanOverFiles {
  int status = -1;
  std::string output, errors;
};

RanOverFiles run_over_files(std::vector<std::string> options) {
  options.insert(options.begin(), {bin_folder() + "/millrace", "run"});
  const Process process =
      Process::spawn({.argv = std::move(options), .env = {{"NO_COLOR", "1"}, {"XDG_STATE_HOME", "/dev/null"}}});
  const auto status = process.wait(std::chrono::seconds(60));
  if (!status) throw std::runtime_error("the command does not end");
  return {*status, process.output(), process.errors()};
}

TEST_CASE("run without --on-error names every bad file, shuffled or not, and ends with 0", "[system]") {
  const TempFolder folder;
  write_image_folder(folder.path(), {.images = 12, .classes = 0});
  const std::vector<std::string> bad{folder / "bad_1.jpg", folder / "bad_2.png"};
  for (const std::string& path : bad) write_file(path, std::string("this is not a picture"));
  for (const bool shuffle : {false, true}) {
    std::vector<std::string> options{"--private", "--dataset", folder.path(), "--size", "64"};
    if (shuffle) options.push_back("--shuffle");

    const RanOverFiles ran = run_over_files(options);

    CAPTURE(ran.output, ran.errors);
    REQUIRE(ran.status == 0);
    for (const std::string& path : bad) REQUIRE_THAT(ran.errors, Catch::Contains(path));
    REQUIRE_THAT(ran.output, Catch::Contains("12 images") && Catch::Contains("2 bad"));
  }
}

TEST_CASE("run of a folder without a good file ends with 1 and says what that looks like", "[system]") {
  const TempFolder folder;
  for (const char* name : {"a.jpg", "b.jpg"}) write_file(folder / name, std::string("this is not a picture"));

  const RanOverFiles ran = run_over_files({"--private", "--dataset", folder.path(), "--size", "64"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.errors, Catch::Contains("2 of the batch's 2 samples are bad") && Catch::Contains("a.jpg") &&
                               Catch::Contains("set on_error"));
}

TEST_CASE("run --on-error skip goes through a folder without a good file and names each", "[system]") {
  const TempFolder folder;
  for (const char* name : {"a.jpg", "b.jpg"}) write_file(folder / name, std::string("this is not a picture"));

  const RanOverFiles ran =
      run_over_files({"--private", "--dataset", folder.path(), "--size", "64", "--on-error", "skip"});

  REQUIRE_THAT(ran.errors, Catch::Contains(folder / "a.jpg") && Catch::Contains(folder / "b.jpg"));
  REQUIRE_THAT(ran.errors, !Catch::Contains("set on_error"));
}

TEST_CASE("run --help says what becomes of bad samples by default", "[system]") {
  const RanOverFiles ran = run_over_files({"--help"});

  REQUIRE_THAT(ran.output, Catch::Contains("default: substitute") && Catch::Contains("one sample in 20"));
}

}  // namespace
}  // namespace millrace
