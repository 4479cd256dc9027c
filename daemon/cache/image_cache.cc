#include "daemon/cache/image_cache.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint64_t kBytesAnAccess = 1'024, kMostAccesses = 1U << 22U;  // notes of accesses: four bytes each
constexpr std::uint64_t kBytesAnIndexByte = 77;                             // of a photograph's file
constexpr double kAlone = 1.01;                                             // jobs, by a sum of fractions

// Of the file that it was made of, about.
std::uint64_t file_bytes_of(CachedKind kind, std::uint64_t bytes) {
  return kind == CachedKind::kIndex ? kBytesAnIndexByte * bytes : bytes;
}

}  // namespace

ImageCache::ImageCache(Options options, Counters& counters)
    : options_(std::move(options)),
      counts_(counters),
      seed_(seed_of(options_.state_dir)),
      memory_(options_.memory, options_.uses),
      accessed_(std::min(options_.memory.count / kBytesAnAccess, kMostAccesses)),
      unpackable_(std::min(options_.memory.count / kBytesAnAccess, kMostAccesses) / 16),
      disk_({.most = options_.disk,
             .state_dir = options_.state_dir,
             .hindrance = options_.memory.count == 0 ? "cache.memory is 0" : ""},
            seed_, counts_) {}

ImageCache::~ImageCache() = default;

std::string ImageCache::whereabouts() const {
  return hindrance().empty() ? "in memory and in " + disk_.folder() : "in memory only: " + hindrance();
}

bool ImageCache::keeps(CachedKind kind, const CacheWish& wish) const {
  switch (kind) {
    case CachedKind::kIndex:
      return wish.most >= CacheUse::kIndex;
    case CachedKind::kPacked:
      return options_.packed && wish.most >= CacheUse::kPacked;
    case CachedKind::kTensor:
      return options_.tensors && wish.most >= CacheUse::kTensors && wish.tensor_of != 0;
  }
  return false;
}

std::optional<CachedImage> ImageCache::find(const FileIdentity& identity, const CacheWish& wish) {
  const CacheKey file = key_of(identity, seed_.value);
  for (const CachedKind kind : {CachedKind::kTensor, CachedKind::kPacked}) {
    if (!keeps(kind, wish)) continue;
    const CacheKey key = kind == CachedKind::kTensor ? tensor_key_of(file, wish.tensor_of) : file;
    std::optional<CachedEntry> entry = memory_.find(key, kind, wish.member, Look::kFirst);
    if (!entry) entry = find_on_disk(key, kind, wish.member);
    if (entry && entry->stable) return CachedImage{{kind, std::move(entry->bytes)}, entry->info};
  }
  return std::nullopt;
}

std::optional<CachedEntry> ImageCache::find(const CacheKey& key, CachedKind kind, const DatasetMember& member) {
  if (std::optional<CachedEntry> entry = memory_.find(key, kind, member)) return entry;
  return find_on_disk(key, kind, member);
}

std::optional<CachedEntry> ImageCache::find_on_disk(const CacheKey& key, CachedKind kind, const DatasetMember& member) {
  std::optional<CachedEntry> entry = disk_.find(key, kind);
  if (!entry) return std::nullopt;
  entry->member = member;
  entry->savings = savings_of(kind, file_bytes_of(kind, entry->bytes->view().size()));
  counts_.changed(memory_.put(key, kind, *entry));
  return entry;
}

bool ImageCache::store(const CacheKey& key, CachedKind kind, CachedEntry entry,
                       const std::optional<StoredFacts>& of_file) {
  bool on_disk = false;
  if (of_file && (kind == CachedKind::kIndex || entry.stable)) {
    StoredFacts facts = *of_file;
    facts.info = entry.info;
    facts.contents = entry.contents;
    on_disk = disk_.write(key, kind, entry.bytes, facts);
  }
  const MemoryTier::Change change = memory_.put(key, kind, std::move(entry));
  counts_.changed(change);
  return change.kept || on_disk;
}

void ImageCache::forget(const CacheKey& key, CachedKind kind) {
  counts_.changed(memory_.forget(key, kind));
  disk_.forget(key, kind);
}

// The disk first: what is found there goes into memory.
Result<CacheDropped> ImageCache::drop(CacheTiers tiers) {
  CacheDropped dropped;
  if (tiers.disk) {
    const Result<DiskTier::Dropped> disk = disk_.drop_all();
    if (!disk && !tiers.memory) return disk.error();
    if (disk) dropped.disk = disk->gone;
    if (disk) dropped.left_on_disk = disk->left;
  }
  if (!tiers.memory) return dropped;
  accessed_.clear();
  unpackable_.clear();
  const MemoryTier::Change change = memory_.forget_all();
  counts_.changed(change);
  for (const MemoryTier::Change::Count& count : change.kinds) {
    dropped.memory.entries += static_cast<std::uint64_t>(-count.entries);
    dropped.memory.bytes += static_cast<std::uint64_t>(-count.bytes);
  }
  return dropped;
}

// Whether several jobs use the dataset: then what is made for one is of use to another soon.
bool ImageCache::is_shared(const DatasetMember& member) const {
  if (options_.uses == nullptr || member.dataset == DatasetNumber::kNone) return false;
  return options_.uses->forecast()->at(member.dataset, MemoryTier::seconds_now()).jobs() > kAlone;
}

bool ImageCache::pays(const EncodedImage& image, const CacheKey& key, CachedKind kind, std::size_t bytes) {
  const std::size_t file_bytes = image.identity ? image.identity->bytes() : image.bytes.size();
  const Beside beside = image.kept ? Beside::kPacked : Beside::kIndex;
  return memory_.has_room_for(key, bytes) || (image.stable && disk_.has_room_for(bytes)) ||
         memory_.is_worth_making(key, {.kind = kind,
                                       .bytes = bytes,
                                       .member = image.wish.member,
                                       .savings = savings_of(kind, file_bytes, beside)});
}

// Where there is room, what is accessed again is kept; where there is none, what the policy finds worth the others' place.
Advised ImageCache::advise(const EncodedImage& image, const CacheKey& key, std::size_t tensor_bytes) {
  const CacheWish& wish = image.wish;
  if (keeps(CachedKind::kTensor, wish) && accessed_.seen(tensor_key_of(key, wish.tensor_of)) &&
      pays(image, key, CachedKind::kTensor, tensor_bytes))
    return {Advice::kTensor};
  if (image.kept || wish.most < CacheUse::kPacked) return {};
  if (const WhyUnpacked why = unpackable(image.info.format, key); why != WhyUnpacked::kNotSaid)
    return {Advice::kNothing, why};
  const bool again = accessed_.seen(key) || find(key, CachedKind::kIndex, wish.member);
  const std::size_t about = image.bytes.size() + image.bytes.size() / 4 + CachedBlock::kPadding;
  if (!pays(image, key, CachedKind::kPacked, about)) return {Advice::kNothing, WhyUnpacked::kNoRoom};
  if (again || wish.at_once || is_shared(wish.member)) return {Advice::kPackNow};
  const bool is_packed_next =
      wish.member.dataset != DatasetNumber::kNone && !keeps(CachedKind::kTensor, wish) && !accessed_.forgets();
  return {.make = Advice::kPack, .index = !is_packed_next};
}

// Whatever room there is.
WhyUnpacked ImageCache::unpackable(ImageFormat format, const CacheKey& key) const {
  if (format == ImageFormat::kPacked) return WhyUnpacked::kIsPacked;
  if (format != ImageFormat::kJpeg) return WhyUnpacked::kNotJpeg;
  if (!options_.packed) return WhyUnpacked::kSwitchedOff;
  return unpackable_.has(key) ? WhyUnpacked::kNoForm : WhyUnpacked::kNotSaid;
}

std::optional<StoredFacts> file_facts(const EncodedImage& image, CachedKind kind) {
  if (!image.identity) return std::nullopt;
  StoredFacts facts;
  if (kind == CachedKind::kTensor) facts.tensor_of = image.wish.tensor_of;
  facts.dataset = static_cast<std::uint64_t>(image.wish.member.dataset);
  facts.sample = image.wish.member.sample;
  const Savings savings = savings_of(kind, image.identity->bytes());
  facts.saves = savings.saves;
  facts.costs = savings.costs;
  return facts;
}

}  // namespace millrace
