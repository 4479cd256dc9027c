#include "daemon/pipeline/reading_errors.h"

#include <string>

namespace millrace {
namespace {

Bytes slot_bytes(const Batch& batch) {
  return batch.arena().slot_bytes();
}

}  // namespace

Error host_lacks_for_long(const Error& lacking) {
  return Error{Code::kUnavailable,
               "the daemon lacks what it needs to read files, and waited for it in vain (" + lacking.message +
                   "): no sample is bad and none was left out; try again or resume later, or give the "
                   "daemon more (LimitNOFILE=, memory)"};
}

Error root_missing(const Error& missing) {
  return Error{Code::kUnavailable, missing.message + "; the epoch breaks off, no sample of it counts as bad, and a " +
                                       "position goes on where it is (set on_error to take such samples for bad ones)"};
}

Error no_room_in_slot(const Batch& batch, std::uint32_t index, Bytes needed) {
  return Error{Code::kExhausted,
               "its " + to_text(batch.sample(index).bytes) + " of pixels do not fit into the session's slots of " +
                   to_text(slot_bytes(batch)) +
                   " beside the packed batch's smaller images: open the session with slot_bytes of at least " +
                   std::to_string(needed.count) + ", make it smaller by the recipe, or submit fewer samples at once"};
}

Error slot_too_small(const Batch& batch, const Overflow& over) {
  const std::uint32_t largest = over.samples.front();
  return Error{Code::kExhausted, "the packed batch needs " + to_text(over.needed) + ", of which " +
                                     source_name(batch.request().samples[largest].source) + " takes " +
                                     to_text(batch.sample(largest).bytes) + ", and the session's slots have " +
                                     to_text(slot_bytes(batch)) + ": open the session with slot_bytes of at least " +
                                     std::to_string(over.needed.count) +
                                     ", submit fewer samples at once, or have on_error leave out what does not fit"};
}

}  // namespace millrace
