// Command lines that make no sense: each is refused with 2 and one line that says what to write instead.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>

#include "tests/support/host/temp_folder.h"
#include "tests/system/support/command.h"

namespace millrace {
namespace {

using Words = std::vector<std::string>;

struct Refused {
  Words words;       // behind "millrace run --private --dataset FOLDER", unless they begin with another command
  std::string says;  // on stderr
};

void require_refused(const Words& argv, const std::string& says) {
  const Ran ran = run(argv);
  CAPTURE(argv, ran.output, ran.errors);
  REQUIRE(ran.status == 2);
  REQUIRE(ran.output.empty());
  REQUIRE_THAT(ran.errors, Catch::StartsWith(argv.front() + ": ") && Catch::Contains(says));
}

TEST_CASE("numbers out of their range are refused with the range, never wrapped", "[system]") {
  const TempFolder folder;
  const std::string big = "18446744073709551616";  // 2^64
  const Refused table[] = {
      {{"--seed", "-1"}, "--seed: must be a whole number from 0 to 18446744073709551615, is -1"},
      {{"--seed", big}, "is " + big},
      {{"--seed", "1.5"}, "is 1.5"},
      {{"--epochs", "0"}, "--epochs: must be a whole number from 1 to "},
      {{"--epochs", "-1"}, "--epochs: must"},
      {{"--batch", "0"}, "--batch: must be a whole number from 1 to 65536, is 0"},
      {{"--batch", "4294967297"}, "--batch: must"},
      {{"--slots", "0"}, "--slots: must be a whole number from 1 to 256"},
      {{"--limit", "0"}, "--limit: must be a whole number from 1"},
      {{"--limit", "-64"}, "--limit: must"},
      {{"--rank", "-1"}, "--rank: must be a whole number from 0"},
      {{"--rank", "4294967296"}, "--rank: must"},
      {{"--rank", "2", "--world-size", "2"}, "--rank: must be below --world-size, which is 2"},
      {{"--world-size", "0"}, "--world-size: must be a whole number from 1"},
      {{"--size", "0"}, "--size: must be a whole number from 1 to 65535"},
      {{"--size", "65536"}, "--size: must"},
      {{"--recipe", "evaluate", "--resize", "-5"}, "--resize: must"},
      {{"--flip", "1.01"}, "--flip: must be a number from 0 to 1"},
      {{"--flip", "nan"}, "--flip: must"},
      {{"--step", "dream"},
       "--step: 'dream': no step of that name; steps are affine, any_order, aug_mix, auto_augment"},
      {{"--step", "rotation { degrees { lo: -10 high: 10 } }"}, "Interval has no field \"lo\", but low, high"},
      {{"--view", "size: 3"}, "View has no field \"size\", but count, crop, resize, centre_crop"},
      {{"--step", "posterize: x"}, "--step: 'posterize: x': column 12: Expected integer"},
      {{"--step", ""}, "--step: '': steps[0].kind: is not set"},
      {{"--erase", "2"}, "--erase: must be a number from 0 to 1"},
      {{"--slot-bytes", "-1"}, "--slot-bytes: must be a size of at least 1 byte"},
      {{"--slot-bytes", "0"}, "--slot-bytes: must"},
      {{"--slot-bytes", "99999999999TiB"}, "--slot-bytes: must"},
      {{"--lanes", "0"}, "--lanes: must be a whole number from 1 to 1024"},
      {{"--lanes", "-3"}, "--lanes: must"},
  };
  for (const Refused& row : table) {
    Words argv{"millrace", "run", "--private", "--dataset", folder.path()};
    argv.insert(argv.end(), row.words.begin(), row.words.end());
    require_refused(argv, row.says);
  }
  require_refused({"millrace", "preview", folder.path(), "-n", "0"}, "--count: must be a whole number from 1 to 400");
  require_refused({"millrace", "preview", folder.path(), "--seed", "-1"}, "--seed: must");
  require_refused({"millrace", "preview", folder.path(), "--epoch", big}, "--epoch: must");
  require_refused({"millrace", "preview", folder.path(), "--each-step"}, "--each-step: there is no step");
  require_refused({"millrace", "preview", folder.path(), "--tile", "63"}, "--tile: must");
  require_refused({"millrace", "stats", "--watch", "0"}, "--watch: must be a number from 0.1 to 86400");
  require_refused({"millrace", "stats", "--watch", "nan"}, "--watch: must");
  require_refused({"millrace", "ping", "-c", "-1"}, "--count: must");
  require_refused({"millrace", "admin", "close", "first"}, "session: must");
  require_refused({"millrace", "admin", "close"}, "session");
  require_refused({"millraced", "--lanes", "-1"}, "--lanes");
}

// Every option of the transform beside every recipe: it has an effect, or it is refused.
TEST_CASE("options that the recipe does not have are refused, the others are not", "[system]") {
  const TempFolder folder;
  const std::vector<Words> options{{"--size", "40"},      {"--resize", "300"},    {"--longest", "400"},
                                   {"--filter", "box"},   {"--dtype", "float16"}, {"--layout", "nhwc"},
                                   {"--channels", "bgr"}, {"--flip", "1"},        {"--ignore-orientation"},
                                   {"--step", "invert"},  {"--erase", "0.5"}};
  const auto misplaced = [](const std::string& recipe, const std::string& option) {
    if (option == "--resize" || option == "--longest") return recipe != "evaluate";
    return recipe == "none" && (option == "--size" || option == "--filter");
  };
  for (const std::string recipe : {"train", "evaluate", "thumbnail", "none"}) {
    for (const Words& option : options) {
      Words argv{"millrace", "run", "--socket", folder / "nobody", "--dataset", folder.path(), "--recipe", recipe};
      argv.insert(argv.end(), option.begin(), option.end());
      if (recipe == "none") argv.insert(argv.end(), {"--slot-bytes", "1MiB"});
      const Ran ran = run(argv);
      CAPTURE(recipe, option, ran.errors);
      REQUIRE(ran.status == (misplaced(recipe, option.front()) ? 2 : 3));  // 3: there is no daemon
      if (ran.status == 2) REQUIRE_THAT(ran.errors, Catch::Contains(option.front()) && Catch::Contains(recipe));
    }
  }
  require_refused(
      {"millrace", "run", "--dataset", folder.path(), "--recipe", "evaluate", "--size", "300", "--resize", "200"},
      "--resize: must be at least --size");
  require_refused({"millrace", "run", "--dataset", folder.path(), "--recipe", "evaluate", "--longest", "256"},
                  "--longest: must be more than the shorter side, 256, is 256");
  require_refused({"millrace", "preview", folder.path(), "--recipe", "none"}, "--recipe: none has nothing to look at");
  require_refused({"millrace", "run", "--dataset", folder.path(), "--lanes", "2"}, "--private");
  require_refused({"millrace", "run", "--dataset", folder.path(), "--root", "/"}, "--private");
}

TEST_CASE("what says nothing, lacks something or contradicts itself is refused by the option's name", "[system]") {
  const TempFolder folder;
  const auto refused = [&](Words words, const std::string& says) {
    Words argv{"millrace", "run", "--dataset", folder.path()};
    argv.insert(argv.end(), words.begin(), words.end());
    require_refused(argv, says);
  };

  refused({"--position", ""}, "--position: must not be empty");
  refused({"--socket", ""}, "--socket: must not be empty");
  refused({"--backend", ""}, "--backend: must not be empty");
  refused({"--private", "--root", ""}, "--root: must not be empty");
  require_refused({"millrace", "run", "--dataset", ""}, "--dataset: must not be empty");
  require_refused({"millrace", "ping", "--socket", ""}, "--socket: must not be empty");
  require_refused({"millrace", "index", "stat", ""}, "dataset: must not be empty");
  require_refused({"millrace", "preview", folder.path(), "-o", ""}, "--output: must not be empty");
  require_refused({"millrace", "preview", folder.path(), "-o", "sheet.jpg"},
                  "--output: is written as a PNG file: name it *.png, not *.jpg");
  refused({"--cache", "off", "--cache-at-once"},
          "--cache-at-once: --cache off keeps nothing: leave one of the two out");
  refused({"--recipe", "none"}, "--slot-bytes: --recipe none leaves the size open");
  refused({"--extension", "jpg", "--extension", "*"}, "--extension: '*' is every file already");
  require_refused({"millrace", "index", "stat", folder.path(), "--extension", "*", "--extension", "png"},
                  "--extension: '*' is every file already");
}

TEST_CASE("what is misspelled is named, with what is most like it", "[system]") {
  require_refused({"millrace", "admin"}, "`admin` takes one of the commands ");
  require_refused({"millrace", "runn"}, "unknown command runn; did you mean run?");
  require_refused({"millrace", "idnex", "build"}, "unknown command idnex; did you mean index?");
  require_refused({"millrace", "index", "biuld", "/tmp"}, "unknown command biuld; did you mean build?");
  require_refused({"millrace", "xyzzy"}, "unknown command xyzzy\n");
  require_refused({"millrace", "--socket", "/tmp/x", "stats"},
                  "--socket is an option of `stats`: it belongs behind that word");
  require_refused({"millrace", "run", "--datset", "/tmp"}, "unknown option --datset; did you mean --dataset?");
  require_refused({"millrace", "run", "--dataset", "/tmp", "--siz=3"}, "unknown option --siz; did you mean --size?");
  require_refused({"millrace", "preview", "/tmp", "there"}, "unexpected argument there");
  require_refused({"millraced", "--config", "/nope"}, "/nope");
}

TEST_CASE("help fits 80 columns, but for examples, and fills them", "[system]") {
  for (const Words& command : {Words{"run"}, Words{"preview"}, Words{"index"}, Words{"index", "build"}, Words{"stats"},
                               Words{"devices"}, Words{"doctor"}, Words{"ping"}, Words{"admin"}, Words{}}) {
    Words argv{"millrace"};
    argv.insert(argv.end(), command.begin(), command.end());
    argv.push_back("--help");
    const std::string help = run(argv).output;
    if (command != Words{"index", "build"}) REQUIRE_THAT(help, Catch::Contains("\nExamples:\n"));  // of a footer
    std::istringstream lines(help);
    std::string before;
    for (std::string line; std::getline(lines, line); before = line) {
      CAPTURE(command, before, line);
      REQUIRE((line.size() <= 80 || line.starts_with("  millrace")));
      const bool goes_on = !before.empty() && !line.empty() && std::islower(line.front()) != 0;
      if (goes_on)
        REQUIRE(before.size() + 1 + std::min(line.find(' '), line.size()) > 80);  // its first word had no room above
    }
  }
}

TEST_CASE("endings of names are taken with and without the dot, in any case, and refused by the option's name",
          "[system]") {
  const TempFolder folder;
  for (const std::string ending : {"jpg", ".jpg", "JPG", ".JPEG", "*"}) {
    const Ran ran =
        run({"millrace", "run", "--socket", folder / "nobody", "--dataset", folder.path(), "--extension", ending});
    CAPTURE(ending, ran.errors);
    REQUIRE(ran.status == 3);
  }
  for (const std::string wrong : {".", "", "a/b", "tar.gz", "abcdefghijklmnopq"}) {
    require_refused({"millrace", "run", "--dataset", folder.path(), "--extension", wrong},
                    "--extension: must be the ending");
    require_refused({"millrace", "index", "stat", folder.path(), "--extension", wrong},
                    "--extension: must be the ending");
  }
}

}  // namespace
}  // namespace millrace
