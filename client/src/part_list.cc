#include "client/src/part_list.h"

#include <algorithm>
#include <utility>

namespace millrace {
inline namespace client {
namespace {

constexpr std::uint64_t kWholeFile = ~std::uint64_t{0};
constexpr std::size_t kSampleAtMost = 5 + 3 * 10;  // bytes of its numbers in a message
constexpr std::size_t kFileAtMost = 1 + 2 * 10;    // beside its path

}  // namespace

Result<void> check_range(std::uint64_t offset, std::uint64_t length) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 63U;
  if (offset < kEnd && length < kEnd - offset) return {};
  return Error{Code::kInvalid, "offset and length of a part must be below 2^63 together, are " +
                                   std::to_string(offset) + " and " + std::to_string(length)};
}

PartList::PartList(std::uint64_t dataset_id, std::string folder) : before_(folder == "/" ? 1 : folder.size() + 1) {
  next_.set_dataset_id(dataset_id);
  next_.set_folder(std::move(folder));
}

Result<void> PartList::add(const ListedFile& file) {
  if (file.range) MILLRACE_TRY_VOID(check_range(file.range->offset, file.range->length));
  if (stamped_.value_or(file.stamp.has_value()) != file.stamp.has_value())
    return Error{Code::kInvalid, "all files of a list have a stamp, or none has"};
  stamped_ = file.stamp.has_value();
  const std::uint32_t before = files_;
  next_.add_files(number_of(file.path));
  if (files_ > before && file.stamp) {
    next_.add_sizes(file.stamp->size);
    next_.add_modified_ns(file.stamp->modified_ns);
  }
  next_.add_offsets(file.range ? file.range->offset : 0);
  next_.add_lengths(file.range ? file.range->length : kWholeFile);
  next_.add_labels(file.label);
  bytes_ += kSampleAtMost;
  ++samples_;
  return {};
}

std::uint32_t PartList::number_of(const std::string& path) {
  if (files_ > 0 && path == newest_path_) return newest_;
  if (known_.size() >= kMostKnown) known_.clear();
  const auto [known, is_new] = known_.try_emplace(path, files_);
  if (is_new) {
    next_.mutable_paths()->append(path, std::min(before_, path.size()));
    next_.mutable_paths()->push_back('\0');
    bytes_ += path.size() + kFileAtMost;
    ++files_;
  }
  newest_path_ = path;
  return newest_ = known->second;
}

v1::ListParts PartList::take(bool last) {
  v1::ListParts part;
  part.set_dataset_id(next_.dataset_id());
  std::swap(part, next_);
  part.set_last(last);
  bytes_ = 0;
  return part;
}

}  // namespace client
}  // namespace millrace
