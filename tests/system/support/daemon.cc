#include "tests/system/support/daemon.h"
#include "tests/support/under_sanitizer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "proto/base/sockets/handoff_path.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? ", \"" : "\"") + text + "\"";
  return list + "]";
}

std::string settings_text(const DaemonSpec& spec, const std::string& socket) {
  std::string text = "[daemon]\nsocket = \"" + socket + "\"\nlog_level = \"" + spec.log_level + "\"\n" + spec.daemon;
  if (spec.daemon.find("state_dir") == std::string::npos)
    text += "state_dir = \"\"\n";  // as if it were the first start
  text += "\n[lanes]\ncpu = " + std::to_string(spec.lanes) + "\n" + spec.lane_settings;
  if (!spec.cpu.empty()) text += "\n[cpu]\n" + spec.cpu;
  text += "\n[files]\nroots = " + quoted_list(spec.roots) + "\n" + spec.files;
  if (!spec.memory.empty()) text += "\n[memory]\n" + spec.memory;
  if (!spec.cache.empty()) text += "\n[cache]\n" + spec.cache;
  if (!spec.limits.empty()) text += "\n[limits]\n" + spec.limits;
  text += "\n[backends]\n";
  if (!spec.fake.empty()) text += "fake = \"" + spec.fake + "\"\n";
  if (!spec.cuda.empty()) text += "cuda = \"" + spec.cuda + "\"\n";
  if (!spec.fpga.empty()) text += "fpga = \"" + spec.fpga + "\"\n";
  if (!spec.cuda_settings.empty()) text += "\n[cuda]\n" + spec.cuda_settings;
  if (!spec.fpga_settings.empty()) text += "\n[fpga]\n" + spec.fpga_settings;
  return text;
}

// What the kernel calls a file in /dev/shm, in a line of /proc/PID/maps or a link of /proc/PID/fd; or nothing. One that
// never had a name is "#" and its inode.
std::string segment_name(const std::string& text) {
  constexpr std::string_view kFolder = "/dev/shm/";
  const std::size_t at = text.find(kFolder);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kFolder.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

void keep(std::vector<std::string>& names, std::string name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

bool wants_opener(const DaemonSpec& spec) {
  if (spec.opener != OpenerBeside::kAsTheRunSays) return spec.opener == OpenerBeside::kYes;
  const bool possible = is_root() && spec.descriptors == 0 && spec.user_namespace.empty() && spec.files.empty();
  return possible && std::getenv("MILLRACE_TEST_OPENER") != nullptr;
}

}  // namespace

Daemon::Daemon(DaemonSpec spec)
    : spec_(std::move(spec)),
      socket_(folder_ / "millrace.sock"),
      settings_(folder_ / "millrace.toml"),
      program_(spec_.program.empty() ? bin_folder() + "/millraced" : spec_.program),
      client_program_(tests_folder() + "/millrace_system_client") {
  if (wants_opener(spec_)) {
    opener_socket_ = folder_ / "opener/opener.sock";
    spec_.files += "opener = \"" + opener_socket_ + "\"\n";
    if (spec_.opener == OpenerBeside::kAsTheRunSays) spec_.files += "as_root = true\n";
  }
  write_file(settings_, settings_text(spec_, socket_));
  if (spec_.user) {
    program_ = copy_for_all_users(program_, folder_.path());
    if (chown(folder_.path().c_str(), *spec_.user, *spec_.user) != 0)
      throw std::runtime_error("cannot give the folder away");
  }
  // Before it starts, which is when it looks who can reach its socket.
  if (spec_.for_all_users && chmod(folder_.path().c_str(), 0755) != 0)
    throw std::runtime_error("cannot open the folder to other users");
  if (!opener_socket_.empty()) {
    std::filesystem::create_directory(folder_ / "opener");
    copy_for_all_users(bin_folder() + "/millrace-opener", folder_ / "opener");
    const bool given =
        chmod(folder_.path().c_str(), 0755) == 0 && chown((folder_ / "opener").c_str(), kOpenerUser, kOpenerUser) == 0;
    if (!given) throw std::runtime_error("cannot give the opener its folder");
    start_opener();
  }
  start();
}

Daemon::~Daemon() {
  constexpr std::chrono::seconds kEnd{10};
  const bool is_ours = spec_.program.empty() && spec_.user_namespace.empty();
  if (!under_sanitizer() || !is_ours || !process_ || !process_->running()) return;
  kill(SIGTERM);
  const std::optional<int> status = wait(kEnd);
  if (status.value_or(0) == 0) return;
  std::fprintf(stderr, "a daemon ended with %d on SIGTERM; it says:\n%s\n", *status, errors().c_str());
  std::abort();
}

void Daemon::start_opener() {
  const std::string user = std::to_string(kOpenerUser);
  std::vector<std::string> argv{"setpriv",
                                "--reuid=" + user,
                                "--regid=" + user,
                                "--clear-groups",
                                "--inh-caps=-all,+setuid,+setgid",
                                "--ambient-caps=-all,+setuid,+setgid",
                                "--bounding-set=-all,+setuid,+setgid",
                                "--no-new-privs",
                                folder_ / "opener/millrace-opener",
                                "--config",
                                settings_,
                                "--socket",
                                opener_socket_,
                                "--daemon-user",
                                std::to_string(spec_.user.value_or(geteuid()))};
  if (!spec_.opener_namespace.empty()) {
    argv[0] = "/usr/bin/setpriv";
    argv.insert(argv.begin(), {tests_folder() + "/millrace_in_user_namespace", spec_.opener_namespace});
  }
  opener_.emplace(Process::spawn({.argv = argv}));
  if (!opener_->wait_for("opening files of"))
    throw std::runtime_error("the opener does not serve; it says:\n" + opener_->errors());
}

void Daemon::start() {
  process_.emplace(Process::spawn({.argv = command(), .env = spec_.env, .user = spec_.user}));
  if (!process_->wait_for("listening on"))
    throw std::runtime_error("the daemon does not listen; it says:\n" + errors());
  if (spec_.for_all_users) open_to_all();
}

std::vector<std::string> Daemon::command() const {
  if (!spec_.user_namespace.empty())
    return {tests_folder() + "/millrace_in_user_namespace", spec_.user_namespace, program_, "--config", settings_};
  if (spec_.descriptors > 0)
    return {"prlimit", "--nofile=" + std::to_string(spec_.descriptors), program_, "--config", settings_};
  if (spec_.file_bytes.count > 0)
    return {"prlimit", "--fsize=" + std::to_string(spec_.file_bytes.count), program_, "--config", settings_};
  if (spec_.shm_size.empty()) return {program_, "--config", settings_};
  const std::string script =
      "mount -t tmpfs -o size=" + spec_.shm_size + " tmpfs /dev/shm && exec \"$0\" --config \"$1\"";
  return {"unshare", "--mount", "sh", "-c", script, program_, settings_};
}

Process Daemon::client(const std::string& act, const std::vector<std::string>& arguments,
                       std::optional<uid_t> user) const {
  std::vector<std::string> argv{client_program_, act, socket_};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Process::spawn({.argv = argv, .user = user});
}

std::string Daemon::run_client(const std::string& act, const std::vector<std::string>& arguments,
                               std::optional<uid_t> user) const {
  const Process process = client(act, arguments, user);
  if (process.wait() != 0) throw std::runtime_error("client " + act + ": " + process.errors() + process.output());
  return process.output();
}

void Daemon::open_to_all() {
  if (!client_program_.starts_with(folder_.path()))
    client_program_ = copy_for_all_users(client_program_, folder_.path());
  const bool opened = chmod(folder_.path().c_str(), 0755) == 0 && chmod(socket_.c_str(), 0666) == 0 &&
                      chmod(handoff_path(socket_).c_str(), 0666) == 0;
  if (!opened) throw std::runtime_error("cannot open the daemon's sockets to other users");
}

Client Daemon::connect() const {
  return need(Client::connect(socket_));
}

Bytes Daemon::memory(const std::string& figure) const {
  std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(figure + ":")) return Bytes{std::stoull(line.substr(figure.size() + 1)) * 1024};
  }
  throw std::runtime_error("no " + figure + " of the daemon");
}

double Daemon::metric(const std::string& name) const {
  return metric_of(need(connect().statistics()), name);
}

std::vector<std::string> Daemon::segments() const {
  std::vector<std::string> names;
  const std::string process = "/proc/" + std::to_string(pid());
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) keep(names, segment_name(line));
  std::error_code gone;  // a descriptor may be closed while they are listed
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd", gone))
    keep(names, segment_name(std::filesystem::read_symlink(entry, gone).string()));
  return names;
}

double metric_of(const Statistics& statistics, const std::string& name) {
  for (const Metric& metric : statistics.metrics) {
    if (metric.name == name) return metric.value;
  }
  throw std::runtime_error("there is no figure " + name);
}

std::vector<std::string> names_in_dev_shm() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    if (const std::string name = entry.path().filename().string(); name.starts_with("millrace-")) names.push_back(name);
  }
  return names;
}

bool is_root() {
  return geteuid() == 0;
}

bool can_have(const std::string& user_namespace) {
  if (!is_root()) return false;
  const Process probe =
      Process::spawn({.argv = {tests_folder() + "/millrace_in_user_namespace", user_namespace, "/bin/true"}});
  return probe.wait() == 0;
}

bool can_have_own_shm() {
  if (!is_root()) return false;
  const Process probe =
      Process::spawn({.argv = {"unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /dev/shm"}});
  return probe.wait() == 0;
}

std::string copy_for_all_users(const std::string& program, const std::string& folder) {
  const std::filesystem::path from(program);
  const std::filesystem::path copy = std::filesystem::path(folder) / from.filename();
  std::filesystem::copy_file(from, copy, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(copy, static_cast<std::filesystem::perms>(0755));
  return copy.string();
}

}  // namespace millrace
