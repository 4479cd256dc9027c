// A steady client beside one of another user who wants all that there is, in every way that once got it. Counts of what
// both have had are compared, never times.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/host_faults.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSteady = 64001, kGreedy = 64002;

std::uint64_t done(const Process& client) {
  const std::string output = client.output();
  const std::size_t last = output.rfind("done ");
  const bool is_whole = last != std::string::npos && output.find('\n', last) != std::string::npos;
  return is_whole ? std::stoull(output.substr(last + 5)) : 0;
}

void wait_until_done(const Process& client, std::uint64_t count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (done(client) < count) {
    if (!client.running() || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a client did no more: " + client.errors());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// A daemon that keeps nothing, two lanes, and a few small pictures.
struct FairnessMill {
  FairnessMill() {
    chmod(folder.path().c_str(), 0755);
    for (std::uint32_t i = 0; i < 8; ++i) {
      paths.push_back(folder / (std::to_string(i) + ".jpg"));
      write_file(paths.back(), make_jpeg({.pixels = make_pixels(100 + i, 80, 3, i)}));
    }
  }

  Process start(const std::string& act, std::vector<std::string> arguments, uid_t user) const {
    return daemon.client(act, arguments, user);
  }
  std::vector<std::string> with_paths(std::vector<std::string> options) const {
    options.insert(options.end(), paths.begin(), paths.end());
    return options;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon{{.roots = {folder.path()}, .cache = "memory = 0\n", .log_level = "warning", .for_all_users = true}};
};

// What the steady one gets while the greedy one gets `turns`.
std::uint64_t had_meanwhile(const Process& steady, const Process& greedy, std::uint64_t turns) {
  wait_until_done(greedy, 1);
  const std::uint64_t before = done(steady), begun = done(greedy);
  wait_until_done(greedy, begun + turns);
  return done(steady) - before;
}

TEST_CASE("a session of priority high takes nothing of another user's share", "[system]") {
  if (skipped_without_root("priorities of two users")) return;
  const FairnessMill mill;
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);
  wait_until_done(steady, 5);

  const Process greedy = mill.start("work", mill.with_paths({"priority=high", "slots=4"}), kGreedy);

  constexpr std::uint64_t kTurns = 300;
  CHECK(had_meanwhile(steady, greedy, kTurns) >= kTurns / 4);
}

TEST_CASE("sixteen sessions of one user have one user's share", "[system]") {
  if (skipped_without_root("sessions of two users")) return;
  const FairnessMill mill;
  const Process steady = mill.start("work", mill.with_paths({"slots=4"}), kSteady);
  wait_until_done(steady, 5);

  const Process greedy = mill.start("work", mill.with_paths({"sessions=16", "priority=high"}), kGreedy);

  constexpr std::uint64_t kTurns = 400;
  CHECK(had_meanwhile(steady, greedy, kTurns) >= kTurns / 4);
}

TEST_CASE("pictures that are resampled to giants leave a lane to others", "[system]") {
  if (skipped_without_root("giants of another user")) return;
  const FairnessMill mill;
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);
  wait_until_done(steady, 5);

  const std::string side = "side=5000";
  const Process greedy =
      mill.start("work", mill.with_paths({side, "lanczos=1", "batch=2", "sessions=4", "slots=1"}), kGreedy);

  CHECK(had_meanwhile(steady, greedy, 8) >= 15);
}

TEST_CASE("samples that cost next to nothing leave another user his share", "[system]") {
  if (skipped_without_root("samples of another user")) return;
  const FairnessMill mill;
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);
  wait_until_done(steady, 5);
  const std::string tiny = mill.folder / "tiny.png";
  write_file(tiny, make_png({.pixels = make_pixels(1, 1, 3, 1)}));
  std::vector<std::string> wants = {"inline=1", "batch=256", "side=1", "sessions=4", "slots=8", tiny};
  SECTION("the same picture, again and again") {}
  SECTION("files that may not be read") {
    wants = {"packed=1", "batch=8000", "slot_mib=2", "slots=4", "/refused"};
  }

  const Process greedy = mill.start("work", wants, kGreedy);

  constexpr std::uint64_t kTurns = 200;
  CHECK(had_meanwhile(steady, greedy, kTurns) >= kTurns / 4);
}

// A grey progressive JPEG of `side` x `side` whose many scans say of nearly all blocks at once that nothing changes there
// (T.81, G.1.2.2: end-of-band runs): a few bytes each, and a whole picture's work.
std::string many_scans(std::uint32_t side, int scans) {
  const auto u16 = [](std::uint32_t value) {
    return std::string{static_cast<char>(value >> 8), static_cast<char>(value & 0xFF)};
  };
  const auto packed = [](std::string bits) {
    bits.resize((bits.size() + 7) / 8 * 8, '1');
    std::string bytes;
    for (std::size_t i = 0; i < bits.size(); i += 8) {
      bytes += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
      if (bytes.back() == '\xFF') bytes += '\0';
    }
    return bytes;
  };
  const std::uint32_t blocks = ((side + 7) / 8) * ((side + 7) / 8);
  constexpr std::uint32_t kLeastRun = 1U << 14, kMostRun = 32'767;
  std::string runs;
  for (std::uint32_t left = blocks; left > 0;) {
    const std::uint32_t run = std::clamp(left, kLeastRun, kMostRun);
    runs += '0' + std::bitset<14>(run - kLeastRun).to_string();
    left -= std::min(left, run);
  }
  const std::string one_code = std::string("\1", 1) + std::string(15, '\0');  // of one bit
  std::string jpeg = "\xFF\xD8\xFF\xDB" + u16(67) + std::string(1, '\0') + std::string(64, '\1');
  jpeg += "\xFF\xC2" + u16(11) + '\x08' + u16(side) + u16(side) + std::string("\1\1\x11\0", 4);
  jpeg += "\xFF\xC4" + u16(20) + std::string(1, '\0') + one_code + std::string(1, '\0');
  jpeg += "\xFF\xC4" + u16(20) + '\x10' + one_code + '\xE0';
  jpeg += "\xFF\xDA" + u16(8) + std::string("\1\1\0\0\0\0", 6) + packed(std::string(blocks, '0'));
  const std::string scan = "\xFF\xDA" + u16(8) + std::string("\1\1\0\1\x3F\0", 6) + packed(runs);
  for (int i = 0; i < scans; ++i) jpeg += scan;
  return jpeg + "\xFF\xD9";
}

TEST_CASE("a small file that takes seconds to decode leaves a lane to others", "[system]") {
  if (skipped_without_root("progressive files of another user")) return;
  const FairnessMill mill;
  const std::string file = mill.folder / "scans.jpg";
  write_file(file, many_scans(6'000, 480));
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);
  wait_until_done(steady, 5);

  const Process greedy = mill.start("work", {"batch=1", "slots=2", file}, kGreedy);

  CHECK(had_meanwhile(steady, greedy, 2) >= 200);
}

TEST_CASE("files that are large and no pictures keep nobody else's from being read", "[system]") {
  if (skipped_without_root("sparse files of another user")) return;
  const FairnessMill mill;
  std::vector<std::string> sparse;
  for (std::uint32_t i = 0; i < 16; ++i) {
    sparse.push_back(mill.folder / ("sparse" + std::to_string(i) + ".jpg"));
    write_file(sparse.back(), std::string("\xff\xd8\xff and no picture"));  // found out once all of it was read
    fs::resize_file(sparse.back(), std::uintmax_t{64} << 20);
  }
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);
  wait_until_done(steady, 5);

  const Process greedy = mill.start("work", sparse, kGreedy);

  CHECK(had_meanwhile(steady, greedy, 4) >= 8);
}

namespace {

// A daemon at a host with a file server beneath "remote", whose reads can hang as those of a server that is gone.
struct RemoteHost {
  RemoteHost() {
    chmod(folder.path().c_str(), 0755);
    chmod((folder / "faults").c_str(), 0666);
    fs::create_directories(folder / "remote");
    for (std::uint32_t i = 0; i < 16; ++i) {
      for (std::vector<std::string>* const files : {&remote, &local}) {
        files->push_back(folder / ((files == &remote ? "remote/" : "") + std::to_string(i) + ".jpg"));
        write_file(files->back(), make_jpeg({.pixels = make_pixels(40, 30, 3, i)}));
      }
    }
  }

  TempFolder folder;
  HostFaults faults{folder / "faults"};
  std::vector<std::string> remote, local;
  Daemon daemon{{.roots = {folder.path()},
                 .cache = "memory = 0\n",
                 .log_level = "warning",
                 .for_all_users = true,
                 .env = {faults.env()},
                 .program = bad_host_program()}};
};

}  // namespace

TEST_CASE("reads that do not come back hold up those alone who read there, and go on once they do", "[system]") {
  if (skipped_without_root("a file server that several users read from")) return;
  RemoteHost host;
  const bool crawls = GENERATE(false, true);  // the server, before it is gone: then its sessions are known to be slow
  CAPTURE(crawls);
  if (crawls) host.faults.reads_take(20, "/remote/");
  const Process steady = host.daemon.client("work", host.local, kSteady);
  wait_until_done(steady, 10);
  std::vector<Process> there;
  for (uid_t user = kGreedy; user < kGreedy + (crawls ? 6 : 2); ++user)
    there.push_back(host.daemon.client("work", host.remote, user));
  for (const Process& client : there) wait_until_done(client, 2);

  host.faults.reads_hang("/remote/");
  wait_until_done(steady, done(steady) + 50);
  const std::string line = "files of user " + std::to_string(kGreedy);
  REQUIRE(eventually([&] { return host.daemon.errors().find(line) != std::string::npos; }));
  wait_until_done(steady, done(steady) + 50);
  if (!crawls) wait_until_done(host.daemon.client("work", host.local, kSteady + 10), 20);
  std::vector<std::uint64_t> had;
  for (const Process& client : there) had.push_back(done(client));
  wait_until_done(steady, done(steady) + 50);

  for (std::size_t i = 0; i < there.size(); ++i) CHECK(done(there[i]) == had[i]);
  host.faults.reads_hang("");
  for (std::size_t i = 0; i < there.size(); ++i) wait_until_done(there[i], had[i] + 4);
  host.faults.reads_hang("/remote/");  // the threads that had to wait are there again
  wait_until_done(steady, done(steady) + 50);
  host.faults.reads_hang("");
}

TEST_CASE("reads that do not come back leave their user's sessions that read elsewhere alone", "[system]") {
  RemoteHost host;
  const bool all_crawl = GENERATE(false, true);  // the steady one's files as well
  CAPTURE(all_crawl);
  host.faults.reads_take(20, all_crawl ? ".jpg" : "/remote/");
  const Process steady = host.daemon.client("work", host.local);
  wait_until_done(steady, 10);
  const Process one = host.daemon.client("work", host.remote), other = host.daemon.client("work", host.remote);
  wait_until_done(one, 2);
  wait_until_done(other, 2);

  host.faults.reads_hang("/remote/");
  REQUIRE(eventually([&] { return host.daemon.errors().find("files of user") != std::string::npos; }));
  wait_until_done(steady, done(steady) + 100);

  host.faults.reads_hang("");
}

TEST_CASE("a packed batch of many missing files lets other packed ones pass", "[system]") {
  if (skipped_without_root("packed batches of two users")) return;
  const FairnessMill mill;
  const Process steady = mill.start("work", mill.with_paths({"packed=1", "batch=4", "slot_mib=1"}), kSteady);
  wait_until_done(steady, 5);

  const std::string count = "batch=30000";
  const Process greedy =
      mill.start("work", {"packed=1", count, "slot_mib=8", "slots=2", mill.folder / "missing*"}, kGreedy);

  CHECK(had_meanwhile(steady, greedy, 2) >= 25);
}

TEST_CASE("a folder of links that lead a long way round lets others list theirs", "[system]") {
  if (skipped_without_root("listings of two users")) return;
  const FairnessMill mill;
  const std::string links = mill.folder / "links", small = mill.folder / "small";
  constexpr int kDeep = 25, kChain = 35;
  std::string around;
  for (int i = 0; i < kDeep; ++i) around += "d/";
  fs::create_directories(links + "/.way/" + around);
  fs::create_directories(small);
  write_file(small + "/a.jpg", std::string("x"));
  write_file(links + "/.0", std::string("x"));
  std::string way = ".way/" + around;
  for (int i = 0; i <= kDeep; ++i) way += "../";
  for (int i = 1; i <= kChain; ++i)
    fs::create_symlink(way + "." + std::to_string(i - 1), links + "/." + std::to_string(i));
  for (int i = 0; i < 400; ++i)
    fs::create_symlink("." + std::to_string(kChain), links + "/" + std::to_string(i) + ".jpg");
  const Process steady = mill.start("list_again", {small}, kSteady);
  wait_until_done(steady, 5);

  const Process greedy = mill.start("list_again", {links}, kGreedy);

  CHECK(had_meanwhile(steady, greedy, 2) >= 10);
}

TEST_CASE("a client that keeps all of its batches stops itself alone", "[system]") {
  if (skipped_without_root("slots of two users")) return;
  const FairnessMill mill;
  const std::string pictures = mill.folder / "pictures";
  fs::create_directories(pictures);
  for (std::uint32_t i = 0; i < 24; ++i)
    write_file(pictures + "/" + std::to_string(i) + ".jpg", make_jpeg({.pixels = make_pixels(60, 50, 3, i)}));
  const Process steady = mill.start("work", mill.with_paths({}), kSteady);

  const Process holder = mill.start("hold", {pictures, "4"}, kGreedy);
  REQUIRE(holder.wait_for("holding 4"));
  const std::uint64_t before = done(steady);

  wait_until_done(steady, before + 100);
  CHECK(holder.say("look"));
  CHECK(holder.wait_for("same"));
}

}  // namespace
}  // namespace millrace
