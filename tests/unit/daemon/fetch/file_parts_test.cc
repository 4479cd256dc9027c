// Samples that are parts of files, as a reader opens these.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/read/sample_reader.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

struct SharedFileRig {
  Tree tree;
  std::string file = tree / "a/b/shard.tar";
  std::unique_ptr<Roots> roots = open_roots({tree.root});
  Caller caller{.uid = geteuid(), .gid = getegid()};
  SampleReader reader{*roots, {.limits = Limits{}, .stable_after = std::chrono::seconds(0)}};
  std::string picture;

  SharedFileRig() {
    const std::vector<std::byte> bytes = make_jpeg({.pixels = make_pixels(32, 16, 3, 1), .exif_orientation = 1});
    picture.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    write_file(file, "header" + picture + picture + "behind");
  }
  Dataset::Range range(std::uint64_t number) const { return {6 + number * picture.size(), Bytes{picture.size()}}; }
  Dataset::Stamp stamp() const {
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    const FileIdentity identity = identity_of(status);
    return {Bytes{identity.size}, identity.modified};
  }
  SampleSource stamped(const Dataset::Stamp& stamp) const {
    const std::string path = "a/b/shard.tar";
    return DatasetSource{
        std::make_shared<const Dataset>(tree.root, path, std::vector<Dataset::Entry>{{0, path.size(), -1}},
                                        std::vector<std::string>{}, 0, Skipped{},
                                        Dataset::Parts{.ranges = {range(0)}, .stamps = {{0, stamp}}}),
        SampleId{0}};
  }
  Result<EncodedImage> read(const SampleSource& source, std::optional<OpenedAhead> ahead = {}) const {
    Bytes read;
    return reader.read(source, caller, nullptr, {}, read, std::move(ahead));
  }
};

std::string bytes_of(const EncodedImage& image) {
  return {reinterpret_cast<const char*>(image.bytes.view().data()), image.bytes.size()};
}

}  // namespace

TEST_CASE("a file that several samples are parts of is opened once for all of them", "[fetch]") {
  const SharedFileRig rig;
  write_file(rig.tree / "a/b/alone.tar", "header" + rig.picture);
  const SampleSource first = PathSource{rig.file, rig.range(0)}, second = PathSource{rig.file, rig.range(1)},
                     alone = PathSource{rig.tree / "a/b/alone.tar", rig.range(0)},
                     missing = PathSource{rig.tree / "a/b/none.tar", rig.range(0)};
  const std::array<const SampleSource*, 5> sources{&first, &alone, &second, &missing, &missing};

  const auto ahead = rig.reader.open_ahead(sources, rig.caller);

  REQUIRE(ahead.size() == 5);
  REQUIRE((ahead[0] && ahead[2]));
  CHECK(*ahead[0]->file == *ahead[2]->file);
  CHECK_FALSE(ahead[1]);  // opened when it is its turn
  REQUIRE((ahead[3] && ahead[4]));
  CHECK(ahead[4]->file.error().code == Code::kNotFound);
  CHECK(bytes_of(*rig.read(first, ahead[0])) == rig.picture);
  CHECK(bytes_of(*rig.read(second, ahead[2])) == rig.picture);
  const std::array<const SampleSource*, 2> of_two_files{&first, &alone};
  CHECK(rig.reader.open_ahead(of_two_files, rig.caller).empty());
}

TEST_CASE("a file is read only while it has the size and the time that it was listed with", "[fetch]") {
  const SharedFileRig rig;
  const Dataset::Stamp now = rig.stamp();

  CHECK(bytes_of(*rig.read(rig.stamped(now))) == rig.picture);
  for (const Dataset::Stamp& other :
       {Dataset::Stamp{now.size + 1_B, now.modified}, Dataset::Stamp{now.size, now.modified + 1}}) {
    const Result<EncodedImage> refused = rig.read(rig.stamped(other));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kPrecondition);
    CHECK_THAT(refused.error().message, Catch::Contains("has changed since it was listed"));
  }
}

TEST_CASE("a part is named by its file, offset and length", "[fetch]") {
  CHECK(source_name(PathSource{"/data/shard.tar", Dataset::Range{1'536, 48'211_B}}) == "/data/shard.tar[1536+48211]");
  CHECK(source_name(PathSource{"/data/a.jpg"}) == "/data/a.jpg");
  CHECK(file_path(PathSource{"/data/shard.tar", Dataset::Range{1'536, 48'211_B}}) == "/data/shard.tar");
}

}  // namespace millrace
