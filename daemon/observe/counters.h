// The one table of figures: every counter, gauge and histogram that the daemon shows, by name, has one row here. Thread-
// safe: relaxed atomics, no figure is used to decide anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/observe/histogram.h"
#include "daemon/observe/labelled.h"

namespace millrace {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

// name, kind, unit of the stored integer, OpenMetrics name, help. Durations are stored in microseconds and shown in
// seconds.
// clang-format off
#define MILLRACE_METRICS(row)                                                                                                     \
  row(sessions_opened, kCounter, "", "millrace_sessions_opened_total", "Sessions opened since the start")                         \
  row(sessions, kGauge, "", "millrace_sessions", "Sessions open now")                                                             \
  row(sessions_reclaimed, kCounter, "", "millrace_sessions_reclaimed_total", "Sessions whose client died or was cut off")                  \
  row(handoff_connections, kGauge, "", "millrace_handoff_connections", "Open connections to the hand-off socket")                 \
  row(segment_bytes, kGauge, "bytes", "millrace_segment_bytes", "Shared memory allocated for tensors")                            \
  row(slots, kGauge, "", "millrace_slots", "Slots of all sessions")                                                               \
  row(slots_free, kGauge, "", "millrace_slots_free", "Slots that are filled and hold no batch")                                   \
  row(batches_admitted, kCounter, "", "millrace_batches_admitted_total", "Batches accepted, of submissions and epochs")           \
  row(batches_completed, kCounter, "", "millrace_batches_completed_total", "Batches handed over")                                 \
  row(batches_failed, kCounter, "", "millrace_batches_failed_total", "Batches that ended in an error, cancelled ones included")   \
  row(batches_shed, kCounter, "", "millrace_batches_shed_total", "Of these, given up for their deadline before a lane had any image") \
  row(batches_in_flight, kGauge, "", "millrace_batches_in_flight", "Batches admitted and not ended")                              \
  row(requests_refused, kCounter, "", "millrace_requests_refused_total", "Malformed, forbidden or unaffordable requests")         \
  row(samples_completed, kCounter, "", "millrace_samples_total", "Images made")                                                   \
  row(samples_left, kCounter, "", "millrace_samples_left_total", "Images that a backend began and gave back: too large, of a kind that it does not make, or its device was lost") \
  row(samples_bad, kCounter, "", "millrace_bad_samples_total", "Images that could not be read or decoded")                        \
  row(samples_in_flight, kGauge, "", "millrace_samples_in_flight", "Images fetched or being made")                                \
  row(encoded_bytes, kCounter, "bytes", "millrace_encoded_bytes_total", "Encoded bytes read")                                     \
  row(encoded_in_flight, kGauge, "bytes", "millrace_encoded_in_flight_bytes", "Encoded bytes held now")                           \
  row(decoding_in_use, kGauge, "bytes", "millrace_decoding_bytes", "Charged to memory.decoding for large pictures being decoded") \
  row(requests_in_use, kGauge, "bytes", "millrace_requests_bytes", "Charged to memory.requests for what clients ask for")          \
  row(tensor_bytes, kCounter, "bytes", "millrace_tensor_bytes_total", "Tensor bytes handed over")                                 \
  row(fetch_time, kCounter, "seconds", "millrace_fetch_seconds_total", "Time spent reading encoded bytes")                        \
  row(fetch_waits, kCounter, "", "millrace_fetch_waits_total", "Pauses in reading because the daemon lacked descriptors or memory") \
  row(queue_time, kCounter, "seconds", "millrace_queue_seconds_total", "Time that fetched samples waited for a lane")             \
  row(decode_time, kCounter, "seconds", "millrace_decode_seconds_total", "Lane time spent decoding")                              \
  row(transform_time, kCounter, "seconds", "millrace_transform_seconds_total", "Lane time spent resampling and storing")                     \
  row(lane_runnable, kCounter, "seconds", "millrace_lane_runnable_seconds_total", "Time that CPU lanes were ready to run and had no processor") \
  row(index_hits, kCounter, "", "millrace_index_hits_total", "JPEG files decoded by a seek index")                                \
  row(index_misses, kCounter, "", "millrace_index_misses_total", "JPEG files decoded from their start, which made an index")      \
  row(index_rejected, kCounter, "", "millrace_index_rejected_total", "Seek indexes found wrong, and forgotten")                   \
  row(index_entries, kGauge, "", "millrace_index_entries", "Seek indexes in memory")                                              \
  row(index_bytes, kGauge, "bytes", "millrace_index_bytes", "Memory that seek indexes take")                                      \
  row(index_evictions, kCounter, "", "millrace_index_evictions_total", "Seek indexes dropped from memory for others")             \
  row(index_disk_entries, kGauge, "", "millrace_index_disk_entries", "Seek indexes in the state directory")                       \
  row(index_disk_bytes, kGauge, "bytes", "millrace_index_disk_bytes", "What seek indexes take in the state directory")            \
  row(index_disk_pending, kGauge, "", "millrace_index_disk_pending", "Seek indexes not yet written to the state directory")       \
  row(cache_first_touches, kCounter, "", "millrace_first_touches_total", "Images that the CPU made from their file alone, nothing being kept of it") \
  row(cache_hits, kCounter, "", "millrace_cache_hits_total", "Images made with or from what was kept")                            \
  row(cache_misses, kCounter, "", "millrace_cache_misses_total", "Images of which that was looked for and not kept")              \
  row(cache_rejected, kCounter, "", "millrace_cache_rejected_total", "What was kept and found to be of other contents, or wrong")  \
  row(cache_entries, kGauge, "", "millrace_cache_entries", "What is kept in memory")                                              \
  row(cache_bytes, kGauge, "bytes", "millrace_cache_bytes", "The memory that it takes")                                           \
  row(cache_evictions, kCounter, "", "millrace_cache_evictions_total", "Dropped from memory for others")                          \
  row(cache_disk_entries, kGauge, "", "millrace_cache_disk_entries", "What is kept in the state directory")                       \
  row(cache_disk_bytes, kGauge, "bytes", "millrace_cache_disk_bytes", "The bytes of it")                                          \
  row(cache_disk_pending, kGauge, "", "millrace_cache_disk_pending", "What is not yet written to the state directory")            \
  row(cache_disk_evictions, kCounter, "", "millrace_cache_disk_evictions_total", "Dropped from the state directory for want of room") \
  row(cache_disk_hits, kCounter, "", "millrace_cache_disk_hits_total", "What was read from the state directory")                  \
  row(cache_saved, kCounter, "seconds", "millrace_cache_saved_seconds_total", "Lane time that first accesses of the same files would have taken more") \
  row(cache_made, kCounter, "", "millrace_cache_made_total", "Made to be kept")                                                  \
  row(cache_making, kCounter, "seconds", "millrace_cache_making_seconds_total", "Lane time spent making what is kept") \
  row(decoder_starts, kCounter, "", "millrace_decoder_starts_total", "Decoder processes started, with cpu.isolation")             \
  row(decoder_deaths, kCounter, "", "millrace_decoder_deaths_total", "Decoder processes that crashed, were killed or were too late at an image") \
  row(card_batches, kCounter, "", "millrace_card_batches_total", "Batches that FPGA cards have completed") \
  row(card_in_flight, kGauge, "", "millrace_card_batches_in_flight", "Batches that FPGA cards have now") \
  row(card_busy, kCounter, "seconds", "millrace_card_busy_seconds_total", "Time that batches were on FPGA cards, each for itself") \
  row(card_bytes, kCounter, "bytes", "millrace_card_bytes_total", "Bytes moved to FPGA cards and back") \
  row(card_left, kCounter, "", "millrace_card_left_total", "Images that FPGA cards had and left to others") \
  row(card_losses, kCounter, "", "millrace_card_losses_total", "Batches that were lost with an FPGA card, and made elsewhere") \
  row(card_swaps, kCounter, "", "millrace_card_swaps_total", "Times that an FPGA card was programmed for other images") \
  row(card_celsius, kGauge, "celsius", "millrace_card_temperature_celsius", "Temperature of FPGA cards: of each the hottest place, above all the sum") \
  row(card_power, kGauge, "watts", "millrace_card_power_watts", "Power that FPGA cards take") \
  row(roots, kGauge, "", "millrace_roots", "Folders beneath which the daemon reads") \
  row(roots_missing, kGauge, "", "millrace_roots_missing", "Of these, those that were not there when last asked for") \
  row(reads_stuck, kGauge, "", "millrace_reads_stuck", "Reads that have been at one file for over a second now: a file server may hang") \
  row(devices, kGauge, "", "millrace_devices", "Devices that make images, the processor's lanes as one") \
  row(devices_lost, kGauge, "", "millrace_devices_lost", "Of these, those that are lost now") \
  row(store_unusable, kGauge, "", "millrace_store_unusable", "1: what is kept of images is wanted on disk and cannot be written there now") \
  row(descriptors, kGauge, "", "millrace_descriptors", "Descriptors that the daemon has open, as of the last second") \
  row(descriptors_most, kGauge, "", "millrace_descriptors_most", "Descriptors that it may have open")

// Which counters are told by one label as well: id, label.
#define MILLRACE_LABELS(row)        \
  row(samples_completed, "backend") \
  row(samples_left, "backend") \
  row(batches_completed, "user")    \
  row(requests_refused, "code") \
  row(cache_hits, "kind") \
  row(cache_misses, "kind") \
  row(cache_rejected, "kind") \
  row(cache_entries, "kind") \
  row(cache_bytes, "kind") \
  row(cache_evictions, "kind") \
  row(cache_disk_entries, "kind") \
  row(cache_disk_bytes, "kind") \
  row(cache_disk_hits, "kind") \
  row(cache_saved, "kind") \
  row(cache_made, "kind") \
  row(cache_making, "kind") \
  row(decoder_deaths, "library") \
  row(card_batches, "backend") \
  row(card_in_flight, "backend") \
  row(card_busy, "backend") \
  row(card_bytes, "backend") \
  row(card_left, "backend") \
  row(card_losses, "backend") \
  row(card_swaps, "backend") \
  row(card_celsius, "backend") \
  row(card_power, "backend") \
  row(devices, "backend") \
  row(devices_lost, "backend")

// Durations by powers of two: id, name, help.
#define MILLRACE_HISTOGRAMS(row)                                                                                          \
  row(batch_latency, "millrace_batch_latency_seconds", "From a batch's admission, or its epoch's turn, to its hand-over") \
  row(fetch_latency, "millrace_fetch_latency_seconds", "Reading one image")                                               \
  row(decode_latency, "millrace_decode_latency_seconds", "Decoding one image")
// clang-format on

enum class MetricId : std::uint32_t {
#define MILLRACE_ID(id, kind, unit, name, help) id,
  MILLRACE_METRICS(MILLRACE_ID)
#undef MILLRACE_ID
      kCount
};

enum class HistogramId : std::uint32_t {
#define MILLRACE_ID(id, name, help) id,
  MILLRACE_HISTOGRAMS(MILLRACE_ID)
#undef MILLRACE_ID
      kCount
};

// The place of a counter's cells by label; kCount: it has no label.
enum class LabelId : std::uint32_t {
#define MILLRACE_ID(id, label) id,
  MILLRACE_LABELS(MILLRACE_ID)
#undef MILLRACE_ID
      kCount
};
constexpr LabelId label_of(MetricId metric) {
  switch (metric) {
#define MILLRACE_ID(id, label) \
  case MetricId::id:           \
    return LabelId::id;
    MILLRACE_LABELS(MILLRACE_ID)
#undef MILLRACE_ID
    default:
      return LabelId::kCount;
  }
}

struct MetricRow {
  MetricId id;
  MetricKind kind;
  std::string_view unit;
  std::string_view name;
  std::string_view help;
  std::string_view label;  // empty: it has none
};
std::span<const MetricRow> metric_table();

struct HistogramRow {  // all in seconds
  HistogramId id;
  std::string_view name;
  std::string_view help;
};
std::span<const HistogramRow> histogram_table();

class Counters {
 public:
  void add(MetricId id, std::uint64_t n = 1) {
    cell(id).fetch_add(static_cast<std::int64_t>(n), std::memory_order_relaxed);
  }
  void subtract(MetricId id, std::uint64_t n = 1) {
    cell(id).fetch_sub(static_cast<std::int64_t>(n), std::memory_order_relaxed);
  }
  // Of a gauge without a label, whose one writer knows it as a whole.
  void set(MetricId id, std::int64_t n) { cell(id).store(n, std::memory_order_relaxed); }
  // Of a counter with a label. REQUIRES: `value` is value_of() the same counter.
  void add(MetricId id, LabelValue value, std::uint64_t n = 1) {
    add(id, n);
    labelled(id).add(value, static_cast<std::int64_t>(n));
  }
  void subtract(MetricId id, LabelValue value, std::uint64_t n = 1) {
    subtract(id, n);
    labelled(id).add(value, -static_cast<std::int64_t>(n));
  }
  // "cpu" of samples_completed: has a lock, so code that counts often keeps it. REQUIRES: a counter with a label.
  LabelValue value_of(MetricId id, std::string_view value) { return labelled(id).value_of(value); }
  void add(MetricId id, std::string_view value) { add(id, value_of(id, value)); }

  // Of a counter of seconds.
  void add(MetricId id, std::chrono::nanoseconds took) { add(id, static_cast<std::uint64_t>(whole(took).count())); }

  void add(HistogramId id, std::chrono::nanoseconds took) {
    histograms_[static_cast<std::size_t>(id)].add(whole(took));
  }

  std::int64_t stored(MetricId id) const {
    return cells_[static_cast<std::size_t>(id)].load(std::memory_order_relaxed);
  }

  // In the row's unit: microseconds become seconds.
  double value(const MetricRow& row) const { return in_unit(row, stored(row.id)); }
  static double in_unit(const MetricRow& row, std::int64_t stored);
  // By label, as stored; none for a counter without one.
  std::vector<LabelledCount> labelled_counts(MetricId id) const;
  const Histogram& histogram(HistogramId id) const { return histograms_[static_cast<std::size_t>(id)]; }

 private:
  static std::chrono::microseconds whole(std::chrono::nanoseconds took) {
    return std::chrono::duration_cast<std::chrono::microseconds>(took);
  }
  Labelled& labelled(MetricId id) { return labelled_[static_cast<std::size_t>(label_of(id))]; }
  std::atomic<std::int64_t>& cell(MetricId id) { return cells_[static_cast<std::size_t>(id)]; }

  // Writers: any thread. Readers: statistics. Each cell stands for itself.
  std::array<std::atomic<std::int64_t>, static_cast<std::size_t>(MetricId::kCount)> cells_{};
  std::array<Labelled, static_cast<std::size_t>(LabelId::kCount)> labelled_;
  std::array<Histogram, static_cast<std::size_t>(HistogramId::kCount)> histograms_;
};

}  // namespace millrace
