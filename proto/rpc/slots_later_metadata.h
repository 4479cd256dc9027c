// How a call of Sessions.Open says that its client can do with a session whose slots are still being filled. Constants.
#pragma once

namespace millrace {

// Metadata of the call, any value. The client maps the segment at the size that the reply and the hand-off say although
// its object is shorter than that for now, and touches no slot before it is handed a batch in it. Without it a session
// opens when all of its slots are filled. Metadata, and no field of the request, because a daemon that does not know it
// passes over it and fills all the same.
inline constexpr const char* kSlotsLaterMetadata = "millrace-slots-later";

}  // namespace millrace
