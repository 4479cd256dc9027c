// Folders as people have them: what is a sample, what is not, and what is said of it.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "millrace/client.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Two classes of four pictures; beside and among them what ImageFolder has no problem with.
struct Folder {
  Folder() {
    write_image_folder(pictures, {.images = 8, .classes = 2});
    std::vector<std::string> classes;
    for (const auto& entry : fs::directory_iterator(pictures)) classes.push_back(entry.path());
    std::sort(classes.begin(), classes.end());
    write_file(classes[0] + "/README.txt", std::string("notes"));
    write_file(classes[1] + "/old.TGA", std::string("BM"));
    write_file(pictures + "/labels.csv", std::string("a,b"));
    for (const auto& entry : fs::directory_iterator(classes[0])) {
      if (entry.path().extension() != ".jpg") continue;
      fs::rename(entry.path(), entry.path().string() + ".JPG");
      fs::copy_file(entry.path().string() + ".JPG", pictures + "/loose.jpg");
      break;
    }
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  Daemon daemon{{.roots = {folder.path()}}};
  Client client = need(Client::connect(daemon.socket()));
  Session session = need(client.open_session({.batch = 4, .recipe = Recipe::evaluate(32, 32)}));
};

std::vector<std::int64_t> labels_of(Session& session, const Dataset& dataset) {
  std::vector<std::int64_t> labels;
  Epoch epoch = session.epoch(dataset, {.on_error = OnError::kSkip});
  for (Batch& batch : epoch) {
    for (const std::int64_t label : batch.tensor.labels()) labels.push_back(label);
  }
  REQUIRE(epoch.result());
  return labels;
}

TEST_CASE("notes, tables and pictures of other formats are no samples, and are told of", "[system]") {
  Folder mill;

  const Dataset dataset = need(mill.session.open_dataset(mill.pictures));

  REQUIRE(dataset.samples() == 8);
  REQUIRE(labels_of(mill.session, dataset) == std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1, 1});
  REQUIRE(dataset.skipped_files() == 4);
  std::vector<std::string> told;
  for (const SkippedFiles& group : dataset.skipped()) {
    REQUIRE(group.files == 1);
    REQUIRE(group.examples.size() == 1);
    told.push_back(fs::path(group.examples[0]).filename());
  }
  std::sort(told.begin(), told.end());
  REQUIRE(told == std::vector<std::string>{"README.txt", "labels.csv", "loose.jpg", "old.TGA"});
}

TEST_CASE("every file, and files beside class folders, are samples where they are asked for", "[system]") {
  Folder mill;

  const Dataset every = need(mill.session.open_dataset(mill.pictures, {.extensions = {"*"}, .unclassified = true}));
  const Dataset loose = need(mill.session.open_dataset(mill.pictures, {.unclassified = true}));

  REQUIRE(every.samples() == 12);
  REQUIRE(every.skipped_files() == 0);
  REQUIRE(loose.samples() == 9);
  REQUIRE(labels_of(mill.session, loose).front() == -1);
}

// What the command says on stderr.
std::string errors_of(const Folder& mill, std::vector<std::string> options) {
  std::vector<std::string> argv{
      bin_folder() + "/millrace", "run", "--socket", mill.daemon.socket(), "--dataset", mill.pictures, "--size", "32"};
  argv.insert(argv.end(), options.begin(), options.end());
  const Process process = Process::spawn({.argv = std::move(argv), .env = {{"NO_COLOR", "1"}}});
  REQUIRE(process.wait(std::chrono::seconds(60)) == 0);
  return process.errors();
}

TEST_CASE("the command line says once what of a folder is no sample, unless it was told which are", "[system]") {
  const Folder mill;

  const std::string said = errors_of(mill, {"--epochs", "2"});
  const std::string told = errors_of(mill, {"--extension", ".JPG"});
  const std::string every = errors_of(mill, {"--extension", "*"});

  CAPTURE(said, told, every);
  REQUIRE_THAT(said, Catch::Contains("millrace: 3 files are no samples: ") && Catch::Contains("1 .csv (labels.csv)") &&
                         Catch::Contains("old.TGA; not decoded: convert them)"));
  REQUIRE(said.find("are no samples") == said.rfind("are no samples"));
  REQUIRE_THAT(told, !Catch::Contains("no sample"));
  REQUIRE_THAT(every, Catch::Contains("labels.csv") && !Catch::Contains("no sample"));
}

TEST_CASE("a dataset that cannot be opened is named, with the roots where they matter", "[system]") {
  Folder mill;
  fs::create_directories(mill.folder / "text/class");
  write_file(mill.folder / "text/class/a.jxl", std::string("II"));
  const auto message_of = [&](const std::string& path) { return mill.session.open_dataset(path).error().message; };

  REQUIRE(message_of("/etc") ==
          "/etc: not readable: the path must lie beneath one of the daemon's roots and be readable "
          "by you; they are " +
              mill.folder.path() + " (files.roots in the daemon's settings, or what a private daemon was given)");
  REQUIRE(message_of(mill.folder / "missing") == (mill.folder / "missing") + ": no such file or folder");
  REQUIRE_THAT(message_of(mill.folder / "text"),
               Catch::StartsWith((mill.folder / "text") + ": the dataset is empty: no files of the extensions jpg, ") &&
                   Catch::EndsWith("skipped: 1 .jxl (class/a.jxl; not decoded: convert them)"));
  REQUIRE_THAT(message_of("pictures"), Catch::Contains("is \"pictures\""));
}

TEST_CASE("a sample outside the roots is told which roots there are", "[system]") {
  Folder mill;

  const Ticket ticket = need(mill.session.submit({.samples = {{.source = Path{"/etc/passwd"}}}}));
  const Batch batch = need(mill.session.wait(ticket));

  REQUIRE(batch.errors.size() == 1);
  REQUIRE(batch.errors[0].error.code == Code::kDenied);
  REQUIRE_THAT(batch.errors[0].error.message, Catch::Contains("; they are " + mill.folder.path() + " (files.roots"));
}

}  // namespace
}  // namespace millrace
