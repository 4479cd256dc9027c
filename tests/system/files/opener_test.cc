// The opener as a process: who may introduce clients to it, what happens when it dies, hangs, or its roots do.
#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "daemon/fetch/open/opener_link.h"
#include "proto/base/sockets/handoff_path.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/eventually.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/files/opener_files.h"
#include "tests/system/support/command.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd unix_socket(int type = SOCK_SEQPACKET) {
  return UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

bool bound(const UniqueFd& socket, const std::string& path) {
  const sockaddr_un address = address_of(path);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool connected(const UniqueFd& socket, const std::string& path) {
  const sockaddr_un address = address_of(path);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

struct Listening {
  explicit Listening(const std::string& path, int type = SOCK_SEQPACKET) : socket(unix_socket(type)) {
    REQUIRE(bound(socket, path));
    REQUIRE(::listen(socket.get(), 8) == 0);
  }
  UniqueFd accept() const { return UniqueFd(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  UniqueFd socket;
};

// A daemon that is broken, as the opener sees it.
class Introducer {
 public:
  explicit Introducer(const std::string& opener) : socket_(unix_socket()) { REQUIRE(connected(socket_, opener)); }

  OpenerReplyMessage send(const std::vector<std::byte>& request, std::vector<int> descriptors = {}) const {
    REQUIRE(send_message(socket_.get(), request, descriptors) > 0);
    std::vector<std::byte> bytes = room_for_reply();
    const ReceivedMessage received = receive_message(socket_.get(), bytes, 16);
    REQUIRE(received.bytes > 0);
    const auto reply = parse_opener_reply(ByteView(bytes).first(static_cast<std::size_t>(received.bytes)));
    REQUIRE(reply.has_value());
    return *reply;
  }
  // "introduced", or why not.
  std::string introduce(int connection) const {
    const OpenerReplyMessage reply = send(to_bytes(IntroduceRequest{OpenerNumber{1}}), {connection});
    return reply.kind == shm::OpenerReplyKind::kIntroduced ? "introduced" : reply.answers.front().error->message;
  }

 private:
  UniqueFd socket_;
};

// An opener, as if for a daemon whose hand-off socket is the test's own.
struct OpenerAlone {
  OpenerAlone() : daemon(service()) {
    daemon.kill(SIGKILL);
    static_cast<void>(daemon.wait());
    fs::remove(handoff);
  }
  DaemonSpec service() const {
    return {.roots = {data.path()}, .files = "as_root = true\n", .opener = OpenerBeside::kYes};
  }

  OpenFolder data;
  Daemon daemon;
  std::string handoff = handoff_path(daemon.socket());
};

TEST_CASE("a client is introduced by a connection that the hand-off socket accepted, and by no other", "[system]") {
  if (skipped_without_openers()) return;
  const OpenerAlone opener;
  const Introducer daemon(opener.daemon.opener_socket());
  const UniqueFd client = unix_socket(), named_client = unix_socket(), victim = unix_socket(),
                 elsewhere = unix_socket();
  const Listening handoff(opener.handoff), other(opener.data / "other"), stream(opener.data / "stream", SOCK_STREAM);
  const UniqueFd stream_client = unix_socket(SOCK_STREAM), unconnected = unix_socket();
  REQUIRE(connected(client, opener.handoff));
  REQUIRE(bound(named_client, opener.data / "me"));
  REQUIRE(connected(named_client, opener.handoff));
  const UniqueFd accepted = handoff.accept(), named = handoff.accept();
  REQUIRE(connected(elsewhere, opener.data / "other"));
  REQUIRE(connected(stream_client, opener.data / "stream"));
  const UniqueFd of_other = other.accept(), of_stream = stream.accept();
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd one(pair[0]), two(pair[1]);
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  // What a daemon would do that means to be the listener at `other`: its end bears the hand-off socket's name.
  fs::remove(opener.handoff);
  REQUIRE(bound(victim, opener.handoff));
  REQUIRE(connected(victim, opener.data / "other"));

  CHECK(daemon.introduce(accepted.get()) == "introduced");
  CHECK_THAT(daemon.introduce(victim.get()), Catch::Contains("so nobody accepted it"));
  CHECK_THAT(daemon.introduce(named.get()), Catch::Contains("so nobody accepted it"));
  CHECK_THAT(daemon.introduce(elsewhere.get()), Catch::Contains("so nobody accepted it"));
  CHECK_THAT(daemon.introduce(of_other.get()), Catch::Contains("it came in at"));
  CHECK_THAT(daemon.introduce(one.get()), Catch::Contains("it came in at \"\""));
  CHECK_THAT(daemon.introduce(of_stream.get()), Catch::Contains("not of SOCK_SEQPACKET"));
  CHECK_THAT(daemon.introduce(handoff.socket.get()), Catch::Contains("not connected"));
  CHECK_THAT(daemon.introduce(unconnected.get()), Catch::Contains("not connected"));
  CHECK_THAT(daemon.introduce(file.get()), Catch::Contains("no Unix socket"));
}

TEST_CASE("a client is known for as long as its connection lasts, and a number that was guessed means nothing",
          "[system]") {
  if (skipped_without_openers()) return;
  const OpenerAlone opener;
  const std::string file = picture_of(opener.data / "a.jpg", 0, 0, 0644);
  const Introducer daemon(opener.daemon.opener_socket());
  UniqueFd client = unix_socket();
  const Listening handoff(opener.handoff);
  REQUIRE(connected(client, opener.handoff));
  const UniqueFd accepted = handoff.accept();
  const auto open_as = [&](OpenerCaller caller) {
    return daemon.send(to_bytes(OpenFilesRequest{.number = OpenerNumber{2}, .caller = caller, .names = {file}})).kind;
  };

  const OpenerCaller known = daemon.send(to_bytes(IntroduceRequest{}), {accepted.get()}).caller;
  const auto while_there = open_as(known);
  const auto guessed = open_as(OpenerCaller{static_cast<std::uint64_t>(known) + 1});
  client.reset();
  const bool forgotten = eventually([&] { return open_as(known) == shm::OpenerReplyKind::kUnknownCaller; });

  REQUIRE(while_there == shm::OpenerReplyKind::kOpened);
  REQUIRE(guessed == shm::OpenerReplyKind::kUnknownCaller);
  REQUIRE(forgotten);
  REQUIRE_THAT(daemon.introduce(accepted.get()), Catch::Contains("the client has gone"));
}

TEST_CASE("a client that has gone, or had a name of its own, hides no forged introduction from the opener's log",
          "[system]") {
  if (skipped_without_openers()) return;
  const OpenerAlone opener;
  const Introducer daemon(opener.daemon.opener_socket());
  UniqueFd client = unix_socket();
  const UniqueFd named_client = unix_socket(), elsewhere = unix_socket();
  const Listening handoff(opener.handoff), other(opener.data / "other");
  REQUIRE(connected(client, opener.handoff));
  REQUIRE(bound(named_client, opener.data / "me"));
  REQUIRE(connected(named_client, opener.handoff));
  const UniqueFd gone = handoff.accept(), named = handoff.accept();
  client.reset();
  REQUIRE(connected(elsewhere, opener.data / "other"));
  const UniqueFd of_other = other.accept();

  const std::string of_gone = daemon.introduce(gone.get());
  static_cast<void>(daemon.introduce(named.get()));
  static_cast<void>(daemon.introduce(of_other.get()));
  const auto log = [&] { return opener.daemon.opener().errors(); };

  REQUIRE_THAT(of_gone, Catch::Contains("the client has gone"));
  REQUIRE(eventually([&] { return log().find("it came in at") != std::string::npos; }));
  CHECK_THAT(log(), Catch::Contains("so nobody accepted it"));
  CHECK_THAT(log(), !Catch::Contains("the client has gone"));
}

TEST_CASE("a user other than the daemon's is turned away by the opener", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const Daemon daemon(service_with_opener({data.path()}));  // the daemon's user is not root, which the test is

  const UniqueFd stranger = unix_socket();
  REQUIRE(connected(stranger, daemon.opener_socket()));

  std::byte byte{};
  REQUIRE(::recv(stranger.get(), &byte, 1, 0) == 0);
}

// An epoch's lines, of the service's client alice.
struct Epochs {
  Epochs() {
    for (std::uint32_t i = 0; i < files(); ++i)
      picture_of(data / ("f" + std::to_string(i) + ".jpg"), 0, kAlice, 0640, i + 1);
  }
  static std::uint32_t files() { return under_sanitizer() ? 40 : 160; }
  std::vector<std::string> arguments() const { return {data.path(), "batch=4"}; }
  OpenFolder data;
};

TEST_CASE("kill -9 of the opener, again and again, costs an epoch no sample", "[system]") {
  if (skipped_without_openers()) return;
  const Epochs epochs;
  Daemon daemon(service_with_opener({epochs.data.path()}));
  const std::string quiet = daemon.run_client("epoch", epochs.arguments(), kAlice);

  auto stepping = epochs.arguments();
  stepping.emplace_back("step=1");
  const Process client = daemon.client("epoch", stepping, kAlice);
  const std::size_t batches = epochs.files() / 4;
  for (std::size_t step = 0; step <= batches; ++step) {
    CAPTURE(step, client.output(), client.errors());
    REQUIRE(client.say("next"));
    if (step == 0) REQUIRE(client.wait_for("batch"));  // the folder is listed: that answers UNAVAILABLE instead
    if (step % 8 != 2) continue;
    daemon.opener().kill(SIGKILL);
    REQUIRE(daemon.opener().wait());
    daemon.start_opener();
  }

  const auto status = client.wait();
  CAPTURE(client.output(), client.errors(), daemon.errors(), daemon.opener().errors());
  REQUIRE(status == 0);
  REQUIRE(client.output() == quiet);
}

TEST_CASE("while the opener is away files wait for it, and the log says so once and when it is back", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::string file = picture_of(data / "a.jpg", 0, kAlice, 0640);
  Daemon daemon(service_with_opener({data.path()}));
  REQUIRE(verdicts(daemon, {file}, kAlice)[0] == "ok");

  daemon.opener().kill(SIGKILL);
  REQUIRE(daemon.opener().wait());
  const Process waiting = daemon.client("read", {file}, kAlice);
  const bool told =
      eventually([&] { return daemon.errors().find("clients' files have to wait") != std::string::npos; });
  const bool waits = waiting.running();
  daemon.start_opener();

  REQUIRE(told);
  REQUIRE(waits);
  REQUIRE(waiting.wait() == 0);
  REQUIRE(waiting.output() == "0 ok\n");
  REQUIRE(eventually([&] { return daemon.errors().find("the opener answers again") != std::string::npos; }));
}

// Holds every open() of a file up for as long as it lives: what a file server does that does not answer.
struct HungFile {
  explicit HungFile(const std::string& path) : fanotify(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)) {
    hangs = fanotify && ::fanotify_mark(fanotify.get(), FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path.c_str()) == 0;
  }
  UniqueFd fanotify;
  bool hangs = false;
};

TEST_CASE("a root that hangs holds up what asks for it, and others are served", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  fs::create_directory(data / "hung");
  fs::create_directory(data / "well");
  const std::string hung = picture_of(data / "hung/a.jpg", 0, kAlice, 0640),
                    well = picture_of(data / "well/a.jpg", 0, kAlice, 0640);
  Daemon daemon(service_with_opener({data / "hung", data / "well"}));
  REQUIRE(verdicts(daemon, {hung, well}, kAlice) == std::vector<std::string>{"ok", "ok"});
  std::optional<HungFile> holding(hung);
  if (!holding->hangs) return skip_loudly("a root that hangs (the kernel has no fanotify permissions)");

  std::vector<Process> waiting;
  for (int i = 0; i < 6; ++i) waiting.push_back(daemon.client("read", {hung}, kAlice));  // more than fetch threads
  const bool told =
      eventually([&] { return daemon.errors().find("clients' files have to wait") != std::string::npos; });
  const auto meanwhile = verdicts(daemon, {well}, kAlice);
  const bool still_waiting = waiting.front().running();
  holding.reset();

  REQUIRE(told);
  REQUIRE(meanwhile[0] == "ok");
  REQUIRE(still_waiting);
  for (const Process& client : waiting) {
    REQUIRE(client.wait() == 0);
    REQUIRE(client.output() == "0 ok\n");
  }
}

TEST_CASE("a root can be unmounted while a client is there, and what is mounted anew is served", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  fs::create_directory(data / "root");
  const std::string file = data / "root/a.jpg";
  const auto mount_it = [&] { return ::mount("tmpfs", (data / "root").c_str(), "tmpfs", 0, "mode=0755,size=1m") == 0; };
  if (!mount_it()) return skip_loudly("unmounting a root (nothing may be mounted here)");
  picture_of(file, 0, kAlice, 0640);
  const Daemon daemon(service_with_opener({data / "root"}));
  const Process client = daemon.client("open", {"1", "1"}, kAlice);
  REQUIRE(client.wait_for("open"));
  const auto before = verdicts(daemon, {file}, kAlice);

  // The daemon has the file itself open for a moment longer than its pixels take.
  const bool unmounted = eventually([&] { return ::umount((data / "root").c_str()) == 0; });
  const auto without = verdicts(daemon, {file}, kAlice);
  const bool again = mount_it();
  picture_of(file, 0, kAlice, 0640);
  const auto after = verdicts(daemon, {file}, kAlice);
  REQUIRE(eventually([&] { return ::umount((data / "root").c_str()) == 0; }));

  REQUIRE(before[0] == "ok");
  REQUIRE(unmounted);
  REQUIRE_THAT(without[0], Catch::StartsWith("NOT_FOUND "));
  REQUIRE(again);
  REQUIRE(after[0] == "ok");
}

TEST_CASE("a root that is missing is named, and served once it is there", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const Daemon daemon(service_with_opener({data / "later"}));
  const std::string file = data / "later/a.jpg";

  const auto before = verdicts(daemon, {file}, kAlice);
  fs::create_directory(data / "later");
  picture_of(file, 0, kAlice, 0640);

  REQUIRE_THAT(before[0], Catch::StartsWith("NOT_FOUND ") && Catch::Contains("is not there (yet)"));
  REQUIRE(verdicts(daemon, {file}, kAlice)[0] == "ok");
}

TEST_CASE("the opener says how it is started when it is started in another way", "[system]") {
  const OpenFolder folder;
  const std::string settings = folder / "millrace.toml", program = bin_folder() + "/millrace-opener";
  write_file(settings, std::string("[files]\nroots = [\"/data\"]\n[cpu]\nlanes = 1\n"));

  const Ran help = run_program({program, "--help"}), nothing = run_program({program}),
            unpaired = run_program({program, "--config", settings, "--socket", folder / "s"});
  const Ran started = run_program({program, "--config", settings});

  REQUIRE(help.status == 0);
  REQUIRE_THAT(help.output, Catch::Contains("CAP_SETUID") && Catch::Contains("setpriv"));
  REQUIRE(nothing.status == 2);
  REQUIRE(unpaired.status == 2);
  REQUIRE(started.status == 1);
  REQUIRE_THAT(started.errors, Catch::Contains(is_root() ? "must not run as root" : "needs the capabilities"));
}

TEST_CASE("an opener that may not read the settings says that its own user must be able to, and how", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder folder;
  const std::string settings = folder / "millrace.toml", user = std::to_string(kOpenerUser);
  write_file(settings, std::string("[files]\nroots = [\"/data\"]\n"));
  give_to(settings, 0, 0, 0640);
  const std::string program = copy_for_all_users(bin_folder() + "/millrace-opener", folder.path());

  const Process opener = Process::spawn(
      {.argv = {"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", program, "--config", settings}});

  REQUIRE(opener.wait() == 2);
  REQUIRE_THAT(opener.errors(), Catch::Contains(settings) && Catch::Contains("uid " + user) &&
                                    Catch::Contains("chmod o+r") && Catch::Contains("setfacl"));
}

TEST_CASE("the opener takes its socket from the service manager", "[system]") {
  if (skipped_without_openers()) return;
  const OpenFolder data;
  const std::string settings = data / "millrace.toml", socket = data / "activated.sock",
                    user = std::to_string(kOpenerUser);
  write_file(settings, "[files]\nroots = [\"" + data.path() + "\"]\n");
  const std::string program = copy_for_all_users(bin_folder() + "/millrace-opener", data.path());
  // What sd_listen_fds(3) reads: one descriptor, the third, for the process with this number.
  const std::string script =
      "exec 3<&0 && LISTEN_FDS=1 LISTEN_PID=$$ exec setpriv --reuid=" + user + " --regid=" + user +
      " --clear-groups --inh-caps=+setuid,+setgid --ambient-caps=+setuid,+setgid \"$0\" --config \"$1\"";
  const Listening listening(socket);
  const int flags = ::fcntl(listening.socket.get(), F_GETFD);
  REQUIRE(flags >= 0);
  const UniqueFd kept(::dup(0));
  REQUIRE(::dup2(listening.socket.get(), 9) == 9);  // inherited, not close-on-exec
  const Process opener = Process::spawn({.argv = {"bash", "-c", "exec 0<&9 9<&- && " + script, program, settings}});
  ::close(9);

  REQUIRE(opener.wait_for("opening files of 1 root"));
  const Introducer daemon(socket);
  REQUIRE_THAT(daemon.introduce(listening.socket.get()), Catch::Contains("not connected"));
  opener.kill(SIGTERM);
  REQUIRE(opener.wait() == 0);
}

}  // namespace
}  // namespace millrace
