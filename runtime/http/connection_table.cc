#include "http/connection_table.h"

#include <sys/socket.h>

namespace ashlar {

void ConnectionTable::Add(int fd) {
  std::lock_guard lock(mutex_);
  Entry entry;
  entry.has_place = taken_ < places_;
  taken_ += entry.has_place ? 1 : 0;
  entries_[fd] = entry;
}

void ConnectionTable::Remove(int fd) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(fd);
  taken_ -= found->second.has_place ? 1 : 0;
  entries_.erase(found);
}

bool ConnectionTable::TakePlace(int fd) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(fd);
  if (!entry.has_place && taken_ < places_) {
    entry.has_place = true;
    ++taken_;
  }
  return entry.has_place;
}

bool ConnectionTable::BeginIdle(int fd) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(fd);
  entry.idle = true;
  entry.idle_since = ++clock_;
  return !closing_;
}

void ConnectionTable::EndIdle(int fd) {
  std::lock_guard lock(mutex_);
  entries_.at(fd).idle = false;
}

void ConnectionTable::EvictLongestIdle() {
  std::lock_guard lock(mutex_);
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!entry->second.idle) continue;
    if (oldest == entries_.end() || entry->second.idle_since < oldest->second.idle_since) {
      oldest = entry;
    }
  }
  if (oldest == entries_.end()) return;
  oldest->second.idle = false;
  // Its place is the newcomer's from now on.
  taken_ -= oldest->second.has_place ? 1 : 0;
  oldest->second.has_place = false;
  // Bytes that have arrived can still be read after this: a request that crosses is served.
  shutdown(oldest->first, SHUT_RD);
}

void ConnectionTable::CloseIdle() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  for (auto& [fd, entry] : entries_) {
    if (entry.idle) shutdown(fd, SHUT_RD);
  }
}

bool ConnectionTable::full() const {
  std::lock_guard lock(mutex_);
  return taken_ >= places_;
}

}  // namespace ashlar
