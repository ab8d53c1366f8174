// Closes connections whose peer may still be sending: closing at once would reset them, and the
// last answer would be lost on its way. One thread; at most 512 sockets for two seconds each.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "http/socket.h"

namespace ashlar {

class Lingerer {
 public:
  Lingerer();
  ~Lingerer();
  // Any thread. Takes the descriptor; says that we send no more.
  void Close(int fd);

 private:
  struct Entry {
    int fd;
    HttpClock::time_point until;
  };
  void Work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Entry> entries_;  // in order of `until`
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ashlar
