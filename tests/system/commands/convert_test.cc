// millrace convert: folders to packed files and back.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "proto/base/unique_fd.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/commands/copied_files.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::vector<std::byte>>;

Files files_of(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_file(entry.path().string());
  }
  return files;
}

std::size_t count_ending(const Files& files, const std::string& ending) {
  return static_cast<std::size_t>(
      std::count_if(files.begin(), files.end(), [&](const auto& file) { return file.first.ends_with(ending); }));
}

std::size_t left_overs(const std::string& folder) {
  const Files files = files_of(folder);
  return static_cast<std::size_t>(std::count_if(files.begin(), files.end(), [](const auto& file) {
    return fs::path(file.first).filename().string().starts_with(".millrace");
  }));
}

// In the folder itself, which another process fills: what begins or ends meanwhile may count or not.
std::size_t packed_so_far(const std::string& folder) {
  std::size_t packed = 0;
  std::error_code ended;
  for (fs::directory_iterator at(folder, ended), end; !ended && at != end; at.increment(ended))
    packed += at->path().extension() == ".mrp" ? 1 : 0;
  return packed;
}

Ran convert(const std::string& to, const std::string& from, const std::string& into,
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> argv{"millrace", "convert", "--to", to, from, into, "--json"};
  argv.insert(argv.end(), more.begin(), more.end());
  return run(argv);
}

int count(const Ran& ran, const char* what) {
  return parsed(ran.output).get<int>(what);
}

timespec modified(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mtim;
}

void write_jpeg(const std::string& path, std::uint32_t seed, const JpegSpec& spec = {}) {
  JpegSpec with = spec;
  with.pixels = make_pixels(70 + seed % 9, 50, 3, seed);
  write_file(path, make_jpeg(with));
}

// JPEG and other files, whatever names can be.
struct PicturesToConvert {
  PicturesToConvert() {
    write_image_folder(folder / "classes", {.images = 24, .classes = 3});
    fs::create_directories(folder / "odd \xff/deeper/\xc3\xa9");
    fs::create_directories(folder / "empty");
    write_jpeg(folder / "odd \xff/deeper/\xc3\xa9/new\nline.JPEG", 1, {.exif_orientation = 6});
    write_jpeg(folder / "odd \xff/-rf.jpg", 2, {.restart_interval = 2});
    write_jpeg(folder / "odd \xff/twice.jpg", 3);
    write_jpeg(folder / "odd \xff/twice.jpeg", 4);
    write_jpeg(folder / "odd \xff/progressive.jpg", 5, {.progressive = true});
    write_jpeg(folder / "odd \xff/a.b.c.jPg", 6);
    write_jpeg(folder / "odd \xff/no ending", 7);
    write_jpeg(folder / "odd \xff/.hidden.jpg", 8);
    write_file(folder / "odd \xff/none.jpg", std::string("this is not a picture"));
    write_file(folder / "odd \xff/twice.txt", std::string("a caption"));
    write_file(folder / "odd \xff/nothing.jpg", std::string());
  }
  TempFolder folder;
};

TEST_CASE("a folder becomes packed files and the very same folder again", "[system]") {
  const PicturesToConvert pictures;
  const TempFolder out;
  ::chmod((pictures.folder / "odd \xff/-rf.jpg").c_str(), 0640);
  const Files before = files_of(pictures.folder.path());

  const Ran there = convert("packed", pictures.folder.path(), out / "packed");
  const Ran back = convert("jpeg", out / "packed", out / "back");

  CAPTURE(there.errors, there.output, back.errors);
  REQUIRE(there.status == 0);
  REQUIRE(back.status == 0);
  const Files packed = files_of(out / "packed");
  REQUIRE(packed.size() == before.size());
  REQUIRE(count(there, "converted") == static_cast<int>(count_ending(packed, ".mrp")));
  REQUIRE(count(there, "converted") > 20);
  for (const char* name :
       {"odd \xff/-rf.mrp", "odd \xff/twice.jpg.mrp", "odd \xff/twice.jpeg.mrp", "odd \xff/a.b.c.mrp",
        "odd \xff/.hidden.mrp", "odd \xff/deeper/\xc3\xa9/new\nline.mrp", "odd \xff/none.jpg",
        "odd \xff/progressive.jpg", "odd \xff/no ending", "odd \xff/twice.txt"}) {
    CAPTURE(name);
    REQUIRE(packed.count(name) == 1);
  }
  REQUIRE(fs::is_directory(out / "packed/empty"));
  REQUIRE((files_of(out / "back") == before));
  struct stat status {};
  REQUIRE(::stat((out / "packed/odd \xff/-rf.mrp").c_str(), &status) == 0);
  REQUIRE((status.st_mode & 0777) == 0640);
  for (const auto& [name, bytes] : before)
    REQUIRE(modified(out / ("back/" + name)).tv_nsec == modified(pictures.folder / name).tv_nsec);
  REQUIRE(left_overs(out.path()) == 0);
}

TEST_CASE("real pictures become packed files and the very same files again", "[system]") {
  for (const char* name : {"photos", "jpeg-variants", "bad-jpeg"}) {
    const auto folder = test_data(name);
    if (!folder) return;
    const TempFolder out;
    const std::size_t files = copy_some_files(*folder, out / "in");
    const Ran there = convert("packed", out / "in", out / "packed");
    const Ran back = convert("jpeg", out / "packed", out / "back");
    CAPTURE(name, there.errors, back.errors);
    REQUIRE(there.status == 0);
    REQUIRE(back.status == 0);
    const int of_the_odd_ones = under_sanitizer() ? 0 : 4;
    const bool photos = name == std::string("photos");
    REQUIRE(count(there, "converted") > (photos ? static_cast<int>(files) - 10 : of_the_odd_ones));
    REQUIRE((files_of(out / "back") == files_of(out / "in")));
  }
}

TEST_CASE("convert does nothing twice and writes nothing over", "[system]") {
  const PicturesToConvert pictures;
  const TempFolder out;
  const Ran first = convert("packed", pictures.folder.path(), out.path());
  REQUIRE(first.status == 0);
  const Files packed = files_of(out.path());
  const timespec time = modified(out / "odd \xff/-rf.mrp");

  SECTION("what is there counts, what lacks is made") {
    fs::remove(out / "odd \xff/-rf.mrp");
    fs::remove(out / "odd \xff/twice.txt");

    const Ran again = convert("packed", pictures.folder.path(), out.path());

    REQUIRE(again.status == 0);
    REQUIRE(count(again, "there_before") == static_cast<int>(packed.size()) - 2);
    REQUIRE(count(again, "converted") == count(first, "converted"));
    REQUIRE((files_of(out.path()) == packed));
    REQUIRE(modified(out / "odd \xff/-rf.mrp").tv_nsec == time.tv_nsec);
  }
  SECTION("what is something else stays, and is named") {
    write_file(out / "odd \xff/-rf.mrp", std::string("somebody else's"));
    write_file(out / "odd \xff/twice.txt", std::string("another caption"));
    write_jpeg(pictures.folder / "odd \xff/a.b.c.jPg", 99);  // the source is another one now
    fs::remove(out / "odd \xff/.hidden.mrp");
    fs::create_symlink("nowhere", out / "odd \xff/.hidden.mrp");
    const Files before = files_of(out.path());

    const Ran again = convert("packed", pictures.folder.path(), out.path());

    REQUIRE(again.status == 1);
    REQUIRE(count(again, "failed") == 4);
    REQUIRE_THAT(again.errors,
                 Catch::Contains("odd \\xff/-rf.mrp is there already") &&
                     Catch::Contains("odd \\xff/twice.txt is there already, and is something else: it was not "
                                     "written over. Move it away, or name another folder to fill") &&
                     Catch::Contains("odd \\xff/a.b.c.mrp is there already") &&
                     Catch::Contains("odd \\xff/.hidden.mrp is there already"));
    REQUIRE((files_of(out.path()) == before));
  }
}

// More pictures than are done before a signal comes or a disk is full.
void write_many(const std::string& folder, std::uint32_t height = 700) {
  fs::create_directories(folder);
  const auto bytes = make_jpeg({.pixels = make_pixels(900, height, 3, 1)});
  for (int i = 0; i < 300; ++i) write_file(folder + "/" + std::to_string(i) + ".jpg", bytes);
}

Process start(const std::string& from, const std::string& into) {
  return Process::spawn({.argv = {bin_folder() + "/millrace", "convert", "--to", "packed", from, into, "--jobs", "2"}});
}

TEST_CASE("an interrupted conversion leaves whole files alone, and goes on", "[system]") {
  const TempFolder folder;
  write_many(folder / "in", under_sanitizer() ? 90 : 700);  // all of them are packed three times
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const std::string out = folder / ("out" + std::to_string(signal));
    const Process process = start(folder / "in", out);
    REQUIRE(eventually([&] { return packed_so_far(out) >= 3; }));
    process.kill(signal);
    const auto status = process.wait();

    CAPTURE(signal, process.errors());
    REQUIRE(status == (signal == SIGKILL ? 128 + SIGKILL : 130));
    const Files half = files_of(out);
    REQUIRE(count_ending(half, ".mrp") < 300);
    if (signal != SIGKILL) REQUIRE(left_overs(out) == 0);
    const Ran again = convert("packed", folder / "in", out);  // what is there and not whole would be a failure
    REQUIRE(again.status == 0);
    REQUIRE(count(again, "there_before") == static_cast<int>(count_ending(half, ".mrp")));
    REQUIRE(count_ending(files_of(out), ".mrp") == 300);
    REQUIRE(left_overs(out) == 0);
  }
}

TEST_CASE("a full disk ends a conversion with an error, and with whole files alone", "[system]") {
  if (!can_have_own_shm()) return skip_loudly("a full disk: mounting one takes root");
  const TempFolder folder;
  write_many(folder / "in");
  fs::create_directories(folder / "disk");
  const std::string program = bin_folder() + "/millrace", from = folder / "in", disk = folder / "disk";
  const std::string script = "mount -t tmpfs -o size=4m tmpfs '" + disk + "' && { '" + program +
                             "' convert --to packed '" + from + "' '" + disk + "/out' --jobs 2; echo status $?; '" +
                             program + "' convert --to jpeg '" + disk + "/out' '" + folder.path() +
                             "/back' > /dev/null; echo back $?; ls -A '" + disk + "/out' | grep -vc '[.]mrp$'; }";

  const Process process = Process::spawn({.argv = {"unshare", "--mount", "sh", "-c", script}});

  REQUIRE(process.wait());
  CAPTURE(process.output(), process.errors());
  REQUIRE_THAT(process.output(), Catch::Contains("status 1\n") && Catch::Contains("back 0\n0\n"));
  REQUIRE_THAT(process.errors(), Catch::Contains("No space left on device"));
  const Files back = files_of(folder / "back");
  REQUIRE(back.size() >= 3);
  for (const auto& [name, bytes] : back) REQUIRE((bytes == read_file(folder / ("in/" + name))));
}

TEST_CASE("a file that changes while it is read is named, and not there", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in");
  write_jpeg(folder / "in/good.jpg", 1);
  write_file(folder / "in/growing.bin", std::vector<std::byte>(std::size_t{96} << 20));
  std::atomic<bool> ended{false};
  std::jthread writer([&] {
    std::ofstream file(folder / "in/growing.bin", std::ios::binary | std::ios::app);
    while (!ended) {
      file << 'x' << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });

  const Ran ran = convert("packed", folder / "in", folder / "out", {"--delete"});
  ended = true;

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.errors, Catch::Contains("growing.bin changed while it was read"));
  REQUIRE(fs::exists(folder / "in/growing.bin"));
  REQUIRE(count_ending(files_of(folder / "out"), ".bin") == 0);
  REQUIRE(fs::exists(folder / "out/good.mrp"));
  REQUIRE(left_overs(folder / "out") == 0);
}

TEST_CASE("--delete takes the sources that the other folder has, and no links", "[system]") {
  const PicturesToConvert pictures;
  const TempFolder out, elsewhere;
  write_jpeg(elsewhere / "behind.jpg", 1);
  fs::create_symlink(elsewhere / "behind.jpg", pictures.folder / "linked.jpg");
  fs::create_directory_symlink(elsewhere.path(), pictures.folder / "folder");
  fs::create_directory_symlink("..", pictures.folder / "empty/round");
  const Files before = files_of(pictures.folder / "classes");
  fs::create_directories(out / "odd \xff");
  write_file(out / "odd \xff/twice.txt", std::string("another caption"));

  const Ran ran = convert("packed", pictures.folder.path(), out.path(), {"--delete"});

  CAPTURE(ran.errors, ran.output);
  REQUIRE(ran.status == 1);  // of the caption that is there
  REQUIRE(fs::exists(pictures.folder / "odd \xff/twice.txt"));
  REQUIRE(fs::exists(elsewhere / "behind.jpg"));
  REQUIRE(fs::exists(out / "linked.mrp"));
  REQUIRE(fs::exists(out / "folder/behind.mrp"));
  REQUIRE(count(ran, "left_out") == 1);  // the link back
  REQUIRE(fs::is_symlink(pictures.folder / "linked.jpg"));
  REQUIRE(files_of(pictures.folder / "classes").empty());  // folders stay as long as a file failed
  REQUIRE(convert("jpeg", out / "classes", elsewhere / "back").status == 0);
  REQUIRE((files_of(elsewhere / "back") == before));
}

TEST_CASE("--delete leaves neither empty folders nor links to what it deleted", "[system]") {
  const TempFolder folder, elsewhere;
  fs::create_directories(folder / "in/deep/deeper");
  fs::create_directories(folder / "in/empty");
  write_jpeg(folder / "in/deep/deeper/z.jpg", 1);
  write_jpeg(elsewhere / "outside.jpg", 2);
  fs::create_symlink("deep/deeper/z.jpg", folder / "in/a.jpg");
  fs::create_directory_symlink("deep/deeper", folder / "in/folder");
  fs::create_symlink(folder / "in/deep/deeper/z.jpg", elsewhere / "theirs.jpg");
  fs::create_directory_symlink(elsewhere.path(), folder / "in/outside");

  const Ran ran = convert("packed", folder / "in", folder / "out", {"--delete", "--jobs", "1"});

  CAPTURE(ran.errors, ran.output);
  REQUIRE(ran.status == 0);
  for (const char* name : {"a.mrp", "folder/z.mrp", "deep/deeper/z.mrp", "outside/outside.mrp", "outside/theirs.mrp"}) {
    CAPTURE(name);
    REQUIRE(fs::exists(folder / ("out/" + std::string(name))));
  }
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "in")) left.push_back(entry.path().filename().string());
  REQUIRE(left == std::vector<std::string>{"outside"});
  REQUIRE(count(ran, "removed_folders_and_links") == 5);
  REQUIRE(fs::exists(elsewhere / "outside.jpg"));
  REQUIRE(fs::is_symlink(elsewhere / "theirs.jpg"));
}

TEST_CASE("a folder that cannot be read is named and passed over, and --delete leaves it", "[system]") {
  if (!is_root()) return skip_loudly("converting what another user may not read (needs root)");
  constexpr uid_t kSomebody = 64002;
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  const std::string program = copy_for_all_users(bin_folder() + "/millrace", folder.path());
  fs::create_directories(folder / "in/shut/deeper");
  fs::create_directories(folder / "in/open");
  fs::create_directories(folder / "out");
  write_jpeg(folder / "in/shut/deeper/1.jpg", 1);
  write_jpeg(folder / "in/open/2.jpg", 2);
  for (const char* path : {"in", "in/open", "in/open/2.jpg", "out"})
    REQUIRE(::chown((folder / path).c_str(), kSomebody, kSomebody) == 0);
  REQUIRE(::chmod((folder / "in/shut").c_str(), 0700) == 0);
  const Process process = Process::spawn(
      {.argv = {program, "convert", "--to", "packed", folder / "in", folder / "out", "--delete", "--json"},
       .user = kSomebody});
  const Ran ran{process.wait().value_or(-1), process.output(), process.errors()};

  CAPTURE(ran.errors, ran.output);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.errors, Catch::Contains("in/shut: ") && Catch::Contains("passed over, with all that is in it"));
  REQUIRE(count(ran, "converted") == 1);
  REQUIRE(count(ran, "failed") == 0);
  REQUIRE(count(ran, "unreadable_folders") == 1);
  REQUIRE(fs::exists(folder / "out/open/2.mrp"));
  REQUIRE_FALSE(fs::exists(folder / "out/shut"));
  REQUIRE_FALSE(fs::exists(folder / "in/open/2.jpg"));
  REQUIRE(fs::exists(folder / "in/shut/deeper/1.jpg"));
}

TEST_CASE("what is copied is named with the reason", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in");
  write_jpeg(folder / "in/good.jpg", 1);
  for (int i = 10; i < 22; ++i) write_file(folder / ("in/caption" + std::to_string(i)), std::string("a caption"));
  write_jpeg(folder / "in/scans.jpg", 2, {.progressive = true});
  const std::vector<std::string> argv{"millrace", "convert", "--to", "packed", folder / "in", folder / "out"};
  const auto with = [&](const char* option) {
    std::vector<std::string> all = argv;
    all.emplace_back(option);
    return run(all);
  };

  const Ran some = run(argv), all = with("--verbose"), json = with("--json");

  const auto captions = [](const std::string& output) {
    int named = 0;
    const std::string_view line = "  of other formats: caption";
    for (std::size_t at = 0; (at = output.find(line, at)) != output.npos; at += line.size()) ++named;
    return named;
  };
  REQUIRE_THAT(some.output, Catch::Contains("  progressive or in several scans: scans.jpg\n") &&
                                Catch::Contains("--verbose names all") && !Catch::Contains("good"));
  REQUIRE(captions(some.output) == 10);  // those that were done first, by several threads
  REQUIRE_THAT(all.output, Catch::Contains("caption21\n") && !Catch::Contains("--verbose"));
  REQUIRE(captions(all.output) == 12);
  REQUIRE_THAT(json.output, Catch::Contains(R"({"path":"scans.jpg","why":"progressive"})"));
}

TEST_CASE("a JPEG file that has a packed file's name comes back as it was", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in");
  write_jpeg(folder / "in/a.mrp", 1);
  write_jpeg(folder / "in/a.jpg", 2);

  const Ran there = convert("packed", folder / "in", folder / "out");
  const Ran back = convert("jpeg", folder / "out", folder / "back");

  CAPTURE(there.errors, back.errors);
  REQUIRE(there.status == 0);
  REQUIRE(back.status == 0);
  REQUIRE((files_of(folder / "back") == files_of(folder / "in")));
  REQUIRE_THAT(back.output, Catch::Contains(R"({"path":"a.mrp","why":"no_packed"})"));
}

TEST_CASE("a damaged packed file does not become a JPEG file", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in");
  for (std::uint32_t i = 0; i < 3; ++i) write_jpeg(folder / ("in/" + std::to_string(i) + ".jpg"), i);
  REQUIRE(convert("packed", folder / "in", folder / "out").status == 0);
  auto bytes = read_file(folder / "out/1.mrp");
  bytes[bytes.size() / 2] ^= std::byte{4};
  write_file(folder / "out/1.mrp", bytes);

  const Ran ran = convert("jpeg", folder / "out", folder / "back");

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.errors, Catch::Contains("out/1.mrp is damaged: "));
  REQUIRE(files_of(folder / "back").size() == 2);
}

TEST_CASE("convert refuses what would go wrong", "[system]") {
  const TempFolder folder;
  fs::create_directories(folder / "in/deeper");
  REQUIRE_THAT(convert("packed", folder / "in", folder / "out").errors, Catch::Contains("no files in it"));
  write_jpeg(folder / "in/1.jpg", 1);
  const auto refused = [](const Ran& ran, const std::string& why) {
    CAPTURE(ran.errors);
    REQUIRE(ran.status == 1);
    REQUIRE_THAT(ran.errors, Catch::StartsWith("millrace: ") && Catch::Contains(why));
  };

  refused(convert("packed", folder / "in", folder / "in"), "lies in the folder that is to be converted");
  refused(convert("packed", folder / "in", folder / "in/deeper/still"), "lies in the folder that is to be converted");
  refused(convert("packed", folder / "missing", folder / "out"), "missing");
  refused(convert("packed", folder / "in/1.jpg", folder / "out"), "is a file");
  fs::create_directories(folder / "busy");
  const UniqueFd lock(::open((folder / "busy/.millrace-convert-lock").c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  refused(convert("packed", folder / "in", folder / "busy"), "another `millrace convert` is filling it");
  REQUIRE(run({"millrace", "convert", folder / "in", folder / "out"}).status == 2);
  REQUIRE(run({"millrace", "convert", "--to", "gif", folder / "in", folder / "out"}).status == 2);
}

}  // namespace
}  // namespace millrace
