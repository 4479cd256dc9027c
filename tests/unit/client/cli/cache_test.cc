// What the command line says about the daemon's cache, and what converted files are called.
#include <catch2/catch.hpp>

#include "client/cli/convert/names.h"
#include "client/cli/text/cache_counts.h"
#include "client/cli/text/run_report.h"
#include "client/cli/text/unpacked.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

Metric by_kind(const std::string& name, double index, double packed, double tensor) {
  return {.name = name,
          .counter = true,
          .value = index + packed + tensor,
          .label = "kind",
          .values = {{"index", index}, {"packed", packed}, {"tensor", tensor}}};
}

Statistics statistics(double first, double index, double packed, double tensor, double saved) {
  Statistics statistics;
  statistics.metrics = {{.name = "millrace_first_touches_total", .counter = true, .value = first},
                        by_kind("millrace_cache_hits_total", index, packed, tensor),
                        by_kind("millrace_cache_saved_seconds_total", saved / 4, saved / 2, saved / 4),
                        by_kind("millrace_cache_bytes", 10, 1000, 100)};
  return statistics;
}

CacheCounts between(const Statistics& before, const Statistics& after) {
  return since(cache_counts(before), cache_counts(after));
}

EpochReport epoch(std::uint64_t number, double seconds, const CacheCounts& cache) {
  return {.epoch = number, .images = 100, .elapsed = std::chrono::duration<double>(seconds), .cache = cache};
}

}  // namespace

TEST_CASE("where images came from is told by kind, without what is nothing", "[cli]") {
  const CacheCounts counts = between(statistics(5, 1, 2, 3, 0), statistics(17, 1, 1'002, 4, 8));

  REQUIRE(counts.known);
  REQUIRE(counts.saved() == 8);
  REQUIRE(counts.kinds[1].bytes == 1000);
  REQUIRE(sources_text(counts) == "12 from the file alone, 1,000 from packed coefficients, 1 finished tensors");
  REQUIRE(sources_text(between(statistics(0, 0, 0, 0, 0), statistics(0, 7, 0, 0, 0))) == "7 by a seek index");
}

TEST_CASE("a daemon that tells nothing about its cache is known as such", "[cli]") {
  const CacheCounts counts = cache_counts(Statistics{});
  REQUIRE_FALSE(counts.known);
  REQUIRE(sources_text(counts).empty());
}

TEST_CASE("a run says what the cache brought, if it brought something", "[cli]") {
  const Statistics none = statistics(0, 0, 0, 0, 0);
  const CacheCounts first = between(none, statistics(100, 0, 0, 0, 0)),
                    packed = between(none, statistics(0, 0, 100, 0, 2));
  RunReport report;
  report.add(epoch(0, 4, first));
  REQUIRE(report.cache_text().empty());
  report.add(epoch(1, 5, packed));
  REQUIRE(report.cache_text() == "the cache brought about 2.00 s of lane time");  // it was no faster

  RunReport warm;
  warm.add(epoch(0, 4, packed));
  warm.add(epoch(1, 2, packed));
  REQUIRE(warm.cache_text() == "the cache brought about 4.00 s of lane time");  // to the first epoch as well
}

TEST_CASE("what the cache brought is the median of later epochs, not the best one", "[cli]") {
  const Statistics none = statistics(0, 0, 0, 0, 0);
  const CacheCounts first = between(none, statistics(100, 0, 0, 0, 0)),
                    packed = between(none, statistics(0, 0, 100, 0, 2));
  RunReport report;
  report.add(epoch(0, 4, first));
  report.add(epoch(1, 2, packed));
  REQUIRE(report.cache_text() ==
          "the cache brought: the second epoch ran 2.00 x as fast as the first (50.0 images/s), and about 2.00 s of "
          "lane time");
  report.add(epoch(2, 0.1, packed));
  EpochReport shared = epoch(3, 2.5, packed);
  shared.others = true;
  report.add(shared);

  REQUIRE(report.cache_text() ==
          "the cache brought: later epochs, in the median, ran 2.00 x as fast as the first (50.0 images/s), and about "
          "6.00 s of lane time to all sessions");
}

TEST_CASE("an epoch of less than half a second has no images/s; only several together are compared with the first",
          "[cli]") {
  const Statistics none = statistics(0, 0, 0, 0, 0);
  const CacheCounts first = between(none, statistics(100, 0, 0, 0, 0)),
                    packed = between(none, statistics(0, 0, 100, 0, 2));
  RunReport short_first, short_second;
  short_first.add(epoch(0, 0.2, first));
  short_first.add(epoch(1, 2, packed));
  short_second.add(epoch(0, 4, first));
  short_second.add(epoch(1, 0.2, packed));

  REQUIRE(epoch_text(epoch(1, 2, packed), 8) ==
          "epoch 2/8: 100 images in 2.00 s, 50.0 images/s; 100 from packed coefficients; about 2.00 s of lanes saved");
  REQUIRE(epoch_text(epoch(1, 0.2, packed), 8) ==
          "epoch 2/8: 100 images in 0.20 s, too short to measure; 100 from packed coefficients");
  REQUIRE(epoch_text(epoch(0, 0.2, CacheCounts{}), 8) ==
          "epoch 1/8: 100 images in 0.20 s, too short to measure; seek indexes: 0 used, 0 made");
  REQUIRE(RunReport().total_text(std::chrono::milliseconds(490)) == "0 images in 0.49 s: too short to measure; 0 bad");
  REQUIRE(RunReport().total_text(std::chrono::milliseconds(500)) ==
          "0 images in 0.50 s: 0.0 images/s, 0 B/s of tensors; 0 bad");
  REQUIRE(short_first.cache_text().empty());
  REQUIRE(short_second.cache_text() == "the cache brought about 2.00 s of lane time");
  short_second.add(epoch(2, 0.2, packed));
  short_second.add(epoch(3, 0.2, packed));
  REQUIRE(
      short_second.cache_text() ==
      "the cache brought: later epochs, in the median, ran 20.00 x as fast as the first (500.0 images/s), and about "
      "6.00 s of lane time");
}

TEST_CASE("images that are not packed are counted by the reason, one that a newer daemon says included", "[cli]") {
  UnpackedCounts none, some;
  none.add(WhyUnpacked::kNotSaid);
  for (const WhyUnpacked why : {WhyUnpacked::kNoRoom, WhyUnpacked::kNotJpeg, WhyUnpacked::kNoRoom, WhyUnpacked{200}})
    some.add(why);
  Json json;
  json.begin_object();
  some.add_to(json);

  REQUIRE(none.text().empty());
  REQUIRE(some.text() ==
          "1 not packed: only JPEG files have a packed form, and these are of other formats\n"
          "2 not packed: the cache is full; cache.memory and cache.disk say how large it may be\n"
          "1 not packed: the daemon is newer than this program, which does not know its reason\n");
  REQUIRE(
      json.end_object().text() ==
      R"({"not_packed":{"not_jpeg":1,"packed_files":0,"switched_off":0,"no_room":2,"no_form":0,"no_process":0,"other":1}})");
}

TEST_CASE("figures are one session's own only where no other was open", "[cli]") {
  const auto with = [](double open, double opened) {
    Statistics told;
    told.metrics = {{.name = "millrace_sessions", .value = open},
                    {.name = "millrace_sessions_opened_total", .counter = true, .value = opened}};
    return told;
  };
  REQUIRE_FALSE(others_were_open(with(1, 4), with(1, 4)));
  REQUIRE(others_were_open(with(2, 4), with(1, 4)));
  REQUIRE(others_were_open(with(1, 4), with(2, 4)));
  REQUIRE(others_were_open(with(1, 4), with(1, 5)));  // it has come and gone
}

TEST_CASE("converted files keep their stems, and two of one stem their whole names", "[cli]") {
  const std::set<std::string, std::less<>> files{"1.jpg", "2.JPEG", "2.txt",   "3.jpg", "3.jpeg",
                                                 "4.jpg", "4.mrp",  "a.b.jpg", "a.jpg"};
  const auto named = [&](const char* name) {
    const PackedName packed = packed_name(name, files);
    return packed.name + " " + packed.ending;
  };
  REQUIRE(named("1.jpg") == "1.mrp jpg");
  REQUIRE(named("2.JPEG") == "2.mrp JPEG");
  REQUIRE(named("3.jpg") == "3.jpg.mrp ");
  REQUIRE(named("3.jpeg") == "3.jpeg.mrp ");
  REQUIRE(named("4.jpg") == "4.jpg.mrp ");
  REQUIRE(named("a.b.jpg") == "a.b.mrp jpg");
  REQUIRE(named("a.jpg") == "a.mrp jpg");
  REQUIRE(jpeg_name("2.mrp", "JPEG") == "2.JPEG");
  REQUIRE(jpeg_name("3.jpg.mrp", "") == "3.jpg");
  REQUIRE(is_jpeg_name("x.JpE"));
  REQUIRE(is_packed_name("x.MRP"));
  for (const char* name : {"jpg", ".jpg", "x.jpg~", "x.", "x.png", "x.jpg "}) {
    CAPTURE(name);
    REQUIRE_FALSE(is_jpeg_name(name));
  }
}
