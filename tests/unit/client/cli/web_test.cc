// What `millrace web` writes: figures in both forms, names of strangers, who may call it what, the page's policy.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "client/cli/web/exposition.h"
#include "client/cli/web/families.h"
#include "client/cli/web/host_names.h"
#include "client/cli/web/page.h"
#include "client/cli/web/process_figures.h"
#include "client/cli/web/statistics_page.h"
#include "daemon/observe/counters.h"
#include "tests/unit/client/cli/metrics_document.h"

namespace millrace::cli {
namespace {

using Form = Exposition::Form;

bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

std::string shown(const v1::GetStatisticsReply& statistics, Form form = Form::kText) {
  LabelPlaces places;
  places.look(statistics);
  return statistics_page(&statistics, places, {}, form);
}

std::string thread_name() {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  return name;
}

// Of all samples of a family, the sum.
double sum_of_family(const std::string& page, const std::string& name) {
  double sum = 0;
  for (std::size_t at = page.find("\n" + name + "{"); at != std::string::npos;
       at = page.find("\n" + name + "{", at + 1)) {
    const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

std::size_t samples_of_family(const std::string& page, const std::string& name) {
  std::size_t count = 0;
  for (std::size_t at = page.find("\n" + name + "{"); at != std::string::npos;
       at = page.find("\n" + name + "{", at + 1))
    ++count;
  return count;
}

TEST_CASE("a counter, a gauge, an info and a histogram in both forms", "[web]") {
  const auto write = [](Form form) {
    Exposition page(form);
    page.family({"x_read_seconds_total", FamilyKind::kCounter, "seconds", "Reading"});
    page.sample(1.5);
    page.family({"x_build_info", FamilyKind::kInfo, "", "Build"});
    page.sample(1, {{"version", "2"}});
    page.family({"x_wait_seconds", FamilyKind::kHistogram, "seconds", "Waiting"});
    page.histogram({{0.5, 1}, {1, 3}, {std::numeric_limits<double>::infinity(), 4}}, 7.25, 4);
    return std::move(page).text();
  };
  CHECK(write(Form::kText) ==
        "# HELP x_read_seconds_total Reading\n# TYPE x_read_seconds_total counter\nx_read_seconds_total 1.5\n"
        "# HELP x_build_info Build\n# TYPE x_build_info gauge\nx_build_info{version=\"2\"} 1\n"
        "# HELP x_wait_seconds Waiting\n# TYPE x_wait_seconds histogram\nx_wait_seconds_bucket{le=\"0.5\"} 1\n"
        "x_wait_seconds_bucket{le=\"1.0\"} 3\nx_wait_seconds_bucket{le=\"+Inf\"} 4\nx_wait_seconds_sum 7.25\n"
        "x_wait_seconds_count 4\n");
  CHECK(write(Form::kOpenMetrics) ==
        "# HELP x_read_seconds Reading\n# TYPE x_read_seconds counter\n# UNIT x_read_seconds seconds\n"
        "x_read_seconds_total 1.5\n"
        "# HELP x_build Build\n# TYPE x_build info\nx_build_info{version=\"2\"} 1\n"
        "# HELP x_wait_seconds Waiting\n# TYPE x_wait_seconds histogram\n# UNIT x_wait_seconds seconds\n"
        "x_wait_seconds_bucket{le=\"0.5\"} 1\nx_wait_seconds_bucket{le=\"1.0\"} 3\n"
        "x_wait_seconds_bucket{le=\"+Inf\"} 4\nx_wait_seconds_sum 7.25\nx_wait_seconds_count 4\n# EOF\n");
}

TEST_CASE("labels of strangers are text: quotes, ends of lines, control bytes, broken UTF-8, great length", "[web]") {
  const auto label = [](const std::string& value) {
    Exposition page(Form::kText);
    page.family({"x", FamilyKind::kGauge, "", "X"});
    page.sample(1, {{"name", value}});
    const std::string text = std::move(page).text();
    return text.substr(text.find('{'));
  };
  CHECK(label("a\"b") == "{name=\"a\\\"b\"} 1\n");
  CHECK(label("a\\b") == "{name=\"a\\\\b\"} 1\n");
  CHECK(label("a\n} 7\ny 8") == "{name=\"a\\\\x0a} 7\\\\x0ay 8\"} 1\n");
  CHECK(label("\x1b[31m") == "{name=\"\\\\x1b[31m\"} 1\n");
  CHECK(label("\xff") == "{name=\"\\\\xff\"} 1\n");
  CHECK(label("<script>alert(1)</script>") == "{name=\"<script>alert(1)</script>\"} 1\n");
  CHECK(label(std::string(5000, 'x')).size() < 300);
}

TEST_CASE("OpenMetrics is for those who ask for it", "[web]") {
  CHECK(asked_form("") == Form::kText);
  CHECK(asked_form("*/*") == Form::kText);
  CHECK(asked_form("text/plain;version=0.0.4") == Form::kText);
  CHECK(asked_form("application/openmetrics-text") == Form::kOpenMetrics);
  CHECK(asked_form("application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
                   "text/plain;version=0.0.4;q=0.5,*/*;q=0.1") == Form::kOpenMetrics);  // Prometheus
  CHECK(asked_form("application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.9") == Form::kText);
  CHECK(asked_form("application/openmetrics-text; q=0") == Form::kText);
  CHECK(asked_form("application/openmetrics-text; version=2.0.0") == Form::kText);
  CHECK(asked_form(";;;q=,,=;,application/openmetrics-text;q=x") == Form::kText);
}

TEST_CASE("a server is called by addresses, localhost and the names that it was given", "[web]") {
  const HostNames names({"GPU7.example.org"});
  for (const char* good : {"127.0.0.1", "127.0.0.1:9464", "10.1.2.3:80", "[::1]", "[::1]:9464", "[fe80::1]:1",
                           "localhost", "localhost:9464", "LocalHost:1", "gpu7.example.org", "gpu7.EXAMPLE.org:9464"})
    CHECK(names.has(good));
  for (const char* bad : {"", ":9464", "evil.example.org", "gpu7.example.org.evil.net", "localhost.evil.net",
                          "127.0.0.1.evil.net", "127.0.0.1:x", "localhost:123456", "[::1", "[evil]", "[::1]x", "::1",
                          "localhost:9464:1", "user@localhost", "localhost/x"})
    CHECK_FALSE(names.has(bad));
  CHECK_FALSE(names.has(std::string(100'000, 'a')));
}

TEST_CASE("the page's policy lets its own script and style work, and nothing else", "[web]") {
  // Hashes by: printf X | openssl sha256 -binary | base64
  CHECK(page_policy("<style>a</style><script>b</script>") ==
        "default-src 'none'; script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; style-src "
        "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'");
  CHECK(page_policy("nothing").find("script-src 'none'; style-src 'none'") != std::string::npos);

  const std::string page(page_text());
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("</html>") != std::string::npos);
  CHECK(page_policy(page).find("script-src 'sha256-") != std::string::npos);
  CHECK(page_policy(page).find("style-src 'sha256-") != std::string::npos);
  for (const char* elsewhere : {"src=", "href=\"http", "url(", "fetch(\"http", "@import", "import(",
                                "<link rel=\"stylesheet", " onclick=", " onload=", " style=\"", "innerHTML", "eval("})
    CHECK(page.find(elsewhere) == std::string::npos);
}

TEST_CASE("without a daemon the page of figures says so, and of itself the rest", "[web]") {
  for (const Form form : {Form::kText, Form::kOpenMetrics}) {
    const std::string page = statistics_page(nullptr, {}, {.connections = 3, .requests = 7, .asks = 2}, form);
    CHECK(has_line(page, "millrace_up 0"));
    CHECK(has_line(page, "millrace_web_connections 3"));
    CHECK(has_line(page, "millrace_web_requests_total 7"));
    CHECK(has_line(page, "millrace_web_asks_total 2"));
    CHECK(page.find("millrace_sessions") == std::string::npos);
  }
}

TEST_CASE("of many sessions, jobs and users the later ones are one, and sums stay right", "[web]") {
  v1::GetStatisticsReply statistics;
  double images = 0, cpu = 0;
  for (std::uint64_t i = 200; i > 0; --i) {
    v1::SessionStatistics& session = *statistics.add_sessions();
    session.set_session_id(i);
    session.set_samples(i);
    v1::StateTime& state = *session.add_states();
    state.set_state("making");
    state.set_seconds(1);
    state.set_waited_seconds(0.5);
    v1::JobStatistics& job = *statistics.add_jobs();
    job.set_name("job " + std::to_string(i));
    job.set_uid(1000);
    job.mutable_cost()->set_lane_cpu_seconds(0.25);
    statistics.add_users()->set_uid(static_cast<std::uint32_t>(i));
    images += static_cast<double>(i);
    cpu += 0.25;
  }
  const std::string page = shown(statistics);
  CHECK(samples_of_family(page, "millrace_session_samples_total") == 64);
  CHECK(sum_of_family(page, "millrace_session_samples_total") == images);
  CHECK(has_line(page, "millrace_session_samples_total{session=\"1\"} 1"));  // the oldest keep their names
  CHECK(page.find("millrace_session_samples_total{session=\"other\"}") != std::string::npos);
  CHECK(page.find("session=\"200\"") == std::string::npos);
  CHECK(sum_of_family(page, "millrace_session_state_seconds_total") == 200);
  CHECK(sum_of_family(page, "millrace_session_waited_seconds_total") == 100);
  CHECK(samples_of_family(page, "millrace_job_images_total") == 64);
  CHECK(sum_of_family(page, "millrace_job_cpu_seconds_total") == cpu);
  CHECK(samples_of_family(page, "millrace_user_images_total") == 64);
}

v1::SessionStatistics& add_session(std::uint64_t id, std::uint64_t images, v1::GetStatisticsReply& statistics) {
  v1::SessionStatistics& session = *statistics.add_sessions();
  session.set_session_id(id);
  session.set_samples(images);
  session.set_slots(3);
  v1::StateTime& state = *session.add_states();
  state.set_state("making");
  state.set_seconds(2);
  return session;
}

TEST_CASE("no counter of the other sessions falls when sessions end, and none leaves them", "[web]") {
  LabelPlaces places;
  const auto show = [&](std::uint64_t first, std::uint64_t last) {
    v1::GetStatisticsReply statistics;
    for (std::uint64_t id = first; id <= last; ++id) add_session(id, 10, statistics);
    places.look(statistics);
    return statistics_page(&statistics, places, {}, Form::kText);
  };
  CHECK(has_line(show(1, 65), "millrace_session_samples_total{session=\"other\"} 20"));
  const std::string fewer = show(10, 64);  // some with places have ended, and one of the others
  CHECK(has_line(fewer, "millrace_session_samples_total{session=\"other\"} 20"));
  CHECK(has_line(fewer, "millrace_session_state_seconds_total{session=\"other\",state=\"making\"} 4"));
  CHECK(has_line(fewer, "millrace_session_slots{session=\"other\"} 3"));  // of the one that is there
  CHECK(fewer.find("session=\"64\"") == std::string::npos);
  CHECK(has_line(show(10, 70), "millrace_session_samples_total{session=\"70\"} 10"));  // in a place that was free
  CHECK(has_line(show(70, 70), "millrace_session_samples_total{session=\"other\"} 20"));
}

TEST_CASE("a daemon that was started anew has all labels anew", "[web]") {
  LabelPlaces places;
  v1::GetStatisticsReply statistics;
  statistics.set_pid(1);
  statistics.set_uptime_seconds(100);
  for (std::uint64_t id = 1; id <= 64; ++id) add_session(id, 10, statistics);
  places.look(statistics);
  CHECK_FALSE(places.has(statistics.sessions(63)));
  statistics.set_uptime_seconds(1);
  statistics.mutable_sessions()->DeleteSubrange(0, 63);
  places.look(statistics);
  CHECK(places.has(statistics.sessions(0)));
  CHECK_FALSE(places.has_ended());
}

TEST_CASE("a job keeps its label whatever others are called, and one that works gets that of one that is over",
          "[web]") {
  LabelPlaces places;
  v1::GetStatisticsReply statistics;
  const auto look = [&](const std::string& name, std::uint32_t uid, bool open) {
    v1::GetStatisticsReply more;
    v1::JobStatistics& job = *more.add_jobs();
    job.set_name(name);
    job.set_uid(uid);
    job.set_open(open ? 1 : 0);
    more.MergeFrom(statistics);  // it comes first
    statistics = more;
    places.look(statistics);
    return places.has(statistics.jobs(0));
  };
  for (int i = 0; i < 63; ++i) CHECK(look("job " + std::to_string(i), 2000, true));
  CHECK_FALSE(look("aardvark", 1, true));
  for (int i = 1; i <= 63; ++i) CHECK(places.has(statistics.jobs(i)));
  statistics.mutable_jobs(40)->set_open(0);
  CHECK(look("ant", 1, true));
  CHECK_FALSE(places.has(statistics.jobs(41)));  // its images count as others' from now on
  statistics.mutable_jobs(41)->set_open(1);
  CHECK_FALSE(look("other", 1, false));
  CHECK_FALSE(places.has(statistics.jobs(42)));
}

TEST_CASE("two jobs of one name are their users', and a job called other is not the others", "[web]") {
  v1::GetStatisticsReply statistics;
  for (const std::uint32_t uid : {1u, 2u}) {
    v1::JobStatistics& job = *statistics.add_jobs();
    job.set_name("other");
    job.set_uid(uid);
    job.mutable_cost()->set_images(10 * uid);
  }
  const std::string page = shown(statistics);
  CHECK(has_line(page, "millrace_job_images_total{job_name=\"other\",uid=\"1\"} 10"));
  CHECK(has_line(page, "millrace_job_images_total{job_name=\"other\",uid=\"2\"} 20"));
}

TEST_CASE("a daemon that names a figure twice, or not as a figure is named, spoils no page", "[web]") {
  v1::GetStatisticsReply statistics;
  for (const char* name : {"millrace_x", "millrace_x", "millrace_up", "bad name", "", "a\nb", "7"}) {
    v1::Metric& metric = *statistics.add_metrics();
    metric.set_name(name);
    metric.set_kind(v1::METRIC_KIND_GAUGE);
    metric.set_help("Help\nof two lines \\ \"quoted\"");
    metric.set_value(5);
  }
  v1::Metric& labelled = *statistics.add_metrics();
  labelled.set_name("millrace_y_total");
  labelled.set_kind(v1::METRIC_KIND_COUNTER);
  labelled.set_label("no label");
  labelled.set_value(9);
  labelled.add_values()->set_value(9);
  const std::string page = shown(statistics);
  CHECK(has_line(page, "# HELP millrace_x Help\\nof two lines \\\\ \"quoted\""));
  CHECK(page.find("\nmillrace_x 5\n") == page.rfind("\nmillrace_x 5\n"));
  CHECK(has_line(page, "millrace_up 1"));
  CHECK(has_line(page, "millrace_y_total 9"));
  CHECK(page.find("bad name") == std::string::npos);
}

TEST_CASE("the names of figures fit both forms, and no two are one", "[web]") {
  std::set<std::string> names;
  const auto check = [&](std::string_view name, bool counter, std::string_view unit) {
    INFO(name);
    CHECK(is_metric_name(name));
    CHECK(name.ends_with("_total") == counter);
    const std::string family(name.substr(0, name.size() - (counter ? 6 : 0)));
    CHECK(names.insert(family).second);
    if (!unit.empty()) CHECK(family.ends_with("_" + std::string(unit)));
  };
  for (const MetricRow& row : metric_table()) check(row.name, row.kind == MetricKind::kCounter, row.unit);
  for (const HistogramRow& row : histogram_table()) check(row.name, false, "seconds");
  for (const WebFamilyRow& row : web_family_table())
    check(row.family.name, row.family.kind == FamilyKind::kCounter, row.family.unit);
}

TEST_CASE("the start of a process is the same whenever it is looked at", "[web]") {
  std::ifstream stat("/proc/self/stat");
  std::string line, skipped;
  std::getline(stat, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  double start = 0, uptime = 0;
  for (int field = 3; field <= 21; ++field) fields >> skipped;
  fields >> start;
  std::ifstream("/proc/uptime") >> uptime;
  const std::chrono::duration<double> age(uptime - start / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  const std::string before = thread_name();
  ::prctl(PR_SET_NAME, "mr-control");
  const auto first = process_figures(::getpid(), age);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto second = process_figures(::getpid(), age);
  ::prctl(PR_SET_NAME, before.c_str());
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->start_seconds == second->start_seconds);
  CHECK(first->start_seconds > 1.5e9);
}

TEST_CASE("/proc is believed of a daemon alone that is as old as it says", "[web]") {
  CHECK_FALSE(process_figures(1, std::chrono::seconds(1)));  // a process of another name
  CHECK_FALSE(process_figures(0, std::chrono::seconds(1)));
  CHECK_FALSE(process_figures(-5, std::chrono::seconds(1)));
}

TEST_CASE("the document of metrics has every figure", "[web]") {
  std::ifstream file(std::string(MILLRACE_SOURCE_DIR) + "/daemon/doc/metrics.md");
  const std::string document(std::istreambuf_iterator<char>(file), {});
  // A developer who changes a table prints the document anew: ninja millrace_print_metrics,
  // bin/millrace_print_metrics > daemon/doc/metrics.md
  REQUIRE(document == metrics_document());
}

}  // namespace
}  // namespace millrace::cli
