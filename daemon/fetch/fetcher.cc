#include "daemon/fetch/fetcher.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <utility>

#include "daemon/fetch/list/listing_threads.h"
#include "daemon/fetch/read/input_ring.h"
#include "daemon/fetch/read/sample_reader.h"
#include "daemon/fetch/read/spare_descriptors.h"
#include "daemon/fetch/read_threads.h"
#include "daemon/formats/probe.h"
#include "daemon/observe/cpu_time.h"
#include "daemon/observe/trace/points.h"
#include "proto/base/bounded_queue.h"

namespace millrace {
namespace {

constexpr std::size_t kMostOpenedAhead = 16;  // descriptors that a thread holds for them
constexpr std::size_t kMostAtOnce = 4;        // images, and their bytes, that are fetched at once
constexpr Bytes kMostBytesAtOnce = 256_KiB;
constexpr std::chrono::milliseconds kBetweenLooks{1'000};  // at roots that nobody wants

Error cancelled() {
  return Error{Code::kCancelled, "cancelled before it was read"};
}

Fetched not_begun(const FetchItem& item) {
  return Fetched{
      .index = item.index, .image = Error{Code::kExhausted, "no room in this task"}, .end = FetchEnd::kNotBegun};
}

std::chrono::nanoseconds time_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::steady_clock::now() - begin;
}

// Few bytes that came with the request, and are looked at quickly.
bool is_at_hand(const FetchTask& task) {
  Bytes all{0};
  for (const FetchItem& item : task.items) {
    const auto* const source = std::get_if<InlineSource>(item.source);
    if (source == nullptr) return false;
    const ByteView bytes = std::as_bytes(std::span(source->bytes));
    all += Bytes{bytes.size()};
    if (!is_probed_quickly(bytes)) return false;
  }
  return task.items.size() <= kMostAtOnce && all <= kMostBytesAtOnce;
}

std::uint32_t threads_of(const Fetcher::Options& options) {
  return std::max(options.threads, 1U);
}

bool is_in_file(const SampleSource& source) {
  return std::holds_alternative<PathSource>(source) || std::holds_alternative<DatasetSource>(source);
}

bool host_lacks(const Fetched& fetched) {
  return !fetched.image && fetched.image.error().code == Code::kUnavailable;
}

class FileFetcher : public Fetcher {
 public:
  FileFetcher(std::unique_ptr<Roots> roots, const Options& options, Counters& counters)
      : roots_(std::move(roots)),
        reader_(*roots_, {.limits = options.limits,
                          .pool = options.pool,
                          .kept = options.kept,
                          .stable_after = options.stable_after,
                          .files_at_once = threads_of(options)}),
        counters_(counters),
        tasks_(options.queue),
        lists_(*roots_) {
    spare_ = SpareDescriptors::share(threads_of(options) + kMostStandIns);
  }

  // Once, before anything else.
  Result<void> begin(std::uint32_t threads) { return threads_.begin(threads); }

  ~FileFetcher() override {
    stopping_.store(true, std::memory_order_relaxed);
    tasks_.close();
    threads_.join();
  }

  bool try_fetch(FetchTask&& task) override { return tasks_.try_push(std::move(task)); }
  void relieve() override { threads_.relieve(); }
  std::optional<std::vector<Fetched>> fetch_at_once(const FetchTask& task) override {
    if (!is_at_hand(task)) return std::nullopt;
    SpareDescriptors none(0);
    return fetch(task, none, [] {});
  }
  bool try_list(ListTask&& task) override { return lists_.try_list(std::move(task)); }
  std::vector<std::string> missing_roots() const override { return roots_->missing(); }
  Result<RootFolders> open_roots(const std::vector<std::string>& folders) const override {
    return roots_->open_folders(folders);
  }
  Result<void> tell_opener() const override { return roots_->tell_opener(); }
  void use_roots(RootFolders roots) override { roots_->use(std::move(roots)); }

 private:
  bool stopped(const std::shared_ptr<const StopFlag>& stop) const {
    return stopping_.load(std::memory_order_relaxed) || (stop && stop->stopped());
  }

  // While there is none, roots that nobody has wanted for a while are let go of.
  std::optional<FetchTask> next_task(ThreadStopwatch& used) {
    while (roots_->let_go_of_unwanted()) {
      used.lap();
      std::optional<FetchTask> task = tasks_.pop_until(std::chrono::steady_clock::now() + kBetweenLooks);
      if (task || stopping_.load(std::memory_order_relaxed)) return task;
    }
    return tasks_.pop();
  }

  void fetch_tasks(ReadThreads::Member& member, SpareDescriptors& spare) {
    ThreadStopwatch used;
    while (std::optional<FetchTask> task = next_task(used)) {
      spare.fill();
      std::vector<Fetched> fetched = fetch(*task, spare, [&] { member.gets_on(task->watch.get()); });
      const bool was_relieved = !member.is_wanted();
      if (task->watch) task->watch->cpu = used.lap();
      task->done(std::move(fetched));
      if (was_relieved) return;
    }
  }

  // Opening ahead is charged, but is no part of kFetchTurn: what is open is read. `get_on`: called before each item.
  template <class GetOn>
  std::vector<Fetched> fetch(const FetchTask& task, SpareDescriptors& spare, GetOn get_on) {
    const trace::Work recorded(trace::What::kPortionBegins, {task.owner.user, task.owner.session}, task.items.size());
    std::vector<Fetched> fetched;
    fetched.reserve(task.items.size());
    Bytes read{0};  // good or bad
    std::chrono::nanoseconds took{0};
    std::chrono::nanoseconds each_opened{0};
    get_on();
    std::vector<std::optional<OpenedAhead>> ahead = open_ahead(task, each_opened);
    ahead.resize(task.items.size());
    for (std::size_t i = 0; i < task.items.size(); ++i) {
      const FetchItem& item = task.items[i];
      if (stopped(task.stop)) {
        fetched.push_back(Fetched{.index = item.index, .image = cancelled()});
      } else if ((read.count > 0 && read >= task.room) || took >= kFetchTurn) {
        fetched.push_back(not_begun(item));
      } else {
        get_on();
        const std::uint64_t before = read.count;
        const std::int64_t begin = recorded.is_recorded() ? trace::now() : 0;
        fetched.push_back(fetch_one(item, std::exchange(ahead[i], {}), task, spare, read));
        if (recorded.is_recorded())
          recorded.add({.what = trace::What::kRead,
                        .failed = !fetched.back().image.has_value(),
                        .index = item.index,
                        .at = begin,
                        .until = trace::now(),
                        .number = read.count - before});
        took += fetched.back().time;
      }
      fetched.back().time += each_opened;
    }
    return fetched;
  }

  // A task of more items, which no portion is, opens them one by one, so that few descriptors are held. `each`: what it
  // took, by items.
  std::vector<std::optional<OpenedAhead>> open_ahead(const FetchTask& task, std::chrono::nanoseconds& each) {
    if (task.items.size() < 2 || task.items.size() > kMostOpenedAhead || stopped(task.stop)) return {};
    std::vector<const SampleSource*> sources;
    for (const FetchItem& item : task.items) sources.push_back(item.source);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::optional<OpenedAhead>> ahead = reader_.open_ahead(sources, *task.caller);
    each = time_since(begin) / task.items.size();
    counters_.add(MetricId::fetch_time, each * task.items.size());
    return ahead;
  }

  // Adds to `bytes_read`.
  Fetched fetch_one(const FetchItem& item, std::optional<OpenedAhead> ahead, const FetchTask& task,
                    SpareDescriptors& spare, Bytes& bytes_read) {
    const auto begin = std::chrono::steady_clock::now();
    const ReadWish wish{.orientation = item.ignore_orientation ? UseOrientation::kNo : UseOrientation::kYes,
                        .keep = item.keep,
                        .from_file = item.from_file};
    const auto read = [&] {
      return reader_.read(*item.source, *task.caller, task.ring.get(), wish, bytes_read,
                          std::exchange(ahead, std::nullopt));
    };
    const Bytes before = bytes_read;
    Fetched fetched{.index = item.index, .image = read()};
    if (host_lacks(fetched) && spare.give_up()) {
      fetched.image = read();
      spare.fill();
    }
    if (host_lacks(fetched)) fetched.end = FetchEnd::kHostLacks;
    fetched.root_missing = !fetched.image && lacks_root(*item.source, fetched.image.error());
    if (is_in_file(*item.source)) fetched.from_file = bytes_read - before;
    fetched.time = time_since(begin);
    counters_.add(MetricId::fetch_time, fetched.time);
    if (fetched.image) counters_.add(MetricId::encoded_bytes, fetched.image->bytes.size());
    if (fetched.image && task.keep == FetchedBytes::kHeaderOnly && fetched.image->bytes.size() > 0) {
      fetched.image->bytes = EncodedBytes();
      fetched.end = FetchEnd::kHeaderOnly;
    }
    return fetched;
  }

  // It failed with `error` for want of the root that it lies beneath. A dataset was listed beneath one: if there is none
  // for it any more, the settings have lost it since.
  bool lacks_root(const SampleSource& source, const Error& error) const {
    if (error.code == Code::kNotFound) return roots_->beneath_missing(file_path(source));
    return error.code == Code::kDenied && std::holds_alternative<DatasetSource>(source) &&
           !roots_->root_of(file_path(source));
  }

  const std::unique_ptr<Roots> roots_;
  const SampleReader reader_;
  Counters& counters_;
  BoundedQueue<FetchTask> tasks_;
  ListingThreads lists_;
  // Writer: the destructor. Reader: the threads, between samples and folders. Publishes nothing but itself.
  std::atomic<bool> stopping_{false};
  std::size_t spare_ = 0;  // descriptors of each thread. Set before the first one begins
  ReadThreads threads_{[this] {
    auto spare = std::make_shared<SpareDescriptors>(spare_);
    return [this, spare](ReadThreads::Member& member) { fetch_tasks(member, *spare); };
  }};
};

}  // namespace

Result<NewInputRing> Fetcher::make_ring(Bytes size_untrusted, Bytes limit) {
  return SealedRing::create(size_untrusted, limit);
}

Result<std::unique_ptr<Fetcher>> Fetcher::create(Options options, Counters& counters) {
  const std::size_t readers = threads_of(options) + kMostStandIns;
  MILLRACE_TRY(std::unique_ptr<Roots> roots, Roots::open({.folders = options.roots,
                                                          .unmapped = options.unmapped,
                                                          .opener = options.opener,
                                                          .opens_for_root = options.opens_for_root,
                                                          .threads = readers + ListingThreads::kForRoot,
                                                          .all_threads = readers + ListingThreads::kMost + 1}));
  auto fetcher = std::make_unique<FileFetcher>(std::move(roots), options, counters);
  MILLRACE_TRY_VOID(fetcher->begin(threads_of(options)));
  return std::unique_ptr<Fetcher>(std::move(fetcher));
}

}  // namespace millrace
