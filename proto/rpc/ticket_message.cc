#include "proto/rpc/ticket_message.h"

#include "millrace/v1/ticket.pb.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/field.h"
#include "proto/rpc/parse_text.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {

Result<TensorTicket> ticket_from_text(const std::string& text_untrusted) {
  constexpr std::uint32_t kVersion = 1;
  v1::Ticket ticket;
  MILLRACE_TRY_VOID(parse_text(text_untrusted, ticket));
  if (ticket.version() != kVersion)
    return field_error("version", "must be 1, is " + std::to_string(ticket.version()) +
                                      ": a later version of millrace has written it, or it is no ticket");
  if (ticket.path().empty()) return field_error("path", "is not set");
  TensorTicket parsed{.path = ticket.path(),
                      .seed = ticket.seed(),
                      .epoch = ticket.epoch(),
                      .sample = ticket.sample(),
                      .view = ticket.view(),
                      .shape = {ticket.shape().begin(), ticket.shape().end()},
                      .crc32 = ticket.crc32()};
  MILLRACE_TRY_IN("recipe", parsed.recipe, from_message(ticket.recipe()));
  if (parsed.view >= views_of(parsed.recipe).size())
    return field_error("view", "must be less than the recipe's views (" +
                                   std::to_string(views_of(parsed.recipe).size()) + "), is " +
                                   std::to_string(parsed.view));
  MILLRACE_TRY(parsed.fidelity, from_message("fidelity", ticket.fidelity()));
  return parsed;
}

}  // namespace millrace
