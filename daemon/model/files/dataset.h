// A dataset: where each sample's bytes lie, and its label. Of a listed folder tree, or of files, or parts of files, that a
// client listed itself, which has no classes, the client's order, and the same file perhaps more than once. Immutable
// once listed.
//
// A folder's samples are in the order of torchvision's ImageFolder, its classes in byte order of their names. That is: by class folder, then by the path of the folder that holds the file, then by the file's name,
// each compared byte for byte. So "a-b/1" comes after "a/1" although '-' is less than '/', "c/z" before "c/a/0", and
// "c/a-b/1" before "c/a/d/2". Files that are in no class folder come first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/model/files/file_choice.h"
#include "proto/base/bytes.h"
#include "proto/base/ids.h"

namespace millrace {

// Of the folder, or of the client's list: the same for everybody who lists it, and after a restart.
enum class DatasetNumber : std::uint64_t { kNone = 0 };

class Dataset {
 public:
  // A part of a file: 16 bytes, as Entry.
  struct Range {
    static constexpr Bytes kWhole{~std::uint64_t{0}};  // with the offset 0: the whole file

    std::uint64_t offset;
    Bytes length;
    friend bool operator==(const Range&, const Range&) = default;
  };
  // What a file had when its parts were found. With another size or time it is another file: its parts are elsewhere.
  struct Stamp {
    Bytes size;
    std::int64_t modified = 0;  // nanoseconds since 1970
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  // Where a sample's encoded bytes are.
  struct Location {
    std::string file;                 // absolute
    std::optional<Range> range;       // nullopt: the whole file, however long it is when it is read
    std::optional<Stamp> stamp = {};  // of the file; nullopt: not known
    friend bool operator==(const Location&, const Location&) = default;
  };
  // 16 bytes, because there are millions.
  struct Entry {
    Entry() = default;
    Entry(std::uint64_t offset, std::uint64_t bytes, std::int64_t of_sample)
        : path_offset(offset & kOffsets), path_bytes(bytes & kPaths), label(of_sample) {}
    std::uint64_t path_offset : 48 = 0;  // into paths
    std::uint64_t path_bytes : 16 = 0;
    std::int64_t label = -1;  // position in classes, or -1; of a client's list as it says
    friend bool operator==(const Entry&, const Entry&) = default;

   private:
    static constexpr std::uint64_t kOffsets = (std::uint64_t{1} << 48U) - 1, kPaths = (std::uint64_t{1} << 16U) - 1;
  };

  struct StampedFile {
    std::uint64_t path_offset = 0;  // as Entry's
    Stamp stamp;
    friend bool operator==(const StampedFile&, const StampedFile&) = default;
  };
  // Of samples that are parts of files.
  struct Parts {
    std::vector<Range> ranges;        // of each entry in its file; or none, if every sample is a file
    std::vector<StampedFile> stamps;  // of some files, by ascending path_offset
    friend bool operator==(const Parts&, const Parts&) = default;
  };

  // REQUIRES: entries in the order of samples; no path of 64 KiB. `root`: absolute, without a trailing slash; "" for "/". `fingerprint`: of the paths
  // in order, and of `parts`. `number`: kNone if the folder is not known.
  Dataset(std::string root, std::string paths, std::vector<Entry> entries, std::vector<std::string> classes,
          std::uint64_t fingerprint, Skipped skipped = {}, Parts parts = {},
          DatasetNumber number = DatasetNumber::kNone)
      : root_(std::move(root)),
        paths_(std::move(paths)),
        entries_(std::move(entries)),
        classes_(std::move(classes)),
        fingerprint_(fingerprint),
        skipped_(std::move(skipped)),
        parts_(std::move(parts)),
        number_(number) {}

  std::uint64_t samples() const { return entries_.size(); }
  const std::string& root() const { return root_; }
  Bytes memory() const {  // that it takes
    std::uint64_t bytes = sizeof *this + root_.capacity() + paths_.capacity() + entries_.capacity() * sizeof(Entry) +
                          parts_.ranges.capacity() * sizeof(Range) + parts_.stamps.capacity() * sizeof(StampedFile);
    for (const std::string& name : classes_) bytes += sizeof name + name.capacity();
    return {bytes};
  }
  const std::vector<std::string>& classes() const { return classes_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  DatasetNumber number() const { return number_; }
  const Skipped& skipped() const { return skipped_; }  // the files of the tree that are no samples

  // REQUIRES: raw(id) < samples().
  std::string_view relative_path(SampleId id) const {
    const Entry& entry = entries_[raw(id)];
    return std::string_view(paths_).substr(entry.path_offset, entry.path_bytes);
  }
  Location locate(SampleId id) const {
    std::string file = root_ + '/';
    file += relative_path(id);
    return {std::move(file), range_of(id), stamp_of(id)};
  }
  // nullopt: the whole file. REQUIRES: raw(id) < samples().
  std::optional<Range> range_of(SampleId id) const {
    if (!has_ranges() || parts_.ranges[raw(id)].length == Range::kWhole) return std::nullopt;
    return parts_.ranges[raw(id)];
  }
  // REQUIRES: as range_of(), both. A path that is there twice is two files.
  bool is_same_file(SampleId one, SampleId other) const {
    return entries_[raw(one)].path_offset == entries_[raw(other)].path_offset;
  }
  bool has_ranges() const { return !parts_.ranges.empty(); }
  std::int64_t label(SampleId id) const { return entries_[raw(id)].label; }

  friend bool operator==(const Dataset&, const Dataset&) = default;

 private:
  std::optional<Stamp> stamp_of(SampleId id) const {
    if (parts_.stamps.empty()) return std::nullopt;
    const std::uint64_t path = entries_[raw(id)].path_offset;
    const auto found = std::ranges::lower_bound(parts_.stamps, path, std::less{}, &StampedFile::path_offset);
    const bool has_one = found != parts_.stamps.end() && found->path_offset == path;
    return has_one ? std::optional(found->stamp) : std::nullopt;
  }

  std::string root_;
  std::string paths_;
  std::vector<Entry> entries_;
  std::vector<std::string> classes_;
  std::uint64_t fingerprint_;
  Skipped skipped_;
  Parts parts_;
  DatasetNumber number_;
};

// Whether a file can have it: its end is below 2^63, which is all that a file system knows. Or it is a whole file.
constexpr bool is_in_a_file(const Dataset::Range& range) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 63U;
  if (range.length == Dataset::Range::kWhole) return range.offset == 0;
  return range.offset < kEnd && range.length.count < kEnd - range.offset;
}

// Which sample of which dataset something belongs to. The number is the folder's and outlives a listing, so that a
// folder to which files were added keeps what is kept of it. Samples are counted in one listing, so an order over them
// means something only for those of the same listing.
struct DatasetMember {
  static constexpr std::uint32_t kNoSample = ~0U;

  DatasetNumber dataset = DatasetNumber::kNone;
  std::uint32_t sample = kNoSample;  // position in the listing; kNoSample: not known
  std::uint16_t listing = 0;         // of the listing's fingerprint; collisions cost time only

  friend bool operator==(const DatasetMember&, const DatasetMember&) = default;
};

// What is kept of `sample` belongs to. Samples beyond 2^32 - 2 have no position.
inline DatasetMember member_of(const Dataset& dataset, SampleId sample) {
  const bool countable = raw(sample) < DatasetMember::kNoSample;
  return {dataset.number(), countable ? static_cast<std::uint32_t>(raw(sample)) : DatasetMember::kNoSample,
          static_cast<std::uint16_t>(dataset.fingerprint())};
}

}  // namespace millrace
