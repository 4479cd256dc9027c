// What this server answers to a path. Thread-bound(the io_context of its link).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/cli/web/daemon_link.h"
#include "client/cli/web/http_connection.h"
#include "client/cli/web/statistics_page.h"

namespace millrace::cli {

class WebAnswers {
 public:
  // `own`: this server's own figures, without asks.
  WebAnswers(DaemonLink& link, std::function<WebFigures()> own);

  // Calls `reply` once, now or later.
  void answer(const WebRequest& request, HttpConnection::Reply reply);

 private:
  // A text made of what the daemon has said last, for all who ask for it in the meantime.
  struct Rendered {
    std::shared_ptr<const v1::GetStatisticsReply> of;
    std::shared_ptr<const std::string> text;
  };

  void metrics(const WebRequest& request, HttpConnection::Reply reply);
  void statistics(HttpConnection::Reply reply);
  void why(const WebRequest& request, HttpConnection::Reply reply);
  WebAnswer page() const;

  DaemonLink& link_;
  const std::function<WebFigures()> own_;
  const std::string policy_;  // of the page
  Rendered text_, open_metrics_, json_;
  LabelPlaces places_;
  std::shared_ptr<const v1::GetStatisticsReply> looked_at_;  // by places_, last
};

}  // namespace millrace::cli
