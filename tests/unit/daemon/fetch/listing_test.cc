#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "daemon/fetch/list/listing.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/unit/daemon/fetch/strangers.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

struct ListingTree {
  TempFolder temp;
  std::string root = temp / "root";
  std::string top = root + "/set";
  std::string later = temp / "later";  // a root that is not there
  std::unique_ptr<Roots> roots;

  explicit ListingTree(const Strings& files) {
    chmod(temp.path().c_str(), 0755);
    fs::create_directories(top);
    for (const std::string& file : files) add(file);
    roots = *Roots::open({.folders = {root, later}});
  }
  void add(const std::string& file) const {
    fs::create_directories(fs::path(top + "/" + file).parent_path());
    write_file(top + "/" + file, std::string("x"));
  }

  Listing::Request request(Strings extensions = {}, uid_t uid = geteuid()) const {
    return {.path_untrusted = top,
            .choice = {.extensions = std::move(extensions)},
            .caller = std::make_shared<const Caller>(Caller{.uid = uid, .gid = uid}),
            .max_files = 1'000'000};
  }
  Listing::Outcome run(Listing::Request request) const {
    Listing listing(*roots, std::move(request));
    while (true) {
      if (std::optional<Listing::Outcome> outcome = listing.step()) return *std::move(outcome);
    }
  }
  // What follows the path that is refused.
  std::string refusal() const {
    return ": not readable: the path must lie beneath one of the daemon's roots and be readable by you; they are " +
           root + ", " + later + " (files.roots in the daemon's settings, or what a private daemon was given)";
  }
  std::shared_ptr<const Dataset> list(Strings extensions = {}) const {
    Listing::Outcome outcome = run(request(std::move(extensions)));
    REQUIRE(outcome.has_value());
    return *outcome;
  }
};

Strings paths_of(const Dataset& dataset) {
  Strings paths;
  for (std::uint64_t i = 0; i < dataset.samples(); ++i) paths.emplace_back(dataset.relative_path(SampleId{i}));
  return paths;
}

std::vector<std::int64_t> labels_of(const Dataset& dataset) {
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < dataset.samples(); ++i) labels.push_back(dataset.label(SampleId{i}));
  return labels;
}

TEST_CASE("samples come by class, folder and name, classes in byte order of their names", "[fetch]") {
  const ListingTree tree(
      {"cat/2.jpg", "cat/10.jpg", "cat-wild/1.jpg", "cat.jpg", "Dog/a/b.jpg", "Dog/a.jpg", "Dog/a-b.jpg"});

  const auto dataset = tree.list();

  REQUIRE(paths_of(*dataset) ==
          Strings{"cat.jpg", "Dog/a-b.jpg", "Dog/a.jpg", "Dog/a/b.jpg", "cat/10.jpg", "cat/2.jpg", "cat-wild/1.jpg"});
  REQUIRE(dataset->classes() == Strings{"Dog", "cat", "cat-wild"});
  REQUIRE(labels_of(*dataset) == std::vector<std::int64_t>{-1, 0, 0, 0, 1, 1, 2});
  REQUIRE(dataset->root() == tree.top);
}

TEST_CASE("folders in a class are sorted by their whole paths, as ImageFolder does it", "[fetch]") {
  const Strings expected{"cat/z.jpg",       "cat/a/z.jpg",      "cat/a/\xFF.jpg",  "cat/a-b/1.jpg",
                         "cat/a-b/d/3.jpg", "cat/a/b/0.jpg",    "cat/a/b-c/1.jpg", "cat/a/b/d/2.jpg",
                         "dog/2.jpg",       "dog/a b/1.jpg",    "dog/a/b/1.jpg",   "dog (old)/a/b/1.jpg",
                         "dog-puppy/1.jpg", "dog-puppy/a/0.jpg"};
  const ListingTree tree({expected.rbegin(), expected.rend()});
  const Strings classes{"cat", "dog", "dog (old)", "dog-puppy"};
  std::uint64_t fingerprint = kFingerprintSeed;
  for (const std::string& path : expected) fingerprint = fingerprint_with(fingerprint, path);

  const auto dataset = tree.list();

  REQUIRE(paths_of(*dataset) == expected);
  REQUIRE(dataset->classes() == classes);
  REQUIRE(labels_of(*dataset) == std::vector<std::int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 3});
  REQUIRE(dataset->fingerprint() == fingerprint);
}

TEST_CASE("files at the top come before nested folders of the first class", "[fetch]") {
  const ListingTree tree({"a/b-c/1.jpg", "a/b/c/0.jpg", "a/b/1.jpg", "!/1.jpg", "z.jpg", "b.jpg"});

  REQUIRE(paths_of(*tree.list()) == Strings{"b.jpg", "z.jpg", "!/1.jpg", "a/b/1.jpg", "a/b-c/1.jpg", "a/b/c/0.jpg"});
}

TEST_CASE("without folders there are no classes", "[fetch]") {
  const auto dataset = ListingTree({"b.jpg", "a.jpg"}).list();

  REQUIRE(dataset->classes().empty());
  REQUIRE(labels_of(*dataset) == std::vector<std::int64_t>{-1, -1});
}

TEST_CASE("a folder has one number, for every caller, by whatever path and however it has grown", "[fetch]") {
  const ListingTree tree({"a/1.jpg", "a/2.png"});
  fs::create_directory_symlink(tree.top, tree.root + "/link");
  const auto before = tree.list();
  tree.add("b/3.jpg");

  Listing::Request by_link = tree.request();
  by_link.path_untrusted = tree.root + "/link/";
  const auto linked = tree.run(std::move(by_link));
  Listing::Request inside = tree.request();
  inside.path_untrusted += "/a";

  REQUIRE(before->number() != DatasetNumber::kNone);
  REQUIRE(tree.list({"jpg"})->number() == before->number());
  REQUIRE(linked.has_value());
  REQUIRE((*linked)->number() == before->number());
  REQUIRE((*tree.run(std::move(inside)))->number() != before->number());
  REQUIRE(member_of(*before, SampleId{0}).listing != member_of(*tree.list(), SampleId{0}).listing);
}

// What is on disk of a dataset is found by it after a restart.
TEST_CASE("the numbers of folders stay what they were", "[fetch]") {
  REQUIRE(dataset_number(0x801, 131074) == DatasetNumber{0x60DEF54444FA4BEA});
  REQUIRE(dataset_number(0x801, 131074) != dataset_number(131074, 0x801));
}

TEST_CASE("only the extensions asked for are listed, in whatever case", "[fetch]") {
  const ListingTree tree({"a.jpg", "b.JPG", "c.txt", "d.jpeg", "e", "jpg", "f.tar.jpg"});

  REQUIRE(paths_of(*tree.list({"jpg"})) == Strings{"a.jpg", "b.JPG", "f.tar.jpg"});
  REQUIRE(paths_of(*tree.list({"jpeg", "txt"})) == Strings{"c.txt", "d.jpeg"});
  REQUIRE(tree.list()->samples() == 7);
}

TEST_CASE("hidden names and what is neither file nor folder are left out", "[fetch]") {
  const ListingTree tree({"a.jpg", ".hidden.jpg", ".git/x.jpg", "c/.b.jpg", "c/d.jpg"});
  REQUIRE(mkfifo((tree.top + "/fifo.jpg").c_str(), 0644) == 0);

  REQUIRE(paths_of(*tree.list()) == Strings{"a.jpg", "c/d.jpg"});
}

TEST_CASE("a class without samples keeps its label", "[fetch]") {
  const ListingTree tree({"a/x.txt", "b/1.jpg"});

  const auto dataset = tree.list({"jpg"});

  REQUIRE(dataset->classes() == Strings{"a", "b"});
  REQUIRE(dataset->label(SampleId{0}) == 1);
}

TEST_CASE("links are followed, and folders that hold themselves end", "[fetch]") {
  const ListingTree tree({"a/1.jpg"});
  fs::create_directories(tree.root + "/other/deep");
  write_file(tree.root + "/other/deep/2.jpg", std::string("x"));
  fs::create_symlink("../other", tree.top + "/b");
  fs::create_symlink(tree.top + "/a/1.jpg", tree.top + "/c.jpg");
  fs::create_symlink("..", tree.top + "/a/up");
  fs::create_symlink(".", tree.top + "/a/self");

  const auto dataset = tree.list();

  REQUIRE(paths_of(*dataset) == Strings{"c.jpg", "a/1.jpg", "b/deep/2.jpg"});
  REQUIRE(dataset->classes() == Strings{"a", "b"});
}

TEST_CASE("a link to nowhere is listed where it looks like a sample, so that reading it says why", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  fs::create_symlink("missing", tree.top + "/b.jpg");
  fs::create_symlink("/etc/passwd", tree.top + "/c.jpg");
  fs::create_symlink("missing", tree.top + "/d.txt");

  REQUIRE(paths_of(*tree.list({"jpg"})) == Strings{"a.jpg", "b.jpg", "c.jpg"});
}

TEST_CASE("a link out of the roots that may be a folder of samples fails the listing", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  fs::create_symlink("/etc", tree.top + "/class");

  const auto outcome = tree.run(tree.request({"jpg"}));

  REQUIRE(outcome.error().code == Code::kDenied);
  REQUIRE(outcome.error().message.find("\"class\"") != std::string::npos);
}

TEST_CASE("a link beneath a root that is not there fails the listing instead of making it smaller", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  fs::create_symlink(tree.later + "/cats", tree.top + "/cats");

  const Listing::Outcome outcome = tree.run(tree.request({"jpg"}));

  REQUIRE(outcome.error().code == Code::kNotFound);
  REQUIRE(outcome.error().message.find("link \"cats\"") != std::string::npos);
  REQUIRE(outcome.error().message.find(tree.later) != std::string::npos);
}

TEST_CASE("a folder that the caller may not read fails the listing by its relative name", "[fetch]") {
  const ListingTree tree({"a/1.jpg", "a/closed/2.jpg"});
  if (!strangers_reach(tree.root)) return;
  for (const mode_t mode : {0700, 0711, 0744}) {
    chmod((tree.top + "/a/closed").c_str(), mode);

    const auto outcome = tree.run(tree.request({}, stranger().uid));

    REQUIRE(outcome.error().code == Code::kDenied);
    REQUIRE(outcome.error().message.find("\"a/closed\"") != std::string::npos);
    REQUIRE(outcome.error().message.starts_with(tree.top + ": folder "));
  }
  chmod((tree.top + "/a/closed").c_str(), 0755);
  REQUIRE((*tree.run(tree.request({}, stranger().uid)))->samples() == 2);
}

TEST_CASE("a dataset that the caller may not see is denied, whether it is there or not", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  if (!strangers_reach(tree.root)) return;
  chmod(tree.root.c_str(), 0700);
  Listing::Request missing = tree.request({}, stranger().uid);
  missing.path_untrusted = tree.root + "/missing";

  const auto there = tree.run(tree.request({}, stranger().uid)), not_there = tree.run(std::move(missing));

  REQUIRE(there.error().code == Code::kDenied);
  REQUIRE(there.error().message == tree.top + tree.refusal());
  REQUIRE(not_there.error().message == tree.root + "/missing" + tree.refusal());
}

TEST_CASE("a folder without samples is an error that says so", "[fetch]") {
  const ListingTree tree({"a.txt"});

  const auto outcome = tree.run(tree.request({"jpg", "png"}));

  REQUIRE(outcome.error().code == Code::kNotFound);
  REQUIRE(outcome.error().message == tree.top +
                                         ": the dataset is empty: no files of the extensions jpg, png beneath it "
                                         "(hidden ones do not count); skipped: 1 .txt (a.txt)");
}

TEST_CASE("a dataset outside the roots is refused with its path, the roots and where they are set", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  Listing::Request outside = tree.request();
  outside.path_untrusted = "/etc/ssl\xff";

  const auto outcome = tree.run(std::move(outside));

  REQUIRE(outcome.error().code == Code::kDenied);
  REQUIRE(outcome.error().message == "/etc/ssl\\xff" + tree.refusal());
}

TEST_CASE("files that were not asked for are counted by their extension, with examples", "[fetch]") {
  const ListingTree tree({"a/1.jpg", "a/README.txt", "b/2.JPG", "b/x.TXT", "b/y.txt", "b/z.txt", "b/LICENSE", "a/3.tga",
                          "a/4.longer_than_any_extension", ".hidden/5.txt"});

  const auto dataset = tree.list({"jpg"});

  const Skipped& skipped = dataset->skipped();
  REQUIRE(paths_of(*dataset) == Strings{"a/1.jpg", "b/2.JPG"});
  REQUIRE(skipped.files == 7);
  REQUIRE(skipped.groups.size() == 3);
  REQUIRE(skipped.groups[0].reason == SkipReason::kUndecoded);  // what somebody may miss comes first
  REQUIRE(skipped.groups[0].examples == Strings{"a/3.tga"});
  REQUIRE(skipped.groups[1].reason == SkipReason::kNotAsked);
  REQUIRE(skipped.groups[1].extension == "txt");
  REQUIRE(skipped.groups[1].files == 4);
  REQUIRE(skipped.groups[1].examples == Strings{"a/README.txt", "b/x.TXT", "b/y.txt"});
  REQUIRE(skipped.groups[2].extension.empty());
  REQUIRE(skipped.groups[2].examples == Strings{"a/4.longer_than_any_extension", "b/LICENSE"});
}

TEST_CASE("files beside class folders are left out where that is asked for, and only there", "[fetch]") {
  const ListingTree tree({"a/1.jpg", "a/deep/2.jpg", "labels.csv", "loose.jpg"});
  const ListingTree flat({"1.jpg", "2.jpg"});
  const auto skipping = [](const ListingTree& of, Strings extensions) {
    Listing::Request request = of.request(std::move(extensions));
    request.choice.unclassified = Unclassified::kSkipped;
    return *of.run(std::move(request));
  };

  const auto pictures = skipping(tree, {"jpg"}), every = skipping(tree, {});

  REQUIRE(paths_of(*pictures) == Strings{"a/1.jpg", "a/deep/2.jpg"});
  REQUIRE(pictures->skipped().files == 2);
  REQUIRE(pictures->skipped().groups[0].reason == SkipReason::kUnclassified);
  REQUIRE(pictures->skipped().groups[0].examples == Strings{"loose.jpg"});
  REQUIRE(paths_of(*every) == Strings{"a/1.jpg", "a/deep/2.jpg"});
  REQUIRE(every->skipped().groups.at(0).examples == Strings{"labels.csv", "loose.jpg"});
  REQUIRE(paths_of(*tree.list({"jpg"})) == Strings{"loose.jpg", "a/1.jpg", "a/deep/2.jpg"});
  REQUIRE(paths_of(*skipping(flat, {"jpg"})) == Strings{"1.jpg", "2.jpg"});
}

TEST_CASE("a folder of which everything is left out says what that is", "[fetch]") {
  const ListingTree tree({"a/1.tga", "a/2.tga", "b.jpg", "notes.txt"});
  Listing::Request request = tree.request({"jpg"});
  request.choice.unclassified = Unclassified::kSkipped;

  const auto outcome = tree.run(std::move(request));

  REQUIRE(
      outcome.error().message.ends_with("; skipped: 2 .tga (a/1.tga, ...; not decoded: convert them), "
                                        "1 beside the class folders (b.jpg), 1 .txt (notes.txt)"));
}

TEST_CASE("a path that is no folder is an error", "[fetch]") {
  const ListingTree tree({"a.jpg"});
  Listing::Request file = tree.request(), missing = tree.request(), slash = tree.request();
  file.path_untrusted += "/a.jpg";
  missing.path_untrusted += "/missing";
  slash.path_untrusted += "//";

  REQUIRE(tree.run(std::move(file)).error().code == Code::kInvalid);
  REQUIRE(tree.run(std::move(missing)).error().code == Code::kNotFound);
  REQUIRE((*tree.run(std::move(slash)))->root() == tree.top);
}

TEST_CASE("more files or folders than the limit are refused with its name", "[fetch]") {
  const ListingTree tree({"a/1", "a/2", "b/1"});
  Listing::Request enough = tree.request(), few = tree.request();
  enough.max_files = 5;  // three files, two folders
  few.max_files = 4;

  REQUIRE(tree.run(std::move(enough)).has_value());
  const auto outcome = tree.run(std::move(few));
  REQUIRE(outcome.error().code == Code::kExhausted);
  REQUIRE(outcome.error().message.find("limits.dataset_files") != std::string::npos);
}

TEST_CASE("links that double at every level end at the limit", "[fetch]") {
  const ListingTree tree({});
  for (int i = 0; i < 40; ++i) {
    const std::string folder = tree.top + "/" + std::to_string(i);
    fs::create_directories(folder);
    fs::create_symlink("../" + std::to_string(i + 1), folder + "/a");
    fs::create_symlink("../" + std::to_string(i + 1), folder + "/b");
  }
  Listing::Request request = tree.request({"jpg"});
  request.max_files = 200;

  REQUIRE(tree.run(std::move(request)).error().code == Code::kExhausted);
}

TEST_CASE("a stopped listing ends as cancelled", "[fetch]") {
  const ListingTree tree({"a/1.jpg"});
  auto stop = std::make_shared<StopFlag>();
  Listing::Request request = tree.request();
  request.stop = stop;
  Listing listing(*tree.roots, std::move(request));
  REQUIRE_FALSE(listing.step().has_value());

  stop->stop();

  const std::optional<Listing::Outcome> outcome = listing.step();
  REQUIRE(outcome.has_value());
  REQUIRE(outcome->error().code == Code::kCancelled);
}

TEST_CASE("progress is told every 10,000 files", "[fetch]") {
  const ListingTree tree({});
  const std::string other = tree.root + "/other";
  fs::create_directories(other);
  for (int i = 0; i < 500; ++i) write_file(other + "/" + std::to_string(i), std::string());
  for (int i = 0; i < 41; ++i) fs::create_symlink(other, tree.top + "/" + std::to_string(i));
  std::vector<std::uint64_t> seen;
  Listing::Request request = tree.request();
  request.progress = [&](std::uint64_t files) { seen.push_back(files); };

  const auto outcome = tree.run(std::move(request));

  REQUIRE((*outcome)->samples() == 20'500);
  REQUIRE(seen == std::vector<std::uint64_t>{10'000, 20'000});
}

TEST_CASE("the fingerprint is of the paths in order, and stays what it was", "[fetch]") {
  const ListingTree tree({"a/1.jpg", "b/2.jpg"});
  const std::uint64_t before = tree.list()->fingerprint();
  tree.add("b/3.jpg");

  REQUIRE(before == fingerprint_with(fingerprint_with(kFingerprintSeed, "a/1.jpg"), "b/2.jpg"));
  REQUIRE(tree.list()->fingerprint() != before);
  REQUIRE(fingerprint_with(kFingerprintSeed, "") == 0xAF63BD4C8601B7DF);  // FNV-1a of one zero byte
  REQUIRE(fingerprint_with(kFingerprintSeed, "foobar") ==
          0x34531CA7168B8F38);  // FNV-1a of "foobar" and a zero byte, its authors' vector
}

TEST_CASE("what is told of skipped files is bounded, and all are counted", "[fetch]") {
  SkipTally tally;
  for (int i = 0; i < 1'000; ++i) tally.not_asked("a/" + std::to_string(i) + "." + std::to_string(i));
  for (int i = 9; i > 0; --i) tally.not_asked("a/" + std::to_string(i) + ".0");

  const Skipped told = tally.told();

  REQUIRE(told.files == 1'009);
  REQUIRE(told.groups.size() == SkipTally::kMostTold);
  REQUIRE(told.groups[0].files == 10);
  REQUIRE(told.groups[0].examples == Strings{"a/0.0", "a/1.0", "a/2.0"});
}

TEST_CASE("however a folder looks, the text about its skipped files is short", "[fetch]") {
  SkipTally tally;
  for (int i = 0; i < 1'000; ++i) tally.not_asked(std::string(1'000, '\xff') + "." + std::to_string(i));

  const std::string text = to_text(tally.told());

  REQUIRE(text.size() < 1'000);
  REQUIRE_THAT(text, Catch::Contains("\\xff...)") && Catch::EndsWith(", and 12 more kinds (12 files), 984 more"));
}

TEST_CASE("a long path is counted and is no example", "[fetch]") {
  SkipTally tally;
  tally.not_asked(std::string(2'000, 'a') + "/1.txt");

  REQUIRE(tally.told().groups.at(0).files == 1);
  REQUIRE(tally.told().groups[0].examples.empty());
  REQUIRE(to_text(tally.told()) == "; skipped: 1 .txt");
}

TEST_CASE("names that are not UTF-8 are kept byte for byte", "[fetch]") {
  const ListingTree tree({});
  const std::string name = "caf\xE9\x01.jpg";
  write_file(tree.top + "/" + name, std::string("x"));

  REQUIRE(paths_of(*tree.list()) == Strings{name});
}

}  // namespace
}  // namespace millrace
