// Writes a recording: tracks, slices and counters become packets (trace_packet.proto).
//
//   writer.process(1, pid, "millraced"); writer.track(2, 1, "session 3");
//   writer.begin(2, at, "reading"); writer.end(2, later);
//   file << writer.take();
//
// Times are nanoseconds of CLOCK_MONOTONIC, std::chrono::steady_clock's. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "millrace/trace/trace_packet.pb.h"

namespace millrace {

enum class CountUnit : std::uint8_t { kCount, kBytes };

// What is said of a slice beside its name.
struct TraceNote {
  std::string_view name;
  std::variant<std::uint64_t, std::string_view> value;
};
using TraceNotes = std::initializer_list<TraceNote>;

class PacketWriter {
 public:
  // `sequence`: of who writes, not 0. Those who write into one file have different ones.
  explicit PacketWriter(std::uint32_t sequence) : sequence_(sequence) {}

  void clocks();  // what they show now; once, first

  void process(std::uint64_t uuid, std::int32_t pid, const std::string& name);
  void thread(std::uint64_t uuid, std::int32_t pid, std::int64_t tid, const std::string& name);
  void track(std::uint64_t uuid, std::uint64_t parent, const std::string& name);
  void counter(std::uint64_t uuid, std::uint64_t parent, const std::string& name, CountUnit unit);

  void begin(std::uint64_t track, std::int64_t at, std::string_view name, TraceNotes notes = {});
  void end(std::uint64_t track, std::int64_t at, TraceNotes notes = {});
  void count(std::uint64_t track, std::int64_t at, std::int64_t value);

  // The next packet says that some are missing before it.
  void some_are_missing() { missing_ = true; }

  std::size_t bytes() const { return bytes_; }  // about what take() will have
  // What was written since the last call: whole packets.
  std::string take();

 private:
  perfetto::TracePacket& add();
  perfetto::TrackDescriptor& describe(std::uint64_t uuid, const std::string& name);
  perfetto::TrackEvent& event(perfetto::TrackEvent::Type type, std::uint64_t track, std::int64_t at);

  const std::uint32_t sequence_;
  perfetto::Trace trace_;
  std::size_t bytes_ = 0;
  bool missing_ = false;
};

}  // namespace millrace
