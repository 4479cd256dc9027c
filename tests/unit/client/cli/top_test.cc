// What `millrace top` shows of figures, in terminals of two sizes, and what its keys do.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "client/cli/top/screen.h"
#include "client/cli/top/text_columns.h"

using namespace millrace;
using namespace millrace::cli;
using namespace std::chrono_literals;

namespace {

Metric metric(const std::string& name, double value, std::vector<LabelledValue> values = {}) {
  return {.name = name, .value = value, .values = std::move(values)};
}

SessionStatistics session(std::uint64_t id, const std::string& name, std::uint32_t uid, std::uint64_t samples) {
  return {
      .id = id,
      .name = name,
      .uid = uid,
      .pid = 4711,
      .slots = 4,
      .slots_free = 1,
      .segment = Bytes{38'500'000},
      .batches = samples / 8,
      .samples = samples,
      .lanes = std::chrono::duration<double>(static_cast<double>(samples) / 1'000),
      .age = 100s,
      .states = {{.state = "reading", .time = 40s, .waited = 20s}, {.state = "lane_turn", .time = 60s, .waited = 10s}},
      .waits_told = 50,
      .job = name + "-job"};
}

// Two sessions, of which the daemon knows why they wait.
TopLook look_at(std::uint64_t samples, std::chrono::seconds uptime) {
  TopLook look;
  look.statistics = {
      .daemon_version = "0.1.0",
      .pid = 99,
      .uptime = uptime,
      .metrics = {metric("millrace_samples_total", static_cast<double>(2 * samples),
                         {{"cpu", static_cast<double>(samples)}, {"cuda:0", static_cast<double>(samples)}}),
                  metric("millrace_cache_bytes", 1e9), metric("millrace_cache_disk_bytes", 2e9),
                  metric("millrace_cache_hits_total", 300), metric("millrace_cache_misses_total", 100),
                  metric("millrace_segment_bytes", 7.3e6)},
      .sessions = {session(7, "train", 1000, samples), session(12, "evaluation of many words", 1001, samples / 2)}};
  look.devices = {{.backend = "cpu", .ready = true, .lanes = 8}, {.backend = "cuda:0", .ready = false, .lanes = 1}};
  look.users = {{1000, "alice"}, {1001, "bob"}};
  look.at = std::chrono::steady_clock::time_point(uptime);
  look.findings = {{.id = 7,
                    .time = 60s,
                    .images_per_second = 410.4,
                    .waited = 0.62,
                    .waits_told = true,
                    .findings = {{.code = "slow_disk",
                                  .share = 0.9,
                                  .text = "The disk gives 180 MB/s and you need 410.",
                                  .advice = "Set cache.memory: it would hold 62 % of the set.",
                                  .images_per_second = 934,
                                  .paths = {"/data/\x1b.jpg"}},
                                 {.code = "slow_files", .share = 0.1, .text = "A few files are slow."}}},
                   {.id = 12, .time = 60s, .images_per_second = 3.44, .waited = 0.01, .waits_told = true}};
  return look;
}

TopModel model() {
  return top_model(look_at(3'000, 102s), look_at(1'000, 100s));
}

std::string text_of(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) text += line.text + '\n';
  return text;
}

// Without the spaces at lines' ends.
std::string trimmed(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) text += line.text.substr(0, line.text.find_last_not_of(' ') + 1) + '\n';
  return text;
}

TopView pressed(std::initializer_list<TopKey> keys, const TopModel& of = model()) {
  TopView view;
  for (const TopKey key : keys) view = after(key, view, of, 10);
  return view;
}

}  // namespace

TEST_CASE("top in a terminal of 80 by 24", "[cli]") {
  const auto lines = top_screen(model(), {}, {80, 24});

  REQUIRE(lines.size() == 24);
  CHECK(trimmed(lines) ==
        "millraced 0.1.0   pid 99   up 1:42   2 sessions   2,000 images/s\n"
        "devices  cpu: 8 lanes, 1,000 images/s   cuda:0: lost\n"
        "cache    1.0 GB in memory, 2.0 GB on disk; 75 % of images were kept\n"
        "memory   7.3 MB tensors, 0 B encoded, 0 B decoding, 0 B requests\n"
        "\n"
        "  ID SESSION     USER    JOB        IMAGES/S WAITED\u2193 CAUSE          SLOTS  LANES\n"
        "   7 train       alice   train-job       410    62 % slow disk        3/4    1.0\n"
        "  12 evaluation~ bob     evaluati~       3.4     1 %                  3/4    0.5\n" +
            std::string(15, '\n') + "Enter why   Up/Down choose   Left/Right sort   p pause   h help   q quit\n");
  CHECK(lines[1].emphasis == Emphasis::kWarning);
  CHECK(lines[6].emphasis == Emphasis::kSelected);
}

TEST_CASE("top in a terminal of 200 by 50 has more columns and the first cause's sentence", "[cli]") {
  const auto lines = top_screen(model(), {}, {200, 50});

  REQUIRE(lines.size() == 50);
  CHECK_THAT(lines[5].text, Catch::Contains("      PID   BATCHES    BAD    MEMORY WHY"));
  CHECK_THAT(lines[6].text, Catch::Contains(" 38.5 MB The disk gives 180 MB/s and you need 410."));
  CHECK_THAT(lines[7].text, Catch::Contains("  12 evaluation of many words bob     evaluation of many words-job  "));
}

TEST_CASE("no line of top is wider than its terminal, whatever its size", "[cli]") {
  TopModel wide = model();
  wide.sessions[0].name = "\u5341\u5341\u5341\u5341\u5341\u5341\u5341";
  wide.gone = GENERATE("", "cannot reach the daemon at unix:/run/millrace/millrace.sock: No such file or directory");
  for (const TopPage page : {TopPage::kSessions, TopPage::kWhy, TopPage::kHelp}) {
    for (std::size_t width = 1; width < 260; width += 7) {
      for (const std::size_t height : {1U, 2U, 5U, 24U}) {
        const auto lines = top_screen(wide, {.page = page, .selected = 7}, {width, height});
        CAPTURE(width, height, text_of(lines));
        REQUIRE(lines.size() == height);
        REQUIRE(std::ranges::all_of(lines, [&](const TopLine& line) { return columns_of(line.text) <= width; }));
      }
    }
  }
}

TEST_CASE("Enter shows the sentences of the chosen session, and Esc goes back", "[cli]") {
  const TopView view = pressed({TopKey::kDown, TopKey::kUp, TopKey::kEnter});
  REQUIRE(view.page == TopPage::kWhy);
  REQUIRE(view.selected == 7);
  CHECK_THAT(trimmed(top_screen(model(), view, {80, 24})),
             Catch::Contains("session 7 \"train\" of alice, job \"train-job\"\n"
                             "410 images/s; the program waited 62 % of the time (last 1:00)\n"
                             "\n"
                             "90 %  slow disk\n"
                             "  The disk gives 180 MB/s and you need 410.\n"
                             "  -> Set cache.memory: it would hold 62 % of the set.\n"
                             "  Without it: some 934 images/s.\n"
                             "  /data/\\x1b.jpg\n"
                             "\n"
                             "10 %  slow files\n"
                             "  A few files are slow.\n"));
  CHECK(after(TopKey::kBack, view, model(), 10).page == TopPage::kSessions);

  TopModel later = model();
  later.sessions.clear();
  CHECK_THAT(text_of(top_screen(later, view, {80, 24})), Catch::Contains("Session 7 is gone"));
}

TEST_CASE("a page that is longer than the screen says so, and is scrolled to its end and no further", "[cli]") {
  const TopModel of = model();
  const TopSize size{40, 14};
  TopView view = pressed({TopKey::kEnter});
  CHECK_THAT(trimmed(top_screen(of, view, size)),
             Catch::Contains("90 %  slow disk\n  The disk gives 180 MB/s and you need\n  410.\n... more with Down\n"));
  for (int step = 0; step < 20; ++step) view = after(TopKey::kDown, view, of, 10);
  view.scrolled = std::min(view.scrolled, most_scrolled(of, view, size));
  CHECK_THAT(trimmed(top_screen(of, view, size)), Catch::Contains("  -> Set cache.memory: it would hold 62\n"
                                                                  "     % of the set.\n"
                                                                  "  Without it: some 934 images/s.\n"
                                                                  "  /data/\\x1b.jpg\n"
                                                                  "\n"
                                                                  "10 %  slow files\n"
                                                                  "  A few files are slow.\n"));
  CHECK(most_scrolled(of, {}, size) == 0);
}

TEST_CASE("an older daemon's sessions have their largest state as cause, and Enter says that it is older", "[cli]") {
  TopLook old = look_at(3'000, 102s);
  old.findings.reset();
  old.statistics.sessions[1].waits_told = 0;
  old.statistics.sessions[1].job.clear();
  const TopModel of_old = top_model(old, std::nullopt);

  CHECK(of_old.sessions[0].cause == "reading");    // in which its program waited
  CHECK(of_old.sessions[1].cause == "lane turn");  // of all its time
  CHECK(of_old.sessions[0].waited == 0.3);
  CHECK_FALSE(of_old.sessions[1].waited);
  CHECK(of_old.sessions[0].images_per_second == 30);  // since it was opened
  CHECK(of_old.sessions[1].job == "evaluation of many words");
  CHECK_THAT(text_of(top_screen(of_old, pressed({TopKey::kEnter}, of_old), {80, 24})),
             Catch::Contains("The daemon is older than this command and finds no causes."));
}

TEST_CASE("names of markup and control bytes are text", "[cli]") {
  TopLook hostile = look_at(3'000, 102s);
  hostile.statistics.sessions[0].name = "\x1b[31m<b>";
  hostile.statistics.sessions[0].job = "a\nb\xff";
  hostile.users[1000] = "\x07";
  (*hostile.findings)[0].findings[0].code = "\x1b[2J_disk";
  const std::string text = text_of(top_screen(top_model(hostile, std::nullopt), {}, {200, 24}));

  CHECK_THAT(text, Catch::Contains("\\x1b[31m<b>") && Catch::Contains("a\\x0ab\\xff") && Catch::Contains("\\x07") &&
                       Catch::Contains("\\x1b[2J disk"));
  CHECK(std::ranges::none_of(text, [](char letter) { return letter == '\x1b' || letter == '\x07'; }));
}

TEST_CASE("rates begin anew with another daemon", "[cli]") {
  TopLook before = look_at(100'000, 1'000s);
  before.statistics.pid = 98;
  const TopModel anew = top_model(look_at(3'000, 100s), before);

  CHECK(anew.images_per_second == 60);
  CHECK(anew.devices[0].images_per_second == 30);
}

TEST_CASE("top sorts by any column, either way, and what is chosen stays chosen", "[cli]") {
  const TopModel of = model();
  const auto first = [&](const TopView& view) { return in_order(of, view).front()->id; };

  CHECK(first({}) == 7);
  CHECK(first(pressed({TopKey::kReverse})) == 12);
  CHECK(first({.sort = TopSort::kSession}) == 12);
  CHECK(first({.sort = TopSort::kUser}) == 7);
  CHECK(first({.sort = TopSort::kRate}) == 7);
  CHECK(first({.sort = TopSort::kCause}) == 12);
  CHECK(pressed({TopKey::kRight}).sort == TopSort::kCause);
  CHECK(pressed({TopKey::kLeft}).sort == TopSort::kRate);
  CHECK(pressed({TopKey::kRight, TopKey::kRight, TopKey::kRight}).sort == TopSort::kId);
  const TopView chosen = pressed({TopKey::kDown, TopKey::kReverse});
  CHECK(selected_of(in_order(of, chosen), chosen) == 0);
  CHECK(chosen.selected == 12);
}

TEST_CASE("more sessions than lines: the chosen one is on the screen", "[cli]") {
  TopModel many;
  for (std::uint64_t id = 1; id <= 100; ++id) many.sessions.push_back({.id = id, .name = "s" + std::to_string(id)});
  TopView view = {.sort = TopSort::kId};
  for (int step = 0; step < 9; ++step) view = after(TopKey::kPageDown, view, many, 10);
  CHECK(view.selected == 91);
  const auto lines = top_screen(many, view, {80, 24});
  const auto chosen = std::ranges::find(lines, Emphasis::kSelected, &TopLine::emphasis);
  REQUIRE(chosen != lines.end());
  CHECK_THAT(chosen->text, Catch::StartsWith("  91 s91 "));
  CHECK(after(TopKey::kPageDown, view, many, 50).selected == 100);
  CHECK(top_print(many, 80).size() == 106);
}

TEST_CASE("without a daemon top says so in its words, and that it goes on", "[cli]") {
  const TopModel gone{.gone = "cannot reach the daemon at unix:/run/millrace/millrace.sock: No such file or directory"};
  const std::string text = text_of(top_screen(gone, {}, {80, 24}));
  CHECK_THAT(text, Catch::Contains("cannot reach the daemon at unix:/run/millrace/millrace.sock") &&
                       Catch::Contains("This goes on when the daemon is there.") && !Catch::Contains("SESSION"));
}

TEST_CASE("text is cut and filled by the columns that it takes", "[cli]") {
  CHECK(columns_of("a\u5341") == 3);
  CHECK(columns_of("e\u0301") == 1);
  CHECK(fitted("\u5341\u5341", 4) == "\u5341\u5341");
  CHECK(fitted("\u5341\u5341", 3) == "\u5341~");
  CHECK(fitted("\u5341\u5341\u5341", 4) == "\u5341 ~");
  CHECK(fitted("ab", 4, Align::kRight) == "  ab");
  CHECK(fitted("abc", 0).empty());
  CHECK(broken("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(broken("abcdefgh", 3) == std::vector<std::string>{"abc", "def", "gh"});
}
