// A recording as a reader of it sees it: rows with slices that nest, and counters. For tests; throws std::runtime_error
// where it does not read, or where slices do not nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/trace/trace_packet.pb.h"

namespace millrace {

struct RecordedSlice {
  std::string row, of;  // its track's name, and its parent's
  std::string name;
  std::int64_t begin = 0, end = 0;  // 0: it has not ended
  std::size_t depth = 0;            // slices around it
  std::map<std::string, std::string> notes{};
};

struct Recorded {
  std::vector<RecordedSlice> slices;                        // as they begin
  std::map<std::string, std::vector<std::int64_t>> counts;  // values by "parent/name"
  std::uint64_t gaps = 0;                                   // packets that say that some are missing
  std::uint64_t open = 0;                                   // slices without an end

  std::vector<RecordedSlice> named(const std::string& row, const std::string& of = "", std::size_t depth = 0) const {
    std::vector<RecordedSlice> found;
    for (const RecordedSlice& slice : slices)
      if (slice.row == row && slice.depth == depth && slice.of.find(of) == 0) found.push_back(slice);
    return found;
  }
};

namespace recorded_detail {

struct RowOf {
  std::string name, parent;
  bool is_counter = false;
  std::vector<std::size_t> open;  // slices
};

inline std::string name_of(const perfetto::TrackDescriptor& row) {
  if (row.has_process()) return row.process().process_name();
  return row.has_thread() ? row.thread().thread_name() : row.name();
}

}  // namespace recorded_detail

inline Recorded read_recording(const std::string& bytes) {
  using perfetto::TrackEvent;
  perfetto::Trace trace;
  if (!trace.ParseFromString(bytes)) throw std::runtime_error("the recording is not whole");
  std::map<std::uint64_t, recorded_detail::RowOf> rows;
  std::vector<const perfetto::TracePacket*> events;
  Recorded read;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.has_previous_packet_dropped()) ++read.gaps;
    if (packet.has_track_event()) events.push_back(&packet);
    if (!packet.has_track_descriptor()) continue;
    const perfetto::TrackDescriptor& row = packet.track_descriptor();
    const auto parent = rows.find(row.parent_uuid());
    const std::string of = parent == rows.end() ? "" : parent->second.name;
    if (!rows.emplace(row.uuid(), recorded_detail::RowOf{recorded_detail::name_of(row), of, row.has_counter(), {}})
             .second)
      throw std::runtime_error("two rows have one number");
  }
  std::ranges::stable_sort(events, {}, [](const auto* packet) { return packet->timestamp(); });
  for (const perfetto::TracePacket* packet : events) {
    const TrackEvent& event = packet->track_event();
    const auto at = static_cast<std::int64_t>(packet->timestamp());
    const auto found = rows.find(event.track_uuid());
    if (found == rows.end()) throw std::runtime_error("an event is in no row");
    recorded_detail::RowOf& row = found->second;
    if (row.is_counter != (event.type() == TrackEvent::TYPE_COUNTER)) throw std::runtime_error("a row of two kinds");
    if (row.is_counter) read.counts[row.parent + "/" + row.name].push_back(event.counter_value());
    std::map<std::string, std::string> notes;
    for (const perfetto::DebugAnnotation& note : event.debug_annotations())
      notes[note.name()] = note.has_uint_value() ? std::to_string(note.uint_value()) : note.string_value();
    if (event.type() == TrackEvent::TYPE_SLICE_BEGIN) {
      read.slices.push_back({row.name, row.parent, event.name(), at, 0, row.open.size(), std::move(notes)});
      row.open.push_back(read.slices.size() - 1);
    }
    if (event.type() != TrackEvent::TYPE_SLICE_END) continue;
    if (row.open.empty()) throw std::runtime_error("a slice ends that has not begun: " + row.name);
    RecordedSlice& slice = read.slices[row.open.back()];
    slice.end = at;
    slice.notes.merge(notes);
    row.open.pop_back();
  }
  for (const auto& [uuid, row] : rows) read.open += row.open.size();
  return read;
}

}  // namespace millrace
