// Who is connected: which connections hold an ordinary place, and which only wait for their next
// request and may be closed for a newcomer. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace ashlar {

class ConnectionTable {
 public:
  explicit ConnectionTable(int places) : places_(places) {}

  // Between Add and Remove the caller keeps the descriptor open.
  void Add(int fd);
  void Remove(int fd);

  // True when the connection has one of the ordinary places, or just got one.
  bool TakePlace(int fd);

  // Marks the connection as waiting; false when it should close instead.
  bool BeginIdle(int fd);
  void EndIdle(int fd);

  // Ends the waiting of the connection that waits longest, if any; it closes unless its next
  // request is already there.
  void EvictLongestIdle();
  // The same for all that wait, now and from now on.
  void CloseIdle();

  bool full() const;

 private:
  struct Entry {
    bool has_place = false;
    bool idle = false;
    uint64_t idle_since = 0;  // in order of becoming idle
  };

  const int places_;
  mutable std::mutex mutex_;
  std::map<int, Entry> entries_;
  int taken_ = 0;
  uint64_t clock_ = 0;
  bool closing_ = false;
};

}  // namespace ashlar
