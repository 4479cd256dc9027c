// A file, or a part of one, in memory. Thread-safe.
#pragma once

#include <functional>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/files/dataset.h"
#include "daemon/model/files/file_identity.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// A file open for reading, at its beginning.
struct OpenFile {
  UniqueFd fd;
  Bytes size;               // when it was opened; 0 also of those in /proc and /sys, which know only when they are read
  FileIdentity identity{};  // the same
};

// Asked before a file that turns out larger than its size said takes that many bytes in all. Unset: it may.
using MayGrow = std::function<Result<void>(Bytes)>;

// All of it, however it grows or shrinks meanwhile. kInvalid: more than `limit`, found out before memory is taken where
// the file's own size says so; kUnavailable, kExhausted: no memory, see no_memory(); kInternal: the disk failed. Costs
// one allocation of the file's size, from `pool` if there is one, and where that is its size still, one read(2).
// `may_grow`'s errors, too.
Result<EncodedBytes> read_file(const OpenFile& file, Bytes limit, EncodedPool* pool = nullptr,
                               const MayGrow& may_grow = {});

// `range` of the file, and nothing else of it. kInvalid: the file does not have it, or it is more than `limit`, both found
// out before memory is taken; otherwise read_file()'s errors.
Result<EncodedBytes> read_range(int fd, const Dataset::Range& range, Bytes limit, EncodedPool* pool = nullptr);

// The error of encoded bytes over the limit.
Error too_large(Bytes size, Bytes limit);

}  // namespace millrace
