// A real millraced for one test: its own folder, sockets and settings; killed and reaped with its owner.
//
//   Daemon daemon({.roots = {folder.path()}, .limits = "slots = 8\n"});
//   Client client = daemon.connect();
//   daemon.kill(SIGKILL);
//   daemon.start();   // again, on the same sockets
//
// Whatever does not work out while starting throws std::runtime_error with the daemon's own words. Thread-bound(the
// test).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/client.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

namespace millrace {

// An opener beside the daemon: a real process of kOpenerUser (needs root). kAsTheRunSays: where $MILLRACE_TEST_OPENER is
// set, and nothing is in the way; then it opens for root as well, so that the same tests try it.
enum class OpenerBeside : std::uint8_t { kAsTheRunSays, kNo, kYes };
inline constexpr uid_t kOpenerUser = 64'009;

struct DaemonSpec {
  std::vector<std::string> roots;
  std::uint32_t lanes = 2;
  std::string lane_settings;  // further lines of the [lanes] table
  std::string cpu;            // the lines of the [cpu] table
  std::string memory;         // further lines of the settings' [memory] table
  std::string cache;          // the lines of the [cache] table
  std::string limits;         // the lines of the [limits] table
  std::string files;          // further lines of the [files] table
  std::string fake;           // options of the fake backend, which is then there, by pin only
  std::string cuda;           // backends.cuda
  std::string cuda_settings;  // the lines of the [cuda] table
  std::string fpga;           // backends.fpga
  std::string fpga_settings;  // the lines of the [fpga] table
  std::string daemon;         // further lines of the [daemon] table
  std::string log_level = "debug";
  std::string shm_size;        // not empty: with a /dev/shm of its own that is so large ("8m"); see can_have_own_shm()
  std::optional<uid_t> user;   // runs as this user (needs root)
  bool for_all_users = false;  // any user may connect
  std::string user_namespace;  // not empty: in one that maps these ids alone, see in_user_namespace.cc (needs root)
  std::vector<std::pair<std::string, std::string>> env;  // beside the tests' own
  std::string program;                                   // instead of millraced: see host_faults.h
  OpenerBeside opener = OpenerBeside::kAsTheRunSays;
  std::string opener_namespace;   // not empty: the opener is in a user namespace, see user_namespace
  Bytes file_bytes{};             // no file of its, shared memory among them, gets longer; 0: as this process's
  std::uint32_t descriptors = 0;  // soft and hard limit of its descriptors; 0: as this process has them
};

class Daemon {
 public:
  explicit Daemon(DaemonSpec spec);
  // SIGKILL. In a sanitizer's build SIGTERM first: a daemon that ends by a report, of what it leaks or does at its end,
  // ends the test.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // REQUIRES: it does not run. Returns once it listens.
  void start();

  const std::string& socket() const { return socket_; }
  const std::string& settings() const { return settings_; }
  Client connect() const;

  // REQUIRES: it was started with one. A killed one can be started again.
  const Process& opener() const { return *opener_; }
  const std::string& opener_socket() const { return opener_socket_; }
  void start_opener();
  const std::string& client_program() const { return client_program_; }

  void kill(int signal) const { process_->kill(signal); }
  // Its exit status, or 128 + the signal that ended it; nullopt: it still runs.
  std::optional<int> wait(std::chrono::milliseconds limit = Process::kPatience) const { return process_->wait(limit); }
  bool running() const { return process_->running(); }
  pid_t pid() const { return process_->pid(); }
  std::string errors() const { return process_->errors(); }

  // Starts millrace_system_client with this act (client_main.cc). Another `user` needs for_all_users.
  Process client(const std::string& act, const std::vector<std::string>& arguments,
                 std::optional<uid_t> user = {}) const;
  // The same, to its end: its output. Throws unless it ends with 0.
  std::string run_client(const std::string& act, const std::vector<std::string>& arguments,
                         std::optional<uid_t> user = {}) const;

  // One figure of its statistics, asked for now.
  double metric(const std::string& name) const;
  // "VmRSS" or "VmHWM": what it has in memory now, and had at most.
  Bytes memory(const std::string& figure) const;
  // The shared memory that it has mapped or open now, each as the kernel calls it.
  std::vector<std::string> segments() const;

 private:
  std::vector<std::string> command() const;
  void open_to_all();

  DaemonSpec spec_;
  TempFolder folder_;
  std::string socket_;
  std::string settings_;
  std::string program_;
  std::string client_program_;
  std::string opener_socket_;  // empty: none
  std::optional<Process> opener_;
  std::optional<Process> process_;
};

// One figure of statistics that are there already.
double metric_of(const Statistics& statistics, const std::string& name);

// Names in /dev/shm that are a daemon's. There are none, but where /dev/shm makes no nameless files, and then for
// microseconds: ask again, see eventually().
std::vector<std::string> names_in_dev_shm();

bool is_root();
// Whether this machine lets a process have a user namespace that maps these ids.
bool can_have(const std::string& user_namespace);
// Whether this machine lets a process have a /dev/shm of its own.
bool can_have_own_shm();

// A copy of one of our programs where every user may run it.
std::string copy_for_all_users(const std::string& program, const std::string& folder);

}  // namespace millrace
