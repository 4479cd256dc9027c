// What commands come to: exit codes, what is said of bad samples, and where a run goes on.
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"

namespace millrace {
namespace {

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t lines = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++lines;
  return lines;
}

struct PicturesToRun {
  explicit PicturesToRun(std::uint32_t images = 8) {
    write_image_folder(folder.path(), {.images = images, .classes = 0});
  }
  void add_bad(int count) {
    for (int i = 0; i < count; ++i)
      write_file(folder / "bad_" + std::to_string(100 + i) + ".jpg", std::string("no picture"));
  }
  Ran run(std::vector<std::string> more) const {
    std::vector<std::string> argv{"millrace", "run", "--private", "--dataset", folder.path(),
                                  "--size",   "32",  "--batch",   "4"};
    argv.insert(argv.end(), more.begin(), more.end());
    return millrace::run(std::move(argv));
  }
  TempFolder folder;
};

TEST_CASE("nothing came out: status 1 and one line that says so", "[system]") {
  const TempFolder empty;
  PicturesToRun bad(0);
  bad.add_bad(3);

  const Ran none = run({"millrace", "run", "--private", "--dataset", empty.path()});
  const Ran all_bad = bad.run({"--on-error", "skip"});
  const Ran dropped = PicturesToRun(2).run({"--drop-last"});
  const Ran preview = run({"millrace", "preview", bad.folder.path(), "--private", "-o", empty / "sheet.png"});
  const Ran index = run({"millrace", "index", "build", bad.folder.path(), "--private"});

  CAPTURE(none.errors, all_bad.errors, dropped.errors, preview.errors, index.errors);
  REQUIRE(none.status == 1);
  REQUIRE(all_bad.status == 1);
  REQUIRE(dropped.status == 1);
  REQUIRE(preview.status == 1);
  REQUIRE(index.status == 1);
  for (const Ran* ran : {&none, &all_bad, &dropped, &preview, &index})
    REQUIRE(lines_with(ran->errors, "millrace: ") - lines_with(ran->errors, "bad sample") >= 1);
  REQUIRE_THAT(preview.errors, Catch::Contains("no image came out: all 3 are bad"));
}

TEST_CASE("bad samples of one reason are shown twenty times and then counted", "[system]") {
  PicturesToRun pictures(80);
  pictures.add_bad(60);

  const Ran ran = pictures.run({"--on-error", "zero"});

  CAPTURE(ran.status, ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE(lines_with(ran.errors, "millrace: bad sample: ") == 20);
  REQUIRE(lines_with(ran.errors, "millrace: ... and 40 more with the same reason: ") == 1);
  REQUIRE_THAT(ran.output, Catch::Contains("80 images") && Catch::Contains("60 bad"));
}

TEST_CASE("files that begin with other bytes are bad for the same reason", "[system]") {
  const PicturesToRun pictures(80);
  for (int i = 0; i < 30; ++i)
    write_file(pictures.folder / "bad_" + std::to_string(100 + i) + ".jpg",
               std::string{static_cast<char>(0xA0 + i), static_cast<char>(0x6A + i)});

  const Ran ran = pictures.run({"--on-error", "zero"});

  CAPTURE(ran.errors);
  REQUIRE(lines_with(ran.errors, "millrace: bad sample: ") == 20);
  REQUIRE(lines_with(ran.errors, "millrace: ... and 10 more with the same reason: not an image") == 1);
}

TEST_CASE("--limit with --position: the next run goes on behind it, and the last says that all is done", "[system]") {
  const PicturesToRun pictures(12);
  const TempFolder elsewhere;
  const std::string position = elsewhere / "position";
  const auto images = [&](const std::string& limit) {
    const Ran ran = pictures.run({"--limit", limit, "--position", position, "--json"});
    CAPTURE(ran.errors);
    REQUIRE(ran.status == 0);
    return parsed(ran.output).get<int>("images");
  };

  REQUIRE(images("8") == 8);
  REQUIRE(images("8") == 4);
  const Ran done = pictures.run({"--limit", "8", "--position", position});

  REQUIRE(done.status == 0);
  REQUIRE_THAT(done.errors, Catch::Contains(position + ": all of --epochs 1 are done; remove it to begin again"));
}

TEST_CASE("a limited run leaves the epochs behind its own to the next", "[system]") {
  const PicturesToRun pictures(12);
  const TempFolder elsewhere;
  const std::vector<std::string> words{"--epochs", "2", "--limit", "8", "--position", elsewhere / "position", "--json"};
  std::vector<int> images;
  for (int i = 0; i < 4; ++i) images.push_back(parsed(pictures.run(words).output).get<int>("images", -1));

  // The second run ends the first epoch, which is then behind no limit, and begins the second.
  REQUIRE(images == std::vector<int>{8, 12, 4, 0});
}

TEST_CASE("a run that a batch ended goes on behind the last good one", "[system]") {
  const PicturesToRun pictures(14);
  write_file(pictures.folder / "zz.jpg", std::string("no picture"));  // of the fourth batch of four
  const TempFolder elsewhere;
  const std::string position = elsewhere / "position";

  const Ran failed = pictures.run({"--on-error", "fail", "--position", position, "--json"});
  const Ran rest = pictures.run({"--on-error", "skip", "--position", position, "--json"});

  CAPTURE(failed.errors, rest.errors);
  REQUIRE(failed.status == 1);
  REQUIRE(parsed(failed.output).get<int>("images") == 12);
  REQUIRE(rest.status == 0);
  REQUIRE(parsed(rest.output).get<int>("images") == 2);
}

TEST_CASE("a run whose daemon was killed goes on where it was: what is left, and no more", "[system]") {
  const PicturesToRun pictures(60);
  const TempFolder elsewhere;
  Daemon daemon({.roots = {pictures.folder.path()}, .fake = "delay_us=50000"});
  const std::vector<std::string> words{"run",
                                       "--socket",
                                       daemon.socket(),
                                       "--dataset",
                                       pictures.folder.path(),
                                       "--size",
                                       "32",
                                       "--batch",
                                       "4",
                                       "--slots",
                                       "1",
                                       "--position",
                                       elsewhere / "position",
                                       "--json"};
  std::vector<std::string> slow{bin_folder() + "/millrace"};
  slow.insert(slow.end(), words.begin(), words.end());
  slow.insert(slow.end(), {"--backend", "fake"});

  const Process killed = Process::spawn({.argv = slow});
  // With one slot, the second batch begins when the run has given back the first.
  REQUIRE(eventually([&] { return daemon.metric("millrace_samples_total") > 4; }));
  daemon.kill(SIGKILL);
  const auto status = killed.wait();
  daemon.wait();
  daemon.start();
  std::vector<std::string> fast{"millrace"};
  fast.insert(fast.end(), words.begin(), words.end());
  const Ran rest = run(fast);

  CAPTURE(killed.errors(), rest.errors);
  REQUIRE(status == 3);
  REQUIRE(rest.status == 0);
  const int before = parsed(killed.output()).get<int>("images");
  REQUIRE(before >= 4);
  REQUIRE(before + parsed(rest.output).get<int>("images") == 60);
}

TEST_CASE("a file in a folder's place is named as such: status 1, not 3", "[system]") {
  const PicturesToRun pictures;
  const std::string file = pictures.folder / "0.jpg";
  write_file(file, std::string("a file"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"millrace", "run", "--private", "--dataset", file},
        {"millrace", "index", "stat", "--private", file},
        {"millrace", "doctor", "--private", "--root", file},
        {"millrace", "preview", "--private", "--root", file, pictures.folder.path()}}) {
    const Ran ran = run(command);
    CAPTURE(command, ran.output, ran.errors);
    REQUIRE(ran.status == 1);
    REQUIRE_THAT(ran.errors + ran.output, Catch::Contains(file + " is a file") && !Catch::Contains("\\x0a"));
  }
}

TEST_CASE("preview takes a single image", "[system]") {
  const PicturesToRun pictures(1);
  const auto first = *std::filesystem::directory_iterator(pictures.folder.path());

  const Ran ran = run({"millrace", "preview", "--private", first.path(), "-o", pictures.folder / "sheet.png"});

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output, Catch::Contains("1 samples"));
}

TEST_CASE("a run says beforehand what memory it takes", "[system]") {
  const Ran ran = PicturesToRun().run({"--slots", "2", "--slot-bytes", "1000000"});

  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.errors,
               Catch::StartsWith("millrace: 2 slots of 1.0 MB for a batch each: 2.0 MB of shared memory\n"));
}

TEST_CASE("index build ends when the indexes are written, and says how many", "[system]") {
  const TempFolder folder, state;
  write_image_folder(folder.path(), {.images = 12, .min_side = 250, .max_side = 400, .only_jpeg = true});
  // What is known of a file that changed in the last two seconds is not written.
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));

  const Ran ran = run({"millrace", "index", "build", folder.path(), "--private", "--json"}, state.path());

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  const auto object = parsed(ran.output);
  const int made = object.get<int>("without_index");
  if (made == 0) return skip_loudly("using indexes: libjpeg-turbo is the fastest here");
  REQUIRE(object.get<int>("disk_entries") == made);
  REQUIRE(object.get<int>("disk_pending") == 0);
}

TEST_CASE("output that cannot be written is no success", "[system]") {
  const Daemon daemon({});

  const Process process = Process::spawn({.argv = {"sh", "-c", "exec \"$0\" stats --socket \"$1\" > /dev/full",
                                                   bin_folder() + "/millrace", daemon.socket()}});

  REQUIRE(process.wait() == 1);
  REQUIRE_THAT(process.errors(), Catch::Contains("writing the output: No space left"));
}

TEST_CASE("a position file that cannot be one is named with its path", "[system]") {
  const PicturesToRun pictures;
  const TempFolder elsewhere;

  const Ran folder = pictures.run({"--position", elsewhere.path()});
  const Ran nowhere = pictures.run({"--position", elsewhere / "no/where"});

  REQUIRE(folder.status == 1);
  REQUIRE_THAT(folder.errors, Catch::Contains("--position " + elsewhere.path() + " is a folder"));
  REQUIRE(nowhere.status == 1);
  REQUIRE_THAT(nowhere.errors, Catch::Contains(elsewhere / "no/where"));
}

TEST_CASE("stats shows figures in groups, those that are 0 only with --all, and all as JSON", "[system]") {
  const Daemon daemon({});

  const Ran some = run({"millrace", "stats", "--socket", daemon.socket()});
  const Ran all = run({"millrace", "stats", "--socket", daemon.socket(), "--all"});
  const Ran json = run({"millrace", "stats", "--socket", daemon.socket(), "--json"});

  CAPTURE(some.output, all.output);
  REQUIRE_THAT(some.output, !Catch::Contains("Images made") && Catch::Contains("--all shows them"));
  REQUIRE_THAT(all.output, Catch::Contains("\nImages\n") && Catch::Contains("Images made") &&
                               Catch::Contains("\nSessions\n") && !Catch::Contains("\nOther\n"));
  REQUIRE_THAT(json.output, Catch::Contains("\"millrace_samples_total\":0"));
}

}  // namespace
}  // namespace millrace
