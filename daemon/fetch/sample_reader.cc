#include "daemon/fetch/sample_reader.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "daemon/fetch/read_file.h"

namespace millrace {

struct SampleReader::ReadSource {
  struct Contents {
    EncodedBytes bytes;
    std::optional<FileIdentity> identity;
  };

  const Roots& roots;
  const SampleLimits& limits;
  const Caller& caller;
  const InputRing* ring;
  EncodedPool* pool;

  Result<Contents> operator()(const PathSource& source) const { return from_file({.file = source.path, .range = {}}); }
  Result<Contents> operator()(const InlineSource& source) const {
    const Bytes size{source.bytes.size()};
    if (size > limits.encoded) return too_large(size, limits.encoded);
    EncodedBytes bytes(size.count, pool);
    if (size.count > 0) std::memcpy(bytes.writable().data(), source.bytes.data(), size.count);
    return Contents{std::move(bytes), std::nullopt};
  }
  Result<Contents> operator()(const RingSource& source) const {
    if (ring == nullptr) return Error{Code::kInvalid, "the session has no input ring"};
    MILLRACE_TRY(EncodedBytes bytes, ring->copy(source.offset, source.length, limits.encoded, pool));
    return Contents{std::move(bytes), std::nullopt};
  }
  Result<Contents> operator()(const DatasetSource& source) const {
    if (raw(source.sample) >= source.dataset->samples())
      return Error{Code::kInvalid, "the dataset has only " + std::to_string(source.dataset->samples()) + " samples"};
    return from_file(source.dataset->locate(source.sample));
  }

  Result<Contents> from_file(const Dataset::Location& location) const {
    Result<OpenFile> file = roots.open_file(location.file, caller);
    if (!file) return roots.with_roots(std::move(file).error());
    if (location.range) {  // the identity is the file's, and this is one of many in it
      MILLRACE_TRY(EncodedBytes part, read_range(file->fd.get(), *location.range, limits.encoded, pool));
      return Contents{std::move(part), std::nullopt};
    }
    const std::int64_t begun = nanoseconds_since_1970();
    MILLRACE_TRY(EncodedBytes bytes, read_file(*file, limits.encoded, pool));
    const std::optional<FileIdentity> identity = identity_of(file->fd.get(), bytes.size(), begun);
    return Contents{std::move(bytes), identity};
  }
};

Result<EncodedImage> SampleReader::read(const SampleSource& source, const Caller& caller, const InputRing* ring,
                                        UseOrientation use) const {
  try {
    MILLRACE_TRY(ReadSource::Contents read, std::visit(ReadSource{roots_, limits_, caller, ring, pool_}, source));
    MILLRACE_TRY(const SourceInfo info, probe_image(read.bytes.view(), limits_, use));
    return EncodedImage{std::move(read.bytes), info, read.identity};
  } catch (const std::bad_alloc&) {
    return Error{Code::kUnavailable, "no memory to read it"};
  }
}

}  // namespace millrace
