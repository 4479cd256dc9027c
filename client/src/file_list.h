// A list of files as the daemon takes it: the folder that all have in common, and messages with what comes after it.
// Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "millrace/epoch.h"
#include "millrace/v1/dataset.pb.h"

namespace millrace {
inline namespace client {

// "/data/train" of "/data/train/a.jpg" and "/data/train/b/c.jpg"; "/" where they have nothing in common.
std::string common_folder(std::span<const ListedFile> files);

// The next part, of files from `at` on, which is moved on: as many as have `bytes` of paths, or one. `folder`:
// common_folder(). REQUIRES: at < files.size().
v1::ListFiles next_part(std::uint64_t dataset_id, std::span<const ListedFile> files, const std::string& folder,
                        std::size_t bytes, std::size_t& at);

}  // namespace client
}  // namespace millrace
