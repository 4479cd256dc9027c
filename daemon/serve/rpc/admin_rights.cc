#include "daemon/serve/rpc/admin_rights.h"

#include "daemon/model/stopping.h"
#include "daemon/serve/parse/parse_message.h"
#include "daemon/serve/sessions/session.h"
#include "proto/rpc/status_map.h"

namespace millrace {

AdmittedAdmin admit_admin(const StreamSurroundings& around, const std::string& ticket_untrusted,
                          const std::string& what, grpc::CallbackServerContext& call) {
  if (around.stopping) return {.status = answer_with(stopping(), call), .who = {}};
  const Result<Ticket> ticket = parse_ticket(ticket_untrusted);
  if (!ticket) return {.status = to_status(ticket.error()), .who = {}};
  const auto caller = around.sessions.caller_with(*ticket);
  if (!caller) return {.status = ticket_status(caller.error()), .who = {}};
  if (around.admins.include(**caller)) return {.status = grpc::Status::OK, .who = who(**caller, "")};
  around.sessions.log_denied(**caller, what);
  return {.status = to_status(around.admins.refusal(**caller, what)), .who = {}};
}

}  // namespace millrace
