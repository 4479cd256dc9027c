// What it costs to have a file opened by the opener, as the daemon asks it: messages of 16 names, descriptors back.
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fetch/open/opener_link.h"
#include "proto/base/sockets/handoff_path.h"
#include "tests/bench/service/cores.h"
#include "tests/bench/service/opener.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTogether = 16, kFiles = 512;
const std::string kUser = "64009";  // the opener's

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "millrace_bench: open.caller: %s\n", why.c_str());
  std::exit(1);
}

// A socket that is both ends of it: the hand-off's, as the daemon has it, and a client's.
struct Client {
  explicit Client(const std::string& path) : listener(make()), end(make()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    const bool listens = ::bind(listener.get(), at, sizeof address) == 0 && ::listen(listener.get(), 1) == 0 &&
                         ::connect(end.get(), at, sizeof address) == 0;
    auto connection = std::make_shared<HandoffConnection>();
    connection->fd.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!listens || !connection->fd) stop("no hand-off socket");
    caller.connection = std::move(connection);
  }
  static UniqueFd make() { return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

  UniqueFd listener, end;
  Caller caller{.uid = 0, .gid = 0};
};

using Names = std::vector<std::string_view>;

double us_a_file(std::chrono::steady_clock::time_point begin, std::size_t files) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(files);
}

double plain_round(const Names& names, std::size_t repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i) {
    for (const std::string_view name : names) {
      const UniqueFd file(::open(name.data(), O_RDONLY | O_CLOEXEC));
      if (!file) stop("a file cannot be opened");
    }
  }
  return us_a_file(begin, repeats * names.size());
}

double opener_round(OpenerLink& link, const Caller& caller, const Names& names, std::size_t repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i) {
    for (std::size_t first = 0; first < names.size(); first += kTogether) {
      const auto opened = link.open("/", std::span(names).subspan(first, kTogether), OpenerWhat::kFile, caller);
      for (const OpenerLink::Opened& one : opened) {
        if (one.answer.error) stop(one.answer.error->message);
      }
    }
  }
  return us_a_file(begin, repeats * names.size());
}

// This process and the opener on one core, as long as it lives: what they compute, and not how fast an idle core wakes.
class OnOneCore {
 public:
  explicit OnOneCore(pid_t opener) {
    CPU_ZERO(&before_);
    ::sched_getaffinity(0, sizeof before_, &before_);
    const std::vector<int> core = separate_cores(1);
    confine(opener, core);
    confine(::getpid(), core);
  }
  ~OnOneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_{};
};

// A real opener, with files beneath its root, a client that it knows, and the daemon's side.
class OpenerRig {
 public:
  OpenerRig() {
    fs::create_directory(folder_ / "data");
    fs::create_directory(folder_ / "opener");
    fs::copy_file(bin_folder() + "/millrace-opener", program_);
    for (const char* name : {"", "opener", "opener/millrace-opener", "data"})
      fs::permissions(folder_ / name, static_cast<fs::perms>(0755));
    const auto user = static_cast<uid_t>(std::stoul(kUser));
    if (::chown((folder_ / "opener").c_str(), user, user) != 0) stop("no folder for the opener");
    for (std::size_t i = 0; i < kFiles; ++i) {
      files_.push_back(folder_ / "data/" + std::to_string(i) + ".jpg");
      write_file(files_.back(), std::string("x"));
    }
    write_file(settings_, "[daemon]\nsocket = \"" + socket_ + "\"\n[files]\nas_root = true\nroots = [\"" +
                              folder_ / "data" + "\"]\n");
    start();
    client_.emplace(handoff_path(socket_));
    names_.assign(files_.begin(), files_.end());
  }

  pid_t opener() const { return opener_->pid(); }

  double plain(std::size_t repeats) const { return plain_round(names_, repeats); }
  double opened(std::size_t repeats) { return opener_round(link_, client_->caller, names_, repeats); }

 private:
  void start() {
    opener_.emplace(
        Process::spawn({.argv = {"setpriv", "--reuid=" + kUser, "--regid=" + kUser, "--clear-groups",
                                 "--inh-caps=+setuid,+setgid", "--ambient-caps=+setuid,+setgid", program_, "--config",
                                 settings_, "--socket", folder_ / "opener/s", "--daemon-user", "0"}}));
    if (!opener_->wait_for("opening files of")) stop("it does not start: " + opener_->errors());
  }

  const TempFolder folder_;
  const std::string program_ = folder_ / "opener/millrace-opener", settings_ = folder_ / "millrace.toml",
                    socket_ = folder_ / "millrace.sock";
  std::vector<std::string> files_;
  Names names_;
  std::optional<Process> opener_;
  std::optional<Client> client_;
  OpenerLink link_{{.socket = folder_ / "opener/s", .connections = 1}};
};

}  // namespace

void run_opener(const BenchOptions& options, const Report& report) {
  if (::geteuid() != 0) return report.progress("open.caller: left out, an opener needs root to be started");
  OpenerRig rig;
  const OnOneCore confined(rig.opener());
  const std::size_t repeats = options.quick ? 2 : 40;
  const std::uint32_t rounds = options.quick ? 3 : 15;
  static_cast<void>(rig.plain(repeats));
  static_cast<void>(rig.opened(repeats));
  std::vector<double> plain, opened;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    plain.push_back(rig.plain(repeats));
    opened.push_back(rig.opened(repeats));
  }
  report.add(compared({.name = "open.caller", .unit = "us", .rounds = rounds, .note = "a file; at most 5"}, opened,
                      "open(2)", plain));
}

}  // namespace millrace::bench
