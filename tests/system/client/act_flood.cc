// Clients that keep the daemon busy with what costs them nothing.
#include <sys/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "millrace/client.h"
#include "tests/support/host/cancelled_calls.h"
#include "tests/support/host/reply_frames.h"
#include "tests/system/client/acts.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"

namespace millrace {

// Until it is told to come back later.
int act_cancel_calls(const std::string& socket, Arguments arguments) {
  const std::string method = option(arguments, "method", "/millrace.v1.Statistics/Get");
  std::uint64_t begun = 0;
  say("begins");
  while (true) {
    CancelledCalls calls(socket, method);
    while (calls.some_more()) {
    }
    begun += calls.begun();
    if (calls.heard().find("in a minute") != std::string::npos) break;
    say("cut off");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  say("begun " + std::to_string(begun));
  say("turned away");
  return 0;
}

int act_ask_statistics(const std::string& socket, Arguments) {
  constexpr int kAtOnce = 8;
  Client client = need(Client::connect(socket));
  std::vector<std::thread> asking;
  for (int i = 0; i < kAtOnce; ++i) {
    asking.emplace_back([&client] {
      while (true) {
        static_cast<void>(client.statistics());
        say("done");
      }
    });
  }
  for (std::thread& one : asking) one.join();
  return 0;
}

// Nothing is answered, so nothing has to be read.
int act_send_cancels(const std::string& socket, Arguments) {
  constexpr int kAtOnce = 1'000;
  const RawSession session(socket, {});
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_batch_id(1);
  std::string frames;
  for (int i = 0; i < kAtOnce; ++i) frames += framed(cancel);
  while (true) {
    for (std::size_t sent = 0; sent < frames.size();) {
      const ssize_t more = ::send(session.replies.get(), frames.data() + sent, frames.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) throw std::runtime_error("the reply socket has ended");
      sent += static_cast<std::size_t>(more);
    }
    say("done");
  }
}

}  // namespace millrace
