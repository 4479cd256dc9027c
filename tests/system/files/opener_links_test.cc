// Which way a path takes through the opener: links, devices, and folders that others change meanwhile.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/support/under_sanitizer.h"
#include "tests/system/files/opener_files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Two roots, and a folder outside; all of it is the team's, and alice is in it by her own group.
struct TwoRoots {
  TwoRoots() {
    for (const char* name : {"one", "two", "outside"}) {
      fs::create_directory(data / name);
      picture_of(data / (std::string(name) + "/a.jpg"), 0, kAlice, 0640);
    }
  }
  std::string link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, data / name);
    return data / name;
  }
  DaemonSpec spec() const { return service_with_opener({data / "one", data / "two"}); }

  OpenFolder data;
};

TEST_CASE("the opener follows links that stay beneath the roots, and no others", "[system]") {
  if (skipped_without_openers()) return;
  const TwoRoots roots;
  const OpenFolder& data = roots.data;
  fs::create_directory(data / "one/deep");
  const std::vector<std::string> inside{
      roots.link("a.jpg", "one/relative.jpg"), roots.link("../a.jpg", "one/deep/up.jpg"),
      roots.link(data / "one/a.jpg", "one/absolute.jpg"), roots.link(data / "two/a.jpg", "one/other_root.jpg"),
      roots.link(data / "two", "one/other_folder") + "/a.jpg"};
  const std::vector<std::string> outside{roots.link("../outside/a.jpg", "one/out.jpg"),
                                         roots.link(data / "outside/a.jpg", "one/absolute_out.jpg"),
                                         roots.link(data / "outside", "one/folder_out") + "/a.jpg",
                                         roots.link("/proc/self/root" + data / "outside/a.jpg", "one/magic.jpg"),
                                         data / "outside/a.jpg",
                                         data / "one/../outside/a.jpg"};
  const Daemon daemon(roots.spec());

  for (const std::string& verdict : verdicts(daemon, inside, kAlice)) REQUIRE(verdict == "ok");
  for (const std::string& verdict : verdicts(daemon, outside, kAlice)) REQUIRE_THAT(verdict, is_denied());
  for (const std::string& verdict : verdicts(daemon, inside, kBob)) REQUIRE_THAT(verdict, is_denied());
}

TEST_CASE("a listing through the opener holds the files behind links to other roots", "[system]") {
  if (skipped_without_openers()) return;
  const TwoRoots roots;
  const OpenFolder& data = roots.data;
  fs::create_directory(data / "one/sub");
  picture_of(data / "one/sub/b.jpg", 0, kAlice, 0640);
  give_to(data / "one/sub", 0, kAlice, 0750);
  roots.link(data / "two", "one/linked");
  roots.link("../a.jpg", "one/sub/again.jpg");
  const Daemon daemon(roots.spec());

  REQUIRE(daemon.run_client("list", {data / "one"}, kAlice) == "samples 3\n");
  REQUIRE_THAT(daemon.run_client("list", {data / "one"}, kBob),
               Catch::StartsWith("PERMISSION_DENIED ") && Catch::Contains("folder \"sub\""));
}

TEST_CASE("FIFOs, devices, sockets and folders are refused, and make nobody wait", "[system]") {
  if (skipped_without_openers()) return;
  const TwoRoots roots;
  const OpenFolder& data = roots.data;
  const std::vector<std::string> odd{data / "one/fifo.jpg", data / "one/zero.jpg", data / "one/folder.jpg"};
  REQUIRE(mkfifo(odd[0].c_str(), 0644) == 0);
  if (mknod(odd[1].c_str(), S_IFCHR | 0644, makedev(1, 5)) != 0) return skip_loudly("devices (none may be made here)");
  fs::create_directory(odd[2]);
  roots.link("fifo.jpg", "one/to_fifo.jpg");
  const Daemon daemon(roots.spec());

  const auto seen = verdicts(daemon, {odd[0], odd[1], odd[2], data / "one/to_fifo.jpg", data / "one/a.jpg"}, kAlice);

  for (int i = 0; i < 4; ++i) REQUIRE_THAT(seen[static_cast<std::size_t>(i)], Catch::StartsWith("INVALID_ARGUMENT "));
  REQUIRE(seen[4] == "ok");
}

TEST_CASE("a folder that is swapped for a link to a secret never shows the secret", "[system]") {
  if (skipped_without_openers()) return;
  const TwoRoots roots;
  const OpenFolder& data = roots.data;
  fs::create_directory(data / "one/swapped");
  picture_of(data / "one/swapped/x.jpg", 0, 0, 0644);
  fs::create_directory(data / "secret");
  picture_of(data / "secret/only_here.jpg", 0, 0, 0644);  // everybody may read it, but it lies outside
  roots.link(data / "secret", "one/link");
  const Daemon daemon(roots.spec());
  const std::string folder = data / "one/swapped", link = data / "one/link";
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop) static_cast<void>(renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE));
  });

  std::size_t leaked = 0, well = 0, refused = 0;
  std::vector<std::string> both;
  for (int i = 0; i < (under_sanitizer() ? 32 : 500); ++i)
    both.insert(both.end(), {folder + "/only_here.jpg", folder + "/x.jpg"});
  // Until it was seen both ways, at least a few times over.
  for (int round = 0; round < 5 || (round < 100 && (well == 0 || refused == 0)); ++round) {
    const auto seen = verdicts(daemon, both, kAlice);
    for (std::size_t i = 0; i < seen.size(); i += 2) {
      leaked += seen[i] == "ok" ? 1 : 0;
      well += seen[i + 1] == "ok" ? 1 : 0;
      refused += seen[i + 1] != "ok" ? 1 : 0;
    }
  }
  stop = true;
  swapper.join();

  REQUIRE(leaked == 0);
  REQUIRE(well > 0);
  REQUIRE(refused > 0);
}

}  // namespace
}  // namespace millrace
