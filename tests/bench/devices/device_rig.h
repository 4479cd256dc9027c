// What measurements of devices have in common: photographs, what threads take of the processor, medians. Functions.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/formats/probe.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace::bench {

inline constexpr Size kOutput{224, 224};

[[noreturn]] inline void stop(const std::string& why) {
  std::fprintf(stderr, "millrace_bench: %s\n", why.c_str());
  std::exit(1);
}

// Of the threads of a process whose names begin so: seconds on a processor.
inline double cpu_seconds(pid_t process, const std::string& names) {
  double nanoseconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string name;
    double ran = 0;
    std::ifstream(task.path() / "comm") >> name;
    std::ifstream(task.path() / "schedstat") >> ran;
    if (name.starts_with(names)) nanoseconds += ran;
  }
  return nanoseconds / 1e9;
}

inline EncodedImage image_in(const std::vector<std::byte>& bytes) {
  EncodedImage image{.bytes = EncodedBytes(bytes.size())};
  std::copy(bytes.begin(), bytes.end(), image.bytes.writable().begin());
  return image;
}

struct Photos {
  std::vector<std::vector<std::byte>> files;
  std::vector<SourceInfo> infos;
};

// Those that the backend can make.
inline Photos read_photos(const std::string& folder, const Backend& backend, const Recipe& recipe) {
  Photos photos;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::vector<std::byte> bytes = read_file(entry.path());
    const Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
    const SampleGeometry geometry{{0, 0, 1, 1}, kOutput, {0, 0, 224, 224}};
    if (!info || !backend.can_make({*info, geometry}, recipe)) continue;
    photos.files.push_back(std::move(bytes));
    photos.infos.push_back(*info);
  }
  if (photos.files.empty()) stop(folder + " has no baseline JPEG file");
  return photos;
}

// A quarter of the picture, of another width for each `turn`, as random crops have.
inline SampleGeometry crop_of(Size stored, int turn) {
  const int width = static_cast<int>(stored.width), height = static_cast<int>(stored.height);
  const int half = (width + 1) / 2 - turn % (width / 4 + 1);
  return {{width / 4, height / 4, half, (height + 1) / 2}, kOutput, {0, 0, 224, 224}};
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace millrace::bench
