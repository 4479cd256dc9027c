// Real files, links, FIFOs and owners. What needs another user's rights skips loudly where the tests do not run as
// root.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/open/roots.h"
#include "daemon/fetch/read/read_file.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/fetch/strangers.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a file beneath a root is opened", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.outside, tree.root + "/"});

  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");
  REQUIRE(text_or_error(*roots, tree.outside + "/file", myself()) == "outside");
}

TEST_CASE("a path outside the roots gets the same words whether it exists or not", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});

  for (const std::string& path : {tree.outside + "/file", tree.outside + "/missing", std::string("/etc/passwd"),
                                  std::string("/"), std::string(), std::string("relative"), tree.root + "x/file"}) {
    REQUIRE(text_or_error(*roots, path, myself()) == kDenied);
    REQUIRE(code_of(*roots, path, stranger()) == Code::kDenied);
  }
}

TEST_CASE("a path that is not plain is refused", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});

  for (const std::string& path : {tree / "a/../a/b/file", tree / "./a/b/file", tree / "a//b/file", tree / "a/b/file/",
                                  tree / "../outside/file", (tree / "a/b/file") + std::string("\0.jpg", 5)})
    REQUIRE(text_or_error(*roots, path, myself()) == kDenied);
}

TEST_CASE("a missing file is said to be missing where the caller may look", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});

  for (const Caller& caller : everybody(tree.root)) {
    for (const std::string& path : {tree / "a/b/missing", tree / "missing/file", tree / "a/b/file/file"})
      REQUIRE(code_of(*roots, path, caller) == Code::kNotFound);
  }
}

TEST_CASE("links within the roots are followed, relative and absolute ones", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  fs::create_symlink("b/file", tree / "a/to_file");
  fs::create_symlink("../../a/b", tree / "a/b/around");
  fs::create_symlink(tree / "a/b/file", tree / "absolute");
  fs::create_symlink(tree / "a", tree / "absolute_folder");

  for (const Caller& caller : everybody(tree.root)) {
    REQUIRE(text_or_error(*roots, tree / "a/to_file", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree / "a/b/around/file", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree / "absolute", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree / "absolute_folder/to_file", caller) == "inside");
  }
}

TEST_CASE("links out of the roots are denied, whether their target exists or not", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  fs::create_symlink(tree.outside + "/file", tree / "absolute");
  fs::create_symlink("../outside/file", tree / "relative");
  fs::create_symlink("../outside/missing", tree / "missing");
  fs::create_symlink("../outside", tree / "folder");
  fs::create_symlink(tree.root + "/../outside/file", tree / "up_and_out");
  fs::create_symlink("../root/a/b/file", tree / "out_and_back");

  for (const Caller& caller : everybody(tree.root)) {
    for (const char* name :
         {"absolute", "relative", "missing", "folder/file", "folder/missing", "up_and_out", "out_and_back"}) {
      REQUIRE(text_or_error(*roots, tree / name, caller) == kDenied);
      REQUIRE(code_of(*roots, tree / name, caller) == Code::kDenied);
    }
  }
}

TEST_CASE("a link into another root is followed", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root, tree.outside});
  fs::create_symlink(tree.outside + "/file", tree / "absolute");

  for (const Caller& caller : everybody(tree.root))
    REQUIRE(text_or_error(*roots, tree / "absolute", caller) == "outside");
}

TEST_CASE("links that go round in circles are refused", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  fs::create_symlink("two", tree / "one");
  fs::create_symlink("one", tree / "two");

  for (const Caller& caller : everybody(tree.root))
    REQUIRE(text_or_error(*roots, tree / "one", caller).find("circles") != std::string::npos);
}

TEST_CASE("a root named by a link is found by both its names", "[fetch]") {
  const Tree tree;
  fs::create_symlink(tree.root, tree.temp / "link");
  const auto roots = open_roots({tree.temp / "link"});

  for (const Caller& caller : everybody(tree.root)) {
    REQUIRE(text_or_error(*roots, tree.temp / "link/a/b/file", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree / "a/b/file", caller) == "inside");
  }
}

TEST_CASE("what is not a regular file is refused without blocking", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root, "/dev"});
  REQUIRE(mkfifo((tree / "fifo").c_str(), 0644) == 0);
  fs::create_symlink("fifo", tree / "to_fifo");

  for (const Caller& caller : everybody(tree.root)) {
    REQUIRE(text_or_error(*roots, tree / "fifo", caller) == "not a regular file");
    REQUIRE(text_or_error(*roots, tree / "to_fifo", caller) == "not a regular file");
    REQUIRE(text_or_error(*roots, "/dev/zero", caller) == "not a regular file");
    REQUIRE(text_or_error(*roots, tree / "a", caller) == "a folder, not a file");
  }
}

TEST_CASE("a file that its owner has leased is refused at once instead of waited for", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  const UniqueFd owner(open((tree / "a/b/file").c_str(), O_RDWR | O_CLOEXEC));
  const auto before = std::signal(SIGIO, SIG_IGN);  // how the kernel asks for the lease
  if (fcntl(owner.get(), F_SETLEASE, F_WRLCK) != 0)
    return skip_loudly("leased files: the file system of the temporary folder has no leases");

  for (const Caller& caller : everybody(tree.root))
    REQUIRE(code_of(*roots, tree / "a/b/file", caller) == Code::kPrecondition);

  std::signal(SIGIO, before);
}

TEST_CASE("in a namespace that does not map every id, its stand-in owns nothing and gets nothing", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const Caller unmapped{.uid = 54'321, .gid = 54'321};
  const auto partial = open_roots({tree.root}, {}, {.user = unmapped.uid, .group = unmapped.gid});
  const auto initial = open_roots({tree.root});

  REQUIRE(text_or_error(*initial, tree / "a/b/file", unmapped) == "inside");
  const std::string there = text_or_error(*partial, tree / "a/b/file", unmapped);
  REQUIRE(there.find("does not map your user") != std::string::npos);
  REQUIRE(text_or_error(*partial, tree / "a/missing", unmapped) == there);
  REQUIRE(text_or_error(*partial, "/etc/passwd", unmapped) == there);
  REQUIRE(partial->open_folder(tree.root, unmapped).error().message == there);
  REQUIRE(partial->type_of(tree / "a", unmapped).error().message == there);
}

TEST_CASE("the caller's own rights decide, in the same words for what is there and what is not", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  fs::create_directories(tree / "closed");
  write_file(tree / "closed/file", std::string("secret"));
  chmod((tree / "closed").c_str(), 0700);
  write_file(tree / "private", std::string("secret"));
  chmod((tree / "private").c_str(), 0600);

  REQUIRE(text_or_error(*roots, tree / "a/b/file", stranger()) == "inside");
  REQUIRE(text_or_error(*roots, tree / "private", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "closed/file", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "closed/missing", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "closed/missing/deeper", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "closed/file", myself()) == "secret");
}

TEST_CASE("a folder above the root that the caller may not search closes the root to him", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  chmod(tree.temp.path().c_str(), 0700);

  REQUIRE(text_or_error(*roots, tree / "a/b/file", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "a/b/missing", stranger()) == kDenied);
  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");
}

TEST_CASE("a link does not lead the caller into a folder that he may not search", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  fs::create_directories(tree / "closed");
  write_file(tree / "closed/file", std::string("secret"));
  chmod((tree / "closed").c_str(), 0700);
  fs::create_symlink("closed/file", tree / "to_file");
  fs::create_symlink("closed/missing", tree / "to_missing");
  fs::create_symlink(tree / "closed", tree / "to_folder");

  for (const char* name : {"to_file", "to_missing", "to_folder/file", "to_folder/missing"})
    REQUIRE(text_or_error(*roots, tree / name, stranger()) == kDenied);
}

TEST_CASE("owner, groups and ACLs give what the kernel would give", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  if (geteuid() != 0) return skip_loudly("files of another user (needs root)");
  const auto roots = open_roots({tree.root});
  const std::string path = tree / "a/b/file";
  REQUIRE(chown(path.c_str(), 1234, 5678) == 0);
  const Caller owner{.uid = 1234, .gid = 1}, member{.uid = 99, .gid = 1, .groups = {7, 5678}},
      other{.uid = 99, .gid = 1};

  chmod(path.c_str(), 0400);
  REQUIRE(text_or_error(*roots, path, owner) == "inside");
  REQUIRE(text_or_error(*roots, path, member) == kDenied);
  chmod(path.c_str(), 0040);
  REQUIRE(text_or_error(*roots, path, owner) == kDenied);
  REQUIRE(text_or_error(*roots, path, member) == "inside");
  REQUIRE(text_or_error(*roots, path, other) == kDenied);

  // user::---  user:99:r--  group::---  mask::r--  other::---
  const char acl[] =
      "\2\0\0\0"
      "\1\0\0\0\xFF\xFF\xFF\xFF"
      "\2\0\4\0\x63\0\0\0"
      "\4\0\0\0\xFF\xFF\xFF\xFF"
      "\x10\0\4\0\xFF\xFF\xFF\xFF"
      "\x20\0\0\0\xFF\xFF\xFF\xFF";
  if (setxattr(path.c_str(), "system.posix_acl_access", acl, sizeof acl - 1, 0) != 0)
    return skip_loudly("ACLs: the file system of the temporary folder has none");
  REQUIRE(text_or_error(*roots, path, other) == "inside");
  REQUIRE(text_or_error(*roots, path, stranger()) == kDenied);
}

TEST_CASE("a folder that is closed to the caller is closed to him, too, whose right to it was remembered", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  REQUIRE(text_or_error(*roots, tree / "a/b/file", stranger()) == "inside");
  chmod((tree / "a").c_str(), 0700);

  REQUIRE(eventually([&] { return text_or_error(*roots, tree / "a/b/file", stranger()) == kDenied; }));
}

// `swap` goes on until the end of the test; what is read must never be the secret.
template <class Swap>
void read_while(const Swap& swap, const Roots& roots, const std::string& path, const Caller& caller) {
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop.load()) swap();
  });
  int inside = 0;
  bool leaked = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; inside < 10 || (i < 3'000 && std::chrono::steady_clock::now() < deadline); ++i) {
    const std::string text = text_or_error(roots, path, caller);
    inside += text == "inside" ? 1 : 0;
    leaked = leaked || text == "outside" || text == "secret";
  }
  stop = true;
  swapper.join();

  REQUIRE_FALSE(leaked);
}

TEST_CASE("a file that is swapped for a link out of the root while it is read never leaks", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  const auto swap = [&] {
    fs::create_symlink("../outside/file", tree / "next");
    fs::rename(tree / "next", tree / "swapped");
    write_file(tree / "next", std::string("inside"));
    fs::rename(tree / "next", tree / "swapped");
  };
  swap();

  for (const Caller& caller : everybody(tree.root)) read_while(swap, *roots, tree / "swapped", caller);
}

TEST_CASE("a folder that is swapped for a link to a closed one while a file in it is read never leaks", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  fs::create_directories(tree / "closed/b");
  write_file(tree / "closed/b/file", std::string("secret"));
  chmod((tree / "closed").c_str(), 0700);
  const auto swap = [&] {
    fs::rename(tree / "a", tree / "kept");
    fs::create_symlink("closed", tree / "a");
    fs::remove(tree / "a");
    fs::rename(tree / "kept", tree / "a");
  };

  read_while(swap, *roots, tree / "a/b/file", stranger());
}

TEST_CASE("a very deep path is refused before it takes all descriptors", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  const auto roots = open_roots({tree.root});
  std::string path = tree.root;
  for (int i = 0; i < 200; ++i) path += "/d";
  fs::create_directories(path);
  write_file(path + "/file", std::string("deep"));

  const std::string text = text_or_error(*roots, path + "/file", stranger());

  REQUIRE(text.find("more than 128 folders deep") != std::string::npos);
}

TEST_CASE("a file has an identity once it is stable, and another one when it changed", "[fetch]") {
  const Tree tree;
  write_file(tree / "file", std::string(10, 'x'));
  const UniqueFd file(open((tree / "file").c_str(), O_RDONLY | O_CLOEXEC));
  const std::int64_t now = nanoseconds_since_1970(), later = now + 10'000'000'000;

  const auto stable = identity_of(file.get(), 10, later);
  write_file(tree / "file", std::string(10, 'y'));
  const auto changed = identity_of(file.get(), 10, later);

  REQUIRE(stable);
  REQUIRE(stable->size == 10);
  REQUIRE(changed);
  REQUIRE_FALSE(*stable == *changed);
  REQUIRE_FALSE(identity_of(file.get(), 10, now));   // changed just now
  REQUIRE_FALSE(identity_of(file.get(), 9, later));  // other bytes were read
}

OpenFile opened(const std::string& path, Bytes size) {
  return {UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), size};
}

TEST_CASE("a file is read to its end, whatever its size was when it was opened", "[fetch]") {
  const Tree tree;
  write_file(tree / "file", std::string(1000, 'x'));

  for (const std::uint64_t then : {0, 1, 999, 1000, 1001, 5000})
    REQUIRE(read_file(opened(tree / "file", Bytes{then}), 1_MiB)->size() == 1000);

  REQUIRE(read_file(opened("/proc/self/status", Bytes{0}), 1_MiB)->size() > 100);
}

TEST_CASE("a file over the limit is refused, however large it was when it was opened", "[fetch]") {
  const Tree tree;
  write_file(tree / "large", std::string(1001, 'x'));

  REQUIRE(read_file(opened(tree / "large", Bytes{1001}), Bytes{1001})->size() == 1001);
  for (const std::uint64_t then : {0, 1000, 1001}) {
    const Result<EncodedBytes> refused = read_file(opened(tree / "large", Bytes{then}), Bytes{1000});
    REQUIRE(refused.error().code == Code::kInvalid);
    REQUIRE(refused.error().message == "1001 B are over the limit of 1000 B a file (limits.encoded)");
  }
  REQUIRE(read_file(opened("/proc/self/status", Bytes{0}), Bytes{100}).error().code == Code::kInvalid);
}

TEST_CASE("links that go back and forth for ever are followed for some thousand steps", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  std::string way;
  for (int i = 0; i < 300; ++i) way += "/a/..";
  for (int i = 0; i < 30; ++i)
    fs::create_symlink(tree.root + way + "/to" + std::to_string(i + 1), tree / ("to" + std::to_string(i)));
  fs::create_symlink(tree / "a/b/file", tree / "to30");

  REQUIRE(code_of(*roots, tree / "to0", myself()) == Code::kInvalid);
  REQUIRE(text_or_error(*roots, tree / "to26", myself()) == "inside");
}

}  // namespace
}  // namespace millrace
