// What was kept of a file, instead of its bytes: when it is asked for, and by what.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/read/sample_reader.h"
#include "tests/support/host/process.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

// Has one thing for everybody who asks, and remembers what for.
class OneKept final : public CacheLookup {
 public:
  std::optional<CachedImage> find(const FileIdentity& identity, const CacheWish&) override {
    asked = identity;
    ++questions;
    return answer;
  }

  std::optional<CachedImage> answer;
  std::optional<FileIdentity> asked;
  int questions = 0;
};

struct Rig {
  Tree tree;
  std::string file = tree / "a/b/picture.jpg";
  std::unique_ptr<Roots> roots = open_roots({tree.root});
  OneKept kept;
  Caller caller{.uid = geteuid(), .gid = getegid()};

  Rig() {
    write_file(file, make_jpeg({.pixels = make_pixels(32, 16, 3, 1), .exif_orientation = 6}));
    kept.answer = CachedImage{{CachedKind::kPacked, CachedBlock::copy_of({})},
                              {.format = ImageFormat::kJpeg, .stored = {32, 16}, .orientation = 6}};
  }

  Result<EncodedImage> read(ReadWish wish, std::chrono::seconds stable = std::chrono::seconds(0)) {
    const SampleReader reader(*roots, {.limits = Limits{.sample = limits}, .kept = &kept, .stable_after = stable});
    Bytes read{0};
    return reader.read(source, caller, nullptr, wish, read);
  }
  EncodedImage must_read(const ReadWish& wish, std::chrono::seconds stable = std::chrono::seconds(0)) {
    Result<EncodedImage> image = read(wish, stable);
    REQUIRE(image.has_value());
    return *std::move(image);
  }

  SampleLimits limits;
  SampleSource source = PathSource{file};
};

// What a script mounts on root/mounted of a tree, $0, with a copy of the picture in it.
class Mounted {
 public:
  Mounted(const Tree& tree, const std::string& script) : at_(tree / "mounted") {
    std::filesystem::create_directory(at_);
    there_ = run({"sh", "-ec", script, tree.temp.path()});
  }
  ~Mounted() { run({"umount", "-l", at_}); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  bool there() const { return there_; }

 private:
  static bool run(std::vector<std::string> argv) { return Process::spawn({.argv = std::move(argv)}).wait() == 0; }

  std::string at_;
  bool there_ = false;
};

const std::string kLoopExt4 =
    "truncate -s 4M $0/image; mkfs.ext4 -q $0/image; mount -o loop $0/image $0/root/mounted;"
    "cp $0/root/a/b/picture.jpg $0/root/mounted";
const std::string kReadOnly = "mount --bind $0/root/a/b $0/root/mounted; mount -o remount,bind,ro $0/root/mounted";

}  // namespace

TEST_CASE("a stable file of which something is kept is not read", "[fetch]") {
  if (skips_where_no_file_is_kept()) return;
  Rig rig;

  const EncodedImage image = rig.must_read({.keep = {}});

  REQUIRE(image.bytes.size() == 0);
  REQUIRE(image.kept);
  REQUIRE(image.stable);
  REQUIRE(image.info.orientation == 6);
  REQUIRE(image.identity == rig.kept.asked);
  struct stat status {};
  REQUIRE(stat(rig.file.c_str(), &status) == 0);
  REQUIRE(image.identity->inode == status.st_ino);
  REQUIRE(image.identity->bytes() == static_cast<std::uint64_t>(status.st_size));
}

TEST_CASE("a recipe that ignores the orientation has the same file kept", "[fetch]") {
  Rig rig;

  for (const bool from_file : {false, true}) {
    const EncodedImage image = rig.must_read({.orientation = UseOrientation::kNo, .keep = {}, .from_file = from_file});

    REQUIRE(image.info.orientation == 1);
    REQUIRE(image.orientation_in_file == 6);
  }
}

TEST_CASE("a file that is not stable yet is read", "[fetch]") {
  Rig rig;

  const EncodedImage image = rig.must_read({.keep = {}}, std::chrono::seconds(60));

  REQUIRE(image.bytes.size() > 0);
  REQUIRE_FALSE(image.kept);
  REQUIRE_FALSE(image.stable);
  REQUIRE(rig.kept.questions == 0);
}

TEST_CASE("a file is read where nothing is to be kept, where what is kept was no use, and over a limit", "[fetch]") {
  Rig rig;

  REQUIRE(rig.must_read({.keep = {.most = CacheUse::kOff}}).bytes.size() > 0);
  REQUIRE(rig.must_read({.keep = {.most = CacheUse::kIndex}}).bytes.size() > 0);
  REQUIRE(rig.must_read({.keep = {}, .from_file = true}).bytes.size() > 0);
  REQUIRE(rig.kept.questions == 0);
  rig.limits.encoded = 100_B;
  REQUIRE(rig.read({.keep = {}}).error().code == Code::kInvalid);
  rig.limits = {};
  rig.limits.pixels = 100;
  REQUIRE(rig.read({.keep = {}}).error().code == Code::kInvalid);
}

TEST_CASE("what is kept of a file that the caller cannot open is not even asked for", "[fetch]") {
  Rig rig;
  rig.source = PathSource{rig.tree.outside + "/file"};
  REQUIRE(rig.read({.keep = {}}).error().code == Code::kDenied);
  rig.source = PathSource{rig.tree / "a/b/none.jpg"};
  REQUIRE(rig.read({.keep = {}}).error().code == Code::kNotFound);

  REQUIRE(rig.kept.questions == 0);
}

// They all have one number, and what is kept of bytes that were sent is found again by it.
TEST_CASE("of bytes from a user who cannot be told from others nothing is kept", "[fetch]") {
  constexpr uid_t kUnmapped = 65'534;
  Rig rig;
  rig.roots = open_roots({rig.tree.root}, {}, {.user = kUnmapped});
  const std::vector<std::byte> picture = make_jpeg({.pixels = make_pixels(32, 16, 3, 1)});
  rig.source = InlineSource{{reinterpret_cast<const char*>(picture.data()), picture.size()}};

  REQUIRE(rig.must_read({.keep = {}}).wish.most == CacheUse::kTensors);
  rig.caller.uid = kUnmapped;
  REQUIRE(rig.must_read({.keep = {}}).wish.most == CacheUse::kOff);
}

TEST_CASE("a part of a file is known by the file and its place", "[fetch]") {
  if (skips_where_no_file_is_kept()) return;
  Rig rig;
  const std::string path = "a/b/picture.jpg";
  const auto dataset = std::make_shared<const Dataset>(
      rig.tree.root, path, std::vector<Dataset::Entry>{{0, 15, -1}}, std::vector<std::string>{}, 0, Skipped{},
      Dataset::Parts{.ranges = {{.offset = 7, .length = 50_B}}, .stamps = {}});
  rig.source = DatasetSource{dataset, SampleId{0}};

  const EncodedImage image = rig.must_read({.keep = {}});

  REQUIRE(image.kept);
  REQUIRE(rig.kept.asked->part_begin == 7);
  REQUIRE(rig.kept.asked->part_size == 50);
  REQUIRE(rig.kept.asked->bytes() == 50);
}

TEST_CASE("only file systems that change ctimes with stores, and whose times nobody chose, make files stable",
          "[fetch]") {
  const auto vouches = [](std::uint64_t type, std::uint64_t device, std::uint64_t flags = 0) {
    struct statfs system {};
    system.f_type = static_cast<decltype(system.f_type)>(type);
    system.f_flags = static_cast<decltype(system.f_flags)>(flags);
    return vouches_for_times(system, device);
  };
  constexpr std::uint64_t kExt4 = 0xEF53, kBtrfs = 0x9123683E, kNfs = 0x6969;
  const std::uint64_t disk = makedev(259, 1), loop = makedev(7, 3), none = makedev(0, 44);

  REQUIRE(vouches(kExt4, disk));
  for (const std::uint64_t type : {kBtrfs, kNfs}) REQUIRE(vouches(type, none));
  for (const std::uint64_t type : {0x01021994ULL, 0x858458F6ULL, 0x794C7630ULL, 0x65735546ULL})
    REQUIRE_FALSE(vouches(type, none));  // tmpfs, ramfs, overlayfs, FUSE
  REQUIRE_FALSE(vouches(kExt4, loop));
  REQUIRE_FALSE(vouches(kExt4, disk, ST_RDONLY));
  REQUIRE_FALSE(vouches(kBtrfs, none, ST_RDONLY));
}

TEST_CASE("of an image that is mounted from a loop device, or read-only, files are read each time", "[fetch]") {
  Rig rig;
  const Mounted mounted(rig.tree, GENERATE(as<std::string>(), kLoopExt4, kReadOnly));
  if (!mounted.there()) return skip_loudly("files of a mounted image (needs root, mkfs.ext4 and a loop device)");
  rig.source = PathSource{rig.tree / "mounted/picture.jpg"};

  const EncodedImage image = rig.must_read({.keep = {}});

  REQUIRE(image.bytes.size() > 0);
  REQUIRE_FALSE(image.stable);
  REQUIRE(rig.kept.questions == 0);
}

TEST_CASE("a file is stable once its ctime is old enough", "[fetch]") {
  if (skips_where_no_file_is_kept()) return;
  Rig rig;
  const Result<OpenFile> file = rig.roots->open_file(rig.file, rig.caller);
  REQUIRE(file.has_value());
  const std::int64_t changed = file->identity.changed, second = 1'000'000'000;
  const auto is_old_enough = [&](std::int64_t opened) {
    return is_stable(file->fd.get(), file->identity, opened, std::chrono::seconds(120));
  };

  REQUIRE_FALSE(is_old_enough(changed + 119 * second));
  REQUIRE(is_old_enough(changed + 120 * second));
}

}  // namespace millrace
