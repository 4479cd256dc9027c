// Clients of `millrace web` that mean no good: it stays bounded, others are served, and the daemon does not notice.
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/web/web_server.h"

namespace millrace {
namespace {

struct HostileMill {
  HostileMill() : web(daemon.socket()) {
    REQUIRE(eventually([&] { return web.figure("millrace_up") == 1; }));
  }

  Daemon daemon{DaemonSpec{}};
  WebServer web;
};

std::size_t descriptors_of(pid_t pid) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    ++count;
  return count;
}

double resident_mebibytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      double kibibytes = 0;
      status >> kibibytes;
      return kibibytes / 1024;
    }
  return 0;
}

TEST_CASE("thousands of silent connections keep nobody from a scrape, and are few at a time", "[system]") {
  const HostileMill mill;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t at_once = std::min<std::size_t>(limit.rlim_cur - 200, 2'000);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 10'000; ++i) {
    if (silent.size() >= at_once)
      silent.erase(silent.begin(), silent.begin() + static_cast<std::ptrdiff_t>(at_once / 2));
    silent.push_back(connected_to(mill.web.port()));
    if (i % 1'000 == 0) CHECK(mill.web.get("/metrics").status == 200);
  }
  CHECK(mill.web.figure("millrace_up") == 1);
  CHECK(mill.web.figure("millrace_web_connections") <= 64);
  CHECK(mill.web.figure("millrace_web_evicted_total") >=
        1'000);  // how many were given up here before their turn is chance
  CHECK(descriptors_of(mill.web.process().pid()) < 100);
  CHECK(need(mill.daemon.connect().ping()).count() > 0);
}

TEST_CASE("a request whose head does not end is refused and closed", "[system]") {
  const HostileMill mill;
  for (const bool one_line : {true, false}) {
    const UniqueFd socket = connected_to(mill.web.port());
    sends(socket, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    while (sends(socket, one_line ? std::string(512, 'x') : std::string("y\r\nX: ")) &&
           ::recv(socket.get(), nullptr, 0, MSG_DONTWAIT | MSG_PEEK) < 0) {
    }
    CHECK(parsed_reply(rest_of(socket)).status == 431);
  }
  CHECK(mill.web.get("/" + std::string(100'000, 'a')).status == 431);
  const UniqueFd slow = connected_to(mill.web.port());
  sends(slow, "GET / HT");
  CHECK(rest_of(slow).empty());  // closed after some seconds
  CHECK(mill.web.figure("millrace_up") == 1);
}

TEST_CASE("rubbish, bodies and halves of requests get an error or an end", "[system]") {
  const HostileMill mill;
  std::string bytes;
  for (int i = 0; i < 4'096; ++i) bytes += static_cast<char>(i * 37 % 251);
  for (const std::string& request :
       {bytes, std::string("\x16\x03\x01\x02\x00\x01\x00", 7) + std::string(100, '\0') + "\r\n\r\n",
        std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    const HttpReply reply = mill.web.raw(request);
    INFO(request << ": " << reply.head);
    CHECK(reply.status >= 400);
    CHECK(reply.status < 500);
    CHECK(reply.body.find("HTTP/1.1") == reply.body.rfind("HTTP/1.1"));  // what follows the head is no request
  }
  for (int i = 0; i < 200; ++i) {
    const UniqueFd socket = connected_to(mill.web.port());
    sends(socket,
          std::string("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").substr(0, static_cast<std::size_t>(i % 44)));
  }
  CHECK(mill.web.figure("millrace_up") == 1);
}

TEST_CASE("readers that take nothing, and halves of requests, hold no memory to speak of, and others are served",
          "[system]") {
  const HostileMill mill;
  std::vector<UniqueFd> readers;
  for (int i = 0; i < 100; ++i) {
    readers.push_back(connected_to(mill.web.port()));
    const int little = 2'048;
    ::setsockopt(readers.back().get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    std::string requests;
    for (int k = 0; k < 100; ++k) requests += "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    sends(readers.back(), requests);
  }
  std::vector<UniqueFd> halves;
  for (int i = 0; i < 200; ++i) {
    halves.push_back(connected_to(mill.web.port()));
    sends(halves.back(), "GET /metrics HT");
  }
  for (int i = 0; i < 20; ++i) CHECK(mill.web.get("/healthz").status == 200);
  if (!under_sanitizer()) CHECK(resident_mebibytes(mill.web.process().pid()) < 64);  // it would count freed memory
  CHECK(mill.web.figure("millrace_web_connections") <= 64);
  CHECK(need(mill.daemon.connect().ping()).count() > 0);
}

TEST_CASE("a client that asks for session after session keeps the daemon no busier", "[system]") {
  const HostileMill mill;
  const double before = mill.web.figure("millrace_web_asks_total");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 1; i <= 100; ++i) {
    const int status = mill.web.get("/api/why/" + std::to_string(i)).status;
    CHECK((status == 404 || status == 501));
  }
  const double asks = mill.web.figure("millrace_web_asks_total") - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CHECK(asks <= took.count() * 24 + 4);  // 20 explanations and 4 of all figures
}

TEST_CASE("it lives through question after question that no daemon answers", "[system]") {
  const TempFolder folder;
  const WebServer web(folder / "none.sock");
  for (int i = 1; i <= 200; ++i) REQUIRE(web.get("/api/why/" + std::to_string(i)).status == 503);
  CHECK(web.figure("millrace_up") == 0);
  web.process().kill(SIGTERM);
  CHECK(web.process().wait() == 0);
  CHECK(web.process().errors().empty());
}

TEST_CASE("reasons that nobody waits for any more keep later ones waiting no longer than the daemon does", "[system]") {
  HostileMill mill;
  mill.daemon.kill(SIGSTOP);
  for (int i = 1; i <= 60; ++i) {
    const UniqueFd gone = connected_to(mill.web.port());
    sends(gone, "GET /api/why/" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  const int status =
      mill.web.get("/api/why").status;  // not 0: each before it has three seconds of the daemon's silence
  CHECK((status == 503 || status == 504));
  const UniqueFd waits = connected_to(mill.web.port());
  for (int i = 1; i <= 60; ++i)
    sends(waits, "GET /api/why/" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  mill.web.process().kill(SIGTERM);
  CHECK(mill.web.process().wait() == 0);
  mill.daemon.kill(SIGCONT);
}

}  // namespace
}  // namespace millrace
