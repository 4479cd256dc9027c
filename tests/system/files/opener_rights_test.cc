// Whose files a client gets through the opener: the kernel's answer for that very user, whatever the daemon's own user
// may read.
#include <sys/xattr.h>

#include <filesystem>

#include "tests/system/files/opener_files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a file that its group may read is read for a member, although the daemon may not read it", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::string file = picture_of(data / "of_group.jpg", 0, kAlice, 0640);
  DaemonSpec alone = service_with_opener({data.path()});
  alone.opener = OpenerBeside::kNo;

  const auto before = verdicts(Daemon(alone), {file}, kAlice);
  const Daemon daemon(service_with_opener({data.path()}));

  REQUIRE_THAT(before[0], Catch::Contains("the daemon itself may not read it"));
  REQUIRE(verdicts(daemon, {file}, kAlice)[0] == "ok");
  REQUIRE_THAT(verdicts(daemon, {file}, kBob)[0], is_denied());
}

TEST_CASE("parts of files are read by the rights of each user, however many a portion has of one", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::vector<std::byte> picture = some_picture(1);
  std::string bytes(reinterpret_cast<const char*>(picture.data()), picture.size());
  const auto shard = [&](const std::string& name, uid_t user, mode_t mode) {
    write_file(data / name, bytes + bytes);
    give_to(data / name, user, user, mode);
    const std::string size = std::to_string(bytes.size());
    return std::vector<std::string>{data / name + "[0+" + size + "]", data / name + "[" + size + "+" + size + "]"};
  };
  std::vector<std::string> parts = shard("everybody's.tar", kBob, 0644);
  const std::vector<std::string> closed = shard("bob's.tar", kBob, 0600);
  parts.insert(parts.end(), closed.begin(), closed.end());
  const Daemon daemon(service_with_opener({data.path()}));

  REQUIRE(verdicts(daemon, parts, kBob) == std::vector<std::string>(4, "ok"));
  const std::vector<std::string> of_alice = verdicts(daemon, parts, kAlice);
  REQUIRE(std::vector(of_alice.begin(), of_alice.begin() + 2) == std::vector<std::string>(2, "ok"));
  REQUIRE_THAT(of_alice[2], is_denied());
  REQUIRE_THAT(of_alice[3], is_denied());
}

TEST_CASE("a supplementary group counts, for files and for the folders above them", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  fs::create_directory(data / "team");
  const std::string file = picture_of(data / "team/a.jpg", 0, kTeam, 0640);
  give_to(data / "team", 0, kTeam, 0750);
  const Daemon daemon(service_with_opener({data.path()}));
  const auto as_alice = [&](const std::string& groups, const std::string& act, const std::string& path) {
    const std::string alice = std::to_string(kAlice);
    const Process client = Process::spawn({.argv = {"setpriv", "--reuid=" + alice, "--regid=" + alice, groups,
                                                    daemon.client_program(), act, daemon.socket(), path}});
    REQUIRE(client.wait() == 0);
    return client.output();
  };
  const std::string team = "--groups=" + std::to_string(kTeam);

  REQUIRE(as_alice(team, "read", file) == "0 ok\n");
  REQUIRE(as_alice(team, "list", data / "team") == "samples 1\n");
  REQUIRE_THAT(as_alice("--clear-groups", "read", file), Catch::StartsWith("0 PERMISSION_DENIED not readable"));
  REQUIRE_THAT(as_alice("--clear-groups", "list", data / "team"), Catch::StartsWith("PERMISSION_DENIED "));
}

TEST_CASE("an ACL counts for the user that it names", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::string file = picture_of(data / "acl.jpg", 0, 0, 0640);
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{1, 6, ~0U}, {2, 4, kAlice}, {4, 0, ~0U}, {16, 4, ~0U}, {32, 0, ~0U}};
  } acl;
  if (setxattr(file.c_str(), "system.posix_acl_access", &acl, sizeof acl, 0) != 0)
    return skip_loudly("ACLs (the temporary folder's file system has none)");
  const Daemon daemon(service_with_opener({data.path()}));

  REQUIRE(verdicts(daemon, {file}, kAlice)[0] == "ok");
  REQUIRE_THAT(verdicts(daemon, {file}, kBob)[0], is_denied());
}

TEST_CASE("what the kernel refuses a client is refused, in the same words whether it exists or not", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  fs::create_directory(data / "closed");
  const std::vector<std::string> paths{
      picture_of(data / "private.jpg", kBob, kBob, 0600), picture_of(data / "not_for_group.jpg", kBob, kAlice, 0604),
      picture_of(data / "not_for_owner.jpg", kAlice, kAlice, 0044),
      picture_of(data / "closed/there.jpg", kBob, kBob, 0644), data / "closed/missing.jpg"};
  give_to(data / "closed", kBob, kBob, 0700);
  const Daemon daemon(service_with_opener({data.path()}));

  const auto alice = verdicts(daemon, paths, kAlice);
  const auto bob = verdicts(daemon, paths, kBob);

  for (const std::string& verdict : alice) {
    REQUIRE_THAT(verdict, is_denied());
    REQUIRE(verdict == alice[0]);
  }
  REQUIRE(bob[0] == "ok");
  REQUIRE(bob[3] == "ok");
  REQUIRE_THAT(bob[4], Catch::StartsWith("NOT_FOUND "));
  REQUIRE_THAT(daemon.run_client("list", {data / "closed"}, kAlice), Catch::StartsWith("PERMISSION_DENIED "));
  REQUIRE(daemon.run_client("list", {data / "closed"}, kBob) == "samples 1\n");
}

TEST_CASE("a root that only a client may reach is served to that client", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  fs::create_directories(data / "lab/data");
  const std::string file = picture_of(data / "lab/data/a.jpg", kAlice, kAlice, 0600);
  give_to(data / "lab", kAlice, kAlice, 0700);
  give_to(data / "lab/data", kAlice, kAlice, 0700);
  const Daemon daemon(service_with_opener({data / "lab/data"}));

  REQUIRE(verdicts(daemon, {file}, kAlice)[0] == "ok");
  REQUIRE(daemon.run_client("list", {data / "lab/data"}, kAlice) == "samples 1\n");
  REQUIRE_THAT(verdicts(daemon, {file}, kBob)[0], is_denied());
}

TEST_CASE("the opener opens nothing for root, who gets what the daemon may read", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::vector<std::string> paths{picture_of(data / "open.jpg", 0, 0, 0644),
                                       picture_of(data / "roots.jpg", 0, 0, 0600)};
  const Daemon daemon(service_with_opener({data.path()}));

  const auto root = verdicts(daemon, paths, {});

  REQUIRE(root[0] == "ok");
  REQUIRE_THAT(root[1], Catch::Contains("the daemon itself may not read it"));
}

TEST_CASE("with files.as_root the opener opens root's own files for root, without root's privileges", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::vector<std::string> paths{picture_of(data / "roots.jpg", 0, 0, 0600),
                                       picture_of(data / "bobs.jpg", kBob, kBob, 0600)};
  DaemonSpec spec = service_with_opener({data.path()});
  spec.files = "as_root = true\n";
  const Daemon daemon(spec);

  const auto root = verdicts(daemon, paths, {});

  REQUIRE(root[0] == "ok");
  REQUIRE_THAT(root[1], is_denied());
}

TEST_CASE("in a namespace that maps one of two users, the opener opens for that one alone", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::vector<std::string> paths{picture_of(data / "alices.jpg", kAlice, kAlice, 0600),
                                       picture_of(data / "bobs.jpg", kBob, kBob, 0600),
                                       picture_of(data / "open.jpg", 0, 0, 0644)};
  DaemonSpec spec = service_with_opener({data.path()});
  spec.user.reset();
  const auto line = [](uid_t id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; };
  spec.opener_namespace = line(0) + line(kAlice) + line(kOpenerUser);
  if (!can_have(spec.opener_namespace)) return skip_loudly("an opener in a user namespace (none are permitted)");
  const Daemon daemon(spec);

  const auto alice = verdicts(daemon, paths, kAlice);
  const auto bob = verdicts(daemon, paths, kBob);

  REQUIRE(alice[0] == "ok");
  REQUIRE_THAT(alice[1], is_denied());
  REQUIRE(alice[2] == "ok");
  for (const std::string& verdict : bob) REQUIRE_THAT(verdict, Catch::Contains("does not map your user"));
}

}  // namespace
}  // namespace millrace
