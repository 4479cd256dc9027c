// A daemon that keeps what it makes of photographs, in memory or in a state directory of its own, and jobs that run
// epochs over them, each in an order of its own. Thread-bound(main).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/service/service.h"

namespace millrace::bench {

// Until files that were written just now are settled, as Host's daemons see it.
void wait_until_settled();
// Has the kernel forget what it holds of the files beneath a folder, so that they are read from the disk.
void drop_from_page_cache(const std::string& folder);

// Photographs, and other files to warm daemons up with. All are settled, as Host's daemons see it.
class Photographs {
 public:
  Photographs(const std::string& data, std::uint32_t copies);
  const std::string& folder() const { return files_.path(); }
  const std::string& warm_folder() const { return warm_.path(); }

 private:
  RepeatedFolder files_, warm_;
};

class Host {
 public:
  // The [cache] part of the settings.
  static constexpr const char* kNothingKept = "memory = 0\ndisk = 0\n";
  static constexpr const char* kInMemory = "disk = 0\n";
  static constexpr const char* kAlsoOnDisk = "disk = \"4 GiB\"\n";
  // Before that a file could change again without a sign of it, so it is read and compared. Shorter than is safe where
  // somebody else may write.
  static constexpr const char* kSettled = "settled_seconds = 2\n";

  struct Options {
    std::string cache = kInMemory;
    std::uint32_t lanes = 1;
    std::uint32_t jobs = 1;
  };
  // Its daemon is warm, and has not seen the photographs. `photographs` outlive it.
  Host(const Photographs& photographs, Options options);

  struct Cost {
    double images = 0, seconds = 0;
    double processor = 0;       // seconds, the daemon's and this process's
    double packed = 0;          // images that were made from packed forms
    double bytes_of_disks = 0;  // that the daemon had the kernel read
    double rate() const { return images / seconds; }
  };
  // One epoch of every job, all at once.
  Cost epoch(std::uint64_t number);
  // Another daemon finds what this one has left in the state directory, whose files the kernel has forgotten.
  void restart();

 private:
  void start();
  void warm_up();
  double processor() const;
  double packed_hits();
  std::uint64_t run(std::size_t job, std::uint64_t number);

  const Photographs& photographs_;
  const Options options_;
  TempFolder state_;
  std::optional<Rig> rig_;
  std::vector<Session> sessions_;
  std::vector<Dataset> datasets_;
};

}  // namespace millrace::bench
