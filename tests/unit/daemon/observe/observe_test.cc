#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/observe/bounded_log.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/key_values.h"
#include "daemon/observe/log.h"
#include "proto/base/unique_fd.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

// What `call` writes to stderr.
template <class Call>
std::vector<std::string> lines_on_stderr(Call call) {
  const TempFolder folder;
  const std::string path = folder / "stderr";
  const UniqueFd kept(::dup(STDERR_FILENO));
  {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::dup2(file.get(), STDERR_FILENO) == STDERR_FILENO);
  }
  call();
  REQUIRE(::dup2(kept.get(), STDERR_FILENO) == STDERR_FILENO);
  std::vector<std::string> lines;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("a log line has time, level and text, and braces mean nothing", "[observe]") {
  const auto lines = lines_on_stderr([] {
    start_log(LogLevel::kInfo);
    log_info("session 3 of user 1000: {} %s {0}");
  });

  REQUIRE(lines.size() == 1);
  const std::regex shape(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info session 3 of user 1000: \{\} %s \{0\})");
  REQUIRE(std::regex_match(lines[0], shape));
}

TEST_CASE("a level shows itself and what is worse", "[observe]") {
  const auto shown = [](LogLevel level) {
    return lines_on_stderr([level] {
             start_log(level);
             log_error("e");
             log_warning("w");
             log_info("i");
             log_debug("d");
           })
        .size();
  };

  REQUIRE(shown(LogLevel::kError) == 1);
  REQUIRE(shown(LogLevel::kWarning) == 2);
  REQUIRE(shown(LogLevel::kInfo) == 3);
  REQUIRE_FALSE(logs(LogLevel::kDebug));
  REQUIRE(shown(LogLevel::kDebug) == 4);
  REQUIRE(logs(LogLevel::kDebug));
}

TEST_CASE("trouble that comes often is a line at once, then one in a while that counts", "[observe]") {
  const auto start = SeldomLine::Clock::now();
  SeldomLine trouble;

  const auto lines = lines_on_stderr([&] {
    start_log(LogLevel::kInfo);
    for (int i = 0; i <= 1'000; ++i) trouble.warn("no room", start + std::chrono::milliseconds(10) * i);
  });

  REQUIRE(lines.size() == 2);
  REQUIRE(lines[0].ends_with(" warning no room"));
  REQUIRE(lines[1].ends_with(" warning no room (1000 times since the last such line)"));
}

TEST_CASE("trouble that one user causes hides none of another's", "[observe]") {
  const auto start = SeldomLine::Clock::now();
  SeldomLineByUser trouble;

  const auto lines = lines_on_stderr([&] {
    start_log(LogLevel::kInfo);
    for (int i = 0; i < 10; ++i) trouble.warn(1000, "no room", start);
    trouble.warn(1001, "no room", start);
    trouble.warn(1001, "no room", start + std::chrono::seconds(10));
    trouble.warn(1000, "no room", start + std::chrono::seconds(11));
  });

  REQUIRE(lines.size() == 4);
  REQUIRE(lines[1].ends_with(" warning no room"));
  REQUIRE(lines[2].ends_with(" warning no room"));
  REQUIRE(lines[3].ends_with(" warning no room (10 times since the last such line)"));
}

TEST_CASE("a user who causes lines without end gets few, and others still theirs", "[observe]") {
  const auto start = LinesByUser::Clock::now();
  LinesByUser log;

  const auto lines = lines_on_stderr([&] {
    start_log(LogLevel::kInfo);
    for (int i = 0; i < 6'000; ++i) log.say(LogLevel::kInfo, 1, "flood", start + std::chrono::milliseconds(10) * i);
    log.say(LogLevel::kInfo, 2, "other", start + std::chrono::seconds(60));
    log.say(LogLevel::kInfo, 1, "again", start + std::chrono::seconds(600));
  });

  REQUIRE(lines.size() == 100 + 9 + 2);  // at once; in a minute, of which the last six seconds are not over; the others
  REQUIRE(lines[99].ends_with(" info flood (further lines about this user are left out for now)"));
  REQUIRE(lines[109].ends_with(" info other"));
  REQUIRE(
      std::regex_search(lines[110], std::regex(R"(info again \(\d+ lines about this user are left out before it\)$)")));
}

TEST_CASE("what the level hides takes nothing of a user's lines", "[observe]") {
  const auto start = LinesByUser::Clock::now();
  LinesByUser log;

  const auto lines = lines_on_stderr([&] {
    start_log(LogLevel::kInfo);
    for (int i = 0; i < 1'000; ++i) log.say(LogLevel::kDebug, 1, "hidden", start);
    log.say(LogLevel::kInfo, 1, "shown", start);
  });

  REQUIRE(lines.size() == 1);
  REQUIRE(lines[0].ends_with(" info shown"));
}

TEST_CASE("every counter has one row, a name as OpenMetrics wants it, and help", "[observe]") {
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_table()) {
    REQUIRE(names.insert(row.name).second);
    REQUIRE(std::regex_match(std::string(row.name), std::regex("millrace_[a-z_]+")));
    REQUIRE((row.kind == MetricKind::kCounter) == row.name.ends_with("_total"));
    if (!row.unit.empty()) REQUIRE(row.name.find("_" + std::string(row.unit)) != std::string_view::npos);
    REQUIRE_FALSE(row.help.empty());
  }

  REQUIRE(names.size() == static_cast<std::size_t>(MetricId::kCount));
}

TEST_CASE("every histogram has one row, a name of seconds that no counter has, and help", "[observe]") {
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_table()) names.insert(row.name);
  for (const HistogramRow& row : histogram_table()) {
    REQUIRE(names.insert(row.name).second);
    REQUIRE(std::regex_match(std::string(row.name), std::regex("millrace_[a-z_]+_seconds")));
    REQUIRE_FALSE(row.help.empty());
  }
}

TEST_CASE("a counter with a label is told by its values, which add up to it", "[observe]") {
  Counters counters;
  const LabelValue cpu = counters.value_of(MetricId::samples_completed, "cpu");
  counters.add(MetricId::samples_completed, cpu, 40);
  counters.add(MetricId::samples_completed, "cuda:0");
  counters.add(MetricId::samples_completed, cpu);

  const std::vector<LabelledCount> counts = counters.labelled_counts(MetricId::samples_completed);
  REQUIRE(counts.size() == 2);
  REQUIRE(counts[0].value == "cpu");
  REQUIRE(counts[0].count == 41);
  REQUIRE(counts[1].value == "cuda:0");
  REQUIRE(counts[1].count == 1);
  REQUIRE(counters.stored(MetricId::samples_completed) == 42);
  REQUIRE(counters.labelled_counts(MetricId::sessions_opened).empty());
}

TEST_CASE("values of a label beyond those that there is room for are counted as other", "[observe]") {
  Counters counters;
  for (int user = 0; user < 10'000; ++user) counters.add(MetricId::batches_completed, std::to_string(user));
  counters.add(MetricId::batches_completed, "3");

  const std::vector<LabelledCount> counts = counters.labelled_counts(MetricId::batches_completed);
  REQUIRE(counts.size() == Labelled::kMost);
  REQUIRE(counts[3].value == "3");
  REQUIRE(counts[3].count == 2);
  REQUIRE(counts.back().value == "other");
  REQUIRE(counts.back().count == 10'000 - static_cast<std::int64_t>(Labelled::kMost) + 1);
  REQUIRE(counters.stored(MetricId::batches_completed) == 10'001);
}

TEST_CASE("a histogram counts a duration below the least power of two that is more", "[observe]") {
  using std::chrono::microseconds;
  Histogram histogram;
  for (const std::int64_t micros : {0, 1, 3, 4, 1'000'000}) histogram.add(microseconds(micros));
  histogram.add(std::chrono::hours(1'000));
  histogram.add(microseconds(-5));

  const Histogram::Counts counts = histogram.counts();
  REQUIRE(counts[0] == 2);  // below 1 us
  REQUIRE(counts[1] == 1);  // below 2 us
  REQUIRE(counts[2] == 1);  // below 4 us
  REQUIRE(counts[3] == 1);  // below 8 us
  REQUIRE(counts[20] == 1);
  REQUIRE(Histogram::bound(20) == microseconds(1'048'576));
  REQUIRE(counts.back() == 1);
  REQUIRE(histogram.sum() == std::chrono::hours(1'000) + microseconds(1'000'008));
}

TEST_CASE("counters count from many threads, and durations are shown in seconds", "[observe]") {
  Counters counters;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1'000; ++n) counters.add(MetricId::decode_time, 500);
    });
  for (std::thread& thread : threads) thread.join();
  counters.add(MetricId::slots, 5);
  counters.subtract(MetricId::slots, 2);

  for (const MetricRow& row : metric_table()) {
    if (row.id == MetricId::decode_time) REQUIRE(counters.value(row) == Approx(2.0));
    if (row.id == MetricId::slots) REQUIRE(counters.value(row) == 3);
  }
}

TEST_CASE("what is always logged is shown whatever the level is", "[observe]") {
  const auto lines = lines_on_stderr([] {
    start_log(LogLevel::kError);
    log_info("hidden");
    log_always("somebody has {} done something");
    start_log(LogLevel::kInfo);
    log_info("shown again");
  });

  REQUIRE(lines.size() == 2);
  REQUIRE(lines[0].ends_with(" info somebody has {} done something"));
  REQUIRE(lines[1].ends_with(" info shown again"));
}

TEST_CASE("stderr is the journal where the variable names this very file, by device and inode", "[observe]") {
  struct stat opened {};
  opened.st_dev = 9;
  opened.st_ino = 39264;

  REQUIRE(is_journal("9:39264", opened));
  REQUIRE_FALSE(is_journal("9:39265", opened));
  REQUIRE_FALSE(is_journal("8:39264", opened));
  REQUIRE_FALSE(is_journal("9:392640", opened));
  REQUIRE_FALSE(is_journal("", opened));
}

TEST_CASE("the last words of a program have its name before them, and a level for the journal on every line",
          "[observe]") {
  const auto elsewhere = lines_on_stderr([] { print_failure("millraced", "line 1 is wrong\nline 2 is, too"); });
  const auto journal = lines_on_stderr([] {
    struct stat opened {};
    REQUIRE(::fstat(STDERR_FILENO, &opened) == 0);
    const std::string stream = std::to_string(opened.st_dev) + ":" + std::to_string(opened.st_ino);
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
    print_failure("millraced", "line 1 is wrong\nline 2 is, too");
    ::unsetenv("JOURNAL_STREAM");
  });

  REQUIRE(elsewhere == std::vector<std::string>{"millraced: line 1 is wrong", "line 2 is, too"});
  REQUIRE(journal == std::vector<std::string>{"<3>millraced: line 1 is wrong", "<3>line 2 is, too"});
}

TEST_CASE("no value of a line for programs can end early or begin another", "[observe]") {
  KeyValues line;
  line.add("session", 7U).add("name", "a\" uid=\"0\\\nb \u202e").add("empty", "");
  line.add("seconds", std::chrono::microseconds(12'000'345));

  REQUIRE(line.text() ==
          "session=7 name=\"a\\\" uid=\\\"0\\\\\\\\x0ab \\\\xe2\\\\x80\\\\xae\" empty=\"\" seconds=12.000345");
}

}  // namespace
}  // namespace millrace
