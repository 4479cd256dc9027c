// What every measurement needs: a private daemon, a client, the files of a folder, and an end with a message when
// something fails: a figure from a broken run is worse than none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "millrace/client.h"
#include "millrace/private_daemon.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::bench {

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "millrace_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result, const char* what) {
  if (!result) give_up(std::string(what) + ": " + result.error().message);
  return *std::move(result);
}

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) give_up("no files in " + folder);
  return files;
}

// A folder of tiny JPEG files, for measurements in which reading and decoding are beside the point.
class TinyFiles {
 public:
  explicit TinyFiles(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      write_file(folder_ / (std::to_string(i) + ".jpg"), make_jpeg({.pixels = make_pixels(16, 16, 3, i)}));
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

struct Rig {
  static Rig start(const std::string& root, std::uint32_t lanes, std::vector<std::string> arguments = {}) {
    PrivateDaemon daemon =
        must(PrivateDaemon::start({.roots = {root}, .lanes = lanes, .arguments = std::move(arguments)}),
             "starting the daemon");
    Client client = must(Client::connect(daemon.socket()), "connecting");
    return Rig{std::move(daemon), std::move(client)};
  }

  PrivateDaemon daemon;
  Client client;
};

// Until every slot of every session is filled, so that nothing is done beside what is measured.
inline void wait_until_filled(Rig& rig) {
  for (;;) {
    const Statistics statistics = must(rig.client.statistics(), "asking for statistics");
    const auto filled = [](const SessionStatistics& session) { return session.slots_not_ready == 0; };
    if (std::all_of(statistics.sessions.begin(), statistics.sessions.end(), filled)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace millrace::bench
