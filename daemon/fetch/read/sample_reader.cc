#include "daemon/fetch/read/sample_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "daemon/fetch/open/identity.h"
#include "daemon/fetch/read/block_ahead.h"
#include "daemon/fetch/read/read_file.h"
#include "daemon/formats/format_table.h"
#include "daemon/formats/probe.h"

namespace millrace {
namespace {

constexpr Bytes kLarge = 1_MiB;

// Of a part of the file. nullopt: of nothing, which `part_size` 0 does not say.
std::optional<FileIdentity> part_of(std::optional<FileIdentity> file, const std::optional<Dataset::Range>& range) {
  if (!file || !range) return file;
  if (range->length.count == 0) return std::nullopt;
  file->part_begin = range->offset;
  file->part_size = range->length.count;
  return file;
}

// The file that the source lies in; nullopt: it lies in none, or the dataset has no such sample.
std::optional<std::string> file_of(const SampleSource& source) {
  if (const auto* const path = std::get_if<PathSource>(&source)) return path->path;
  const auto* const sample = std::get_if<DatasetSource>(&source);
  if (sample == nullptr || raw(sample->sample) >= sample->dataset->samples()) return std::nullopt;
  return sample->dataset->locate(sample->sample).file;
}

bool may_be_part(const SampleSource* source) {
  if (const auto* const path = std::get_if<PathSource>(source)) return path->range.has_value();
  const auto* const sample = std::get_if<DatasetSource>(source);
  return sample != nullptr && sample->dataset->has_ranges();
}

// Each file that some of `sources` lie in, with the positions of these.
struct FileOfSources {
  std::string file;
  std::vector<std::size_t> sources;
};
std::vector<FileOfSources> files_of(std::span<const SampleSource* const> sources) {
  std::vector<FileOfSources> files;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::optional<std::string> file = file_of(*sources[i]);
    if (!file) continue;
    auto known = std::ranges::find(files, *file, &FileOfSources::file);
    if (known == files.end()) known = files.insert(known, {*std::move(file), {}});
    known->sources.push_back(i);
  }
  return files;
}

Error not_as_listed() {
  return Error{
      Code::kPrecondition,
      "the file has changed since it was listed: it has another size or time of modification, and what was the "
      "sample may be elsewhere in it; list it again and open the dataset anew"};
}

Result<std::shared_ptr<const OpenFile>> to_share(Result<OpenFile> file) {
  if (!file) return std::move(file).error();
  return std::make_shared<const OpenFile>(*std::move(file));
}

bool is_as_listed(const std::optional<FileIdentity>& file, const std::optional<Dataset::Stamp>& stamp) {
  return !stamp || (file && file->size == stamp->size.count && file->modified == stamp->modified);
}

std::optional<FileIdentity> identity_now(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? std::optional(identity_of(status)) : std::nullopt;
}

// A file's part of what may be read at once, for as long as it is read.
class BeingRead {
 public:
  BeingRead(std::atomic<std::uint64_t>& all, Bytes most) : all_(all), most_(most) {}
  BeingRead(const BeingRead&) = delete;
  BeingRead& operator=(const BeingRead&) = delete;
  ~BeingRead() { all_.fetch_sub(size_, std::memory_order_relaxed); }
  // So many bytes of it. kUnavailable: others have the room.
  Result<void> grow(Bytes size) {
    const std::uint64_t more = size.count - std::min(size.count, size_);
    size_ += more;
    if (all_.fetch_add(more, std::memory_order_relaxed) + more <= most_.count) return {};
    return Error{Code::kUnavailable, "files that have been read for long hold the memory for reading others"};
  }

 private:
  std::atomic<std::uint64_t>& all_;
  const Bytes most_;
  std::uint64_t size_ = 0;
};

}  // namespace

struct SampleReader::ReadSource {
  const Roots& roots;
  const Options& options;
  const SampleLimits limits;
  const Caller& caller;
  const InputRing* ring;
  const ReadWish& wish;
  std::optional<OpenedAhead>& ahead;
  std::atomic<std::uint64_t>& being_read;

  Result<EncodedImage> operator()(const PathSource& source) const {
    return from_file({.file = source.path, .range = source.range});
  }
  Result<EncodedImage> operator()(const InlineSource& source) const {
    const Bytes size{source.bytes.size()};
    if (size > limits.encoded) return too_large(size, limits.encoded);
    EncodedBytes bytes(size.count, options.pool);
    if (size.count > 0) std::memcpy(bytes.writable().data(), source.bytes.data(), size.count);
    return EncodedImage{.bytes = std::move(bytes), .info = {}};
  }
  Result<EncodedImage> operator()(const RingSource& source) const {
    if (ring == nullptr) return Error{Code::kInvalid, "the session has no input ring"};
    MILLRACE_TRY(EncodedBytes bytes, ring->copy(source.offset, source.length, limits.encoded, options.pool));
    return EncodedImage{.bytes = std::move(bytes), .info = {}};
  }
  Result<EncodedImage> operator()(const DatasetSource& source) const {
    if (raw(source.sample) >= source.dataset->samples())
      return Error{Code::kInvalid, "the dataset has only " + std::to_string(source.dataset->samples()) + " samples"};
    return from_file(source.dataset->locate(source.sample), &source);
  }

  // `of_dataset`: the source, if it is one of a dataset's.
  Result<EncodedImage> from_file(const Dataset::Location& location, const DatasetSource* of_dataset = nullptr) const {
    const std::int64_t begun = ahead ? ahead->begun : nanoseconds_since_1970();
    const Result<std::shared_ptr<const OpenFile>> opened =
        ahead ? std::move(ahead->file) : to_share(roots.open_file(location.file, caller));
    if (!opened) return roots.with_roots(opened.error());
    const OpenFile& file = **opened;
    if (!is_as_listed(file.identity, location.stamp)) return not_as_listed();
    if (std::optional<EncodedImage> kept = find_kept(file, location.range, begun)) return *std::move(kept);
    if (of_dataset != nullptr && of_dataset->block_samples > 0) {
      const std::optional<Dataset::Range> block =
          place_of_block(*of_dataset->dataset, of_dataset->sample, of_dataset->block_samples);
      if (block) ask_ahead(file.fd.get(), *block);
    }
    MILLRACE_TRY(EncodedBytes bytes, contents(file, location.range));
    if (location.stamp && !is_as_listed(identity_now(file.fd.get()), location.stamp)) return not_as_listed();
    EncodedImage image{.bytes = std::move(bytes), .info = {}};
    const std::size_t size = location.range ? file.size.count : image.bytes.size();
    image.identity = part_of(identity_of(file.fd.get(), size, begun), location.range);
    image.stable =
        image.identity && keeps_pictures() && is_stable(file.fd.get(), *image.identity, begun, options.stable_after);
    return image;
  }

  Result<EncodedBytes> contents(const OpenFile& file, const std::optional<Dataset::Range>& range) const {
    const Bytes size = std::min(range ? range->length : file.size, limits.encoded);
    BeingRead part(being_read, limits.encoded * options.files_at_once);
    MILLRACE_TRY_VOID(part.grow(size));
    MILLRACE_TRY_VOID(check_large(file, range));
    if (range) return read_range(file.fd.get(), *range, limits.encoded, options.pool);
    return read_file(file, limits.encoded, options.pool, [&](Bytes more) { return part.grow(more); });
  }

  // A large file that is no picture is not read as a whole to find that out.
  Result<void> check_large(const OpenFile& file, const std::optional<Dataset::Range>& range) const {
    const Bytes size = range ? range->length : file.size;
    if (size < kLarge || size > limits.encoded) return {};
    std::array<std::byte, kBeginning> beginning{};
    const auto offset = static_cast<off_t>(range ? range->offset : 0);
    const ssize_t got = ::pread(file.fd.get(), beginning.data(), beginning.size(), offset);
    if (got < static_cast<ssize_t>(beginning.size())) return {};  // the read of all of it says why
    return check_format(beginning);
  }

  // The file is open, so the caller may read it; what is kept was made of the contents that it has.
  std::optional<EncodedImage> find_kept(const OpenFile& file, const std::optional<Dataset::Range>& range,
                                        std::int64_t opened) const {
    if (!keeps_pictures() || wish.from_file) return std::nullopt;
    const std::optional<FileIdentity> identity = part_of(file.identity, range);
    if (!identity || identity->bytes() > limits.encoded.count) return std::nullopt;
    if (!is_stable(file.fd.get(), *identity, opened, options.stable_after)) return std::nullopt;
    std::optional<CachedImage> found = options.kept->find(*identity, wish.keep);
    if (!found || !check_size(found->info.stored, limits)) return std::nullopt;
    return EncodedImage{
        .bytes = {}, .info = found->info, .identity = identity, .stable = true, .kept = std::move(found->kept)};
  }

  bool keeps_pictures() const { return options.kept != nullptr && wish.keep.most >= CacheUse::kPacked; }
};

std::vector<std::optional<OpenedAhead>> SampleReader::open_ahead(std::span<const SampleSource* const> sources,
                                                                 const Caller& caller) const {
  const bool by_opener = roots_.by_opener(caller);
  if (!by_opener && std::ranges::none_of(sources, may_be_part)) return {};
  std::vector<FileOfSources> files = files_of(sources);
  if (!by_opener) std::erase_if(files, [](const FileOfSources& file) { return file.sources.size() < 2; });
  if (files.empty()) return {};
  std::vector<std::optional<OpenedAhead>> ahead(sources.size());
  const std::int64_t begun = nanoseconds_since_1970();
  std::vector<std::string> names;
  for (FileOfSources& file : files) names.push_back(std::move(file.file));
  std::vector<Result<OpenFile>> opened = roots_.open_files(names, caller);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Result<std::shared_ptr<const OpenFile>> file = to_share(std::move(opened[i]));
    for (const std::size_t source : files[i].sources) ahead[source].emplace(OpenedAhead{begun, file});
  }
  return ahead;
}

Result<EncodedImage> SampleReader::read(const SampleSource& source, const Caller& caller, const InputRing* ring,
                                        const ReadWish& asked, Bytes& bytes_read,
                                        std::optional<OpenedAhead> ahead) const {
  try {
    ReadWish wish = asked;
    const SampleLimits limits = options_.limits.now().sample;
    wish.keep.member = member_of(source);
    if (!roots_.rights().is_known(caller)) wish.keep.most = CacheUse::kOff;  // else it would be kept for all such users
    MILLRACE_TRY(EncodedImage image,
                 std::visit(ReadSource{roots_, options_, limits, caller, ring, wish, ahead, being_read_}, source));
    bytes_read += Bytes{image.bytes.size()};
    // What is kept has to say the orientation, also where this request ignores it.
    const bool keeps = options_.kept != nullptr && wish.keep.most >= CacheUse::kPacked;
    if (!image.kept) {
      MILLRACE_TRY(image.info,
                   probe_image(image.bytes.view(), limits, keeps ? UseOrientation::kYes : wish.orientation));
      const Format& format = format_of(image.info.format);
      if (image.info.has.passes && format.count_passes != nullptr)
        image.passes = format.count_passes(image.bytes.view());
      // Nothing of another's picture may stand where a made-up file has its decoder read.
      if (image.info.format == ImageFormat::kPacked) image.bytes.clear_behind();
    }
    image.orientation_in_file = image.info.orientation;
    if (wish.orientation == UseOrientation::kNo) image.info.orientation = 1;
    image.user = caller.uid;
    image.wish = wish.keep;
    return image;
  } catch (const std::bad_alloc&) {
    return Error{Code::kUnavailable, "no memory to read it"};
  }
}

}  // namespace millrace
