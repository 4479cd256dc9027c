#include "client/cli/run_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/cli/json.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kMeasures{2};  // an epoch, of decoding more than of all else
constexpr double kTold = 0.01;                // seconds saved: less is told as 0.00

// REQUIRES: there are some.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void RunReport::add(const Batch& batch, Progress& progress) {
  if (!batch.failure) ++batches_;
  bytes_ += batch.tensor.size().count;
  for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
    const SampleInfo sample = batch.tensor.sample(i);
    if (sample.good()) ++images_;  // stand-ins for bad ones are not counted
    fetch_ += sample.fetch;
    queue_ += sample.queue;
    decode_ += sample.decode;
    transform_ += sample.transform;
  }
  bad_ += batch.bad;
  for (const SampleError& error : batch.errors) {
    bad_lines_.add(error, progress);
    if (listed_.size() < kListedMost) listed_.push_back(error);
  }
}

double RunReport::mean_ms(std::chrono::microseconds sum) const {
  return images_ == 0 ? 0 : static_cast<double>(sum.count()) / 1e3 / static_cast<double>(images_);
}

void print_epoch(const EpochReport& epoch, std::uint64_t of) {
  std::printf("epoch %s/%s: %s images in %.2f s, %.1f images/s", grouped(epoch.epoch + 1).c_str(), grouped(of).c_str(),
              grouped(epoch.images).c_str(), epoch.elapsed.count(), epoch.rate());
  if (const std::string sources = sources_text(epoch.cache); !sources.empty()) {
    std::printf("; %s%s", epoch.others ? "of all sessions: " : "", sources.c_str());
    if (epoch.cache.saved() >= kTold) std::printf("; about %.2f s of lanes saved", epoch.cache.saved());
    std::printf("\n");
  } else {
    std::printf("; seek indexes: %s used, %s made\n", grouped(epoch.index_hits).c_str(),
                grouped(epoch.index_misses).c_str());
  }
  std::fflush(stdout);
}

std::string RunReport::cache_text() const {
  if (epochs_.size() < 2 || epochs_.front().images == 0) return "";
  double saved = 0;
  bool others = false;
  std::vector<double> later;
  for (const EpochReport& epoch : epochs_) {
    saved += epoch.cache.saved();
    others = others || epoch.others;
    if (&epoch != &epochs_.front()) later.push_back(epoch.rate());
  }
  if (saved < kTold) return "";
  std::array<char, 200> text{};
  const char* const to_whom = others ? " to all sessions" : "";
  const double rate = median(later), gain = rate / epochs_.front().rate();
  const bool first_had_none = 2 * epochs_.front().cache.first > static_cast<double>(epochs_.front().images);
  if (!first_had_none || gain <= 1) {
    std::snprintf(text.data(), text.size(), "the cache brought about %.2f s of lane time%s", saved, to_whom);
    return text.data();
  }
  std::snprintf(
      text.data(), text.size(),
      "the cache brought: %s ran %.2f x as fast as the first (%.1f images/s), and about %.2f s of lane time%s",
      later.size() == 1 ? "the second epoch" : "later epochs, in the median,", gain, rate, saved, to_whom);
  return text.data();
}

void RunReport::print_text(std::chrono::duration<double> elapsed) const {
  const double seconds = std::max(elapsed.count(), 1e-9);
  std::printf("%s images in %.2f s: %.1f images/s, %s/s of tensors; %s bad\n", grouped(images_).c_str(), seconds,
              static_cast<double>(images_) / seconds,
              to_text(Bytes{static_cast<std::uint64_t>(static_cast<double>(bytes_) / seconds)}).c_str(),
              grouped(bad_).c_str());
  if (images_ != 0)
    std::printf("an image on average: fetch %.2f ms, queue %.2f ms, decode %.2f ms, transform %.2f ms\n",
                mean_ms(fetch_), mean_ms(queue_), mean_ms(decode_), mean_ms(transform_));
  if (const std::string cache = cache_text(); !cache.empty()) std::printf("%s\n", cache.c_str());
  if (epochs_.size() > 1 && epochs_.front().elapsed < kMeasures)
    std::printf("epochs this short measure little: the first took %.2f s; use a larger folder\n",
                epochs_.front().elapsed.count());
}

void RunReport::print_json(std::chrono::duration<double> elapsed, const std::string& daemon_version) const {
  const double seconds = std::max(elapsed.count(), 1e-9);
  Json json;
  json.begin_object()
      .member("images", images_)
      .member("bad", bad_)
      .member("batches", batches_)
      .member("seconds", elapsed.count());
  json.member("images_per_second", static_cast<double>(images_) / seconds).member("tensor_bytes", bytes_);
  json.member("tensor_bytes_per_second", static_cast<double>(bytes_) / seconds);
  json.key("mean_ms").begin_object().member("fetch", mean_ms(fetch_)).member("queue", mean_ms(queue_));
  json.member("decode", mean_ms(decode_)).member("transform", mean_ms(transform_)).end_object();
  json.key("epochs").begin_array();
  for (const EpochReport& epoch : epochs_) {
    json.begin_object().member("epoch", epoch.epoch).member("images", epoch.images);
    json.member("seconds", epoch.elapsed.count());
    json.member("images_per_second", epoch.rate());
    json.member("index_hits", epoch.index_hits).member("index_misses", epoch.index_misses);
    if (epoch.cache.known) {
      json.member("first_touches", epoch.cache.first).member("saved_seconds", epoch.cache.saved());
      for (std::size_t i = 0; i < kCacheKinds.size(); ++i)
        json.member("from_" + std::string(kCacheKinds[i]), epoch.cache.kinds[i].hits);
      json.member("with_other_sessions", epoch.others);
    }
    json.end_object();
  }
  json.end_array().key("bad_samples").begin_array();
  for (const SampleError& error : listed_) {
    json.begin_object().member("source", error.source).member("code", code_name(error.error.code));
    json.member("message", error.error.message).end_object();
  }
  json.end_array().member("daemon_version", daemon_version).member("library_version", library_version()).end_object();
  std::printf("%s\n", json.text().c_str());
}

}  // namespace millrace::cli
