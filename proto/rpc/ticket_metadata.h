// How a call of Sessions.Stream says from its very beginning whose it is. Constants.
#pragma once

namespace millrace {

// Metadata of the call: the session's ticket, as in Attach. A stream without it is served as well, but stands back
// behind those with it until it is attached.
inline constexpr const char* kTicketMetadata = "millrace-ticket-bin";

}  // namespace millrace
