#include "proto/trace/packet_writer.h"

#include <time.h>

namespace millrace {
namespace {

using perfetto::TrackEvent;

enum ClockId : std::uint32_t { kRealtime = 1, kMonotonic = 3, kBootTime = 6 };

constexpr std::size_t kAPacket = 24, kANote = 8;  // bytes beside texts

std::uint64_t reading_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::size_t add_notes(TrackEvent& event, TraceNotes notes) {
  std::size_t bytes = 0;
  for (const TraceNote& note : notes) {
    perfetto::DebugAnnotation& written = *event.add_debug_annotations();
    written.set_name(std::string(note.name));
    bytes += kANote + note.name.size();
    if (const auto* number = std::get_if<std::uint64_t>(&note.value)) written.set_uint_value(*number);
    if (const auto* text = std::get_if<std::string_view>(&note.value)) {
      written.set_string_value(std::string(*text));
      bytes += text->size();
    }
  }
  return bytes;
}

}  // namespace

perfetto::TracePacket& PacketWriter::add() {
  perfetto::TracePacket& packet = *trace_.add_packet();
  packet.set_trusted_packet_sequence_id(sequence_);
  if (missing_) packet.set_previous_packet_dropped(1);
  missing_ = false;
  bytes_ += kAPacket;
  return packet;
}

void PacketWriter::clocks() {
  perfetto::ClockSnapshot& snapshot = *add().mutable_clock_snapshot();
  for (const auto& [id, clock] : {std::pair{kRealtime, CLOCK_REALTIME}, std::pair{kMonotonic, CLOCK_MONOTONIC},
                                  std::pair{kBootTime, CLOCK_BOOTTIME}}) {
    perfetto::ClockSnapshot::Clock& one = *snapshot.add_clocks();
    one.set_clock_id(id);
    one.set_timestamp(reading_of(clock));
  }
}

perfetto::TrackDescriptor& PacketWriter::describe(std::uint64_t uuid, const std::string& name) {
  perfetto::TrackDescriptor& descriptor = *add().mutable_track_descriptor();
  descriptor.set_uuid(uuid);
  bytes_ += name.size() + kAPacket;
  return descriptor;
}

void PacketWriter::process(std::uint64_t uuid, std::int32_t pid, const std::string& name) {
  perfetto::ProcessDescriptor& process = *describe(uuid, name).mutable_process();
  process.set_pid(pid);
  process.set_process_name(name);
}

void PacketWriter::thread(std::uint64_t uuid, std::int32_t pid, std::int64_t tid, const std::string& name) {
  perfetto::ThreadDescriptor& thread = *describe(uuid, name).mutable_thread();
  thread.set_pid(pid);
  thread.set_tid(tid);
  thread.set_thread_name(name);
}

void PacketWriter::track(std::uint64_t uuid, std::uint64_t parent, const std::string& name) {
  perfetto::TrackDescriptor& descriptor = describe(uuid, name);
  descriptor.set_parent_uuid(parent);
  descriptor.set_name(name);
}

void PacketWriter::counter(std::uint64_t uuid, std::uint64_t parent, const std::string& name, CountUnit unit) {
  perfetto::TrackDescriptor& descriptor = describe(uuid, name);
  descriptor.set_parent_uuid(parent);
  descriptor.set_name(name);
  descriptor.mutable_counter()->set_unit(unit == CountUnit::kBytes ? perfetto::CounterDescriptor::UNIT_SIZE_BYTES
                                                                   : perfetto::CounterDescriptor::UNIT_COUNT);
}

TrackEvent& PacketWriter::event(TrackEvent::Type type, std::uint64_t track, std::int64_t at) {
  perfetto::TracePacket& packet = add();
  packet.set_timestamp(static_cast<std::uint64_t>(at));
  packet.set_timestamp_clock_id(kMonotonic);
  TrackEvent& event = *packet.mutable_track_event();
  event.set_type(type);
  event.set_track_uuid(track);
  return event;
}

void PacketWriter::begin(std::uint64_t track, std::int64_t at, std::string_view name, TraceNotes notes) {
  TrackEvent& slice = event(TrackEvent::TYPE_SLICE_BEGIN, track, at);
  slice.set_name(std::string(name));
  bytes_ += name.size() + add_notes(slice, notes);
}

void PacketWriter::end(std::uint64_t track, std::int64_t at, TraceNotes notes) {
  bytes_ += add_notes(event(TrackEvent::TYPE_SLICE_END, track, at), notes);
}

void PacketWriter::count(std::uint64_t track, std::int64_t at, std::int64_t value) {
  event(TrackEvent::TYPE_COUNTER, track, at).set_counter_value(value);
}

std::string PacketWriter::take() {
  std::string packets;
  trace_.SerializeToString(&packets);
  trace_.Clear();
  bytes_ = 0;
  return packets;
}

}  // namespace millrace
