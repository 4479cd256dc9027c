// A device's memory that sessions may have their tensors in, beside the host's. A device has at most one.
//
// Thread-bound(control), but for id(), name(), device() and most(), which never change.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/memory/arena.h"
#include "daemon/model/memory_id.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/shm/segment_layout.h"

namespace millrace {

// What a GPU shares at least of its memory, and in whole numbers of.
inline constexpr Bytes kGranule = 2_MiB;

using DeviceUuid = std::array<std::uint8_t, 16>;

// What was taken of it for one session. Thread-safe.
class TensorRoom {
 public:
  virtual ~TensorRoom() = default;
  virtual bool is_lost() const = 0;  // with the device: no arena can have it again
  // Its part of what most() bounds, alone: a process that has mapped the memory keeps it, whatever becomes of the room.
  virtual std::shared_ptr<const void> share() const = 0;
};

struct MadeArena {
  std::shared_ptr<Arena> arena;      // shared: the session's, and one a batch under way
  std::shared_ptr<TensorRoom> room;  // shared: with the arena, and with the list of who has mapped it
};

class TensorMemory {
 public:
  virtual ~TensorMemory() = default;

  virtual MemoryId id() const = 0;
  virtual const std::string& name() const = 0;  // to clients: "cuda:0"
  virtual DeviceUuid device() const = 0;        // by which a client finds it
  virtual Bytes most() const = 0;               // that all sessions may have of it together

  struct Order {
    std::uint32_t slots = 1;
    Bytes slot_bytes;
    std::uint32_t most_samples = 1;  // see Arena

    Bytes stride() const { return shm::slot_stride(slot_bytes); }  // from one slot to the next
    Bytes bytes() const { return stride() * slots; }
    Bytes charged() const { return align_up(bytes(), kGranule.count); }
  };
  // Slots of zeroes, one after the other. `again`: a room of here whose arena has gone, of an order of the same charged();
  // nullptr: another one. Never blocks; `done` is called once, on the control thread. kExhausted: most() is given away, or
  // others have the device's memory. kUnavailable: the device is lost, or `again` is. kUnsupported: it shares none.
  virtual void make(boost::asio::io_context& control, const Order& order, std::shared_ptr<TensorRoom> again,
                    std::function<void(Result<MadeArena>)> done) = 0;
};

}  // namespace millrace
