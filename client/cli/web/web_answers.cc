#include "client/cli/web/web_answers.h"

#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "client/cli/text/json.h"
#include "client/cli/web/page.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kWhy = "/api/why";

std::shared_ptr<const std::string> shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

unsigned status_of(const Error& error) {
  switch (error.code) {
    case Code::kNotFound:
      return 404;
    case Code::kUnsupported:
      return 501;
    case Code::kDeadline:
      return 504;
    default:
      return 503;
  }
}

// {"error": "cannot reach the daemon at ..."}
WebAnswer refused(unsigned status, std::string_view why_untrusted) {
  Json json;
  json.begin_object().member("error", printable(why_untrusted)).end_object();
  return {.status = status, .content_type = kJson, .body = shared(json.text() + "\n")};
}

// protobuf's own: names in camelCase, 64-bit numbers as text, bytes in base64. Zeros are printed as well.
std::string json_of(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text + "\n" : std::string();
}

WebAnswer json_answer(std::shared_ptr<const std::string> text) {
  if (text->empty()) return refused(502, "what the daemon says is no text");
  return {.content_type = kJson, .body = std::move(text)};
}

// Paths are for the session's user and administrators: here anybody asks.
std::string without_paths(v1::GetStatisticsReply statistics) {
  statistics.clear_roots();
  statistics.clear_missing_roots();
  statistics.clear_settings_file();
  statistics.clear_indexes_not_kept();
  return json_of(statistics);
}

std::string without_paths(v1::ExplainReply explained) {
  for (v1::SessionFindings& session : *explained.mutable_sessions())
    for (v1::Finding& finding : *session.mutable_findings()) finding.clear_paths();
  return json_of(explained);
}

// The session of "/api/why/17"; 0: of "/api/why".
std::optional<std::uint64_t> session_of(std::string_view path_untrusted) {
  std::string_view rest = path_untrusted.substr(kWhy.size());
  if (rest.empty()) return 0;
  rest.remove_prefix(1);
  std::uint64_t id = 0;
  const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), id);
  if (wrong != std::errc() || end != rest.data() + rest.size() || id == 0) return std::nullopt;
  return id;
}

bool is_why(std::string_view path_untrusted) {
  return path_untrusted == kWhy || path_untrusted.starts_with(std::string(kWhy) + "/");
}

// Whether one of the query's parts, which "&" stands between, is "history=1".
bool wants_history(std::string_view query_untrusted) {
  return ("&" + std::string(query_untrusted) + "&").find("&history=1&") != std::string::npos;
}

}  // namespace

WebAnswers::WebAnswers(DaemonLink& link, std::function<WebFigures()> own)
    : link_(link), own_(std::move(own)), policy_(page_policy(page_text())) {}

void WebAnswers::answer(const WebRequest& request, HttpConnection::Reply reply) {
  const std::string& path = request.path_untrusted;
  if (path == "/") return reply(page());
  if (path == "/metrics") return metrics(request, std::move(reply));
  if (path == "/healthz") return reply(words(200, "ok"));
  if (path == "/api/statistics") return statistics(std::move(reply));
  if (is_why(path)) return why(request, std::move(reply));
  reply(words(404, "there are /, /metrics, /healthz, /api/statistics, /api/why and /api/why/SESSION"));
}

WebAnswer WebAnswers::page() const {
  static const std::shared_ptr<const std::string> text = shared(std::string(page_text()));
  return {.content_type = "text/html; charset=utf-8", .body = text, .headers = {{"Content-Security-Policy", policy_}}};
}

void WebAnswers::metrics(const WebRequest& request, HttpConnection::Reply reply) {
  const Exposition::Form form = asked_form(request.accept_untrusted);
  link_.statistics([this, form, reply = std::move(reply)](const DaemonLink::Outcome<v1::GetStatisticsReply>& told) {
    Rendered& rendered = form == Exposition::Form::kText ? text_ : open_metrics_;
    const auto now = told ? *told : nullptr;
    if (!rendered.text || !now || rendered.of != now) {
      WebFigures own = own_();
      own.asks = link_.asks();
      if (now && now != looked_at_) places_.look(*now);
      if (now) looked_at_ = now;
      rendered = {now, shared(statistics_page(now.get(), places_, own, form))};
    }
    reply({.content_type = content_type(form), .body = rendered.text});
  });
}

void WebAnswers::statistics(HttpConnection::Reply reply) {
  link_.statistics([this, reply = std::move(reply)](const DaemonLink::Outcome<v1::GetStatisticsReply>& told) {
    if (!told) return reply(refused(status_of(told.error()), told.error().message));
    if (json_.of != *told) json_ = {*told, shared(without_paths(**told))};
    reply(json_answer(json_.text));
  });
}

void WebAnswers::why(const WebRequest& request, HttpConnection::Reply reply) {
  const std::optional<std::uint64_t> session = session_of(request.path_untrusted);
  if (!session) return reply(refused(404, "a session's number follows /api/why/, as millrace stats shows it"));
  link_.explain(*session, wants_history(request.query_untrusted),
                [reply = std::move(reply)](const DaemonLink::Outcome<v1::ExplainReply>& told) {
                  if (!told) return reply(refused(status_of(told.error()), told.error().message));
                  reply(json_answer(shared(without_paths(**told))));
                });
}

}  // namespace millrace::cli
