#include "client/cli/text/run_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/cli/text/cost_text.h"
#include "client/cli/text/json.h"

namespace millrace::cli {
namespace {

constexpr double kTold = 0.01;  // seconds saved: less is told as 0.00

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

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

std::string epoch_text(const EpochReport& epoch, std::uint64_t of) {
  std::string text = "epoch " + grouped(epoch.epoch + 1) + "/" + grouped(of) + ": " + grouped(epoch.images) +
                     " images in " + fixed(epoch.elapsed.count(), 2) + " s, ";
  text += epoch.is_measured() ? fixed(epoch.rate(), 1) + " images/s" : "too short to measure";
  const std::string sources = sources_text(epoch.cache);
  if (sources.empty())
    return text + "; seek indexes: " + grouped(epoch.index_hits) + " used, " + grouped(epoch.index_misses) + " made";
  text += std::string("; ") + (epoch.others ? "of all sessions: " : "") + sources;
  if (epoch.is_measured() && epoch.cache.saved() >= kTold)
    text += "; about " + fixed(epoch.cache.saved(), 2) + " s of lanes saved";
  return text;
}

void print_epoch(const EpochReport& epoch, std::uint64_t of) {
  std::printf("%s\n", epoch_text(epoch, of).c_str());
  std::fflush(stdout);
}

std::string RunReport::cache_text() const {
  if (epochs_.size() < 2 || epochs_.front().images == 0 || !epochs_.front().is_measured()) return "";
  double saved = 0;
  bool others = false;
  std::vector<double> later;
  std::chrono::duration<double> later_took{};
  for (const EpochReport& epoch : epochs_) {
    saved += epoch.cache.saved();
    others = others || epoch.others;
    if (&epoch == &epochs_.front()) continue;
    later.push_back(epoch.rate());
    later_took += epoch.elapsed;
  }
  if (saved < kTold) return "";
  std::array<char, 200> text{};
  const char* const to_whom = others ? " to all sessions" : "";
  const double rate = median(later), gain = rate / epochs_.front().rate();
  const bool first_had_none = 2 * epochs_.front().cache.first > static_cast<double>(epochs_.front().images);
  if (!first_had_none || gain <= 1 || later_took < kMeasured) {
    std::snprintf(text.data(), text.size(), "the cache brought about %.2f s of lane time%s", saved, to_whom);
    return text.data();
  }
  std::snprintf(
      text.data(), text.size(),
      "the cache brought: %s ran %.2f x as fast as the first (%.1f images/s), and about %.2f s of lane time%s",
      later.size() == 1 ? "the second epoch" : "later epochs, in the median,", gain, rate, saved, to_whom);
  return text.data();
}

std::string RunReport::total_text(std::chrono::duration<double> elapsed) const {
  const auto a_second = [&](std::uint64_t count) { return static_cast<double>(count) / elapsed.count(); };
  const std::string text = grouped(images_) + " images in " + fixed(elapsed.count(), 2) + " s: ";
  const std::string bad = "; " + grouped(bad_) + " bad";
  if (elapsed < kMeasured) return text + "too short to measure" + bad;
  return text + fixed(a_second(images_), 1) + " images/s, " +
         to_text(Bytes{static_cast<std::uint64_t>(a_second(bytes_))}) + "/s of tensors" + bad;
}

void RunReport::print_text(std::chrono::duration<double> elapsed) const {
  std::printf("%s\n", total_text(elapsed).c_str());
  if (images_ != 0)
    std::printf("an image on average: fetch %.2f ms, queue %.2f ms, decode %.2f ms, transform %.2f ms\n",
                mean_ms(fetch_), mean_ms(queue_), mean_ms(decode_), mean_ms(transform_));
  if (cost_) std::printf("it cost %s\n", cost_text(*cost_).c_str());
  if (const std::string cache = cache_text(); !cache.empty()) std::printf("%s\n", cache.c_str());
  if (epochs_.size() > 1 && !std::ranges::all_of(epochs_, &EpochReport::is_measured))
    std::printf("an epoch of less than a second has no images/s of its own; use a larger folder\n");
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
  if (cost_) add_cost("cost", *cost_, json);
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
