// `millrace web` beside a real daemon: what it serves, and that it goes on when the daemon does not.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/web/web_server.h"

namespace millrace {
namespace {

constexpr const char* kOpenMetricsAccept = "Accept: application/openmetrics-text;version=1.0.0\r\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct WebMill {
  explicit WebMill(DaemonSpec spec = {})
      : daemon([&] {
          write_image_folder(folder / "pictures", {.images = 16, .classes = 2});
          spec.roots = {folder.path()};
          return spec;
        }()),
        web(daemon.socket()) {}

  TempFolder folder;
  Daemon daemon;
  WebServer web;
};

TEST_CASE("what the daemon counts is there in both forms, as it is there over gRPC", "[system]") {
  const WebMill mill;
  Session session =
      need(mill.daemon.connect().open_session({.name = "resnet \"50\" <b>\\", .slots = 2, .slot_bytes = 1_MiB}));
  const Dataset dataset = need(session.open_dataset(mill.folder / "pictures"));
  {
    Epoch epoch = session.epoch(dataset, {.batch = 4, .recipe = Recipe::train(64), .seed = 1});
    while (const std::optional<Batch> batch = need(epoch.next())) CHECK_FALSE(batch->failure);
  }
  REQUIRE(eventually([&] { return mill.web.figure("millrace_samples_total{backend=\"cpu\"}") == 16; }));

  const HttpReply text = mill.web.get("/metrics");
  const HttpReply open = mill.web.get("/metrics", kOpenMetricsAccept);
  REQUIRE(text.status == 200);
  REQUIRE(open.status == 200);
  CHECK(has(text.head, "Content-Type: text/plain; version=0.0.4"));
  CHECK(has(open.head, "Content-Type: application/openmetrics-text; version=1.0.0"));
  CHECK(open.body.ends_with("# EOF\n"));
  CHECK_FALSE(has(text.body, "# EOF"));
  for (const Metric& metric : need(mill.daemon.connect().statistics()).metrics) {
    INFO(metric.name);
    CHECK(has(text.body, "# TYPE " + metric.name + " "));
  }
  CHECK(has(open.body, "# TYPE millrace_samples counter\n"));
  CHECK(has(open.body, "millrace_batch_latency_seconds_count 4\n"));
  const std::string id = std::to_string(session.id());
  CHECK(has(text.body, "millrace_session_samples_total{session=\"" + id + "\"} 16\n"));
  CHECK(has(text.body, "millrace_session_state_seconds_total{session=\"" + id + "\",state=\"making\"} "));
  CHECK(has(text.body, "millrace_session_waited_seconds_total{session=\"" + id + "\",state=\"reading\"} "));
  CHECK(has(text.body, "name=\"resnet \\\"50\\\" <b>\\\\\""));
  CHECK(mill.web.figure("millrace_up") == 1);
  CHECK(has(text.body, "millrace_build_info{version=\""));
  CHECK(mill.web.figure("process_resident_memory_bytes") > 1e6);
  CHECK(mill.web.figure("process_threads") > 2);
}

TEST_CASE("JSON is the daemon's message, without paths", "[system]") {
  const WebMill mill;
  const Session session = need(mill.daemon.connect().open_session({.name = "one", .slots = 2, .slot_bytes = 1_MiB}));
  const HttpReply reply = mill.web.get("/api/statistics");
  REQUIRE(reply.status == 200);
  CHECK(has(reply.head, "Content-Type: application/json"));
  const auto told = parsed(reply.body);
  CHECK(told.get<int>("pid") == mill.daemon.pid());
  const auto& one = told.get_child("sessions").front().second;
  CHECK(one.get<std::string>("sessionId") == std::to_string(session.id()));
  CHECK(one.get<std::string>("name") == "one");
  CHECK(one.get<std::string>("badSamples") == "0");  // zeros are printed
  CHECK(told.get_child("roots").empty());
  CHECK(told.get<std::string>("settingsFile").empty());
  CHECK_FALSE(has(reply.body, mill.folder.path()));
}

TEST_CASE("why sessions wait is told as the daemon tells it, and a session that is not there is not found",
          "[system]") {
  const WebMill mill;
  const Session session = need(mill.daemon.connect().open_session({.name = "one", .slots = 2, .slot_bytes = 1_MiB}));
  const std::string id = std::to_string(session.id());
  const auto explained = mill.daemon.connect().explain(0);
  const bool older = !explained && explained.error().code == Code::kUnsupported;
  if (!older) need(explained);
  for (const std::string& target : {std::string("/api/why"), std::string("/api/why?history=1"), "/api/why/" + id,
                                    "/api/why/" + id + "?history=1"}) {
    const HttpReply reply = mill.web.get(target);
    INFO(target << ": " << reply.body);
    CHECK(reply.status == (older ? 501 : 200));
    CHECK(has(reply.head, "Content-Type: application/json"));
    if (older) {
      CHECK(has(parsed(reply.body).get<std::string>("error"), "older than this program"));
    } else {
      CHECK(parsed(reply.body).get_child("sessions").front().second.get<std::string>("sessionId") == id);
    }
  }
  CHECK(mill.web.get("/api/why/4000000000").status == (older ? 501 : 404));
  for (const char* none :
       {"/api/why/", "/api/why/0", "/api/why/x", "/api/why/-1", "/api/why/1/2", "/api/why/99999999999999999999999"})
    CHECK(mill.web.get(none).status == 404);
}

TEST_CASE("GET and HEAD alone, of what is there, under names that are ours", "[system]") {
  const WebMill mill;
  const HttpReply page = mill.web.get("/");
  CHECK(page.status == 200);
  CHECK(has(page.head, "Content-Type: text/html; charset=utf-8"));
  CHECK(has(page.head, "Content-Security-Policy: default-src 'none'; script-src 'sha256-"));
  CHECK(has(page.head, "frame-ancestors 'none'"));
  CHECK(page.body.starts_with("<!DOCTYPE html>"));
  for (const char* target : {"/", "/metrics", "/api/statistics", "/healthz", "/nothing"}) {
    const HttpReply got = mill.web.get(target), headed = mill.web.get(target, "", "HEAD");
    INFO(target);
    for (const char* always : {"Cache-Control: no-store", "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY",
                               "Content-Security-Policy: default-src 'none'", "Content-Length: "})
      CHECK(has(got.head, always));
    CHECK_FALSE(has(got.head, "Access-Control"));
    CHECK(headed.status == got.status);
    CHECK(headed.body.empty());
    CHECK(has(headed.head, "Content-Length: "));
  }
  CHECK(mill.web.get("/healthz").body == "ok\n");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "BREW"}) {
    INFO(method);
    const HttpReply refused = mill.web.get("/metrics", "", method);
    CHECK(refused.status == 405);
    CHECK(has(refused.head, "Allow: GET, HEAD"));
  }
  for (const char* target : {"/nothing", "/metrics/", "/../etc/passwd", "/%2e%2e/etc/passwd", "//", "/page.html", "*"})
    CHECK(mill.web.get(target).status == 404);
  for (const char* host : {"evil.example.org", "localhost.evil.org", "", "a b"}) {
    INFO(host);
    const int status =
        mill.web.raw("GET /metrics HTTP/1.1\r\nHost: " + std::string(host) + "\r\nConnection: close\r\n\r\n").status;
    CHECK((status == 421 || status == 400));
    CHECK((status == 421) == (std::string(host).find("evil") != std::string::npos || std::string(host).empty() ||
                              std::string(host) == "a b"));
  }
  CHECK(mill.web.raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status == 400);
  CHECK(mill.web.raw("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.org\r\n\r\n").status == 400);
  CHECK(mill.web.get("http://localhost:9464/healthz").body == "ok\n");
  CHECK(mill.web.get("http://localhost").body.starts_with("<!DOCTYPE html>"));
  CHECK(mill.web.get("http://evil.example.org/healthz").status == 421);
  CHECK(mill.web.raw("GET http://localhost/ HTTP/1.1\r\nHost: evil.org\r\nConnection: close\r\n\r\n").status == 421);
  const WebServer named(mill.daemon.socket(), {"--listen", "127.0.0.1:0", "--host", "gpu7.example.org"});
  CHECK(named.raw("GET / HTTP/1.1\r\nHost: GPU7.example.org:80\r\nConnection: close\r\n\r\n").status == 200);
  CHECK(named.raw("GET / HTTP/1.1\r\nHost: gpu8.example.org\r\nConnection: close\r\n\r\n").status == 421);
}

TEST_CASE("one connection carries many requests, also such that come at once", "[system]") {
  const WebMill mill;
  const UniqueFd socket = connected_to(mill.web.port());
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  sends(socket, requests + "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string all = rest_of(socket);
  std::size_t answers = 0;
  for (std::size_t at = all.find("HTTP/1.1 200"); at != std::string::npos; at = all.find("HTTP/1.1 200", at + 1))
    ++answers;
  CHECK(answers == 21);
}

TEST_CASE("more sessions than a label has values: the later ones are one, and the sum is right", "[system]") {
  const WebMill mill({.limits = "sessions = 80\nsessions_per_user = 80\n"});
  std::vector<Session> sessions;
  Client client = mill.daemon.connect();
  for (int i = 0; i < 70; ++i) sessions.push_back(need(client.open_session({.slots = 1, .slot_bytes = 64_KiB})));
  REQUIRE(eventually([&] { return mill.web.figure("millrace_sessions") == 70; }));
  CHECK(mill.web.figure("millrace_session_slots{session=\"other\"}") == 7);
  CHECK(mill.web.figure(
            "millrace_session_info{session=\"other\",name=\"other\",job_name=\"other\",uid=\"other\",pid=\"other\"}") ==
        1);
}

TEST_CASE("without a daemon it says so, and goes on when one is there, is killed and comes back", "[system]") {
  WebMill mill;
  REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 1; }));
  for (int i = 0; i < 2; ++i) {
    mill.daemon.kill(SIGKILL);
    REQUIRE(mill.daemon.wait());
    REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 0; }));
    CHECK(mill.web.get("/metrics", kOpenMetricsAccept).body.ends_with("# EOF\n"));
    CHECK_FALSE(mill.web.has_figure("millrace_sessions"));
    for (const char* target : {"/api/statistics", "/api/why", "/api/why/1"}) {
      const HttpReply reply = mill.web.get(target);
      CHECK(reply.status == 503);
      CHECK(has(parsed(reply.body).get<std::string>("error"), "cannot reach the daemon at "));
    }
    CHECK(mill.web.get("/").status == 200);
    CHECK(mill.web.get("/healthz").status == 200);
    mill.daemon.start();
    REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 1; }));
    CHECK(mill.web.get("/api/statistics").status == 200);
  }
}

TEST_CASE("a daemon that answers nothing costs a scrape a moment, not the server", "[system]") {
  const WebMill mill;
  REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 1; }));
  mill.daemon.kill(SIGSTOP);
  REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 0; }));
  CHECK(mill.web.get("/healthz").status == 200);
  const HttpReply reply = mill.web.get("/api/statistics");
  CHECK((reply.status == 503 || reply.status == 504));
  mill.daemon.kill(SIGCONT);
  CHECK(eventually([&] { return mill.web.figure("millrace_up") == 1; }));
}

TEST_CASE("however many scrape, the daemon is asked four times a second at most", "[system]") {
  const WebMill mill;
  REQUIRE(eventually([&] { return mill.web.figure("millrace_up") == 1; }));  // else all may share one failure
  const double before = mill.web.figure("millrace_web_asks_total");
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 8; ++i)
    scrapers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) CHECK_NOTHROW(mill.web.get(k % 2 == 0 ? "/metrics" : "/api/statistics"));
    });
  for (std::thread& one : scrapers) one.join();
  REQUIRE(eventually([&] { return mill.web.figure("millrace_web_requests_total") >= 400; }));
  const double asks = mill.web.figure("millrace_web_asks_total") - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CHECK(asks >= 1);
  CHECK(asks <= took.count() * 4 + 2);
}

TEST_CASE("SIGTERM ends it in order, with connections open", "[system]") {
  const WebMill mill;
  const UniqueFd idle = connected_to(mill.web.port());
  const UniqueFd begun = connected_to(mill.web.port());
  sends(begun, "GET /metr");
  CHECK(mill.web.get("/healthz").status == 200);
  mill.web.process().kill(SIGTERM);
  CHECK(mill.web.process().wait() == 0);
  CHECK(mill.web.process().errors().empty());
}

TEST_CASE("it listens at a path, which the user and the group may open, and takes it away again", "[system]") {
  const WebMill mill;
  const TempFolder folder;
  const std::string path = folder / "web.sock";
  for (const int ending : {SIGKILL, SIGTERM}) {  // what a killed one has left is no hindrance
    const WebServer server(mill.daemon.socket(), {"--listen", "unix:" + path});
    struct stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0660);
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    sends(socket, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    CHECK(parsed_reply(rest_of(socket)).status == 200);
    CHECK(run({"millrace", "web", "--listen", "unix:" + path, "--socket", mill.daemon.socket()}).status == 1);
    server.process().kill(ending);
    CHECK(server.process().wait());
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("it takes the socket that a service manager passes", "[system]") {
  const WebMill mill;
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(socket.get(), 64) == 0);
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  const auto start = [&](const std::string& count, std::vector<std::string> further) {
    std::vector<std::string> argv{
        "bash",
        "-c",
        "exec 3<&" + std::to_string(socket.get()) + "; LISTEN_PID=$$ LISTEN_FDS=" + count + " exec \"$0\" web \"$@\"",
        bin_folder() + "/millrace",
        "--socket",
        mill.daemon.socket()};
    argv.insert(argv.end(), further.begin(), further.end());
    return Process::spawn({.argv = argv});
  };
  {
    const Process both = start("1", {"--listen", "127.0.0.1:0"});
    CHECK(both.wait() == 2);
    CHECK(has(both.errors(), "has passed sockets already"));
  }
  const Process web = start("1", {});
  REQUIRE(web.wait_for("listening on http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))));
  const UniqueFd client = connected_to(ntohs(address.sin_port));
  sends(client, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  CHECK(has(parsed_reply(rest_of(client)).body, "\nmillrace_up 1\n"));
}

TEST_CASE("places to listen that are none are refused in words", "[system]") {
  for (const char* where : {"", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "example.org:80",
                            "::1:80", "[127.0.0.1]:80", "unix:"}) {
    const Ran ran = run({"millrace", "web", "--listen", where});
    INFO(where << ": " << ran.errors);
    CHECK(ran.status == 2);
    CHECK(has(ran.errors, "--listen"));
  }
  const WebMill mill;
  const Ran taken = run({"millrace", "web", "--listen", "127.0.0.1:" + std::to_string(mill.web.port())});
  CHECK(taken.status == 1);
  CHECK(has(taken.errors, "listening at 127.0.0.1:"));
}

}  // namespace
}  // namespace millrace
