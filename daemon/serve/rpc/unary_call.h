// Unary calls that the control thread answers.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/serve/parse/parse_message.h"
#include "proto/rpc/known.h"
#include "proto/rpc/status_map.h"

namespace millrace {

// true: the request is of a later version, and the call has been told so.
template <class Request>
bool refuses_unknown(grpc::ServerUnaryReactor& call, const Request& request_untrusted) {
  if (!has_unknown_fields(request_untrusted)) return false;
  call.Finish(to_status(unknown_field(request_untrusted)));
  return true;
}

// A unary call answered on the control thread by `work`, which returns its status, unless the request is of a later
// version.
template <class Request, class Work>
grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext& call, const Request& request_untrusted,
                                 boost::asio::io_context& control, Work work) {
  grpc::ServerUnaryReactor* reactor = call.DefaultReactor();
  if (refuses_unknown(*reactor, request_untrusted)) return reactor;
  boost::asio::post(control, [reactor, work = std::move(work)]() mutable { reactor->Finish(work()); });
  return reactor;
}

}  // namespace millrace
